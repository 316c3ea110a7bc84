//! What this machine computes with: the backend, and how many threads and games suit it.

mod choice;
mod memory;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use rookery_backend_gpu::KernelTuner;
use rookery_backends::{DeviceSelection, NamedDevice};
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{BackendInfo, DeviceChoice, Precision};

use choice::{Preferences, beside_gpu, candidates, choose, in_order, is_exact_processor};
use memory::free_memory;

use crate::beside::Beside;
use crate::config::{Compute, PrecisionChoice};
use crate::device_pool::DevicePool;
use crate::tuning::Tuning;

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
        let (devices, beside) = open_devices(compute, kernels, tuning, unfinished)?;
        let info = devices.info(0);
        let gpus = devices.lanes() - usize::from(beside.is_some());
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
            devices: Arc::new(devices),
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

/// Opens the devices, chooses what they compute in, and whether the processor plays beside a GPU.
fn open_devices(
    compute: &Compute,
    kernels: &KernelTuner,
    tuning: &mut Tuning,
    unfinished: Option<NumericClass>,
) -> anyhow::Result<(DevicePool, Option<Beside>)> {
    let asked = match compute.precision {
        PrecisionChoice::Only(precision) => precision,
        PrecisionChoice::Auto | PrecisionChoice::Measure => Precision::Auto,
    };
    let kernels = kernels.with_matrices(compute.gpu_matrices);
    let mut lanes = compute.devices.open_all(asked, &kernels)?;
    let candidates = candidates(&lanes)?;
    let preferences = Preferences {
        precision: compute.precision,
        gpu_share: compute.gpu_share,
    };
    let mut first = choose(candidates.clone(), preferences, tuning, unfinished)?;
    let is_free = matches!(
        compute.devices,
        NamedDevice::Local(DeviceSelection::One(DeviceChoice::Auto))
    );
    let mut pair = None;
    // An unfinished job of the processor keeps its numbers.
    let is_kept = first.info().is_cpu() && unfinished == Some(first.info().class);
    if is_free && compute.pairs && compute.threads.is_none() && !is_kept {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        pair = beside_gpu(&candidates, &first, preferences, tuning, cores);
    }
    if let Some((gpu, _)) = &pair {
        first = Arc::clone(gpu);
    }
    let beside = pair.map(|(_, beside)| beside);
    let mut count = lanes.len();
    let mut backends = in_order(&mut lanes, &first)?;
    if beside.is_some() {
        let processor = backends.iter().position(is_exact_processor);
        let processor = backends.remove(processor.unwrap_or(backends.len() - 1));
        backends.insert(count, processor);
        count += 1;
    }
    Ok((DevicePool::new(backends, count, compute.gpu_share), beside))
}

fn default_threads(info: &BackendInfo, devices: usize) -> Option<NonZeroUsize> {
    if info.is_cpu() {
        available_parallelism().ok()
    } else {
        NonZeroUsize::new(GPU_THREADS * devices)
    }
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

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend as NumericClass;
    use rookery_engine::Backend;

    use super::choice::tests::Named;
    use super::*;
    use rookery_backend_gpu::MatrixChoice;

    #[test]
    fn the_processor_is_always_there() {
        let compute = Compute {
            devices: NamedDevice::Local(DeviceSelection::One(DeviceChoice::Cpu)),
            threads: NonZeroUsize::new(3),
            games: NonZeroUsize::new(10),
            precision: PrecisionChoice::Only(Precision::F32),
            gpu_share: 1.0,
            gpu_matrices: MatrixChoice::Auto,
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
}
