//! One game of a PGN file, or why it is passed over.

use std::fmt;

use shakmaty::{Chess, Color, Move, Position};

use super::Evaluation;
use crate::chess::{GameHistory, GameResult};

/// A game as a file tells it.
#[derive(Debug, Clone)]
pub struct PgnGame {
    /// Where it began.
    pub start: GameHistory,
    /// The moves, legal one after the other.
    pub moves: Vec<Move>,
    /// How it ended; not known of a game that was left where it stands, but has evaluations.
    pub result: Option<GameResult>,
    /// Ratings of White and Black, where the file gives them.
    pub elo: [Option<f64>; 2],
    /// What comments say of the positions, the first one's and those after each move.
    pub evaluations: Vec<Option<Evaluation>>,
    /// The tags, in the file's order.
    pub tags: Vec<(String, String)>,
}

impl PgnGame {
    /// The game, if something can be learnt from it: it has moves, and a result or evaluations.
    ///
    /// # Errors
    ///
    /// Why it is passed over.
    pub fn trainable(self) -> Result<Self, Skipped> {
        if self.moves.is_empty() {
            return Err(Skipped::NoMoves);
        }
        if self.result.is_none() && (self.evaluations.is_empty() || self.tags.is_empty()) {
            return Err(Skipped::NoResult);
        }
        let mut position = self.start.position().clone();
        for m in &self.moves {
            position.play_unchecked(*m);
        }
        match (self.result, decided(&position)) {
            (Some(result), Some(decided)) if result != decided => Err(Skipped::ContradictedResult),
            _ => Ok(self),
        }
    }

    /// What the position before move `ply` is worth to its mover, -1 to 1, where a comment says it.
    pub fn value(&self, ply: usize) -> Option<f32> {
        let evaluation = self.evaluations.get(ply).copied().flatten()?;
        let white = 2.0 * evaluation.expected_score() as f32 - 1.0;
        let turn = self.start.turn();
        let mover = if ply.is_multiple_of(2) { turn } else { !turn };
        Some(mover.fold_wb(white, -white))
    }

    /// A number that follows from the game's moves and players' ratings, wherever the game stands.
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a (Fowler, Noll and Vo) over squares.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |byte: u64| hash = (hash ^ byte).wrapping_mul(0x0100_0000_01b3);
        add(self.start.repetition_key());
        for m in &self.moves {
            add(m.from().map_or(64, u64::from));
            add(u64::from(m.to()));
        }
        for elo in self.elo.into_iter().flatten() {
            add(elo as u64);
        }
        let result = self.result.map(|result| result.score_for(Color::White));
        add(result.map_or(2, |score| u64::from(score.cast_unsigned())));
        // The last bytes have moved the high bits little.
        hash ^= hash >> 32;
        hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Why a game is passed over.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// The text breaks off inside a tag or comment.
    Malformed,
    /// A move is not legal where it stands.
    IllegalMove,
    /// It is over before the opening that a book would take of it.
    Over,
    /// A move cannot be read, as where pieces have letters of another language, or is none: a null move.
    UnreadableMove,
    /// It begins at no legal position.
    BadStart,
    /// It is of another game than chess or Chess960.
    OtherVariant,
    /// It has no moves.
    NoMoves,
    /// It has neither a result nor evaluations.
    NoResult,
    /// It ends in a mate or stalemate, but not with its result.
    ContradictedResult,
    /// A player has no rating, and none was given for such.
    NoRating,
    /// A player is below the least rating.
    LowRating,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a tag, comment or variation that never ends",
            Self::IllegalMove => "illegal move",
            Self::Over => "over before its opening is",
            Self::UnreadableMove => "a move that cannot be read, or a null move",
            Self::BadStart => "no legal start position",
            Self::OtherVariant => "other variant",
            Self::NoMoves => "no moves",
            Self::NoResult => "no result",
            Self::ContradictedResult => "result contradicts the position",
            Self::NoRating => "no rating",
            Self::LowRating => "rating too low",
        })
    }
}

impl Skipped {
    /// A sentence: how many games are skipped for this reason.
    pub fn line(self, count: u64) -> String {
        let games = if count == 1 { "game" } else { "games" };
        format!("passed over: {count} {games}: {self}")
    }
}

