//! What the program shows of secrets, and who may read what it makes.

use std::process::{Command, Output};

use clap::CommandFactory as _;
use rookery_common::command_line::{all_commands, shown_variables};
use rookery_coordinator::cli::Cli;

use super::program;

/// The variables whose values `--help` may show: they hold no secret. A new one is `hide_env_values`, or stands here.
const HARMLESS: &[&str] = &[
    "ROOKERY_ADDRESS_ANSWERS",
    "ROOKERY_ADDRESS_CONNECTIONS",
    "ROOKERY_ADDRESS_LISTENERS",
    "ROOKERY_ADDRESS_RATE",
    "ROOKERY_BODY_MIB",
    "ROOKERY_CONFIG",
    "ROOKERY_CONNECTIONS",
    "ROOKERY_CONTRIBUTOR_LEASES",
    "ROOKERY_CONTRIBUTOR_RATE",
    "ROOKERY_CORS_ORIGINS",
    "ROOKERY_CONTACT",
    "ROOKERY_DAILY_UPLOAD_MIB",
    "ROOKERY_DATASETS",
    "ROOKERY_DATASETS_SCHEDULE",
    "ROOKERY_DATA_DIR",
    "ROOKERY_DOWNLOADS",
    "ROOKERY_IDLE_SECONDS",
    "ROOKERY_LINKS",
    "ROOKERY_LISTEN",
    "ROOKERY_LISTENERS",
    "ROOKERY_LOG",
    "ROOKERY_LOG_FORMAT",
    "ROOKERY_METRICS_LISTEN",
    "ROOKERY_OPENINGS",
    "ROOKERY_PROXY_HEADER",
    "ROOKERY_REGISTRATION",
    "ROOKERY_REGISTRATIONS",
    "ROOKERY_STALL_SECONDS",
    "ROOKERY_STOP_NOTICE",
    "ROOKERY_SYZYGY",
    "ROOKERY_TITLE",
    "ROOKERY_TLS_CERT",
    "ROOKERY_TLS_KEY",
    "ROOKERY_TRUSTED_PROXIES",
    "ROOKERY_UNRETURNED_LEASES",
    "ROOKERY_UPLOAD_MIB",
    "ROOKERY_WORKER_LEASES",
];

/// Variables that may hold a secret.
const SECRET: &[(&str, &str)] = &[
    ("ROOKERY_DATABASE", "postgres://ann:SECRET@h/x"),
    ("ROOKERY_STORAGE", "s3://ann:SECRET@x"),
    ("ROOKERY_PUBLIC_URL", "https://ann:SECRET@x"),
    ("ROOKERY_SITE_URL", "https://ann:SECRET@x"),
    ("ROOKERY_WEBHOOK", "https://ann:SECRET@x"),
    ("ROOKERY_ALERTS_WEBHOOK", "https://ann:SECRET@x"),
    ("ROOKERY_WORKER_URL", "https://ann:SECRET@x"),
    ("ROOKERY_SOURCE_URL", "https://ann:SECRET@x"),
    ("ROOKERY_DATASETS_URL", "https://ann:SECRET@x"),
];

#[test]
fn help_shows_only_variables_without_secrets() {
    let shown = shown_variables(&Cli::command());
    let harmless = HARMLESS.iter().copied().map(str::to_owned);
    assert_eq!(shown, harmless.collect());
    for words in all_commands(&Cli::command()) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program(folder.path());
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
        "--database postgres://ann:SECRET@127.0.0.1:1/x run list",
        "--database postgres://ann:SECRET@:x/x migrate",
        "--database ann:SECRET@x run list",
        "--storage s3:ann:SECRET@x storage sweep",
        "serve --worker-url ann:SECRET@x",
        "serve --worker-url rk_SECRET",
        "ledger copy --to postgres://ann:SECRET@127.0.0.1:1/x",
        "migrate rk_SECRET",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = program(folder.path())
            .args(words.split(' '))
            .output()
            .unwrap();
        let said = said(&output);
        assert!(!output.status.success(), "{words}: {said}");
        assert!(!said.contains("SECRET"), "{words}: {said}");
    }
}

/// What the coordinator makes is readable by its user alone, whatever the umask.
#[cfg(unix)]
#[test]
fn what_is_made_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let script = "umask 022; \"$0\" run create main && exec \"$0\" ledger backup copy.db";
    let status = Command::new("sh")
        .current_dir(folder.path())
        .env("ROOKERY_DATA_DIR", &data)
        .args(["-c", script, env!("CARGO_BIN_EXE_rookery-coordinator")])
        .status()
        .unwrap();
    assert!(status.success());
    for path in [
        data.join(""),
        data.join("ledger.db"),
        folder.path().join("copy.db"),
    ] {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}

fn said(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}
