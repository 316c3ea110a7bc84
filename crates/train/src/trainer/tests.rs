use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_backend_torch::{NetworkEvaluator, use_threads};
use rookery_common::network::AuxiliaryHead;
use rookery_common::params::Optimizer;
use rookery_engine::dummy::random_batch;
use rookery_engine::{Evaluations, Evaluator, Wdl};
use rookery_model::testing::small_specs;

use super::*;

/// Positions with one right move and one right value each.
fn puzzle_batch(spec: &NetworkSpec, count: usize, seed: u64) -> TrainBatch {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let positions = random_batch(spec.input, spec.policy.encoding, count, seed);
    let mut policy = vec![0.0; positions.moves().len()];
    for position in 0..count {
        policy[rng.random_range(positions.move_range(position))] = 1.0;
    }
    let outcomes = [Wdl::WIN, Wdl::DRAW, Wdl::LOSS];
    let values = (0..count)
        .map(|_| outcomes[rng.random_range(0..3)])
        .collect();
    let ahead = (0..count).map(|_| AuxiliaryTargets {
        plies: Some(rng.random_range(0..80) as f32),
        short_value: outcomes[rng.random_range(0..3)],
    });
    let ahead = ahead.collect();
    TrainBatch {
        replies: random_replies(spec.policy.encoding.size(), count, &mut rng),
        boards: (0..count)
            .map(|place| Some(shown(&positions, place)))
            .collect(),
        ahead,
        positions,
        policy,
        values,
    }
}

/// Boards that two planes of the position show.
fn shown(positions: &rookery_engine::Batch, place: usize) -> BoardsAhead {
    let planes = positions.binary_of(place);
    let classes = |plane: usize, class: u8| {
        std::array::from_fn(|square| class * (planes[plane] >> square & 1) as u8)
    };
    BoardsAhead {
        future: classes(0, 1),
        last: classes(5, 12),
    }
}

/// One right reply out of ten to eight positions in nine.
fn random_replies(size: usize, count: usize, rng: &mut ChaCha8Rng) -> OpponentReplyTargets {
    let mut replies = OpponentReplyTargets::default();
    for position in 0..count {
        let legal = if position % 9 == 8 { 0 } else { 10 };
        let moves = rand::seq::index::sample(rng, size, legal).into_iter();
        let moves: Vec<u16> = moves.map(|index| index as u16).collect();
        let right = rng.random_range(0..10);
        let shares = (0..legal).map(|place| f32::from(u8::from(place == right)));
        replies.push(&moves, &shares.collect::<Vec<_>>());
    }
    replies
}

fn params(optimizer: Optimizer) -> TrainingParams {
    TrainingParams {
        optimizer,
        ema_decay: 0.9,
        ..TrainingParams::default()
    }
}

/// On one thread: tests run side by side, and one thread always adds in the same order.
fn trainer(spec: &NetworkSpec, optimizer: Optimizer) -> Trainer {
    use_threads(1);
    let weights = Weights::random(spec.clone(), 1).unwrap();
    Trainer::new(
        &weights,
        &params(optimizer),
        ComputeDevice::CPU,
        Precision::F32,
    )
    .unwrap()
}

#[test]
fn a_small_network_learns_64_positions_by_heart() {
    let spec = NetworkSpec::resnet(2, 16);
    let batch = puzzle_batch(&spec, 64, 7);
    let mut trainer = trainer(&spec, Optimizer::AdamW);
    let first = trainer.measure(&batch).unwrap();
    assert!(first.policy > 2.0 && first.value > 0.9, "{first:?}");
    for _ in 0..150 {
        trainer.step(&batch, 0.01).unwrap();
    }
    let last = trainer.measure(&batch).unwrap();
    assert!(last.policy < 0.1 && last.value < 0.1, "{last:?}");
    assert!(last.policy_accuracy > 0.98, "{last:?}");
    assert_exported_network_knows(&trainer, &batch);
}

/// The averaged network, folded, gives each position's outcome by far the highest probability.
fn assert_exported_network_knows(trainer: &Trainer, batch: &TrainBatch) {
    let weights = trainer.averaged().unwrap();
    assert_eq!(weights.spec().training_step, 150);
    let mut network = NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32).unwrap();
    let mut answer = Evaluations::default();
    network.evaluate(&batch.positions, &mut answer).unwrap();
    let apart = |(a, b): (&Wdl, &Wdl)| (a.q() - b.q()).abs() < 0.5;
    let right = answer
        .values
        .iter()
        .zip(&batch.values)
        .filter(|pair| apart(*pair))
        .count();
    assert!(right > 60, "{right} of 64");
}

