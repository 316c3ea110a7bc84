//! `go perft N`: how many lines of N legal moves there are, for each first move, as Stockfish tells it.

use shakmaty::{Chess, Position as _};

use super::control::Control;
use super::output::Output;
use super::player::GoOrder;
use rookery_analysis::position_line::Notation;

/// Most plies. Every ply takes room on the stack, and no machine counts this deep from most positions.
const MOST_PLIES: u32 = 32;
/// Up to this number of plies, counting does not poll the GUI: it takes milliseconds.
const AT_ONCE: u32 = 3;

/// Why lines were not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Uncounted {
    /// The number of plies is missing or not allowed.
    #[error("error: go perft takes 1 to {MOST_PLIES} plies")]
    Plies,
    /// What was set up last is no position.
    #[error("error: there is no position to count from")]
    NoPosition,
    /// The GUI wanted an end.
    #[error("perft was stopped; the counts printed so far are complete")]
    Stopped,
}

/// Counts the lines of `plies` moves, tells of each first move, and gives the sum. Lines that end sooner are
/// not counted; draws by rule end none.
///
/// # Errors
///
/// [`Uncounted`] if there is nothing to count, or the GUI wants an end.
pub(super) fn count(order: &GoOrder, plies: u32, output: &Output) -> Result<u64, Uncounted> {
    if order.refused {
        return Err(Uncounted::NoPosition);
    }
    if !(1..=MOST_PLIES).contains(&plies) {
        return Err(Uncounted::Plies);
    }
    let notation = Notation::from_flag(order.options.chess960);
    let position = order.game.position();
    let mut sum = 0;
    for m in position.legal_moves() {
        let mut next = position.clone();
        next.play_unchecked(m);
        let lines = lines_from(&next, plies - 1, &order.control).ok_or(Uncounted::Stopped)?;
        output.line(&format!("{}: {lines}", notation.write(&order.game, m)));
        sum += lines;
    }
    Ok(sum)
}

/// The number of lines of this length; none if the GUI stops the count.
fn lines_from(position: &Chess, plies: u32, control: &Control) -> Option<u64> {
    if plies <= AT_ONCE {
        let stop = control.requests().stop;
        return (!stop).then(|| shakmaty::perft(position, plies));
    }
    let mut sum = 0;
    for m in position.legal_moves() {
        let mut next = position.clone();
        next.play_unchecked(m);
        sum += lines_from(&next, plies - 1, control)?;
    }
    Some(sum)
}
