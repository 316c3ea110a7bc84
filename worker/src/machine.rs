//! What this machine computes with: the backend, and how many threads and games suit it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use rookery_backend_cpu::CpuBackend;
use rookery_backend_gpu::KernelTuner;
use rookery_backends::DeviceSelection;
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{Backend, BackendError, BackendInfo, DeviceChoice, Precision, fastest};
use rookery_model::Weights;

use crate::beside::{self, Beside};
use crate::config::{Compute, PrecisionChoice};
use crate::device_argument::Device;
use crate::device_pool::DevicePool;
use crate::tuning::{MeasuredPair, PrecisionKey, Tuning};

/// Blocks and channels of the network by which a backend is chosen.
const TIMED_NETWORK: (u32, u32) = (2, 64);
/// Games of a thread on a processor that was never measured.
pub(crate) const CPU_GAMES: usize = 64;
/// Games of a thread on a GPU that was never measured.
pub(crate) const GPU_GAMES: usize = 512;
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
pub(crate) const GPU_THREADS: usize = 2;

/// The devices, and how they are used.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What networks are computed with.
    pub devices: Arc<DevicePool>,
    /// Threads that play, in turn on one and the next device.
    pub threads: NonZeroUsize,
    /// Games that each of them plays at once.
    pub games: NonZeroUsize,
    /// Threads beside those, on the last device, which is the processor then.
    pub beside: Option<Beside>,
    /// Memory that was free at the start, in bytes; 8 GiB where the system does not tell.
    pub memory: u64,
}

impl Machine {
    /// Opens the devices. Where the precision is left to the program, all networks are computed in the same: that of an
    /// `unfinished` job, whose rest needs it, or the one that `tuning` knows, or else the one in which a small network
    /// is fastest now, which `tuning` then knows. The number of games to be chosen is the one that `tuning` knows.
    /// Where the device is left to the program, too, a GPU and the processor play side by side if both gain by that.
    ///
    /// # Errors
    ///
    /// If a device or a precision was asked for that does not work here.
    pub fn open(
        compute: &Compute,
        kernels: &KernelTuner,
        tuning: &mut Tuning,
        unfinished: Option<NumericClass>,
    ) -> anyhow::Result<Self> {
        let asked = match compute.precision {
            PrecisionChoice::Only(precision) => precision,
            PrecisionChoice::Auto | PrecisionChoice::Measure => Precision::Auto,
        };
        let mut lanes = compute.devices.open_all(asked, kernels)?;
        let candidates = candidates(&lanes)?;
        let mut first = choose(candidates.clone(), compute.precision, tuning, unfinished)?;
        let is_free = matches!(
            compute.devices,
            Device::Local(DeviceSelection::One(DeviceChoice::Auto))
        );
        let mut pair = None;
        // An unfinished job of the processor keeps its numbers.
        let is_kept = first.info().is_cpu() && unfinished == Some(first.info().class);
        if is_free && compute.pairs && compute.threads.is_none() && !is_kept {
            let cores = available_parallelism().map_or(1, NonZeroUsize::get);
            pair = beside_gpu(&candidates, &first, compute.precision, tuning, cores)?;
        }
        if let Some((gpu, _)) = &pair {
            first = Arc::clone(gpu);
        }
        let beside = pair.map(|(_, beside)| beside);
        let mut count = lanes.len();
        let info = first.info().clone();
        let mut backends = in_order(&mut lanes, &first)?;
        if beside.is_some() {
            let processor = backends.iter().position(is_exact_processor);
            let processor = backends.remove(processor.unwrap_or(backends.len() - 1));
            backends.insert(count, processor);
            count += 1;
        }
        let devices = Arc::new(DevicePool::new(backends, count, compute.gpu_share));
        let gpus = count - usize::from(beside.is_some());
        let least = NonZeroUsize::new(gpus).unwrap_or(NonZeroUsize::MIN);
        let threads = compute.threads.or_else(|| default_threads(&info, gpus));
        let threads = threads.unwrap_or(least).max(least);
        let measured = tuning.games(&devices.hardware(), info.precision.name(), threads);
        let games = match (compute.games, measured) {
            (Some(games), _) => games.get().div_ceil(threads.get()),
            (None, Some(games)) => games.get(),
            (None, None) if info.is_cpu() => CPU_GAMES,
            (None, None) => GPU_GAMES,
        };
        let games = NonZeroUsize::new(games).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            devices,
            threads,
            games,
            beside,
            memory: free_memory().unwrap_or(ASSUMED_MEMORY),
        })
    }

    /// Notes that the games of a thread suit this machine.
    pub fn tune(&self, tuning: &mut Tuning) {
        let precision = self.devices.job_info().precision;
        tuning.note(
            &self.devices.hardware(),
            precision.name(),
            self.threads,
            self.games,
        );
    }

    /// Most games of a thread that are worth trying: no more than have room in memory.
    pub fn most_games(&self) -> usize {
        let [cpu, gpu] = TRIED_GAMES;
        let tried = if self.devices.job_info().is_cpu() {
            cpu
        } else {
            gpu
        };
        let fitting = self.thread_bytes() / game_bytes(1, TRIED_VISITS);
        tried.min(usize::try_from(fitting).unwrap_or(tried).max(1))
    }

    /// Memory for the games of a thread, in bytes: its share of half of what was free.
    pub fn thread_bytes(&self) -> u64 {
        self.memory / 2 / self.all_threads() as u64
    }

    /// Threads that play, on all devices.
    pub fn all_threads(&self) -> usize {
        self.threads.get() + self.beside.map_or(0, |beside| beside.threads.get())
    }

    /// Games at once, all threads together.
    pub fn all_games(&self) -> usize {
        let games = self.places().map(|place| place.games.get());
        games.fold(0, usize::saturating_add)
    }

    /// The threads, each with its device and its games.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let last = self.devices.lanes() - usize::from(self.beside.is_some());
        let games = self.games;
        let threads = (0..self.threads.get()).map(move |number| Place {
            lane: number % last,
            games,
        });
        let beside = self.beside.into_iter().flat_map(move |beside| {
            let place = Place {
                lane: last,
                games: beside.games(games),
            };
            std::iter::repeat_n(place, beside.threads.get())
        });
        threads.chain(beside)
    }
}

