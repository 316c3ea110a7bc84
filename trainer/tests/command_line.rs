//! The program itself: what it shows of secrets.

use clap::CommandFactory as _;
use rookery_cli::testing::{check_help, check_refusals};
use rookery_trainer::cli::Cli;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rookery-trainer");

/// The variables whose values `--help` may show: they hold no secret. A new one is `hide_env_values`, or stands here.
const HARMLESS: &[&str] = &[
    "ROOKERY_CHUNK_DELAY",
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
    check_help(PROGRAM, &Cli::command(), HARMLESS, SECRET);
}

#[test]
fn a_refused_value_is_not_repeated() {
    let lines = [
        "run --server http://ann:SECRET@x --token rk_1",
        "run --server http://x/?token=SECRET --token rk_1",
        "run --server https://ann:SECRET@:x --token rk_1",
        "submit --program random --anchor random --token rk_SECRET\u{e4}",
        "run rk_SECRET",
    ];
    check_refusals(PROGRAM, &lines);
}
