//! What a GPU computes, against the processor. Without a GPU each test says that it is not run.
//!
//! These tests are a program of their own, in which nothing is computed before the GPU is looked for: after the
//! first convolution on a processor libtorch finds no GPU any more.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batches;

use std::sync::Arc;

use rookery_backend_torch::{ComputeDevice, InferenceNetwork, NetworkEvaluator, use_threads};
use rookery_common::network::{AuxiliaryHead, NetworkSpec};
use rookery_common::params::{Optimizer, TrainingParams};
use rookery_engine::{Batch, DeviceChoice, Evaluations, Evaluator as _, Precision};
use rookery_model::Weights;
use rookery_model::testing::small_specs;
use rookery_train::Trainer;

use batches::{positions, train_batch};

/// The GPU, if there is one.
#[expect(clippy::print_stdout, reason = "a test says that it is not run")]
fn gpu() -> Option<ComputeDevice> {
    let device = ComputeDevice::open(DeviceChoice::Auto).unwrap();
    use_threads(1);
    if device.is_cpu() {
        println!("not run: there is no GPU");
        return None;
    }
    Some(device)
}

fn evaluate(evaluator: &mut NetworkEvaluator, batch: &Batch) -> Evaluations {
    let mut answer = Evaluations::default();
    evaluator.evaluate(batch, &mut answer).unwrap();
    answer
}

#[test]
fn a_gpu_agrees_with_the_processor() {
    let Some(device) = gpu() else { return };
    let mut specs = small_specs();
    specs[0] = NetworkSpec::resnet(4, 64);
    for spec in specs {
        let batch = positions(&spec, 40);
        let weights = Weights::random(spec, 8).unwrap();
        let mut exact =
            NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32).unwrap();
        let expected = evaluate(&mut exact, &batch);
        for (precision, tolerance) in [
            (Precision::F32, 1e-3),
            (Precision::F16, 0.02),
            (Precision::Bf16, 0.1),
        ] {
            let mut evaluator = NetworkEvaluator::new(&weights, device, precision).unwrap();
            let apart = evaluate(&mut evaluator, &batch).largest_difference(&expected);
            assert!(apart < tolerance, "{apart} in {precision}");
        }
    }
}

/// As after a pause, for which other programs get its memory.
#[test]
fn a_gpu_computes_as_before_once_its_kept_memory_was_released() {
    let Some(device) = gpu() else { return };
    let spec = NetworkSpec::resnet(2, 32);
    let batch = positions(&spec, 100);
    let weights = Weights::random(spec, 3).unwrap();
    let evaluator = || NetworkEvaluator::new(&weights, device, Precision::F32).unwrap();
    let expected = evaluate(&mut evaluator(), &batch);
    device.release_kept_memory();
    let mut again = evaluator();
    device.release_kept_memory();
    let apart = evaluate(&mut again, &batch).largest_difference(&expected);
    assert!(apart < 0.001, "{apart}");
}

/// And a network, as playing threads do.
#[test]
fn threads_share_a_gpu() {
    let Some(device) = gpu() else { return };
    let spec = NetworkSpec::resnet(2, 32);
    // Of different sizes, so that one that is overwritten before the GPU has it does not go unnoticed.
    let batches = [100, 61, 300].map(|count| positions(&spec, count));
    let weights = Weights::random(spec, 3).unwrap();
    let network = InferenceNetwork::new(&weights, device, Precision::Auto).unwrap();
    let network = Arc::new(network);
    let evaluator = || NetworkEvaluator::from_network(Arc::clone(&network));
    let mut alone = evaluator();
    let expected = batches.each_ref().map(|batch| evaluate(&mut alone, batch));
    let work = |mut evaluator: NetworkEvaluator| {
        for _ in 0..20 {
            for (batch, expected) in batches.iter().zip(&expected) {
                let apart = evaluate(&mut evaluator, batch).largest_difference(expected);
                assert!(apart < 0.01, "{apart}");
            }
        }
    };
    std::thread::scope(|scope| {
        for evaluator in [evaluator(), evaluator(), evaluator()] {
            scope.spawn(move || work(evaluator));
        }
    });
}

#[test]
fn a_gpu_trains_like_the_processor() {
    let Some(device) = gpu() else { return };
    let spec = NetworkSpec {
        auxiliary: AuxiliaryHead::ALL.to_vec(),
        ..NetworkSpec::resnet(1, 16)
    };
    let batch = train_batch(&spec, 32);
    let weights = Weights::random(spec, 1).unwrap();
    let params = TrainingParams {
        optimizer: Optimizer::AdamW,
        ..TrainingParams::default()
    };
    let trainer = |device, precision| Trainer::new(&weights, &params, device, precision).unwrap();
    let mut reference = trainer(ComputeDevice::CPU, Precision::F32);
    let before = reference.measure(&batch).unwrap();
    let first = reference.step(&batch, 0.01).unwrap();
    for (precision, tolerance) in [(Precision::F32, 0.02), (Precision::Auto, 0.1)] {
        let mut trainer = trainer(device, precision);
        let found = trainer.measure(&batch).unwrap();
        let apart = (found.policy - before.policy).abs();
        assert!(apart < tolerance, "{found:?} {before:?}");
        let step = trainer.step(&batch, 0.01).unwrap();
        let apart = (step.gradient_norm / first.gradient_norm - 1.0).abs();
        assert!(apart < tolerance, "{step:?} {first:?}");
        for _ in 0..30 {
            trainer.step(&batch, 0.01).unwrap();
        }
        let learnt = trainer.measure(&batch).unwrap();
        assert!(learnt.policy < 0.8 * before.policy, "{learnt:?}");
    }
}

#[test]
fn batches_are_loaded_while_a_gpu_computes() {
    let Some(device) = gpu() else { return };
    let spec = NetworkSpec {
        auxiliary: AuxiliaryHead::ALL.to_vec(),
        ..NetworkSpec::resnet(1, 16)
    };
    let batches = [32, 9, 24].map(|count| train_batch(&spec, count));
    let weights = Weights::random(spec, 1).unwrap();
    let params = TrainingParams::default();
    let trainer = || Trainer::new(&weights, &params, device, Precision::F32).unwrap();
    let (mut reference, mut ahead) = (trainer(), trainer());
    let mut loaded = Some(ahead.load(&batches[0]).unwrap());
    for (number, batch) in batches.iter().enumerate() {
        let expected = reference.step(batch, 0.001).unwrap();
        let ready = loaded.take().unwrap();
        let (found, next) = ahead
            .step_while_loading(&ready, 0.001, batches.get(number + 1))
            .unwrap();
        let apart = [found.policy - expected.policy, found.value - expected.value];
        assert!(
            apart.iter().all(|apart| apart.abs() < 0.01),
            "{found:?} {expected:?}"
        );
        loaded = next;
    }
}
