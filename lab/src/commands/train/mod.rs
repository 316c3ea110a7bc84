//! `train`: make an agent of the lineage, from nothing.

pub mod zero;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Subcommand;
use rookery_cli::flags::{OutputArgs, positive, share};
use rookery_cli::{Screen, Shutdown};

use crate::lineage::dqn::{self, Form};
use crate::lineage::neural;
use crate::lineage::value_search::training::{self, Learnt};
use zero::{DeltaZeroArgs, ThesisArgs};

/// Games to learn from, where neither their number nor a time was given.
const GAMES: u32 = 1000;

/// The agents that learn.
#[derive(Debug, Subcommand)]
pub enum TrainCommand {
    /// A Q-learner of moves, by games against itself.
    Dqn(DqnArgs),
    /// A value network with best-first search, by games against itself.
    ValueSearch(ValueSearchArgs),
    /// DeltaZero: games of people first, the more the better the player, then self-play from an opening book with an
    /// engine as referee. Adam; batches of 256.
    Deltazero(DeltaZeroArgs),
    /// A thesis's AlphaZero: self-play and puzzles from nothing, and a match with the random network that it was. Adam;
    /// batches of 64.
    Thesis(ThesisArgs),
}

/// How long, and where to.
#[derive(Debug, clap::Args)]
pub struct LengthArgs {
    /// Write the agent to this file. Ctrl-C ends training and writes it as well.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Games to learn from. [default: 1000; with --minutes, as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub games: Option<u32>,
    /// End after this many minutes, or after --games if that is sooner.
    #[arg(long, value_name = "MINUTES", value_parser = positive)]
    pub minutes: Option<f64>,
    /// Adam's learning rate.
    #[arg(long, value_name = "RATE", default_value_t = 0.001, value_parser = positive)]
    pub learning_rate: f64,
    /// The seed of weights and games.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Flags of `train dqn`.
#[derive(Debug, clap::Args)]
pub struct DqnArgs {
    /// As it was published (one number for the move, rectified output), or with planes for the move, replay and a
    /// target network.
    #[arg(long, value_enum, default_value = "double")]
    pub form: Form,
    /// Sizes of the network's hidden layers. [default: 128,64; in the published form 20,18,18,18,18,10,10]
    #[arg(long, value_name = "N", value_delimiter = ',', num_args = 1.., value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub layers: Option<Vec<u16>>,
    /// The share of random moves in the first game, from which it falls linearly with the games of --games or the time
    /// of --minutes, whichever is further on.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    pub epsilon: f64,
    /// The share of random moves in the last game.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub last_epsilon: f64,
    /// The factor of the ply's number in the target of the published form. [default: 1 by the plies of the game]
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    pub gamma: Option<f64>,
    /// What winning is worth.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = worth)]
    pub reward: f32,
    /// What losing is worth, in the published form only: in the other the winner's last move earns --reward, and the
    /// moves before it learn from that. [default: -1]
    #[arg(long, allow_negative_numbers = true, value_parser = worth)]
    pub malus: Option<f32>,
    /// How long, and where to.
    #[command(flatten)]
    pub length: LengthArgs,
}

/// Flags of `train value-search`.
#[derive(Debug, clap::Args)]
pub struct ValueSearchArgs {
    /// Planes in each of the six convolutions; 256 as it was published, which takes a long time on a processor.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub filters: u16,
    /// Positions that are looked into for a move in training games.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub positions: u32,
    /// How long, and where to.
    #[command(flatten)]
    pub length: LengthArgs,
}

fn worth(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(worth) if (-1e6..=1e6).contains(&worth) => Ok(worth),
        _ => Err("write a number from -1000000 to 1000000".to_owned()),
    }
}

/// Trains, and writes the agent.
///
/// # Errors
///
/// If a file is there already or cannot be written, or a program that takes part fails.
pub fn execute(command: &TrainCommand, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    match command {
        TrainCommand::Dqn(args) => train_dqn(args, screen, shutdown),
        TrainCommand::ValueSearch(args) => train_value_search(args, screen, shutdown),
        TrainCommand::Deltazero(args) => zero::deltazero(args, screen, shutdown),
        TrainCommand::Thesis(args) => zero::thesis(args, screen, shutdown),
    }
}

fn train_dqn(args: &DqnArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.form == Form::Published || args.malus.is_none(),
        "--malus has no effect in the double form; leave it out, or give --form published"
    );
    let hidden = args.layers.as_deref();
    let mut trainer = dqn::Trainer::new(dqn::Settings {
        form: args.form,
        hidden: hidden.unwrap_or(args.form.hidden()).to_vec(),
        games: args.length.games(),
        epsilon: [args.epsilon, args.last_epsilon],
        gamma: args.gamma.map(|gamma| gamma as f32),
        rewards: [args.reward, args.malus.unwrap_or(-1.0)],
        rate: args.length.learning_rate as f32,
        seed: args.length.seed,
    });
    let note = |loss: Option<f32>| loss.map_or(String::new(), |loss| format!("loss {loss:.4}"));
    args.length.run(screen, shutdown, |is_over, time| {
        let loss = trainer.play_game(time, is_over);
        Ok((trainer.games(), note(loss)))
    })?;
    neural::write(trainer.agent(), &args.length.output)
}

