//! What this process takes of the machine.

/// Bytes of it that are in memory. `None` where there is no /proc.
pub fn resident_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_is_in_memory() {
        assert!(super::resident_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
