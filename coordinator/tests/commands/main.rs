//! The program itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod keys;
mod offline;
mod secrets;
mod serving;

use std::path::Path;
use std::process::{Command, Output};

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"));
    command
        .current_dir(folder)
        .arg("--data-dir")
        .arg(folder.join("data"));
    command
}

fn run(folder: &Path, words: &[&str]) -> Output {
    program(folder).args(words).output().unwrap()
}

fn done(folder: &Path, words: &[&str]) -> String {
    let output = run(folder, words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, words: &[&str]) -> String {
    let output = run(folder, words);
    assert!(!output.status.success(), "{words:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}
