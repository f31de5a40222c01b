//! The manifest of a checkpoint. Layout: docs/data_file.md.

use std::collections::BTreeMap;

use avocet_base::checksum::crc32c;
use avocet_base::codec::{Malformed, Put, Reader};
use avocet_base::{BlockId, Lsn, SegmentNo, TableId, Timestamp};

use super::DELETES;
use crate::catalog::Change;
use crate::error::{EngineError, Result};
use crate::redo::Origin;
use crate::redo::apply::MOST_UNLOGGED_SEGMENTS;

const MAGIC: u32 = u32::from_le_bytes(*b"AVCK");
/// The format that is written.
const FORMAT: u16 = 3;
/// Without numbers of rows.
const FORMAT_2: u16 = 2;
/// Also without the row ids that a table has given out, and without origins.
const FORMAT_1: u16 = 1;

/// What the log takes for a segment of rows at the very least, in bytes: the reference to a block.
const LEAST_LOGGED: u64 = 16;

#[derive(Default, Debug)]
pub(crate) struct Manifest {
    /// 0 is the state before the first checkpoint.
    pub sequence: u64,
    pub timestamp: Timestamp,
    /// Recovery replays the log from here.
    pub redo_from: Lsn,
    pub next_id: u32,
    pub next_block: BlockId,
    /// Build the catalog from nothing.
    pub catalog: Vec<Change>,
    pub tables: Vec<TableEntry>,
    /// Up to where other sources' transactions are in force.
    pub origins: Vec<Origin>,
}

#[derive(Debug)]
pub(crate) struct TableEntry {
    pub table: TableId,
    pub next_segment: u64,
    pub auto_increment: u64,
    /// Row ids below this were given out, to rows that are gone perhaps; unknown in format 1.
    pub rows_before: Option<u64>,
    pub segments: Vec<SegmentEntry>,
}

#[derive(Debug)]
pub(crate) struct SegmentEntry {
    pub number: SegmentNo,
    /// How many rows the checkpoint's snapshot sees in it; unknown before format 3.
    pub rows: Option<u32>,
    pub place: SegmentPlace,
}

/// Where a segment's rows are.
#[derive(Debug)]
pub(crate) enum SegmentPlace {
    Hot { pages: Vec<(u16, ImageRef)> },
    Cold { block: BlockId, deletes: Option<ImageRef> },
}

/// What an image is of: a page of a hot segment, or ([`DELETES`]) what is deleted of a cold one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImagePlace {
    pub table: TableId,
    pub segment: SegmentNo,
    pub page: u16,
}

/// Where an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageRef {
    pub object: u64,
    pub offset: u32,
    pub len: u32,
    pub crc: u32,
}

pub(crate) fn key(sequence: u64) -> String {
    format!("checkpoints/{sequence:016x}")
}

pub(crate) fn pages_key(object: u64) -> String {
    format!("pages/{object:016x}")
}

impl Manifest {
    /// All images in force.
    pub fn images(&self) -> impl Iterator<Item = ((TableId, SegmentNo, u16), ImageRef)> + '_ {
        self.tables.iter().flat_map(|table| {
            table.segments.iter().flat_map(move |segment| {
                let (pages, deletes) = match &segment.place {
                    SegmentPlace::Hot { pages } => (&pages[..], None),
                    SegmentPlace::Cold { deletes, .. } => (&[][..], *deletes),
                };
                let of = move |page| (table.table, segment.number, page);
                let pages = pages.iter().map(move |&(page, image)| (of(page), image));
                pages.chain(deletes.map(|image| (of(DELETES), image)))
            })
        })
    }

    /// The images of each object, so that an object need be read once.
    pub fn images_by_object(&self) -> BTreeMap<u64, Vec<(ImagePlace, ImageRef)>> {
        let mut objects: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for ((table, segment, page), image) in self.images() {
            objects.entry(image.object).or_default().push((ImagePlace { table, segment, page }, image));
        }
        objects
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        to.put_u32(MAGIC);
        to.put_u16(FORMAT);
        to.put_u64(self.sequence);
        to.put_u64(self.timestamp.0);
        to.put_u64(self.redo_from.0);
        to.put_u32(self.next_id);
        to.put_u64(self.next_block.0);
        to.put_varint(self.catalog.len() as u64);
        for change in &self.catalog {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            to.put_bytes(&bytes);
        }
        to.put_varint(self.tables.len() as u64);
        for table in &self.tables {
            table.encode(&mut to);
        }
        to.put_varint(self.origins.len() as u64);
        self.origins.iter().for_each(|origin| origin.encode(&mut to));
        let crc = crc32c(&to);
        to.put_u32(crc);
        to
    }

    pub fn decode(bytes: &[u8], name: &str) -> Result<Self> {
        let corrupt = |why: String| EngineError::corrupt(format!("checkpoint {name}"), why);
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(|| corrupt("it is too short".into()))?;
        if crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(corrupt("checksum mismatch".into()));
        }
        Self::parse(body).map_err(|e| corrupt(e.to_string()))
    }

    fn parse(body: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "manifest";
        let mut r = Reader::new(body);
        if r.u32(WHAT)? != MAGIC {
            return Err(r.malformed("magic number"));
        }
        let format = r.u16(WHAT)?;
        if !(FORMAT_1..=FORMAT).contains(&format) {
            return Err(r.malformed("format version"));
        }
        let mut manifest = Self {
            sequence: r.u64(WHAT)?,
            timestamp: Timestamp(r.u64(WHAT)?),
            redo_from: Lsn(r.u64(WHAT)?),
            next_id: r.u32(WHAT)?,
            next_block: BlockId(r.u64(WHAT)?),
            ..Self::default()
        };
        for _ in 0..r.varint(WHAT)? {
            let mut change = Reader::new(r.bytes(WHAT)?);
            manifest.catalog.push(Change::decode(&mut change)?);
            change.finish("catalog change")?;
        }
        let most_segments = MOST_UNLOGGED_SEGMENTS.saturating_add(manifest.redo_from.0 / LEAST_LOGGED);
        for _ in 0..r.varint(WHAT)? {
            let table = TableEntry::decode(&mut r, format)?;
            if table.next_segment > most_segments || !table.has_its_segments() {
                return Err(r.malformed("number of segments"));
            }
            manifest.tables.push(table);
        }
        if format >= FORMAT_2 {
            for _ in 0..r.varint(WHAT)? {
                manifest.origins.push(Origin::read(&mut r)?);
            }
        }
        r.finish(WHAT)?;
        Ok(manifest)
    }
}

