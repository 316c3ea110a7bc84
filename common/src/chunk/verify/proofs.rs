//! Whether what searches are said to have proven can be true, by the rules of chess alone.
//!
//! A proven search is one visit and costs a volunteer nothing. So what it says is looked into here, as far as that takes
//! no network: a mate in one is always seen, a proof takes some visits at the least, and what is proven stays true
//! while the winner plays on as proven. What is left to audits is whether this search has found it.

use shakmaty::{Chess, Color, Position};

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::PlyRecord;
use super::fail;
use crate::chess::mate::{ProofVisits, find_mate};
use crate::chess::moves::canonical_moves;
use crate::chess::{GameHistory, GameResult};

/// Checks a search of `position`, which had at most `visits`, those of a kept tree among them.
pub(super) fn check(
    position: &Chess,
    record: &PlyRecord,
    visits: u32,
    bounds: &mut ProofVisits,
) -> Result<(), ChunkError> {
    let has_mate = find_mate(position, &position.legal_moves()).is_some();
    if !record.is_decided() {
        return if has_mate {
            refuse("there is a mate in one, and the search has not seen it")
        } else {
            Ok(())
        };
    }
    let most = if has_mate { 0 } else { visits };
    let needed = if record.root_q > 0.0 {
        let place = record.visits.iter().position(|visits| *visits > 0);
        let m = canonical_moves(position)[place.unwrap_or_default()];
        bounds.until_won_by(position, m, most)
    } else {
        bounds.until_lost(position, most)
    };
    if needed > most {
        return refuse("this cannot be proven with the visits that the search has");
    }
    Ok(())
}

/// Who wins a game for certain, from the position that was reached.
#[derive(Debug, Default)]
pub(super) struct Proven(Option<Color>);

impl Proven {
    /// Checks what the next search has proven, and notes it. The search's move is played.
    pub(super) fn follow(&mut self, mover: Color, record: &PlyRecord) -> Result<(), ChunkError> {
        if record.is_decided() {
            let winner = if record.root_q > 0.0 { mover } else { !mover };
            if self.0.is_some_and(|proven| proven != winner) {
                return refuse("a move before, the opposite was proven");
            }
            self.0 = Some(winner);
        } else if self.0 == Some(mover) {
            // It may throw away what it does not see.
            self.0 = None;
        }
        Ok(())
    }

    /// Checks that the board has not ended a game otherwise than was proven.
    pub(super) fn check_end(&self, game: &GameHistory) -> Result<(), ChunkError> {
        match (self.0, game.end()) {
            (Some(winner), Some(end)) if end.result != GameResult::win_of(winner) => {
                refuse("the game ends otherwise than was proven")
            }
            _ => Ok(()),
        }
    }
}

fn refuse(detail: &str) -> Result<(), ChunkError> {
    Err(fail(ChunkErrorCode::FalseProof, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::moves::parse_uci;

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    const MATE: &str = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1";
    /// White's other rook mates on either reply to `g2g7`.
    const MATE_IN_TWO: &str = "1k6/8/8/8/8/8/6R1/K6R w - - 0 1";
    const LOST: &str = "1k6/6R1/8/8/8/8/8/K6R b - - 0 1";

    fn game(fen: &str) -> GameHistory {
        GameHistory::from_fen(fen).unwrap()
    }

    /// A search that plays `uci`: proven with the value 1 or -1, not with any other.
    fn record(fen: &str, uci: &str, value: f32) -> PlyRecord {
        let game = game(fen);
        let played = parse_uci(game.position(), uci).unwrap();
        let legal = canonical_moves(game.position());
        let visits = if value.abs() == 1.0 { 1 } else { 32 };
        PlyRecord {
            visits: legal
                .iter()
                .map(|m| if *m == played { visits } else { 0 })
                .collect(),
            root_q: value,
            best_q: value,
            ..PlyRecord::new(played)
        }
    }

    fn is_refused(fen: &str, uci: &str, value: f32, visits: u32) -> bool {
        let mut bounds = ProofVisits::within(u32::MAX);
        let record = record(fen, uci, value);
        let checked = check(game(fen).position(), &record, visits, &mut bounds);
        checked.is_err_and(|error| error.code == ChunkErrorCode::FalseProof)
    }

    #[test]
    fn what_the_rules_do_not_give_is_refused() {
        let all = [(START, "e2e4"), (MATE_IN_TWO, "a1a2"), (LOST, "b8a8")];
        for (fen, uci) in all {
            assert!(!is_refused(fen, uci, 0.5, 32), "{fen}");
        }
        assert!(is_refused(START, "e2e4", 1.0, 100));
        assert!(is_refused(START, "e2e4", -1.0, 100));
        assert!(is_refused(MATE_IN_TWO, "h1h8", -1.0, 32));
        // One visit of the move, and one of each reply.
        assert!(!is_refused(MATE_IN_TWO, "g2g7", 1.0, 3));
        assert!(is_refused(MATE_IN_TWO, "g2g7", 1.0, 2));
        assert!(!is_refused(LOST, "b8a8", -1.0, 2));
        assert!(is_refused(LOST, "b8a8", 1.0, 32));
    }

    #[test]
    fn a_mate_in_one_is_seen_and_played() {
        assert!(!is_refused(MATE, "a1a8", 1.0, 32));
        assert!(is_refused(MATE, "a1a8", 0.9, 32));
        assert!(is_refused(MATE, "a1a7", 1.0, 32));
        assert!(is_refused(MATE, "a1a8", -1.0, 32));
    }

    #[test]
    fn what_is_proven_stays_true_while_the_winner_plays_on_as_proven() {
        let follow = |values: &[f32]| {
            let mut proven = Proven::default();
            let mut mover = Color::White;
            let mut refused = None;
            for (ply, value) in values.iter().enumerate() {
                let checked = proven.follow(mover, &record(START, "e2e4", *value));
                refused = refused.or(checked.is_err().then_some(ply));
                mover = !mover;
            }
            (refused, proven.0)
        };
        assert_eq!(follow(&[1.0, -1.0, 1.0]), (None, Some(Color::White)));
        assert_eq!(follow(&[1.0, 0.3, 1.0]), (None, Some(Color::White)));
        assert_eq!(follow(&[1.0, 1.0]).0, Some(1));
        assert_eq!(follow(&[1.0, 0.3, -1.0]).0, Some(2));
        assert_eq!(follow(&[-1.0, -1.0]).0, Some(1));
        // White did not see it the second time, and may have lost it.
        assert_eq!(follow(&[1.0, 0.3, 0.3, 1.0]), (None, Some(Color::Black)));
    }

    #[test]
    fn the_board_ends_no_game_otherwise_than_was_proven() {
        let mated = game("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1");
        let stalemate = game("k7/2Q5/1K6/8/8/8/8/8 b - - 0 1");
        let open = game(START);
        for (winner, refused) in [
            (None, [false; 3]),
            (Some(Color::White), [false, true, false]),
        ] {
            let ends = [&mated, &stalemate, &open];
            assert_eq!(
                ends.map(|game| Proven(winner).check_end(game).is_err()),
                refused
            );
        }
        assert!(Proven(Some(Color::Black)).check_end(&mated).is_err());
    }
}
