//! Dropout of the value head: training alone leaves units out, and which ones follows from the step.
//!
//! These tests are a program of their own and run one after the other: libtorch has one source of chance, from which
//! any other test would draw in between.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batches;

use parking_lot::Mutex;
use rookery_backend_torch::{ComputeDevice, NetworkEvaluator, use_threads};
use rookery_common::network::NetworkSpec;
use rookery_common::params::TrainingParams;
use rookery_engine::{Evaluations, Evaluator as _, Precision};
use rookery_model::Weights;
use rookery_train::{Losses, TrainBatch, Trainer};

use batches::train_batch;

static CHANCE: Mutex<()> = Mutex::new(());

fn spec(value_dropout: f32) -> NetworkSpec {
    NetworkSpec {
        value_dropout,
        ..NetworkSpec::resnet(1, 16)
    }
}

fn trainer(value_dropout: f32) -> Trainer {
    use_threads(1);
    let weights = Weights::random(spec(value_dropout), 1).unwrap();
    let params = TrainingParams::default();
    Trainer::new(&weights, &params, ComputeDevice::CPU, Precision::F32).unwrap()
}

fn evaluate(trainer: &Trainer, batch: &TrainBatch) -> Evaluations {
    let weights = trainer.averaged().unwrap();
    let network = NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32);
    let mut answer = Evaluations::default();
    network
        .unwrap()
        .evaluate(&batch.positions, &mut answer)
        .unwrap();
    answer
}

fn steps(trainer: &mut Trainer, batches: &[TrainBatch], rate: f64) -> Vec<Losses> {
    let step = |batch| trainer.step(batch, rate).unwrap();
    batches.iter().map(step).collect()
}

#[test]
fn units_are_left_out_in_training_others_each_step_and_none_in_evaluation() {
    let _alone = CHANCE.lock();
    let batch = train_batch(&spec(0.0), 32);
    let (mut dropping, mut whole) = (trainer(0.4), trainer(0.0));
    assert_eq!(evaluate(&dropping, &batch), evaluate(&whole, &batch));
    assert_eq!(
        dropping.measure(&batch).unwrap(),
        whole.measure(&batch).unwrap()
    );
    // At a rate of 0 weights stay as they are.
    let twice = [batch.clone(), batch];
    let [expected, again] = steps(&mut whole, &twice, 0.0)[..] else {
        panic!("two steps")
    };
    assert_eq!(again, expected);
    let [first, second] = steps(&mut dropping, &twice, 0.0)[..] else {
        panic!("two steps")
    };
    assert_eq!(first.policy, expected.policy);
    assert_ne!(first.value, expected.value);
    assert_ne!(first.value, second.value);
}

#[test]
fn training_with_dropout_resumes_to_the_same_bits() {
    let _alone = CHANCE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let batches = [16, 9, 24, 16].map(|count| train_batch(&spec(0.4), count));
    let expected = steps(&mut trainer(0.4), &batches, 0.01);
    let mut stopped = trainer(0.4);
    let mut found = steps(&mut stopped, &batches[..2], 0.01);
    stopped.save(&path).unwrap();
    let params = TrainingParams::default();
    let resumed = Trainer::resume(&path, &params, ComputeDevice::CPU, Precision::F32);
    found.extend(steps(&mut resumed.unwrap(), &batches[2..], 0.01));
    assert_eq!(found, expected);
}
