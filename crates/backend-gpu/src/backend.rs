//! GPUs behind the engine's [`Backend`], and the trial of every network that is loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_engine::dummy::random_batch;
use rookery_engine::{
    Backend, BackendError, BackendInfo, Batch, Evaluations, Evaluator as _, LoadedNetwork,
    Precision,
};
use rookery_model::Weights;

use crate::adapter::GpuAdapter;
use crate::evaluator::GpuEvaluator;
use crate::gpu::{Checks, Gpu};
use crate::kernel::Storage;
use crate::layers::Planner;
use crate::matrix_choice::MatrixChoice;
use crate::network::GpuNetwork;
use crate::submission_bound::{FEWEST_POSITIONS, LONGEST, MOST_POSITIONS};
use crate::tuning::KernelTuner;
use crate::variant::TowerPath;

/// Positions by which a network is tried.
const TRIED_POSITIONS: usize = 64;
/// Seed of the games that they are from.
const TRIED_SEED: u64 = 1;
/// How often a batch is timed: other threads' submissions may come before it.
const TIMED_RUNS: usize = 3;

/// A GPU, computing in one precision.
#[derive(Debug)]
pub struct GpuBackend {
    gpu: Arc<Gpu>,
    info: BackendInfo,
    storage: Storage,
    /// Whether a network that 16 bits cannot hold is computed in 32.
    widens: bool,
    tuner: KernelTuner,
}

impl GpuBackend {
    /// Opens the GPU of this number, counted as [`adapters`](crate::adapters) does, with the kernels that the tuner finds
    /// fastest. [`Precision::Auto`] is `f16` where the GPU stores 16 bits, with `f32` for networks that are too large for
    /// it, else `f32`. Sums have 32 bits in both.
    ///
    /// # Errors
    ///
    /// [`BackendError::Failed`] if there is no such GPU, it cannot be opened, or it lacks the precision.
    pub fn new(
        number: usize,
        precision: Precision,
        tuner: KernelTuner,
    ) -> Result<Self, BackendError> {
        let gpu = Gpu::open(number, Checks::None, tuner.matrices)?;
        Self::with_gpu(gpu, precision, tuner)
    }

    /// The same GPU in another precision. Both share its queue and its compiled kernels.
    ///
    /// # Errors
    ///
    /// [`BackendError::Failed`] if the GPU lacks the precision.
    pub fn in_precision(&self, precision: Precision) -> Result<Self, BackendError> {
        Self::with_gpu(Arc::clone(&self.gpu), precision, self.tuner.clone())
    }

    pub(crate) fn with_gpu(
        gpu: Arc<Gpu>,
        precision: Precision,
        tuner: KernelTuner,
    ) -> Result<Self, BackendError> {
        let has_f16 = gpu.adapter.has_f16;
        let storage = match precision {
            Precision::F32 => Storage::F32,
            Precision::Auto if !has_f16 => Storage::F32,
            Precision::Auto | Precision::F16 if has_f16 => Storage::F16,
            Precision::Auto | Precision::F16 | Precision::Bf16 => {
                return Err(BackendError::Failed(format!(
                    "RK-0303: precision {precision} cannot be used: {} has none of it",
                    gpu.adapter
                )));
            }
        };
        let device = format!("gpu:{}", gpu.adapter.number);
        Ok(Self {
            info: BackendInfo::new(device, storage.precision())?,
            storage,
            widens: precision == Precision::Auto,
            tuner,
            gpu,
        })
    }

    /// Which GPU it is.
    pub fn adapter(&self) -> &GpuAdapter {
        &self.gpu.adapter
    }

