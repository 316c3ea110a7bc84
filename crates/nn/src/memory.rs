//! The process's memory: freed memory is kept for libtorch's next tensors, and the most that was
//! ever in use is told.

/// Keeps memory that was freed in the process instead of giving it back to the system. Call it
/// once, before threads are started.
///
/// The tensors of every batch are freed at its end and asked for again by the next. glibc gives blocks
/// of their size back each time, and the kernel clears the pages that it hands out anew: a sixth of
/// the time of bare evaluations on a processor. Other C libraries are left as they are.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    keep();
}

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

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt is a C function")]
fn keep() {
    /// The highest that glibc takes.
    const MAPPED: i32 = 32 << 20;
    const TRIMMED: i32 = 1 << 30;
    // SAFETY: mallopt may be called at any time; it changes nothing but when memory is given back. It
    // answers 0 for a parameter that it does not know, and then all stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED);
    }
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
