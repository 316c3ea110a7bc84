//! A game so far: every position since the start, with repetitions.
//!
//! Search walks down a tree with [`GameHistory::push`] and back with [`GameHistory::pop`];
//! encodings read the last eight positions; verification replays games with it.

use shakmaty::fen::Fen;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Move, Position, PositionError};

use super::outcome::{GameEnd, GameResult, Termination};

/// One position of a game with what the game before it makes of it.
///
/// A search tree keeps these, so that walking down a known line costs no rules.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    position: Chess,
    /// Equal for positions that count as repetitions (side to move, pieces, castling rights and
    /// legal en passant captures).
    key: u64,
    /// How often this position stood on the board before, 0 for the first time.
    repetitions: u8,
}

impl HistoryEntry {
    /// The position.
    pub const fn position(&self) -> &Chess {
        &self.position
    }

    /// The key under which the position counts as repeated.
    pub const fn repetition_key(&self) -> u64 {
        self.key
    }
}

/// A start position and the moves played since.
#[derive(Debug, Clone)]
pub struct GameHistory {
    entries: Vec<HistoryEntry>,
}

/// A start position that cannot be played from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The text is no FEN.
    #[error("{fen:?} is not a FEN: {reason}")]
    Syntax {
        /// The text as given.
        fen: String,
        /// What the parser says.
        reason: String,
    },
    /// The FEN describes a position that the rules do not allow.
    #[error("{fen:?} is not a legal position: {reason}")]
    Illegal {
        /// The text as given.
        fen: String,
        /// What the rules say.
        reason: String,
    },
}

impl Default for GameHistory {
    fn default() -> Self {
        Self::new(Chess::default())
    }
}

impl GameHistory {
    /// A game that begins at `start`; [`GameHistory::default`] begins at the standard position.
    pub fn new(start: Chess) -> Self {
        let key = position_key(&start);
        Self {
            entries: vec![HistoryEntry {
                position: start,
                key,
                repetitions: 0,
            }],
        }
    }

    /// A game that begins at a FEN; castling rights may be written `KQkq` or as rook files
    /// (Shredder-FEN), so Chess960 positions are accepted.
    ///
    /// # Errors
    ///
    /// [`StartError`] for a text that is no FEN, or a position that the rules do not allow.
    pub fn from_fen(fen: &str) -> Result<Self, StartError> {
        let position = parse_fen(fen)?.into_position::<Chess>(CastlingMode::Chess960);
        let position = position.map_err(|error| illegal(fen, &error))?;
        Ok(Self::new(position))
    }

    /// A game that begins at the FEN of a position that people have set up. Castling rights and an en
    /// passant square that the board rules out are dropped; checks that no game leads to may stand.
    ///
    /// # Errors
    ///
    /// [`StartError`] for a text that is no FEN, or a position in which the rules say nothing: with a
    /// king too few or in check when it is not to move, for example.
    pub fn from_set_up_fen(fen: &str) -> Result<Self, StartError> {
        let position = parse_fen(fen)?
            .into_position::<Chess>(CastlingMode::Chess960)
            .or_else(PositionError::ignore_invalid_castling_rights)
            .or_else(PositionError::ignore_invalid_ep_square)
            .or_else(PositionError::ignore_impossible_check);
        let position = position.map_err(|error| illegal(fen, &error))?;
        Ok(Self::new(position))
    }

    /// The position on the board.
    pub fn position(&self) -> &Chess {
        &self.last().position
    }

    /// The side to move.
    pub fn turn(&self) -> Color {
        self.position().turn()
    }

    /// The position from which the game began.
    pub fn start(&self) -> &Chess {
        &self.entries[0].position
    }

    /// Plies played since the start.
    pub fn plies(&self) -> usize {
        self.entries.len() - 1
    }

    /// How often the position on the board stood there before in this game.
    pub fn repetitions(&self) -> u8 {
        self.last().repetitions
    }

    /// The key under which the position counts as repeated.
    pub fn repetition_key(&self) -> u64 {
        self.last().key
    }

    /// The position `back` plies ago with its own number of earlier occurrences; 0 is the
    /// position on the board. None before the start.
    pub fn look_back(&self, back: usize) -> Option<(&Chess, u8)> {
        let index = self.plies().checked_sub(back)?;
        let entry = &self.entries[index];
        Some((&entry.position, entry.repetitions))
    }

    /// Plays a move that is legal in the position on the board.
    pub fn push(&mut self, m: Move) {
        let HistoryEntry { position, key, .. } = self.last();
        let key = position.update_zobrist_hash(Zobrist64(*key), m, EnPassantMode::Legal);
        let mut position = position.clone();
        position.play_unchecked(m);
        // There is no shortcut for kings' moves, double pawn pushes and castling rights.
        let key = key.map_or_else(|| position_key(&position), |key| key.0);
        let repetitions = self.count_earlier(key, position.halfmoves());
        self.entries.push(HistoryEntry {
            position,
            key,
            repetitions,
        });
    }