#[test]
fn every_kind_of_network_learns_with_every_optimizer() {
    let optimizers = [
        Optimizer::Sgd { momentum: 0.9 },
        Optimizer::Adam,
        Optimizer::AdamW,
    ];
    for (spec, optimizer) in small_specs().into_iter().zip(optimizers) {
        let batch = puzzle_batch(&spec, 32, 3);
        let mut trainer = trainer(&spec, optimizer);
        let rate = if matches!(optimizer, Optimizer::Sgd { .. }) {
            0.05
        } else {
            0.01
        };
        let losses: Vec<Losses> = (0..30)
            .map(|_| trainer.step(&batch, rate).unwrap())
            .collect();
        let (first, last) = (losses[0], losses[29]);
        assert!(
            last.policy < 0.7 * first.policy,
            "{optimizer:?}: {first:?} to {last:?}"
        );
        assert!(
            last.value < 0.7 * first.value,
            "{optimizer:?}: {first:?} to {last:?}"
        );
    }
}

#[test]
fn batches_that_are_loaded_during_the_step_before_are_learnt_like_others() {
    let spec = NetworkSpec::resnet(1, 16);
    let batches: Vec<_> = (0..3).map(|seed| puzzle_batch(&spec, 16, seed)).collect();
    let mut reference = trainer(&spec, Optimizer::AdamW);
    let mut ahead = trainer(&spec, Optimizer::AdamW);
    let mut loaded = Some(ahead.load(&batches[0]).unwrap());
    for (number, batch) in batches.iter().enumerate() {
        let expected = reference.step(batch, 0.01).unwrap();
        let ready = loaded.take().unwrap();
        let (losses, next) = ahead
            .step_while_loading(&ready, 0.01, batches.get(number + 1))
            .unwrap();
        assert_eq!(losses, expected);
        loaded = next;
    }
    assert!(loaded.is_none());
    assert_eq!(ahead.training_step(), 3);

    let ready = ahead.load(&batches[0]).unwrap();
    let mut bad = batches[1].clone();
    bad.values.pop();
    let error = ahead.step_while_loading(&ready, 0.01, Some(&bad));
    assert!(error.unwrap_err().to_string().contains("value targets"));
    assert_eq!(ahead.training_step(), 4, "the step itself was taken");
}

