//! The devices that compute, and failover from one that fails to the next.
//!
//! ```text
//! lane of gpu:0:  gpu:0 in f16 -> gpu:0 in f32 -> gpu:1 in f16 -> … -> processor
//! lane of gpu:1:  gpu:1 in f16 -> gpu:1 in f32 -> gpu:0 in f16 -> … -> processor
//! ```
//!
//! Each thread that plays belongs to a lane. A lane begins with its own device and ends with the processor. A backend that
//! computes one network wrongly is passed over for that network. A lost device is opened anew once, and left the second
//! time. Failover never goes to less exact numbers, so that the numeric class of jobs in hand stays true.

mod duty_cycle;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_engine::{Backend, BackendError, BackendInfo, Precision};

use duty_cycle::DutyCycle;

/// The devices of this worker.
#[derive(Debug)]
pub struct DevicePool {
    /// The device of each lane, by name.
    lanes: Vec<String>,
    /// The numbers in which the lanes compute while nothing fails.
    precision: Precision,
    /// Of the devices that have to idle for a share of the time, by name.
    duty_cycles: HashMap<String, DutyCycle>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    backends: Vec<Arc<dyn Backend>>,
    /// Backends, by device and precision, that do not compute a network.
    refused: HashSet<(ContentHash, String, &'static str)>,
    /// Devices that were lost and opened anew.
    reopened: HashSet<String>,
}

impl State {
    fn refuses(&self, backend: &dyn Backend, network: ContentHash) -> bool {
        let info = backend.info();
        let key = (network, info.device.clone(), info.precision.name());
        self.refused.contains(&key)
    }
}

impl DevicePool {
    /// A pool whose lanes begin with the first `lanes` of `backends`, which have one precision. The others replace those that
    /// fail; one of another precision must be exact. GPUs compute for at most `gpu_share` of the time.
    pub fn new(backends: Vec<Arc<dyn Backend>>, lanes: usize, gpu_share: f64) -> Self {
        let device = |backend: &Arc<dyn Backend>| backend.info().device.clone();
        let resting = backends
            .iter()
            .filter(|one| gpu_share < 1.0 && !one.info().is_cpu());
        Self {
            lanes: backends.iter().take(lanes).map(device).collect(),
            precision: backends
                .first()
                .map_or(Precision::F32, |backend| backend.info().precision),
            duty_cycles: resting
                .map(|one| (device(one), DutyCycle::new(gpu_share)))
                .collect(),
            state: Mutex::new(State {
                backends,
                refused: HashSet::new(),
                reopened: HashSet::new(),
            }),
        }
    }

    /// A single device.
    pub fn single(backend: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self::new(vec![backend], 1, 1.0))
    }

    /// How many devices compute side by side.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// What a lane computes with, unless a network has to go elsewhere.
    pub fn backend(&self, lane: usize) -> Arc<dyn Backend> {
        Arc::clone(self.first(&self.state.lock(), lane, None))
    }

    /// What that is.
    pub fn info(&self, lane: usize) -> BackendInfo {
        self.backend(lane).info().clone()
    }

    /// What the least exact of the lanes computes with: the class of new jobs.
    pub fn job_info(&self) -> BackendInfo {
        let infos: Vec<BackendInfo> = (0..self.lanes()).map(|lane| self.info(lane)).collect();
        let inexact = infos.iter().find(|info| info.precision != Precision::F32);
        inexact.unwrap_or(&infos[0]).clone()
    }

    /// The devices of all lanes, joined by `+`.
    pub fn names(&self) -> String {
        self.joined(|backend| backend.info().device.clone())
    }

    /// The same with drivers: what measurements depend on.
    pub fn hardware(&self) -> String {
        self.joined(|backend| backend.hardware())
    }

    /// What the lanes' names stand for, where a device is more than its name: `gpu:0 is CARD (vulkan, driver …)`.
    pub fn explained_names(&self) -> Vec<String> {
        let backends = (0..self.lanes()).map(|lane| self.backend(lane));
        let explained = backends.filter_map(|backend| {
            let (device, hardware) = (&backend.info().device, backend.hardware());
            (*device != hardware).then(|| format!("{device} is {hardware}"))
        });
        explained.collect()
    }

    fn joined(&self, name: impl Fn(&dyn Backend) -> String) -> String {
        let mut names: Vec<String> = (0..self.lanes())
            .map(|lane| name(&*self.backend(lane)))
            .collect();
        names.dedup();
        names.join("+")
    }

    /// Does something about a network with the first backend of a lane that can; gives that backend too. Failures other than
    /// of memory go to [`report_failure`](Self::report_failure).
    ///
    /// # Errors
    ///
    /// [`BackendError::OutOfMemory`], and the last backend's failure.
    pub fn try_each<T>(
        &self,
        lane: usize,
        network: ContentHash,
        mut attempt: impl FnMut(&dyn Backend) -> Result<T, BackendError>,
    ) -> Result<(Arc<dyn Backend>, T), BackendError> {
        loop {
            let backend = Arc::clone(self.first(&self.state.lock(), lane, Some(network)));
            match attempt(&*backend) {
                Ok(done) => return Ok((backend, done)),
                Err(error @ BackendError::OutOfMemory(_)) => return Err(error),
                Err(error) => self.report_failure(lane, &backend, network, error)?,
            }
        }
    }