    /// Why `--gpu-matrices on` has no effect here, if it was asked for and has none.
    pub fn matrix_obstacle(&self) -> Option<&'static str> {
        let choice = self.tuner.matrices;
        choice.obstacle(&self.gpu.adapter, self.storage)
    }

    /// The network by each kind of kernels that the GPU is large enough for and whose [name](LoadedNetwork::kernels) is
    /// wanted, in the backend's precision, tried but not timed.
    ///
    /// # Errors
    ///
    /// [`BackendError`] of the first kind that does not compute the network.
    pub fn load_variants(
        &self,
        weights: &Weights,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Arc<GpuNetwork>>, BackendError> {
        let mut variants = Planner::new(&self.gpu, weights, self.storage)?.variants();
        variants.retain(|path| wanted(&path.to_string()));
        let trial = Trial::new(weights)?;
        let load = |path: &TowerPath| trial.load(&self.gpu, weights, self.storage, *path);
        variants.iter().map(load).collect()
    }

    fn load_stored(
        &self,
        weights: &Weights,
        storage: Storage,
    ) -> Result<Arc<GpuNetwork>, BackendError> {
        let gpu = &self.gpu;
        let variants = Planner::new(gpu, weights, storage)?.variants();
        let trial = Trial::new(weights)?;
        let load = |path: TowerPath| trial.load(gpu, weights, storage, path);
        let (spec, timed) = (weights.spec(), &trial.batch);
        self.tuner
            .fastest(&gpu.adapter, spec, storage, &variants, timed, load)
    }
}

impl Backend for GpuBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    /// With whether kernels may use matrices, where the user has decided otherwise than the program would.
    fn hardware(&self) -> String {
        let adapter = &self.gpu.adapter;
        let usual = MatrixChoice::Auto.tile(adapter);
        match self.tuner.matrices.tile(adapter) {
            tile if tile == usual => adapter.to_string(),
            Some(_) => format!("{adapter} with matrices"),
            None => format!("{adapter} without matrices"),
        }
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        match self.load_stored(weights, self.storage) {
            Err(BackendError::Failed(why)) if self.widens && self.storage == Storage::F16 => {
                tracing::warn!("{why}; it is computed in f32");
                Ok(self.load_stored(weights, Storage::F32)?)
            }
            // Whoever chooses among devices goes on with another.
            loaded => Ok(loaded.inspect_err(|error| tracing::warn!("{error}"))?),
        }
    }

    fn is_lost(&self) -> bool {
        self.gpu.fault().is_some()
    }

    /// Numbers of GPUs may have changed with the loss.
    fn reopen(&self) -> Result<Arc<dyn Backend>, BackendError> {
        let lost = &self.gpu.adapter;
        let gpu = Gpu::open(lost.number, self.gpu.checks, self.tuner.matrices)?;
        if gpu.adapter != *lost {
            let (device, found) = (&self.info.device, &gpu.adapter);
            return Err(BackendError::Failed(format!(
                "{device} is {found} now, and no longer {lost}"
            )));
        }
        let precision = if self.widens {
            Precision::Auto
        } else {
            self.info.precision
        };
        Ok(Arc::new(Self::with_gpu(
            gpu,
            precision,
            self.tuner.clone(),
        )?))
    }

    /// Memory of what was dropped goes back once the device has been asked what it has finished.
    fn release_memory(&self) {
        if let Err(error) = self.gpu.device.poll(wgpu::PollType::Poll) {
            tracing::debug!("{}: {error}", self.gpu.adapter);
        }
    }
}

/// Positions with what the processor makes of them in 32 bits.
pub(crate) struct Trial {
    batch: Batch,
    expected: Evaluations,
}

impl Trial {
    pub(crate) fn new(weights: &Weights) -> Result<Self, BackendError> {
        let spec = weights.spec();
        let batch = random_batch(
            spec.input,
            spec.policy.encoding,
            TRIED_POSITIONS,
            TRIED_SEED,
        );
        let mut expected = Evaluations::default();
        CpuEvaluator::new(Arc::new(CpuNetwork::new(weights)?)).evaluate(&batch, &mut expected)?;
        Ok(Self { batch, expected })
    }