/// What one thread plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose device it begins with.
    pub lane: usize,
    /// Games at once.
    pub games: NonZeroUsize,
}

/// The most memory that a game takes, in bytes, for searches with this number of trees and of visits.
pub const fn game_bytes(trees: usize, visits: u32) -> u64 {
    BYTES_PER_GAME + trees as u64 * visits as u64 * BYTES_PER_VISIT
}

fn default_threads(info: &BackendInfo, devices: usize) -> Option<NonZeroUsize> {
    if info.is_cpu() {
        available_parallelism().ok()
    } else {
        NonZeroUsize::new(GPU_THREADS * devices)
    }
}

/// The backends of the first device in whose precision all of them compute.
fn candidates(lanes: &[Vec<Arc<dyn Backend>>]) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let has = |lane: &Vec<Arc<dyn Backend>>, precision| {
        lane.iter().any(|one| one.info().precision == precision)
    };
    let first = lanes.first().into_iter().flatten();
    let shared: Vec<Arc<dyn Backend>> = first
        .filter(|one| lanes.iter().all(|lane| has(lane, one.info().precision)))
        .map(Arc::clone)
        .collect();
    if shared.is_empty() {
        let none = "the devices have no precision in common".to_owned();
        return Err(BackendError::Failed(none));
    }
    Ok(shared)
}

