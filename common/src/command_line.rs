//! What the programs' command lines have in common: how they are read, how log lines look, how errors end.
//!
//! An argument that may hold a secret is marked with `hide_env_values`. Neither `--help` nor an error shows its value.
//!
//! A variable that is set to nothing counts as not set: compose files (`${X:-}`), units and manifests cannot leave
//! a variable out, they can only set it to nothing.
//!
//! Behind the feature `command-line`.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::causes::explain;
use crate::params::TextError;
use crate::text::without_secrets;

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
    parse(command, std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Reads these words, the program's name first, and the variables.
///
/// # Errors
///
/// What clap says, without secrets.
pub fn parse_from<P: Parser>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<P, clap::Error> {
    parse(P::command(), words)
}

fn parse<P: Parser>(
    mut command: Command,
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<P, clap::Error> {
    let read = command.try_get_matches_from_mut(words);
    let read = read.and_then(|mut matches| {
        let read = P::from_arg_matches_mut(&mut matches);
        read.map_err(|error| error.format(&mut command))
    });
    read.map_err(|error| without_values(error, &mut command))
}

/// The arguments of a command and of all its subcommands.
fn all_arguments(command: &Command) -> Vec<&Arg> {
    let inner = command.get_subcommands().flat_map(all_arguments);
    command.get_arguments().chain(inner).collect()
}

/// The variables whose values `--help` shows.
pub fn shown_variables(command: &Command) -> BTreeSet<String> {
    let shown = all_arguments(command)
        .into_iter()
        .filter(|argument| !argument.is_hide_env_values_set());
    let named = shown.filter_map(Arg::get_env);
    named
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The words of every command, its subcommands included, for example `ledger copy`.
pub fn all_commands(command: &Command) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    for inner in command.get_subcommands() {
        let name = inner.get_name().to_owned();
        found.extend(
            all_commands(inner)
                .into_iter()
                .map(|rest| [vec![name.clone()], rest].concat()),
        );
    }
    found
}

/// An error that shows no secret: no value of an argument that may hold one, and of others no password.
fn without_values(mut error: clap::Error, command: &mut Command) -> clap::Error {
    // Arguments of commands that were not chosen have no text before.
    command.build();
    let secret: Vec<String> = all_arguments(command)
        .into_iter()
        .filter(|argument| argument.is_hide_env_values_set())
        .map(ToString::to_string)
        .collect();
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => Some(argument.clone()),
        _ => None,
    };
    let has_value = error.get(ContextKind::InvalidValue).is_some();
    if let Some(argument) = invalid.filter(|argument| has_value && secret.contains(argument)) {
        let source = error.source().map(|source| format!(": {source}"));
        let reason = source.unwrap_or_default();
        let text = format!("the value of '{argument}' is not valid{reason}");
        return command.error(error.kind(), text);
    }
    for kind in [
        ContextKind::InvalidArg,
        ContextKind::InvalidValue,
        ContextKind::InvalidSubcommand,
    ] {
        let Some(ContextValue::String(text)) = error.get(kind) else {
            continue;
        };
        let shown = without_secrets(text);
        if shown != *text {
            error.insert(kind, ContextValue::String(shown));
            // Suggestions repeat the text.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

/// Warns of secrets on the command line. To be called once logging has started.
pub fn warn_of_visible_secrets() {
    if let Some(advice) = visible_secret(std::env::args_os()) {
        tracing::warn!(
            "other users of this machine can see a secret in the list of processes: {advice}"
        );
    }
}

/// What of these words is a secret, and where it is better kept.
fn visible_secret(words: impl IntoIterator<Item = OsString>) -> Option<&'static str> {
    words.into_iter().find_map(|word| {
        let word = word.to_string_lossy();
        if word == "--token" || word.starts_with("--token=") {
            return Some("the token of --token; use --token-file or ROOKERY_TOKEN");
        }
        let (_, address) = word.split_once("://")?;
        let host = address.split(['/', '?', '#']).next()?;
        let (user, _) = host.rsplit_once('@')?;
        user.contains(':').then_some(
            "the password in an address of the command line; use a variable or the configuration file",
        )
    })
}

/// The parameters in a file, which [`RunParams::from_text`](crate::params::RunParams::from_text) or
/// [`TrainingParams::from_text`](crate::params::TrainingParams::from_text) reads.
///
/// # Errors
///
/// If it cannot be read, or what it says is not valid.
pub fn read_params<T>(
    path: &Path,
    from_text: impl FnOnce(&str) -> Result<T, TextError>,
) -> anyhow::Result<T> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("RK-0006: cannot read the parameters {shown}"))?;
    from_text(&text).with_context(|| format!("RK-0005: the parameters in {shown} are not valid"))
}

/// Lets only this user read what the program creates from now on: tokens, keys and games of a ledger are among it.
pub fn keep_files_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
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
    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        /// Holds a secret.
        #[arg(long, hide_env_values = true, value_name = "URL", value_parser = refuse)]
        server: Option<String>,
        #[arg(long)]
        number: Option<u8>,
        #[arg(long)]
        yes: bool,
    }

    fn refuse(text: &str) -> Result<String, String> {
        match text {
            "fine" => Ok(text.to_owned()),
            _ => Err("it is no address".to_owned()),
        }
    }

    fn refused(words: &[&str]) -> String {
        let words = ["program"].iter().chain(words);
        parse_from::<Program>(words).unwrap_err().to_string()
    }

    #[test]
    fn an_error_shows_no_secret() {
        for words in [
            &["--server", "SECRET"][..],
            &["--server", "http://ann:SECRET@x"],
            &["--server", "fine", "http://ann:SECRET@x"],
            &["--number", "http://ann:SECRET@x"],
            &["--yes=http://ann:SECRET@x"],
            &["rk_SECRET"],
            &["--http://ann:SECRET@x"],
        ] {
            let error = refused(words);
            assert!(!error.contains("SECRET"), "{words:?}: {error}");
        }
        let error = refused(&["--server", "SECRET"]);
        assert!(
            error.contains("'--server <URL>' is not valid: it is no address"),
            "{error}"
        );
        assert!(refused(&["--number", "300"]).contains("300"));
        assert!(parse_from::<Program>(["program", "--server", "fine"]).is_ok());
    }

    #[derive(Debug, Parser)]
    enum Programs {
        First(Program),
        Second(Program),
    }

    #[test]
    fn help_and_errors_of_commands_are_shown_and_hold_no_secret() {
        let refused = |words: &[&str]| {
            let words = ["program"].iter().chain(words);
            parse_from::<Programs>(words).unwrap_err()
        };
        for words in [&["--help"][..], &["second", "--help"]] {
            assert_eq!(refused(words).kind(), clap::error::ErrorKind::DisplayHelp);
        }
        let error = refused(&["first", "--server", "SECRET"]).to_string();
        assert!(error.contains("'--server <URL>' is not valid"), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[test]
    fn a_secret_among_the_words_is_found() {
        let visible = |words: &[&str]| visible_secret(words.iter().map(OsString::from));
        for words in [
            &["worker", "run", "--token", "rk_1"][..],
            &["worker", "--token=rk_1"],
        ] {
            assert!(
                visible(words).unwrap().contains("--token-file"),
                "{words:?}"
            );
        }
        let address = "--database=postgres://ann:secret@db/x";
        assert!(
            visible(&["coordinator", address])
                .unwrap()
                .contains("password")
        );
        for word in [
            "--token-file",
            "--tokens",
            "postgres://ann@db/x",
            "http://x:1/@",
        ] {
            assert_eq!(visible(&[word]), None, "{word}");
        }
    }

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