    /// Brings the network to the GPU and [checks](Self::check) it.
    fn load(
        &self,
        gpu: &Arc<Gpu>,
        weights: &Weights,
        storage: Storage,
        path: TowerPath,
    ) -> Result<Arc<GpuNetwork>, BackendError> {
        let network = Arc::new(GpuNetwork::new(Arc::clone(gpu), weights, storage, path)?);
        self.check(&network)?;
        Ok(network)
    }

    /// Compares the network's numbers with the expected ones, and bounds its submissions by their time.
    pub(crate) fn check(&self, network: &Arc<GpuNetwork>) -> Result<(), BackendError> {
        let mut evaluator = GpuEvaluator::new(Arc::clone(network));
        let mut found = Evaluations::default();
        // In small parts: its speed is not known yet.
        network.bound.set_by_time(FEWEST_POSITIONS);
        evaluator.evaluate(&self.batch, &mut found)?;
        compare(network, &found, &self.expected)?;
        let positions = self.positions_within(LONGEST, network)?;
        network.bound.set_by_time(positions);
        Ok(())
    }

    /// Positions of a submission that takes this long, by the time of the largest batch that is no longer, as few positions
    /// leave most of a large GPU idle. The positions are those of the trial again and again, and are compared again.
    pub(crate) fn positions_within(
        &self,
        longest: Duration,
        network: &Arc<GpuNetwork>,
    ) -> Result<usize, BackendError> {
        let mut each = Duration::MAX;
        let sizes = std::iter::successors(Some(FEWEST_POSITIONS), |size| Some(4 * size));
        for positions in sizes.take_while(|size| *size <= MOST_POSITIONS) {
            if each.saturating_mul(positions as u32) > longest && each < Duration::MAX {
                break;
            }
            network.bound.set_by_time(positions);
            let (part, expected) = self.repeated(positions);
            let mut evaluator = GpuEvaluator::new(Arc::clone(network));
            let mut answer = Evaluations::default();
            // The first call gets memory.
            evaluator.evaluate(&part, &mut answer)?;
            compare(network, &answer, &expected)?;
            let mut shortest = Duration::MAX;
            for _ in 0..TIMED_RUNS {
                let begun = Instant::now();
                evaluator.evaluate(&part, &mut answer)?;
                shortest = shortest.min(begun.elapsed());
            }
            each = shortest / positions as u32;
        }
        let count = longest.as_nanos() / each.as_nanos().max(1);
        Ok((count as usize).max(FEWEST_POSITIONS))
    }

    /// This many positions, those of the trial again and again, with what is expected of them.
    pub(crate) fn repeated(&self, positions: usize) -> (Batch, Evaluations) {
        let mut batch = Batch::new(self.batch.input(), self.batch.policy());
        (0..positions).for_each(|index| batch.push_from(&self.batch, index % self.batch.len()));
        let Evaluations { logits, values } = &self.expected;
        let logits = logits.iter().cycle().take(batch.moves().len());
        let values = values.iter().cycle().take(positions);
        let expected = Evaluations {
            logits: logits.copied().collect(),
            values: values.copied().collect(),
        };
        (batch, expected)
    }
}

/// Refuses what is further from the expected than rounding explains.
fn compare(
    network: &GpuNetwork,
    found: &Evaluations,
    expected: &Evaluations,
) -> Result<(), BackendError> {
    let tolerance = match network.storage {
        Storage::F32 => 1e-3,
        Storage::F16 => 1e-2,
    };
    let apart = found.largest_difference(expected);
    if apart <= tolerance {
        return Ok(());
    }
    Err(BackendError::Failed(format!(
        "RK-0317: {} computes a network of {} wrongly in {}: {apart:.2e} from the processor's results, where \
         {tolerance} is allowed; a newer driver may help",
        network.gpu.adapter,
        network.spec().shape(),
        network.precision(),
    )))
}
