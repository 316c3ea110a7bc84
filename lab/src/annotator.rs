//! Games with an engine's evaluation of every position, as comments.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::Context as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::castling_mode;
use rookery_common::chess::{GameResult, fen};
use rookery_common::pgn::{self, Movetext, PgnGame};
use rookery_uci::Launch;
use shakmaty::{CastlingMode, Chess, Position};

use crate::analyst::Analyst;

/// The tag that says who has commented on a game.
const ANNOTATOR: &str = "Annotator";

/// The first tag of a stray: a position that is not a game's.
const STRAY: &str = "[Event \"Stray\"]\n";
/// Strays are learnt from as from games of players with this rating.
const STRAY_ELO: &str = "3000";

/// An engine that comments on games.
#[derive(Debug)]
pub struct Annotator {
    analyst: Analyst,
    strays: f64,
}

impl Annotator {
    /// Starts the engine, which searches so many nodes a position. After so large a share of the moves, 0
    /// to 1, comes a [stray](Self::annotate).
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(launch: &Launch, nodes: u64, strays: f64) -> anyhow::Result<Self> {
        Ok(Self {
            analyst: Analyst::start(launch, nodes)?,
            strays,
        })
    }

    /// What games say of who annotated them.
    pub fn name(&self) -> &str {
        self.analyst.name()
    }

    /// Positions that the engine has evaluated so far, those of strays among them.
    pub const fn positions(&self) -> u64 {
        self.analyst.positions()
    }

    /// The game as text: its tags, its main line, an evaluation of each position but a last one in which the game
    /// is over. Evaluations that it has already are kept; everything else in comments, and variations, are not.
    ///
    /// After it come its strays: positions one or two random moves away from it, each with the engine's answer
    /// and evaluation. They are what a search looks at and good players never let happen.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn annotate(&mut self, game: &PgnGame) -> anyhow::Result<String> {
        let result = game.result.map_or("*", GameResult::as_pgn);
        let mut text = tags(game, result, self.name());
        self.analyst.new_game()?;
        let (mut chance, mut strays) =
            (ChaCha8Rng::seed_from_u64(game.fingerprint()), String::new());
        let mut position = game.start.position().clone();
        let mut movetext = Movetext::new(&position);
        for ply in 0..=game.moves.len() {
            let known = game.evaluations.get(ply).copied().flatten();
            let evaluation = match known {
                None if !position.is_game_over() => {
                    let start = game.start.position();
                    self.analyst.ask(start, &game.moves[..ply])?.evaluation
                }
                known => known,
            };
            if let Some(evaluation) = evaluation {
                movetext.comment(&evaluation.to_string());
            }
            if chance.random_bool(self.strays) {
                strays += &self.stray(position.clone(), &mut chance)?;
            }
            if let Some(m) = game.moves.get(ply) {
                movetext.push(*m);
                position.play_unchecked(*m);
            }
        }
        text.push_str(&movetext.end(result));
        text.push('\n');
        Ok(text + &strays)
    }

    /// A position one or two random moves from here with the engine's answer; nothing where the game is over
    /// then.
    fn stray(&mut self, mut position: Chess, chance: &mut ChaCha8Rng) -> anyhow::Result<String> {
        for _ in 0..chance.random_range(1..=2) {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position.play_unchecked(moves[chance.random_range(0..moves.len())]);
        }
        if position.is_game_over() {
            return Ok(String::new());
        }
        let finding = self.analyst.ask(&position, &[])?;
        let (Some(evaluation), Some(best)) = (finding.evaluation, finding.best) else {
            return Ok(String::new());
        };
        let text = stray_tags(&position, self.name());
        let mut movetext = Movetext::new(&position);
        movetext.comment(&evaluation.to_string());
        movetext.push(best);
        Ok(format!("{text}\n{}\n", movetext.end("*")))
    }
}

/// The tags of an annotated game and the empty line after them: its own, with the result that its movetext ends
/// with, and who annotated it.
fn tags(game: &PgnGame, result: &str, annotator: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let kept = |name: &str| name != ANNOTATOR && !name.is_empty() && name.chars().all(plain);
    let mut text = String::new();
    for (name, value) in game.tags.iter().filter(|(name, _)| kept(name)) {
        let value = if name == "Result" {
            result
        } else {
            value.as_str()
        };
        text.push_str(&pgn::tag(name, value));
    }
    text.push_str(&pgn::tag(ANNOTATOR, annotator));
    text.push('\n');
    text
}