    /// Decides what computes a network from now on whose backend has failed. If another thread has reported it before,
    /// nothing is left to do.
    ///
    /// # Errors
    ///
    /// The failure, where nothing can take the backend's place.
    pub fn report_failure(
        &self,
        lane: usize,
        backend: &Arc<dyn Backend>,
        network: ContentHash,
        error: BackendError,
    ) -> Result<(), BackendError> {
        let mut state = self.state.lock();
        let is_same = |one: &Arc<dyn Backend>| Arc::ptr_eq(one, backend);
        if !state.backends.iter().any(is_same) {
            return Ok(());
        }
        if state.refuses(&**backend, network) {
            let another = state.candidates(Some(network)).next();
            return another.map(|_| ()).ok_or(error);
        }
        let BackendInfo {
            device, precision, ..
        } = backend.info();
        if !backend.is_lost() {
            if state.candidates(Some(network)).count() < 2 {
                return Err(error);
            }
            let key = (network, device.clone(), precision.name());
            state.refused.insert(key);
            let next = self.first(&state, lane, Some(network)).info();
            tracing::warn!(
                "network {} is not computed on {device} in {precision}: {error}; it is computed on {} in {}",
                network.short(),
                next.device,
                next.precision
            );
            return Ok(());
        }
        if state.reopened.insert(device.clone()) {
            match state.reopen(device) {
                Ok(()) => {
                    tracing::warn!(
                        "RK-0307: {device} was lost: {error}; it is opened anew, and games go on"
                    );
                    return Ok(());
                }
                Err(why) => tracing::warn!("{device} cannot be opened anew: {why}"),
            }
        }
        let is_other = |one: &Arc<dyn Backend>| one.info().device != *device;
        if !state.candidates(Some(network)).any(is_other) {
            return Err(error);
        }
        state.backends.retain(is_other);
        let next = self.first(&state, lane, Some(network)).info();
        tracing::error!(
            "RK-0307: {device} was lost: {error}; games go on on {} in {}, and {device} is left until the worker is started again",
            next.device,
            next.precision
        );
        Ok(())
    }

    /// Lets a backend compute. A GPU that has to be idle for a share of the time is so before its next batch, and
    /// threads take turns there, of whichever lane they are.
    pub fn take_turn<T>(&self, backend: &dyn Backend, compute: impl FnOnce() -> T) -> T {
        match self.duty_cycles.get(&backend.info().device) {
            Some(duty_cycle) => duty_cycle.compute(compute),
            None => compute(),
        }
    }

    /// Lets threads go on that wait until a GPU has idled, until the guard is dropped.
    #[must_use = "devices idle again when this is dropped"]
    pub fn skip_rests(self: &Arc<Self>) -> SkippedRests {
        self.duty_cycles.values().for_each(DutyCycle::skip_rests);
        SkippedRests(Arc::clone(self))
    }

    /// Gives back, for other programs, the memory that the devices keep for later.
    pub fn release_memory(&self) {
        let backends = self.state.lock().backends.clone();
        backends.iter().for_each(|backend| backend.release_memory());
    }

    /// The backend that a lane computes a network with.
    fn first<'a>(
        &self,
        state: &'a State,
        lane: usize,
        network: Option<ContentHash>,
    ) -> &'a Arc<dyn Backend> {
        let rank = |backend: &&Arc<dyn Backend>| {
            let info = backend.info();
            let is_own = info.device == self.lanes[lane];
            (!is_own, info.is_cpu(), info.precision != self.precision)
        };
        let best = state.candidates(network).min_by_key(rank);
        // One that refuses the network where all do: that fails, and so do the network's games.
        best.unwrap_or(&state.backends[0])
    }
}

impl State {
    /// What computes a network, if one is named.
    fn candidates(&self, network: Option<ContentHash>) -> impl Iterator<Item = &Arc<dyn Backend>> {
        let computes = move |backend: &&Arc<dyn Backend>| {
            network.is_none_or(|network| !self.refuses(&***backend, network))
        };
        self.backends.iter().filter(computes)
    }

