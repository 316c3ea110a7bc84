//! Games as Lc0 training records, version 6 (lc0, `src/trainingdata/trainingdata_v6.h`).
//!
//! What a chunk does not hold is filled as lc0 fills what it does not know: the network's own
//! evaluation (`orig_*`) is NaN, moves left are the plies that were really left, the played
//! move's value is the best move's where it is that move, and else NaN.

use shakmaty::Move;

use super::super::record::{Effort, GameRecord, PlyRecord};
use crate::chess::moves::canonical_moves;
use crate::chess::{GameHistory, StartError, Termination};
use crate::encoding::{InputEncoding, PolicyEncoding};

/// Size of a record, in bytes.
pub const RECORD_BYTES: usize = 8356;

/// `INPUT_CLASSICAL_112_PLANE`.
const INPUT_FORMAT: u32 = 1;

/// The records of a game, one for each fully searched ply, [`RECORD_BYTES`] each.
///
/// # Errors
///
/// [`StartError`] if the game's start is not a position; in games read from a chunk it always is one.
pub fn game(record: &GameRecord) -> Result<Vec<u8>, StartError> {
    let mut history = record.start.history()?;
    let mut bytes = Vec::with_capacity(record.plies.len() * RECORD_BYTES);
    for (index, ply) in record.plies.iter().enumerate() {
        if ply.effort == Effort::Full {
            let left = (record.plies.len() - index) as f32;
            write(&mut bytes, &history, record, ply, left);
        }
        history.push(ply.played);
    }
    Ok(bytes)
}

fn write(
    bytes: &mut Vec<u8>,
    history: &GameHistory,
    game: &GameRecord,
    ply: &PlyRecord,
    left: f32,
) {
    let legal = canonical_moves(history.position());
    let packed = InputEncoding::Lc0112.encode(history);
    let index = |m: Move| PolicyEncoding::Lc01858.index(m, history.turn());
    let start = bytes.len();
    put_u32(bytes, 6);
    put_u32(bytes, INPUT_FORMAT);
    put_f32s(bytes, &probabilities(ply, &legal, index));
    for plane in &packed.binary {
        // Lc0 stores each rank with its files in reverse.
        bytes.extend(plane.to_le_bytes().map(u8::reverse_bits));
    }
    let [c0, c1, c2, c3, black, rule50, ..] = packed.scalars[..] else {
        unreachable!("lc0-112 has eight scalar planes")
    };
    let rule50 = rule50.min(255.0);
    bytes.extend([c0, c1, c2, c3, black, rule50].map(|n| n as u8));
    bytes.extend([ended_early(game.end.termination), 0]);
    let best = most_visited(&ply.visits);
    let result = f32::from(game.end.result.score_for(history.turn()));
    put_f32s(bytes, &values(ply, legal[best] == ply.played, result, left));
    let visits = ply
        .visits
        .iter()
        .fold(0_u32, |sum, n| sum.saturating_add(*n));
    put_u32(bytes, visits);
    bytes.extend(index(ply.played).to_le_bytes());
    bytes.extend(index(legal[best]).to_le_bytes());
    // policy_kld and reserved.
    put_f32s(bytes, &[0.0, 0.0]);
    debug_assert_eq!(bytes.len() - start, RECORD_BYTES);
}

/// The bits of `invariance_info` that tell games which the rules have not ended: 5, "adjudicated", and with it
/// 4, "max game length exceeded". Who trains on the records can leave out the results of such games.
const fn ended_early(termination: Termination) -> u8 {
    match termination {
        Termination::Resignation | Termination::Adjudication => 1 << 5,
        Termination::PlyLimit => 1 << 5 | 1 << 4,
        Termination::Checkmate
        | Termination::Stalemate
        | Termination::Threefold
        | Termination::FiftyMove
        | Termination::InsufficientMaterial => 0,
    }
}

/// Shares of the policy target, -1 for illegal moves.
fn probabilities(ply: &PlyRecord, legal: &[Move], index: impl Fn(Move) -> u16) -> Vec<f32> {
    let mut probabilities = vec![-1.0; PolicyEncoding::Lc01858.size()];
    let weights = ply.policy_weights();
    let sum: f32 = weights.iter().sum();
    for (m, weight) in legal.iter().zip(weights) {
        probabilities[usize::from(index(*m))] = weight / sum;
    }
    probabilities
}

/// `root_q` to `orig_m` in the record's order.
fn values(ply: &PlyRecord, played_best: bool, result: f32, left: f32) -> [f32; 15] {
    let played_q = if played_best { ply.best_q } else { f32::NAN };
    let result_draw = if result == 0.0 { 1.0 } else { 0.0 };
    [
        ply.root_q,
        ply.best_q,
        ply.root_draw,
        ply.root_draw,
        left,
        left,
        left,
        result,
        result_draw,
        played_q,
        ply.root_draw,
        left,
        f32::NAN,
        f32::NAN,
        f32::NAN,
    ]
}

fn most_visited(visits: &[u32]) -> usize {
    let first_best = visits.iter().enumerate().rev().max_by_key(|(_, n)| **n);
    first_best.map_or(0, |(place, _)| place)
}

fn put_u32(bytes: &mut Vec<u8>, n: u32) {
    bytes.extend(n.to_le_bytes());
}

fn put_f32s(bytes: &mut Vec<u8>, numbers: &[f32]) {
    numbers.iter().for_each(|n| bytes.extend(n.to_le_bytes()));
}
