//! From leases to ratings: jobs, chunks, archives, matches, games, puzzles.

use std::sync::Arc;

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
use crate::db::rooms::Games;
use crate::db::sql::accept::Sent;
use crate::db::sql::beats::Beat;
use crate::db::sql::doors::{read, write};
use crate::db::sql::jobs::Asked;
use crate::db::sql::{
    SqlDatabase, archives, chunks, forgotten, games, leases, matches, puzzles, ratings, rollback,
};
use crate::telemetry::{self, LedgerUse};

#[async_trait]
impl Games for SqlDatabase {
    async fn lease(&self, request: LeaseRequest, now: Timestamp) -> Result<Option<Job>> {
        let leases = self.queues()?.leases;
        telemetry::ledger(LedgerUse::Write, "jobs", leases.ask(Asked { request, now })).await
    }

    async fn heartbeat(
        &self,
        user: UserId,
        job: JobId,
        heartbeat: Heartbeat,
        now: Timestamp,
    ) -> Result<HeartbeatReply> {
        let beat = Beat {
            user,
            job,
            heartbeat,
            now,
        };
        let beats = self.queues()?.beats;
        telemetry::ledger(LedgerUse::Write, "heartbeats", beats.ask(beat)).await
    }

    async fn give_back(&self, user: UserId, job: JobId, now: Timestamp) -> Result<()> {
        write!(self, leases::give_back(user, job, now))
    }

    async fn forget_jobs(
        &self,
        before: Timestamp,
        after: Option<JobPlace>,
    ) -> Result<JobsForgotten> {
        write!(self, forgotten::jobs(before, after))
    }

    async fn outlast_outage(&self, now: Timestamp) -> Result<u64> {
        write!(self, leases::outlast(now))
    }

    async fn leased_job(&self, job: JobId) -> Result<LeasedJob> {
        // Timed by the batch, as what is read.
        self.queues()?.leased.ask(job).await
    }

    async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>> {
        read!(self.readers, chunks::receipt(hash))
    }

    async fn accept_chunk(&self, chunk: ChunkDraft, now: Timestamp) -> Result<ChunkAccepted> {
        let chunks = self.queues()?.chunks;
        let chunk = Arc::new(chunk);
        telemetry::ledger(LedgerUse::Write, "chunks", chunks.ask(Sent { chunk, now })).await
    }

    async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage> {
        read!(self.readers, chunks::page(run, after, limit))
    }

    async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)> {
        read!(self.readers, chunks::one(hash))
    }

    async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>> {
        read!(self.readers, archives::archivable(run, asked))
    }

    async fn add_archive(&self, archive: ArchiveDraft, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        write!(self, archives::add(archive, actor, now))
    }

    async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>> {
        read!(self.readers, archives::find(chunk))
    }

    async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>> {
        read!(self.readers, archives::blobs(kind))
    }

    async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId> {
        let actor = actor.to_owned();
        write!(self, matches::open_rating(m, actor, now))
    }

    async fn open_next_rating(&self, m: MatchDraft, now: Timestamp) -> Result<Option<MatchId>> {
        write!(self, matches::open_next_rating(m, now))
    }

    async fn matches(
        &self,
        run: &RunName,
        before: Option<MatchId>,
        limit: u32,
    ) -> Result<Vec<MatchInfo>> {
        read!(self.readers, matches::list(run, before, limit))
    }

    async fn match_info(&self, id: MatchId) -> Result<MatchInfo> {
        read!(self.readers, matches::info(id))
    }

    async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>> {
        read!(self.readers, games::list(&filter))
    }

    async fn game(&self, id: GameId) -> Result<GameInfo> {
        read!(self.readers, games::one(id))
    }

    async fn games_beside(&self, game: &GameInfo) -> Result<[Option<GameId>; 2]> {
        read!(self.readers, games::beside(game))
    }

    async fn rating_basis(&self, run: &RunName) -> Result<RatingBasis> {
        read!(self.readers, ratings::basis(run))
    }

    async fn rating_basis_of_ended(&self, run: &RunName) -> Result<RatingBasis> {
        read!(self.readers, ratings::basis_of_ended(run))
    }

    async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, RatingBasis)> {
        let run = run.clone();
        write!(self, ratings::begin_fit(run))
    }

    async fn runs_to_rate(&self) -> Result<Vec<RunName>> {
        read!(self.readers, ratings::waiting())
    }

    async fn store_ratings(
        &self,
        run: &RunName,
        fit: FitNumber,
        ratings: Vec<(NetworkNumber, Rating)>,
        now: Timestamp,
    ) -> Result<bool> {
        let run = run.clone();
        write!(self, ratings::replace(run, fit, ratings, now))
    }

    async fn ratings(&self, run: &RunName) -> Result<Vec<RatingRow>> {
        read!(self.readers, ratings::list(run))
    }

    async fn rating_state(&self, run: &RunName) -> Result<RatingState> {
        read!(self.readers, within check, ratings::state(run))
    }

    async fn roll_back(
        &self,
        run: &RunName,
        rollback: Rollback,
        now: Timestamp,
    ) -> Result<Vec<Event>> {
        let run = run.clone();
        write!(self, rollback::roll_back(run, rollback, now))
    }

    async fn add_puzzles(
        &self,
        set: PuzzleSetDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<PuzzleSetInfo> {
        let actor = actor.to_owned();
        write!(self, puzzles::add(set, actor, now))
    }

    async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>> {
        read!(self.readers, puzzles::sets(run))
    }

    async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle> {
        read!(self.readers, puzzles::one(run, id))
    }

    async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore> {
        read!(self.readers, puzzles::score_in(run, network))
    }
}
