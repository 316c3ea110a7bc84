//! Games as PGN.

use super::super::record::{GameKind, GameRecord, Side};
use super::is_chess960;
use crate::chess::{GameHistory, StartError, Termination, fen};
use crate::pgn::{self, Evaluation, Movetext};

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

/// A game as PGN with a comment such as `{[%eval 0.35] +0.250 0.500}` after each searched move: the search's value as
/// other programs read it, then the same for the mover, -1 to 1, and its probability of a draw.
///
/// # Errors
///
/// [`StartError`] if the game's start is not a position; in games read from a chunk it always is one.
pub fn game(record: &GameRecord, tags: &PgnTags) -> Result<String, StartError> {
    let start = record.start.origin()?;
    let mut text = header(record, tags, &start);
    text.push('\n');
    let mut movetext = Movetext::new(start.position());
    for m in &record.start.moves {
        movetext.push(*m);
    }
    for ply in &record.plies {
        let white = if movetext.turn().is_white() {
            ply.root_q
        } else {
            -ply.root_q
        };
        let eval = Evaluation::of_score(f64::from(1.0 + white) / 2.0);
        movetext.push(ply.played);
        movetext.comment(&format!("{eval} {:+.3} {:.3}", ply.root_q, ply.root_draw));
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
    // From here on in the order of their names (PGN standard, 8.1.1).
    if record.start.fen.is_some() {
        tag("FEN", &fen(start.position()));
        tag("SetUp", "1");
    }
    tag("Termination", termination(record.end.termination));
    if is_chess960(start.position()) {
        tag("Variant", "Chess960");
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::moves::parse_uci;
    use crate::chess::{GameEnd, GameResult};
    use crate::chunk::testing::games;
    use crate::chunk::{GameStart, PlyRecord};
    use crate::ids::Seed;

    /// The last game of a match, the candidate with Black, from this position.
    fn played(fen: &str, moves: &[&str]) -> GameRecord {
        let start = GameStart {
            fen: Some(fen.to_owned()),
            moves: Vec::new(),
        };
        let mut game = start.history().unwrap();
        let ply = |text: &&str| {
            let played = parse_uci(game.position(), text).unwrap();
            game.push(played);
            PlyRecord {
                root_q: 0.25,
                root_draw: 0.5,
                best_q: 0.25,
                ..PlyRecord::new(played)
            }
        };
        let plies = moves.iter().map(ply).collect();
        GameRecord {
            index: 0,
            kind: GameKind::Match {
                pair: 0,
                candidate: Side::Black,
            },
            seed: Seed(1),
            start,
            plies,
            end: GameEnd {
                result: GameResult::WhiteWins,
                termination: Termination::Resignation,
            },
        }
    }

    #[test]
    fn a_game_of_chess960_says_so_with_its_start() {
        let record = played("4k3/8/8/8/8/8/8/1R2K2R w HB - 0 1", &["e1b1", "e8e7"]);
        let tags = PgnTags {
            event: "Žižkov\n\"Open\"".to_owned(),
            first: "C:\\new".to_owned(),
            ..PgnTags::default()
        };
        assert_eq!(
            game(&record, &tags).unwrap(),
            "[Event \"Žižkov \\\"Open\\\"\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n\
             [White \"?\"]\n[Black \"C:\\\\new\"]\n[Result \"1-0\"]\n\
             [FEN \"4k3/8/8/8/8/8/8/1R2K2R w KQ - 0 1\"]\n[SetUp \"1\"]\n\
             [Termination \"normal: resignation\"]\n[Variant \"Chess960\"]\n\n\
             1. O-O-O {[%eval 1.39] +0.250 0.500} 1... Ke7 {[%eval -1.39] +0.250 0.500} 1-0\n\n"
        );
    }

    #[test]
    fn a_position_of_standard_chess_is_set_up_and_begins_with_black() {
        let record = played(
            "4k3/8/8/8/8/8/8/R3K2R b KQ - 4 12",
            &["e8d7", "e1g1", "d7e7"],
        );
        let text = game(&record, &PgnTags::default()).unwrap();
        assert!(!text.contains("[Variant"), "{text}");
        let tags = "[FEN \"4k3/8/8/8/8/8/8/R3K2R b KQ - 4 12\"]\n[SetUp \"1\"]\n";
        assert!(text.contains(tags), "{text}");
        let moves = "\n\n12... Kd7 {[%eval -1.39] +0.250 0.500} 13. O-O {[%eval 1.39] +0.250 0.500}\n\
                     13... Ke7 {[%eval -1.39] +0.250 0.500} 1-0\n\n";
        assert!(text.ends_with(moves), "{text}");
    }

    #[test]
    fn lines_are_short_and_the_result_is_the_last_word() {
        for record in games(20) {
            let text = game(&record, &PgnTags::default()).unwrap();
            assert!(!text.contains("[SetUp") && !text.contains("[Variant"));
            let (header, movetext) = text.split_once("\n\n").unwrap();
            let result = record.end.result.as_pgn();
            assert!(header.contains(&format!("[Result \"{result}\"]")));
            assert_eq!(movetext.split_whitespace().last(), Some(result));
            for line in movetext.lines() {
                assert!(line.chars().count() < 80 && line.trim() == line, "{line}");
            }
        }
    }
}
