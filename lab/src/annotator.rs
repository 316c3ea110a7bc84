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

/// The first two tags of a stray: a position that is not a game's. Games lose the second, if they have it.
const STRAY: &str = "[Event \"Stray\"]\n";
const STRAY_TAG: &str = "Stray";
const STRAY_MARK: &str = "[Stray \"1\"]\n";
/// Strays are learnt from as from games of players with this rating.
const STRAY_ELO: &str = "3000";

/// An engine that comments on games.
#[derive(Debug)]
pub struct Annotator {
    analyst: Analyst,
    strays: f64,
}

impl Annotator {
    /// Starts the engine, which searches `nodes` nodes a position. After a share `strays` of the moves, 0
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
    let own = [ANNOTATOR, STRAY_TAG];
    let kept = |name: &str| !own.contains(&name) && !name.is_empty() && name.chars().all(plain);
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
    let mut text = [STRAY, STRAY_MARK].concat();
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

/// What a file of annotated games holds, line by line.
#[derive(Debug, Default)]
struct Scan {
    /// Bytes that were read, and the place in them where the last game begins.
    read: u64,
    end: u64,
    /// Games that have begun.
    begun: u64,
    /// Whether a line of tags may follow that begins a game.
    goes_on: bool,
    /// Where a game begins whose first tag is a stray's: the next line tells.
    undecided: Option<u64>,
    /// Whether a game has the annotator's label, and whether there is anything but tags.
    labelled: bool,
    has_other: bool,
}

impl Scan {
    fn take(&mut self, line: &[u8], label: &[u8]) {
        let is_whole = line.ends_with(b"\n");
        if let Some(begin) = self.undecided.take()
            && is_whole
            && line != STRAY_MARK.as_bytes()
        {
            self.begin(begin);
        }
        if !self.goes_on && line.starts_with(b"[") {
            // A line that was cut off may have been a stray's.
            if STRAY.as_bytes().starts_with(line) {
                self.undecided = Some(self.read);
            } else {
                self.begin(self.read);
            }
        }
        // Empty lines stand before tags and before moves.
        self.goes_on = line != b"\n";
        self.labelled |= line == label;
        self.has_other |= !line.starts_with(b"[");
        self.read += line.len() as u64;
    }

    const fn begin(&mut self, place: u64) {
        self.begun += 1;
        self.end = place;
    }
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
    /// If it cannot be read and written, or holds anything else than games that `name` has annotated.
    pub fn open(path: &Path, name: &str) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let file = options.open(path).with_context(cannot)?;
        let (mut reader, label) = (BufReader::new(&file), pgn::tag(ANNOTATOR, name));
        let (mut line, mut found) = (Vec::new(), Scan::default());
        while reader.read_until(b'\n', &mut line).with_context(cannot)? > 0 {
            found.take(&line, label.as_bytes());
            line.clear();
        }
        let (games, end) = (found.begun.saturating_sub(1), found.end);
        anyhow::ensure!(
            found.labelled || !found.has_other,
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
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;

    use super::*;

    /// A game without moves.
    fn game(tags: &[(&str, &str)]) -> PgnGame {
        let tag = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        PgnGame {
            start: GameHistory::default(),
            moves: Vec::new(),
            result: None,
            elo: [None; 2],
            evaluations: Vec::new(),
            tags: tags.iter().map(tag).collect(),
        }
    }

    #[test]
    fn tags_name_the_result_that_ends_the_moves() {
        let game = game(&[
            ("Event", "Café \"Mate\""),
            ("Result", "1/2"),
            ("Annotator", "somebody else"),
            ("no name", "x"),
            ("", "x"),
        ]);
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
            // A game is whole once something follows that cannot be its stray.
            let before = cut.saturating_sub("[Event \"x".len()) / GAME.len();
            assert_eq!(games.games(), before as u64, "cut at {cut}");
            for _ in games.games()..3 {
                games.add(&[GAME.to_owned()]).unwrap();
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        }
    }

    /// A game that is called as strays are, among others, and strays of games.
    #[test]
    fn a_game_that_is_called_a_stray_is_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.part");
        let games: Vec<String> = (0..3)
            .map(|number| {
                let game = game(&[
                    ("Event", if number == 1 { "Stray" } else { "x" }),
                    ("Stray", "1"),
                    ("Round", &number.to_string()),
                ]);
                let strays = stray_tags(game.start.position(), "E") + "\n1. e4 *\n\n";
                tags(&game, "*", "E") + "1. d4 *\n\n" + &strays.repeat(number)
            })
            .collect();
        let whole = games.concat();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut file = AnnotatedGames::open(&path, "E").unwrap();
            let done = file.games() as usize;
            file.add(&games[done..]).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "{cut}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.part");
        for text in ["notes", "\n", "[Event \"x\"]\n\n1. e4 *\n", "[a]\nnotes\n"] {
            std::fs::write(&path, text).unwrap();
            let error = AnnotatedGames::open(&path, "E").unwrap_err().to_string();
            assert!(error.contains("RK-0806"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
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
