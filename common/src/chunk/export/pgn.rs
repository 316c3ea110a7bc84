//! Games as PGN.

use super::super::record::{GameKind, GameRecord, GameStart, Side};
use super::{fen, is_chess960};
use crate::chess::{GameHistory, StartError, Termination};
use crate::pgn::{self, Movetext};

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
/// [`StartError`] if the game's start is not a position; in games read from a chunk it always is one.
pub fn game(record: &GameRecord, tags: &PgnTags) -> Result<String, StartError> {
    let start = GameStart {
        fen: record.start.fen.clone(),
        moves: Vec::new(),
    }
    .history()?;
    let mut text = header(record, tags, &start);
    text.push('\n');
    let mut movetext = Movetext::new(start.position());
    for m in &record.start.moves {
        movetext.push(*m);
    }
    for ply in &record.plies {
        movetext.push(ply.played);
        movetext.comment(&format!("{:+.3} {:.3}", ply.root_q, ply.root_draw));
    }
    text.push_str(&movetext.end(record.end.result.as_pgn()));
    text.push('\n');
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
        text.push_str(&pgn::tag(name, if value.is_empty() { "?" } else { value }));
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
