//! Audits, drift, quarantines and what is held.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName, Seed, UserId};
use rookery_common::protocol::trust::{ContributorTrust, HoldPage, TrustInfo, WorkerBlock};

use crate::db::error::Result;
use crate::db::rooms::Trust;
use crate::db::sql::doors::{read, write};
use crate::db::sql::{
    SqlDatabase, auditing, audits, backlog, draws, drift, exposure, holds, quarantine, standings,
    worker_blocks,
};
use crate::db::trust::{AuditPlan, Auditing, Exposure, HoldEffects, HoldOrder, UnplannedAudit};
use crate::trust::draw::DrawBoard;
use crate::trust::drift::{Sample, Suspicion};

#[async_trait]
impl Trust for SqlDatabase {
    async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>> {
        let surplus = read!(self.readers, backlog::surplus(now))?;
        for part in surplus.chunks(backlog::AT_ONCE) {
            let part = part.to_vec();
            write!(self, backlog::give_up(part))?;
        }
        read!(self.readers, backlog::next())
    }

    async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()> {
        write!(self, audits::plan(audit, plan))
    }

    async fn draw_boards(&self, now: Timestamp) -> Result<Vec<DrawBoard>> {
        read!(self.readers, draws::boards(now))
    }

    async fn enter_draws(&self, drawn: Vec<(i64, UserId)>, now: Timestamp) -> Result<()> {
        write!(self, draws::enter(drawn, now))
    }

    async fn auditing(&self, now: Timestamp) -> Result<Auditing> {
        read!(self.readers, auditing::within_a_day(now))
    }

    async fn note_block(&self, user: UserId, block: i64) -> Result<()> {
        write!(self, auditing::note_block(user, block))
    }

    async fn samples(&self, run: &RunName) -> Result<Vec<Sample>> {
        read!(self.readers, drift::samples(run))
    }

    async fn suspect(&self, run: &RunName, found: Vec<Suspicion>, now: Timestamp) -> Result<()> {
        let run = run.clone();
        write!(self, drift::suspect(run, found, now))
    }

    async fn trust(&self, user: &str) -> Result<TrustInfo> {
        read!(self.readers, standings::of_name(user))
    }

    async fn suspects(&self, limit: u32, now: Timestamp) -> Result<Vec<ContributorTrust>> {
        read!(self.readers, standings::worst(limit, now))
    }

    async fn quarantine(
        &self,
        user: &str,
        order: HoldOrder,
        chance: Seed,
        now: Timestamp,
    ) -> Result<Option<HoldEffects>> {
        let user = user.to_owned();
        let ordered = write!(self, quarantine::order_by_name(user, order, chance, now));
        self.principals.forget();
        ordered
    }

    async fn exposures(&self, user: &str) -> Result<Vec<Exposure>> {
        read!(self.readers, exposure::of_name(user))
    }

    async fn block_worker(&self, user: &str, block: WorkerBlock, now: Timestamp) -> Result<()> {
        let user = user.to_owned();
        let blocked = write!(self, worker_blocks::block(user, block, now));
        self.principals.forget();
        blocked
    }

    async fn unblock_worker(
        &self,
        user: &str,
        worker: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, worker, actor) = (user.to_owned(), worker.to_owned(), actor.to_owned());
        let ended = write!(self, worker_blocks::unblock(user, worker, actor, now));
        self.principals.forget();
        ended
    }

    async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects> {
        let held = write!(self, holds::hold_chunk(chunk, order, now));
        self.principals.forget();
        held
    }

    async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage> {
        read!(self.readers, holds::page(run, after, limit))
    }
}
