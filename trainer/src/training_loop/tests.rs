//! Tests of training steps.

use rookery_backend_torch::ComputeDevice;
use rookery_common::network::NetworkSpec;
use rookery_common::params::TrainingParams;
use rookery_engine::Precision;

use super::*;
use crate::buffer::{ReplayBuffer, StoredGame};
use crate::learner::Compute;
use crate::testing;

const COMPUTE: Compute = Compute {
    device: ComputeDevice::CPU,
    precision: Precision::F32,
};

fn params() -> TrainingParams {
    TrainingParams {
        batch_size: 16,
        ..TrainingParams::default()
    }
}

fn learner() -> Learner {
    // Tests run side by side.
    rookery_backend_torch::use_threads(1);
    Learner::new(&testing::network(), &params(), COMPUTE).unwrap()
}

fn mixture() -> Mixture {
    Mixture::of(window())
}

fn window() -> Window {
    let mut buffer = ReplayBuffer::new(10_000);
    for seed in 0..10 {
        buffer.add(StoredGame::from_record(&testing::game(seed, 40)).unwrap());
    }
    buffer.window(10_000)
}

fn step_plan(learner: &Learner, threads: usize) -> StepPlan {
    StepPlan {
        plan: BatchPlan::new(learner.trainer.spec(), &params()),
        sampler: Sampler {
            seed: 3,
            candidate: 0,
        },
        rate: params().learning_rate,
        rate_from: 0,
        first_step: 0,
        threads,
    }
}

fn losses(learner: &mut Learner, numbers: std::ops::Range<u64>, threads: usize) -> Vec<Losses> {
    let mut steps = step_plan(learner, threads)
        .begin(&mixture(), numbers)
        .unwrap();
    std::iter::from_fn(|| steps.step(&mut learner.trainer).unwrap())
        .map(|report| report.losses)
        .collect()
}

#[test]
fn the_losses_do_not_depend_on_the_number_of_threads() {
    let one = losses(&mut learner(), 0..7, 1);
    assert_eq!(one.len(), 7);
    assert_eq!(losses(&mut learner(), 0..7, 3), one);
}

#[test]
fn a_checkpoint_goes_on_with_the_same_losses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("learner");
    let all = losses(&mut learner(), 0..9, 2);
    let mut first = learner();
    let mut parts = losses(&mut first, 0..4, 2);
    first.trainer.save(&path).unwrap();
    let mut second = Learner::resume(&path, &params(), COMPUTE).unwrap();
    parts.extend(losses(&mut second, 4..9, 2));
    assert_eq!(parts, all);
}

#[test]
fn new_parameters_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    let mut learner = learner();
    losses(&mut learner, 0..3, 1);
    for optimizer in [
        rookery_common::params::Optimizer::Adam,
        rookery_common::params::Optimizer::Sgd { momentum: 0.5 },
    ] {
        let changed = TrainingParams {
            optimizer,
            ..params()
        };
        learner.follow(&changed, &scratch).unwrap();
        assert_eq!(learner.trainer.spec().training_step, 3);
        assert!(!scratch.exists());
    }
}

#[test]
fn validation_measures_without_training() {
    let mut learner = learner();
    let plan = BatchPlan::new(learner.trainer.spec(), &params());
    let mut measure = || {
        validate(&mut learner.trainer, &window(), &plan)
            .unwrap()
            .unwrap()
            .policy()
    };
    let first = measure();
    assert!(first > 0.0 && first == measure());
    let nothing = ReplayBuffer::new(1).window(1);
    assert!(
        validate(&mut learner.trainer, &nothing, &plan)
            .unwrap()
            .is_none()
    );
    assert!(
        step_plan(&learner, 1)
            .begin(&Mixture::of(nothing), 0..1)
            .is_err()
    );
}

#[test]
fn values_that_rule_out_what_happens_contradict_the_games() {
    let wdl = NetworkSpec::resnet(1, 8).value;
    assert!(contradicts_games(wdl, 8.0));
    // What a network of random weights may cost, which says nothing.
    assert!(!contradicts_games(wdl, 1.2));
    let scalar = ValueHead::Scalar {
        channels: 1,
        hidden: 8,
    };
    assert!(!contradicts_games(scalar, 3.0));
}
