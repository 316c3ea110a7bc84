//! Which variant of the kernels is fastest for a GPU and a network's shape: measured at first use, and remembered.
//!
//! ```text
//! load: known in the file? --yes--> that variant
//!                         --no---> each variant: compared with the processor's numbers, then timed --> fastest --> file
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rookery_common::network::NetworkSpec;
use rookery_engine::{BackendError, Batch, Evaluations, Evaluator as _};
use serde::{Deserialize, Serialize};

use crate::adapter::GpuAdapter;
use crate::evaluator::GpuEvaluator;
use crate::kernel::Storage;
use crate::matrix_choice::MatrixChoice;
use crate::network::GpuNetwork;
use crate::variant::TowerPath;

/// When no further variant is tried. Tests try all of them, however slow the machine is.
const TUNING: Duration = if cfg!(test) {
    Duration::MAX
} else {
    Duration::from_secs(5)
};
/// How long a variant is timed, and how often it computes at least.
const TIMING: Duration = Duration::from_millis(80);
const FEWEST_RUNS: u32 = 3;
/// Most positions of the batch by which variants are timed.
const TIMED_POSITIONS: usize = 256;
/// Share of the time of the best so far that another variant may take to be preferred.
const CLEARLY_FASTER: f64 = 0.97;
/// The program that measured: kernels change with it.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Whether the kernels are tuned, and where the results are kept. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KernelTuner {
    results: Option<Arc<Results>>,
    /// Whether kernels with matrices are among those that are tuned.
    pub(crate) matrices: MatrixChoice,
}

#[derive(Debug)]
struct Results {
    path: PathBuf,
    /// Whether what the file says is measured again.
    anew: bool,
    tuned: Mutex<Vec<Tuned>>,
}

/// What a measurement depends on, and what it chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedKernels {
    adapter: String,
    driver: String,
    precision: String,
    network: NetworkSpec,
    /// Rows and columns of the matrices that kernels could use.
    #[serde(default)]
    matrix_tile: Option<u32>,
    chosen: TowerPath,
    /// How fast that was, with one batch at a time.
    evals_per_s: f64,
    /// Variants that were timed.
    tried: usize,
}

/// With whether this process measured it.
#[derive(Debug)]
struct Tuned {
    kernels: TunedKernels,
    is_fresh: bool,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct TuningFile {
    program: String,
    tuned: Vec<TunedKernels>,
}

impl KernelTuner {
    /// Tunes at the first use of a network's shape on a GPU, and remembers it in this file. A file that is damaged, or of
    /// another version of the program, is set aside. Programs that compute in a GPU's place are not tuned.
    pub fn remembered(path: PathBuf) -> Self {
        Self::with(path, false)
    }

    /// Tunes once more what is known, too, and remembers it in this file.
    pub fn anew(path: PathBuf) -> Self {
        Self::with(path, true)
    }

    fn with(path: PathBuf, anew: bool) -> Self {
        let tuned = read(&path).into_iter().map(|kernels| Tuned {
            kernels,
            is_fresh: false,
        });
        let results = Results {
            anew,
            tuned: Mutex::new(tuned.collect()),
            path,
        };
        Self {
            results: Some(Arc::new(results)),
            matrices: MatrixChoice::Auto,
        }
    }

    /// The same tuner for GPUs that may use matrices or not.
    pub fn with_matrices(&self, matrices: MatrixChoice) -> Self {
        Self {
            results: self.results.clone(),
            matrices,
        }
    }

    /// What is known of a GPU.
    pub fn known(&self, adapter: &GpuAdapter) -> Vec<TunedKernels> {
        let Some(results) = &self.results else {
            return Vec::new();
        };
        let tuned = results.tuned.lock();
        let kernels = tuned.iter().map(|one| &one.kernels);
        kernels
            .filter(|one| (&one.adapter, &one.driver) == (&adapter.name, &adapter.driver))
            .cloned()
            .collect()
    }

