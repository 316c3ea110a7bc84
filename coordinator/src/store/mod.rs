//! The ledger, behind a trait: every operation is one transaction.
//!
//! ```text
//! api ──> dyn Store ──> sql::SqlStore ──> one writer (batched), many readers
//!            │
//!            └── decide: pure functions of rows (what to hand out, what a lease allows)
//! ```
//!
//! Facts (chunks, games, verdicts, audit rows) are appended and never edited; sums (counters,
//! tallies, scores, credit) move in the same transaction and can be recomputed
//! ([`Store::check`]). Times are given by the caller, so that tests can choose them.

pub mod decide;
pub mod error;
pub mod model;
pub mod sql;
pub mod trust;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, GameId, JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{
    ChunkPage, ChunkReceipt, ChunkRow, Heartbeat, HeartbeatReply, Job,
};
use rookery_common::protocol::matches::{GameInfo, MatchInfo, RatingRow};
use rookery_common::protocol::networks::{
    ExportReceipt, NetworkInfo, NetworkReceipt, PuzzleScore, Rating,
};
use rookery_common::protocol::people::{AuditEntry, ContributorInfo};
use rookery_common::protocol::runs::{MetricPoint, RunInfo, RunPatch};
use rookery_common::protocol::trust::{HoldPage, TrustInfo};
use rookery_common::puzzle::Puzzle;
use rookery_common::signing::{RunKey, RunKeyInfo, Signature};

pub use error::{GameRefusal, Result, StoreError};
pub use model::*;
pub use sql::announcements::Announcements;
pub use trust::*;

use crate::blobs::BlobKind;
use crate::tokens::TokenHash;
use crate::trust::drift::Sample;