#[test]
fn training_resumes_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let spec = NetworkSpec::resnet(1, 16);
    let batches: Vec<_> = (0..6).map(|seed| puzzle_batch(&spec, 16, seed)).collect();
    for optimizer in [
        Optimizer::Sgd { momentum: 0.9 },
        Optimizer::Adam,
        Optimizer::AdamW,
    ] {
        let run = |trainer: &mut Trainer, part: &[TrainBatch]| -> Vec<Losses> {
            part.iter()
                .map(|batch| trainer.step(batch, 0.01).unwrap())
                .collect()
        };
        let mut straight = trainer(&spec, optimizer);
        let expected = run(&mut straight, &batches);
        let mut stopped = trainer(&spec, optimizer);
        let mut found = run(&mut stopped, &batches[..3]);
        stopped.save(&path).unwrap();
        let mut resumed = Trainer::resume(
            &path,
            &params(optimizer),
            ComputeDevice::CPU,
            Precision::F32,
        )
        .unwrap();
        assert_eq!(resumed.training_step(), 3);
        found.extend(run(&mut resumed, &batches[3..]));
        assert_eq!(found, expected);
        let bytes = |weights: Result<Weights>| weights.unwrap().to_bytes().unwrap();
        assert_eq!(bytes(resumed.averaged()), bytes(straight.averaged()));
        assert_eq!(bytes(resumed.latest()), bytes(straight.latest()));
    }
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let spec = NetworkSpec::resnet(1, 8);
    let resume = |optimizer| {
        let params = params(optimizer);
        Trainer::resume(&path, &params, ComputeDevice::CPU, Precision::F32)
            .unwrap_err()
            .to_string()
    };
    trainer(&spec, Optimizer::Adam).save(&path).unwrap();
    assert!(resume(Optimizer::AdamW).contains("made with adam, now adam-w"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(resume(Optimizer::Adam).starts_with("not a usable checkpoint: "));
    std::fs::write(&path, Weights::random(spec, 1).unwrap().to_bytes().unwrap()).unwrap();
    assert!(resume(Optimizer::Adam).contains("rookery.checkpoint"));
}

#[test]
fn a_loss_that_is_no_number_names_its_step() {
    let spec = NetworkSpec::resnet(1, 8);
    let batch = puzzle_batch(&spec, 4, 1);
    let mut trainer = trainer(&spec, Optimizer::Sgd { momentum: 0.9 });
    trainer.step(&batch, 0.01).unwrap();
    let mut numbers = trainer.network.flat.trainable.shallow_clone();
    let _ = tch::no_grad(|| numbers.f_fill_(f64::NAN)).unwrap();
    let error = trainer.step(&batch, 0.01).unwrap_err().to_string();
    assert!(error.contains("at training step 1"), "{error}");
}

/// Losses do not show it: normalisations use a batch's own statistics in training.
#[test]
fn statistics_that_are_not_finite_are_neither_saved_nor_exported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let spec = NetworkSpec::resnet(1, 8);
    let batch = puzzle_batch(&spec, 4, 1);
    let mut trainer = trainer(&spec, Optimizer::Sgd { momentum: 0.9 });
    trainer.step(&batch, 0.01).unwrap();
    trainer.save(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let mut numbers = trainer.network.flat.statistics.shallow_clone();
    let _ = tch::no_grad(|| numbers.f_fill_(f64::INFINITY)).unwrap();
    trainer.step(&batch, 0.01).unwrap();
    for (error, part) in [
        (trainer.save(&path).unwrap_err(), ": statistics"),
        (trainer.averaged().unwrap_err(), ": averaged.statistics"),
    ] {
        assert!(matches!(error, TrainError::Diverged { .. }), "{error}");
        let error = error.to_string();
        assert!(error.ends_with(&format!("step 2{part}")), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), good);
}

#[test]
fn a_batch_whose_parts_do_not_fit_is_refused() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut trainer = trainer(&spec, Optimizer::Adam);
    let good = puzzle_batch(&spec, 4, 1);
    let mut refuse = |change: &dyn Fn(&mut TrainBatch)| {
        let mut batch = good.clone();
        change(&mut batch);
        trainer.step(&batch, 0.01).unwrap_err().to_string()
    };
    assert!(refuse(&|batch| batch.positions.clear()).contains("no position"));
    assert!(refuse(&|batch| batch.values.truncate(3)).contains("3 value targets for 4"));
    assert!(refuse(&|batch| batch.policy[0] = f32::NAN).contains("outside its range"));
    assert!(refuse(&|batch| batch.values[0].win = 2.0).contains("outside its range"));
    let extra = refuse(&|batch| batch.replies.push(&[0], &[1.0]));
    assert!(extra.contains("5 replies for 4"), "{extra}");
    let few = refuse(&|batch| batch.boards.truncate(3));
    assert!(few.contains("3 boards ahead for 4"), "{few}");
    assert!(
        refuse(&|batch| batch.boards[2].as_mut().unwrap().last[63] = 13)
            .contains("outside its range")
    );
    let other = small_specs().remove(1);
    assert!(refuse(&|batch| *batch = puzzle_batch(&other, 4, 1)).contains("takes lc0-112"));
}

/// Values count even where a fast search left no policy target.
#[test]
fn positions_without_a_policy_target_count_for_the_value_only() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut trainer = trainer(&spec, Optimizer::Adam);
    let mut batch = puzzle_batch(&spec, 8, 1);
    let with = trainer.measure(&batch).unwrap();
    let first = batch.positions.move_range(0);
    let loss_of_rest =
        |batch: &TrainBatch, trainer: &mut Trainer| trainer.measure(batch).unwrap().policy;
    batch.policy[first].fill(0.0);
    let without = trainer.measure(&batch).unwrap();
    assert_eq!(without.value, with.value);
    let mut rest = batch.clone();
    rest.positions.clear();
    (1..8).for_each(|index| rest.positions.push_from(&batch.positions, index));
    rest.policy.drain(batch.positions.move_range(0));
    rest.values.remove(0);
    rest.ahead.remove(0);
    rest.boards.remove(0);
    rest.replies.clear();
    assert!((loss_of_rest(&rest, &mut trainer) - without.policy).abs() < 1e-5);
}

