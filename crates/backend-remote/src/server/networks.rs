//! Networks on the device, each loaded once for all its clients.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_engine::{Backend, BackendError, EvaluatorError, LoadedNetwork, ParallelEvaluator};
use rookery_model::Weights;

use super::device::Device;
use super::queue::{CloseAtEnd, Queue};
use super::{Counters, ServerOptions};

/// Positions of a full batch for each thread of a processor.
const CPU_POSITIONS: usize = 64;
/// Positions of a full batch on a GPU.
const GPU_POSITIONS: usize = 1024;
/// Most bytes of networks that have been sent in part, all clients together.
const MAX_UPLOADING: usize = 2 * MAX_FILE_BYTES as usize;

/// A network and the threads that evaluate it.
#[derive(Debug)]
pub(super) struct ServedNetwork {
    pub(super) network: Arc<dyn LoadedNetwork>,
    pub(super) queue: Arc<Queue>,
    /// Where it is.
    pub(super) backend: Arc<dyn Backend>,
    batchers: Vec<JoinHandle<()>>,
}

impl ServedNetwork {
    /// Waits for the end of its threads, which have memory of the device.
    pub(super) fn unload(mut self) {
        self.queue.close();
        for batcher in std::mem::take(&mut self.batchers) {
            // One that has panicked has no memory any more either.
            let _ = batcher.join();
        }
    }
}

impl Drop for ServedNetwork {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A client's hold on a network.
#[derive(Debug)]
pub(super) struct UsedNetwork(Arc<ServedNetwork>);

impl UsedNetwork {
    pub(super) fn new(served: Arc<ServedNetwork>) -> Self {
        served.queue.client_came();
        Self(served)
    }

    pub(super) fn served(&self) -> &ServedNetwork {
        &self.0
    }
}

impl Drop for UsedNetwork {
    fn drop(&mut self) {
        self.0.queue.client_left();
    }
}

/// The networks of a server.
#[derive(Debug)]
pub(super) struct Networks {
    device: Arc<Device>,
    threads: NonZeroUsize,
    options: ServerOptions,
    counters: Arc<Counters>,
    loading: Mutex<()>,
    uploading: AtomicUsize,
}

impl Networks {
    pub(super) fn new(
        device: Device,
        threads: NonZeroUsize,
        options: ServerOptions,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            device: Arc::new(device),
            threads,
            options,
            counters,
            loading: Mutex::default(),
            uploading: AtomicUsize::new(0),
        }
    }

    /// What computes them.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Loads a network from its file's bytes, which must have the hash. One is loaded at a time. If the device is lost,
    /// all connections are closed before the error is returned.
    pub(super) fn load(
        &self,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<UsedNetwork, BackendError> {
        let found = ContentHash::of(bytes);
        if found != hash {
            let what = format!("the network that was sent is {found} and not {hash}");
            return Err(BackendError::Failed(what));
        }
        let (_, weights) = Weights::from_bytes(bytes)?;
        let _turn = self.loading.lock();
        if let Some(known) = self.device.find(hash) {
            return Ok(known);
        }
        self.make_room()?;
        let backend = self.device.backend();
        let served = self
            .load_evicting(&*backend, &weights)
            .and_then(|network| self.start(&backend, &network))
            .inspect_err(|error| {
                self.device.recover(&backend, error);
            })?;
        tracing::info!(
            "network {} ({}) is loaded",
            hash.short(),
            weights.spec().shape()
        );
        Ok(self.device.add(hash, served))
    }

    /// Drops the networks that were not used for longest until there is room for one more.
    fn make_room(&self) -> Result<(), BackendError> {
        let most = self.options.limits.networks;
        while self.device.networks() >= most {
            if !self.device.drop_unused() {
                let what = format!("the device serves {most} networks already, all of them in use");
                return Err(BackendError::OutOfMemory(what));
            }
        }
        Ok(())
    }

    /// Loads a network. Those that were not used for longest give it their memory.
    fn load_evicting(
        &self,
        backend: &dyn Backend,
        weights: &Weights,
    ) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        loop {
            match backend.load(weights) {
                Err(BackendError::OutOfMemory(_)) if self.device.drop_unused() => {
                    backend.release_memory();
                }
                loaded => return loaded,
            }
        }
    }

    /// On a processor one thread shares out each batch among all; on a GPU each has batches of its own, so that one is
    /// prepared while another is computed.
    fn start(
        &self,
        backend: &Arc<dyn Backend>,
        network: &Arc<dyn LoadedNetwork>,
    ) -> Result<ServedNetwork, BackendError> {
        let is_cpu = backend.info().is_cpu();
        let (full, batchers) = if is_cpu {
            (CPU_POSITIONS * self.threads.get(), 1)
        } else {
            (GPU_POSITIONS, self.threads.get())
        };
        let queue = Arc::new(Queue::new(full, self.options.gather));
        let mut served = ServedNetwork {
            queue: Arc::clone(&queue),
            network: Arc::clone(network),
            backend: Arc::clone(backend),
            batchers: Vec::new(),
        };
        let failed = |error| BackendError::Failed(format!("no thread can be started: {error}"));
        for _ in 0..batchers {
            let evaluator = if is_cpu {
                Box::new(ParallelEvaluator::new(network, self.threads).map_err(failed)?)
            } else {
                Arc::clone(network).evaluator()
            };
            let (queue, counters) = (CloseAtEnd(Arc::clone(&queue)), Arc::clone(&self.counters));
            // The device has the network, and so this thread.
            let (device, backend) = (Arc::downgrade(&self.device), Arc::clone(backend));
            let is_lost = move |error: &EvaluatorError| {
                let device = device.upgrade();
                device.is_some_and(|device| device.recover(&backend, error))
            };
            let work = move || queue.0.serve(evaluator, &counters, is_lost);
            let thread = thread::Builder::new().name("batcher".to_owned());
            served.batchers.push(thread.spawn(work).map_err(failed)?);
        }
        Ok(served)
    }

    /// An upload that has received nothing yet.
    pub(super) fn begin_upload(&self) -> Upload<'_> {
        Upload {
            networks: self,
            bytes: Vec::new(),
        }
    }
}

/// The part of a network's file that a client has sent.
pub(super) struct Upload<'a> {
    networks: &'a Networks,
    pub(super) bytes: Vec<u8>,
}

impl Upload<'_> {
    /// Adds bytes; false if all clients together have sent too much that is not complete.
    pub(super) fn push(&mut self, data: &[u8]) -> bool {
        let before = self.networks.uploading.fetch_add(data.len(), Relaxed);
        self.bytes.extend_from_slice(data);
        before + data.len() <= MAX_UPLOADING
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        self.networks.uploading.fetch_sub(self.bytes.len(), Relaxed);
    }
}
