//! Jobs, leases, heartbeats and chunk receipts.

use serde::{Deserialize, Serialize};
use shakmaty::Move;
use utoipa::ToSchema;

use super::audits::{AuditTask, AuditedRules};
use super::boards::SharedBoard;
use crate::chess::moves::parse_uci;
use crate::chess::{GameHistory, StartError};
use crate::chunk::{GameRecord, GameStart};
use crate::ids::{ContentHash, JobId, MatchId, NetworkNumber, RunName, Seed};
use crate::names::names;
use crate::params::{MatchParams, PuzzleParams, SelfPlayParams};
use crate::puzzle::Puzzle;
use crate::signing::{RunKey, Signature};

names! {
    /// Where evaluations are computed; tolerances of audits follow from it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Backend {
        /// CPU, 32-bit numbers.
        CpuF32 = "cpu-f32",
        /// CPU, bfloat16.
        CpuBf16 = "cpu-bf16",
        /// CUDA, 32-bit numbers.
        CudaF32 = "cuda-f32",
        /// CUDA, 16-bit numbers.
        CudaF16 = "cuda-f16",
        /// CUDA, bfloat16.
        CudaBf16 = "cuda-bf16",
        /// Any GPU by Vulkan, Metal or DirectX 12, 32-bit numbers.
        GpuF32 = "gpu-f32",
        /// Any GPU by Vulkan, Metal or DirectX 12, 16-bit numbers with sums of 32 bits.
        GpuF16 = "gpu-f16",
        /// Apple's Metal by libtorch.
        Mps = "mps",
        /// No network: a uniform evaluator, for tests of the coordinator.
        Uniform = "uniform",
    }
}

/// What a worker can do, sent with every request for a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobRequest {
    /// The protocol version that the worker speaks.
    pub protocol: u32,
    /// The worker's program version, for example `0.1.0`, at most 64 characters.
    pub version: String,
    /// The worker's name, chosen by the contributor, at most 64 characters.
    pub worker: String,
    /// The device and the precision with which it computes.
    pub backend: Backend,
    /// The run to work for; any open one if it is absent.
    #[serde(default)]
    pub run: Option<RunName>,
    /// Games that it plays at once; 0 if it does not say. Jobs are sized by it, within the run's limits.
    #[serde(default)]
    pub concurrent_games: u32,
    /// Positions that its networks evaluate in a second, as it measured; 0 if it does not know yet. Jobs are sized by it.
    #[serde(default)]
    pub evals_per_second: f32,
    /// Whether it plays the built-in programs that a run may have as anchors. A worker without it gets neither matches
    /// against them nor audits of such matches.
    #[serde(default)]
    pub programs: bool,
    /// Whether its searches support the parameter `solver`. A worker without it gets no job of a run that uses it.
    #[serde(default)]
    pub solver: bool,
}

/// A leased job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// The lease's identifier; chunks name it.
    pub id: JobId,
    /// The run.
    pub run: RunName,
    /// How long the lease lasts after the last heartbeat, in seconds.
    pub lease_seconds: u32,
    /// How long to wait between two heartbeats, in seconds.
    pub heartbeat_seconds: u32,
    /// The seed from which every game's seed follows (`Seed::of_game`).
    pub seed: Seed,
    /// What to play.
    pub work: Work,
    /// The networks that the work needs; of a match, the candidate first.
    pub networks: Vec<NetworkRef>,
    /// The public key of the run's signatures, if its networks are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<RunKey>,
    /// Sentences that the worker shows the contributor, for example that an update will be needed by a date.
    #[serde(default)]
    pub notices: Vec<String>,
}

/// A network that a job needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkRef {
    /// Its file's SHA-256.
    pub hash: ContentHash,
    /// Its number in the run.
    pub number: NetworkNumber,
    /// Its file's size in bytes.
    pub bytes: u64,
    /// The file's signature by the run's key, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// What a job asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// Games 0 to `games` - 1 of one network with itself.
    SelfPlay {
        /// The SHA-256 of the network's file.
        network: ContentHash,
        /// The number of games.
        games: u32,
        /// Where the first games begin: game `i` at opening `i`. Games beyond the list begin at the standard position.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        openings: Vec<Opening>,
        /// How they are played.
        params: SelfPlayParams,
    },
    /// One game from each puzzle; game `i` begins at puzzle `i`.
    Puzzles {
        /// The SHA-256 of the network's file.
        network: ContentHash,
        /// The puzzles, one for each game.
        puzzles: Vec<Puzzle>,
        /// How games are played.
        params: PuzzleParams,
    },
    /// Two games from each opening: of pair `i`, the candidate is White in game `2i` and Black in
    /// game `2i + 1`.
    Match {
        /// The match's number.
        match_id: MatchId,
        /// The SHA-256 of the candidate's file: the network whose wins the tally counts.
        candidate: ContentHash,
        /// The SHA-256 of the opponent's file.
        opponent: ContentHash,
        /// The pairs to play.
        pairs: Vec<PairTask>,
        /// How games are played.
        params: MatchParams,
    },
    /// Searches of games that another contributor has played, made again: task `i` gives game `i`.
    Audit {
        /// The networks and parameters with which the games were played.
        rules: AuditedRules,
        /// The searches to make again, game by game.
        tasks: Vec<AuditTask>,
    },
}

/// One pair of a match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PairTask {
    /// The pair's number within the match.
    pub pair: u32,
    /// Where both games begin.
    pub opening: Opening,
}

/// A line of an opening book.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Opening {
    /// The position as FEN; the standard start if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fen: Option<String>,
    /// Moves from there, in UCI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<String>,
}

