use std::num::NonZero;

use rookery_common::chess::GameHistory;
use rookery_common::network::{Activation, NetworkSpec, PolicyHead};
use rookery_engine::{LoadedNetwork, ParallelEvaluator};
use rookery_model::Weights;
use rookery_model::testing::{busy_weights, small_specs};

use super::*;
use crate::reference::Reference;
use crate::simd::tests::every_set;

fn random_batch(spec: &NetworkSpec, count: usize, seed: u64) -> Batch {
    rookery_engine::dummy::random_batch(spec.input, spec.policy.encoding, count, seed)
}

fn evaluator(weights: &Weights) -> CpuEvaluator {
    CpuEvaluator::new(Arc::new(CpuNetwork::new(weights).unwrap()))
}

fn evaluate(evaluator: &mut CpuEvaluator, batch: &Batch) -> Evaluations {
    let mut answer = Evaluations::default();
    evaluator.evaluate(batch, &mut answer).unwrap();
    answer
}

fn assert_near(left: &Evaluations, right: &Evaluations, tolerance: f32, what: &str) {
    let apart = left.largest_difference(right);
    assert!(apart <= tolerance, "{what}: {apart} apart");
}

/// Networks of every kind, with channels that have to be padded and others, and every activation.
fn specs() -> Vec<NetworkSpec> {
    let mut specs = Vec::new();
    for spec in small_specs() {
        for (filters, se_ratio) in [(8, None), (24, Some(3)), (32, Some(4))] {
            for activation in [Activation::Relu, Activation::Mish] {
                let mut spec = spec.clone();
                let body = spec.body_mut().unwrap();
                (body.filters, body.se_ratio, body.activation) = (filters, se_ratio, activation);
                specs.push(spec);
            }
        }
    }
    let mut dense = NetworkSpec::resnet(1, 16);
    dense.policy.head = PolicyHead::Dense { channels: 5 };
    dense.value = ValueHead::Wdl {
        channels: 1,
        hidden: 1,
    };
    specs.push(dense);
    specs
}

#[test]
fn every_kind_of_network_is_as_the_reference_computes_it_with_every_set_of_instructions() {
    for (seed, spec) in specs().into_iter().enumerate() {
        let weights = busy_weights(&spec, seed as u64);
        let batch = random_batch(&spec, 2, seed as u64);
        let expected = Reference::new(&weights).evaluate(&batch);
        let network = Arc::new(CpuNetwork::new(&weights).unwrap());
        for instructions in every_set() {
            let mut evaluator = CpuEvaluator::with_instructions(Arc::clone(&network), instructions);
            let found = evaluate(&mut evaluator, &batch);
            let what = format!("{instructions:?} {spec:?}");
            assert_near(&found, &expected, 1e-4, &what);
        }
    }
}

#[test]
fn a_batch_is_what_its_positions_are_alone_however_large_it_is() {
    for spec in small_specs() {
        let mut evaluator = evaluator(&busy_weights(&spec, 2));
        let most = most_positions(evaluator.network.channels);
        let batch = random_batch(&spec, most + 3, 5);
        let together = evaluate(&mut evaluator, &batch);
        let mut alone = Evaluations::default();
        for position in 0..batch.len() {
            let mut single = Batch::new(spec.input, spec.policy.encoding);
            single.push_from(&batch, position);
            let answer = evaluate(&mut evaluator, &single);
            alone.logits.extend(answer.logits);
            alone.values.extend(answer.values);
        }
        assert_near(&alone, &together, 1e-5, "alone");
    }
}

#[test]
fn threads_evaluate_one_network_at_the_same_time() {
    let spec = NetworkSpec::resnet(2, 16);
    let mut first = evaluator(&busy_weights(&spec, 4));
    let batch = random_batch(&spec, 16, 9);
    let expected = evaluate(&mut first, &batch);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut evaluator = CpuEvaluator::new(Arc::clone(&first.network));
            let (batch, expected) = (&batch, &expected);
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(&evaluate(&mut evaluator, batch), expected);
                }
            });
        }
    });
}