impl TableEntry {
    /// How many rows the checkpoint's snapshot sees; unknown before format 3.
    pub fn rows(&self) -> Option<u64> {
        self.segments.iter().map(|segment| segment.rows.map(u64::from)).sum()
    }

    /// Whether its segments ascend up to where the next one goes.
    fn has_its_segments(&self) -> bool {
        let numbers = || self.segments.iter().map(|segment| segment.number.0);
        numbers().is_sorted_by(|a, b| a < b)
            && numbers().next_back().is_none_or(|last| last < self.next_segment)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.put_u32(self.table.0);
        to.put_u64(self.next_segment);
        to.put_u64(self.auto_increment);
        to.put_u64(self.rows_before.unwrap_or_default());
        to.put_varint(self.rows().expect("what is written now is counted"));
        to.put_varint(self.segments.len() as u64);
        for segment in &self.segments {
            to.put_u64(segment.number.0);
            to.put_varint(segment.rows.expect("what is written now is counted").into());
            match &segment.place {
                SegmentPlace::Hot { pages } => {
                    to.put_u8(1);
                    to.put_varint(pages.len() as u64);
                    for (page, image) in pages {
                        to.put_u16(*page);
                        image.encode(to);
                    }
                }
                SegmentPlace::Cold { block, deletes } => {
                    to.put_u8(if deletes.is_some() { 3 } else { 2 });
                    to.put_u64(block.0);
                    deletes.iter().for_each(|image| image.encode(to));
                }
            }
        }
    }

    fn decode(r: &mut Reader<'_>, format: u16) -> Result<Self, Malformed> {
        const WHAT: &str = "manifest table";
        let mut entry = Self {
            table: TableId(r.u32(WHAT)?),
            next_segment: r.u64(WHAT)?,
            auto_increment: r.u64(WHAT)?,
            rows_before: if format == FORMAT_1 { None } else { Some(r.u64(WHAT)?) },
            segments: Vec::new(),
        };
        let rows = if format >= FORMAT { Some(r.varint(WHAT)?) } else { None };
        for _ in 0..r.varint(WHAT)? {
            let number = SegmentNo(r.u64(WHAT)?);
            let rows = match format >= FORMAT {
                true => Some(u32::try_from(r.varint(WHAT)?).map_err(|_| r.malformed(WHAT))?),
                false => None,
            };
            let place = match r.u8(WHAT)? {
                1 => {
                    let mut pages = Vec::new();
                    for _ in 0..r.varint(WHAT)? {
                        pages.push((r.u16(WHAT)?, ImageRef::decode(r)?));
                    }
                    SegmentPlace::Hot { pages }
                }
                2 => SegmentPlace::Cold { block: BlockId(r.u64(WHAT)?), deletes: None },
                3 => SegmentPlace::Cold { block: BlockId(r.u64(WHAT)?), deletes: Some(ImageRef::decode(r)?) },
                _ => return Err(r.malformed(WHAT)),
            };
            entry.segments.push(SegmentEntry { number, rows, place });
        }
        // A segment that is not listed is missed by the table's number.
        if rows.is_some() && rows != entry.rows() {
            return Err(r.malformed("number of rows"));
        }
        Ok(entry)
    }
}

impl SegmentEntry {
    /// What is wrong if so many rows of a table's segment are there.
    pub fn wrong_rows(&self, table: &str, found: u64) -> Option<EngineError> {
        let recorded = self.rows.filter(|&rows| u64::from(rows) != found)?;
        let why = format!("it has {found} rows, and had {recorded} when the checkpoint was written");
        Some(EngineError::corrupt(format!("{table} {}", self.number), why))
    }
}

