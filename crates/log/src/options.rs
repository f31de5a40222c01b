//! How a log is written: what a record is to have survived, and the writer's sizes and callbacks.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use avocet_base::Lsn;

use crate::packed::Compression;

/// Called by the log thread with the new durable LSN and the tag of the last record before it, before
/// anyone who waits is told.
pub type OnDurable = Box<dyn Fn(Lsn, u64) + Send + Sync>;

/// What a record is to have survived before it counts as done, and how soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// A power cut: written and synced, as soon as the log thread is free.
    #[default]
    Sync,
    /// A power cut too, but its group may gather so long before it is written: fewer syncs, later answers.
    Group(Duration),
    /// The end of the process: handed to the operating system. It is synced with the next record that wants it, or
    /// within [`LAZY_SYNC`]; a power cut loses what was not, but never a record without all that came after it.
    Os,
}

/// How long a group may gather that is asked for without a time.
const DEFAULT_GATHER: Duration = Duration::from_millis(1);
/// Commits that gather for longer look as if they hung.
const MOST_GATHER: Duration = Duration::from_secs(10);

/// `sync`, `group`, `group:MS` (milliseconds) or `os`, in any case.
impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        match (lower.as_str(), lower.strip_prefix("group:").map(str::parse)) {
            ("sync", _) => Ok(Self::Sync),
            ("os", _) => Ok(Self::Os),
            ("group", _) => Ok(Self::Group(DEFAULT_GATHER)),
            (_, Some(Ok(ms))) if ms <= MOST_GATHER.as_millis() as u64 => {
                Ok(Self::Group(Duration::from_millis(ms)))
            }
            _ => Err(format!(
                "'{text}' is none of sync, group, group:MS (at most {} ms) and os",
                MOST_GATHER.as_millis()
            )),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sync => f.write_str("sync"),
            Self::Group(gather) => write!(f, "group:{}", gather.as_millis()),
            Self::Os => f.write_str("os"),
        }
    }
}

/// What was written without a sync is synced after this time at the latest, or when it has become so many bytes.
pub const LAZY_SYNC: Duration = Duration::from_secs(1);
pub(crate) const LAZY_BYTES: u64 = 32 << 20;

/// How a [`LogWriter`](crate::LogWriter) works.
pub struct LogOptions {
    /// Directory of the segment files; created if missing.
    pub dir: PathBuf,
    /// Size of a segment file in bytes.
    pub segment_size: u64,
    /// Bytes of records that may wait for the group in flight; appenders block when there are more.
    /// Twice this is the writer's memory.
    pub max_pending: usize,
    /// Spare segments that [`LogWriter::truncate_before`](crate::LogWriter::truncate_before) keeps instead of removing them.
    pub max_spares: usize,
    /// Whether new segments are filled with zeros rather than only allocated. An fdatasync then never has to
    /// write the file's extent map along with the data.
    pub prefill: bool,
    pub compression: Compression,
    /// Groups of fewer bytes are written as they are.
    pub compress_from: usize,
    /// Records of so many bytes are framed before they are appended: see [`LogWriter::prepare`](crate::LogWriter::prepare).
    pub frame_ahead_from: usize,
    pub on_durable: OnDurable,
    /// The same for groups that are written and not synced, since no record in them asked for more.
    pub on_written: OnDurable,
}

impl LogOptions {
    /// The defaults: 64 MiB segments, 16 MiB pending, compressed from 2 KiB on, no callback.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_size: 64 << 20,
            max_pending: 16 << 20,
            max_spares: 4,
            prefill: true,
            compression: Compression::default(),
            compress_from: 2 << 10,
            frame_ahead_from: 256 << 10,
            on_durable: Box::new(|_, _| ()),
            on_written: Box::new(|_, _| ()),
        }
    }

    pub fn on_durable(mut self, f: impl Fn(Lsn, u64) + Send + Sync + 'static) -> Self {
        self.on_durable = Box::new(f);
        self
    }

    pub fn on_written(mut self, f: impl Fn(Lsn, u64) + Send + Sync + 'static) -> Self {
        self.on_written = Box::new(f);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durabilities_are_read_and_shown() {
        for text in ["sync", "os", "group:1", "group:250"] {
            assert_eq!(text.parse::<Durability>().expect("valid").to_string(), text);
        }
        assert_eq!("GROUP".parse::<Durability>().expect("valid").to_string(), "group:1");
        assert!(
            ["", "group:", "group:x", "group:-1", "fsync"].iter().all(|t| t.parse::<Durability>().is_err())
        );
    }
}
