//! What this machine computes with: the device, the numbers, and how many threads and games suit
//! it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use anyhow::Context as _;
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend;
use rookery_nn::{ComputeDevice, NetworkEvaluator, Precision, Weights};

use crate::config::Compute;
use crate::tuning::Tuning;

/// Games of a thread on a processor that was never measured.
const CPU_GAMES: usize = 64;
/// Games of a thread on a GPU that was never measured.
const GPU_GAMES: usize = 512;
/// Most games of a thread that `bench` tries, on a processor and on a GPU.
const TRIED_GAMES: [usize; 2] = [512, 4096];
/// Visits of the searches for which `bench` looks for a number of games.
const TRIED_VISITS: u32 = 800;
/// What a game takes besides its search trees, in bytes: its share of a batch above all.
const BYTES_PER_GAME: u64 = 64 << 10;
/// What a visit takes in a search tree, in bytes, with the room that a growing tree keeps.
const BYTES_PER_VISIT: u64 = 1200;
/// Memory that is taken to be free where the system does not tell, in bytes.
const ASSUMED_MEMORY: u64 = 8 << 30;
/// Threads that share a GPU: while one's batch is computed, the other's is prepared.
const GPU_THREADS: usize = 2;

/// A device that was tried, and how it is used.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// The device.
    pub device: ComputeDevice,
    /// The numbers, never `Auto`.
    pub precision: Precision,
    /// What evaluators are asked for, so that they compute in these numbers: `Auto` on a GPU where the user has not chosen, as
    /// networks that are too large for 16 bits may leave them there.
    pub asked: Precision,
    /// The same as coordinators name it.
    pub backend: Backend,
    /// Threads that play.
    pub threads: NonZeroUsize,
    /// Games that each of them plays at once.
    pub games: NonZeroUsize,
    /// Memory that was free at the start, in bytes; 8 GiB where the system does not tell.
    pub memory: u64,
}

impl Machine {
    /// Opens the device. Where the numbers are to be chosen, a small network is timed, once, so
    /// that all networks are then computed in the same. Where the number of games is, it is what
    /// `tuning` says.
    ///
    /// # Errors
    ///
    /// If a device or numbers were asked for that do not work here.
    pub fn open(compute: &Compute, tuning: &Tuning) -> anyhow::Result<Self> {
        rookery_nn::use_threads(1);
        let device = compute.device.open()?;
        let precision = choose_precision(device, compute.precision)?;
        let backend = backend_of(device, precision)?;
        let asked = asked_for(compute.precision, device.is_cpu(), precision);
        let threads = compute
            .threads
            .or_else(|| default_threads(device))
            .unwrap_or(NonZeroUsize::MIN);
        let measured = tuning.games(&device.to_string(), precision.name(), threads);
        let games = match (compute.games, measured) {
            (Some(games), _) => games.get().div_ceil(threads.get()),
            (None, Some(games)) => games.get(),
            (None, None) if device.is_cpu() => CPU_GAMES,
            (None, None) => GPU_GAMES,
        };
        let games = NonZeroUsize::new(games).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            device,
            precision,
            asked,
            backend,
            threads,
            games,
            memory: free_memory().unwrap_or(ASSUMED_MEMORY),
        })
    }

    /// Notes that the games of a thread suit this machine.
    pub fn tune(&self, tuning: &mut Tuning) {
        let device = self.device.to_string();
        tuning.note(&device, self.precision.name(), self.threads, self.games);
    }

    /// Most games of a thread that are worth trying: no more than have room in memory.
    pub fn most_games(&self) -> usize {
        let [cpu, gpu] = TRIED_GAMES;
        let tried = if self.device.is_cpu() { cpu } else { gpu };
        let fitting = self.thread_bytes() / game_bytes(1, TRIED_VISITS);
        tried.min(usize::try_from(fitting).unwrap_or(tried).max(1))
    }

    /// Memory for the games of a thread, in bytes: its share of half of what was free.
    pub const fn thread_bytes(&self) -> u64 {
        self.memory / 2 / self.threads.get() as u64
    }

    /// Games at once, all threads together.
    pub const fn all_games(&self) -> usize {
        self.threads.get().saturating_mul(self.games.get())
    }
}

/// The most memory that a game takes, in bytes, whose searches have so many trees of so many visits.
pub const fn game_bytes(trees: usize, visits: u32) -> u64 {
    BYTES_PER_GAME + trees as u64 * visits as u64 * BYTES_PER_VISIT
}

fn default_threads(device: ComputeDevice) -> Option<NonZeroUsize> {
    if device.is_cpu() {
        available_parallelism().ok()
    } else {
        NonZeroUsize::new(GPU_THREADS)
    }
}

/// The numbers in which a network of usual size is fastest.
fn choose_precision(device: ComputeDevice, asked: Precision) -> anyhow::Result<Precision> {
    let weights = Weights::random(NetworkSpec::resnet(2, 64), 0)?;
    let evaluator = NetworkEvaluator::new(&weights, device, asked)?;
    Ok(evaluator.precision())
}

/// On a processor numbers are measured, once; a GPU's are known.
fn asked_for(chosen: Precision, on_cpu: bool, found: Precision) -> Precision {
    if on_cpu || chosen != Precision::Auto {
        found
    } else {
        Precision::Auto
    }
}

/// Bytes of memory that this process may still have, on Linux: what the machine has free, or what its control
/// groups (a container, a systemd unit) leave it.
fn free_memory() -> Option<u64> {
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

/// Where Linux shows control groups.
const GROUPS: &str = "/sys/fs/cgroup";

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

fn backend_of(device: ComputeDevice, precision: Precision) -> anyhow::Result<Backend> {
    let name = device.to_string();
    let kind = name.split(':').next().unwrap_or_default();
    match kind {
        "mps" => Some(Backend::Mps),
        _ => Backend::from_name(&format!("{kind}-{precision}")),
    }
    .with_context(|| format!("computing in {precision} on {name} is not known to coordinators"))
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

    #[test]
    fn the_processor_is_always_there() {
        let compute = Compute {
            device: rookery_nn::DeviceChoice::Cpu,
            threads: NonZeroUsize::new(3),
            games: NonZeroUsize::new(10),
            precision: Precision::F32,
        };
        let mut tuning = Tuning::default();
        let machine = Machine::open(&compute, &tuning).unwrap();
        assert_eq!(machine.backend, Backend::CpuF32);
        assert_eq!((machine.games.get(), machine.all_games()), (4, 12));
        assert!((1..=512).contains(&machine.most_games()));
        let open = Compute {
            games: None,
            ..compute
        };
        assert_eq!(
            Machine::open(&open, &tuning).unwrap().games.get(),
            CPU_GAMES
        );
        machine.tune(&mut tuning);
        assert_eq!(Machine::open(&open, &tuning).unwrap().games.get(), 4);
        let chosen = Compute {
            precision: Precision::Auto,
            ..compute
        };
        let chosen = Machine::open(&chosen, &tuning).unwrap();
        assert_ne!(chosen.precision, Precision::Auto);
        assert_eq!(chosen.asked, chosen.precision);
    }

    #[test]
    fn a_gpu_that_was_left_to_choose_may_choose_again_for_a_network() {
        let found = Precision::F16;
        assert_eq!(asked_for(Precision::Auto, false, found), Precision::Auto);
        assert_eq!(asked_for(Precision::F16, false, found), Precision::F16);
        let measured = Precision::Bf16;
        assert_eq!(asked_for(Precision::Auto, true, measured), measured);
    }
}
