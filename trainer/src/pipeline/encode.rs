//! From sampled positions to a training batch.

use rookery_common::chess::PackedMove;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::encoding::{InputEncoding, PolicyEncoding, can_mirror};
use rookery_common::network::{AuxiliaryHead, NetworkSpec};
use rookery_common::params::{Sampling, TrainingParams};
use rookery_engine::Batch;
use rookery_train::{OpponentReplyTargets, TrainBatch};
use shakmaty::Move;

use super::prefetch::BatchSource;
use super::sampler::Sampler;
use crate::buffer::{Mixture, PolicyTarget, StoredGame, ValueMix};

/// What every batch of a candidate has in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchPlan {
    /// What the network sees.
    pub input: InputEncoding,
    /// What its policy means.
    pub policy: PolicyEncoding,
    /// Positions of a batch.
    pub batch_size: usize,
    /// What value targets are made of.
    pub value: ValueMix,
    /// Share of the policy target that is spread evenly over the legal moves.
    pub label_smoothing: f64,
    /// How positions are drawn.
    pub sampling: Sampling,
    /// Share of the positions that are mirrored, where they can be.
    pub mirror_share: f64,
    /// Whether the network learns how the opponent answers.
    pub replies: bool,
    /// Whether it learns what stands on the board later.
    pub boards: bool,
}

impl BatchPlan {
    /// The batches that a network is trained on.
    pub fn new(spec: &NetworkSpec, params: &TrainingParams) -> Self {
        Self {
            input: spec.input,
            policy: spec.policy.encoding,
            batch_size: params.batch_size as usize,
            value: ValueMix::from(params),
            label_smoothing: params.label_smoothing,
            sampling: params.sampling,
            mirror_share: params.mirror_share,
            replies: spec.auxiliary.contains(&AuxiliaryHead::OpponentReply),
            boards: spec.auxiliary.iter().any(|head| head.learns_boards()),
        }
    }

    /// The same targets on positions as they were played, each as likely as any other: for
    /// validation, whose losses can then be compared whatever training does.
    #[must_use]
    pub const fn plain(self, batch_size: usize) -> Self {
        Self {
            batch_size,
            sampling: Sampling::Positions,
            mirror_share: 0.0,
            ..self
        }
    }

    /// An empty batch.
    pub fn empty(&self) -> TrainBatch {
        let positions = Batch::new(self.input, self.policy);
        TrainBatch {
            positions,
            policy: Vec::new(),
            values: Vec::new(),
            ahead: Vec::new(),
            replies: OpponentReplyTargets::default(),
            boards: Vec::new(),
        }
    }
}

/// Batches of positions drawn from windows.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// The windows.
    pub mixture: Mixture,
    /// What every batch is like.
    pub plan: BatchPlan,
    /// Which positions it has.
    pub sampler: Sampler,
}

impl BatchSource for Sampled {
    fn empty(&self) -> TrainBatch {
        self.plan.empty()
    }

    fn make(&self, number: u64, batch: &mut TrainBatch) {
        encode_into(batch, &self.mixture, self.sampler, number, &self.plan);
    }
}

/// Batch `number`: which positions it has follows from the number, and so does which of them are
/// mirrored.
pub fn encode_batch(
    mixture: &Mixture,
    sampler: Sampler,
    number: u64,
    plan: &BatchPlan,
) -> TrainBatch {
    let mut batch = plan.empty();
    encode_into(&mut batch, mixture, sampler, number, plan);
    batch
}

/// As [`encode_batch`], in place of what `batch` held.
fn encode_into(
    batch: &mut TrainBatch,
    mixture: &Mixture,
    sampler: Sampler,
    number: u64,
    plan: &BatchPlan,
) {
    batch.clear();
    let picks = sampler.picks(number, plan.batch_size, mixture, plan.sampling);
    let mirrored = sampler.mirrored(number, plan.batch_size, plan.mirror_share);
    for (pick, mirrored) in picks.into_iter().zip(mirrored) {
        if let Some((game, ply)) = mixture.position(pick) {
            push(batch, game, ply, plan, mirrored);
        }
    }
}

/// Adds one position with its targets; one that cannot be replayed is left out. After a fast search
/// all policy shares are 0: it counts for the value only.
fn push(batch: &mut TrainBatch, game: &StoredGame, ply: u32, plan: &BatchPlan, mirrored: bool) {
    let Some(history) = game.history(ply) else {
        return;
    };
    let (mover, legal) = (history.turn(), canonical_moves(history.position()));
    if plan.boards {
        let Some(boards) = game.boards(ply, mover) else {
            return;
        };
        batch.boards.push(Some(boards));
    }
    batch.positions.push(&history, &legal);
    batch.values.push(game.value(ply, mover, plan.value));
    batch.ahead.push(game.ahead(ply, mover));
    let target = game.policy(ply, &legal, mover);
    push_policy(
        &mut batch.policy,
        &target,
        &legal,
        plan.label_smoothing as f32,
    );
    if plan.replies {
        push_reply(&mut batch.replies, game, ply, plan.policy);
    }
    if mirrored && can_mirror(&history) {
        batch.mirror(batch.positions.len() - 1);
    }
}

