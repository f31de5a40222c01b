//! The rows of a transaction, told from its operations.

use std::sync::Weak;

use avocet_base::{BlockId, TableId, Timestamp};
use avocet_storage::hot::delta;
use avocet_storage::rows::cold_image;

use super::{CaptureError, ChangeSink};
use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, malformed};
use crate::redo::{self, Op};
use crate::table::TableHandle;

/// What a transaction's record says of telling others.
pub(super) enum Stamp {
    /// When it was committed.
    Told(i64),
    /// Its session wanted nobody to be told.
    Silent,
    /// It was committed without change capture.
    Missing,
}

pub(super) fn stamp_of(operations: &[u8]) -> Result<Stamp, CaptureError> {
    let last = redo::ops(operations).last().transpose().map_err(malformed("redo operation"))?;
    Ok(match last {
        Some(Op::Stamp { wall_us: 0 }) => Stamp::Silent,
        Some(Op::Stamp { wall_us }) => Stamp::Told(wall_us as i64),
        _ => Stamp::Missing,
    })
}

pub(super) struct Teller<'t> {
    pub engine: &'t Weak<Engine>,
    pub catalog: &'t Catalog,
    pub sink: &'t mut dyn ChangeSink,
    pub ts: Timestamp,
    pub wall_us: i64,
    pub has_begun: bool,
}

/// The row as it was, and whether two operations make one update of it.
struct Before<'p> {
    image: &'p [u8],
    moves: bool,
}

impl Teller<'_> {
    pub fn begin(&mut self) -> Result<(), CaptureError> {
        if !self.has_begun {
            self.has_begun = true;
            self.sink.begin(self.wall_us)?;
        }
        Ok(())
    }

    pub fn end(self) -> Result<(), CaptureError> {
        if self.has_begun {
            self.sink.commit(self.ts)?;
        }
        Ok(())
    }

    /// Tells of operations. Returns the table that they fill, if that has no name yet, instead of telling.
    pub fn operations(&mut self, operations: &[u8]) -> Result<Option<TableId>, CaptureError> {
        let catalog = self.catalog;
        let table = |id: TableId| {
            let unknown = || EngineError::corrupt("a redo operation", format!("there is no {id}"));
            catalog.table_by_id(id).ok_or_else(unknown)
        };
        let wants = self.sink.wants(self.ts);
        let mut before: Option<Before<'_>> = None;
        let mut after = Vec::new();
        for op in redo::ops(operations) {
            let op = op.map_err(malformed("redo operation"))?;
            match op {
                Op::Stamp { .. } => continue,
                Op::Before { image, moves, .. } => {
                    before = Some(Before { image, moves });
                    continue;
                }
                _ => {}
            }
            let table = table(op.table())?;
            if table.is_unfinished() {
                return Ok(Some(table.id()));
            }
            if !wants {
                return Ok(None);
            }
            self.begin()?;
            let layout = &table.layout;
            let row = |image| layout.view(image).map_err(malformed("row image"));
            let lacks =
                || EngineError::corrupt("a redo operation", "the row as it was is not there".to_owned());
            match op {
                Op::Insert { image, .. } => match before.take() {
                    Some(Before { image: was, .. }) => self.sink.update(table, row(was)?, row(image)?)?,
                    None => self.sink.insert(table, row(image)?)?,
                },
                Op::Update { delta, .. } => {
                    let Before { image, .. } = before.take().ok_or_else(lacks)?;
                    after.clear();
                    after.extend_from_slice(image);
                    delta::apply_to_image(layout, delta, &mut after).map_err(malformed("row delta"))?;
                    self.sink.update(table, row(image)?, row(&after)?)?;
                }
                Op::Delete { .. } => match before.take().ok_or_else(lacks)? {
                    // What it becomes follows.
                    moved @ Before { moves: true, .. } => before = Some(moved),
                    Before { image, .. } => self.sink.delete(table, row(image)?)?,
                },
                Op::Block { block, .. } => self.block(table, block, &mut after)?,
                Op::Before { .. } | Op::Stamp { .. } => unreachable!("seen to above"),
            }
        }
        Ok(None)
    }

    /// The rows that were loaded as a block, one by one.
    fn block(
        &mut self,
        table: &TableHandle,
        block: BlockId,
        image: &mut Vec<u8>,
    ) -> Result<(), CaptureError> {
        let engine =
            self.engine.upgrade().ok_or_else(|| EngineError::Stopped("the engine is closed".into()))?;
        let block = table.view(engine.blocks.open(block)?)?;
        let mut left = block.meta().rows();
        for ordinal in 0..=u16::MAX {
            if left == 0 {
                break;
            }
            image.clear();
            if cold_image(&table.layout, &block, ordinal, image).map_err(EngineError::from)? {
                left -= 1;
                self.sink.insert(table, table.layout.view(image).map_err(malformed("row image"))?)?;
            }
        }
        Ok(())
    }
}
