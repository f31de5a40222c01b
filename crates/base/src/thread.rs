//! What a thread has had of the processors.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time that this thread has used.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let before = cpu_time();
        while cpu_time() == before {}
        assert!(cpu_time() > before);
    }
}