impl ImageRef {
    fn encode(&self, to: &mut Vec<u8>) {
        to.put_u64(self.object);
        to.put_u32(self.offset);
        to.put_u32(self.len);
        to.put_u32(self.crc);
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "image reference";
        Ok(Self { object: r.u64(WHAT)?, offset: r.u32(WHAT)?, len: r.u32(WHAT)?, crc: r.u32(WHAT)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rows_of_its_segments() {
        let segments = (0..3).map(|n| SegmentEntry {
            number: SegmentNo(n),
            rows: Some(100 + n as u32),
            place: SegmentPlace::Cold { block: BlockId(n), deletes: None },
        });
        let table = TableEntry {
            table: TableId(1),
            next_segment: 3,
            auto_increment: 0,
            rows_before: Some(0),
            segments: segments.collect(),
        };
        let bytes = Manifest { tables: vec![table], ..Manifest::default() }.encode();
        let back = Manifest::decode(&bytes, "example").expect("sound");
        assert_eq!((back.tables[0].rows(), back.tables[0].segments[2].rows), (Some(303), Some(102)));
        // One segment less, its entry of 8 + 1 + 1 + 8 bytes and their number, before the number of origins and the checksum.
        let mut cut = bytes[..bytes.len() - 5 - 18].to_vec();
        let count = cut.len() - 2 * 18 - 1;
        assert_eq!(cut[count], 3);
        cut[count] = 2;
        cut.push(0);
        let crc = crc32c(&cut);
        cut.put_u32(crc);
        let refused = Manifest::decode(&cut, "example").expect_err("a segment is missing");
        assert!(refused.to_string().contains("number of rows"), "{refused}");
    }

    fn with_segments(next_segment: u64, numbers: &[u64], redo_from: u64) -> Result<Manifest> {
        let segments = numbers.iter().map(|&n| SegmentEntry {
            number: SegmentNo(n),
            rows: Some(0),
            place: SegmentPlace::Hot { pages: Vec::new() },
        });
        let table = TableEntry {
            table: TableId(1),
            next_segment,
            auto_increment: 0,
            rows_before: Some(7),
            segments: segments.collect(),
        };
        let manifest = Manifest { redo_from: Lsn(redo_from), tables: vec![table], ..Manifest::default() };
        Manifest::decode(&manifest.encode(), "example")
    }

    /// Whoever believed them would count up to them, or make room for them.
    #[test]
    fn absurd_numbers_of_segments_are_refused() {
        assert_eq!(with_segments(9, &[0, 3, 8], 0).expect("sound").tables[0].segments.len(), 3);
        assert!(with_segments(8, &[0, 3, 8], 0).is_err(), "a segment behind the last");
        assert!(with_segments(9, &[3, 3], 0).is_err(), "a segment twice");
        assert!(with_segments(u64::MAX, &[], 0).is_err());
        assert!(with_segments(1 << 40, &[], 1 << 30).is_err());
        assert!(with_segments(1 << 30, &[], 1 << 40).is_ok(), "the log has room for the rows of as many");
    }

    /// As written before the numbers of rows were in it, and before the row ids that were given out, and origins, were.
    #[test]
    fn manifests_of_older_formats_are_read() {
        let table = TableEntry {
            table: TableId(1),
            next_segment: 3,
            auto_increment: 9,
            rows_before: Some(0x1_0005),
            segments: Vec::new(),
        };
        let origin = Origin { source: 3, position: vec![1, 2], wall_us: 7 };
        let manifest = Manifest {
            sequence: 4,
            tables: vec![table],
            origins: vec![origin.clone()],
            ..Manifest::default()
        };
        let bytes = manifest.encode();
        let now = Manifest::decode(&bytes, "now").expect("sound");
        assert_eq!((now.tables[0].rows_before, &now.origins[..]), (Some(0x1_0005), &[origin][..]));
        let mut head = Vec::new();
        now.origins.iter().for_each(|origin| origin.encode(&mut head));
        // Number of rows, number of segments, number of origins, origins, checksum.
        let end = bytes.len() - 4 - head.len() - 1 - 1 - 1;
        let read = |format: u16, mut old: Vec<u8>| {
            old[4..6].copy_from_slice(&format.to_le_bytes());
            let crc = crc32c(&old);
            old.put_u32(crc);
            Manifest::decode(&old, "old").expect("sound")
        };
        let old = read(FORMAT_1, [&bytes[..end - 8], &bytes[end + 1..end + 2]].concat());
        assert_eq!((old.sequence, old.tables[0].rows_before, old.origins.len()), (4, None, 0));
        assert_eq!((old.tables[0].next_segment, old.tables[0].auto_increment), (3, 9));
        let old = read(FORMAT_2, [&bytes[..end], &bytes[end + 1..bytes.len() - 4]].concat());
        assert_eq!((old.tables[0].rows_before, &old.origins[..]), (Some(0x1_0005), &now.origins[..]));
    }
}
