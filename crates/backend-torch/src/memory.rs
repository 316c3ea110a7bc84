//! The process's memory: what was freed is kept for libtorch's next tensors.

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
