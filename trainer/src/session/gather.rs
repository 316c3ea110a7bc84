//! Waiting for positions, and planning the next candidate once there are enough.

use std::ops::ControlFlow;

use anyhow::Context as _;

use super::Session;
use super::begin::fetch_run;
use super::state::{Phase, StepBudget, Training};
use crate::metrics::{MetricKind, values};
use rookery_common::text::quantity;

impl Session {
    /// Follows the ledger until enough new positions have come.
    pub(super) async fn gather(&mut self) -> anyhow::Result<ControlFlow<()>> {
        let params = fetch_run(&self.context.client).await?.params;
        self.clean_up(params.training.window.max)?;
        self.ingest.set_resign(params.selfplay.resign);
        self.follow_params(params.training)?;
        let mut task = self.context.screen.task("positions", self.wanted());
        loop {
            self.take_in().await?;
            let total = self.ledger_sync.taken_positions();
            let nothing = self.ingest.training().positions() == 0;
            if total >= self.wanted() && !nothing {
                break;
            }
            let all_held_out = nothing && total > 0;
            let waiting = self.ledger_sync.waiting_positions();
            let detail = match (all_held_out, waiting) {
                (true, _) => "all held out".to_owned(),
                (false, 0) => String::new(),
                (false, waiting) => format!("{waiting} wait for audits"),
            };
            task.at(total, &detail);
            tokio::select! {
                () = self.context.shutdown.requested() => return Ok(ControlFlow::Break(())),
                () = tokio::time::sleep(self.settings.poll_every) => {}
            }
        }
        drop(task);
        self.follow_rollback().await?;
        self.grow()?;
        self.plan()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Positions that must have arrived before the next candidate is trained.
    fn wanted(&self) -> u64 {
        let params = &self.state.params;
        let next = self.used().saturating_add(params.positions_per_candidate);
        params.window.min.max(next)
    }

    /// Positions that had arrived when the last candidate's training began, without those that have been held since.
    fn used(&self) -> u64 {
        self.ledger_sync.positions_until(self.state.cursor)
    }

    /// Fetches what is new in the ledger.
    pub(super) async fn take_in(&mut self) -> anyhow::Result<()> {
        let client = &self.context.client;
        self.ledger_sync.update(client).await?;
        if let Some(left) = self.ledger_sync.take_restored() {
            // What was trained on and is lost is not waited for again.
            self.state.cursor = self.state.cursor.min(left);
            self.save()?;
        }
        let client = &self.context.client;
        self.ledger_sync.take_new(client, &mut self.ingest).await
    }

    /// Grows the network in training to what the run asks for by now.
    fn grow(&mut self) -> anyhow::Result<()> {
        let step = self.state.step.saturating_sub(self.state.rate_from);
        let Some((blocks, filters)) = self.state.params.least_shape(step) else {
            return Ok(());
        };
        let seed = self.state.seed;
        let learner = &mut self.learner;
        let before = learner.trainer.spec().shape();
        let grown = learner.grow(blocks, filters, seed);
        if grown
            .with_context(|| format!("RK-0608: the {before} network cannot grow (training.grow)"))?
        {
            tracing::info!(
                "the network in training grows from {before} to {}, and goes on from what it has learnt",
                learner.trainer.spec().shape()
            );
        }
        Ok(())
    }

    /// Fixes window and steps of the next candidate.
    fn plan(&mut self) -> anyhow::Result<()> {
        let total = self.ledger_sync.taken_positions();
        let new = total.saturating_sub(self.used());
        let params = &self.state.params;
        let plan = StepBudget::new(params, new, self.settings.max_reuse);
        let window = params
            .window
            .size(total)
            .min(self.ingest.training().positions());
        if plan.steps < u64::from(params.steps_per_candidate) {
            tracing::warn!(
                "training {} instead of {}: there are {} new, and --max-reuse {} allows no more",
                quantity(plan.steps, "step"),
                params.steps_per_candidate,
                quantity(new, "position"),
                self.settings.max_reuse
            );
        }
        tracing::info!(
            "training a candidate: {} on the newest {window} of {} ({new} of them new, each to be used \
             {:.1} times)",
            quantity(plan.steps, "step"),
            quantity(total, "position"),
            plan.reuse
        );
        self.state.cursor = self.ledger_sync.taken_until();
        self.ledger_sync.begin_candidate()?;
        self.note(
            MetricKind::Plan,
            values([
                ("window", window as f64),
                ("positions", total as f64),
                ("new_positions", new as f64),
                ("reuse", plan.reuse),
                ("candidate", f64::from(self.state.candidate)),
            ]),
        )?;
        self.measure_resigning()?;
        self.measure_tactics()?;
        self.enter(Phase::Train(Training {
            done: 0,
            steps: plan.steps,
            window,
            reuse: plan.reuse,
        }))
    }

    /// Tells how often resigning would have been wrong in the games that have come since the last
    /// candidate.
    fn measure_resigning(&mut self) -> anyhow::Result<()> {
        let resigning = self.ingest.take_resigning();
        let Some(wrong) = resigning.wrong_share() else {
            return Ok(());
        };
        tracing::info!(
            "resigning: in {} of {} that were played on a side would have resigned, in {} \
             ({:.1} %) wrongly",
            resigning.resigned,
            quantity(resigning.played_on, "game"),
            resigning.wrong,
            100.0 * wrong
        );
        self.record(
            MetricKind::Resigning,
            values([
                ("games_played_on", resigning.played_on as f64),
                ("false_resignations", wrong),
            ]),
        )
    }

    /// Tells what the games that have come since the last candidate say of tactics.
    fn measure_tactics(&mut self) -> anyhow::Result<()> {
        let counts = self.ingest.take_tactics();
        let report = counts.report();
        let Some(hang_rate) = report.hang_rate else {
            return Ok(());
        };
        let none = f64::NAN;
        self.record(
            MetricKind::Tactics,
            values([
                ("hang_rate", hang_rate),
                ("hangs_punished", report.punished.unwrap_or(none)),
                ("score_a_piece_ahead", counts.score_ahead().unwrap_or(none)),
            ]),
        )
    }
}
