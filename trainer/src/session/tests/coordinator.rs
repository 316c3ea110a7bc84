//! A coordinator in memory: a ledger, networks, and verdicts as the test wants them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::verify;
use rookery_common::params::{RunParams, TrainingParams};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkPage, ChunkRow, WorkKind};
use rookery_common::protocol::networks::{
    ExportFormat, ExportReceipt, NetworkExport, NetworkInfo, NetworkReceipt, NetworkStatus,
};
use rookery_common::protocol::runs::{MetricReport, RunInfo, RunStatus, VersionPolicy};
use rookery_common::protocol::trust::{HoldPage, HoldRow};

use crate::testing;
use crate::testing::server::{Answer, Request, Server};
use rookery_cli::Shutdown;

/// Rows of a page.
const PAGE: usize = 3;

#[derive(Clone)]
pub(super) struct Coordinator(Arc<Mutex<State>>);

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
            chunks: Vec::new(),
            networks: Vec::new(),
            verdicts: VecDeque::new(),
            metrics: 0,
            shutdown: Shutdown::default(),
            stop_at_metrics: false,
            stop_at_candidate: false,
            lose_candidate: false,
            away: false,
            requests: 0,
            chunk_requests: 0,
            holds: Vec::new(),
            refusing: false,
            refused_exports: 0,
            network_files_missing: false,
            too_many: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) async fn serve(&self) -> Server {
        let state = Arc::clone(&self.0);
        Server::start(move |request| state.lock().unwrap().answer(&request)).await
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

    fn answer(&mut self, request: &Request) -> Answer {
        self.requests += 1;
        if self.away && !self.requests.is_multiple_of(3) {
            return Answer {
                status: 503,
                ..Answer::bytes(b"bad gateway".to_vec())
            };
        }
        let (method, address) = request.line.split_once(' ').unwrap();
        let path = address.split('?').next().unwrap();
        let parts: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", ["runs", "main"]) => Answer::json(&self.run()),
            ("GET", ["chunks"]) => Answer::json(&self.page(address)),
            ("GET", ["holds"]) => Answer::json(&self.hold_page(address)),
            ("GET", ["chunks", hash]) => {
                self.chunk_requests += 1;
                self.chunk(hash)
            }
            ("PUT", ["networks", hash]) => self.submit(hash, &request.body),
            ("PUT", ["networks", hash, "file"]) => self.add_export(hash, address, &request.body),
            ("GET", ["networks", name]) => {
                if self.networks.len() > 1 && std::mem::take(&mut self.lose_candidate) {
                    self.networks.pop();
                }
                self.find(name, |(info, _)| Answer::json(info))
            }
            ("GET", ["networks", _, "file"]) if self.network_files_missing => {
                Answer::problem(ProblemCode::Internal)
            }
            ("GET", ["networks", name, "file"]) => {
                self.find(name, |(_, file)| Answer::bytes(file.clone()))
            }
            ("POST", ["runs", "main", "metrics"]) => self.report(&request.body),
            _ => Answer::problem(ProblemCode::NotFound),
        }
    }

    fn run(&self) -> RunInfo {
        let params = RunParams {
            training: self.params.clone(),
            ..RunParams::default()
        };
        RunInfo {
            name: "main".parse().unwrap(),
            title: None,
            description: String::new(),
            contact: None,
            links: Vec::new(),
            status: RunStatus::Open,
            params,
            key: None,
            versions: VersionPolicy::default(),
            best: self.best().map(|(info, _)| info.number),
            networks: self.networks.len() as u32,
            games: 0,
            training_positions: 0,
            positions: 0,
            chunks: 0,
            chunk_bytes: 0,
            last_report: None,
            created_at: String::new(),
            archived_at: None,
        }
    }

    fn best(&self) -> Option<&(NetworkInfo, Vec<u8>)> {
        use NetworkStatus::{Initial, Promoted};
        self.networks
            .iter()
            .rev()
            .find(|(info, _)| matches!(info.status, Initial | Promoted))
    }

    fn hold_page(&self, address: &str) -> HoldPage {
        let after = after(address);
        let mut rows = self.holds.iter().filter(|row| row.sequence > after);
        let holds: Vec<HoldRow> = rows.by_ref().take(PAGE).cloned().collect();
        HoldPage {
            next: holds.last().map_or(after, |row| row.sequence),
            more: rows.next().is_some(),
            holds,
        }
    }

    fn page(&self, address: &str) -> ChunkPage {
        let after = after(address);
        let mut rows = self
            .chunks
            .iter()
            .map(|(row, _)| row)
            .filter(|row| row.sequence > after);
        let chunks: Vec<ChunkRow> = rows.by_ref().take(PAGE).cloned().collect();
        let next = chunks.last().map_or(after, |row| row.sequence);
        ChunkPage {
            chunks,
            next,
            more: rows.next().is_some(),
        }
    }

    fn chunk(&self, hash: &str) -> Answer {
        let found = self
            .chunks
            .iter()
            .find(|(row, _)| row.hash.to_string() == hash);
        let found = found.filter(|(_, bytes)| !bytes.is_empty());
        let missing = || Answer::problem(ProblemCode::NotFound);
        found.map_or_else(missing, |(_, bytes)| Answer::bytes(bytes.clone()))
    }

    fn find(&self, name: &str, answer: impl Fn(&(NetworkInfo, Vec<u8>)) -> Answer) -> Answer {
        let found = match name {
            "best" => self.best(),
            name => self
                .networks
                .iter()
                .find(|(info, _)| info.hash.to_string() == name || info.number.to_string() == name),
        };
        found.map_or_else(|| Answer::problem(ProblemCode::NotFound), answer)
    }

    fn submit(&mut self, hash: &str, file: &[u8]) -> Answer {
        if !self.networks.is_empty() && std::mem::take(&mut self.stop_at_candidate) {
            self.shutdown.request();
            return Answer::problem(ProblemCode::Unavailable);
        }
        if self.refusing && !self.networks.is_empty() {
            return Answer::problem(ProblemCode::Conflict);
        }
        if self.too_many > 0 && !self.networks.is_empty() {
            self.too_many -= 1;
            return Answer::problem(ProblemCode::TooManyCandidates);
        }
        let verified = verify(file).unwrap();
        assert_eq!(verified.hash.to_string(), hash);
        let known = self
            .networks
            .iter()
            .find(|(info, _)| info.hash == verified.hash);
        let duplicate = known.is_some();
        let info = match known {
            Some((info, _)) => info.clone(),
            None => self.add_network(verified.hash, verified.spec, file),
        };
        Answer::json(&NetworkReceipt {
            hash: info.hash,
            number: info.number,
            status: info.status,
            gate: None,
            duplicate,
        })
    }

    fn add_export(&mut self, network: &str, address: &str, file: &[u8]) -> Answer {
        if self.refused_exports > 0 {
            self.refused_exports -= 1;
            return Answer::problem(ProblemCode::Conflict);
        }
        let named = |format: &ExportFormat| address.contains(&format!("format={}", format.name()));
        let format = ExportFormat::ALL.into_iter().find(named).unwrap();
        let hash = ContentHash::of(file);
        assert!(address.contains(&format!("sha256={hash}")), "{address}");
        assert!(format.begins(file));
        let found = self
            .networks
            .iter_mut()
            .find(|(info, _)| info.hash.to_string() == network);
        let (info, _) = found.unwrap();
        let duplicate = info.exports.iter().any(|export| export.hash == hash);
        if !duplicate {
            info.exports.push(NetworkExport {
                format,
                hash,
                bytes: file.len() as u64,
                file: String::new(),
            });
        }
        Answer::json(&ExportReceipt {
            format,
            hash,
            duplicate,
        })
    }

    fn add_network(
        &mut self,
        hash: ContentHash,
        spec: rookery_common::network::NetworkSpec,
        file: &[u8],
    ) -> NetworkInfo {
        let status = if self.networks.is_empty() {
            NetworkStatus::Initial
        } else {
            self.play_on();
            self.verdicts.pop_front().unwrap_or(NetworkStatus::Promoted)
        };
        let info = NetworkInfo {
            run: "main".parse().unwrap(),
            number: NetworkNumber(self.networks.len() as u32),
            anchor: None,
            anchor_elo: None,
            hash,
            bytes: file.len() as u64,
            spec,
            status,
            gate: None,
            rating: None,
            puzzles: None,
            training_games: 0,
            positions: None,
            submitted_at: String::new(),
            file: format!("/api/v1/networks/{hash}/file"),
            exports: Vec::new(),
        };
        self.networks.push((info.clone(), file.to_vec()));
        info
    }

    fn report(&mut self, body: &[u8]) -> Answer {
        let report: MetricReport = serde_json::from_slice(body).unwrap();
        let trained = |name: &str| name == "policy_loss";
        let points = report
            .points
            .iter()
            .filter(|p| p.values.keys().any(|name| trained(name)));
        let count = points.count();
        self.metrics += count;
        if count > 0 && std::mem::take(&mut self.stop_at_metrics) {
            self.shutdown.request();
        }
        Answer {
            status: 204,
            header: None,
            body: Vec::new(),
        }
    }
}

/// The cursor of a page's address.
fn after(address: &str) -> i64 {
    let after = address.split("after=").nth(1).unwrap();
    after.split('&').next().unwrap().parse().unwrap()
}
