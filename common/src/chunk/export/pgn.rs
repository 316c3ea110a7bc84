//! Games as PGN.

use std::fmt::Write;

use shakmaty::Position;
use shakmaty::san::SanPlus;

use super::super::record::{GameKind, GameRecord, GameStart, Side};
use super::{fen, is_chess960};
use crate::chess::{GameHistory, StartError, Termination};

/// Names and places for the tag roster; empty ones become `?`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PgnTags {
    /// The event, for example the run's name.
    pub event: String,
    /// Where it was played, for example the coordinator's address.
    pub site: String,
    /// The date as `YYYY.MM.DD`.
    pub date: String,
    /// The round, for example the game's number.
    pub round: String,
    /// The only network's name, or the candidate's.
    pub first: String,
    /// The opponent's name, in a match.
    pub second: String,
}

/// A game as PGN with a comment `{q draw}` after each searched move: the search's value for the
/// mover and its probability of a draw.
///
/// # Errors
///
/// [`StartError`] if the game's start is no position; games read from a chunk have none such.
pub fn game(record: &GameRecord, tags: &PgnTags) -> Result<String, StartError> {
    let start = GameStart {
        fen: record.start.fen.clone(),
        moves: Vec::new(),
    }
    .history()?;
    let mut text = header(record, tags, &start);
    text.push('\n');
    let mut writer = Movetext::new(&start);
    for m in &record.start.moves {
        writer.push(*m, None);
    }
    for ply in &record.plies {
        writer.push(
            ply.played,
            Some(format!("{{{:+.3} {:.3}}}", ply.root_q, ply.root_draw)),
        );
    }
    writer.word(record.end.result.as_pgn());
    text.push_str(&writer.text);
    text.push_str("\n\n");
    Ok(text)
}

fn header(record: &GameRecord, tags: &PgnTags, start: &GameHistory) -> String {
    let (white, black) = match &record.kind {
        GameKind::Match {
            candidate: Side::White,
            ..
        } => (&tags.first, &tags.second),
        GameKind::Match {
            candidate: Side::Black,
            ..
        } => (&tags.second, &tags.first),
        _ => (&tags.first, &tags.first),
    };
    let mut text = String::new();
    let mut tag = |name: &str, value: &str| {
        let value = if value.is_empty() { "?" } else { value };
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[{name} \"{escaped}\"]");
    };
    let date = if tags.date.is_empty() {
        "????.??.??"
    } else {
        &tags.date
    };
    tag("Event", &tags.event);
    tag("Site", &tags.site);
    tag("Date", date);
    tag("Round", &tags.round);
    tag("White", white);
    tag("Black", black);
    tag("Result", record.end.result.as_pgn());
    if record.start.fen.is_some() {
        if is_chess960(start.position()) {
            tag("Variant", "Chess960");
        }
        tag("SetUp", "1");
        tag("FEN", &fen(start.position()));
    }
    tag("Termination", termination(record.end.termination));
    text
}

/// The standard's words (PGN standard, 9.8.1) with the reason.
const fn termination(termination: Termination) -> &'static str {
    match termination {
        Termination::Checkmate => "normal: checkmate",
        Termination::Stalemate => "normal: stalemate",
        Termination::Threefold => "normal: threefold repetition",
        Termination::FiftyMove => "normal: fifty-move rule",
        Termination::InsufficientMaterial => "normal: insufficient material",
        Termination::Resignation => "normal: resignation",
        Termination::Adjudication => "adjudication",
        Termination::PlyLimit => "adjudication: ply limit",
    }
}

struct Movetext {
    position: shakmaty::Chess,
    text: String,
    column: usize,
    number_needed: bool,
}

impl Movetext {
    fn new(start: &GameHistory) -> Self {
        let position = start.position().clone();
        Self {
            position,
            text: String::new(),
            column: 0,
            number_needed: true,
        }
    }

    fn push(&mut self, m: shakmaty::Move, comment: Option<String>) {
        let number = self.position.fullmoves();
        if self.position.turn().is_white() {
            self.word(&format!("{number}."));
        } else if self.number_needed {
            self.word(&format!("{number}..."));
        }
        let san = SanPlus::from_move_and_play_unchecked(&mut self.position, m);
        self.word(&san.to_string());
        self.number_needed = comment.is_some();
        if let Some(comment) = comment {
            comment.split(' ').for_each(|part| self.word(part));
        }
    }

    /// Adds a word, in lines of at most 80 characters.
    fn word(&mut self, word: &str) {
        if self.column > 0 && self.column + 1 + word.len() > 80 {
            self.text.push('\n');
            self.column = 0;
        }
        if self.column > 0 {
            self.text.push(' ');
            self.column += 1;
        }
        self.text.push_str(word);
        self.column += word.len();
    }
}
