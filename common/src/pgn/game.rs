//! One game of a PGN file, or why it is passed over.

use std::fmt;
use std::ops::ControlFlow;

use pgn_reader::{RawComment, RawTag, SanPlus, Skip, Visitor};
use shakmaty::san::San;
use shakmaty::{Chess, Color, KnownOutcome, Move, Position};

use super::Evaluation;
use super::spelling::{UNCLOSED, meant};
use crate::chess::{GameHistory, GameResult};

/// Longest game that is kept, in plies: there is no longer one by the rules.
const LONGEST: usize = 12_000;
/// Longest tag that is looked at, in bytes.
const LONGEST_TAG: usize = 200;
/// Most tags of a game that are kept.
const MOST_TAGS: usize = 100;

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

/// Reads games. Variations are passed over, and comments but for their evaluations.
#[derive(Debug, Default)]
pub(super) struct GameVisitor;

/// What the tags say.
#[derive(Debug, Default)]
pub(super) struct Tags {
    fen: Option<String>,
    variant: Option<String>,
    result: Option<String>,
    elo: [Option<f64>; 2],
    all: Vec<(String, String)>,
}

/// A game while it is read.
#[derive(Debug)]
pub(super) struct Moves {
    tags: Tags,
    start: GameHistory,
    position: Chess,
    moves: Vec<Move>,
    evaluations: Vec<Option<Evaluation>>,
    /// The result after the last move.
    end: Option<GameResult>,
    /// A variation has begun and not ended.
    in_variation: bool,
}

type Outcome = Result<PgnGame, Skipped>;

impl Visitor for GameVisitor {
    type Tags = Tags;
    type Movetext = Moves;
    type Output = Outcome;

    fn begin_tags(&mut self) -> ControlFlow<Outcome, Tags> {
        ControlFlow::Continue(Tags::default())
    }

    fn tag(&mut self, tags: &mut Tags, name: &[u8], value: RawTag<'_>) -> ControlFlow<Outcome> {
        if value.as_bytes().len() > LONGEST_TAG {
            return ControlFlow::Continue(());
        }
        let text = text_of(&value.decode()).trim().to_owned();
        match name {
            b"FEN" => tags.fen = Some(text.clone()),
            b"Variant" => tags.variant = Some(text.clone()),
            b"Result" => tags.result = Some(text.clone()),
            b"WhiteElo" => tags.elo[0] = rating(&text),
            b"BlackElo" => tags.elo[1] = rating(&text),
            _ => {}
        }
        if tags.all.len() < MOST_TAGS {
            let name = String::from_utf8_lossy(name).into_owned();
            tags.all.push((name, text));
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Tags) -> ControlFlow<Outcome, Moves> {
        const PLAYED: [&str; 14] = [
            "",
            "?",
            "-",
            "standard",
            "chess",
            "normal",
            "from position",
            "chess960",
            "chess 960",
            "fischerandom",
            "fischerrandom",
            "fischer random",
            "frc",
            "wild/fr",
        ];
        let variant = tags.variant.as_deref().unwrap_or_default();
        if !PLAYED.contains(&variant.to_lowercase().as_str()) {
            return ControlFlow::Break(Err(Skipped::OtherVariant));
        }
        let start = match tags.fen.as_deref() {
            None | Some("" | "?" | "-") => GameHistory::default(),
            // Programs write castling rights that the board rules out.
            Some(fen) => match GameHistory::from_set_up_fen(fen) {
                Ok(start) => start,
                Err(_) => return ControlFlow::Break(Err(Skipped::BadStart)),
            },
        };
        ControlFlow::Continue(Moves {
            position: start.position().clone(),
            tags,
            start,
            moves: Vec::new(),
            evaluations: Vec::new(),
            end: None,
            in_variation: false,
        })
    }

    fn san(&mut self, game: &mut Moves, san: SanPlus) -> ControlFlow<Outcome> {
        if san.san == San::Null {
            return ControlFlow::Break(Err(Skipped::UnreadableMove));
        }
        match meant(san.san, &game.position) {
            Some(m) if game.moves.len() < LONGEST => {
                game.position.play_unchecked(m);
                game.moves.push(m);
                game.end = None;
                ControlFlow::Continue(())
            }
            Some(_) | None => ControlFlow::Break(Err(Skipped::IllegalMove)),
        }
    }

    fn begin_variation(&mut self, game: &mut Moves) -> ControlFlow<Outcome, Skip> {
        game.in_variation = true;
        ControlFlow::Continue(Skip(true))
    }

    fn end_variation(&mut self, game: &mut Moves) -> ControlFlow<Outcome> {
        game.in_variation = false;
        ControlFlow::Continue(())
    }

    fn comment(&mut self, game: &mut Moves, comment: RawComment<'_>) -> ControlFlow<Outcome> {
        if comment.as_bytes().ends_with(UNCLOSED) {
            return ControlFlow::Break(Err(Skipped::Malformed));
        }
        let place = game.moves.len();
        // The first comment on a position counts.
        if game.evaluations.len() <= place
            && let text = String::from_utf8_lossy(comment.as_bytes())
            && let Some(evaluation) = Evaluation::in_comment(&text)
        {
            game.evaluations.resize(place, None);
            game.evaluations.push(Some(evaluation));
        }
        ControlFlow::Continue(())
    }

    fn outcome(&mut self, game: &mut Moves, end: shakmaty::Outcome) -> ControlFlow<Outcome> {
        game.end = match end {
            shakmaty::Outcome::Known(KnownOutcome::Decisive { winner }) => {
                Some(GameResult::win_of(winner))
            }
            shakmaty::Outcome::Known(KnownOutcome::Draw) => Some(GameResult::Draw),
            shakmaty::Outcome::Unknown => None,
        };
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, game: Moves) -> Outcome {
        if game.in_variation {
            return Err(Skipped::Malformed);
        }
        let result = game.result();
        Ok(PgnGame {
            start: game.start,
            moves: game.moves,
            result,
            elo: game.tags.elo,
            evaluations: game.evaluations,
            tags: game.tags.all,
        })
    }
}

impl Moves {
    /// The result of the tag, or that after the moves where the tag says nothing.
    fn result(&self) -> Option<GameResult> {
        match self.tags.result.as_deref() {
            Some("1-0") => Some(GameResult::WhiteWins),
            Some("0-1") => Some(GameResult::BlackWins),
            Some("1/2-1/2" | "1/2") => Some(GameResult::Draw),
            // Moves without any tags may be the rest of a game: the result is another start's.
            _ => self.end.filter(|_| !self.tags.all.is_empty()),
        }
    }
}

/// What a tag says. Files that are not in UTF-8 are in Latin-1 or nearly so.
fn text_of(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().copied().map(char::from).collect(),
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

/// A rating that can be one; marks behind it, as of an estimate (`2100?`), say nothing.
fn rating(text: &str) -> Option<f64> {
    let number = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next()?;
    let elo: f64 = number.parse().ok()?;
    (1.0..5000.0).contains(&elo).then_some(elo)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::pgn::Games;

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
    fn one_game_is_not_told_as_several() {
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
