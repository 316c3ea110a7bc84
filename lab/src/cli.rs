//! The command line.

use clap::{Parser, Subcommand};
use rookery_analysis::encode;
use rookery_cli::flags::LogArgs;

use crate::commands::{annotate, evaluate, ladder, matches, play, policy_eval, probe, train};

/// For people who study networks: how strong they are, what they think, and what their games are like.
#[derive(Debug, Parser)]
#[command(name = "rookery-lab", version)]
pub struct Cli {
    /// What is logged, and how.
    #[command(flatten)]
    pub logging: LogArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Let two networks, agents or anchors, as `ladder` names them, play a match.
    Match(matches::MatchArgs),
    /// Let a network play opponents that everyone knows: a random mover, alpha-beta, Stockfish.
    Ladder(ladder::LadderArgs),
    /// Let an engine say how much better searching is than the network alone.
    #[command(alias = "judge")]
    PolicyEval(policy_eval::PolicyEvalArgs),
    /// Let an engine evaluate every position of games (PGN), as comments from which a warm start learns.
    Annotate(annotate::AnnotateArgs),
    /// Measure tactics in games and values: hanging pieces, points by material, values of missing pieces.
    Probe(probe::ProbeArgs),
    /// Train an agent of the lineage, from nothing.
    #[command(subcommand)]
    Train(train::TrainCommand),
    /// Show which moves an agent plays. Reads positions as `encode` does.
    Play(play::PlayArgs),
    /// Show what a network thinks of a position, and draw it.
    Evaluate(evaluate::EvaluateArgs),
    /// Show how positions and moves are encoded. Reads one position a line: a FEN or `startpos`,
    /// and if wanted `moves` and moves in UCI.
    Encode(encode::EncodeArgs),
}

impl Command {
    /// Whether it asks for Ctrl-C over and over and then ends in good order. The others answer line by line, or at once.
    pub const fn heeds_shutdown(&self) -> bool {
        !matches!(self, Self::Play(_) | Self::Evaluate(_) | Self::Encode(_))
    }
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
    fn commands_that_never_ask_for_ctrl_c_do_not_catch_it() {
        for (line, heeds) in [("encode", false), ("evaluate", false), ("probe a", true)] {
            let words = ["rookery-lab"].into_iter().chain(line.split(' '));
            let cli = Cli::try_parse_from(words).unwrap();
            assert_eq!(cli.command.heeds_shutdown(), heeds, "{line}");
        }
    }

    #[test]
    fn flags_have_the_names_that_they_had_in_other_programs() {
        for line in [
            "match a b --openings book.epd --visits 10 --sprt 0,30",
            "ladder --network a --anchors random,alphabeta:1 --book book.epd",
            "judge --network a --pgn b.pgn --params c.toml",
            "annotate --pgn a.pgn -o b.pgn --nodes 400",
            "evaluate --network 2x16 --visits 10 --tree a.svg",
            "encode --input classic-19",
        ] {
            let words = ["rookery-lab"].into_iter();
            let cli = Cli::try_parse_from(words.chain(line.split(' ')));
            assert!(cli.is_ok(), "{line}: {cli:?}");
        }
    }
}
