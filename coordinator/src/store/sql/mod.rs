//! The ledger in SQL: SQLite or PostgreSQL, chosen by a URL, by the same statements.
//!
//! ```text
//! dialect ──> connect ──> writer: one connection, groups of operations ──> users, jobs, chunks, …
//!                    └──> pool of readers ──────────────────────────────────────┘
//! ```
//!
//! Several coordinators may share one PostgreSQL: their groups follow each other by a lock of the
//! database, so that nothing is decided twice (`dialect`). What was answered was synced to disk.

pub mod announcements;
mod archives;
mod audit;
mod audits;
mod beats;
mod check;
mod chunks;
mod connect;
mod dialect;
mod drift;
mod exports;
mod games;
mod holds;
mod invitations;
mod jobs;
mod keys;
mod leases;
mod matches;
mod metrics;
mod networks;
mod opinions;
mod outlook;
mod pairs;
mod principals;
mod puzzles;
mod quarantine;
mod ratings;
mod rollback;
mod rows;
mod runs;
mod statement;
mod users;
mod verdicts;
mod writer;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{
    ChunkPage, ChunkReceipt, ChunkRow, Heartbeat, HeartbeatReply, Job,
};
use rookery_common::protocol::matches::{GameInfo, MatchInfo, RatingRow};
use rookery_common::protocol::networks::{ExportReceipt, NetworkInfo, PuzzleScore, Rating};
use rookery_common::protocol::people::{AuditEntry, ContributorInfo};
use rookery_common::protocol::runs::{MetricPoint, RunInfo, RunPatch};
use rookery_common::protocol::trust::{HoldPage, TrustInfo};
use rookery_common::puzzle::Puzzle;
use rookery_common::signing::{RunKey, RunKeyInfo, Signature};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyPool};

use super::model::{
    Archivable, ArchiveDraft, ArchivedChunk, ChunkAccepted, ChunkDraft, Discrepancy, ExportDraft,
    FitNumber, GameFilter, HeadToHead, Intake, InvitationDraft, InvitationInfo, LeaseRequest,
    LeasedJob, MatchDraft, NetworkDraft, NetworkName, Principal, Pulse, PuzzleSetDraft,
    PuzzleSetInfo, Rollback, RunDraft, Standing, TokenDraft, TokenInfo, UserDraft, WorkerInfo,
};
use super::trust::{AuditPlan, HoldEffects, HoldOrder, UnplannedAudit};
use super::{NetworkSubmitted, Result, Store, StoreError};
use crate::blobs::BlobKind;
use crate::telemetry;
use crate::tokens::TokenHash;
use crate::trust::drift::Sample;
use announcements::{Announcements, Replica};
use beats::{Beat, Beats};
use connect::Database;
use principals::Principals;
use writer::Writer;

use dialect::Dialect;

pub use dialect::{is_temporary, shown};

/// Lost connections that one read may meet: each connection of the pool once.
const LOST: usize = 9;

/// The ledger in an SQL database.
pub struct SqlStore {
    readers: AnyPool,
    database: Database,
    /// This process among the coordinators of a PostgreSQL.
    replica: Option<Replica>,
    writer: Mutex<Option<Writing>>,
    principals: Principals,
}

/// What writes until the store is closed.
struct Writing {
    writer: Writer,
    beats: Beats,
    task: tokio::task::JoinHandle<()>,
}

impl SqlStore {
    /// Opens the ledger at `url` (`sqlite:PATH` or `postgres://USER@HOST/DATABASE`), creates an
    /// SQLite file if it is missing, and brings the database to this build's schema. A server
    /// that does not answer yet is waited for as long as `patience` lasts.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached or opened, is no ledger, or was written by a newer build.
    pub async fn open(url: &str, patience: Duration) -> Result<Self> {
        let database = Database::new(url)?;
        let connected = database.connect_patiently(patience).await;
        let mut connection = connected.map_err(|error| database.explain(error))?;
        database.dialect.schema().run(&mut connection).await?;
        let readers = database.readers();
        let replica = (database.dialect == Dialect::Postgres).then(|| Replica::new(url));
        let (writer, task) = Writer::start(database.clone(), connection);
        let beats = Beats::start(writer.clone());
        Ok(Self {
            readers,
            replica,
            writer: Mutex::new(Some(Writing {
                writer,
                beats,
                task,
            })),
            principals: Principals::default(),
            database,
        })
    }

