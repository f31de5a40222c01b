//! Frames: which rows of its partition a window function is over, for each row.

use std::ops::Range;

use avocet_sql::parse::ast::FrameUnit;
use avocet_sql::plan::{Distance, FrameBound, WindowFunction};
use avocet_types::Datum;
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;

use super::super::{NotPoint, Refusal, Run};
use super::Partition;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePlan {
    /// From and to rows at a distance.
    Rows(Edge, Edge),
    /// From and to the peers of the current row, or to the partition's ends.
    Peers { from_current: bool, to_current: bool },
}

/// Relative to the current row; `None` is the partition's end.
pub type Edge = Option<i64>;

impl FramePlan {
    pub fn compile(function: &WindowFunction) -> Result<Self, Refusal> {
        let Some(frame) = &function.frame else {
            // Up to the peers of the current row, of which all are one if there is no order.
            return Ok(Self::Peers { from_current: false, to_current: true });
        };
        let distance = |by: &Distance| match by {
            Distance::Value(by) => {
                count(by).ok_or_else(|| NotPoint::because("a frame that is no number of rows"))
            }
            Distance::Interval(..) => Err(NotPoint::because("a frame of an interval")),
        };
        if frame.unit == FrameUnit::Rows {
            let edge = |bound: &FrameBound| {
                Ok::<_, NotPoint>(match bound {
                    FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => None,
                    FrameBound::CurrentRow => Some(0),
                    FrameBound::Preceding(by) => Some(-distance(by)?),
                    FrameBound::Following(by) => Some(distance(by)?),
                })
            };
            return Ok(Self::Rows(edge(&frame.start)?, edge(&frame.end)?));
        }
        if frame.distances().next().is_some() {
            return Err(NotPoint::because("a RANGE with a distance").into());
        }
        let is_current = |bound: &FrameBound| matches!(bound, FrameBound::CurrentRow);
        Ok(Self::Peers { from_current: is_current(&frame.start), to_current: is_current(&frame.end) })
    }

    /// The frame of each row of a partition.
    pub fn frames(self, rows: &Partition<'_>, run: Run<'_>) -> Result<Vec<Range<usize>>, SqlError> {
        let count = rows.len();
        let mut frames = Vec::with_capacity(count);
        match self {
            Self::Rows(start, end) => {
                let at =
                    |row: usize, by: i64| (row as i64).saturating_add(by).clamp(0, count as i64) as usize;
                for row in 0..count {
                    run.bounds.row()?;
                    let begin = start.map_or(0, |by| at(row, by));
                    let end = end.map_or(count, |by| at(row, by.saturating_add(1)));
                    frames.push(begin..end.max(begin));
                }
            }
            Self::Peers { from_current, to_current } => {
                for peers in rows.peers() {
                    let begin = if from_current { peers.start } else { 0 };
                    let end = if to_current { peers.end } else { count };
                    for _ in peers {
                        run.bounds.row()?;
                        frames.push(begin..end);
                    }
                }
            }
        }
        Ok(frames)
    }
}

/// A literal number of rows.
fn count(expr: &Expr) -> Option<i64> {
    match expr.as_literal()? {
        Datum::Int(n) if *n >= 0 => Some(*n),
        Datum::UInt(n) => i64::try_from(*n).ok(),
        _ => None,
    }
}
