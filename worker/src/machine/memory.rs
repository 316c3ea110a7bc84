//! How much memory there is to play in.

use std::path::{Path, PathBuf};

/// Where Linux shows control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes of memory that this process may still have, on Linux: what the machine has free, or what its control
/// groups (a container, a systemd unit) leave it.
pub(super) fn free_memory() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| available(&text))?;
    let left = |folder: &Path, [limit, used, stat, cached]: [&str; 4]| {
        let stat = read(&folder.join(stat)).unwrap_or_default();
        left_of(
            &read(&folder.join(limit))?,
            &read(&folder.join(used))?,
            named(&stat, cached).unwrap_or(0),
        )
    };
    let own = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let groups = groups_of(&own);
    // The second version's names of files and of what caches hold; the first's, where there are no such.
    let second = ["memory.max", "memory.current", "memory.stat", "file"];
    let first = [
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "cache",
    ];
    let group = groups.iter().filter_map(|folder| left(folder, second));
    let group = group.min().or_else(|| left(Path::new(GROUPS), first));
    Some(group.map_or(machine, |group| group.min(machine)))
}

/// The folders of a process's control groups of the second version, the innermost first, by its
/// `/proc/PID/cgroup`. In a container, that names the outermost alone.
fn groups_of(cgroup: &str) -> Vec<PathBuf> {
    let mut lines = cgroup.lines();
    let own = lines.find_map(|line| line.strip_prefix("0::/"));
    let own = Path::new(GROUPS).join(own.unwrap_or_default());
    let groups = own.ancestors().filter(|folder| folder.starts_with(GROUPS));
    groups.map(Path::to_path_buf).collect()
}

/// What `/proc/meminfo` calls available, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// What a control group has left of its limit, where copies of files, which can be dropped, count as left; none
/// if it has no limit, which is written `max`.
fn left_of(limit: &str, used: &str, cached: u64) -> Option<u64> {
    let (limit, used): (u64, u64) = (limit.trim().parse().ok()?, used.trim().parse().ok()?);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// The number of this name among lines of names and numbers.
fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = lines.find(|(found, _)| *found == name)?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_what_its_limit_leaves() {
        assert_eq!(
            available("MemTotal: 9 kB\nMemAvailable:    3 kB\n"),
            Some(3072)
        );
        assert_eq!(left_of("4096\n", "1000\n", 0), Some(3096));
        assert_eq!(left_of("4096\n", "1000\n", 600), Some(3696));
        assert_eq!(left_of("1000\n", "4096\n", 0), Some(0));
        assert_eq!(left_of("max\n", "4096\n", 0), None);
        let unit = "1:cpu:/x\n0::/system.slice/rookery-worker.service\n";
        let groups = ["system.slice/rookery-worker.service", "system.slice", ""];
        assert_eq!(
            groups_of(unit),
            groups.map(|group| Path::new(GROUPS).join(group))
        );
        assert_eq!(groups_of("0::/\n"), [Path::new(GROUPS)]);
        assert_eq!(
            named("anon 5\nfile 600\nfile_mapped 7\n", "file"),
            Some(600)
        );
    }
}
