//! Batches for tests that are programs of their own.

use rookery_common::chess::GameHistory;
use rookery_common::network::NetworkSpec;
use rookery_engine::{Batch, Wdl};
use rookery_train::{AuxiliaryTargets, BoardsAhead, OpponentReplyTargets, TrainBatch};
use shakmaty::Position as _;

/// The positions of games whose every move is the legal one in the middle of the list, or the one after it.
pub(crate) fn positions(spec: &NetworkSpec, count: usize) -> Batch {
    let mut batch = Batch::new(spec.input, spec.policy.encoding);
    let mut game = GameHistory::default();
    while batch.len() < count {
        if game.end().is_some() {
            game = GameHistory::default();
        }
        let moves = game.position().legal_moves();
        batch.push(&game, &moves);
        game.push(moves[(moves.len() / 2 + batch.len() % 2) % moves.len()]);
    }
    batch
}

/// Positions with one right move, one right reply and one right value each.
pub(crate) fn train_batch(spec: &NetworkSpec, count: usize) -> TrainBatch {
    let positions = positions(spec, count);
    let mut policy = vec![0.0; positions.moves().len()];
    let (mut values, mut ahead, mut replies) =
        (Vec::new(), Vec::new(), OpponentReplyTargets::default());
    for place in 0..positions.len() {
        let moves = positions.move_range(place);
        policy[moves.start + place % moves.len()] = 1.0;
        let value = [Wdl::WIN, Wdl::DRAW, Wdl::LOSS][place % 3];
        values.push(value);
        ahead.push(AuxiliaryTargets {
            plies: Some(place as f32),
            short_value: value,
        });
        replies.push(&[3, 5, place as u16 + 7], &[0.0, 1.0, 0.0]);
    }
    let board = BoardsAhead {
        future: [1; 64],
        last: [12; 64],
    };
    TrainBatch {
        boards: vec![Some(board); positions.len()],
        positions,
        policy,
        values,
        ahead,
        replies,
    }
}
