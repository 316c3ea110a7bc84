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
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rookery_common::chunk::{Caps, ChunkReader};
    use rookery_common::network::NetworkSpec;
    use rookery_common::protocol::jobs::WorkKind;
    use rookery_model::Weights;

    use super::*;

    /// A trainer that hands out the same network every time, logs losses, and keeps its command lines.
    fn script(dir: &Path) -> PathBuf {
        let (path, network) = (dir.join("trainer"), dir.join("network"));
        Weights::random(NetworkSpec::resnet(1, 8), 1)
            .unwrap()
            .write(&network)
            .unwrap();
        let text = format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\n\
             while [ $# -gt 0 ]; do\ncase $1 in -o) out=$2;; --log-file) log=$2;; esac\nshift\ndone\n\
             [ -z \"$log\" ] || echo '{{\"kind\":\"train\",\"step\":10,\"policy_loss\":2.0,\"value_loss\":0.5}}' >> \"$log\"\n\
             cp '{}' \"$out\"\n",
            dir.join("said").display(),
            network.display()
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn puzzle() -> Puzzle {
        Puzzle {
            id: "ladder".to_owned(),
            fen: "k7/8/8/8/8/8/6R1/K6R b - - 0 1".to_owned(),
            moves: ["a8b8", "h1h7", "b8a8", "g2g8"].map(str::to_owned).to_vec(),
            setup: 1,
            rating: 900,
            themes: Vec::new(),
        }
    }

    fn settings() -> Settings {
        Settings {
            system: System::Thesis,
            shape: Some("1x8".to_owned()),
            visits: 2,
            ply_limit: 10,
            games: 2,
            puzzles: 1,
            steps: 5,
            rate: 0.001,
            seed: 7,
            book: None,
            set: vec![puzzle()],
            limit: None,
        }
    }

    #[test]
    fn a_round_plays_games_and_puzzles_and_trains_on_all_so_far() {
        let dir = tempfile::tempdir().unwrap();
        let device = crate::commands::flags::testing::device();
        let program = TrainerProgram::find(Some(&script(dir.path())), "cpu", Some(1));
        let run = dir.path().join("run");
        let judges = Judges::default();
        let mut training = Training::begin(settings(), &run, &program, (&device, judges)).unwrap();
        let warm = WarmStart {
            pgn: &["people.pgn".into()],
            assumed_elo: Some(1500.0),
            share: 0.5,
        };
        training.warm_start(&warm).unwrap();
        training.round(&|| false).unwrap();
        training.round(&|| false).unwrap();
        assert_eq!(training.games(), 6);
        assert_eq!(training.plot().unwrap(), Some([2.0, 0.5]));
        assert_eq!(training.network(), run.join("round-00002.safetensors"));
        let pgn = std::fs::read_to_string(run.join("games.pgn")).unwrap();
        assert_eq!(pgn.matches("[Event \"thesis\"]").count(), 6, "{pgn}");
        let kinds = [1, 2].map(|number| {
            let bytes = std::fs::read(run.join(format!("0000{number}.chunk"))).unwrap();
            let mut reader = ChunkReader::open(&bytes, &Caps::default()).unwrap();
            assert!(reader.next_game().unwrap().is_some());
            reader.header().kind
        });
        assert_eq!(kinds, [WorkKind::SelfPlay, WorkKind::Puzzles]);
        let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].contains("init 1x8 --input classic-19"), "{said}");
        assert!(
            lines[1]
                .contains("warm-start --device cpu --threads 1 --pgn people.pgn --assume-elo 1500"),
            "{said}"
        );
        assert!(
            lines[1].contains("random.safetensors") && !lines[1].contains("--minutes"),
            "{said}"
        );
        assert!(
            lines[3].contains("--steps 5") && lines[3].contains("00004.chunk"),
            "{said}"
        );
        assert!(lines[3].contains("round-00001.safetensors"), "{said}");
        for (line, seed) in lines.iter().zip([7, 7, 8, 9]) {
            assert!(line.contains(&format!("--seed {seed} ")), "{said}");
        }
    }

    #[test]
    fn a_training_that_cannot_begin_leaves_its_folder_empty() {
        let dir = tempfile::tempdir().unwrap();
        let device = crate::commands::flags::testing::device();
        let run = dir.path().join("run");
        for trainer in ["no such program", "false"] {
            let program = TrainerProgram::find(Some(trainer.as_ref()), "cpu", None);
            let begun = Training::begin(settings(), &run, &program, (&device, Judges::default()));
            begun.unwrap_err();
            assert_eq!(std::fs::read_dir(&run).unwrap().count(), 0, "{trainer}");
        }
    }

    #[test]
    fn a_round_that_is_cut_off_trains_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let device = crate::commands::flags::testing::device();
        let program = TrainerProgram::find(Some(&script(dir.path())), "cpu", None);
        let settings = Settings {
            limit: Some(Duration::from_secs(3600)),
            ..settings()
        };
        let judges = Judges::default();
        let mut training =
            Training::begin(settings, dir.path(), &program, (&device, judges)).unwrap();
        training.round(&|| true).unwrap();
        assert_eq!(
            (training.games(), training.network()),
            (0, &*training.random())
        );
        training.round(&|| false).unwrap();
        let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(
            said.contains("--minutes 5") || said.contains("--minutes 6"),
            "{said}"
        );
    }
}
