//! The process's memory.

/// The most memory that this process ever had in use, in bytes; Linux tells it in
/// `/proc/self/status`.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_the_most_memory_that_it_had() {
        let peak = peak_rss_bytes().unwrap();
        let gibibyte = 1 << 30;
        assert!(peak > 1 << 20 && peak < 1024 * gibibyte, "{peak}");
    }
}