    /// The position on the board, to come back to with [`push_entry`](Self::push_entry).
    pub fn entry(&self) -> &HistoryEntry {
        self.last()
    }

    /// Goes to a position that a move led to before, from the same position of the same game.
    pub fn push_entry(&mut self, entry: &HistoryEntry) {
        self.entries.push(entry.clone());
    }

    /// Takes the last move back; at the start, does nothing.
    pub fn pop(&mut self) {
        if self.entries.len() > 1 {
            self.entries.pop();
        }
    }

    /// Takes moves back until `plies` have been played.
    pub fn truncate(&mut self, plies: usize) {
        self.entries.truncate(plies + 1);
    }

    /// How the rules have ended the game, if they have: checkmate and stalemate first, then
    /// insufficient material, threefold repetition and the fifty-move rule, which Rookery applies
    /// without a claim.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::chess::moves::parse_uci;
    /// use rookery_common::chess::{GameHistory, GameResult, Termination};
    ///
    /// let mut game = GameHistory::default();
    /// for text in ["f2f3", "e7e5", "g2g4", "d8h4"] {
    ///     assert_eq!(game.end(), None);
    ///     game.push(parse_uci(game.position(), text).unwrap());
    /// }
    /// let end = game.end().unwrap();
    /// assert_eq!((end.result, end.termination), (GameResult::BlackWins, Termination::Checkmate));
    /// ```
    pub fn end(&self) -> Option<GameEnd> {
        let position = self.position();
        if !has_legal_move(position) {
            return Some(if position.is_check() {
                GameEnd {
                    result: GameResult::win_of(!position.turn()),
                    termination: Termination::Checkmate,
                }
            } else {
                GameEnd::draw(Termination::Stalemate)
            });
        }
        self.draw_by_rule().map(GameEnd::draw)
    }

    /// The draw that the rules give although there are legal moves, if they do.
    pub fn draw_by_rule(&self) -> Option<Termination> {
        let position = self.position();
        if position.is_insufficient_material() {
            Some(Termination::InsufficientMaterial)
        } else if self.repetitions() >= 2 {
            Some(Termination::Threefold)
        } else if position.halfmoves() >= 100 {
            Some(Termination::FiftyMove)
        } else {
            None
        }
    }

    /// How many earlier positions within the last `reversible` plies have this key.
    fn count_earlier(&self, key: u64, reversible: u32) -> u8 {
        // The new position is not in `entries` yet, so the same side was to move at every second
        // entry from the end, and none of the last three can be equal.
        let reversible = reversible as usize;
        let found = self
            .entries
            .iter()
            .rev()
            .take(reversible)
            .skip(3)
            .step_by(2)
            .find(|entry| entry.key == key);
        found.map_or(0, |entry| entry.repetitions.saturating_add(1))
    }

    fn last(&self) -> &HistoryEntry {
        &self.entries[self.entries.len() - 1]
    }
}

fn parse_fen(fen: &str) -> Result<Fen, StartError> {
    let wrong = |reason: String| StartError::Syntax {
        fen: shown(fen),
        reason,
    };
    let parsed = fen.parse::<Fen>();
    let parsed = parsed.map_err(|error| wrong(format!("{error}")))?;
    let setup = parsed.as_setup();
    if setup.pockets.is_some() || setup.promoted.any() || setup.remaining_checks.is_some() {
        let reason = "it has pieces in hand or counted checks, as variants have; this is standard chess or Chess960";
        return Err(wrong(reason.to_owned()));
    }
    Ok(parsed)
}

fn illegal(fen: &str, error: &PositionError<Chess>) -> StartError {
    StartError::Illegal {
        fen: shown(fen),
        reason: format!("{error}"),
    }
}

/// As much of a FEN as a message shows.
fn shown(fen: &str) -> String {
    fen.chars().take(120).collect()
}

fn position_key(position: &Chess) -> u64 {
    let key: Zobrist64 = position.zobrist_hash(EnPassantMode::Legal);
    key.0
}

