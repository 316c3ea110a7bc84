//! How many visits a search needs at the least until a result is proven: what a proof that took fewer cannot be.
//!
//! The search is MCTS-solver as the engine has it: a position with a mate in one counts as won as soon as it is
//! reached; it is won if one of its moves leads to a lost one, and lost if all lead to won ones. Each visit reaches
//! one new position. So a won position without a mate in one takes a visit of the deciding move and one of each
//! reply, and whatever those replies need below them.

use shakmaty::{Chess, Move, Position};

use super::{mate_in_one, played};

/// Moves of the winning side that are looked at one by one; what lies deeper is only known to need some visits.
const DEPTH: u32 = 2;
/// What a position without a mate in one needs at the least: its move, and one reply.
const LEAST: u32 = 2;

/// Lower bounds of the visits that proofs take.
///
/// # Examples
///
/// ```
/// use rookery_common::chess::GameHistory;
/// use rookery_common::chess::mate::ProofVisits;
///
/// let mut bounds = ProofVisits::within(1000);
/// let start = GameHistory::default();
/// assert!(bounds.until_lost(start.position(), 100) > 100, "nobody has lost before the first move");
/// ```
#[derive(Debug)]
pub struct ProofVisits {
    /// That may still be looked at.
    positions: u32,
}

impl ProofVisits {
    /// Looks at no more than about so many positions in all. What would take more is as if it needed no visits.
    pub const fn within(positions: u32) -> Self {
        Self { positions }
    }

    /// A lower bound of the visits after which the side to move is proven to win by `m`; above `most` as soon as it is
    /// known to need more.
    pub fn until_won_by(&mut self, position: &Chess, m: Move, most: u32) -> u32 {
        let after = played(position, m);
        if after.is_checkmate() {
            return 0;
        }
        let most = most.saturating_sub(1);
        1 + self.replies_lose(&after, &after.legal_moves(), most, DEPTH)
    }

    /// A lower bound of the visits after which the side to move is proven to lose, all of its moves being visited; above
    /// `most` as soon as it is known to need more.
    pub fn until_lost(&mut self, position: &Chess, most: u32) -> u32 {
        self.replies_lose(position, &position.legal_moves(), most, DEPTH)
    }

    /// What it takes that each of these moves is met by a win, if there are any.
    fn replies_lose(&mut self, position: &Chess, replies: &[Move], most: u32, depth: u32) -> u32 {
        let mut needed = replies.len() as u32;
        if replies.is_empty() {
            return most + 1;
        }
        for reply in replies {
            if needed > most {
                break;
            }
            needed += self.until_won(&played(position, *reply), most - needed, depth);
        }
        needed
    }

    /// What the side to move needs to win.
    fn until_won(&mut self, position: &Chess, most: u32, depth: u32) -> u32 {
        if !self.look() || mate_in_one(position).is_some() {
            return 0;
        }
        if most < LEAST || depth <= 1 {
            return LEAST;
        }
        let mut best = most + 1;
        for m in position.legal_moves() {
            if !self.look() {
                return LEAST;
            }
            let after = played(position, m);
            let replies = after.legal_moves();
            if !replies.is_empty() && (replies.len() as u32) + 1 < best {
                best = best.min(1 + self.replies_lose(&after, &replies, best - 2, depth - 1));
            }
        }
        best
    }

    /// Counts a position, if there is one left to look at.
    const fn look(&mut self) -> bool {
        let any = self.positions > 0;
        self.positions = self.positions.saturating_sub(1);
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::GameHistory;
    use crate::chess::moves::parse_uci;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    fn wins_by(fen: &str, uci: &str, most: u32) -> u32 {
        let game = GameHistory::from_fen(fen).unwrap();
        let m = parse_uci(game.position(), uci).unwrap();
        ProofVisits::within(u32::MAX).until_won_by(game.position(), m, most)
    }

    fn loses(fen: &str, most: u32) -> u32 {
        let game = GameHistory::from_fen(fen).unwrap();
        ProofVisits::within(u32::MAX).until_lost(game.position(), most)
    }

    #[test]
    fn a_mate_in_two_needs_a_visit_of_each_reply() {
        let back_rank = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1";
        assert_eq!(wins_by(back_rank, "a1a8", 100), 0);
        // Either way the king goes, the other rook mates.
        let ladder = "1k6/8/8/8/8/8/6R1/K6R w - - 0 1";
        assert_eq!(wins_by(ladder, "g2g7", 100), 3);
        assert_eq!(loses("1k6/6R1/8/8/8/8/8/K6R b - - 0 1", 100), 2);
        // A ladder one rank further down: two more moves, and the replies to them.
        let longer = "8/1k6/8/8/8/6R1/8/K6R w - - 0 1";
        assert!(wins_by(longer, "h1h6", 100) > 3);
    }

    #[test]
    fn where_nothing_is_forced_more_visits_are_needed_than_a_search_has() {
        for most in [2, 32, 100, 200] {
            assert!(wins_by(START, "e2e4", most) > most);
            assert!(loses(START, most) > most);
        }
        let stalemate = "k7/8/1K6/8/8/8/8/2Q5 w - - 0 1";
        assert!(wins_by(stalemate, "c1c7", 800) > 800);
        assert_eq!(wins_by(stalemate, "c1c8", 800), 0);
    }

    #[test]
    fn nothing_is_said_of_what_would_take_too_long() {
        let start = GameHistory::default();
        let mut bounds = ProofVisits::within(500);
        let needed = bounds.until_lost(start.position(), 400);
        assert!((20..=400).contains(&needed), "{needed}");
        assert_eq!(bounds.positions, 0);
        // Its own moves are counted in any case.
        assert_eq!(bounds.until_lost(start.position(), 400), 20);
    }
}