#[test]
fn an_empty_batch_has_an_empty_answer_and_a_strange_one_an_error() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut evaluator = evaluator(&Weights::random(spec.clone(), 1).unwrap());
    let empty = Batch::new(spec.input, spec.policy.encoding);
    assert_eq!(evaluate(&mut evaluator, &empty), Evaluations::default());
    let strange = Batch::new(InputEncoding::Classic19, PolicyEncoding::Az73);
    let error = evaluator.evaluate(&strange, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("takes lc0-112 and gives lc0-1858"),
        "{error}"
    );
    let mut wrong = Batch::new(spec.input, spec.policy.encoding);
    wrong.push_indices(&GameHistory::default(), [u16::MAX]);
    let error = evaluator.evaluate(&wrong, &mut Evaluations::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a move of policy index 65535"), "{error}");
}

#[test]
fn what_is_not_finite_is_an_error() {
    for spec in small_specs() {
        let mut weights = Weights::random(spec.clone(), 1).unwrap();
        weights.get_mut("value.dense2.weight").unwrap().fill(3e38);
        weights.get_mut("value.dense1.bias").unwrap().fill(1e3);
        let batch = random_batch(&spec, 2, 2);
        let error = evaluator(&weights).evaluate(&batch, &mut Evaluations::default());
        let scalar = matches!(spec.value, ValueHead::Scalar { .. });
        match error {
            // The hyperbolic tangent of infinity is 1.
            Ok(()) => assert!(scalar),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.contains("not a finite number, computed in f32"),
                    "{error}"
                );
            }
        }
        weights
            .get_mut("policy.conv.norm.weight")
            .unwrap()
            .fill(1e38);
        weights.get_mut("policy.conv.weight").unwrap().fill(1e38);
        let refused = CpuNetwork::new(&weights).unwrap_err().to_string();
        assert!(refused.contains("policy.conv.weight"), "{refused}");
    }
}

/// A network on this number of threads.
fn parallel(weights: &Weights, threads: usize) -> ParallelEvaluator {
    let network: Arc<dyn LoadedNetwork> = Arc::new(CpuNetwork::new(weights).unwrap());
    ParallelEvaluator::new(&network, NonZero::new(threads).unwrap()).unwrap()
}

#[test]
fn parts_on_several_threads_are_one_answer() {
    for spec in small_specs() {
        let weights = busy_weights(&spec, 5);
        let mut parallel = parallel(&weights, 3);
        let mut single = evaluator(&weights);
        // Fewer positions than threads, as many, and parts that are not equal.
        for positions in [0, 1, 2, 3, 4, 17, 5] {
            let batch = random_batch(&spec, positions, 11);
            let mut answer = Evaluations::default();
            parallel.evaluate(&batch, &mut answer).unwrap();
            let alone = evaluate(&mut single, &batch);
            assert_near(&answer, &alone, 1e-5, "in parts");
        }
    }
}

#[test]
fn a_part_that_fails_fails_the_batch_and_the_next_one_is_answered() {
    let spec = small_specs().remove(0);
    let mut parallel = parallel(&busy_weights(&spec, 5), 2);
    let good = random_batch(&spec, 4, 1);
    for wrong in [0, 3] {
        let mut batch = Batch::new(spec.input, spec.policy.encoding);
        for position in 0..4 {
            let index = if position == wrong { u16::MAX } else { 0 };
            batch.push_indices(&GameHistory::default(), [index]);
        }
        let mut answer = Evaluations::default();
        parallel.evaluate(&batch, &mut answer).unwrap_err();
        parallel.evaluate(&good, &mut answer).unwrap();
        assert_eq!(answer.values.len(), good.len());
    }
}

#[test]
fn a_network_that_has_grown_computes_what_it_did() {
    for (seed, spec) in specs().into_iter().enumerate() {
        let weights = busy_weights(&spec, seed as u64);
        let batch = random_batch(&spec, 3, seed as u64);
        let expected = evaluate(&mut evaluator(&weights), &batch);
        let body = spec.body().unwrap();
        let more = if body.activation == Activation::Mish {
            0
        } else {
            2
        };
        for (blocks, filters) in [
            (body.blocks + more, 8),
            (1, 2 * body.filters),
            (body.blocks + more, 48),
        ] {
            let Some(grown) = weights.grown(blocks, filters, 5).unwrap() else {
                continue;
            };
            let found = evaluate(&mut evaluator(&grown), &batch);
            let what = format!("{blocks}x{filters} of {spec:?}");
            assert_near(&found, &expected, 1e-4, &what);
        }
    }
}
