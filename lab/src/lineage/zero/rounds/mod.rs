//! The circle of a training: a network, games of people, then round after round games of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_analysis::Device;
use rookery_cli::network_file;
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::jobs::selfplay_start;
use rookery_common::puzzle::Puzzle;
use rookery_engine::{Job, Judges, Planned, Work};

use super::selfplay::{GamesFolder, play};
use super::trainer::TrainerProgram;
use super::{System, losses};

/// How to learn.
#[derive(Debug)]
pub struct Settings {
    /// Which of the two.
    pub system: System,
    /// Blocks x filters, if not as published.
    pub shape: Option<String>,
    /// Visits of each move.
    pub visits: u32,
    /// Plies after which a game is a draw.
    pub ply_limit: u32,
    /// Games of a round.
    pub games: u32,
    /// Puzzles of a round.
    pub puzzles: usize,
    /// Optimiser steps after each round.
    pub steps: u64,
    /// Adam's learning rate.
    pub rate: f64,
    /// The seed of weights and games.
    pub seed: u64,
    /// Where games begin; without one, at the standard position.
    pub book: Option<OpeningBook>,
    /// Puzzles to choose from, in turns.
    pub set: Vec<Puzzle>,
    /// How long all of it may take.
    pub limit: Option<Duration>,
}

/// The games of people with which a training begins.
#[derive(Debug)]
pub struct WarmStart<'a> {
    /// Files of PGN.
    pub pgn: &'a [PathBuf],
    /// The rating of players without one.
    pub assumed_elo: Option<f64>,
    /// The share of the time that is left.
    pub share: f64,
}

/// A training in its folder.
#[derive(Debug)]
pub struct Training<'a> {
    settings: Settings,
    dir: PathBuf,
    trainer: &'a TrainerProgram,
    device: &'a Device,
    judges: Judges,
    games: GamesFolder,
    begun: Instant,
    rounds: u32,
    /// The newest network.
    network: PathBuf,
}

