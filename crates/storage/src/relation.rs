//! A relation's directory: from a row id to the place where the row is.
//!
//! ```text
//!  row id ── >>16 ──▶ segment number ──▶ chunk k (2^k segments) ──▶ Segment { Empty | Hot | Cold }
//!                                                                      │        │
//!                                        page number, slot ◀───────────┘        └──▶ block + deletes, ordinal
//! ```
//!
//! The directory only grows; finding a segment takes no lock. A segment's state is swapped as a whole when it
//! is frozen, compacted, bulk-loaded or emptied.
//!
//! Invariants:
//! 1. A row id is given out once, and means the same row as long as that lives.
//! 2. A swap happens only while the writers of the old state are shut out: hot pages are marked frozen,
//!    the delete vector is closed. Who meets either looks the segment up again.

mod deletes;
mod published;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use avocet_base::{RowId, SegmentNo};
use avocet_types::RowLayout;
use parking_lot::Mutex;

pub use deletes::{DeleteVector, Deletes};
use published::Published;
pub use published::{Current, Guard, free_replaced, pin};

use crate::cold::Block;
use crate::hot::{HotPage, slots_per_page};
use crate::prefetch::prefetch;
use crate::version::{Snapshot, TxnState};

const CHUNKS: usize = 40;

/// How many rows a segment has at most: a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPerSegment(u32);

impl RowsPerSegment {
    /// Fewer than usual: for tests, which then cross segments with few rows. Row ids stay what they are.
    pub fn new(rows: u32) -> Self {
        assert!(
            rows.is_power_of_two() && (64..=Self::default().0).contains(&rows),
            "{rows} rows per segment"
        );
        Self(rows)
    }

    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl Default for RowsPerSegment {
    fn default() -> Self {
        Self(RowId::PER_SEGMENT as u32)
    }
}

/// All rows of a table.
pub struct Relation {
    pub layout: Arc<RowLayout>,
    segment_rows: RowsPerSegment,
    page_shift: u32,
    chunks: [OnceLock<Box<[Segment]>>; CHUNKS],
    /// Segments that were ever given out: numbers below it may hold rows.
    next_segment: AtomicU64,
    cursor: Mutex<InsertCursor>,
    /// One more than the greatest row id that is known to have been given out before, by another process; 0 for none.
    used_before: AtomicU64,
    /// No segment is frozen or compacted.
    still: AtomicBool,
}

/// Where the next hot row goes.
#[derive(Clone, Copy)]
struct InsertCursor {
    segment: SegmentNo,
    /// The next ordinal, and that behind the segment's last.
    next: u32,
    end: u32,
    /// Of the rows that the segment was opened for or that came since.
    bytes: usize,
}

impl InsertCursor {
    /// The next row opens a segment.
    fn closed(segment: SegmentNo) -> Self {
        Self { segment, next: 0, end: 0, bytes: 0 }
    }

    fn is_closed(&self) -> bool {
        self.next == self.end
    }
}

pub struct Segment {
    state: Published<SegmentState>,
}

pub enum SegmentState {
    /// No rows: never used, or all gone.
    Empty,
    Hot(HotSegment),
    Cold(ColdSegment),
}

/// Pages made when their first row comes.
pub struct HotSegment {
    pages: Box<[OnceLock<HotPage>]>,
}

/// How many column segments had come into being at some moment. Equal to or above [`ColdSegment::made`], the segment was there:
/// so were its rows' index entries, and no others. (A row's last stale entry goes before its page can be frozen.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(u64);

static COLD_SEGMENTS: AtomicU64 = AtomicU64::new(0);

impl Moment {
    pub fn now() -> Self {
        Self(COLD_SEGMENTS.load(Ordering::Acquire))
    }
}

pub struct ColdSegment {
    pub block: Arc<Block>,
    made: Moment,
    /// Who loaded the block, as long as some snapshot may not see it.
    pub created: Option<Arc<TxnState>>,
    pub deletes: DeleteVector,
}

impl ColdSegment {
    pub fn new(block: Arc<Block>, created: Option<Arc<TxnState>>, deletes: Deletes) -> Self {
        let made = Moment(COLD_SEGMENTS.fetch_add(1, Ordering::AcqRel) + 1);
        Self { block, made, created, deletes: DeleteVector::new(deletes) }
    }

