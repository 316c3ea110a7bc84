//! The command line.

use clap::{Parser, Subcommand};
use rookery_cli::flags::LogArgs;
use rookery_common::command_line::LogFormat;

use crate::commands::{
    bench, export, grow, import, init, ladder, matches, run, submit, train, warm_start,
};

/// The operator's program of a Rookery training effort: it makes networks, trains them on the
/// games that workers play, and hands them to the coordinator as candidates.
#[derive(Debug, Parser)]
#[command(name = "rookery-trainer", version)]
pub struct Cli {
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: LogArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// How log lines look: commands that tell nothing but their progress have `--json` for it.
    pub const fn log_lines(&self) -> LogFormat {
        match &self.command {
            Command::Run(run::RunArgs { json: true, .. })
            | Command::Train(train::TrainArgs { json: true, .. }) => LogFormat::Json,
            _ => self.logging.log_format,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train candidates for a run of a coordinator, one after the other, until stopped.
    Run(run::RunArgs),
    /// Make a network of random weights.
    Init(init::InitArgs),
    /// Train a network on local chunks, once.
    Train(train::TrainArgs),
    /// Train a network on games of people and engines (PGN).
    WarmStart(warm_start::WarmStartArgs),
    /// Let two networks play a match.
    Match(matches::MatchArgs),
    /// Let a network play opponents that everyone knows: a random mover, alpha-beta, Stockfish.
    Ladder(ladder::LadderArgs),
    /// Make a network of a file of Lc0.
    Import(import::ImportArgs),
    /// Hand a network to the coordinator, as a candidate or as an anchor to compare with, or name a program
    /// as an anchor.
    Submit(submit::SubmitArgs),
    /// Measure how fast this machine trains.
    Bench(bench::BenchArgs),
    /// Write a network for other programs.
    Export(export::ExportArgs),
    /// Make a larger network that plays as a smaller one does, to train on from.
    Grow(grow::GrowArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_have_the_same_names_in_every_command() {
        for line in [
            "import net.pb.gz -o net",
            "import net.pb.gz --output net",
            "import net.pb.gz --out net",
            "export net --format onnx --output net.onnx",
            "export net --format onnx --out net.onnx",
            "match a b --openings book.epd",
            "match a b --book book.epd",
            "ladder --network a --anchors random --openings book.epd",
            "ladder --network a --anchors random --book book.epd",
        ] {
            let words = ["rookery-trainer"].into_iter();
            let cli = Cli::try_parse_from(words.chain(line.split(' ')));
            assert!(cli.is_ok(), "{line}: {cli:?}");
        }
    }

    #[test]
    fn json_of_run_and_train_is_the_format_of_log_lines() {
        for (line, expected) in [
            ("run --json", LogFormat::Json),
            ("run --log-format json", LogFormat::Json),
            ("run --log-format plain", LogFormat::Plain),
            (
                "train --json --chunks c --network n -o o --steps 1",
                LogFormat::Json,
            ),
            (
                "--log-format plain match --json a b --games 2",
                LogFormat::Plain,
            ),
        ] {
            let words = ["rookery-trainer"].into_iter();
            let cli = Cli::try_parse_from(words.chain(line.split(' '))).unwrap();
            assert_eq!(cli.log_lines(), expected, "{line}");
        }
    }

    fn parse(line: &str) -> Result<(), String> {
        let words = ["rookery-trainer"].into_iter();
        let cli = Cli::try_parse_from(words.chain(line.split(' ')));
        cli.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_is_submitted_instead_of_a_file_and_as_an_anchor_only() {
        parse("submit --program random --anchor random --elo 0").unwrap();
        parse("submit --program alphabeta:1 --anchor alphabeta-1").unwrap();
        for (line, told) in [
            ("submit", "<FILE>"),
            ("submit --anchor random", "<FILE>"),
            ("submit --program random", "--anchor <NAME>"),
            (
                "submit net.pb.gz --program random --anchor random",
                "cannot be used with",
            ),
            ("submit --program rnd --anchor rnd", "is no program"),
            ("submit --program alphabeta:9 --anchor a", "from 1 to 8"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn only_an_anchor_is_given_an_elo_and_only_one_that_can_be() {
        parse("submit net.pb.gz --anchor maia-1100 --elo 1100").unwrap();
        parse("submit net.pb.gz --anchor random --elo -300.5").unwrap();
        for (line, told) in [
            ("submit net.pb.gz --elo 1100", "--anchor <NAME>"),
            ("submit net.pb.gz --anchor a --elo strong", "is no Elo"),
            ("submit net.pb.gz --anchor a --elo 1e5", "-10000 to 10000"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
