//! A running engine.

use std::time::{Duration, Instant};

use rookery_common::chess::fen;
use rookery_common::chess::moves::{castling_mode, parse_uci, uci};
use rookery_common::text::{is_blank, printable};
use shakmaty::{CastlingMode, Chess, Move, Position};

use crate::error::UciError;
use crate::info::Info;
use crate::launch::{Launch, Timeouts};
use crate::option::EngineOption;
use crate::process::{Output, Process, Silence};

/// Most options that are kept of one engine.
const MOST_OPTIONS: usize = 1000;
/// Longest name that an engine is called by, in characters.
const LONGEST_NAME: usize = 100;
/// Most options that an error names.
const SHOWN_OPTIONS: usize = 200;
/// How long an engine may take to end after it has closed its output.
const LAST_MOMENT: Duration = Duration::from_secs(5);
const CHESS960: &str = "UCI_Chess960";

/// A game so far.
#[derive(Debug, Clone, Copy)]
pub struct Game<'a> {
    /// Where it began.
    pub start: &'a Chess,
    /// What was played since.
    pub moves: &'a [Move],
}

/// When a search ends; the first limit that is reached ends it. At least one must be given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Positions.
    pub nodes: Option<u64>,
    /// Plies.
    pub depth: Option<u32>,
    /// Time.
    pub movetime: Option<Duration>,
}

impl Limits {
    /// A number of positions.
    pub fn nodes(nodes: u64) -> Self {
        Self {
            nodes: Some(nodes),
            ..Self::default()
        }
    }

    /// A number of plies.
    pub fn depth(depth: u32) -> Self {
        Self {
            depth: Some(depth),
            ..Self::default()
        }
    }

    /// A time.
    pub fn movetime(movetime: Duration) -> Self {
        Self {
            movetime: Some(movetime),
            ..Self::default()
        }
    }

    fn command(&self) -> Result<String, UciError> {
        let mut go = "go".to_owned();
        if let Some(nodes) = self.nodes {
            go.push_str(&format!(" nodes {nodes}"));
        }
        if let Some(depth) = self.depth {
            go.push_str(&format!(" depth {depth}"));
        }
        if let Some(time) = self.movetime {
            go.push_str(&format!(" movetime {}", time.as_millis().max(1)));
        }
        if go == "go" {
            return Err(UciError::Question("a search needs a limit".to_owned()));
        }
        Ok(go)
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The move, legal in the position; none only where the game is over.
    pub best: Option<Move>,
    /// The last report on the best line.
    pub info: Info,
}

/// A running engine. Dropping it asks it to quit and kills it if it does not.
#[derive(Debug)]
pub struct Engine {
    name: String,
    options: Vec<EngineOption>,
    timeouts: Timeouts,
    /// Nothing after an error that ended it.
    process: Option<Process>,
    chess960: bool,
}

impl Engine {
    /// Starts an engine, waits for `uciok`, sets the options and waits for `readyok`.
    ///
    /// # Errors
    ///
    /// If it cannot be started, does not speak UCI in time, or lacks an option.
    pub fn start(launch: &Launch) -> Result<Self, UciError> {
        let program = launch.program.display().to_string();
        let process = Process::start(launch).map_err(|source| UciError::Start {
            program: program.clone(),
            source,
        })?;
        let mut engine = Self {
            name: program,
            options: Vec::new(),
            timeouts: launch.timeouts,
            process: Some(process),
            chess960: false,
        };
        engine.greet()?;
        for (name, value) in &launch.options {
            engine.set_option(name, value)?;
        }
        engine.wait_ready("starting")?;
        Ok(engine)
    }

    /// The name that it gives itself, else its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options that it declares.
    pub fn options(&self) -> &[EngineOption] {
        &self.options
    }

    /// The declaration of an option; case does not matter.
    pub fn option(&self, name: &str) -> Option<&EngineOption> {
        let mut options = self.options.iter();
        options.find(|option| option.name.eq_ignore_ascii_case(name))
    }