    /// Opens a device anew, in all of its precisions.
    fn reopen(&mut self, device: &str) -> Result<(), BackendError> {
        let again = self.backends.iter().map(|backend| {
            if backend.info().device == device {
                backend.reopen()
            } else {
                Ok(Arc::clone(backend))
            }
        });
        self.backends = again.collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// Devices that do not idle until this is dropped, so that threads soon end the batches that they are at.
#[derive(Debug)]
pub struct SkippedRests(Arc<DevicePool>);

impl Drop for SkippedRests {
    fn drop(&mut self) {
        let duty_cycles = self.0.duty_cycles.values();
        duty_cycles.for_each(DutyCycle::rest_again);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rookery_engine::LoadedNetwork;
    use rookery_model::Weights;

    use super::*;

    /// A device that loads nothing, and may be lost for good.
    #[derive(Debug)]
    struct Broken {
        info: BackendInfo,
        is_lost: AtomicBool,
    }

    impl Broken {
        fn new(device: &str) -> Arc<Self> {
            Arc::new(Self {
                info: BackendInfo::new(device, Precision::F32).unwrap(),
                is_lost: AtomicBool::new(false),
            })
        }
    }

    impl Backend for Broken {
        fn info(&self) -> &BackendInfo {
            &self.info
        }

        fn hardware(&self) -> String {
            match &*self.info.device {
                "cpu" => "cpu".to_owned(),
                gpu => format!("the card of {gpu}"),
            }
        }

        fn load(&self, _: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
            Err(failure())
        }

        fn is_lost(&self) -> bool {
            self.is_lost.load(Ordering::SeqCst)
        }

        fn reopen(&self) -> Result<Arc<dyn Backend>, BackendError> {
            Err(failure())
        }
    }

    fn failure() -> BackendError {
        BackendError::Failed("a fault".to_owned())
    }

    #[test]
    fn cards_are_named_and_the_processor_is_its_name() {
        let backends =
            ["gpu:0", "gpu:1", "cpu"].map(|name| -> Arc<dyn Backend> { Broken::new(name) });
        let pool = DevicePool::new(backends.to_vec(), 3, 1.0);
        assert_eq!(
            pool.explained_names(),
            ["gpu:0 is the card of gpu:0", "gpu:1 is the card of gpu:1"]
        );
    }

    #[test]
    fn a_network_that_only_a_lost_device_could_compute_fails() {
        let (gpu, cpu) = (Broken::new("gpu:0"), Broken::new("cpu"));
        let backends: Vec<Arc<dyn Backend>> = vec![Arc::clone(&gpu) as _, Arc::clone(&cpu) as _];
        let pool = DevicePool::new(backends.clone(), 2, 1.0);
        let [first, second] = [1, 2].map(|byte| ContentHash::of(&[byte]));
        let report = |lane, backend: usize, network| {
            pool.report_failure(lane, &backends[backend], network, failure())
        };
        // The processor cannot compute the first network; the card can, until it is lost with another.
        report(1, 1, first).unwrap();
        gpu.is_lost.store(true, Ordering::SeqCst);
        report(0, 0, second).unwrap();
        assert_eq!(pool.names(), "cpu");
        let tried = pool.try_each(0, first, |_| Err::<(), _>(failure()));
        assert!(tried.is_err(), "nothing computes it");
        let tried = pool.try_each(0, second, |_| Ok(()));
        assert!(tried.is_ok(), "the processor computes others");
    }

    #[test]
    fn the_last_device_of_a_network_is_not_left_for_one_that_refuses_it() {
        let (gpu, cpu) = (Broken::new("gpu:0"), Broken::new("cpu"));
        let backends: Vec<Arc<dyn Backend>> = vec![Arc::clone(&gpu) as _, Arc::clone(&cpu) as _];
        let pool = DevicePool::new(backends.clone(), 2, 1.0);
        let network = ContentHash::of(&[1]);
        pool.report_failure(1, &backends[1], network, failure())
            .unwrap();
        gpu.is_lost.store(true, Ordering::SeqCst);
        let lost = pool.report_failure(0, &backends[0], network, failure());
        assert!(lost.is_err(), "nothing is left that computes it");
    }

    #[test]
    fn lanes_whose_device_is_lost_share_the_turns_of_the_next_one() {
        let gpus = ["gpu:0", "gpu:1"].map(Broken::new);
        let backends: Vec<Arc<dyn Backend>> = gpus.iter().map(|gpu| Arc::clone(gpu) as _).collect();
        let pool = DevicePool::new(backends.clone(), 2, 0.5);
        // Nothing idles meanwhile, as a test does not wait.
        let pool = Arc::new(pool);
        let _skipped = pool.skip_rests();
        let is_free = |lane| {
            let duty_cycle = &pool.duty_cycles[&pool.info(lane).device];
            !duty_cycle.is_busy()
        };
        let turn = |lane, other| pool.take_turn(&*pool.backend(lane), || is_free(other));
        assert!(turn(0, 1), "they are two devices");
        let cpu: Arc<dyn Backend> = Broken::new("cpu");
        let free = pool.take_turn(&*cpu, || is_free(0));
        assert!(free, "the processor computes what a GPU refuses");
        gpus[1].is_lost.store(true, Ordering::SeqCst);
        let network = ContentHash::of(&[1]);
        pool.report_failure(1, &backends[1], network, failure())
            .unwrap();
        assert!(!turn(0, 1), "they are one device");
        assert!(!turn(1, 0));
    }
}