    /// Whether every index entry of its rows that was read since is of a row's one version, and no stale one.
    #[inline]
    pub fn was_there(&self, moment: Moment) -> bool {
        self.made <= moment
    }

    /// Whether the block as a whole exists for the snapshot.
    pub fn is_visible(&self, snapshot: &Snapshot<'_>) -> bool {
        self.created.as_ref().is_none_or(|txn| snapshot.sees(txn))
    }
}

impl HotSegment {
    fn new(pages: usize) -> Self {
        Self { pages: (0..pages).map(|_| OnceLock::new()).collect() }
    }

    pub fn page(&self, number: usize) -> Option<&HotPage> {
        self.pages[number].get()
    }

    /// The page will be looked at soon.
    pub fn prefetch_page(&self, number: usize) {
        prefetch(&self.pages[number]);
    }

    /// What the segment takes of memory.
    pub fn bytes(&self) -> usize {
        self.directory_bytes() + self.page_bytes()
    }

    /// What it takes if it has no page.
    pub fn directory_bytes(&self) -> usize {
        size_of_val(&*self.pages)
    }

    /// What its pages hold.
    pub fn page_bytes(&self) -> usize {
        self.pages().map(|(_, page)| page.body.read().bytes()).sum()
    }

    /// The pages that exist, with their numbers.
    pub fn pages(&self) -> impl Iterator<Item = (usize, &HotPage)> {
        self.pages.iter().enumerate().filter_map(|(n, p)| Some((n, p.get()?)))
    }
}

impl Segment {
    /// What the segment is now: to look at, not to keep. Cheaper for those who have [pinned](pin) themselves.
    #[inline]
    pub fn state(&self) -> Current<'_, SegmentState> {
        self.state.load()
    }

    /// The same, as long as a guard pins its epoch.
    #[inline]
    pub fn state_in<'g>(&'g self, pinned: &'g Guard) -> &'g SegmentState {
        self.state.load_in(pinned)
    }

    /// The same, to keep for a while.
    pub fn state_owned(&self) -> Arc<SegmentState> {
        self.state.load_owned()
    }

    pub fn replace(&self, state: SegmentState) {
        self.state.replace(state);
    }
}

impl Relation {
    pub fn new(layout: Arc<RowLayout>, segment_rows: RowsPerSegment) -> Self {
        let page_shift = slots_per_page(layout.fixed_size).min(segment_rows.get()).ilog2();
        Self {
            layout,
            segment_rows,
            page_shift,
            chunks: [const { OnceLock::new() }; CHUNKS],
            next_segment: AtomicU64::new(0),
            // The first insert opens a segment.
            cursor: Mutex::new(InsertCursor::closed(SegmentNo(0))),
            used_before: AtomicU64::new(0),
            still: AtomicBool::new(false),
        }
    }

    /// Whether segments are to stay hot or cold as they are. Whoever replaces one asks and sets this under a lock of its own.
    pub fn is_still(&self) -> bool {
        self.still.load(Ordering::Relaxed)
    }

    pub fn set_still(&self, is_still: bool) {
        self.still.store(is_still, Ordering::Relaxed);
    }

    pub fn rows_per_segment(&self) -> usize {
        self.segment_rows.get()
    }

    pub fn segment_rows(&self) -> RowsPerSegment {
        self.segment_rows
    }

    pub fn slots_per_page(&self) -> usize {
        1 << self.page_shift
    }

    pub fn pages_per_segment(&self) -> usize {
        self.segment_rows.get() >> self.page_shift
    }