/// The result of a game that ends in this position, if that is a mate or stalemate.
fn decided(position: &Chess) -> Option<GameResult> {
    if position.is_checkmate() {
        Some(GameResult::win_of(!position.turn()))
    } else {
        position.is_stalemate().then_some(GameResult::Draw)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::pgn::Games;

    type Outcome = Result<PgnGame, Skipped>;

    fn read_bytes(text: &[u8]) -> Vec<Outcome> {
        let games = Games::new(text);
        let trainable = |game: io::Result<Outcome>| game.unwrap().and_then(PgnGame::trainable);
        games.map(trainable).collect()
    }

    fn read(text: &str) -> Vec<Outcome> {
        read_bytes(text.as_bytes())
    }

    fn only(text: &str) -> Outcome {
        let mut games = read(text);
        assert_eq!(games.len(), 1, "{text}");
        games.remove(0)
    }

    #[test]
    fn a_game_with_comments_and_variations_is_read() {
        let game = only(
            "[WhiteElo \"2100\"]\n[BlackElo \"?\"]\n[Result \"1-0\"]\n\n1. e4 {best} e5 (1... c5 2. Nf3) \
             2. Nf3 $1 Nc6 1-0\n",
        )
        .unwrap();
        assert_eq!(game.moves.len(), 4);
        assert_eq!(game.elo, [Some(2100.0), None]);
        assert_eq!(game.result, Some(GameResult::WhiteWins));
    }

    #[test]
    fn ratings_may_have_marks_behind_them() {
        for (text, elo) in [
            ("2100", Some(2100.0)),
            ("2100?", Some(2100.0)),
            ("2100 (est.)", Some(2100.0)),
            ("2100.5", Some(2100.5)),
            ("?", None),
            ("", None),
            ("-", None),
            ("-2100", None),
            ("0", None),
            ("99999", None),
        ] {
            let game = only(&format!(
                "[WhiteElo \"{text}\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n"
            ));
            assert_eq!(game.unwrap().elo[0], elo, "{text}");
        }
    }

    #[test]
    fn evaluations_belong_to_the_position_after_the_move() {
        let game = only(
            "[Result \"1-0\"]\n\n1. e4 { [%eval 0.18] [%clk 0:05:00] } 1... e5 (1... c5 { [%eval 9.0] }) \
             2. Nf3?! { [%eval -1.0,20] } { [%eval 5.0] } 2... Nc6 { [%eval #-2] } 3. Bb5 1-0\n",
        );
        let game = game.unwrap();
        let values: Vec<_> = (0..6).map(|ply| game.value(ply)).collect();
        let near = |value: Option<f32>, expected: f32| (value.unwrap() - expected).abs() < 1e-3;
        assert_eq!((values[0], values[2], values[5]), (None, None, None));
        // Black to move after 1. e4 and 2. Nf3, White after 2... Nc6.
        assert!(near(values[1], -0.0331), "{values:?}");
        assert!(near(values[3], 0.1820), "{values:?}");
        assert!(near(values[4], -1.0), "{values:?}");
    }

    #[test]
    fn chess960_and_positions_are_played() {
        for name in ["Chess960", "Fischer Random", "wild/fr", "?"] {
            let game = only(&format!(
                "[Variant \"{name}\"]\n[FEN \"nrkbbqrn/pppppppp/8/8/8/8/PPPPPPPP/NRKBBQRN w KQkq - 0 1\"]\n\
                 [Result \"1/2-1/2\"]\n\n1. d4 d5 1/2-1/2\n",
            ));
            assert_eq!(game.unwrap().moves.len(), 2, "{name}");
        }
    }

    #[test]
    fn castling_rights_that_the_board_rules_out_are_no_bad_start() {
        let game = only(
            "[FEN \"4k3/8/8/8/8/8/4P3/4K2R w KQkq - 0 1\"]\n[Result \"1-0\"]\n\n1. O-O Kd7 1-0\n",
        );
        let game = game.unwrap();
        assert_eq!(game.moves.len(), 2);
        assert_eq!(game.start.position().castles().castling_rights().count(), 1);
    }

    #[test]
    fn a_result_may_stand_after_the_moves_only() {
        let result = |text: &str| only(text).map(|game| game.result);
        let tags = "[WhiteElo \"2000\"]\n[Result \"?\"]\n\n";
        let white = Ok(Some(GameResult::WhiteWins));
        assert_eq!(result(&format!("{tags}1. e4 e5 1-0\n")), white);
        assert_eq!(
            result("[Event \"x\"]\n\n1. e4 e5 (1... c5 1-0) 0-1\n"),
            Ok(Some(GameResult::BlackWins))
        );
        assert_eq!(
            result("[Result \"1/2\"]\n\n1. e4 e5 1/2\n"),
            Ok(Some(GameResult::Draw))
        );
        assert_eq!(
            result("[Result \"1-0\"]\n\n1. e4 e5 0-1\n"),
            white,
            "the tag counts"
        );
        let no_end = [format!("{tags}1. e4 1-0 e5\n"), format!("{tags}1. e4 *\n")];
        for text in no_end {
            assert_eq!(result(&text), Err(Skipped::NoResult), "{text}");
        }
        let rest = "[Result \"1-0\"]\n\n1. e4 e5 *\n\n2. Nf3 {[%eval 0.3]} Nc6 1-0\n";
        let halves = read(rest);
        let reasons: Vec<_> = halves.iter().map(|half| half.as_ref().err()).collect();
        assert_eq!(reasons, [None, Some(&Skipped::NoResult)]);
    }

    #[test]
    fn one_skipped_game_is_singular() {
        assert_eq!(Skipped::NoMoves.line(1), "passed over: 1 game: no moves");
        assert_eq!(Skipped::NoMoves.line(2), "passed over: 2 games: no moves");
    }

    #[test]
    fn comments_need_not_be_utf8() {
        let mut bytes = b"[Result \"1-0\"]\n\n1. e4 { Schl".to_vec();
        bytes.extend(b"\xe4gt [%eval #3] } 1... e5 1-0\n");
        let game = read_bytes(&bytes).remove(0);
        assert_eq!(game.unwrap().value(1), Some(-1.0));
    }

    #[test]
    fn names_are_kept_whatever_the_file_s_encoding() {
        let text =
            b"[White \"M\xfcller\"]\n[Black \"M\xc3\xbcller\"]\n[Result \"1-0\"]\n\n1. e4 1-0";
        let tags = read_bytes(text).remove(0).unwrap().tags;
        assert_eq!([&tags[0].1, &tags[1].1], ["Müller"; 2]);
    }

    #[test]
    fn bad_games_have_a_reason_and_the_next_one_is_read() {
        let cases = [
            (
                "[Result \"1-0\"]\n\n1. e4 e5 2. Ke3 1-0",
                Skipped::IllegalMove,
            ),
            (
                "[Result \"1-0\"]\n[FEN \"8/8 w\"]\n\n1. e4 1-0",
                Skipped::BadStart,
            ),
            (
                "[Result \"1-0\"]\n[Variant \"Atomic\"]\n\n1. e4 1-0",
                Skipped::OtherVariant,
            ),
            ("[Result \"1-0\"]\n\n1-0", Skipped::NoMoves),
            ("[Result \"*\"]\n\n1. e4 *", Skipped::NoResult),
            ("1. e4", Skipped::NoResult),
            (
                "[Result \"1-0\"]\n\n1. f3 e5 2. g4 Qh4# 1-0",
                Skipped::ContradictedResult,
            ),
            (
                "[Result \"1-0\"]\n[FEN \"7k/5K2/8/6Q1/8/8/8/8 w - - 0 1\"]\n\n1. Qg6 1-0",
                Skipped::ContradictedResult,
            ),
        ];
        let good = "[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1";
        for (text, reason) in cases {
            let games = read(&format!("{text}\n\n{good}\n"));
            assert_eq!(games.len(), 2, "{text}");
            assert_eq!(games[0].as_ref().err(), Some(&reason), "{text}");
            assert_eq!(games[1].as_ref().unwrap().moves.len(), 4);
        }
    }
}