/// The ledger.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    // Users and tokens.

    /// Creates a user with a first token.
    async fn create_user(&self, user: UserDraft, now: Timestamp) -> Result<UserId>;
    /// Gives a user another token.
    async fn add_token(&self, user: &str, token: TokenDraft, now: Timestamp) -> Result<()>;
    /// The tokens of a user, revoked ones too.
    async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>>;
    /// The tokens of a user by number, oldest first, revoked ones too.
    async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>>;
    /// Gives a user another token; answers with its number.
    async fn issue_token(&self, user: UserId, token: TokenDraft, now: Timestamp) -> Result<i64>;
    /// Revokes a token and gives its user another; answers with its number.
    async fn rotate_token(
        &self,
        old: i64,
        new: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64>;
    /// Revokes a token.
    async fn revoke_token(&self, token: i64, actor: &str, now: Timestamp) -> Result<()>;
    /// Creates a user with a first token by an invitation, which then has a use less.
    async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId>;
    /// Keeps an invitation; answers with its number.
    async fn create_invitation(
        &self,
        invitation: InvitationDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64>;
    /// All invitations, oldest first.
    async fn invitations(&self) -> Result<Vec<InvitationInfo>>;
    /// Revokes an invitation.
    async fn revoke_invitation(&self, invitation: i64, actor: &str, now: Timestamp) -> Result<()>;
    /// What operators did, newest first, before an entry.
    async fn audit(&self, before: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>>;
    /// Blocks a user or ends the block; the actor is written to the audit log.
    async fn set_standing(
        &self,
        user: &str,
        standing: Standing,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Who a token belongs to, unless it is unknown or revoked.
    async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>>;
    /// Contributors of a run (of all runs if it is `None`), most positions first.
    async fn contributors(
        &self,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<Vec<ContributorInfo>>;
    /// How many workers there are, and how many jobs are out.
    async fn pulse(&self, now: Timestamp) -> Result<Pulse>;
    /// Workers that were heard since `since`, last heard first.
    async fn workers(&self, since: Timestamp) -> Result<Vec<WorkerInfo>>;

    // Runs.

    /// Creates a run.
    async fn create_run(&self, run: RunDraft, actor: &str, now: Timestamp) -> Result<()>;
    /// All runs, oldest first.
    async fn runs(&self) -> Result<Vec<RunInfo>>;
    /// One run.
    async fn run(&self, run: &RunName) -> Result<RunInfo>;
    /// Changes a run.
    async fn patch_run(
        &self,
        run: &RunName,
        patch: RunPatch,
        actor: &str,
        now: Timestamp,
    ) -> Result<RunInfo>;
    /// What was acknowledged in a run since `since`.
    async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake>;

    /// The keys of a run, oldest first; the last one is in use.
    async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>>;
    /// Makes a key the run's; every one but the first is endorsed by the one before.
    async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Keeps signatures of networks of a run; those that are there already stay.
    async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()>;
    /// The signature of a network by a key.
    async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>>;

    // Networks.

    /// Enters a network: the first becomes best, a later one opens its gate match, waits for the
    /// present one to end, or is promoted at once if the rule says so.
    async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted>;
    /// Networks of a run, newest first.
    async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>>;
    /// One network.
    async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo>;
    /// A network by its file, in whichever run.
    async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo>;
    /// Enters a stored export of a network; another one in its place is a conflict.
    async fn add_export(&self, export: ExportDraft, now: Timestamp) -> Result<ExportReceipt>;

    // Jobs.

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
    /// What a job allows its chunks to hold.
    async fn leased_job(&self, job: JobId) -> Result<LeasedJob>;

    // Chunks.

    /// The receipt of a chunk that is in the ledger, and who sent it.
    async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>>;
    /// Enters a verified, stored chunk with its games, moves tallies and decides its match.
    async fn accept_chunk(&self, chunk: ChunkDraft, now: Timestamp) -> Result<ChunkAccepted>;
    /// Chunks of a run after the cursor, in ledger order.
    async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage>;
    /// One chunk, with its run.
    async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)>;

    // Archives and what is stored.

    /// Chunks of a run that may go into an archive and are in none, in ledger order.
    async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>>;
    /// Enters a stored archive; a chunk that is in another already is a conflict.
    async fn add_archive(&self, archive: ArchiveDraft, now: Timestamp) -> Result<()>;
    /// Where a chunk's bytes are if it is in an archive.
    async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>>;
    /// All blobs of a kind that must be in the store, in no order.
    async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>>;

    // Matches, games, ratings.

    /// Opens a match that only adds to the ratings.
    async fn open_match(&self, m: MatchDraft, actor: &str, now: Timestamp) -> Result<MatchId>;
    /// Matches of a run, newest first.
    async fn matches(&self, run: &RunName, limit: u32) -> Result<Vec<MatchInfo>>;
    /// One match.
    async fn match_info(&self, id: MatchId) -> Result<MatchInfo>;
    /// Games, newest first.
    async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>>;
    /// One game.
    async fn game(&self, id: GameId) -> Result<GameInfo>;
    /// All results between networks of a run.
    async fn head_to_head(&self, run: &RunName) -> Result<Vec<HeadToHead>>;
    /// All results between networks of a run, and a number for the fit of them: a later one has
    /// seen all that an earlier one has.
    async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, Vec<HeadToHead>)>;
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
    /// Makes an earlier network best again, unless best is another by now or the earlier one was never
    /// promoted; the networks promoted after it are demoted. The answer is what happened, if anything.
    async fn roll_back(
        &self,
        run: &RunName,
        rollback: Rollback,
        now: Timestamp,
    ) -> Result<Vec<Event>>;

    // Puzzles and metrics.

    /// Adds a set of puzzles; puzzles that the run has already are passed over.
    async fn add_puzzles(&self, set: PuzzleSetDraft, now: Timestamp) -> Result<PuzzleSetInfo>;
    /// Puzzle sets of a run.
    async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>>;
    /// One puzzle of a run.
    async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle>;
    /// How a network did at puzzles.
    async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore>;
    /// Adds a trainer's metrics; a step that was reported before is replaced.
    async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()>;
    /// Metrics of a run after a step, in order.
    async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>>;

    // Several coordinators on one ledger.

    /// Tells the other coordinators on this ledger what happened. Events are for those who watch:
    /// they may be lost when a coordinator or the database ends.
    async fn announce(&self, events: &[Event]) -> Result<()>;
    /// Begins to listen to the other coordinators; `None` where there can be none.
    async fn announcements(&self) -> Result<Option<Announcements>>;

    // Trust.

    /// Audits whose chunks are to be read next; too old ones are given up.
    async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>>;
    /// Keeps an audit's plan; without one the audit is given up.
    async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()>;
    /// The last self-play chunks of a run's best network, in numbers.
    async fn samples(&self, run: &RunName) -> Result<Vec<Sample>>;
    /// Brings a contributor's recent chunks before the auditors.
    async fn suspect(&self, run: &RunName, user: UserId, now: Timestamp) -> Result<()>;
    /// What audits have shown of a contributor.
    async fn trust(&self, user: &str) -> Result<TrustInfo>;
    /// Quarantines a contributor, all of whose chunks are then held, or clears one.
    async fn quarantine(&self, user: &str, order: HoldOrder, now: Timestamp)
    -> Result<HoldEffects>;
    /// Takes a chunk out of training, matches and ratings, or puts it back.
    async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects>;
    /// Holds of a run after the cursor, in order.
    async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage>;

    // The store itself.

    /// Recomputes a run's sums from its facts and tells where they differ.
    async fn check(&self, run: &RunName) -> Result<Vec<Discrepancy>>;
    /// Writes a copy of the whole ledger to a new file, while it is in use.
    async fn back_up(&self, file: &Path) -> Result<()>;
    /// Whether the database answers.
    async fn ping(&self) -> Result<()>;
    /// Finishes what is queued and closes.
    async fn close(&self);
}

/// A store that can be shared.
pub type SharedStore = Arc<dyn Store>;

/// A network that is in the ledger.
#[derive(Debug, Clone)]
pub struct NetworkSubmitted {
    /// The receipt.
    pub receipt: NetworkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
}