impl<'a> Training<'a> {
    /// A random network, and its parameters of training, in a folder.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or the trainer fails.
    pub fn begin(
        settings: Settings,
        dir: &Path,
        trainer: &'a TrainerProgram,
        (device, judges): (&'a Device, Judges),
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        // Before all else: where the trainer fails, the folder stays empty, and the same command may be given again.
        let network = dir.join("random.safetensors");
        let seed = settings.seed.to_string();
        let mut init = settings.system.network(settings.shape.as_deref());
        init.extend(["--seed", &seed, "--force", "-o"]);
        let init = init.into_iter().map(OsStr::new);
        trainer.run("init", init.chain([network.as_os_str()]))?;
        let params = settings.system.training(settings.rate);
        write(
            &dir.join("training.json"),
            &serde_json::to_string_pretty(&params)?,
        )?;
        write(&dir.join("losses.jsonl"), "")?;
        Ok(Self {
            games: GamesFolder::create(dir, settings.system.name(), device.class())?,
            network,
            dir: dir.to_owned(),
            settings,
            trainer,
            device,
            judges,
            begun: Instant::now(),
            rounds: 0,
        })
    }

    /// The network as it was made.
    pub fn random(&self) -> PathBuf {
        self.dir.join("random.safetensors")
    }

    /// The newest network.
    pub fn network(&self) -> &Path {
        &self.network
    }

    /// Games that were played.
    pub const fn games(&self) -> u64 {
        self.games.games()
    }

    /// Trains on games of people.
    ///
    /// # Errors
    ///
    /// If the trainer fails.
    pub fn warm_start(&mut self, warm: &WarmStart<'_>) -> anyhow::Result<()> {
        let mut arguments = vec![OsStr::new("--pgn")];
        arguments.extend(warm.pgn.iter().map(|path| path.as_os_str()));
        let elo = warm.assumed_elo.map(|elo| elo.to_string());
        if let Some(elo) = &elo {
            arguments.extend([OsStr::new("--assume-elo"), OsStr::new(elo)]);
        }
        self.train("warm-start", "warm.safetensors", &arguments, warm.share)
    }

    /// Plays a round of games and puzzles, and trains on all games so far.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, the device fails, or the trainer does.
    pub fn round(&mut self, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let (hash, weights) = network_file::read_hashed(&self.network)?;
        let seed = Seed(self.settings.seed).of_game(self.rounds);
        for work in self.work(seed)? {
            if !work.is_empty() && !is_over() {
                let job = Job { seed, work };
                let games = play(&job, &weights, self.device, &self.judges, is_over)?;
                self.games.add(&games, hash)?;
            }
        }
        self.rounds += 1;
        if self.games.chunks().is_empty() || is_over() {
            return Ok(());
        }
        let steps = self.settings.steps.to_string();
        let chunks = self.games.chunks().to_owned();
        let mut arguments = vec![
            OsStr::new("--steps"),
            OsStr::new(&steps),
            OsStr::new("--chunks"),
        ];
        arguments.extend(chunks.iter().map(|path| path.as_os_str()));
        let output = format!("round-{:05}.safetensors", self.rounds);
        self.train("train", &output, &arguments, 1.0)
    }

    /// The games and the puzzles of the next round.
    fn work(&self, seed: Seed) -> anyhow::Result<[Work; 2]> {
        let settings = &self.settings;
        let book = settings.book.as_ref();
        let openings = book.map_or_else(Vec::new, |book| book.draw(1.0, settings.games, seed));
        let mut games = Vec::new();
        for index in 0..settings.games {
            let game = selfplay_start(&openings, index)?;
            games.push(Planned { index, game });
        }
        let first = settings.puzzles * self.rounds as usize;
        let puzzles = settings
            .set
            .iter()
            .cycle()
            .skip(first % settings.set.len().max(1));
        let puzzles = (0..).zip(puzzles.take(settings.puzzles));
        Ok([
            Work::SelfPlay {
                params: settings
                    .system
                    .selfplay(settings.visits, settings.ply_limit),
                games,
            },
            Work::Puzzles {
                params: settings.system.puzzles(settings.visits),
                games: puzzles
                    .map(|(index, puzzle)| Planned {
                        index,
                        game: puzzle.clone(),
                    })
                    .collect(),
            },
        ])
    }

    /// Lets the trainer make the next network, in no more than a share of the time that is left.
    fn train(
        &mut self,
        command: &str,
        output: &str,
        arguments: &[&OsStr],
        share: f64,
    ) -> anyhow::Result<()> {
        let (params, log) = (
            self.dir.join("training.json"),
            self.dir.join("losses.jsonl"),
        );
        let output = self.dir.join(output);
        let seed = self.settings.seed.wrapping_add(u64::from(self.rounds));
        let seed = seed.to_string();
        let left =
            |limit: Duration| limit.saturating_sub(self.begun.elapsed()).as_secs_f64() / 60.0;
        let minutes = self
            .settings
            .limit
            .map(|limit| (share * left(limit)).max(0.001).to_string());
        let mut all = arguments.to_vec();
        for (flag, value) in [
            ("--network", self.network.as_os_str()),
            ("--params", params.as_os_str()),
            ("--log-file", log.as_os_str()),
            ("--held-out", "0".as_ref()),
            ("--seed", seed.as_ref()),
            ("-o", output.as_os_str()),
        ] {
            all.extend([OsStr::new(flag), value]);
        }
        if let Some(minutes) = &minutes {
            all.extend([OsStr::new("--minutes"), OsStr::new(minutes)]);
        }
        all.push(OsStr::new("--force"));
        self.trainer.compute(command, all)?;
        self.network = output;
        Ok(())
    }

    /// Draws the losses so far; the last policy and value loss, if there is one.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written.
    pub fn plot(&self) -> anyhow::Result<Option<[f64; 2]>> {
        let log = self.dir.join("losses.jsonl");
        let text = std::fs::read_to_string(&log);
        let points = losses::read(&text.with_context(|| format!("cannot read {}", log.display()))?);
        let drawn = losses::draw(&points, self.settings.system.name());
        write(&self.dir.join("losses.svg"), &drawn)?;
        Ok(points.last().map(|point| [point.policy, point.value]))
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
