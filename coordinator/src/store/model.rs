//! What goes into operations of the store and comes out, where the API's types do not serve.

use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::chess::{GameResult, Termination};
use rookery_common::chunk::{SearchSums, Side};
use rookery_common::ids::{
    AnchorName, ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, Seed, UserId,
};
use rookery_common::network::NetworkSpec;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkReceipt, JobRequest, Work, WorkKind};
use rookery_common::protocol::networks::ExportFormat;
use rookery_common::protocol::people::Scope;

use super::trust::{AuditOpinion, AuditedChunk};
use crate::tokens::TokenHash;
use crate::trust::verdict::Auditor;

/// A user to be created together with a first token.
#[derive(Debug, Clone)]
pub struct UserDraft {
    /// The name; unique.
    pub name: String,
    /// The first token.
    pub token: TokenDraft,
}

/// A token to be stored.
#[derive(Debug, Clone)]
pub struct TokenDraft {
    /// Its hash.
    pub hash: TokenHash,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Its name, usually a machine's.
    pub machine: String,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The user.
    pub user: UserId,
    /// The user's name.
    pub name: String,
    /// The token's number.
    pub token: i64,
    /// What the token may do.
    pub scopes: Vec<Scope>,
    /// Whether the user may do anything at all.
    pub standing: Standing,
}

impl Principal {
    /// Whose word this one's audits are.
    pub fn auditor(&self) -> Auditor {
        if self.scopes.contains(&Scope::Audit) {
            Auditor::Trusted
        } else {
            Auditor::Volunteer
        }
    }
}

/// Whether a user is welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Yes.
    Good,
    /// Blocked by the operator.
    Blocked,
}

/// A token as its owner's list shows it.
#[derive(Debug, Clone)]
pub struct TokenInfo {
    /// Its number.
    pub id: i64,
    /// The user's name.
    pub user: String,
    /// Its name.
    pub machine: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was revoked, RFC 3339.
    pub revoked_at: Option<String>,
}

/// An invitation to be stored.
#[derive(Debug, Clone)]
pub struct InvitationDraft {
    /// Its code's hash.
    pub hash: TokenHash,
    /// For whom it is.
    pub note: String,
    /// How many may register with it.
    pub uses: u32,
    /// Until when.
    pub expires_at: Option<Timestamp>,
}

/// An invitation as operators see it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct InvitationInfo {
    /// Its number.
    pub id: i64,
    /// For whom it is.
    pub note: String,
    /// How many may register with it.
    pub uses: u32,
    /// How many did.
    pub used: u32,
    /// Who made it.
    pub created_by: String,
    /// When, RFC 3339.
    pub created_at: String,
    /// Until when it is valid, RFC 3339.
    pub expires_at: Option<String>,
    /// When it was revoked, RFC 3339.
    pub revoked_at: Option<String>,
}

/// A run to be created.
#[derive(Debug, Clone)]
pub struct RunDraft {
    /// Its name; unique.
    pub name: RunName,
    /// What it is for.
    pub description: String,
    /// Its parameters, checked.
    pub params: RunParams,
}

/// A network whose file is verified and stored.
#[derive(Debug, Clone)]
pub struct NetworkDraft {
    /// The run.
    pub run: RunName,
    /// Its file's SHA-256.
    pub hash: ContentHash,
    /// Its file's size.
    pub bytes: u64,
    /// What it is.
    pub spec: NetworkSpec,
    /// Who submitted it.
    pub user: UserId,
    /// The order of openings in a gate match that it opens.
    pub match_seed: Seed,
    /// Its name as an anchor, if it is no candidate.
    pub anchor: Option<AnchorName>,
}

/// A network in the format of another program, whose file is stored.
#[derive(Debug, Clone, Copy)]
pub struct ExportDraft {
    /// The network's SHA-256.
    pub network: ContentHash,
    /// The format.
    pub format: ExportFormat,
    /// The file's SHA-256.
    pub hash: ContentHash,
    /// The file's size.
    pub bytes: u64,
    /// Who submitted it.
    pub user: UserId,
}

/// How a network is named in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkName {
    /// By its file.
    Hash(ContentHash),
    /// By its number in the run.
    Number(NetworkNumber),
    /// The run's best.
    Best,
}