fn train_value_search(
    args: &ValueSearchArgs,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let mut trainer = training::Trainer::new(training::Settings {
        filters: args.filters.into(),
        looks: args.positions,
        rate: args.length.learning_rate as f32,
        seed: args.length.seed,
    });
    let mut note = String::new();
    args.length.run(screen, shutdown, |is_over, _| {
        if let Some(Learnt { loss, examples }) = trainer.play_and_learn(is_over) {
            let learnt = format!("{examples} positions learnt");
            note = format!("loss {loss:.3} on a tenth of the new positions, held out; {learnt}");
        }
        Ok((trainer.games(), note.clone()))
    })?;
    neural::write(trainer.agent(), &args.length.output)
}

impl LengthArgs {
    /// Games to learn from; none if only time ends training.
    fn games(&self) -> Option<u32> {
        self.games.or(self.minutes.is_none().then_some(GAMES))
    }

    /// Repeats `step` until it is time to end. Its arguments are whether it is, as a game and what is learnt from it may take
    /// long, and the share of --minutes that has passed. It returns how many games there were and how it went.
    fn run(
        &self,
        screen: &Screen,
        shutdown: &Shutdown,
        mut step: impl FnMut(&dyn Fn() -> bool, f64) -> anyhow::Result<(u32, String)>,
    ) -> anyhow::Result<()> {
        self.replace.check(&self.output)?;
        let limit = self
            .minutes
            .map(|minutes| Duration::from_secs_f64(60.0 * minutes));
        let (begun, mut games) = (Instant::now(), 0);
        let most = self.games();
        let mut task = screen.task("games", most.map_or(0, u64::from));
        let is_over =
            || shutdown.is_requested() || limit.is_some_and(|limit| begun.elapsed() >= limit);
        while most.is_none_or(|most| games < most) && !is_over() {
            let note;
            let time = limit.map_or(0.0, |limit| {
                begun.elapsed().as_secs_f64() / limit.as_secs_f64()
            });
            (games, note) = step(&is_over, time)?;
            task.at(u64::from(games), &note);
        }
        drop(task);
        tracing::info!(
            "learnt from {games} games in {:.0} s",
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::lineage::Agent;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: TrainCommand,
    }

    #[test]
    fn what_a_game_is_worth_is_a_number() {
        let parse =
            |flags: &str| Line::try_parse_from(format!("train dqn -o x {flags}").split(' '));
        assert!(parse("--reward 0.5 --malus -0.5").is_ok());
        for wrong in ["inf", "nan", "1e30", "much"] {
            assert!(parse(&format!("--reward {wrong}")).is_err(), "{wrong}");
            assert!(parse(&format!("--malus -{wrong}")).is_err(), "{wrong}");
        }
    }

    /// The length of `train dqn` with these flags.
    fn length(flags: &str) -> LengthArgs {
        let line = Line::parse_from(format!("train dqn -o unwritten-agent {flags}").split(' '));
        match line.command {
            TrainCommand::Dqn(args) => args.length,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn games_have_no_limit_of_their_own_where_the_time_has_one() {
        let limits = ["--seed 1", "--minutes 60", "--minutes 60 --games 7"];
        assert_eq!(
            limits.map(|flags| length(flags).games()),
            [Some(1000), None, Some(7)]
        );
    }

    #[test]
    fn training_by_the_clock_goes_on_past_the_usual_number_of_games() {
        let shutdown = Shutdown::default();
        let mut steps = 0;
        let run = |length: LengthArgs, steps: &mut u32| {
            length.run(&Screen::hidden(), &shutdown, |_, _| {
                *steps += 1;
                if *steps == 3 * GAMES {
                    shutdown.request();
                }
                Ok((*steps, String::new()))
            })
        };
        run(length("--seed 1"), &mut steps).unwrap();
        assert_eq!(steps, GAMES);
        run(length("--minutes 600 --games 1200"), &mut steps).unwrap();
        assert_eq!(steps, 1200);
        run(length("--minutes 600"), &mut steps).unwrap();
        assert_eq!(steps, 3 * GAMES);
    }

    #[test]
    fn a_malus_is_refused_where_it_has_no_effect() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dqn");
        let line = format!("train dqn --games 1 --malus -2 -o {}", path.display());
        let train = |line: &str| {
            let line = Line::parse_from(line.split(' '));
            execute(&line.command, &Screen::hidden(), &Shutdown::default())
        };
        let error = train(&line).unwrap_err().to_string();
        assert!(error.contains("--malus"), "{error}");
        train(&format!("{line} --form published")).unwrap();
    }

    #[test]
    fn trained_agents_are_players_and_files_are_replaced_only_with_force() {
        let dir = tempfile::tempdir().unwrap();
        let device = crate::commands::flags::testing::device();
        for (kind, flags) in [
            ("dqn", "--games 2 --form published"),
            ("dqn", "--games 2 --form double --force"),
            ("value-search", "--games 10 --filters 1 --positions 1"),
        ] {
            let path = dir.path().join(kind);
            let line = format!("train {kind} -o {} {flags}", path.display());
            let train = |line: &str| {
                let line = Line::parse_from(line.split(' '));
                execute(&line.command, &Screen::hidden(), &Shutdown::default())
            };
            train(&line).unwrap();
            let agent: Agent = format!("{kind}:{}", path.display()).parse().unwrap();
            agent.factory(&device).unwrap().player(1).unwrap();
            let again = train(&line.replace(" --force", ""))
                .unwrap_err()
                .to_string();
            assert!(again.contains("--force"), "{again}");
        }
        let wrong = format!("value-search:{}", dir.path().join("dqn").display());
        let error = wrong
            .parse::<Agent>()
            .unwrap()
            .factory(&device)
            .unwrap_err();
        assert!(
            format!("{error:#}").contains("do not fit together"),
            "{error:#}"
        );
    }
}