    /// What a page has of so many bytes of a segment.
    #[inline]
    pub fn share_of_page(&self, bytes: usize) -> usize {
        bytes >> (self.segment_rows.get().ilog2() - self.page_shift)
    }

    /// Page number and slot of an ordinal.
    #[inline]
    pub fn place(&self, ordinal: u16) -> (usize, usize) {
        let ordinal = usize::from(ordinal);
        (ordinal >> self.page_shift, ordinal & (self.slots_per_page() - 1))
    }

    /// The page of a hot segment that an ordinal's row is in, and its slot there; `None` if no row was ever there.
    #[inline]
    pub fn page_of<'s>(&self, segment: &'s HotSegment, ordinal: u16) -> Option<(&'s HotPage, usize)> {
        let (page, slot) = self.place(ordinal);
        Some((segment.page(page)?, slot))
    }

    /// The ordinal of a page's slot.
    #[inline]
    pub fn ordinal(&self, page: usize, slot: usize) -> u16 {
        (page << self.page_shift | slot) as u16
    }

    /// Number of segments in the directory.
    pub fn segments(&self) -> u64 {
        self.next_segment.load(Ordering::Acquire)
    }

    /// A segment; made (empty) if nobody used it before.
    pub fn segment(&self, number: SegmentNo) -> &Segment {
        let chunk = (number.0 + 1).ilog2();
        let within = number.0 + 1 - (1 << chunk);
        let chunk = self.chunks[chunk as usize].get_or_init(|| {
            (0..1usize << chunk).map(|_| Segment { state: Published::new(SegmentState::Empty) }).collect()
        });
        &chunk[within as usize]
    }

    /// Reserves a whole segment, for rows that go straight to a column block.
    pub fn reserve_segment(&self) -> SegmentNo {
        SegmentNo(self.next_segment.fetch_add(1, Ordering::AcqRel))
    }

    /// Recovery: row ids up to and including this segment's were given out.
    pub fn note_segment(&self, number: SegmentNo) {
        self.next_segment.fetch_max(number.0 + 1, Ordering::AcqRel);
    }

    /// The row id for a new hot row of so many bytes. A segment of which the rows have `most` bytes takes no more: what is
    /// frozen at once has to fit into memory a few times over, and the strings of a column into one heap.
    pub fn next_row_id(&self, bytes: usize, most: usize) -> RowId {
        let mut cursor = self.cursor.lock();
        if cursor.is_closed() || cursor.bytes >= most {
            let (segment, end) = (self.reserve_segment(), self.segment_rows.0);
            *cursor = InsertCursor { segment, next: 0, end, bytes: 0 };
        }
        let id = RowId::new(cursor.segment, cursor.next as u16);
        cursor.next += 1;
        cursor.bytes += bytes;
        if cursor.next == 1 {
            self.open_hot(id.segment());
        }
        id
    }

    /// The segment that inserts go to now; it is never frozen.
    pub fn insert_segment(&self) -> Option<SegmentNo> {
        let cursor = self.cursor.lock();
        (!cursor.is_closed()).then_some(cursor.segment)
    }

    /// Ends the insert segment, so that it can be frozen too: the next insert opens another.
    pub fn close_insert_segment(&self) {
        let mut cursor = self.cursor.lock();
        *cursor = InsertCursor::closed(cursor.segment);
    }

    /// Ends the insert segment if it is this one.
    pub fn close_if_insert_segment(&self, number: SegmentNo) {
        let mut cursor = self.cursor.lock();
        if cursor.segment == number {
            *cursor = InsertCursor::closed(number);
        }
    }

    /// One more than the greatest row id that was ever given out for a hot row; if no more will be given out in its segment, than
    /// all that it might have had. Whoever opens the relation anew must be [told](Self::note_rows_before).
    pub fn rows_before(&self) -> u64 {
        let cursor = self.cursor.lock();
        let used = match cursor.is_closed() {
            true if self.segments() == 0 => 0,
            true => (cursor.segment.0 + 1) << RowId::PER_SEGMENT.ilog2(),
            false => RowId::new(cursor.segment, 0).0 + u64::from(cursor.next),
        };
        used.max(self.used_before.load(Ordering::Relaxed))
    }

    /// Recovery: row ids below this were given out. A row may have had one and be gone, and somebody may still see it.
    pub fn note_rows_before(&self, id: u64) {
        if self.used_before.load(Ordering::Relaxed) < id {
            self.used_before.fetch_max(id, Ordering::Relaxed);
        }
    }

    /// Recovery: goes on filling the segment of the last row id that was given out, if it is hot.
    pub fn resume_inserts(&self) {
        let Some(last) = self.used_before.load(Ordering::Relaxed).checked_sub(1).map(RowId) else { return };
        let (segment, next, end) = (last.segment(), u32::from(last.ordinal()) + 1, self.segment_rows.0);
        if segment.0 < self.segments()
            && next < end
            && let SegmentState::Hot(hot) = &*self.segment(segment).state_owned()
        {
            *self.cursor.lock() = InsertCursor { segment, next, end, bytes: hot.bytes() };
        }
    }

    /// Makes an empty segment hot; leaves any other as it is.
    pub fn open_hot(&self, number: SegmentNo) {
        self.note_segment(number);
        let segment = self.segment(number);
        if matches!(*segment.state(), SegmentState::Empty) {
            segment.replace(SegmentState::Hot(HotSegment::new(self.pages_per_segment())));
        }
    }

    /// A hot segment's page, made if its first row comes now.
    pub fn page_or_new<'s>(&self, segment: &'s HotSegment, number: usize) -> &'s HotPage {
        segment.pages[number].get_or_init(|| HotPage::new(&self.layout, self.slots_per_page()))
    }

    /// The pages that hold rows, after all others were closed: no row can come to a page that is not listed.
    pub fn close_pages<'s>(&self, segment: &'s HotSegment) -> Vec<&'s HotPage> {
        let closed = |page: &'s OnceLock<HotPage>| page.get_or_init(HotPage::closed);
        segment.pages.iter().map(closed).filter(|page| !page.is_closed()).collect()
    }

    /// Numbers and states of all segments that hold anything, ascending.
    pub fn used_segments(&self) -> impl Iterator<Item = (SegmentNo, Arc<SegmentState>)> + '_ {
        let end = self.segments();
        self.chunks.iter().enumerate().flat_map(move |(n, chunk)| {
            // A chunk that nobody has made has nothing.
            let segments = chunk.get().map_or(&[][..], |segments| segments);
            segments.iter().zip((1 << n) - 1..end).filter_map(|(segment, number)| {
                let state = segment.state_owned();
                (!matches!(*state, SegmentState::Empty)).then_some((SegmentNo(number), state))
            })
        })
    }

    /// Whether some row has versions besides the newest.
    pub fn has_versions(&self) -> bool {
        let of_state = |state: &SegmentState| match state {
            SegmentState::Empty => false,
            SegmentState::Hot(hot) => hot.pages().any(|(_, page)| page.body.read().has_versions()),
            SegmentState::Cold(cold) => cold.deletes.body.read().has_versions(),
        };
        self.used_segments().any(|(_, state)| of_state(&state))
    }

    /// Bytes of the directory and of what is known of column blocks, which stay however cold the rows are.
    pub fn directory_bytes(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnceLock::get).map(|chunk| chunk.len());
        let of_state = |state: &SegmentState| match state {
            SegmentState::Cold(cold) => size_of::<Block>() + cold.block.meta().bytes(),
            _ => 0,
        };
        let states = self.used_segments().map(|(_, state)| size_of::<SegmentState>() + of_state(&state));
        size_of::<Self>() + made.sum::<usize>() * size_of::<Segment>() + states.sum::<usize>()
    }

    /// Bytes of rows: of hot segments in memory, of blocks as they are stored.
    pub fn data_bytes(&self) -> u64 {
        let of_state = |state: &SegmentState| match state {
            SegmentState::Empty => 0,
            SegmentState::Hot(hot) => hot.bytes() as u64,
            SegmentState::Cold(cold) => cold.block.meta().data_len,
        };
        self.used_segments().map(|(_, state)| of_state(&state)).sum()
    }

    /// Bytes of hot segments.
    pub fn hot_bytes(&self) -> usize {
        let of_state = |state: &SegmentState| match state {
            SegmentState::Hot(hot) => hot.bytes(),
            _ => 0,
        };
        self.used_segments().map(|(_, state)| of_state(&state)).sum()
    }
}