/// Adds what the opponent's own position, after the move of `ply`, teaches its policy; nothing at a
/// game's end.
fn push_reply(
    replies: &mut OpponentReplyTargets,
    game: &StoredGame,
    ply: u32,
    policy: PolicyEncoding,
) {
    let after = (ply + 1 < game.positions())
        .then(|| game.history(ply + 1))
        .flatten();
    let Some(after) = after else {
        return replies.push(&[], &[]);
    };
    let legal = canonical_moves(after.position());
    let (mut moves, mut shares) = (Vec::new(), Vec::new());
    policy.indices_into(
        legal.iter().map(|m| PackedMove::pack(*m)),
        after.position(),
        &mut moves,
    );
    let target = game.policy(ply + 1, &legal, after.turn());
    push_policy(&mut shares, &target, &legal, 0.0);
    replies.push(&moves, &shares);
}

/// Adds a share for each legal move.
fn push_policy(shares: &mut Vec<f32>, target: &PolicyTarget, legal: &[Move], smoothing: f32) {
    match target {
        PolicyTarget::Weights(weights) => push_weights(shares, weights, smoothing),
        PolicyTarget::Played { place, share } => push_played(shares, legal.len(), *place, *share),
        PolicyTarget::None => shares.resize(shares.len() + legal.len(), 0.0),
    }
}

/// Adds weights as shares of their sum, `smoothing` of which is spread evenly.
fn push_weights(policy: &mut Vec<f32>, weights: &[u16], smoothing: f32) {
    let sum: f32 = weights.iter().map(|weight| f32::from(*weight)).sum();
    let (scale, floor) = (
        (1.0 - smoothing) / sum.max(1.0),
        smoothing / weights.len() as f32,
    );
    let share = |weight: &u16| f32::from(*weight) * scale + floor;
    policy.extend(weights.iter().map(share));
}