    async fn reader(&self) -> Result<PoolConnection<Any>> {
        self.readers.acquire().await.map_err(|error| match error {
            sqlx::Error::PoolClosed => StoreError::Closed,
            other => other.into(),
        })
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> Result<Writer> {
        let writer = self.writing().as_ref().map(|w| w.writer.clone());
        writer.ok_or(StoreError::Closed)
    }

    fn beats(&self) -> Result<Beats> {
        let beats = self.writing().as_ref().map(|w| w.beats.clone());
        beats.ok_or(StoreError::Closed)
    }
}

/// Queues an operation: `write!(self, module::function(arguments))`.
macro_rules! write {
    ($self:ident, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let writer = $self.writer()?;
        let work = writer.run(move |conn| Box::pin($module::$function(conn, $($argument),*)));
        telemetry::ledger("write", stringify!($module), work).await
    }};
}

/// Reads: `read!(self, module::function(arguments))`. A connection that turns out to be lost is
/// thrown away and the next one is tried.
macro_rules! read {
    ($self:ident, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let read = async {
            let mut lost = 0;
            loop {
                let mut connection = $self.reader().await?;
                match $module::$function(&mut connection, $($argument),*).await {
                    Err(error) if error.is_temporary() && lost < LOST => {
                        lost += 1;
                        drop(connection.detach());
                    }
                    answer => break answer,
                }
            }
        };
        telemetry::ledger("read", stringify!($module), read).await
    }};
}

#[async_trait]
impl Store for SqlStore {
    async fn create_user(&self, user: UserDraft, now: Timestamp) -> Result<UserId> {
        write!(self, users::create(user, now))
    }

    async fn add_token(&self, user: &str, token: TokenDraft, now: Timestamp) -> Result<()> {
        let user = user.to_owned();
        write!(self, users::add_token(user, token, now))
    }

    async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>> {
        read!(self, users::tokens(user))
    }

    async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>> {
        read!(self, users::tokens_of(user.0))
    }

    async fn issue_token(&self, user: UserId, token: TokenDraft, now: Timestamp) -> Result<i64> {
        write!(self, users::issue(user, token, now))
    }

    async fn rotate_token(
        &self,
        old: i64,
        new: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        let issued = write!(self, users::rotate(old, new, actor, now));
        self.principals.forget();
        issued
    }

    async fn revoke_token(&self, token: i64, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        let revoked = write!(self, users::revoke(token, actor, now));
        self.principals.forget();
        revoked
    }

    async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId> {
        write!(self, invitations::redeem(user, invitation, now))
    }

    async fn create_invitation(
        &self,
        invitation: InvitationDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        write!(self, invitations::create(invitation, actor, now))
    }

    async fn invitations(&self) -> Result<Vec<InvitationInfo>> {
        read!(self, invitations::all())
    }

    async fn revoke_invitation(&self, invitation: i64, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        write!(self, invitations::revoke(invitation, actor, now))
    }

    async fn audit(&self, before: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        read!(self, audit::page(before, limit))
    }

