//! Where a run of the trainer stands, as checkpoints hold it.

use rookery_common::ids::{ContentHash, RunName};
use rookery_common::params::TrainingParams;
use serde::{Deserialize, Serialize};

/// Everything that is needed to go on, beside the learner and the chunks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The run.
    pub run: RunName,
    /// The seed of all sampling.
    pub seed: u64,
    /// The parameters of the candidate in work.
    pub params: TrainingParams,
    /// The number of the candidate in work, from 0; it is not the network's number in the run.
    pub candidate: u32,
    /// Steps taken in all, those before the run included.
    pub step: u64,
    /// Steps that the run's first network had been trained for: the learning rate's step 0. States from before there
    /// was such a number counted from 0.
    #[serde(default)]
    pub rate_from: u64,
    /// The network from which training went on: the last candidate, or the one it began with.
    pub parent: ContentHash,
    /// The place in the ledger up to which games were in the window of the last candidate.
    pub cursor: i64,
    /// What the run is doing.
    pub phase: Phase,
}

/// What a run is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for positions.
    Gather,
    /// Taking the steps of a candidate.
    Train(Training),
    /// Handing the candidate in.
    Submit {
        /// Its file's SHA-256.
        hash: ContentHash,
    },
    /// Waiting for the gate match.
    Await {
        /// The candidate's SHA-256.
        hash: ContentHash,
    },
}

/// The training of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Steps taken.
    pub done: u64,
    /// Steps to take.
    pub steps: u64,
    /// Positions of the window.
    pub window: u64,
    /// How often each position will have been trained on, on average.
    #[serde(default)]
    pub reuse: f64,
}

/// How many steps a candidate gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepBudget {
    /// The steps.
    pub steps: u64,
    /// How often each position will have been trained on, on average, when it leaves the window.
    pub reuse: f64,
}

/// Most steps of a candidate, in multiples of the run's: a fleet that plays faster than the trainer trains must not make
/// each candidate take longer than the one before.
const MOST_TIMES_THE_STEPS: u64 = 4;

impl StepBudget {
    /// The run's steps; more where each of the `new` positions since the last candidate would be trained on less than
    /// `min_reuse` times, and fewer where it would be trained on more than `max_reuse` times. A
    /// position is sampled `steps * batch` times in `window` candidates-worth of `new` positions, so its uses are their
    /// ratio, whatever the window.
    pub fn new(params: &TrainingParams, new: u64, max_reuse: f64) -> Self {
        let batch = f64::from(params.batch_size.max(1));
        let new = new.max(1) as f64;
        let steps_for = |reuse: f64| (reuse * new / batch) as u64;
        let least = u64::from(params.steps_per_candidate);
        let wanted = steps_for(params.min_reuse).clamp(least, MOST_TIMES_THE_STEPS * least);
        let steps = wanted.min(steps_for(max_reuse).max(1));
        Self {
            steps,
            reuse: steps as f64 * batch / new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_new_positions_mean_few_steps() {
        let params = TrainingParams {
            batch_size: 100,
            steps_per_candidate: 50,
            ..TrainingParams::default()
        };
        let plan = StepBudget::new(&params, 1000, 8.0);
        assert_eq!(
            plan,
            StepBudget {
                steps: 50,
                reuse: 5.0
            }
        );
        let plan = StepBudget::new(&params, 500, 8.0);
        assert_eq!(
            plan,
            StepBudget {
                steps: 40,
                reuse: 8.0
            }
        );
        assert_eq!(StepBudget::new(&params, 0, 8.0).steps, 1);
    }

    #[test]
    fn many_new_positions_mean_more_steps_where_the_run_says_so() {
        let params = |min_reuse| TrainingParams {
            batch_size: 100,
            steps_per_candidate: 50,
            min_reuse,
            ..TrainingParams::default()
        };
        let steps = |min_reuse, new| StepBudget::new(&params(min_reuse), new, 8.0).steps;
        assert_eq!(steps(0.0, 10_000), 50);
        assert_eq!(steps(1.5, 10_000), 150);
        assert_eq!(steps(1.5, 2_000), 50, "as many as ever");
        assert_eq!(steps(1.5, 1_000_000), 200, "four times as many at most");
        assert_eq!(steps(20.0, 1_000), 80, "the trainer's own limit wins");
    }

    #[test]
    fn a_state_survives_json() {
        let state = State {
            run: "main".parse().unwrap(),
            seed: u64::MAX,
            params: TrainingParams::default(),
            candidate: 3,
            step: 1500,
            rate_from: 1000,
            parent: ContentHash::of(b"x"),
            cursor: 77,
            phase: Phase::Train(Training {
                done: 10,
                steps: 500,
                window: 40_000,
                reuse: 6.4,
            }),
        };
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
    }
}
