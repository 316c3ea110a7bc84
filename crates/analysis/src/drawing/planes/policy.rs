//! Policy planes with their names, and the policy of a position with and without illegal moves.

use rookery_common::chess::GameHistory;
use rookery_common::encoding::PolicyEncoding;
use rookery_common::encoding::policy::{all_moves, lc0_conv_cells};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError};
use shakmaty::{Color as Side, Position as _};

use super::Plane;

/// Boards in a row: a direction's seven distances; the eight knight's moves; the nine
/// underpromotions.
pub(super) const COLUMNS: usize = 9;

/// A policy by index; none for a move that does not count.
pub(super) struct Policies {
    /// Softmax over every output.
    pub(super) all: Vec<Option<f32>>,
    /// Softmax over the legal moves.
    pub(super) legal: Vec<Option<f32>>,
}

/// Evaluates the policy in the position on the board.
pub(super) fn evaluate(
    game: &GameHistory,
    evaluator: &mut dyn Evaluator,
) -> Result<Policies, EvaluatorError> {
    let encoding = evaluator.policy();
    let mut batch = Batch::new(evaluator.input(), encoding);
    let size = u16::try_from(encoding.size()).unwrap_or(u16::MAX);
    batch.push_indices(game, 0..size);
    let mut answer = Evaluations::default();
    evaluator.evaluate(&batch, &mut answer)?;
    let mut legal = vec![false; answer.logits.len()];
    for m in game.position().legal_moves() {
        legal[usize::from(encoding.index(m, game.turn()))] = true;
    }
    Ok(Policies {
        all: softmax(&answer.logits, |_| true),
        legal: softmax(&answer.logits, |index| legal[index]),
    })
}

fn softmax(logits: &[f32], counts: impl Fn(usize) -> bool) -> Vec<Option<f32>> {
    let counted = || {
        logits
            .iter()
            .enumerate()
            .filter(|(index, _)| counts(*index))
    };
    let highest = counted().fold(f32::NEG_INFINITY, |high, (_, logit)| high.max(*logit));
    let sum: f32 = counted().map(|(_, logit)| (logit - highest).exp()).sum();
    let share =
        |(index, logit): (usize, &f32)| counts(index).then(|| (logit - highest).exp() / sum);
    logits.iter().enumerate().map(share).collect()
}

/// The 73 planes of a policy: the square a move comes from is as dark as the root of its share of
/// the likeliest move's probability.
pub(super) fn planes(encoding: PolicyEncoding, policy: &[Option<f32>]) -> Vec<Plane> {
    let highest = policy.iter().flatten().copied().fold(0.0, f32::max);
    let empty = |name| Plane {
        name,
        cells: [None; 64],
    };
    let mut planes: Vec<Plane> = names(encoding).into_iter().map(empty).collect();
    for (index, cell) in cells(encoding) {
        let share = policy[index].map_or(0.0, |p| (p / highest.max(f32::MIN_POSITIVE)).sqrt());
        planes[cell / 64].cells[cell % 64] = Some(share);
    }
    planes
}

/// Every index of an encoding that stands for a move, with its cell `64 * plane + origin`.
fn cells(encoding: PolicyEncoding) -> Vec<(usize, usize)> {
    if encoding == PolicyEncoding::Lc01858 {
        let cells = lc0_conv_cells().iter().map(|cell| usize::from(*cell));
        return cells.enumerate().collect();
    }
    let index = |encoding: PolicyEncoding, m| usize::from(encoding.index(m, Side::White));
    all_moves()
        .map(|m| (index(encoding, m), index(PolicyEncoding::Az73, m)))
        .collect()
}

fn names(encoding: PolicyEncoding) -> Vec<String> {
    let directions = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
    let queen = directions
        .iter()
        .flat_map(|direction| (1..8).map(move |far| format!("{direction} {far}")));
    let jumps = ["NNE", "ENE", "ESE", "SSE", "SSW", "WSW", "WNW", "NNW"];
    let roles = match encoding {
        PolicyEncoding::Lc01858 => ["R", "B", "Q"],
        PolicyEncoding::Az73 | PolicyEncoding::Flat1968 => ["N", "B", "R"],
    };
    let promotions = ["NW", "N", "NE"]
        .iter()
        .flat_map(|way| roles.iter().map(move |role| format!("{way} ={role}")));
    let knight = jumps.iter().map(|jump| (*jump).to_owned());
    queen.chain(knight).chain(promotions).collect()
}

/// Column and row of a plane.
pub(super) fn place(plane: usize) -> (usize, usize) {
    match plane {
        0..56 => (plane % 7, plane / 7),
        56..64 => (plane - 56, 8),
        _ => (plane - 64, 9),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rookery_common::chess::moves::parse_uci;
    use rookery_common::encoding::InputEncoding;
    use rookery_engine::dummy::HandEvaluator;

    use super::*;

    #[test]
    fn every_plane_has_a_name_and_its_place() {
        for encoding in PolicyEncoding::ALL {
            assert_eq!(names(encoding).len(), 73);
        }
        let places: HashSet<_> = (0..73).map(place).collect();
        assert_eq!(places.len(), 73);
        assert!(places.iter().all(|(column, _)| *column < COLUMNS));
    }

    #[test]
    fn every_move_has_its_cell() {
        let game = GameHistory::default();
        let e2e4 = parse_uci(game.position(), "e2e4").unwrap();
        for encoding in PolicyEncoding::ALL {
            let index = usize::from(encoding.index(e2e4, Side::White));
            let cells = cells(encoding);
            let found = cells.iter().find(|cell| cell.0 == index).unwrap();
            // Plane 1 is two squares ahead, square 12 is e2.
            assert_eq!(found.1, 64 + 12, "{encoding:?}");
            assert!(cells.iter().all(|(_, cell)| *cell < 64 * 73));
        }
    }

    #[test]
    fn only_legal_moves_are_left_of_the_legal_policy() {
        for encoding in PolicyEncoding::ALL {
            let mut evaluator = HandEvaluator::new(InputEncoding::Lc0112, encoding);
            let policy = evaluate(&GameHistory::default(), &mut evaluator).unwrap();
            assert_eq!(policy.legal.iter().flatten().count(), 20);
            assert_eq!(policy.all.iter().flatten().count(), encoding.size());
            for shares in [&policy.all, &policy.legal] {
                let sum: f32 = shares.iter().flatten().sum();
                assert!((sum - 1.0).abs() < 1e-3);
            }
        }
    }
}