/// The backends of a pool: for each lane the one that computes in the precision of `first`, then those that can take the place
/// of one that fails, the processor at last. Nothing is computed on a GPU where the processor was chosen.
fn in_order(
    lanes: &mut [Vec<Arc<dyn Backend>>],
    first: &Arc<dyn Backend>,
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let chosen = first.info();
    let mut backends = Vec::new();
    for lane in lanes.iter_mut() {
        let is_first = |one: &Arc<dyn Backend>| Arc::ptr_eq(one, first);
        let is_alike = |one: &Arc<dyn Backend>| one.info().precision == chosen.precision;
        let place = lane.iter().position(is_first);
        if let Some(place) = place.or_else(|| lane.iter().position(is_alike)) {
            backends.push(lane.remove(place));
        }
    }
    let rest = lanes.iter_mut().flat_map(std::mem::take);
    backends.extend(rest.filter(|one| {
        let info = one.info();
        let is_exact = info.precision == Precision::F32 || info.precision == chosen.precision;
        is_exact && (info.is_cpu() || !chosen.is_cpu())
    }));
    if !backends.iter().any(is_exact_processor) {
        backends.push(Arc::new(CpuBackend::new(Precision::F32)?));
    }
    Ok(backends)
}

fn is_exact_processor(backend: &Arc<dyn Backend>) -> bool {
    backend.info().is_cpu() && backend.info().precision == Precision::F32
}

/// A GPU, and how the processor plays beside it.
type GpuBeside = (Arc<dyn Backend>, Beside);

/// The GPU beside which the processor gains, if there is one: the backend that was chosen, or else the fastest of the GPUs.
/// That is measured once, and remembered.
fn beside_gpu(
    candidates: &[Arc<dyn Backend>],
    chosen: &Arc<dyn Backend>,
    choice: PrecisionChoice,
    tuning: &mut Tuning,
    cores: usize,
) -> Result<Option<GpuBeside>, BackendError> {
    let gpus = candidates.iter().filter(|one| !one.info().is_cpu());
    let gpus: Vec<Arc<dyn Backend>> = gpus.map(Arc::clone).collect();
    let processor = candidates.iter().find(|one| is_exact_processor(one));
    let Some(processor) = processor.filter(|_| !gpus.is_empty()) else {
        return Ok(None);
    };
    let is_gpu_faster = !chosen.info().is_cpu();
    if !is_gpu_faster && !is_exact_processor(chosen) {
        // Games of two kinds of rounding would be one job's.
        return Ok(None);
    }
    let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
    let key = timing_key(candidates, &spec);
    let known = tuning.pair(&key).and_then(|pair| {
        let same = |one: &&Arc<dyn Backend>| {
            let info = one.info();
            (&*info.device, info.precision.name()) == (&pair.gpu, &pair.gpu_precision)
        };
        let gpu = gpus.iter().find(same)?;
        let fits = !is_gpu_faster || Arc::ptr_eq(gpu, chosen);
        fits.then(|| (Arc::clone(gpu), pair.beside))
    });
    if let Some((gpu, beside)) = known.filter(|_| choice != PrecisionChoice::Measure) {
        return Ok(beside.map(|beside| (gpu, beside)));
    }
    tracing::info!(
        "measuring whether the processor gains beside a GPU; this takes some seconds at the first start"
    );
    let weights = Weights::random(spec, 0)?;
    let gpu = if is_gpu_faster {
        Arc::clone(chosen)
    } else {
        fastest(gpus, &weights)?
    };
    let beside = beside::measure(&gpu, processor, is_gpu_faster, cores, &weights)?;
    tuning.note_pair(MeasuredPair {
        key,
        gpu: gpu.info().device.clone(),
        gpu_precision: gpu.info().precision.name().to_owned(),
        beside,
    });
    Ok(beside.map(|beside| (gpu, beside)))
}

