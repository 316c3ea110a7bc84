//! A coordinator in memory: a ledger, networks, and verdicts as the test wants them.

mod answers;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use rookery_cli::Shutdown;
use rookery_client::testing::Server;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::params::TrainingParams;
use rookery_common::protocol::jobs::{ChunkRow, WorkKind};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};
use rookery_common::protocol::trust::HoldRow;

use crate::testing;

#[derive(Clone)]
pub(super) struct Coordinator(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    params: TrainingParams,
    chunks: Vec<(ChunkRow, Vec<u8>)>,
    networks: Vec<(NetworkInfo, Vec<u8>)>,
    verdicts: VecDeque<NetworkStatus>,
    metrics: usize,
    shutdown: Shutdown,
    stop_at_metrics: bool,
    stop_at_candidate: bool,
    lose_candidate: bool,
    /// Two of three requests are answered by a proxy whose backend is down.
    away: bool,
    requests: usize,
    /// Files of chunks that were asked for.
    chunk_requests: usize,
    holds: Vec<HoldRow>,
    /// Candidates are refused.
    refusing: bool,
    /// The number of exports to refuse.
    refused_exports: usize,
    /// The files of networks are missing in the storage.
    network_files_missing: bool,
    /// Candidates that get a retry later, as others wait.
    too_many: usize,
}

impl Coordinator {
    pub(super) fn new(params: TrainingParams) -> Self {
        Self(Arc::new(Mutex::new(State {
            params,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) async fn serve(&self) -> Server {
        let state = Arc::clone(&self.0);
        Server::start(move |request| state.lock().unwrap().answer(request)).await
    }

    pub(super) fn add_chunk(&self, bytes: Vec<u8>) {
        self.state().add_chunk(bytes);
    }

    /// What candidates become, in order; later ones are promoted.
    pub(super) fn verdicts<const N: usize>(&self, verdicts: [NetworkStatus; N]) {
        self.state().verdicts = verdicts.into();
    }

    /// A network was promoted, and later found to be weaker than an earlier one.
    pub(super) fn demote(&self, number: usize) {
        self.state().networks[number].0.status = NetworkStatus::Demoted;
    }

    /// The run gets other training parameters.
    pub(super) fn set_params(&self, params: TrainingParams) {
        self.state().params = params;
    }

    pub(super) fn networks(&self) -> Vec<NetworkInfo> {
        self.state()
            .networks
            .iter()
            .map(|(info, _)| info.clone())
            .collect()
    }

    /// Points of training that were reported.
    pub(super) fn metrics(&self) -> usize {
        self.state().metrics
    }

    pub(super) fn give_shutdown(&self, shutdown: &Shutdown) {
        self.state().shutdown = shutdown.clone();
    }

    /// Two of three requests find it away from now on.
    pub(super) fn often_away(&self) {
        self.state().away = true;
    }

    /// A chunk came at this time.
    pub(super) fn date(&self, place: usize, accepted: jiff::Timestamp) {
        self.state().chunks[place].0.accepted_at = accepted.to_string();
    }

    /// Holds a chunk out of training, or lets it go.
    pub(super) fn hold(&self, place: usize, held: bool) {
        let mut state = self.state();
        let row = &state.chunks[place].0;
        let hold = HoldRow {
            sequence: state.holds.len() as i64 + 1,
            chunk: row.hash,
            chunk_sequence: row.sequence,
            held,
            reason: "audit".into(),
            at: String::new(),
        };
        state.holds.push(hold);
    }

    /// Files of chunks that were asked for since the last question.
    pub(super) fn take_chunk_requests(&self) -> usize {
        std::mem::take(&mut self.state().chunk_requests)
    }

    /// The ledger is restored from before the candidate when the trainer asks for its verdict.
    pub(super) fn lose_candidate(&self) {
        self.state().lose_candidate = true;
    }

    /// The ledger is what it was before the newest network came.
    pub(super) fn forget_network(&self) {
        self.state().networks.pop();
    }

    /// The ledger is restored to this number of chunks, none of them excluded.
    pub(super) fn restore(&self, chunks: usize) {
        let mut state = self.state();
        state.chunks.truncate(chunks);
        state.holds.clear();
    }

    /// The ledger's rows.
    pub(super) fn rows(&self) -> Vec<ChunkRow> {
        let state = self.state();
        state.chunks.iter().map(|(row, _)| row.clone()).collect()
    }

    /// Chunks in the ledger.
    pub(super) fn chunks(&self) -> usize {
        self.state().chunks.len()
    }

    /// Refuses this number of exports.
    pub(super) fn refuse_exports(&self, count: usize) {
        self.state().refused_exports = count;
    }

    /// The files of networks are missing in the storage from now on.
    pub(super) fn remove_network_files(&self) {
        self.state().network_files_missing = true;
    }

    /// Whether candidates are refused from now on.
    pub(super) fn refuse(&self, refusing: bool) {
        self.state().refusing = refusing;
    }

    /// The limit of waiting candidates from now on.
    pub(super) fn too_many(&self, candidates: usize) {
        self.state().too_many = candidates;
    }

    /// Candidates that are still to be told so.
    pub(super) fn still_too_many(&self) -> usize {
        self.state().too_many
    }

    /// A chunk's file is gone, though its row is in the ledger: it was quarantined.
    pub(super) fn withdraw(&self, place: usize) {
        self.state().chunks[place].1.clear();
    }

    /// What comes of a chunk is not what the ledger says.
    pub(super) fn corrupt(&self, place: usize) {
        let mut state = self.state();
        let bytes = &mut state.chunks[place].1;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        let hash = ContentHash::of(bytes);
        state.chunks[place].0.hash = hash;
    }

    /// A chunk's file is damaged where it is kept.
    pub(super) fn damage(&self, place: usize) {
        self.state().chunks[place].1 = b"damaged".to_vec();
    }

    /// Stops the trainer as soon as it reports losses.
    pub(super) fn stop_at_metrics(&self) {
        self.state().stop_at_metrics = true;
    }

    /// Stops the trainer when it submits its first candidate, without taking it.
    pub(super) fn stop_at_candidate(&self) {
        self.state().stop_at_candidate = true;
    }
}

impl State {
    fn add_chunk(&mut self, bytes: Vec<u8>) {
        let (_, games) = rookery_common::chunk::read(&bytes, &Default::default()).unwrap();
        let row = ChunkRow {
            sequence: 2 * self.chunks.len() as i64 + 1,
            hash: ContentHash::of(&bytes),
            kind: WorkKind::SelfPlay,
            network: NetworkNumber(0),
            bytes: bytes.len() as u64,
            games: games.len() as u32,
            positions: games.iter().map(|game| game.plies.len() as u32).sum(),
            accepted_at: String::new(),
            held: false,
        };
        self.chunks.push((row, bytes));
    }

    /// Workers play on while a candidate is in its match.
    fn play_on(&mut self) {
        let played = self.chunks.len() as u64;
        (played..played + 10).for_each(|seed| self.add_chunk(testing::chunk(seed, 5).1));
    }
}
