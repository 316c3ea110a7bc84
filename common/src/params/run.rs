//! Parameters of a whole run, as operators set them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::job::{MatchParams, PuzzleParams, SelfPlayParams};
use super::range::{ParamsError, inside, outside, within};
use super::training::TrainingParams;
use crate::rating::gate::GateRule;

/// Everything that defines how a run learns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunParams {
    /// Self-play games.
    pub selfplay: SelfPlayParams,
    /// Puzzle games.
    pub puzzle: PuzzleParams,
    /// Match games.
    pub matches: MatchParams,
    /// When a candidate replaces best.
    pub gate: GateRule,
    /// How likely, by all matches that have ended, an earlier network must be stronger than best to
    /// take its place again, 0.9 to 0.999999. It never does if this is not given.
    pub rollback: Option<f64>,
    /// How jobs are shared out.
    pub scheduling: SchedulingParams,
    /// What the trainer does.
    pub training: TrainingParams,
}

/// How jobs are shared out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SchedulingParams {
    /// Share of training positions from games that begin at puzzles, 0 to 1.
    pub puzzle_share: f32,
    /// Share of jobs given to an open gate match, 0.01 to 1.
    pub gate_share: f32,
    /// Share of jobs given to an open rating match if no gate match takes them, 0 to 1.
    pub rating_share: f32,
    /// Pairs of each rating match that the coordinator opens by itself when none is open, between
    /// the two networks whose games say most about the ratings, 0 to 10,000; with 0 only
    /// operators open them.
    pub rating_pairs: u32,
    /// Share of these rating matches that have a built-in program as one side, 0 to 1. A new run has some as anchors,
    /// so that its ratings are counted from the random mover; with 0 it has none.
    pub anchor_share: f32,
    /// Self-play games of a job, 1 to 4,096. Jobs of all kinds are made larger for workers that
    /// play many games at once or say that they are fast, and smaller for slow ones.
    pub selfplay_games: u32,
    /// Puzzle games of a job, 1 to 4,096.
    pub puzzle_games: u32,
    /// Match games of a job, an even number from 2 to 1,024.
    pub match_games: u32,
    /// For how long a job keeps a worker busy that knows its speed, in seconds, 10 to 3,600. A gate match
    /// begins when a worker has ended the job that it has.
    pub job_seconds: u32,
    /// How long a lease lasts without a heartbeat, in seconds, 10 to 86,400.
    pub lease_seconds: u32,
}

impl Default for SchedulingParams {
    fn default() -> Self {
        Self {
            puzzle_share: 0.2,
            gate_share: 0.8,
            rating_share: 0.05,
            rating_pairs: 20,
            anchor_share: 0.2,
            selfplay_games: 32,
            puzzle_games: 64,
            match_games: 16,
            job_seconds: 300,
            lease_seconds: 120,
        }
    }
}

impl RunParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        inside("selfplay", self.selfplay.check())?;
        inside("puzzle", self.puzzle.check())?;
        inside("matches", self.matches.check())?;
        inside("gate", check_gate(&self.gate))?;
        if let Some(superiority) = self.rollback {
            within("rollback", superiority, 0.9, 0.999_999)?;
        }
        inside("scheduling", self.scheduling.check())?;
        inside("training", self.training.check())
    }

    /// Whether games of some kind are searched with the solver, which not every worker knows.
    pub const fn has_solver(&self) -> bool {
        self.selfplay.search.solver || self.puzzle.search.solver || self.matches.search.solver
    }

    /// Checks that what was asked for can happen; see
    /// [`SearchParams::check_effect`](super::SearchParams::check_effect).
    pub(super) fn check_effect(&self) -> Result<(), ParamsError> {
        for (section, search) in [
            ("selfplay.search", &self.selfplay.search),
            ("puzzle.search", &self.puzzle.search),
            ("matches.search", &self.matches.search),
        ] {
            inside(section, search.check_effect())?;
        }
        Ok(())
    }
}

fn check_gate(gate: &GateRule) -> Result<(), ParamsError> {
    if let GateRule::Sprt { params, .. } = gate {
        inside("params", params.check().map_err(ParamsError::from))?;
    }
    gate.check().map_err(ParamsError::from)
}