/// Adds the target of a played move: its share, and the rest in equal parts for the other legal
/// moves; a forced move gets everything.
pub fn push_played(policy: &mut Vec<f32>, legal: usize, played: usize, share: f32) {
    let share = if legal == 1 { 1.0 } else { share };
    let other = (1.0 - share) / (legal.max(2) - 1) as f32;
    policy.extend((0..legal).map(|place| if place == played { share } else { other }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{ReplayBuffer, Window};
    use crate::testing;

    fn plan(params: &TrainingParams) -> BatchPlan {
        BatchPlan::new(&NetworkSpec::resnet(1, 8), params)
    }

    /// Every position of a game, in order.
    fn all(seed: u64, plan: &BatchPlan, mirrored: bool) -> TrainBatch {
        let game = StoredGame::from_record(&testing::game(seed, 40)).unwrap();
        let mut batch = plan.empty();
        (0..game.positions()).for_each(|ply| push(&mut batch, &game, ply, plan, mirrored));
        batch
    }

    #[test]
    fn smoothing_moves_a_share_of_the_target_to_all_legal_moves() {
        let batch = |label_smoothing| {
            let params = TrainingParams {
                label_smoothing,
                ..TrainingParams::default()
            };
            all(5, &plan(&params), false)
        };
        let (plain, smooth) = (batch(0.0), batch(0.2));
        let mut targets = 0;
        for place in 0..plain.values.len() {
            let range = plain.positions.move_range(place);
            let (before, after) = (&plain.policy[range.clone()], &smooth.policy[range]);
            let has_target = before.iter().sum::<f32>() > 0.0;
            targets += usize::from(has_target);
            for (before, after) in before.iter().zip(after) {
                let floor = 0.2 / plain.positions.moves_of(place).len() as f32;
                let expected = if has_target {
                    0.8 * before + floor
                } else {
                    0.0
                };
                assert!((after - expected).abs() < 1e-6);
            }
        }
        assert!(targets > 0 && targets < plain.values.len(), "of both kinds");
    }

    /// Mirrored are planes and moves, each move keeping its share; the value is the same. Positions
    /// whose history knows castling stay as they are.
    #[test]
    fn only_positions_without_castling_are_mirrored_and_targets_follow() {
        let plan = plan(&TrainingParams::default());
        let (mut mirrored, mut kept) = (0, 0);
        for seed in 0..12 {
            let game = StoredGame::from_record(&testing::game(seed, 40)).unwrap();
            let (plain, other) = (all(seed, &plan, false), all(seed, &plan, true));
            assert_eq!(
                (&plain.values, &plain.policy),
                (&other.values, &other.policy)
            );
            for place in 0..plain.values.len() {
                let mut expected = plain.positions.clone();
                if can_mirror(&game.history(place as u32).unwrap()) {
                    expected.mirror(place);
                    mirrored += 1;
                } else {
                    kept += 1;
                }
                assert_eq!(expected.binary_of(place), other.positions.binary_of(place));
                assert_eq!(
                    expected.scalars_of(place),
                    other.positions.scalars_of(place)
                );
                assert_eq!(expected.moves_of(place), other.positions.moves_of(place));
            }
        }
        assert!(mirrored > 20 && kept > 20, "{mirrored} and {kept}");
    }

    /// What is learnt of the opponent's reply is what the next position teaches its own mover, mirrored
    /// where the position itself is.
    #[test]
    fn a_reply_is_the_target_of_the_next_position() {
        let spec = NetworkSpec {
            auxiliary: vec![AuxiliaryHead::OpponentReply],
            ..NetworkSpec::resnet(1, 8)
        };
        let plan = BatchPlan::new(&spec, &TrainingParams::default());
        for seed in 0..6 {
            let game = StoredGame::from_record(&testing::game(seed, 40)).unwrap();
            let (plain, mirrored) = (all(seed, &plan, false), all(seed, &plan, true));
            let last = plain.values.len() - 1;
            assert_eq!(plain.replies.len(), plain.values.len());
            for place in 0..last {
                let range = plain.positions.move_range(place + 1);
                let next = plain.positions.moves_of(place + 1);
                assert_eq!(plain.replies.of(place), (next, &plain.policy[range]));
                let turned = can_mirror(&game.history(place as u32).unwrap());
                let expected = next.iter().map(|index| {
                    if turned {
                        plan.policy.mirrored(*index)
                    } else {
                        *index
                    }
                });
                let expected: Vec<u16> = expected.collect();
                let (moves, shares) = mirrored.replies.of(place);
                assert_eq!((moves, shares), (&*expected, plain.replies.of(place).1));
            }
            assert!(
                plain.replies.of(last).0.is_empty(),
                "nobody answers the end"
            );
        }
    }

    /// The board that is learnt is the one that the encoding of the later position shows, to the same mover as an even
    /// number of plies lies between; near the end it is the last one.
    #[test]
    fn boards_ahead_are_those_of_the_later_positions() {
        let spec = NetworkSpec {
            auxiliary: vec![AuxiliaryHead::FinalBoard],
            ..NetworkSpec::resnet(1, 8)
        };
        let plan = BatchPlan::new(&spec, &TrainingParams::default());
        let later = AuxiliaryHead::FUTURE_PLIES as usize;
        let (mut compared, mut turned) = (0, 0);
        for seed in 0..6 {
            let game = StoredGame::from_record(&testing::game(seed, 40)).unwrap();
            let (plain, mirrored) = (all(seed, &plan, false), all(seed, &plan, true));
            let plies = plain.values.len();
            assert_eq!(plain.boards.len(), plies);
            for place in 0..plies {
                let boards = plain.boards[place].unwrap();
                if place + later < plies {
                    assert_eq!(boards.future, shown(&plain.positions, place + later));
                    compared += 1;
                } else {
                    assert_eq!(boards.future, boards.last);
                }
                // Two plies apart, the same player sees the same end.
                if place + 2 < plies {
                    assert_eq!(boards.last, plain.boards[place + 2].unwrap().last);
                }
                if can_mirror(&game.history(place as u32).unwrap()) {
                    let file = |square: usize| square / 8 * 8 + 7 - square % 8;
                    for square in 0..64 {
                        let other = mirrored.boards[place].unwrap();
                        assert_eq!(other.future[file(square)], boards.future[square]);
                        assert_eq!(other.last[file(square)], boards.last[square]);
                    }
                    turned += 1;
                }
            }
        }
        assert!(compared > 50 && turned > 20, "{compared}, {turned}");
    }

    /// The classes of the squares that the newest board of an encoded position shows.
    fn shown(positions: &Batch, place: usize) -> [u8; 64] {
        let planes = positions.binary_of(place);
        std::array::from_fn(|square| {
            let plane = (0..12).find(|plane| planes[*plane] >> square & 1 == 1);
            plane.map_or(0, |plane| plane as u8 + 1)
        })
    }

    #[test]
    fn batches_mirror_the_share_that_is_asked_for() {
        let mut buffer = ReplayBuffer::new(u64::MAX);
        // Its start has no castling rights.
        let seeds = (0..).filter(|seed| {
            let start = testing::game(*seed, 40).start;
            start.fen.is_some_and(|fen| fen.contains("3R2K1"))
        });
        for seed in seeds.take(5) {
            buffer.add(StoredGame::from_record(&testing::game(seed, 40)).unwrap());
        }
        let window: Window = buffer.window(u64::MAX);
        let mixture = Mixture::of(window);
        let sampler = Sampler {
            seed: 1,
            candidate: 0,
        };
        let batch = |mirror_share| {
            let params = TrainingParams {
                mirror_share,
                batch_size: 400,
                ..TrainingParams::default()
            };
            encode_batch(&mixture, sampler, 3, &plan(&params))
        };
        let (none, half, all) = (batch(0.0), batch(0.5), batch(1.0));
        let moved = |other: &TrainBatch| {
            let differs = |place: &usize| {
                none.positions.binary_of(*place) != other.positions.binary_of(*place)
            };
            (0..400).filter(differs).count()
        };
        assert!(moved(&all) > 390, "{}", moved(&all));
        assert!(moved(&half).abs_diff(200) < 50, "{}", moved(&half));
        assert_eq!(moved(&batch(0.0)), 0);
    }
}
