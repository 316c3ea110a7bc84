//! Where players compute.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context as _;
use rookery_cli::flags::threads_or_cores;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{Backend, Evaluator, LoadedNetwork, ParallelEvaluator};
use rookery_model::Weights;

/// A backend, and the processor threads that may be used.
#[derive(Debug, Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    threads: Option<usize>,
}

impl Device {
    /// The backend with `threads`; without a number, all cores.
    pub const fn new(backend: Arc<dyn Backend>, threads: Option<usize>) -> Self {
        Self { backend, threads }
    }

    /// What coordinators call results of the device.
    pub fn class(&self) -> NumericClass {
        self.backend.info().class
    }

    /// Brings a network to the device.
    ///
    /// # Errors
    ///
    /// If the device cannot compute it.
    pub fn load(&self, weights: &Weights) -> anyhow::Result<Arc<dyn LoadedNetwork>> {
        let device = &self.backend.info().device;
        let cannot = || format!("cannot compute the network on {device}");
        self.backend.load(weights).with_context(cannot)
    }

    /// An evaluator with the whole device for itself, for large batches.
    ///
    /// # Errors
    ///
    /// If the device cannot compute the network, or a thread does not start.
    pub fn evaluator(&self, weights: &Weights) -> anyhow::Result<Box<dyn Evaluator + Send>> {
        let network = self.load(weights)?;
        if !self.backend.info().is_cpu() {
            return Ok(network.evaluator());
        }
        let threads = threads_or_cores(self.threads);
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let evaluator = ParallelEvaluator::new(&network, threads);
        Ok(Box::new(evaluator.context("cannot start a thread")?))
    }

    /// Threads that play `games`, in pairs. On a processor each computes by itself, which is faster than all of them on
    /// one batch; a GPU gets one thread with large batches.
    pub fn playing_threads(&self, games: u32) -> usize {
        let threads = if self.backend.info().is_cpu() {
            threads_or_cores(self.threads)
        } else {
            1
        };
        threads.clamp(1, (games as usize / 2).max(1))
    }
}
