//! From leases to ratings: jobs, chunks, archives, matches, games, puzzles.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkPage, ChunkReceipt, ChunkRow};
use rookery_common::protocol::matches::{GameInfo, MatchInfo, MatchPurpose, RatingRow};
use rookery_common::protocol::networks::{PuzzleScore, Rating};
use rookery_common::puzzle::Puzzle;

use crate::blobs::BlobKind;
use crate::db::error::Result;
use crate::db::models::{archives, chunks, games, leases, matches, puzzles, ratings};
use crate::db::sql::Ledger;
use crate::db::sql::transactions::{in_read, in_write};
use crate::db::types::{
    Archivable, ArchiveDraft, ArchivedChunk, ChunkPlace, FitNumber, GameFilter, JobCursor,
    JobsForgotten, MatchDraft, PuzzleSetDraft, PuzzleSetInfo, RatingBasis, RatingState, Rollback,
};
use crate::db::use_cases::{retention, rollback};
use crate::openings::Opening;

impl Ledger {
    /// Takes a job back; its unfinished work may go to others at once.
    pub async fn give_back(&self, user: UserId, job: JobId, now: Timestamp) -> Result<()> {
        in_write!(self, leases::give_back(user, job, now))
    }

    /// Looks at some jobs whose leases ended before a moment and of which nothing came, from a place
    /// on, and removes those that nothing refers to.
    pub async fn forget_jobs(
        &self,
        before: Timestamp,
        after: Option<JobCursor>,
    ) -> Result<JobsForgotten> {
        in_write!(self, part "forgotten", retention::jobs(before, after))
    }

    /// Leaves the time since any worker was last heard out of the leases that lasted then: workers
    /// that could not reach a coordinator play on. The answer is how many leases those are.
    pub async fn outlast_outage(&self, now: Timestamp) -> Result<u64> {
        in_write!(self, leases::outlast(now))
    }

    /// The receipt of a chunk that is in the ledger, and who sent it.
    pub async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>> {
        in_read!(self.readers, chunks::receipt(hash))
    }

    /// Chunks of a run after the cursor, in ledger order.
    pub async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage> {
        in_read!(self.readers, chunks::page(run, after, limit))
    }

