//! The system's limit of open files: raised at the start, since a connection takes one; where it cannot be raised far enough,
//! there are fewer connections, and the log says so.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the engine may have open at a time beside connections: the log, blocks, checkpoints, spilled runs.
const OTHERS: usize = 1_000;

/// Makes room for so many connections; how many there may be.
pub fn allow(connections: usize) -> usize {
    let wanted = (connections + OTHERS) as u64;
    let limit = getrlimit(Resource::Nofile);
    let target = raised(limit, wanted);
    // Above the hard limit only root may go.
    let attempts = [Some(target), limit.maximum.map(|most| Rlimit { current: Some(most), ..limit })];
    for attempt in attempts.into_iter().flatten() {
        if setrlimit(Resource::Nofile, attempt).is_ok() {
            break;
        }
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fit = connections_within(files, connections);
    if fit < connections {
        tracing::warn!(
            max_connections = fit,
            wanted = connections,
            open_files = files,
            "the limit of open files (ulimit -n) allows fewer connections"
        );
    }
    fit
}

/// The limit with room for `wanted` files, never lower than it was.
fn raised(limit: Rlimit, wanted: u64) -> Rlimit {
    Rlimit {
        current: limit.current.map(|now| now.max(wanted)),
        maximum: limit.maximum.map(|most| most.max(wanted)),
    }
}

/// With few files a half is kept for the engine.
fn connections_within(files: u64, wanted: usize) -> usize {
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    let left = files.saturating_sub(OTHERS).max(files / 2);
    wanted.min(left.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_only_ever_grows() {
        let limit = Rlimit { current: Some(1024), maximum: Some(4096) };
        assert_eq!(raised(limit, 11_000), Rlimit { current: Some(11_000), maximum: Some(11_000) });
        assert_eq!(raised(limit, 500), limit);
        let none = Rlimit { current: None, maximum: None };
        assert_eq!(raised(none, 11_000), none);
    }

    #[test]
    fn few_files_mean_few_connections() {
        assert_eq!(connections_within(20_000, 10_000), 10_000);
        assert_eq!(connections_within(4_096, 10_000), 3_096);
        assert_eq!(connections_within(1_024, 10_000), 512);
        assert_eq!(connections_within(u64::MAX, 10_000), 10_000);
    }
}
