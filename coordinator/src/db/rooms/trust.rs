//! Audits, drift, quarantines and what is held.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName, Seed, UserId};
use rookery_common::protocol::trust::{ContributorTrust, HoldPage, TrustInfo, WorkerBlock};

use crate::db::error::Result;
use crate::db::trust::{AuditPlan, Auditing, Exposure, HoldEffects, HoldOrder, UnplannedAudit};
use crate::trust::draw::DrawBoard;
use crate::trust::drift::{Sample, Suspicion};

/// Audits, drift, quarantines and what is held.
#[async_trait]
pub trait Trust {
    /// Audits whose chunks are to be read next; those that are too old or too many are given up.
    async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>>;
    /// Keeps an audit's plan; without one the audit is given up.
    async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()>;
    /// Audits of open runs for which somebody is to be drawn, and who could make them.
    async fn draw_boards(&self, now: Timestamp) -> Result<Vec<DrawBoard>>;
    /// Lets audits, by their numbers, wait for who was drawn.
    async fn enter_draws(&self, drawn: Vec<(i64, UserId)>, now: Timestamp) -> Result<()>;
    /// Who audits, and how much was audited within a day.
    async fn auditing(&self, now: Timestamp) -> Result<Auditing>;
    /// Notes from which block of addresses somebody has registered.
    async fn note_block(&self, user: UserId, block: i64) -> Result<()>;
    /// The last self-play chunks of a run's best network, in numbers.
    async fn samples(&self, run: &RunName) -> Result<Vec<Sample>>;
    /// Keeps who stands out, and brings the recent chunks of those contributors before the auditors.
    async fn suspect(&self, run: &RunName, found: Vec<Suspicion>, now: Timestamp) -> Result<()>;
    /// What audits have shown of a contributor.
    async fn trust(&self, user: &str) -> Result<TrustInfo>;
    /// The same of all who have sent something, with who stands out and how many games did not come:
    /// those with held chunks first, then those who drift, then those who failed audits.
    async fn suspects(&self, limit: u32, now: Timestamp) -> Result<Vec<ContributorTrust>>;
    /// Quarantines a contributor, all of whose chunks are then held, or clears one; `None` if there
    /// is nothing to clear. Chance decides what of somebody who is cleared is audited.
    async fn quarantine(
        &self,
        user: &str,
        order: HoldOrder,
        chance: Seed,
        now: Timestamp,
    ) -> Result<Option<HoldEffects>>;
    /// Networks that may have learnt from a contributor's games, run by run.
    async fn exposures(&self, user: &str) -> Result<Vec<Exposure>>;
    /// Blocks a worker of a contributor: it gets no jobs, and the contributor is told why.
    async fn block_worker(&self, user: &str, block: WorkerBlock, now: Timestamp) -> Result<()>;
    /// Ends a worker's block.
    async fn unblock_worker(
        &self,
        user: &str,
        worker: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Takes a chunk out of training, matches and ratings, or puts it back.
    async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects>;
    /// Holds of a run after the cursor, in order.
    async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage>;
}