    /// The network in the fastest of some variants, the first of them where nothing is tuned. `load` makes and tries one.
    /// Networks are tuned one at a time, as they would slow each other.
    ///
    /// # Errors
    ///
    /// That of the first variant, if none computes the network.
    pub(crate) fn fastest(
        &self,
        adapter: &GpuAdapter,
        spec: &NetworkSpec,
        storage: Storage,
        variants: &[TowerPath],
        timed: &Batch,
        mut load: impl FnMut(TowerPath) -> Result<Arc<GpuNetwork>, BackendError>,
    ) -> Result<Arc<GpuNetwork>, BackendError> {
        let results = self.results.as_ref();
        let wanted = results.filter(|results| results.anew || !adapter.is_software);
        let Some(results) = wanted.filter(|_| variants.len() > 1) else {
            return load(variants[0]);
        };
        let have_matrices = variants
            .iter()
            .any(|path| matches!(path, TowerPath::Matrices(_)));
        let mut tuned = results.tuned.lock();
        let mut kernels = TunedKernels {
            adapter: adapter.name.clone(),
            driver: adapter.driver.clone(),
            precision: storage.precision().name().to_owned(),
            network: computed_part(spec),
            matrix_tile: self.matrices.tile(adapter).filter(|_| have_matrices),
            chosen: variants[0],
            evals_per_s: 0.0,
            tried: 0,
        };
        let known = tuned.iter().find(|one| one.kernels.is_alike(&kernels));
        if let Some(known) = known.filter(|one| one.is_fresh || !results.anew) {
            let chosen = known.kernels.chosen;
            if variants.contains(&chosen) {
                drop(tuned);
                return load(chosen);
            }
        }
        tracing::info!(
            "{adapter}: the kernels of a network of {} are tuned in {}, which takes some seconds once",
            spec.shape(),
            kernels.precision
        );
        let network = measure(variants, timed, &mut kernels, &mut load)?;
        tracing::info!("{adapter}: {kernels}");
        tuned.retain(|one| !one.kernels.is_alike(&kernels));
        tuned.push(Tuned {
            kernels,
            is_fresh: true,
        });
        if let Err(error) = write(&results.path, &tuned) {
            let path = results.path.display();
            tracing::warn!("what was tuned is not kept: {path} cannot be written: {error}");
        }
        Ok(network)
    }
}

/// Loads and times the variants one after the other. Gives the fastest, and notes it.
fn measure(
    variants: &[TowerPath],
    timed: &Batch,
    kernels: &mut TunedKernels,
    load: &mut impl FnMut(TowerPath) -> Result<Arc<GpuNetwork>, BackendError>,
) -> Result<Arc<GpuNetwork>, BackendError> {
    let begun = Instant::now();
    let mut best: Option<(Arc<GpuNetwork>, f64)> = None;
    let mut refused = None;
    for path in variants {
        if best.is_some() && begun.elapsed() > TUNING {
            break;
        }
        let time = load(*path).and_then(|network| {
            let seconds = seconds_a_position(&network, timed)?;
            Ok((network, seconds))
        });
        match time {
            Ok((network, seconds)) => {
                kernels.tried += 1;
                tracing::debug!("{path}: {:.0} evaluations/s", 1.0 / seconds);
                let limit = best
                    .as_ref()
                    .map_or(f64::MAX, |best| CLEARLY_FASTER * best.1);
                if seconds < limit {
                    (kernels.chosen, kernels.evals_per_s) = (*path, 1.0 / seconds);
                    best = Some((network, seconds));
                }
            }
            Err(error) => {
                tracing::debug!("{path} is not used: {error}");
                refused.get_or_insert(error);
            }
        }
    }
    let none = || BackendError::Failed("there are no kernels to choose from".to_owned());
    best.map(|(network, _)| network)
        .ok_or_else(|| refused.unwrap_or_else(none))
}

/// The shortest time of a batch by its positions. The batch is as large as the network's bound allows.
fn seconds_a_position(network: &Arc<GpuNetwork>, timed: &Batch) -> Result<f64, BackendError> {
    let bound = || network.bound.positions(Instant::now()).min(TIMED_POSITIONS);
    let mut batch = Batch::new(timed.input(), timed.policy());
    let mut evaluator = GpuEvaluator::new(Arc::clone(network));
    let mut answer = Evaluations::default();
    // The first call gets memory. A bound that was estimated too low rises.
    while batch.len() < bound() {
        (batch.len()..bound()).for_each(|place| batch.push_from(timed, place % timed.len()));
        evaluator.evaluate(&batch, &mut answer)?;
    }
    let positions = batch.len();
    let (begun, mut shortest, mut runs) = (Instant::now(), Duration::MAX, 0);
    while runs < FEWEST_RUNS || begun.elapsed() < TIMING {
        let start = Instant::now();
        evaluator.evaluate(&batch, &mut answer)?;
        shortest = shortest.min(start.elapsed());
        runs += 1;
    }
    Ok(shortest.as_secs_f64().max(1e-9) / positions as f64)
}

impl TunedKernels {
    /// Whether the other one answers the same question.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.adapter, &self.driver, &self.precision)
            == (&other.adapter, &other.driver, &other.precision)
            && (&self.network, self.matrix_tile) == (&other.network, other.matrix_tile)
    }
}

impl std::fmt::Display for TunedKernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a network of {} in {}: {}, {:.0} evaluations/s, the fastest of {}",
            self.network.shape(),
            self.precision,
            self.chosen,
            self.evals_per_s,
            self.tried
        )
    }
}

/// The network without what does not change its kernels.
fn computed_part(spec: &NetworkSpec) -> NetworkSpec {
    NetworkSpec {
        value_dropout: 0.0,
        auxiliary: Vec::new(),
        creator: String::new(),
        parent: None,
        training_step: 0,
        ..spec.clone()
    }
}

/// What a file says; nothing if there is none. One that cannot be used is renamed.
fn read(path: &Path) -> Vec<TunedKernels> {
    let Ok(text) = std::fs::read(path) else {
        return Vec::new();
    };
    let why = match serde_json::from_slice::<TuningFile>(&text) {
        Ok(file) if file.program == PROGRAM => return file.tuned,
        Ok(file) => format!("it is of version {}, this is {PROGRAM}", file.program),
        Err(error) => format!("it is damaged: {error}"),
    };
    let aside = path.with_extension("json.old");
    let outcome = match std::fs::rename(path, &aside) {
        Ok(()) => format!("it is {} now", aside.display()),
        Err(error) => format!("it cannot be renamed: {error}"),
    };
    tracing::warn!(
        "{} is set aside, and GPUs are tuned anew: {why}; {outcome}",
        path.display()
    );
    Vec::new()
}

fn write(path: &Path, tuned: &[Tuned]) -> std::io::Result<()> {
    let file = TuningFile {
        program: PROGRAM.to_owned(),
        tuned: tuned.iter().map(|one| one.kernels.clone()).collect(),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    rookery_common::files::write_whole(path, &serde_json::to_vec_pretty(&file)?)
}
