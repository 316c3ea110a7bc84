//! What the programs' command lines have in common: how they are read, how log lines look, how errors end.
//!
//! A variable that is set to nothing counts as not set: compose files (`${X:-}`), units and manifests cannot leave
//! a variable out, they can only set it to nothing.
//!
//! Behind the feature `command-line`.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Command, Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::causes::explain;

/// Over the options that all commands of a program share, so that `--help` lists a command's own first.
pub const SHARED: &str = "Options of every command";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Plain,
    /// One JSON object a line.
    Json,
}

/// Reads the program's command line and variables. Ends the program where [`Parser::parse`] does.
pub fn read<P: Parser>() -> P {
    let is_nothing = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = without_variables(P::command(), &is_nothing);
    let read = P::from_arg_matches_mut(&mut command.get_matches());
    read.unwrap_or_else(|error| error.format(&mut P::command()).exit())
}

/// Says on standard error why the program ends, with the causes. If standard error is gone, the exit status
/// still tells.
pub fn failure(program: &str, error: &anyhow::Error) -> ExitCode {
    let causes = explain(error.chain());
    drop(writeln!(io::stderr(), "{program}: {causes}"));
    ExitCode::FAILURE
}

/// The command, whose arguments do not look for these variables.
fn without_variables(command: Command, these: &dyn Fn(&OsStr) -> bool) -> Command {
    command
        .mut_args(|argument| {
            if argument.get_env().is_some_and(these) {
                argument.env(None::<&'static str>)
            } else {
                argument
            }
        })
        .mut_subcommands(|inner| without_variables(inner, these))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn arguments_of_every_command_forget_variables_that_are_set_to_nothing() {
        let argument = |name: &'static str| Arg::new(name).long(name).env(name);
        let inner = Command::new("inner").arg(argument("EMPTY"));
        let command = Command::new("test")
            .arg(argument("EMPTY"))
            .arg(argument("SET"))
            .subcommand(Command::new("outer").subcommand(inner));
        let command = without_variables(command, &|name| name == "EMPTY");
        let variables = |command: &Command| -> Vec<String> {
            let named = command.get_arguments().filter_map(Arg::get_env);
            named.map(|name| name.to_string_lossy().into()).collect()
        };
        assert_eq!(variables(&command), ["SET"]);
        let outer = command.find_subcommand("outer").unwrap();
        let inner = outer.find_subcommand("inner").unwrap();
        assert!(variables(inner).is_empty());
    }
}
