//! The program itself: its commands, and that it starts, serves and stops in order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

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

#[test]
fn users_and_runs_are_kept_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["migrate"]);
    let words = [
        "user", "create", "ann", "--scope", "train", "--scope", "operate", "--json",
    ];
    let user: Value = serde_json::from_str(&done(folder, &words)).unwrap();
    assert_eq!(user["scopes"], serde_json::json!(["train", "operate"]));
    assert!(user["token"].as_str().unwrap().starts_with("rk_"));
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(
        tokens.contains("valid") && !tokens.contains("rk_"),
        "{tokens}"
    );
    let number = tokens.split_whitespace().next().unwrap();
    done(folder, &["user", "revoke", number]);
    assert!(done(folder, &["user", "tokens", "ann"]).contains("revoked"));
    assert!(refused(folder, &["user", "create", "ANN"]).contains("taken"));
    assert!(refused(folder, &["user", "create", "a b"]).contains("a b"));
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_seconds = 11\n").unwrap();
    done(folder, &["run", "create", "main", "--params", "p.toml"]);
    done(folder, &["run", "pause", "main"]);
    let runs: Value = serde_json::from_str(&done(folder, &["run", "list", "--json"])).unwrap();
    assert_eq!(runs[0]["status"], "paused");
    assert_eq!(runs[0]["params"]["scheduling"]["lease_seconds"], 11);
    assert!(refused(folder, &["run", "show", "other"]).contains("run other"));
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_second = 11\n").unwrap();
    assert!(
        refused(folder, &["run", "set", "main", "--params", "p.toml"]).contains("lease_second")
    );
    assert!(done(folder, &["ledger", "check"]).contains("every sum follows"));
    assert!(refused(folder, &["--database", "oracle:x", "migrate"]).contains("oracle:x"));
}

/// A coordinator that is killed when the test ends early.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads log lines until one has this text.
fn wait_for(log: &mut impl std::io::BufRead, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(
            log.read_line(&mut line).unwrap(),
            0,
            "the log ended before {text:?}"
        );
    }
    line
}

#[cfg(unix)]
#[test]
fn it_says_where_it_listens_and_stops_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = program(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--create-run", "main"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut served = Served(child);
    let line = wait_for(&mut log, "http://");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    // A stream that never ends by itself must not hold the coordinator up.
    let mut events = TcpStream::connect(address).unwrap();
    events
        .write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    events.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let terminated = Command::new("kill")
        .arg(served.0.id().to_string())
        .status()
        .unwrap();
    assert!(terminated.success());
    wait_for(&mut log, "has stopped");
    assert!(served.0.wait().unwrap().success());
    let run = done(folder.path(), &["run", "show", "main"]);
    assert_eq!(serde_json::from_str::<Value>(&run).unwrap()["name"], "main");
}