impl SchedulingParams {
    fn check(&self) -> Result<(), ParamsError> {
        within("puzzle_share", self.puzzle_share, 0.0, 1.0)?;
        within("gate_share", self.gate_share, 0.01, 1.0)?;
        within("rating_share", self.rating_share, 0.0, 1.0)?;
        within("rating_pairs", self.rating_pairs, 0.0, 10_000.0)?;
        within("anchor_share", self.anchor_share, 0.0, 1.0)?;
        within("selfplay_games", self.selfplay_games, 1.0, 4096.0)?;
        within("puzzle_games", self.puzzle_games, 1.0, 4096.0)?;
        within("match_games", self.match_games, 2.0, 1024.0)?;
        if !self.match_games.is_multiple_of(2) {
            let games = f64::from(self.match_games);
            return Err(outside("match_games", games, "an even number"));
        }
        within("job_seconds", self.job_seconds, 10.0, 3600.0)?;
        within("lease_seconds", self.lease_seconds, 10.0, 86_400.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::gate::AtLimit;
    use crate::rating::sprt::SprtParams;

    #[test]
    fn defaults_are_in_range_and_round_trip() {
        let params = RunParams::default();
        assert_eq!(params.check(), Ok(()));
        let json = serde_json::to_string(&params).unwrap();
        assert_eq!(serde_json::from_str::<RunParams>(&json).unwrap(), params);
        assert_eq!(serde_json::from_str::<RunParams>("{}").unwrap(), params);
    }

    #[test]
    fn the_ends_of_a_range_are_in_it() {
        let mut scheduling = SchedulingParams::default();
        for share in [0.01, 1.0] {
            scheduling.gate_share = share;
            assert_eq!(scheduling.check(), Ok(()));
        }
        for share in [0.0099, 1.001] {
            scheduling.gate_share = share;
            assert!(scheduling.check().is_err());
        }
    }

    #[test]
    fn whatever_is_out_of_range_is_named_as_a_file_names_it() {
        let refused = |json: &str| {
            let params: RunParams = serde_json::from_str(json).unwrap();
            params.check().unwrap_err().to_string()
        };
        for (json, error) in [
            (
                r#"{"training": {"gradient_clip": -1}}"#,
                "training.gradient_clip is -1, allowed is 0.000001 to 1000000000",
            ),
            (
                r#"{"training": {"optimizer": {"kind": "sgd", "momentum": 5.0}}}"#,
                "training.optimizer.momentum is 5, allowed is 0 to 0.999999",
            ),
            (
                r#"{"training": {"learning_rate": {"drops": [[5, 0.5], [100, -3.0]]}}}"#,
                "training.learning_rate.drops[1][1] is -3, allowed is 0.000000001 to 1000",
            ),
            (
                r#"{"training": {"positions_per_candidate": 0}}"#,
                "training.positions_per_candidate is 0, allowed is 1 to 1000000000000",
            ),
            (
                r#"{"training": {"window": {"max": 3}}}"#,
                "training.window.max is 3, allowed is 20000 to 1000000000000",
            ),
            (
                r#"{"matches": {"search": {"visits": 1}}}"#,
                "matches.search.visits is 1, allowed is 2 to 100000",
            ),
            (
                r#"{"scheduling": {"match_games": 15}}"#,
                "scheduling.match_games is 15, allowed is an even number",
            ),
            (
                r#"{"gate": {"kind": "fixed", "games": 100, "threshold": 1.5}}"#,
                "gate.threshold is 1.5, allowed is 0 to 1",
            ),
        ] {
            assert_eq!(refused(json), error, "{json}");
        }
    }

    #[test]
    fn a_gates_test_is_checked_too() {
        let refused = |elo0, alpha, max_pairs| {
            let params = SprtParams {
                elo0,
                alpha,
                ..SprtParams::default()
            };
            let gate = GateRule::Sprt {
                params,
                max_pairs,
                at_limit: AtLimit::default(),
            };
            let params = RunParams {
                gate,
                ..RunParams::default()
            };
            params.check().unwrap_err().path
        };
        assert_eq!(refused(0.0, 0.6, 10), "gate.params.alpha");
        assert_eq!(refused(50.0, 0.05, 10), "gate.params.elo0");
        assert_eq!(refused(0.0, 0.05, 0), "gate.max_pairs");
    }
}
