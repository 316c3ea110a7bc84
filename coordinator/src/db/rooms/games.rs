//! From leases to ratings: jobs, chunks, archives, matches, games, puzzles.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{
    ChunkPage, ChunkReceipt, ChunkRow, Heartbeat, HeartbeatReply, Job,
};
use rookery_common::protocol::matches::{GameInfo, MatchInfo, RatingRow};
use rookery_common::protocol::networks::{PuzzleScore, Rating};
use rookery_common::puzzle::Puzzle;

use crate::blobs::BlobKind;
use crate::db::error::Result;
use crate::db::model::{
    Archivable, ArchiveDraft, ArchivedChunk, ChunkAccepted, ChunkDraft, FitNumber, GameFilter,
    JobPlace, JobsForgotten, LeaseRequest, LeasedJob, MatchDraft, PuzzleSetDraft, PuzzleSetInfo,
    RatingBasis, RatingState, Rollback,
};

/// From leases to ratings: jobs, chunks, archives, matches, games, puzzles.
#[async_trait]
pub trait Games {
    /// Hands out a job, or nothing.
    async fn lease(&self, request: LeaseRequest, now: Timestamp) -> Result<Option<Job>>;
    /// Extends a lease.
    async fn heartbeat(
        &self,
        user: UserId,
        job: JobId,
        heartbeat: Heartbeat,
        now: Timestamp,
    ) -> Result<HeartbeatReply>;
    /// Takes a job back; its unfinished work may go to others at once.
    async fn give_back(&self, user: UserId, job: JobId, now: Timestamp) -> Result<()>;
    /// Leaves the time since any worker was last heard out of the leases that lasted then: workers
    /// that could not reach a coordinator play on. The answer is how many leases those are.
    async fn outlast_outage(&self, now: Timestamp) -> Result<u64>;
    /// Looks at some jobs whose leases ended before a moment and of which nothing came, from a place
    /// on, and removes those that nothing refers to.
    async fn forget_jobs(
        &self,
        before: Timestamp,
        after: Option<JobPlace>,
    ) -> Result<JobsForgotten>;
    /// What a job allows its chunks to hold.
    async fn leased_job(&self, job: JobId) -> Result<LeasedJob>;
    /// The receipt of a chunk that is in the ledger, and who sent it.
    async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>>;
    /// Enters a verified, stored chunk with its games, moves tallies and decides its match.
    async fn accept_chunk(&self, chunk: ChunkDraft, now: Timestamp) -> Result<ChunkAccepted>;
    /// Chunks of a run after the cursor, in ledger order.
    async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage>;
    /// One chunk, with its run.
    async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)>;
    /// Chunks of a run that may go into an archive and are in none, in ledger order.
    async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>>;
    /// Enters a stored archive, and notes it in the operator log; a chunk that is in another already is a
    /// conflict.
    async fn add_archive(&self, archive: ArchiveDraft, actor: &str, now: Timestamp) -> Result<()>;
    /// Where a chunk's bytes are if it is in an archive.
    async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>>;
    /// All blobs of a kind that must be in the store, in no order.
    async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>>;
    /// Opens a match that only adds to the ratings.
    async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId>;
    /// Opens a match that only adds to the ratings, unless one is open in this run already.
    async fn open_next_rating(&self, m: MatchDraft, now: Timestamp) -> Result<Option<MatchId>>;
    /// Matches of a run, newest first: all, or those that were opened before one.
    async fn matches(
        &self,
        run: &RunName,
        before: Option<MatchId>,
        limit: u32,
    ) -> Result<Vec<MatchInfo>>;
    /// One match.
    async fn match_info(&self, id: MatchId) -> Result<MatchInfo>;
    /// Games, newest first.
    async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>>;
    /// One game.
    async fn game(&self, id: GameId) -> Result<GameInfo>;
    /// The games before and after one, of its match or else of its run and kind.
    async fn games_beside(&self, game: &GameInfo) -> Result<[Option<GameId>; 2]>;
    /// What the ratings of a run are fitted to.
    async fn rating_basis(&self, run: &RunName) -> Result<RatingBasis>;
    /// The same without matches that are still played, of which pairs may be kept back.
    async fn rating_basis_of_ended(&self, run: &RunName) -> Result<RatingBasis>;
    /// What the ratings of a run are fitted to, and a number for the fit: a later one has seen all
    /// that an earlier one has.
    async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, RatingBasis)>;
    /// Runs whose ratings wait for a fit: games ask for one, or the last one begun was not stored.
    async fn runs_to_rate(&self) -> Result<Vec<RunName>>;
    /// Replaces the ratings of a run, unless a later fit has done so; says whether it did.
    async fn store_ratings(
        &self,
        run: &RunName,
        fit: FitNumber,
        ratings: Vec<(NetworkNumber, Rating)>,
        now: Timestamp,
    ) -> Result<bool>;
    /// Ratings of a run, best first.
    async fn ratings(&self, run: &RunName) -> Result<Vec<RatingRow>>;
    /// The same with what they follow from, of one moment.
    async fn rating_state(&self, run: &RunName) -> Result<RatingState>;
    /// Makes an earlier network best again, unless best is another by now or the earlier one was never
    /// promoted; the networks promoted after it are demoted. The answer is what happened, if anything.
    async fn roll_back(
        &self,
        run: &RunName,
        rollback: Rollback,
        now: Timestamp,
    ) -> Result<Vec<Event>>;
    /// Adds a set of puzzles, and notes it in the operator log; puzzles that the run has already are passed
    /// over, and so is a set that it has.
    async fn add_puzzles(
        &self,
        set: PuzzleSetDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<PuzzleSetInfo>;
    /// Puzzle sets of a run.
    async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>>;
    /// One puzzle of a run.
    async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle>;
    /// How a network did at puzzles.
    async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore>;
}