/// What the choice among some backends depends on.
fn timing_key(backends: &[Arc<dyn Backend>], timed: &NetworkSpec) -> PrecisionKey {
    PrecisionKey {
        processor: processor_model(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: names_of(backends),
        network: timed.shape(),
    }
}

/// The backend by which all networks are computed. Where there are several, the fastest is measured, and remembered.
fn choose(
    backends: Vec<Arc<dyn Backend>>,
    choice: PrecisionChoice,
    tuning: &mut Tuning,
    unfinished: Option<NumericClass>,
) -> Result<Arc<dyn Backend>, BackendError> {
    if let [only] = backends.as_slice() {
        return Ok(Arc::clone(only));
    }
    let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
    let key = timing_key(&backends, &spec);
    if choice != PrecisionChoice::Measure {
        let find = |is: &dyn Fn(&BackendInfo) -> bool| backends.iter().find(|one| is(one.info()));
        let begun = find(&|info| Some(info.class) == unfinished);
        let known = tuning.choice(&key);
        let is_known = |info: &BackendInfo| {
            let known = known.as_ref();
            known.is_some_and(|(device, numbers)| {
                (device, *numbers) == (&info.device, info.precision)
            })
        };
        if let Some(known) = begun.or_else(|| find(&is_known)) {
            return Ok(Arc::clone(known));
        }
    }
    let names = backends.iter().map(|one| {
        let info = one.info();
        format!("{} in {}", info.device, info.precision)
    });
    let names: Vec<_> = names.collect();
    tracing::info!(
        "measuring what computes fastest: {}; this takes some seconds at the first start",
        names.join(", ")
    );
    let backend = fastest(backends, &Weights::random(spec, 0)?)?;
    let info = backend.info();
    tuning.note_choice(key, &info.device, info.precision);
    Ok(backend)
}

/// The hardware of some backends, each once, joined by `+`.
fn names_of(backends: &[Arc<dyn Backend>]) -> String {
    let mut names = Vec::new();
    for backend in backends {
        let name = backend.hardware();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("+")
}

/// What Linux calls the processor; elsewhere its architecture.
pub fn processor_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let model = lines.find(|(name, _)| name.trim() == "model name");
    model
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim())
        .to_owned()
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

#[cfg(test)]
mod tests {
    use rookery_engine::LoadedNetwork;

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
            devices: Device::Local(DeviceSelection::One(DeviceChoice::Cpu)),
            threads: NonZeroUsize::new(3),
            games: NonZeroUsize::new(10),
            precision: PrecisionChoice::Only(Precision::F32),
            gpu_share: 1.0,
            pairs: true,
        };
        let (untuned, mut tuning) = (KernelTuner::default(), Tuning::default());
        let machine = Machine::open(&compute, &untuned, &mut tuning, None).unwrap();
        assert_eq!(machine.devices.job_info().class, NumericClass::CpuF32);
        assert_eq!((machine.games.get(), machine.all_games()), (4, 12));
        assert!((1..=512).contains(&machine.most_games()));
        let open = Compute {
            games: None,
            ..compute
        };
        assert_eq!(
            Machine::open(&open, &untuned, &mut tuning, None)
                .unwrap()
                .games
                .get(),
            CPU_GAMES
        );
        machine.tune(&mut tuning);
        let again = Machine::open(&open, &untuned, &mut tuning, None).unwrap();
        assert_eq!(again.games.get(), 4);
    }

    /// A backend that computes nothing.
    #[derive(Debug)]
    struct Named(BackendInfo);

    impl Backend for Named {
        fn info(&self) -> &BackendInfo {
            &self.0
        }

        fn load(&self, _: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
            Err(BackendError::Failed("nothing is computed".to_owned()))
        }
    }

    #[test]
    fn a_backend_is_chosen_once_and_an_unfinished_job_keeps_its_own() {
        let choose = |choice, tuning: &mut Tuning, unfinished| {
            let named = |device: &str, precision| -> Arc<dyn Backend> {
                Arc::new(Named(BackendInfo::new(device, precision).unwrap()))
            };
            let all = vec![
                named("cpu", Precision::F32),
                named("gpu:0", Precision::F32),
                named("cpu", Precision::Bf16),
                named("gpu:0", Precision::F16),
            ];
            let chosen = super::choose(all, choice, tuning, unfinished);
            chosen.map(|backend| backend.info().class)
        };
        let auto = PrecisionChoice::Auto;
        let mut tuning = Tuning::default();
        choose(auto, &mut tuning, None).expect_err("measured");
        let key = PrecisionKey {
            processor: processor_model(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: "cpu+gpu:0".to_owned(),
            network: "2x64".to_owned(),
        };
        // What is remembered wins over what a measurement would say.
        for (device, precision, class) in [
            ("gpu:0", Precision::F32, NumericClass::GpuF32),
            ("cpu", Precision::Bf16, NumericClass::CpuBf16),
        ] {
            tuning.note_choice(key.clone(), device, precision);
            assert_eq!(choose(auto, &mut tuning, None).unwrap(), class);
        }
        choose(PrecisionChoice::Measure, &mut tuning, None).expect_err("measured");
        // An unfinished job wins over that, but for one of another device.
        for (begun, expected) in [
            (NumericClass::CpuF32, NumericClass::CpuF32),
            (NumericClass::GpuF16, NumericClass::GpuF16),
            (NumericClass::CudaF16, NumericClass::CpuBf16),
        ] {
            let chosen = choose(auto, &mut tuning, Some(begun));
            assert_eq!(chosen.unwrap(), expected);
        }
    }

    #[test]
    fn a_gpu_and_the_processor_play_side_by_side_where_that_is_known_to_gain() {
        let named = |device: &str, precision| -> Arc<dyn Backend> {
            Arc::new(Named(BackendInfo::new(device, precision).unwrap()))
        };
        let all = [
            named("cpu", Precision::F32),
            named("gpu:0", Precision::F32),
            named("gpu:0", Precision::F16),
        ];
        let beside: Beside =
            serde_json::from_str("{\"threads\": 6, \"speeds\": [8000, 500]}").unwrap();
        let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
        let mut tuning = Tuning::default();
        let find = |chosen: usize, choice, tuning: &mut Tuning| {
            let found = beside_gpu(&all, &all[chosen], choice, tuning, 8);
            found.map(|found| found.map(|(gpu, beside)| (gpu.info().class, beside)))
        };
        let auto = PrecisionChoice::Auto;
        find(2, auto, &mut tuning).expect_err("measured");
        for (known, expected) in [
            (Some(beside), Some((NumericClass::GpuF16, beside))),
            (None, None),
        ] {
            tuning.note_pair(MeasuredPair {
                key: timing_key(&all, &spec),
                gpu: "gpu:0".to_owned(),
                gpu_precision: "f16".to_owned(),
                beside: known,
            });
            // Where the processor was chosen alone, too.
            for chosen in [2, 0] {
                assert_eq!(find(chosen, auto, &mut tuning).unwrap(), expected);
            }
            find(1, auto, &mut tuning).expect_err("other numbers are measured");
            find(2, PrecisionChoice::Measure, &mut tuning).expect_err("measured again");
        }
        // Without a GPU there is nothing to measure.
        let alone = beside_gpu(&all[..1], &all[0], auto, &mut tuning, 8);
        assert!(alone.unwrap().is_none());
    }

    #[test]
    fn threads_beside_a_gpu_have_the_last_device_and_games_by_their_speed() {
        let backends = ["gpu:0", "cpu"].map(|device| -> Arc<dyn Backend> {
            Arc::new(Named(BackendInfo::new(device, Precision::F32).unwrap()))
        });
        let machine = Machine {
            devices: Arc::new(DevicePool::new(backends.to_vec(), 2, 1.0)),
            threads: NonZeroUsize::new(2).unwrap(),
            games: NonZeroUsize::new(512).unwrap(),
            beside: serde_json::from_str("{\"threads\": 3, \"speeds\": [16000, 500]}").unwrap(),
            memory: 1 << 30,
        };
        let places: Vec<_> = machine
            .places()
            .map(|place| (place.lane, place.games.get()))
            .collect();
        assert_eq!(places, [(0, 512), (0, 512), (1, 16), (1, 16), (1, 16)]);
        assert_eq!((machine.all_threads(), machine.all_games()), (5, 1072));
        assert_eq!(machine.devices.names(), "gpu:0+cpu");
    }

    #[test]
    fn the_fastest_of_a_processor_is_found_and_remembered() {
        let backends =
            rookery_backends::open(DeviceChoice::Cpu, Precision::Auto, &KernelTuner::default())
                .unwrap();
        let several = backends.len() > 1;
        let mut tuning = Tuning::default();
        let measured = choose(backends, PrecisionChoice::Auto, &mut tuning, None).unwrap();
        assert_ne!(measured.info().precision, Precision::Auto);
        assert_eq!(tuning != Tuning::default(), several);
    }
}
