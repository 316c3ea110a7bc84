//! Games as the parser walks through them: tags, moves, comments.

use std::ops::ControlFlow;

use pgn_reader::{RawComment, RawTag, SanPlus, Skip, Visitor};
use shakmaty::san::San;
use shakmaty::{Chess, KnownOutcome, Move, Position};

use super::Evaluation;
use super::game::{PgnGame, Skipped};
use super::spelling::{UNCLOSED, meant};
use crate::chess::{GameHistory, GameResult};

/// Longest game that is kept, in plies: there is no longer one by the rules.
const LONGEST: usize = 12_000;
/// Longest tag that is looked at, in bytes.
const LONGEST_TAG: usize = 200;
/// Most tags of a game that are kept.
const MOST_TAGS: usize = 100;

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

/// A rating that can be one; marks behind it, as of an estimate (`2100?`), say nothing.
fn rating(text: &str) -> Option<f64> {
    let number = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next()?;
    let elo: f64 = number.parse().ok()?;
    (1.0..5000.0).contains(&elo).then_some(elo)
}