/// On processors without instructions for it too, only slower.
#[test]
fn in_bf16_a_network_learns_as_in_f32() {
    let spec = NetworkSpec::resnet(1, 16);
    let batch = puzzle_batch(&spec, 32, 3);
    let mut reference = trainer(&spec, Optimizer::AdamW);
    let weights = Weights::random(spec, 1).unwrap();
    let params = params(Optimizer::AdamW);
    let mut other = Trainer::new(&weights, &params, ComputeDevice::CPU, Precision::Bf16).unwrap();
    assert_eq!(reference.precision(), Precision::F32);
    assert_eq!(other.precision(), Precision::Bf16);
    let expected = reference.measure(&batch).unwrap();
    let found = other.measure(&batch).unwrap();
    assert!(
        (found.policy - expected.policy).abs() < 0.1,
        "{found:?} {expected:?}"
    );
    for _ in 0..30 {
        other.step(&batch, 0.01).unwrap();
    }
    let learnt = other.measure(&batch).unwrap();
    assert!(learnt.policy < 0.5 * expected.policy, "{learnt:?}");
}

/// Auxiliary heads learn, a checkpoint keeps them, and evaluation computes what it would without them.
#[test]
fn auxiliary_heads_learn_and_evaluation_does_not_know_them() {
    let spec = NetworkSpec {
        auxiliary: AuxiliaryHead::ALL.to_vec(),
        ..NetworkSpec::resnet(2, 16)
    };
    let batch = puzzle_batch(&spec, 48, 11);
    let mut trainer = trainer(&spec, Optimizer::AdamW);
    let first = trainer.measure(&batch).unwrap();
    for (loss, at_least) in first
        .auxiliary
        .into_iter()
        .zip([0.5, 0.9, 2.0, 1.5, 1.5, 1.5])
    {
        assert!(loss > at_least, "{first:?}");
    }
    for _ in 0..120 {
        trainer.step(&batch, 0.01).unwrap();
    }
    let last = trainer.measure(&batch).unwrap();
    for (head, (last, first)) in AuxiliaryHead::ALL
        .into_iter()
        .zip(last.auxiliary.into_iter().zip(first.auxiliary))
    {
        // A soft target is never certain.
        let falls_to = if head == AuxiliaryHead::SoftPolicy {
            0.8
        } else {
            0.5
        };
        assert!(last < falls_to * first, "{head:?}: {first} to {last}");
    }

    let bytes = trainer.averaged().unwrap().to_bytes().unwrap();
    let (_, weights) = Weights::from_bytes(&bytes).unwrap();
    let plain = NetworkSpec {
        auxiliary: Vec::new(),
        ..weights.spec().clone()
    };
    let mut answers = [Evaluations::default(), Evaluations::default()];
    let mut evaluate = |weights: &Weights, place: usize| {
        let network = NetworkEvaluator::new(weights, ComputeDevice::CPU, Precision::F32);
        network
            .unwrap()
            .evaluate(&batch.positions, &mut answers[place])
            .unwrap();
    };
    evaluate(&weights, 0);
    evaluate(&weights.with_spec(plain).unwrap(), 1);
    assert_eq!(answers[0], answers[1]);

    let without = |change: fn(&mut TrainBatch)| {
        let mut batch = batch.clone();
        change(&mut batch);
        batch
    };
    let untaught = [
        (without(|batch| batch.ahead.clear()), "moves-left"),
        (without(|batch| batch.replies.clear()), "opponent-reply"),
        (without(|batch| batch.boards.clear()), "future-board"),
    ];
    for (batch, head) in untaught {
        let error = trainer.step(&batch, 0.01).unwrap_err().to_string();
        let expected = format!("auxiliary head {head} has no targets");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn positions_whose_end_nobody_knows_teach_no_moves_left() {
    let spec = NetworkSpec {
        auxiliary: vec![AuxiliaryHead::MovesLeft],
        ..NetworkSpec::resnet(1, 8)
    };
    let all = puzzle_batch(&spec, 4, 5);
    let mut trainer = trainer(&spec, Optimizer::Adam);
    let mut loss_of = |known: &[usize]| {
        let mut batch = all.clone();
        for (place, ahead) in batch.ahead.iter_mut().enumerate() {
            ahead.plies = ahead.plies.filter(|_| known.contains(&place));
        }
        trainer.measure(&batch).unwrap().auxiliary[AuxiliaryHead::MovesLeft.index()]
    };
    let each = [0, 1, 2, 3].map(|place| loss_of(&[place]));
    assert!(each.iter().all(|loss| *loss > 0.0), "{each:?}");
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!((loss_of(&[0, 1, 2, 3]) - mean(&each)).abs() < 1e-4);
    assert!((loss_of(&[1, 2]) - mean(&each[1..3])).abs() < 1e-4);
    assert_eq!(loss_of(&[]), 0.0);
}