    /// Sets an option; a button takes an empty value.
    ///
    /// # Errors
    ///
    /// If there is no such option, it does not take the value, or the engine has ended.
    pub fn set_option(&mut self, name: &str, value: &str) -> Result<(), UciError> {
        let Some(option) = self.option(name) else {
            let names = self.options.iter().take(SHOWN_OPTIONS);
            let names: Vec<String> = names.map(|o| printable(&o.name, LONGEST_NAME)).collect();
            return Err(UciError::NoOption {
                engine: self.name.clone(),
                name: name.to_owned(),
                available: if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                },
            });
        };
        option
            .check(value)
            .map_err(|reason| UciError::OptionValue {
                engine: self.name.clone(),
                name: name.to_owned(),
                value: value.to_owned(),
                reason,
            })?;
        let command = if value.is_empty() {
            format!("setoption name {}", option.name)
        } else {
            format!("setoption name {} value {value}", option.name)
        };
        self.write(&command, "setting an option")
    }

    /// Tells the engine that the next search is of another game.
    ///
    /// # Errors
    ///
    /// If it does not get ready.
    pub fn new_game(&mut self) -> Result<(), UciError> {
        self.write("ucinewgame", "beginning a game")?;
        self.wait_ready("beginning a game")
    }

    /// Searches a position and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the game's moves are not legal, there is no limit, or the engine dies, hangs, or answers
    /// with something that is no legal move. A Chess960 start needs an engine with that option.
    pub fn search(&mut self, game: Game<'_>, limits: &Limits) -> Result<Answer, UciError> {
        let go = limits.command()?;
        let mode = castling_mode(game.start);
        self.set_mode(mode, game.start)?;
        let (command, position) = position_command(game, mode)?;
        // What an earlier search left unread must not be taken for this one's answer.
        self.wait_ready("getting ready")?;
        self.write(&command, "being sent the position")?;
        self.write(&go, "searching")?;
        let (word, info) = self.wait_best(limits)?;
        let best = self.check_best(&word, &position)?;
        Ok(Answer { best, info })
    }

    /// Sends `quit`, waits for the engine to end, and kills it if it still runs then.
    pub fn quit(mut self) {
        self.shut();
    }

