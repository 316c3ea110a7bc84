//! The game of a job that people may watch, for owners who share it.
//!
//! The thread that plays the game notes each of its plies; heartbeats take what is noted. Once a game is over and was
//! taken, any thread of the job notes the next.

use parking_lot::Mutex;
use rookery_common::chunk::{GameStart, PlyRecord};
use rookery_common::protocol::boards::SharedBoard;
use rookery_engine::GameInHand;
use shakmaty::{Color, Move};

/// The game of a job that is watched.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<Option<Noted>>);

/// What is known of a game.
#[derive(Debug)]
struct Noted {
    index: u32,
    start: GameStart,
    moves: Vec<Move>,
    /// What the last search expects for White, in percent.
    value: i8,
    is_over: bool,
}

impl Noted {
    fn new(game: &GameInHand<'_>) -> Self {
        let mut noted = Self {
            index: game.index,
            start: game.start.clone(),
            moves: Vec::new(),
            value: 0,
            is_over: false,
        };
        noted.go_on(game.plies);
        noted
    }

    fn go_on(&mut self, plies: &[PlyRecord]) {
        let new = plies.get(self.moves.len()..).unwrap_or_default();
        self.moves.extend(new.iter().map(|ply| ply.played));
        if let (Some(last), Ok(start)) = (new.last(), self.start.history()) {
            let searched = self.moves.len() - 1;
            let mover = if searched.is_multiple_of(2) {
                start.turn()
            } else {
                !start.turn()
            };
            let white = if mover == Color::White {
                last.root_q
            } else {
                -last.root_q
            };
            self.value = (100.0 * white).round() as i8;
        }
    }
}

impl Watched {
    /// Notes how the watched game goes on, if it is among these, or one of these if none is watched.
    pub(super) fn note<'a>(&self, mut in_hand: impl Iterator<Item = GameInHand<'a>>) {
        let mut noted = self.0.lock();
        match &mut *noted {
            Some(known) => {
                if let Some(game) = in_hand.find(|game| game.index == known.index) {
                    known.go_on(game.plies);
                }
            }
            // One whose opening moves are still drawn would change its start.
            None => {
                let begun = in_hand.find(|game| !game.plies.is_empty());
                *noted = begun.as_ref().map(Noted::new);
            }
        }
    }

    /// Notes the end of a game, if it is the watched one.
    pub(super) fn note_end(&self, index: u32, plies: &[PlyRecord]) {
        if let Some(known) = self.0.lock().as_mut().filter(|known| known.index == index) {
            known.go_on(plies);
            known.is_over = true;
        }
    }

    /// The watched game's newest moves.
    pub(super) fn board(&self) -> Option<SharedBoard> {
        let mut noted = self.0.lock();
        let known = noted.as_ref()?;
        let board = SharedBoard::of(known.index, &known.start, &known.moves, known.value);
        if known.is_over {
            *noted = None;
        }
        board
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::chess::moves::parse_uci;

    use super::*;

    fn plies(texts: &[&str]) -> Vec<PlyRecord> {
        let mut game = GameHistory::default();
        let ply = |text: &&str| {
            let played = parse_uci(game.position(), text).unwrap();
            game.push(played);
            PlyRecord {
                root_q: 0.25,
                best_q: 0.25,
                ..PlyRecord::new(played)
            }
        };
        texts.iter().map(ply).collect()
    }

    #[test]
    fn one_game_is_watched_to_its_end_and_then_another() {
        let (watched, start) = (Watched::default(), GameStart::default());
        let first = plies(&["e2e4", "e7e5", "g1f3"]);
        let other = plies(&["d2d4"]);
        let note = |games: &[(u32, &[PlyRecord])]| {
            let start = &start;
            let in_hand = games.iter();
            watched.note(in_hand.map(|&(index, plies)| GameInHand {
                index,
                start,
                plies,
            }));
        };
        assert_eq!(watched.board(), None);
        note(&[(7, &first[..0]), (3, &first[..2])]);
        let board = watched.board().unwrap();
        assert_eq!((board.game, board.moves.as_str()), (3, "e2e4 e7e5"));
        assert_eq!(board.value, -25, "Black expects a quarter");
        note(&[(4, &other[..])]);
        assert_eq!(watched.board(), Some(board), "another thread's");
        watched.note_end(4, &other);
        watched.note_end(3, &first);
        note(&[(4, &other[..])]);
        let last = watched.board().unwrap();
        assert_eq!((last.moves.as_str(), last.value), ("e2e4 e7e5 g1f3", 25));
        note(&[(4, &other[..])]);
        assert_eq!(watched.board().unwrap().moves, "d2d4");
    }
}
