//! The device of a server with its networks. If it is lost, it is opened anew.
//!
//! ```text
//! a batch or a network fails --device is lost--> opened anew, networks dropped, connections closed
//!                            --else------------> the client learns why
//! ```
//!
//! A closed connection is an outage for a client: it connects again and brings its networks again, or computes elsewhere
//! meanwhile. An error would make it leave the device for that network.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_engine::{Backend, BackendInfo};

use super::OpenConnections;
use super::networks::{ServedNetwork, UsedNetwork};

/// A device that is offered.
#[derive(Debug)]
pub(super) struct Device {
    info: BackendInfo,
    connections: Arc<Mutex<OpenConnections>>,
    /// Between two attempts to open it anew.
    reopen_pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    backend: Arc<dyn Backend>,
    /// The last used ones at the end.
    networks: Vec<(ContentHash, Arc<ServedNetwork>)>,
    /// When it was opened anew last, or could not be.
    reopened: Option<Instant>,
}

impl Device {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        connections: Arc<Mutex<OpenConnections>>,
        reopen_pause: Duration,
    ) -> Self {
        Self {
            info: backend.info().clone(),
            connections,
            reopen_pause,
            state: Mutex::new(State {
                backend,
                networks: Vec::new(),
                reopened: None,
            }),
        }
    }

    /// What it is, also after it was opened anew.
    pub(super) const fn info(&self) -> &BackendInfo {
        &self.info
    }

    /// What computes now.
    pub(super) fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.state.lock().backend)
    }

    /// The network, if it is loaded.
    pub(super) fn find(&self, hash: ContentHash) -> Option<UsedNetwork> {
        let networks = &mut self.state.lock().networks;
        let place = networks.iter().position(|(known, _)| *known == hash)?;
        let found = networks.remove(place);
        let used = UsedNetwork::new(Arc::clone(&found.1));
        networks.push(found);
        Some(used)
    }

    /// Keeps a network for other clients, unless its device was lost meanwhile.
    pub(super) fn add(&self, hash: ContentHash, served: ServedNetwork) -> UsedNetwork {
        let served = Arc::new(served);
        let used = UsedNetwork::new(Arc::clone(&served));
        let mut state = self.state.lock();
        if Arc::ptr_eq(&state.backend, &served.backend) {
            state.networks.push((hash, served));
        }
        used
    }

    /// Networks that are loaded.
    pub(super) fn networks(&self) -> usize {
        self.state.lock().networks.len()
    }

    /// Batches that wait, of all networks.
    pub(super) fn waiting(&self) -> usize {
        let state = self.state.lock();
        let waiting = state.networks.iter().map(|(_, one)| one.queue.len());
        waiting.sum()
    }

    /// Frees the memory of the network that was not used for longest; false if all are in use.
    pub(super) fn drop_unused(&self) -> bool {
        let mut state = self.state.lock();
        let mut networks = state.networks.iter();
        let unused = networks.position(|(_, served)| Arc::strong_count(served) == 1);
        let Some(unused) = unused else {
            return false;
        };
        let (_, served) = state.networks.remove(unused);
        drop(state);
        if let Some(served) = Arc::into_inner(served) {
            served.unload();
        }
        true
    }

    /// Opens the device anew if the backend that has failed is lost, and closes all connections. False if it is not lost.
    pub(super) fn recover(&self, failed: &Arc<dyn Backend>, error: &dyn Display) -> bool {
        if !failed.is_lost() {
            return false;
        }
        let mut state = self.state.lock();
        // Otherwise another thread has done it, and the connections of this failure are closed.
        if Arc::ptr_eq(&state.backend, failed) {
            let device = &self.info.device;
            let since = state.reopened.map(|reopened| reopened.elapsed());
            if since.is_none_or(|since| since >= self.reopen_pause) {
                match failed.reopen() {
                    Ok(backend) => {
                        tracing::warn!(
                            "RK-0307: {device} was lost: {error}; it is opened anew, and clients connect again"
                        );
                        state.backend = backend;
                    }
                    Err(why) => tracing::error!(
                        "RK-0307: {device} was lost: {error}; it cannot be opened anew: {why}; clients compute \
                         themselves until it can"
                    ),
                }
                state.reopened = Some(Instant::now());
            }
            self.connections.lock().close_all();
            state.networks.clear();
        }
        true
    }
}