    fn shut(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.end(self.timeouts.stop);
        }
    }

    fn greet(&mut self) -> Result<(), UciError> {
        const DURING: &str = "being greeted with \"uci\"";
        let begin = Instant::now();
        self.write("uci", DURING)?;
        loop {
            let line = self.read(begin + self.timeouts.ready, begin, DURING)?;
            if line == "uciok" {
                return Ok(());
            }
            if let Some(name) = line.strip_prefix("id name ") {
                let name = printable(name, LONGEST_NAME);
                if !is_blank(&name) {
                    self.name = name;
                }
            } else if let Some(declared) = line.strip_prefix("option ")
                && self.options.len() < MOST_OPTIONS
            {
                self.options.extend(EngineOption::parse(declared));
            }
        }
    }

    fn wait_ready(&mut self, during: &'static str) -> Result<(), UciError> {
        let begin = Instant::now();
        self.write("isready", during)?;
        while self.read(begin + self.timeouts.ready, begin, during)? != "readyok" {}
        Ok(())
    }

    /// The word after `bestmove`, and the last report.
    fn wait_best(&mut self, limits: &Limits) -> Result<(String, Info), UciError> {
        const DURING: &str = "searching";
        let begin = Instant::now();
        let thinking = limits.movetime.unwrap_or_default() + self.timeouts.search;
        let mut deadline = begin + thinking;
        let mut stopped = false;
        let mut info = Info::default();
        loop {
            // A flood of lines is no reason to look at the clock less.
            if Instant::now() >= deadline {
                if stopped {
                    return Err(self.fail(Silence::TimedOut, begin, DURING));
                }
                stopped = true;
                self.write("stop", DURING)?;
                deadline = Instant::now() + self.timeouts.stop;
            }
            let line = match self.try_read(deadline)? {
                Ok(line) => line,
                Err(Silence::TimedOut) if !stopped => continue,
                Err(silence) => return Err(self.fail(silence, begin, DURING)),
            };
            if let Some(report) = line.strip_prefix("info ") {
                info.update(report);
            } else if let Some(best) = line.strip_prefix("bestmove") {
                let word = best.split_whitespace().next().unwrap_or_default();
                return Ok((word.to_owned(), info));
            }
        }
    }

    fn check_best(&mut self, word: &str, position: &Chess) -> Result<Option<Move>, UciError> {
        let over = position.legal_moves().is_empty();
        if over && ["(none)", "0000", "none", ""].contains(&word) {
            return Ok(None);
        }
        let best = parse_uci(position, word);
        if best.is_none() {
            let shown = word.floor_char_boundary(20);
            let error = UciError::IllegalMove {
                engine: self.name.clone(),
                said: word[..shown].to_owned(),
                fen: fen(position),
            };
            self.kill();
            return Err(error);
        }
        Ok(best)
    }

    fn set_mode(&mut self, mode: CastlingMode, start: &Chess) -> Result<(), UciError> {
        let chess960 = mode == CastlingMode::Chess960;
        if chess960 == self.chess960 {
            return Ok(());
        }
        if self.option(CHESS960).is_none() {
            return Err(UciError::NoChess960 {
                engine: self.name.clone(),
                fen: fen(start),
            });
        }
        self.set_option(CHESS960, &chess960.to_string())?;
        self.chess960 = chess960;
        Ok(())
    }

    fn process(&mut self) -> Result<&mut Process, UciError> {
        let ended = || UciError::Ended {
            engine: self.name.clone(),
        };
        self.process.as_mut().ok_or_else(ended)
    }

    fn write(&mut self, line: &str, during: &'static str) -> Result<(), UciError> {
        let written = self.process()?.write(line);
        written.map_err(|_| self.fail(Silence::Closed, Instant::now(), during))
    }

    fn read(
        &mut self,
        deadline: Instant,
        begin: Instant,
        during: &'static str,
    ) -> Result<String, UciError> {
        // A line that waits already would be given out after the deadline, for ever.
        if Instant::now() >= deadline {
            return Err(self.fail(Silence::TimedOut, begin, during));
        }
        self.try_read(deadline)?
            .map_err(|silence| self.fail(silence, begin, during))
    }

    fn try_read(&mut self, deadline: Instant) -> Result<Result<String, Silence>, UciError> {
        match self.process()?.read(deadline) {
            Ok(Output::Line(line)) => Ok(Ok(line)),
            Ok(Output::TooLong) => {
                self.kill();
                Err(UciError::Nonsense {
                    engine: self.name.clone(),
                    what: "it wrote a line of more than 64 KiB".to_owned(),
                })
            }
            Err(silence) => Ok(Err(silence)),
        }
    }

    /// Ends the engine; the error that says why.
    fn fail(&mut self, silence: Silence, begin: Instant, during: &'static str) -> UciError {
        let engine = self.name.clone();
        let Some(mut process) = self.process.take() else {
            return UciError::Ended { engine };
        };
        let status = match silence {
            Silence::Closed => process.end(LAST_MOMENT),
            Silence::TimedOut => process.end(Duration::ZERO),
        };
        let said = process.said();
        match silence {
            Silence::Closed => UciError::Died {
                engine,
                during,
                status,
                said,
            },
            Silence::TimedOut => UciError::TimedOut {
                engine,
                during,
                waited: begin.elapsed(),
                said,
            },
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.end(Duration::ZERO);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut();
    }
}

/// The command that tells a position, and the position.
fn position_command(game: Game<'_>, mode: CastlingMode) -> Result<(String, Chess), UciError> {
    let mut command = if *game.start == Chess::default() {
        "position startpos".to_owned()
    } else {
        format!("position fen {}", fen(game.start))
    };
    if !game.moves.is_empty() {
        command.push_str(" moves");
    }
    let mut position = game.start.clone();
    for (ply, m) in game.moves.iter().enumerate() {
        if !position.is_legal(*m) {
            return Err(UciError::Question(format!(
                "the move of ply {} is not legal",
                ply + 1
            )));
        }
        command.push(' ');
        command.push_str(&uci(*m, mode));
        position.play_unchecked(*m);
    }
    Ok((command, position))
}
