//! Command lines as tests write them, and what every program's must not show.

#![expect(clippy::unwrap_used, reason = "for tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{self, Output};

use clap::{Args, Command};
use rookery_common::command_line::{all_commands, shown_variables};

/// The flags of a command line, whose first word is the command; `DIR` in it stands for a folder.
///
/// # Errors
///
/// What clap says of them.
pub fn flags<A: Args>(dir: &Path, line: &str) -> Result<A, clap::Error> {
    let line = line.replace("DIR", &dir.display().to_string());
    let command = A::augment_args(Command::new("rookery"));
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}

/// Checks that `--help` shows the values of no variables but the harmless ones, and that none of its commands shows a
/// word `SECRET` in the others.
///
/// # Panics
///
/// If one does, or the program at this path does not start.
pub fn check_help(program: &str, cli: &Command, harmless: &[&str], secret: &[(&str, &str)]) {
    let expected: BTreeSet<String> = harmless.iter().map(ToString::to_string).collect();
    assert_eq!(shown_variables(cli), expected);
    for words in all_commands(cli) {
        let mut command = process::Command::new(program);
        command.args(&words).arg("--help");
        let output = command.envs(secret.iter().copied()).output().unwrap();
        let said = said(&output);
        assert!(
            output.status.success() && said.contains("Usage:"),
            "{words:?}: {said}"
        );
        assert!(!said.contains("SECRET"), "{words:?}: {said}");
    }
}

/// Checks that the program refuses these command lines, and repeats no word `SECRET` in them.
///
/// # Panics
///
/// If it takes or repeats one, or does not start.
pub fn check_refusals(program: &str, lines: &[&str]) {
    for line in lines {
        let mut command = process::Command::new(program);
        let output = command.args(line.split(' ')).output().unwrap();
        let said = said(&output);
        assert!(!output.status.success(), "{line}: {said}");
        assert!(!said.contains("SECRET"), "{line}: {said}");
    }
}

/// All that a program said.
pub fn said(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}