#[cfg(test)]
mod tests {
    use avocet_types::SqlType;

    use super::*;

    #[test]
    fn row_ids_are_given_out_once_and_segments_found_again() {
        let layout = Arc::new(RowLayout::new(&[SqlType::INT]));
        let relation = Relation::new(layout, RowsPerSegment::default());
        let first = relation.next_row_id(100, usize::MAX);
        assert_eq!(first, RowId(0));
        let bulk = relation.reserve_segment();
        assert_eq!(bulk, SegmentNo(1));
        let mut last = first;
        for _ in 0..RowId::PER_SEGMENT {
            last = relation.next_row_id(100, usize::MAX);
        }
        assert_eq!(last, RowId::new(SegmentNo(2), 0));
        assert!(matches!(*relation.segment(SegmentNo(2)).state(), SegmentState::Hot(_)));
        assert!(matches!(*relation.segment(SegmentNo(1)).state(), SegmentState::Empty));
        assert_eq!(relation.used_segments().count(), 2);
        relation.close_if_insert_segment(SegmentNo(1));
        assert_eq!(relation.next_row_id(100, 300), RowId::new(SegmentNo(2), 1));
        assert_eq!(relation.next_row_id(1000, 300), RowId::new(SegmentNo(2), 2));
        assert_eq!(relation.next_row_id(100, 300), RowId::new(SegmentNo(3), 0), "the one before is full");
        relation.close_if_insert_segment(SegmentNo(3));
        assert_eq!(relation.next_row_id(100, 300), RowId::new(SegmentNo(4), 0));
        for ordinal in [0u16, 1, 1023, 1024, 65_535] {
            let (page, slot) = relation.place(ordinal);
            assert_eq!(relation.ordinal(page, slot), ordinal);
        }
    }

