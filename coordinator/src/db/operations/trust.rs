//! Audits, drift, quarantines and what is held.

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName, Seed, UserId};
use rookery_common::protocol::trust::{ContributorTrust, HoldPage, TrustInfo, WorkerBlock};

use crate::db::error::Result;
use crate::db::models::{
    audit_backlog, audit_draws, auditor_activity, audits, drift, exposure, worker_blocks,
};
use crate::db::sql::Ledger;
use crate::db::sql::transactions::{in_read, in_write};
use crate::db::types::{
    AuditPlan, AuditorActivity, Exposure, HoldEffects, HoldOrder, UnplannedAudit,
};
use crate::db::use_cases::{audit_results, exclusions, match_results, quarantine, standings};
use crate::trust::draw::DrawBoard;
use crate::trust::drift::{Sample, Suspicion};

impl Ledger {
    /// Audits whose chunks are to be read next; those that are too old or too many are given up.
    pub async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>> {
        let surplus = in_read!(self.readers, audit_backlog::surplus(now))?;
        for part in surplus.chunks(audit_backlog::AT_ONCE) {
            let part = part.to_vec();
            in_write!(self, audit_backlog::give_up(part))?;
        }
        in_read!(self.readers, audit_backlog::next())
    }

    /// Keeps an audit's plan; without one the audit is given up.
    pub async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()> {
        in_write!(self, audits::plan(audit, plan))
    }

    /// Audits of open runs for which somebody is to be drawn, and who could make them.
    pub async fn draw_boards(&self, now: Timestamp) -> Result<Vec<DrawBoard>> {
        in_read!(self.readers, audit_draws::boards(now))
    }

    /// Lets audits, by their numbers, wait for who was drawn.
    pub async fn enter_draws(&self, drawn: Vec<(i64, UserId)>, now: Timestamp) -> Result<()> {
        in_write!(self, audit_draws::enter(drawn, now))
    }

    /// Decides an audit that has waited for an auditor of the operator's for long enough, if there is one; no more than
    /// one for each chunk that comes in.
    pub async fn decide_overdue_audit(&self, now: Timestamp) -> Result<HoldEffects> {
        let overdue = in_read!(self.readers, audit_results::overdue(now))?;
        match overdue.first().copied() {
            Some(audit) => in_write!(self, audit_results::decide_overdue(audit, now)),
            None => Ok(HoldEffects::default()),
        }
    }

    /// Ends a gate whose end has waited for audits and waits no more, if there is one.
    pub async fn settle_waiting_gate(&self, now: Timestamp) -> Result<HoldEffects> {
        match in_read!(self.readers, match_results::decided_gate(now))? {
            Some(gate) => in_write!(self, match_results::settle_gate(gate, now)),
            None => Ok(HoldEffects::default()),
        }
    }

    /// Who audits, and how much was audited within a day.
    pub async fn auditor_activity(&self, now: Timestamp) -> Result<AuditorActivity> {
        in_read!(self.readers, auditor_activity::within_a_day(now))
    }

    /// The last self-play chunks of a run's best network, in numbers.
    pub async fn samples(&self, run: &RunName) -> Result<Vec<Sample>> {
        in_read!(self.readers, drift::samples(run))
    }

    /// Keeps who stands out, and brings the recent chunks of those contributors before the auditors.
    pub async fn suspect(
        &self,
        run: &RunName,
        found: Vec<Suspicion>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        in_write!(self, drift::suspect(run, found, now))
    }

    /// What audits have shown of a contributor.
    pub async fn trust(&self, user: &str) -> Result<TrustInfo> {
        in_read!(self.readers, standings::of_name(user))
    }

    /// The same of all who have sent something, with who stands out and how many games did not come:
    /// those with held chunks first, then those who drift, then those who failed audits.
    pub async fn suspects(&self, limit: u32, now: Timestamp) -> Result<Vec<ContributorTrust>> {
        in_read!(self.readers, standings::worst(limit, now))
    }

    /// Quarantines a contributor, all of whose chunks are then held, or clears one; `None` if there
    /// is nothing to clear. Chance decides what of somebody who is cleared is audited.
    pub async fn quarantine(
        &self,
        user: &str,
        order: HoldOrder,
        chance: Seed,
        now: Timestamp,
    ) -> Result<Option<HoldEffects>> {
        let user = user.to_owned();
        let ordered = in_write!(self, quarantine::order_by_name(user, order, chance, now));
        self.principals.forget();
        ordered
    }

    /// Networks that may have learnt from a contributor's games, run by run.
    pub async fn exposures(&self, user: &str) -> Result<Vec<Exposure>> {
        in_read!(self.readers, exposure::of_name(user))
    }

    /// Blocks a worker of a contributor: it gets no jobs, and the contributor is told why.
    pub async fn block_worker(&self, user: &str, block: WorkerBlock, now: Timestamp) -> Result<()> {
        let user = user.to_owned();
        let blocked = in_write!(self, worker_blocks::block(user, block, now));
        self.principals.forget();
        blocked
    }

    /// Ends a worker's block.
    pub async fn unblock_worker(
        &self,
        user: &str,
        worker: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, worker, actor) = (user.to_owned(), worker.to_owned(), actor.to_owned());
        let ended = in_write!(self, worker_blocks::unblock(user, worker, actor, now));
        self.principals.forget();
        ended
    }

    /// Takes a chunk out of training, matches and ratings, or puts it back.
    pub async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: HoldOrder,
        now: Timestamp,
    ) -> Result<HoldEffects> {
        let held = in_write!(self, part "holds", exclusions::hold_chunk(chunk, order, now));
        self.principals.forget();
        held
    }

    /// Holds of a run after the cursor, in order.
    pub async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage> {
        in_read!(self.readers, part "holds", exclusions::page(run, after, limit))
    }
}
