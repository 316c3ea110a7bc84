//! Puzzles from a run's own games: forced mates in one and two, one game at a time.
//!
//! A finished game comes in; puzzles go out, each in Lichess's form: the position before the
//! opponent's last move, that move, then the solution. Only positions with a single best first
//! move give puzzles, so that each has one answer, and of a mate in two its mate in one two plies
//! later gives none again.

use rookery_common::chess::mate::{self, ForcedMate, MateDepth};
use rookery_common::chess::moves::{castling_mode, uci};
use rookery_common::chess::{GameHistory, StartError, fen};
use rookery_common::chunk::GameRecord;
use rookery_common::ids::ContentHash;
use rookery_common::puzzle::Puzzle;
use shakmaty::Move;

/// The puzzles of a game, in its order.
/// It is an error if the game's start is not a position; in games read from a chunk it always is one.
pub(super) fn game(record: &GameRecord) -> Result<Vec<Puzzle>, StartError> {
    let mut history = record.start.history()?;
    let mut last_move = record.start.moves.last().copied();
    let mut puzzles = Vec::new();
    let mut quiet_until = 0;
    for (ply, played) in record.plies.iter().map(|ply| ply.played).enumerate() {
        if ply >= quiet_until
            && let Some(found) = mate::find(history.position(), MateDepth::Two)
        {
            quiet_until = ply + 2 * found.depth.moves();
            if found.is_unique() {
                puzzles.push(puzzle(&history, last_move, &found));
            }
        }
        history.push(played);
        last_move = Some(played);
    }
    Ok(puzzles)
}

fn puzzle(history: &GameHistory, last_move: Option<Move>, mate: &ForcedMate) -> Puzzle {
    let before = history
        .look_back(1)
        .map(|(position, _)| position)
        .zip(last_move);
    let (start, setup) = match before {
        Some((position, m)) => (position, Some(m)),
        None => (history.position(), None),
    };
    let mode = castling_mode(start);
    let line = setup.into_iter().chain(mate.line.iter().copied());
    let moves: Vec<String> = line.map(|m| uci(m, mode)).collect();
    let fen = fen(start);
    let hash = ContentHash::of(format!("{fen} {}", moves.join(" ")).as_bytes());
    Puzzle {
        id: hash.to_string()[..16].to_owned(),
        fen,
        moves,
        setup: u32::from(setup.is_some()),
        rating: 0,
        themes: vec!["mate".to_owned(), mate.depth.theme().to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::record;

    fn lines(puzzles: &[Puzzle]) -> Vec<String> {
        puzzles.iter().map(|p| p.moves.join(" ")).collect()
    }

    #[test]
    fn a_missed_mate_is_found_with_the_move_before_it() {
        let puzzles = game(&record(None, 0, "f2f3 e7e5 g2g4 a7a6 a2a3 d8h4")).unwrap();
        assert_eq!(lines(&puzzles), ["g2g4 d8h4", "a2a3 d8h4"]);
        for puzzle in &puzzles {
            assert_eq!(
                (puzzle.setup, puzzle.themes.last().unwrap().as_str()),
                (1, "mateIn1")
            );
            assert!(puzzle.pose().unwrap().mates);
        }
        assert_ne!(puzzles[0].id, puzzles[1].id);
    }

    #[test]
    fn a_mate_in_two_is_one_puzzle_and_not_two() {
        let morphy = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1";
        let puzzles = game(&record(Some(morphy), 0, "a1a6 b7a6 b6b7")).unwrap();
        assert_eq!(puzzles.len(), 1);
        assert_eq!(
            (puzzles[0].setup, puzzles[0].moves.len()),
            (0, 3),
            "no move came before"
        );
        assert_eq!(puzzles[0].themes, ["mate", "mateIn2"]);
        assert!(puzzles[0].pose().unwrap().mates);
    }

    #[test]
    fn the_openings_last_move_sets_a_puzzle_up() {
        let puzzles = game(&record(None, 3, "f2f3 e7e5 g2g4 d8h4")).unwrap();
        assert_eq!(lines(&puzzles), ["g2g4 d8h4"]);
    }

    #[test]
    fn positions_with_several_answers_give_no_puzzle() {
        let two_rooks = "6k1/5ppp/8/8/8/8/8/RR2K3 w - - 0 1";
        assert_eq!(game(&record(Some(two_rooks), 0, "a1a8")).unwrap(), []);
    }
}