impl Opening {
    /// The start of the games that this opening gives.
    ///
    /// # Errors
    ///
    /// [`OpeningError`] if the position or a move is not legal.
    pub fn start(&self) -> Result<GameStart, OpeningError> {
        let mut start = GameStart {
            fen: self.fen.clone(),
            moves: Vec::new(),
        };
        start.moves = play(start.history()?, &self.moves)?;
        Ok(start)
    }
}

/// Moves in UCI that are played one after the other in a game.
pub(super) fn play(mut game: GameHistory, texts: &[String]) -> Result<Vec<Move>, OpeningError> {
    let mut moves = Vec::with_capacity(texts.len());
    for text in texts {
        let refuse = || OpeningError::Move(text.chars().take(20).collect());
        let m = parse_uci(game.position(), text).ok_or_else(refuse)?;
        game.push(m);
        moves.push(m);
    }
    Ok(moves)
}

/// The start of self-play game `index` of a job with these openings.
///
/// # Errors
///
/// [`OpeningError`] if its opening is not legal.
pub fn selfplay_start(openings: &[Opening], index: u32) -> Result<GameStart, OpeningError> {
    let opening = openings.get(index as usize);
    opening.map_or_else(|| Ok(GameStart::default()), Opening::start)
}

/// An opening that cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The position is bad.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is not legal where it stands.
    #[error("the opening's move {0:?} is not legal there")]
    Move(String),
}

impl Work {
    /// How many games the work asks for: no chunk may count more.
    pub const fn games(&self) -> u32 {
        match self {
            Self::SelfPlay { games, .. } => *games,
            Self::Puzzles { puzzles, .. } => puzzles.len() as u32,
            Self::Match { pairs, .. } => 2 * pairs.len() as u32,
            Self::Audit { tasks, .. } => tasks.len() as u32,
        }
    }

    /// How many of the last moves before its first search a game has drawn from the bare policy.
    pub fn drawn_plies(&self, game: &GameRecord) -> u32 {
        match self {
            Self::SelfPlay { openings, .. } => {
                let opening = openings.get(game.index as usize);
                let given = opening.map_or(0, |opening| opening.moves.len());
                game.start.moves.len().saturating_sub(given) as u32
            }
            Self::Puzzles { .. } | Self::Match { .. } | Self::Audit { .. } => 0,
        }
    }

    /// The networks that the work needs, the candidate first.
    pub fn networks(&self) -> Vec<ContentHash> {
        match self {
            Self::SelfPlay { network, .. } | Self::Puzzles { network, .. } => vec![*network],
            Self::Match {
                candidate,
                opponent,
                ..
            } => vec![*candidate, *opponent],
            Self::Audit { rules, .. } => rules.networks(),
        }
    }

    /// The kind as text, for people and metrics.
    pub const fn kind(&self) -> WorkKind {
        match self {
            Self::SelfPlay { .. } => WorkKind::SelfPlay,
            Self::Puzzles { .. } => WorkKind::Puzzles,
            Self::Match { .. } => WorkKind::Match,
            Self::Audit { .. } => WorkKind::Audit,
        }
    }
}

names! {
    /// The kind of a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum WorkKind {
        /// Self-play games.
        SelfPlay = "self-play",
        /// Puzzle games.
        Puzzles = "puzzles",
        /// Match games.
        Match = "match",
        /// Searches made again.
        Audit = "audit",
    }
}

impl WorkKind {
    /// Whether its positions are for training.
    pub const fn is_training(self) -> bool {
        matches!(self, Self::SelfPlay | Self::Puzzles)
    }
}

/// A worker's heartbeat: it still plays the job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Heartbeat {
    /// Games of the job that are finished so far.
    pub games_finished: u32,
    /// Positions searched for the job so far.
    pub positions: u64,
    /// Positions that its networks evaluate in a second at present; 0 if it does not know.
    pub evals_per_second: f32,
    /// The newest moves of one of the job's games, if the contributor lets people watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<SharedBoard>,
}

/// The coordinator's answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReply {
    /// How long the lease lasts from now, in seconds.
    pub lease_seconds: u32,
    /// Whether to play on.
    pub instruction: Instruction,
    /// Sentences that the worker shows the contributor, for example that its games are held, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// What a worker should do with the job in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instruction {
    /// Play on.
    Continue,
    /// Upload what is finished, drop the rest: the match is decided or the run paused.
    Abandon,
}

/// The acknowledgement of a chunk: it is stored durably, and in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChunkReceipt {
    /// The chunk's SHA-256.
    pub hash: ContentHash,
    /// Its number in the ledger; later chunks have higher ones.
    pub sequence: i64,
    /// Its games.
    pub games: u32,
    /// Its positions.
    pub positions: u32,
    /// Whether the coordinator had the chunk already; it counts once.
    pub duplicate: bool,
}

/// One chunk in ledger order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChunkRow {
    /// Its number in the ledger; later chunks have higher ones.
    pub sequence: i64,
    /// Its SHA-256.
    pub hash: ContentHash,
    /// The kind of its job.
    pub kind: WorkKind,
    /// The number of the network that played; of a match, the candidate's.
    pub network: NetworkNumber,
    /// Its file's size in bytes.
    pub bytes: u64,
    /// Its games.
    pub games: u32,
    /// Its positions.
    pub positions: u32,
    /// When it was acknowledged, RFC 3339.
    pub accepted_at: String,
    /// Whether it is held out of training, matches and ratings now; `GET /holds` lists the changes.
    #[serde(default)]
    pub held: bool,
}

/// A page of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChunkPage {
    /// Chunks after the cursor, in ledger order.
    pub chunks: Vec<ChunkRow>,
    /// The cursor for the next page (`after=`); the same as before if there was nothing.
    pub next: i64,
    /// Whether the ledger has more chunks after these.
    pub more: bool,
}