impl std::fmt::Display for NetworkName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hash(hash) => write!(f, "network {hash}"),
            Self::Number(number) => write!(f, "network number {number}"),
            Self::Best => write!(f, "best network yet"),
        }
    }
}

/// A request for a job, with the random numbers that decide it.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    /// Who asks.
    pub user: UserId,
    /// What the worker said.
    pub request: JobRequest,
    /// The openings of matches, and of the self-play games that begin at a book's line.
    pub book: Arc<OpeningBook>,
    /// Chance.
    pub chances: Chances,
    /// Whose word the asker's audits would be.
    pub auditor: Auditor,
    /// How many leases may be out at once.
    pub quotas: LeaseQuotas,
}

/// How many leases may be out at once; `None` is as many as one likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseQuotas {
    /// Of one contributor.
    pub contributor: Option<u32>,
    /// Of one worker of a contributor, by the name that it gives itself.
    pub worker: Option<u32>,
}

/// The random numbers of one lease, drawn by the caller so that tests can choose them.
#[derive(Debug, Clone, Copy)]
pub struct Chances {
    /// The job's identifier.
    pub job: JobId,
    /// The job's seed.
    pub seed: Seed,
    /// From 0 to 1: below the gate share, an open gate match is served.
    pub gate: f64,
    /// From 0 to 1: below the rating share, an open rating match is served.
    pub rating: f64,
    /// From 0 to 1: below the puzzles' share of jobs, puzzles are handed out.
    pub puzzle: f64,
}

/// What a chunk's job allows.
#[derive(Debug, Clone)]
pub struct LeasedJob {
    /// Who leased it.
    pub user: UserId,
    /// The run.
    pub run: RunName,
    /// The work.
    pub work: Work,
    /// The seed.
    pub seed: Seed,
    /// Whether chunks of it are in the ledger.
    pub begun: bool,
    /// Of an audit: the chunk that it is about.
    pub audited: Option<AuditedChunk>,
}

/// A chunk that is verified and stored, to be entered into the ledger.
#[derive(Debug, Clone)]
pub struct ChunkDraft {
    /// Its hash.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub bytes: u64,
    /// Who sent it.
    pub user: UserId,
    /// Its job.
    pub job: JobId,
    /// Where it was computed.
    pub backend: String,
    /// The worker's version.
    pub worker_version: String,
    /// Its games, in the order of the chunk.
    pub games: Vec<GameFact>,
    /// Of self-play: their searches in sums.
    pub searches: Option<SearchSums>,
    /// From 0 to 1: below the contributor's rate, the chunk is audited.
    pub chance: f64,
    /// Of an audit's chunk: what it says.
    pub opinion: Option<AuditOpinion>,
    /// Whose word that is.
    pub auditor: Auditor,
}

impl ChunkDraft {
    /// The chunk's positions: searched plies of all games.
    pub fn positions(&self) -> u32 {
        self.games.iter().map(|game| game.plies).sum()
    }
}

/// What the ledger keeps of one game.
#[derive(Debug, Clone)]
pub struct GameFact {
    /// Its index in the job.
    pub index: u32,
    /// Who won.
    pub result: GameResult,
    /// Why it ended.
    pub termination: Termination,
    /// Searched plies.
    pub plies: u32,
    /// The fingerprint that must be unique in the run, where it must.
    pub fingerprint: Option<[u8; 16]>,
    /// What is particular to its kind.
    pub detail: GameFactDetail,
}

/// What is particular to a kind of game.
#[derive(Debug, Clone)]
pub enum GameFactDetail {
    /// Nothing.
    SelfPlay,
    /// The puzzle and how it went.
    Puzzle {
        /// The puzzle's identifier.
        id: String,
        /// Whether it was solved.
        solved: bool,
        /// Its rating, 0 if it has none.
        rating: u32,
        /// Its themes.
        themes: Vec<String>,
    },
    /// The pair and the candidate's side.
    Match {
        /// The pair.
        pair: u32,
        /// The candidate's side.
        candidate: Side,
    },
    /// Nothing: searches of another contributor's game, made again.
    Audit,
}

/// A chunk that is in the ledger.
#[derive(Debug, Clone)]
pub struct ChunkAccepted {
    /// The receipt.
    pub receipt: ChunkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
    /// The run.
    pub run: RunName,
    /// Whether the ratings should be fitted again.
    pub ratings: RatingsState,
}

