//! Batches that are computed in parts, a submission for each.

use std::time::{Duration, Instant};

use super::*;
use crate::submission_bound::SubmissionBound;

/// A network whose submissions may take this long.
fn network_within(longest: Duration, weights: &Weights, storage: Storage) -> GpuEvaluator {
    let mut network = GpuNetwork::new(gpu(), weights, storage, LAYERED).unwrap();
    network.bound = SubmissionBound::new(longest);
    GpuEvaluator::new(Arc::new(network))
}

#[test]
fn a_batch_is_what_its_positions_are_alone_however_large_it_is() {
    let spec = small_specs().remove(0);
    let weights = busy_weights(&spec, 2);
    let all = batch_for(&spec, 300, 5);
    let expected = expected(&weights, &all);
    for storage in storages().iter().copied() {
        let mut evaluator = network(gpu(), &weights, storage, FUSED);
        let mut bounded = network_within(Duration::MAX, &weights, storage);
        for positions in [300, 1, 2, 3, 64, 65, 129, 300] {
            let (batch, expected) = first(positions, &all, &expected);
            // Its batches go in parts.
            bounded.network().bound.set_by_arrays(77);
            for evaluator in [&mut evaluator, &mut bounded] {
                let apart = evaluate(evaluator, &batch).largest_difference(&expected);
                assert!(apart < tolerance(storage), "{positions}: {apart}");
            }
        }
    }
}

#[test]
fn parts_of_a_batch_grow_where_they_end_soon_and_not_where_they_take_long() {
    let weights = busy_weights(&small_specs().remove(0), 2);
    let batch = batch_for(weights.spec(), 300, 5);
    for (longest, expected) in [(Duration::MAX, 512), (Duration::ZERO, 8)] {
        let mut evaluator = network_within(longest, &weights, Storage::F32);
        evaluator.network().bound.set_by_time(8);
        // 8, 16, 32, 64, 128 and 52 positions; then 256 and 44.
        let first = evaluate(&mut evaluator, &batch);
        assert_eq!(evaluate(&mut evaluator, &batch), first);
        let bound = &evaluator.network().bound;
        assert_eq!(bound.positions(Instant::now()), expected);
    }
}

#[test]
fn a_gpu_that_binds_small_arrays_computes_batches_in_parts() {
    let spec = small_specs().remove(0);
    let weights = busy_weights(&spec, 2);
    let batch = batch_for(&spec, 70, 5);
    let mut gpu = open(Checks::None);
    Arc::get_mut(&mut gpu).unwrap().adapter.binding_bytes = 100_000;
    let mut evaluator = network(gpu, &weights, Storage::F32, LAYERED);
    let found = evaluate(&mut evaluator, &batch);
    let apart = found.largest_difference(&expected(&weights, &batch));
    assert!(apart < 1e-4, "{apart}");
    // The value's 32 channels take 8 KB of each board.
    let bound = || evaluator.network().bound.positions(Instant::now());
    assert!((2..=12).contains(&bound()), "{}", bound());
    assert_eq!(evaluate(&mut evaluator, &batch), found);
}
