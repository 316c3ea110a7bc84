//! The program itself: what it shows of secrets.

use std::process::{Command, Output};

use clap::CommandFactory as _;
use rookery_common::command_line::{all_commands, shown_variables};
use rookery_trainer::cli::Cli;

/// The variables whose values `--help` may show: they hold no secret. A new one is `hide_env_values`, or stands here.
const HARMLESS: &[&str] = &[
    "ROOKERY_CONFIG",
    "ROOKERY_DEVICE",
    "ROOKERY_LOG",
    "ROOKERY_LOG_FORMAT",
    "ROOKERY_RUN",
    "ROOKERY_SIGNING_KEY",
    "ROOKERY_TOKEN_FILE",
    "ROOKERY_TRAINER_DIR",
    "ROOKERY_TRAINER_METRICS",
];

/// Variables that may hold a secret.
const SECRET: &[(&str, &str)] = &[
    ("ROOKERY_SERVER", "http://ann:SECRET@x"),
    ("ROOKERY_TOKEN", "rk_SECRET"),
];

#[test]
fn help_shows_only_variables_without_secrets() {
    let shown = shown_variables(&Cli::command());
    let harmless = HARMLESS.iter().copied().map(str::to_owned);
    assert_eq!(shown, harmless.collect());
    for words in all_commands(&Cli::command()) {
        let mut command = program();
        let output = command
            .args(&words)
            .arg("--help")
            .envs(SECRET.iter().copied())
            .output()
            .unwrap();
        let said = said(&output);
        assert!(
            output.status.success() && said.contains("Usage:"),
            "{words:?}: {said}"
        );
        assert!(!said.contains("SECRET"), "{words:?}: {said}");
    }
}

#[test]
fn a_refused_value_is_not_repeated() {
    for words in [
        "run --server http://ann:SECRET@x --token rk_1",
        "run --server http://x/?token=SECRET --token rk_1",
        "run --server https://ann:SECRET@:x --token rk_1",
        "submit --program random --anchor random --token rk_SECRET\u{e4}",
        "run rk_SECRET",
    ] {
        let output = program().args(words.split(' ')).output().unwrap();
        let said = said(&output);
        assert!(!output.status.success(), "{words}: {said}");
        assert!(!said.contains("SECRET"), "{words}: {said}");
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rookery-trainer"))
}

/// All that the program said.
fn said(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}
