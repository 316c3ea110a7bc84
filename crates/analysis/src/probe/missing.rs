//! What a network's value says of a missing piece: openings in which one piece was taken off the board.

use anyhow::Context as _;
use rookery_cli::Shutdown;
use rookery_common::chess::GameHistory;
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_engine::{Batch, Evaluations, Evaluator};
use serde::Serialize;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Position, Role, Setup};

/// Openings of the built-in book that are looked at.
const OPENINGS: u32 = 64;

/// A kind of piece, and what its owner expects without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissingReport {
    /// The piece; none where all are there.
    pub piece: Option<&'static str>,
    /// Positions that were evaluated.
    pub positions: usize,
    /// The mean value for the side that lacks the piece, -1 to 1; with all pieces, White's.
    pub value: f64,
}

/// A position, and the side whose piece is missing.
type Case = (GameHistory, Color);

/// The value with all pieces, and without one of each kind, by the network alone; fewer kinds if the user stops.
///
/// # Errors
///
/// If the network fails.
pub fn values(
    evaluator: &mut dyn Evaluator,
    shutdown: &Shutdown,
) -> anyhow::Result<Vec<MissingReport>> {
    let book = OpeningBook::built_in();
    let mut openings = Vec::new();
    for opening in book.of_pairs(Seed(1), 0, OPENINGS) {
        openings.push(opening.start()?.history()?.position().clone());
    }
    let whole = openings
        .iter()
        .filter_map(|position| case(position.to_setup(EnPassantMode::Legal), Color::White));
    let mut reports = vec![report(None, &whole.collect::<Vec<_>>(), evaluator)?];
    for (piece, role) in [
        ("pawn", Role::Pawn),
        ("knight", Role::Knight),
        ("bishop", Role::Bishop),
        ("rook", Role::Rook),
        ("queen", Role::Queen),
    ] {
        if shutdown.is_requested() {
            break;
        }
        let cases: Vec<Case> = openings
            .iter()
            .flat_map(|position| without(position, role))
            .collect();
        reports.push(report(Some(piece), &cases, evaluator)?);
    }
    Ok(reports)
}

/// The position without each piece of the kind in turn. Where that is no legal position, it is left out.
fn without(position: &Chess, role: Role) -> Vec<Case> {
    let remove = |square| {
        let mut setup = position.to_setup(EnPassantMode::Legal);
        let piece = setup.board.remove_piece_at(square)?;
        setup.castling_rights.discard(square);
        setup.ep_square = None;
        case(setup, piece.color)
    };
    let pieces = position.board().by_role(role);
    pieces.into_iter().filter_map(remove).collect()
}

/// The position as one that a game can begin with.
fn case(setup: Setup, color: Color) -> Option<Case> {
    let position: Chess = setup.position(CastlingMode::Standard).ok()?;
    Some((GameHistory::new(position), color))
}

fn report(
    piece: Option<&'static str>,
    cases: &[Case],
    evaluator: &mut dyn Evaluator,
) -> anyhow::Result<MissingReport> {
    let mut batch = Batch::new(evaluator.input(), evaluator.policy());
    cases.iter().for_each(|(game, _)| batch.push(game, &[]));
    let mut answer = Evaluations::default();
    evaluator
        .evaluate(&batch, &mut answer)
        .context("the network failed")?;
    let owners = cases.iter().enumerate().map(|(place, (game, owner))| {
        let q = f64::from(answer.values[place].q());
        if game.turn() == *owner { q } else { -q }
    });
    Ok(MissingReport {
        piece,
        positions: cases.len(),
        value: owners.sum::<f64>() / cases.len().max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use rookery_engine::dummy::HandEvaluator;

    use super::*;

    #[test]
    fn an_evaluator_that_counts_material_misses_the_queen_most() {
        let reports = values(&mut HandEvaluator::default(), &Shutdown::default()).unwrap();
        let value = |place: usize| reports[place].value;
        assert_eq!(reports.len(), 6);
        // Sixteen pawns of each opening, a few of them gone.
        assert!(reports[1].positions > 64 * 12, "{reports:?}");
        assert!(value(0).abs() < 0.2, "{reports:?}");
        assert!(
            value(5) < value(4) && value(4) < value(2) && value(2) < value(1),
            "{reports:?}"
        );
        assert!(value(1) < value(0), "{reports:?}");
    }
}
