//! What a move leads to, as tables see it.

use rookery_common::chess::GameResult;
use shakmaty::Color;
use shakmaty_syzygy::Dtz;

/// Plies without capture or pawn move after which a game is drawn.
const FIFTY_MOVES: i32 = 100;

/// What the mover of a position can expect after one of its moves; the highest is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Prospect {
    /// A loss, with the number of plies to the next capture, pawn move or mate: the later the better.
    Loss(i32),
    /// A loss that comes too late for the fifty-move rule, if the opponent errs in nothing: by so
    /// many plies.
    LateLoss(i32),
    /// A draw.
    Draw,
    /// A win that comes too late, unless the opponent errs; a negative number of plies.
    LateWin(i32),
    /// A win; a negative number of plies, the sooner the better.
    Win(i32),
}

impl Prospect {
    /// By the distance to the next capture, pawn move or mate (positive for the mover's win), and
    /// the plies that the fifty-move rule has counted before the move.
    ///
    /// Distances of wins and losses may be rounded by a ply (see `shakmaty_syzygy`); one that
    /// comes to just a hundred plies counts as in time.
    pub(super) fn new(distance: Dtz, counted: u32) -> Self {
        let counted = i32::try_from(counted).unwrap_or(i32::MAX);
        let plies = distance.0.saturating_abs();
        let in_time = plies.saturating_add(counted) <= FIFTY_MOVES;
        match (distance.signum(), in_time) {
            (1, true) => Self::Win(-plies),
            (1, false) => Self::LateWin(-plies),
            (-1, true) => Self::Loss(plies),
            (-1, false) => Self::LateLoss(plies),
            _ => Self::Draw,
        }
    }

    /// The game's result, `mover` being who chooses the move.
    pub(super) const fn result(self, mover: Color) -> GameResult {
        match self {
            Self::Win(_) => GameResult::win_of(mover),
            Self::Loss(_) => GameResult::win_of(mover.other()),
            Self::LateLoss(_) | Self::Draw | Self::LateWin(_) => GameResult::Draw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_prospect_is_the_higher() {
        let order = [
            Prospect::new(Dtz(-1), 0),
            Prospect::new(Dtz(-40), 0),
            Prospect::new(Dtz(-101), 0),
            Prospect::new(Dtz(0), 50),
            Prospect::new(Dtz(120), 0),
            Prospect::new(Dtz(101), 0),
            Prospect::new(Dtz(40), 0),
            Prospect::new(Dtz(1), 99),
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
        let results = order.map(|prospect| prospect.result(Color::Black));
        let (lost, won) = (GameResult::WhiteWins, GameResult::BlackWins);
        let draw = GameResult::Draw;
        assert_eq!(results, [lost, lost, draw, draw, draw, draw, won, won]);
    }

    #[test]
    fn plies_that_were_counted_before_make_wins_come_too_late() {
        assert_eq!(Prospect::new(Dtz(20), 80), Prospect::Win(-20));
        assert_eq!(Prospect::new(Dtz(20), 81), Prospect::LateWin(-20));
        assert_eq!(Prospect::new(Dtz(-20), 80), Prospect::Loss(20));
        assert_eq!(Prospect::new(Dtz(-20), 81), Prospect::LateLoss(20));
    }
}