    async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        read!(self, keys::of_run(run))
    }

    async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (run, actor) = (run.clone(), actor.to_owned());
        write!(self, keys::add(run, key, endorsement, actor, now))
    }

    async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        write!(self, keys::sign(run, key, signatures, now))
    }

    async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>> {
        read!(self, keys::signature(run, network, key))
    }

    async fn set_standing(
        &self,
        user: &str,
        standing: Standing,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        let set = write!(self, users::set_standing(user, standing, actor, now));
        self.principals.forget();
        set
    }

    async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>> {
        let asked = match self.principals.get(token) {
            Ok(principal) => return Ok(Some(principal)),
            Err(asked) => asked,
        };
        let principal = read!(self, users::principal(token))?;
        if let Some(principal) = &principal {
            self.principals.keep(token, principal, asked);
        }
        Ok(principal)
    }

    async fn contributors(
        &self,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<Vec<ContributorInfo>> {
        read!(self, users::contributors(run, now))
    }

    async fn pulse(&self, now: Timestamp) -> Result<Pulse> {
        read!(self, users::pulse(now))
    }

    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerInfo>> {
        read!(self, users::workers(since))
    }

    async fn create_run(&self, run: RunDraft, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        write!(self, runs::create(run, actor, now))
    }

    async fn runs(&self) -> Result<Vec<RunInfo>> {
        read!(self, runs::all())
    }

    async fn run(&self, run: &RunName) -> Result<RunInfo> {
        read!(self, runs::info(run))
    }

    async fn patch_run(
        &self,
        run: &RunName,
        patch: RunPatch,
        actor: &str,
        now: Timestamp,
    ) -> Result<RunInfo> {
        let (run, actor) = (run.clone(), actor.to_owned());
        write!(self, runs::patch(run, patch, actor, now))
    }

    async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake> {
        read!(self, runs::intake(run, since))
    }

    async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted> {
        write!(self, networks::submit(network, now))
    }

    async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        read!(self, networks::all(run))
    }

    async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo> {
        read!(self, networks::one(run, name))
    }

    async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo> {
        read!(self, networks::by_hash(hash))
    }

    async fn add_export(&self, export: ExportDraft, now: Timestamp) -> Result<ExportReceipt> {
        write!(self, exports::add(export, now))
    }

    async fn lease(&self, request: LeaseRequest, now: Timestamp) -> Result<Option<Job>> {
        write!(self, jobs::lease(request, now))
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
        self.beats()?.beat(beat).await
    }

    async fn give_back(&self, user: UserId, job: JobId, now: Timestamp) -> Result<()> {
        write!(self, leases::give_back(user, job, now))
    }

    async fn leased_job(&self, job: JobId) -> Result<LeasedJob> {
        read!(self, leases::leased(job))
    }

    async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>> {
        read!(self, chunks::receipt(hash))
    }

    async fn accept_chunk(&self, chunk: ChunkDraft, now: Timestamp) -> Result<ChunkAccepted> {
        write!(self, chunks::accept(chunk, now))
    }

    async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage> {
        read!(self, chunks::page(run, after, limit))
    }

    async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)> {
        read!(self, chunks::one(hash))
    }

    async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>> {
        read!(self, archives::archivable(run, asked))
    }

    async fn add_archive(&self, archive: ArchiveDraft, now: Timestamp) -> Result<()> {
        write!(self, archives::add(archive, now))
    }

    async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>> {
        read!(self, archives::find(chunk))
    }

    async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>> {
        read!(self, archives::blobs(kind))
    }

    async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId> {
        let actor = actor.to_owned();
        write!(self, matches::open_rating(m, actor, now))
    }

    async fn matches(&self, run: &RunName, limit: u32) -> Result<Vec<MatchInfo>> {
        read!(self, matches::list(run, limit))
    }

    async fn match_info(&self, id: MatchId) -> Result<MatchInfo> {
        read!(self, matches::info(id))
    }

    async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>> {
        read!(self, games::list(&filter))
    }

    async fn game(&self, id: GameId) -> Result<GameInfo> {
        read!(self, games::one(id))
    }

    async fn head_to_head(&self, run: &RunName) -> Result<Vec<HeadToHead>> {
        read!(self, ratings::head_to_head(run))
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

    async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, Vec<HeadToHead>)> {
        let run = run.clone();
        write!(self, ratings::begin_fit(run))
    }

    async fn ratings(&self, run: &RunName) -> Result<Vec<RatingRow>> {
        read!(self, ratings::list(run))
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

    async fn add_puzzles(&self, set: PuzzleSetDraft, now: Timestamp) -> Result<PuzzleSetInfo> {
        write!(self, puzzles::add(set, now))
    }

    async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>> {
        read!(self, puzzles::sets(run))
    }

    async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle> {
        read!(self, puzzles::one(run, id))
    }

    async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore> {
        read!(self, puzzles::score_in(run, network))
    }

    async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        write!(self, metrics::add(run, points, now))
    }

    async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>> {
        read!(self, metrics::list(run, after, limit))
    }

    async fn announce(&self, events: &[Event]) -> Result<()> {
        let Some(replica) = &self.replica else {
            return Ok(());
        };
        for payload in replica.payloads(events) {
            read!(self, announcements::notify(&payload))?;
        }
        Ok(())
    }

    async fn announcements(&self) -> Result<Option<Announcements>> {
        match &self.replica {
            Some(replica) => replica.listen().await.map(Some),
            None => Ok(None),
        }
    }

    async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>> {
        write!(self, audits::unplanned(now))
    }

    async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()> {
        write!(self, audits::plan(audit, plan))
    }

    async fn samples(&self, run: &RunName) -> Result<Vec<Sample>> {
        read!(self, drift::samples(run))
    }

    async fn suspect(&self, run: &RunName, user: UserId, now: Timestamp) -> Result<()> {
        let run = run.clone();
        write!(self, drift::suspect(run, user, now))
    }

    async fn trust(&self, user: &str) -> Result<TrustInfo> {
        read!(self, quarantine::trust(user))
    }

    async fn quarantine(
        &self,
        user: &str,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects> {
        let user = user.to_owned();
        write!(self, quarantine::order_by_name(user, order, now))
    }

    async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects> {
        write!(self, holds::hold_chunk(chunk, order, now))
    }

    async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage> {
        read!(self, holds::page(run, after, limit))
    }

    async fn check(&self, run: &RunName) -> Result<Vec<Discrepancy>> {
        read!(self, check::all(run))
    }

    async fn back_up(&self, file: &Path) -> Result<()> {
        self.database.back_up(file).await
    }

    async fn ping(&self) -> Result<()> {
        read!(self, users::ping())
    }

    async fn close(&self) {
        let writing = self.writing().take();
        if let Some(Writing {
            writer,
            beats,
            task,
        }) = writing
        {
            drop((writer, beats));
            if let Err(error) = task.await {
                tracing::error!(%error, "The writer ended badly.");
            }
        }
        self.readers.close().await;
    }
}
