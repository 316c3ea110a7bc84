//! Networks as the engine opens them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rookery_backend_gpu::KernelTuner;
use rookery_backends::NamedDevice;
use rookery_common::chess::GameHistory;
use rookery_engine::{
    Batch, DeviceChoice, Evaluations, Evaluator, EvaluatorError, ParallelEvaluator, fastest,
};
use shakmaty::Position as _;

use super::options::NetworkChoice;
use super::pace::Pace;
use crate::cli::ServerArgs;
use crate::config::ConfigFile;
use crate::device_pool::DevicePool;
use crate::network_argument;
use crate::networks::Trial;

/// Positions of a batch on a processor for each of its threads: more gain little there.
const CPU_MINIBATCH: usize = 32;
/// Positions of a batch on a GPU.
const GPU_MINIBATCH: usize = 256;
/// Batches longer than this are not tried in advance.
const LONG_BATCH: Duration = Duration::from_millis(60);

/// Where evaluators come from.
pub trait Networks: Send {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// What people have to know, if it cannot be opened.
    fn open(&mut self, choice: &NetworkChoice) -> anyhow::Result<Opened>;

    /// Whether opening the choice, which was opened last, would give another network than it gave then.
    ///
    /// # Errors
    ///
    /// What people have to know, if that cannot be found out.
    fn is_outdated(&mut self, choice: &NetworkChoice) -> anyhow::Result<bool>;
}

/// An evaluator ready to work.
pub struct Opened {
    /// The evaluator.
    pub evaluator: Box<dyn Evaluator>,
    /// What it is, for people; told once.
    pub about: Option<String>,
    /// Most positions of one batch, unless the user says otherwise.
    pub minibatch: usize,
}

impl Opened {
    /// Evaluates batches of growing size, so that the first ones of a game are not the slow ones
    /// in which the device prepares, and learns how long they take.
    pub(super) fn warm_up(&mut self) -> Result<Pace, EvaluatorError> {
        let (game, mut pace) = (GameHistory::default(), Pace::default());
        let moves = game.position().legal_moves();
        let mut batch = Batch::new(self.evaluator.input(), self.evaluator.policy());
        let mut answer = Evaluations::default();
        let mut size = 1;
        while size <= self.minibatch && pace.time_of(size) < LONG_BATCH {
            (batch.len()..size).for_each(|_| batch.push(&game, &moves));
            self.evaluator.evaluate(&batch, &mut answer)?;
            let began = Instant::now();
            self.evaluator.evaluate(&batch, &mut answer)?;
            pace.note(size, began.elapsed());
            size *= 2;
        }
        Ok(pace)
    }
}

/// Networks from files and the coordinator, on this machine's devices.
pub(super) struct RealNetworks {
    pub(super) server: ServerArgs,
    pub(super) file: ConfigFile,
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) kernels: KernelTuner,
    /// What the network that was opened last is called.
    pub(super) opened: Option<String>,
}

impl Networks for RealNetworks {
    fn open(&mut self, choice: &NetworkChoice) -> anyhow::Result<Opened> {
        let access = self.file.remote_access();
        let device: NamedDevice<DeviceChoice> = choice.device.parse()?;
        let device = device.with_access(&access)?;
        let backends = device.open(choice.precision.parse()?, &self.kernels)?;
        let trial = Trial(DevicePool::single(Arc::clone(&backends[0])));
        let (server, file) = (&self.server, &self.file);
        let name = &choice.network;
        let (weights, about) = network_argument::load(name, server, file, trial, &self.runtime)?;
        let backend = fastest(backends, &weights)?;
        let (network, device) = (backend.load(&weights)?, &backend.info().device);
        let told = format!("network {about} on {device} in {}", network.precision());
        self.opened = Some(about);
        // Of a processor's threads each computes a part of a batch; of a GPU's one asks.
        let (evaluator, minibatch): (Box<dyn Evaluator>, _) = if backend.info().is_cpu() {
            let threads = NonZeroUsize::new(choice.threads as usize).unwrap_or(NonZeroUsize::MIN);
            let minibatch = (CPU_MINIBATCH * threads.get()).min(GPU_MINIBATCH);
            (
                Box::new(ParallelEvaluator::new(&network, threads)?),
                minibatch,
            )
        } else {
            (network.evaluator(), GPU_MINIBATCH)
        };
        Ok(Opened {
            evaluator,
            about: Some(told),
            minibatch,
        })
    }

    fn is_outdated(&mut self, choice: &NetworkChoice) -> anyhow::Result<bool> {
        let (server, file, name) = (&self.server, &self.file, &choice.network);
        let now = network_argument::ask_again(name, server, file, &self.runtime)?;
        Ok(now.is_some() && now != self.opened)
    }
}
