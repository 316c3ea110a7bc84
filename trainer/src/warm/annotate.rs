//! Games with an engine's evaluation of every position, as comments.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::Context as _;
use rookery_common::pgn::{self, Evaluation, Movetext};
use rookery_uci::{Engine, Game, Launch, Limits, Score};
use shakmaty::{Color, Position};

use super::game::PgnGame;

/// Megabytes of an engine's hash table: a few thousand nodes need no more.
const HASH: &str = "4";
/// The tag that says who has commented on a game.
const ANNOTATOR: &str = "Annotator";

/// An engine that values positions.
#[derive(Debug)]
pub struct Annotator {
    engine: Engine,
    limits: Limits,
    name: String,
}

impl Annotator {
    /// Starts the engine, which searches so many nodes a position.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(launch: &Launch, nodes: u64) -> anyhow::Result<Self> {
        let mut engine = Engine::start(launch)?;
        for (option, value) in [("Threads", "1"), ("Hash", HASH)] {
            if engine.option(option).is_some() {
                engine.set_option(option, value)?;
            }
        }
        Ok(Self {
            name: format!("{}, {nodes} nodes a position", engine.name()),
            limits: Limits::nodes(nodes),
            engine,
        })
    }

    /// What games say of who annotated them.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The game as text: its tags, its main line, an evaluation of each position but a last one in which the game
    /// is over. Evaluations that it has already are kept; everything else in comments, and variations, are not.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn annotate(&mut self, game: &PgnGame) -> anyhow::Result<String> {
        let mut text = String::new();
        for (name, value) in &game.tags {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name != ANNOTATOR && !name.is_empty() && name.chars().all(plain) {
                text.push_str(&pgn::tag(name, value));
            }
        }
        text.push_str(&pgn::tag(ANNOTATOR, &self.name));
        text.push('\n');
        self.engine.new_game()?;
        let mut position = game.start.position().clone();
        let mut movetext = Movetext::new(&position);
        for ply in 0..=game.moves.len() {
            let known = game.evaluations.get(ply).copied().flatten();
            let evaluation = match known {
                None if !position.is_game_over() => self.evaluate(game, ply, position.turn())?,
                known => known,
            };
            if let Some(evaluation) = evaluation {
                movetext.comment(&evaluation.to_string());
            }
            if let Some(m) = game.moves.get(ply) {
                movetext.push(*m);
                position.play_unchecked(*m);
            }
        }
        text.push_str(&movetext.end(game.result.as_pgn()));
        text.push('\n');
        Ok(text)
    }

    fn evaluate(
        &mut self,
        game: &PgnGame,
        ply: usize,
        turn: Color,
    ) -> anyhow::Result<Option<Evaluation>> {
        let so_far = Game {
            start: game.start.position(),
            moves: &game.moves[..ply],
        };
        let score = self.engine.search(so_far, &self.limits)?.info.score;
        let sign = turn.fold_wb(1, -1);
        Ok(score.map(|score| match score {
            Score::Centipawns(cp) => Evaluation::Centipawns(sign * cp),
            Score::Mate(moves) => Evaluation::Mate(sign * moves),
        }))
    }
}

/// The file into which annotated games are written, one after the other, and found again by a later session.
#[derive(Debug)]
pub struct AnnotatedGames {
    file: File,
    games: u64,
}

impl AnnotatedGames {
    /// Opens the file, or makes it. What an earlier session was about to write when it ended is cut off.
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
        let (mut line, mut at, mut empty) = (Vec::new(), 0, 0_u64);
        let (mut end, mut labelled) = (0, false);
        while reader.read_until(b'\n', &mut line).with_context(cannot)? > 0 {
            at += line.len() as u64;
            labelled |= line == label.as_bytes();
            // An empty line ends the tags of a game, another one its moves; nothing else is empty.
            empty += u64::from(line == b"\n");
            if line == b"\n" && empty.is_multiple_of(2) {
                end = at;
            }
            line.clear();
        }
        let games = empty / 2;
        anyhow::ensure!(
            games == 0 || labelled,
            "the games in {} were not annotated by \"{name}\"; go on with what they were annotated \
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
    use super::*;

    const GAME: &str = "[Event \"x\"]\n[Annotator \"E\"]\n\n1. e4 {[%eval 0.30]} *\n\n";

    #[test]
    fn a_game_that_was_cut_off_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.part");
        let whole = GAME.repeat(3);
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut games = AnnotatedGames::open(&path, "E").unwrap();
            assert_eq!(games.games(), (cut / GAME.len()) as u64, "cut at {cut}");
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
        std::fs::write(&path, GAME).unwrap();
        let error = AnnotatedGames::open(&path, "F").unwrap_err().to_string();
        assert!(error.contains("not annotated by \"F\""), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), GAME);
    }
}