fn has_legal_move(position: &Chess) -> bool {
    !position.legal_moves().is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::moves::parse_uci;
    use super::*;

    fn play(start: &str, moves: &str) -> GameHistory {
        let mut game = GameHistory::from_fen(start).unwrap();
        for text in moves.split_whitespace() {
            assert_eq!(game.end(), None, "before {text}");
            let m = parse_uci(game.position(), text).unwrap();
            game.push(m);
        }
        game
    }

    #[test]
    fn fens_of_variants_are_refused() {
        for fen in [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[Qn] w KQkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] w KQkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQ~KBNR w KQkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 3+3 0 1",
        ] {
            let error = GameHistory::from_fen(fen).unwrap_err().to_string();
            assert!(error.contains("as variants have"), "{error}");
        }
    }

    const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

    #[test]
    fn the_third_occurrence_ends_the_game() {
        let shuffle = "g1f3 g8f6 f3g1 f6g8";
        let game = play(START, shuffle);
        assert_eq!(game.repetitions(), 1);
        let game = play(START, &format!("{shuffle} {shuffle}"));
        assert_eq!(game.repetitions(), 2);
        assert_eq!(game.end(), Some(GameEnd::draw(Termination::Threefold)));
    }

    #[test]
    fn lost_castling_rights_make_another_position() {
        let game = play(
            "4k3/8/8/8/8/8/8/4K2R w K - 0 1",
            "e1e2 e8e7 e2e1 e7e8 e1e2 e8e7 e2e1 e7e8",
        );
        assert_eq!(
            game.repetitions(),
            1,
            "the first occurrence had the right to castle"
        );
    }

    #[test]
    fn mate_on_the_hundredth_ply_is_mate() {
        let game = play("7k/8/5K2/8/8/8/8/6Q1 w - - 99 80", "g1g7");
        let end = game.end().unwrap();
        assert_eq!(end.termination, Termination::Checkmate);
        assert_eq!(end.result, GameResult::WhiteWins);
        let game = play("7k/8/5K2/8/8/8/8/6Q1 w - - 99 80", "g1g2");
        assert_eq!(game.end(), Some(GameEnd::draw(Termination::FiftyMove)));
    }

    #[test]
    fn bare_kings_and_stalemate_are_draws() {
        let game = play("8/8/8/3k4/8/8/3rK3/8 w - - 0 1", "e2d2");
        assert_eq!(
            game.end(),
            Some(GameEnd::draw(Termination::InsufficientMaterial))
        );
        let game = play("7k/8/8/6Q1/8/8/8/K7 w - - 0 1", "g5g6");
        assert_eq!(game.end(), Some(GameEnd::draw(Termination::Stalemate)));
    }

    #[test]
    fn pop_restores_the_position() {
        let mut game = play(START, "e2e4 e7e5");
        let before = game.repetition_key();
        let m = parse_uci(game.position(), "g1f3").unwrap();
        game.push(m);
        game.pop();
        assert_eq!(game.repetition_key(), before);
        game.truncate(0);
        game.pop();
        assert_eq!(game.plies(), 0);
    }

    #[test]
    fn bad_starts_say_what_is_wrong() {
        assert!(matches!(
            GameHistory::from_fen("hello"),
            Err(StartError::Syntax { .. })
        ));
        let two_kings_short = "8/8/8/8/8/8/8/8 w - - 0 1";
        assert!(matches!(
            GameHistory::from_fen(two_kings_short),
            Err(StartError::Illegal { .. })
        ));
    }

    #[test]
    fn a_position_that_was_set_up_loses_what_the_board_rules_out() {
        for (fen, sound) in [
            (
                "4k3/8/8/8/8/8/8/R3K3 w KQkq - 7 9",
                "4k3/8/8/8/8/8/8/R3K3 w Q - 7 9",
            ),
            (
                "4k3/8/8/8/4P3/8/8/R3K3 w KQ e3 0 1",
                "4k3/8/8/8/4P3/8/8/R3K3 w Q - 0 1",
            ),
        ] {
            let strict = GameHistory::from_fen(fen);
            assert!(matches!(strict, Err(StartError::Illegal { .. })), "{fen}");
            let position = |game: GameHistory| game.position().to_setup(EnPassantMode::Always);
            let set_up = GameHistory::from_set_up_fen(fen).unwrap();
            let sound = GameHistory::from_fen(sound).unwrap();
            assert_eq!(position(set_up), position(sound), "{fen}");
        }
        let three_checks = "k3r3/8/8/8/7b/8/8/r3K3 w - - 0 1";
        assert!(GameHistory::from_fen(three_checks).is_err());
        let game = GameHistory::from_set_up_fen(three_checks).unwrap();
        assert_eq!(game.position().legal_moves().len(), 1);
    }

    #[test]
    fn positions_without_rules_are_refused_even_if_they_were_set_up() {
        for fen in [
            "hello",
            "8/8/8/8/8/8/8/4K3 w - - 0 1",
            "4k3/4R3/8/8/8/8/8/4K3 w - - 0 1",
            "P3k3/8/8/8/8/8/8/4K3 w - - 0 1",
            "qqqqkqqq/qqqqqqqq/8/8/8/8/8/4K3 w - - 0 1",
        ] {
            assert!(GameHistory::from_set_up_fen(fen).is_err(), "{fen}");
        }
    }
}