/// Whether ratings follow from the games that are in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatingsState {
    /// They are recent enough.
    Fresh,
    /// They should be fitted again.
    Stale,
}

/// A match to be opened by an operator.
#[derive(Debug, Clone)]
pub struct MatchDraft {
    /// The run.
    pub run: RunName,
    /// The network whose result is counted.
    pub candidate: NetworkNumber,
    /// Its opponent.
    pub opponent: NetworkNumber,
    /// How many pairs are played.
    pub pairs: u32,
    /// The order of openings.
    pub seed: Seed,
}

/// Which games to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct GameFilter {
    /// Only of this run.
    pub run: Option<RunName>,
    /// Only of this match.
    pub match_id: Option<MatchId>,
    /// Only of this network, on either side.
    pub network: Option<NetworkNumber>,
    /// Only of this kind.
    pub kind: Option<WorkKind>,
    /// Only games before this one.
    pub before: Option<GameId>,
    /// At most so many.
    pub limit: u32,
}

/// All games between two networks, `a` having the lower number; results as `a` sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadToHead {
    /// The network with the lower number.
    pub a: NetworkNumber,
    /// The other.
    pub b: NetworkNumber,
    /// Games that `a` won.
    pub wins: u64,
    /// Drawn games.
    pub draws: u64,
    /// Games that `a` lost.
    pub losses: u64,
}

/// The number of a fit of a run's ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FitNumber(pub i64);

/// Best is to move back to an earlier network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rollback {
    /// What is best now.
    pub from: NetworkNumber,
    /// What is likely stronger.
    pub to: NetworkNumber,
    /// How likely, 0 to 1.
    pub superiority: f64,
}

/// Which chunks may be archived.
#[derive(Debug, Clone, Copy)]
pub struct Archivable {
    /// The newest training positions stay as they are: so many.
    pub window: u64,
    /// Chunks that were accepted later stay as they are.
    pub before: jiff::Timestamp,
    /// At most so many.
    pub limit: u32,
}

/// An archive that is stored, to be entered into the ledger.
#[derive(Debug, Clone)]
pub struct ArchiveDraft {
    /// The run of its chunks.
    pub run: RunName,
    /// Its hash.
    pub hash: ContentHash,
    /// Its size.
    pub bytes: u64,
    /// The sequence numbers of its chunks, and the byte at which each begins.
    pub chunks: Vec<(i64, u64)>,
}

/// Where an archived chunk's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchivedChunk {
    /// The archive.
    pub archive: ContentHash,
    /// The byte of the archive at which the chunk begins.
    pub begins: u64,
    /// The chunk's size.
    pub bytes: u64,
}

/// A worker as pages show it.
#[derive(Debug, Clone)]
pub struct WorkerInfo {
    /// The contributor.
    pub contributor: String,
    /// The worker's name.
    pub name: String,
    /// Where it computes.
    pub backend: String,
    /// Its version.
    pub version: String,
    /// Evaluations a second that it last reported.
    pub evals_per_second: f32,
    /// What it last worked at.
    pub job_kind: Option<WorkKind>,
    /// When it was last heard, RFC 3339.
    pub last_seen: String,
}

/// How much is going on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Jobs that are out and not overdue.
    pub open_leases: u64,
    /// Workers that were heard in the last ten minutes, by backend.
    pub workers: Vec<(String, u64)>,
}

/// What came in during a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intake {
    /// Chunks.
    pub chunks: u64,
    /// Games.
    pub games: u64,
    /// Positions.
    pub positions: u64,
}

/// A set of puzzles to be added to a run.
#[derive(Debug, Clone)]
pub struct PuzzleSetDraft {
    /// The run.
    pub run: RunName,
    /// A name for people, for example the file's.
    pub name: String,
    /// The puzzles, posed without error.
    pub puzzles: Vec<rookery_common::puzzle::Puzzle>,
}

/// A set of puzzles in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct PuzzleSetInfo {
    /// The SHA-256 of its puzzles as JSON lines.
    pub hash: ContentHash,
    /// Its name.
    pub name: String,
    /// Puzzles in it that the run did not have before.
    pub puzzles: u32,
    /// When it was added, RFC 3339.
    pub added_at: String,
}

/// A sum in the ledger that does not follow from its facts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Discrepancy {
    /// Which sum.
    pub what: String,
    /// What the ledger says.
    pub stored: String,
    /// What the facts say.
    pub recomputed: String,
}
