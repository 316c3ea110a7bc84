//! Chunks with their games, matches, what ratings are fitted to, and archives.

use rookery_common::chess::{GameResult, Termination};
use rookery_common::chunk::{SearchSums, Side};
use rookery_common::ids::{
    ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, Seed, UserId,
};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkReceipt, WorkKind};
use rookery_common::protocol::matches::RatingRow;
use rookery_common::rating::AnchorElo;
use serde::{Deserialize, Serialize};

use crate::db::types::AuditOpinion;
use crate::openings::{Opening, OpeningFilter};
use crate::trust::verdict::Auditor;

/// A chunk that is verified and stored, to be entered into the ledger.
#[derive(Debug, Clone)]
pub struct ChunkDraft {
    pub hash: ContentHash,
    pub bytes: u64,
    /// Who sent it.
    pub user: UserId,
    pub job: JobId,
    /// Where it was computed.
    pub backend: String,
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
    pub result: GameResult,
    pub termination: Termination,
    /// Searched plies.
    pub plies: u32,
    /// What its first moves are called.
    pub opening: Option<Opening>,
    /// The fingerprint that must be unique in the run, where it must.
    pub fingerprint: Option<[u8; 16]>,
    pub detail: GameFactDetail,
}

/// What is particular to a kind of game.
#[derive(Debug, Clone)]
pub enum GameFactDetail {
    /// Nothing.
    SelfPlay,
    Puzzle {
        id: String,
        solved: bool,
        /// Its rating, 0 if it has none.
        rating: u32,
        themes: Vec<String>,
    },
    /// The pair and the candidate's side.
    Match { pair: u32, candidate: Side },
    /// Nothing: searches of another contributor's game, made again.
    Audit,
}

#[derive(Debug, Clone)]
pub struct ChunkAccepted {
    pub receipt: ChunkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
    pub run: RunName,
    /// Whether the ratings should be fitted again.
    pub ratings: RatingsState,
    /// Whether it is new, and held because its contributor is in quarantine.
    pub is_held: bool,
}

/// Whether ratings follow from the games that are in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatingsState {
    /// They are recent enough.
    Fresh,
    /// They should be fitted again.
    Stale,
}

#[derive(Debug, Clone)]
pub struct MatchDraft {
    pub run: RunName,
    /// The network whose result is counted.
    pub candidate: NetworkNumber,
    pub opponent: NetworkNumber,
    pub pairs: u32,
    /// The order of openings.
    pub seed: Seed,
}

/// Which games to list, and in which order.
#[derive(Debug, Clone, Default)]
pub struct GameFilter {
    pub run: Option<RunName>,
    pub match_id: Option<MatchId>,
    /// Only of this network, on either side.
    pub network: Option<NetworkNumber>,
    pub kind: Option<WorkKind>,
    /// Only those that ended so, among the newest 200,000 or those before `before`, as the two that follow.
    pub result: Option<GameResult>,
    /// Only those that ended for this reason.
    pub termination: Option<Termination>,
    /// Only those of so many plies, the lower and the upper end included.
    pub plies: Option<(u32, u32)>,
    /// Only those that began so; the filter needs a run.
    pub opening: Option<OpeningFilter>,
    /// Only those that the contributor of this name sent.
    pub contributor: Option<String>,
    pub sort: GameSort,
    /// Only games before this one.
    pub before: Option<GameId>,
    pub limit: u32,
}

impl GameFilter {
    /// Whether it asks for what no index finds.
    pub const fn is_searched(&self) -> bool {
        let by_other = self.network.is_some() || self.contributor.is_some() || self.kind.is_some();
        self.result.is_some()
            || self.termination.is_some()
            || self.plies.is_some()
            || (self.opening.is_some() && by_other)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GameSort {
    /// The newest first.
    #[default]
    Newest,
    /// Those of most plies first, of the newest [`GameSort::GAMES`]. Those of a contributor are in the newest
    /// [`GameSort::CHUNKS`].
    Longest,
    /// Those of fewest plies first, of the same.
    Shortest,
}

impl GameSort {
    /// How many of the newest games are looked through for an order that no index has.
    pub const GAMES: u64 = 10_000;
    /// In how many of a contributor's chunks these games are found: each may hold a hundred.
    pub const CHUNKS: u64 = 1_000;
}

#[derive(Debug, Clone)]
pub struct MatchFilter {
    pub run: RunName,
    pub group: Option<MatchGroup>,
    /// Only those in which this network plays.
    pub network: Option<NetworkNumber>,
    pub sort: MatchSort,
    /// Only matches that were opened before this one.
    pub before: Option<MatchId>,
    pub limit: u32,
}

impl MatchFilter {
    /// The newest, at most so many.
    #[must_use]
    pub fn newest(run: &RunName, limit: u32) -> Self {
        Self {
            run: run.clone(),
            group: None,
            network: None,
            sort: MatchSort::Newest,
            before: None,
            limit,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchGroup {
    /// Those that decide whether a candidate becomes best.
    Gates,
    /// Those that only add to the ratings.
    Ratings,
    /// Those that are still played.
    Open,
    /// Gates whose candidate became best.
    Promoted,
    /// Gates whose candidate did not.
    Rejected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchSort {
    /// The newest first.
    #[default]
    Newest,
    /// Those with most games first, of the newest 10,000.
    Games,
    /// Those in which the candidate scored best first, of the newest 10,000.
    Score,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPlace(pub i64);

/// All games between two networks that count in the tallies of their matches, `a` having the lower number; results as `a` sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadToHead {
    /// The network with the lower number.
    pub a: NetworkNumber,
    /// The other.
    pub b: NetworkNumber,
    /// Games that `a` won.
    pub wins: u64,
    pub draws: u64,
    /// Games that `a` lost.
    pub losses: u64,
}

/// What the ratings of a run are fitted to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RatingBasis {
    /// All results between its networks.
    pub results: Vec<HeadToHead>,
    /// The anchors whose Elo is given, in ascending order.
    pub given: Vec<(NetworkNumber, AnchorElo)>,
}

/// The ratings of a run as they are kept, with what they follow from.
#[derive(Debug, Clone, PartialEq)]
pub struct RatingState {
    pub stored: Vec<RatingRow>,
    /// What a fit would be made of now.
    pub basis: RatingBasis,
    /// Whether what is kept was fitted to that.
    pub fitted: Fitting,
}

/// To how much of what there is the ratings of a run were fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitting {
    /// They never were; no game asked for it.
    Never,
    /// They are to be fitted again. So many games came since; none, if what there was has changed, or a fit
    /// was begun and is not stored.
    Due { games: u64 },
    /// To all of it.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FitNumber(pub i64);

#[derive(Debug, Clone, Copy)]
pub struct Archivable {
    /// The newest training positions stay as they are: so many.
    pub window: u64,
    /// Chunks that were accepted later stay as they are.
    pub before: jiff::Timestamp,
    pub limit: u32,
}

/// An archive that is stored, to be entered into the ledger.
#[derive(Debug, Clone)]
pub struct ArchiveDraft {
    pub run: RunName,
    pub hash: ContentHash,
    pub bytes: u64,
    /// The sequence numbers of its chunks, and the byte at which each begins.
    pub chunks: Vec<(i64, u64)>,
}

/// Where an archived chunk's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchivedChunk {
    pub archive: ContentHash,
    /// The byte of the archive at which the chunk begins.
    pub begins: u64,
    pub bytes: u64,
}

/// What came in during a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intake {
    pub chunks: u64,
    pub games: u64,
    pub positions: u64,
}