    #[test]
    fn row_ids_that_were_given_out_are_not_given_out_again() {
        let layout = Arc::new(RowLayout::new(&[SqlType::INT]));
        let open = |used: u64, segments: &[u64]| {
            let relation = Relation::new(layout.clone(), RowsPerSegment::new(64));
            segments.iter().for_each(|&n| relation.open_hot(SegmentNo(n)));
            relation.note_rows_before(used);
            relation.resume_inserts();
            relation
        };
        let relation = open(0, &[]);
        assert_eq!(relation.rows_before(), 0);
        let ids: Vec<_> = (0..65).map(|_| relation.next_row_id(1, usize::MAX)).collect();
        assert_eq!(ids[63..], [RowId::new(SegmentNo(0), 63), RowId::new(SegmentNo(1), 0)]);
        // In the segment, behind all that was given out; a full one is left.
        let again = open(relation.rows_before(), &[0, 1]);
        assert_eq!(again.next_row_id(1, usize::MAX), RowId::new(SegmentNo(1), 1));
        again.close_insert_segment();
        let third = open(again.rows_before(), &[0, 1]);
        assert_eq!(third.next_row_id(1, usize::MAX), RowId::new(SegmentNo(2), 0));
        assert_eq!(open(64, &[0]).next_row_id(1, usize::MAX), RowId::new(SegmentNo(1), 0));
    }
}