    /// One chunk, with its run.
    pub async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)> {
        in_read!(self.readers, chunks::one(hash))
    }

    /// Chunks of a run that may go into an archive and are in none, in ledger order.
    pub async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>> {
        in_read!(self.readers, archives::archivable(run, asked))
    }

    /// Enters a stored archive, and notes it in the operator log; a chunk that is in another already is a
    /// conflict.
    pub async fn add_archive(
        &self,
        archive: ArchiveDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let actor = actor.to_owned();
        in_write!(self, archives::add(archive, actor, now))
    }

    /// Where a chunk's bytes are if it is in an archive.
    pub async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>> {
        in_read!(self.readers, archives::find(chunk))
    }

    /// All blobs of a kind that must be in the store, in no order.
    pub async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>> {
        in_read!(self.readers, archives::blobs(kind))
    }

    /// Opens a match that only adds to the ratings.
    pub async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId> {
        let actor = actor.to_owned();
        in_write!(self, matches::open_rating(m, actor, now))
    }

    /// Opens a match that only adds to the ratings, unless one is open in this run already.
    pub async fn open_next_rating(&self, m: MatchDraft, now: Timestamp) -> Result<Option<MatchId>> {
        in_write!(self, matches::open_next_rating(m, now))
    }

    /// Matches of a run, newest first: all, or those that were opened before one.
    pub async fn matches(
        &self,
        run: &RunName,
        before: Option<MatchId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<MatchInfo>> {
        in_read!(self.readers, matches::list(run, before, limit, now))
    }

    /// The newest matches of a run that were opened for one purpose, newest first.
    pub async fn matches_for(
        &self,
        run: &RunName,
        purpose: MatchPurpose,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<MatchInfo>> {
        in_read!(self.readers, matches::newest_for(run, purpose, limit, now))
    }

    /// One match.
    pub async fn match_info(&self, id: MatchId, now: Timestamp) -> Result<MatchInfo> {
        in_read!(self.readers, matches::info(id, now))
    }

    /// Games, newest first.
    pub async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>> {
        in_read!(self.readers, games::list(&filter))
    }

    /// The newest chunk with games whose opening was not looked for, or the newest before one.
    pub async fn next_unnamed(
        &self,
        before: Option<ChunkPlace>,
    ) -> Result<Option<(ChunkPlace, ContentHash)>> {
        in_read!(self.readers, games::next_unnamed(before))
    }

    /// Enters the openings of a chunk's games, in their order, where they are missing.
    pub async fn set_openings(
        &self,
        chunk: ChunkPlace,
        openings: Arc<[Option<Opening>]>,
    ) -> Result<()> {
        in_write!(self, part "openings", games::set_openings(chunk, openings))
    }

    /// One game.
    pub async fn game(&self, id: GameId) -> Result<GameInfo> {
        in_read!(self.readers, games::one(id))
    }

    /// The games before and after one, of its match or else of its run and kind.
    pub async fn games_beside(&self, game: &GameInfo) -> Result<[Option<GameId>; 2]> {
        in_read!(self.readers, games::beside(game))
    }

    /// What the ratings of a run are fitted to.
    pub async fn rating_basis(&self, run: &RunName) -> Result<RatingBasis> {
        in_read!(self.readers, ratings::basis(run))
    }

    /// The same without matches that are still played, of which pairs may be kept back.
    pub async fn rating_basis_of_ended(&self, run: &RunName) -> Result<RatingBasis> {
        in_read!(self.readers, ratings::basis_of_ended(run))
    }

    /// What the ratings of a run are fitted to, and a number for the fit: a later one has seen all
    /// that an earlier one has.
    pub async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, RatingBasis)> {
        let run = run.clone();
        in_write!(self, ratings::begin_fit(run))
    }

    /// Runs whose ratings wait for a fit: games ask for one, or the last one begun was not stored.
    pub async fn runs_to_rate(&self) -> Result<Vec<RunName>> {
        in_read!(self.readers, ratings::waiting())
    }

    /// Replaces the ratings of a run, unless a later fit has done so; says whether it did.
    pub async fn store_ratings(
        &self,
        run: &RunName,
        fit: FitNumber,
        ratings: Vec<(NetworkNumber, Rating)>,
        now: Timestamp,
    ) -> Result<bool> {
        let run = run.clone();
        in_write!(self, ratings::replace(run, fit, ratings, now))
    }

    /// Ratings of a run, best first.
    pub async fn ratings(&self, run: &RunName) -> Result<Vec<RatingRow>> {
        in_read!(self.readers, ratings::list(run))
    }

    /// The same with what they follow from, of one moment.
    pub async fn rating_state(&self, run: &RunName) -> Result<RatingState> {
        in_read!(self.readers, within check, ratings::state(run))
    }

    /// Makes an earlier network best again, unless best is another by now or the earlier one was never
    /// promoted; the networks promoted after it are demoted. The answer is what happened, if anything.
    pub async fn roll_back(
        &self,
        run: &RunName,
        rollback: Rollback,
        now: Timestamp,
    ) -> Result<Vec<Event>> {
        let run = run.clone();
        in_write!(self, rollback::roll_back(run, rollback, now))
    }

    /// Adds a set of puzzles, and notes it in the operator log; puzzles that the run has already are passed
    /// over, and so is a set that it has.
    pub async fn add_puzzles(
        &self,
        set: PuzzleSetDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<PuzzleSetInfo> {
        let actor = actor.to_owned();
        in_write!(self, puzzles::add(set, actor, now))
    }

    /// Puzzle sets of a run.
    pub async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>> {
        in_read!(self.readers, puzzles::sets(run))
    }

    /// One puzzle of a run.
    pub async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle> {
        in_read!(self.readers, puzzles::one(run, id))
    }

    /// How the networks of a run did at puzzles that have these numbers.
    pub async fn puzzle_scores(
        &self,
        run: &RunName,
        numbers: RangeInclusive<NetworkNumber>,
    ) -> Result<BTreeMap<NetworkNumber, PuzzleScore>> {
        in_read!(self.readers, puzzles::scores_in(run, &numbers))
    }

    /// How a network did at puzzles.
    pub async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore> {
        in_read!(self.readers, puzzles::score_in(run, network))
    }
}