/// The tags of a stray.
fn stray_tags(position: &Chess, annotator: &str) -> String {
    let mut text = STRAY.to_owned();
    let mut tag = |name: &str, value: &str| text.push_str(&pgn::tag(name, value));
    tag("Result", "*");
    tag("WhiteElo", STRAY_ELO);
    tag("BlackElo", STRAY_ELO);
    if castling_mode(position) == CastlingMode::Chess960 {
        tag("Variant", "Chess960");
    }
    tag("SetUp", "1");
    tag("FEN", &fen(position));
    tag(ANNOTATOR, annotator);
    text
}

/// The file into which annotated games are written, one after the other, and found again by a later session.
#[derive(Debug)]
pub struct AnnotatedGames {
    file: File,
    games: u64,
}

impl AnnotatedGames {
    /// Opens the file, or makes it. The last game is cut off: an earlier session may have been about to write
    /// it, or its strays, when it ended.
    ///
    /// # Errors
    ///
    /// If it cannot be read and written, or somebody else, by `name`, has annotated its games.
    pub fn open(path: &Path, name: &str) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = options.open(path).with_context(cannot)?;
        let (mut reader, label) = (BufReader::new(&file), pgn::tag(ANNOTATOR, name));
        let (mut line, mut at, mut begins) = (Vec::new(), 0, true);
        let (mut begun, mut end, mut labelled) = (0_u64, 0, false);
        while reader.read_until(b'\n', &mut line).with_context(cannot)? > 0 {
            if begins && line.starts_with(b"[") && line != STRAY.as_bytes() {
                begun += 1;
                end = at;
            }
            // Empty lines stand before tags and before moves.
            begins = line == b"\n";
            labelled |= line == label.as_bytes();
            at += line.len() as u64;
            line.clear();
        }
        let games = begun.saturating_sub(1);
        anyhow::ensure!(
            games == 0 || labelled,
            "RK-0806: the games in {} were not annotated by \"{name}\"; go on with what they were annotated \
             with, or remove the file",
            path.display()
        );
        file.set_len(end).with_context(cannot)?;
        Ok(Self { file, games })
    }

    /// Games that are in the file.
    pub const fn games(&self) -> u64 {
        self.games
    }

    /// Adds games.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn add(&mut self, games: &[String]) -> anyhow::Result<()> {
        let text = games.concat();
        let written = self.file.write_all(text.as_bytes());
        written.context("cannot write the annotated games")?;
        self.games += games.len() as u64;
        Ok(())
    }

    /// Makes sure that everything is on disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn sync(&self) -> anyhow::Result<()> {
        let synced = self.file.sync_all();
        synced.context("cannot write the annotated games")
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;

    use super::*;

    #[test]
    fn tags_name_the_result_that_ends_the_moves() {
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let game = PgnGame {
            start: GameHistory::default(),
            moves: Vec::new(),
            result: None,
            elo: [None; 2],
            evaluations: Vec::new(),
            tags: vec![
                tag("Event", "Café \"Mate\""),
                tag("Result", "1/2"),
                tag("Annotator", "somebody else"),
                tag("no name", "x"),
                tag("", "x"),
            ],
        };
        let expected = "[Event \"Café \\\"Mate\\\"\"]\n[Result \"*\"]\n[Annotator \"E\"]\n\n";
        assert_eq!(tags(&game, "*", "E"), expected);
    }

    #[test]
    fn strays_from_games_of_chess960_say_so() {
        let variant = "[Variant \"Chess960\"]\n";
        for (fen, chess960) in [
            ("4k3/8/8/8/8/8/8/1R2K2R w KQ - 0 1", true),
            ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", false),
        ] {
            let game = GameHistory::from_fen(fen).unwrap();
            let text = stray_tags(game.position(), "E");
            assert!(
                text.contains(&format!("[SetUp \"1\"]\n[FEN \"{fen}\"]\n")),
                "{text}"
            );
            assert_eq!(text.contains(variant), chess960, "{text}");
        }
    }

    const GAME: &str = "[Event \"x\"]\n[Annotator \"E\"]\n\n1. e4 {[%eval 0.30]} *\n\n";

    #[test]
    fn a_game_that_was_cut_off_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.part");
        let whole = GAME.repeat(3);
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut games = AnnotatedGames::open(&path, "E").unwrap();
            let before = cut.saturating_sub(1) / GAME.len();
            assert_eq!(games.games(), before as u64, "cut at {cut}");
            for _ in games.games()..3 {
                games.add(&[GAME.to_owned()]).unwrap();
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        }
    }

    #[test]
    fn games_of_another_annotator_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.part");
        std::fs::write(&path, GAME.repeat(2)).unwrap();
        let error = AnnotatedGames::open(&path, "F").unwrap_err().to_string();
        assert!(error.contains("not annotated by \"F\""), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), GAME.repeat(2));
    }
}
