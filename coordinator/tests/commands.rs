//! The program itself: its commands, and that it starts, serves and stops in order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

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
    let rotated = done(folder, &["user", "rotate", "ann", number]);
    assert!(rotated.starts_with("rk_") && *rotated.trim() != user["token"]);
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(
        tokens.lines().nth(1).unwrap().contains("revoked"),
        "{tokens}"
    );
    assert!(refused(folder, &["user", "rotate", "ann", "999"]).contains("999"));
    let number = tokens.split_whitespace().next().unwrap();
    done(folder, &["user", "revoke", number]);
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(!tokens.contains("valid"), "{tokens}");
    assert!(refused(folder, &["user", "create", "ANN"]).contains("taken"));
    done(folder, &["user", "create", "bob"]);
    done(folder, &["user", "block", "ann"]);
    done(folder, &["user", "quarantine", "bob", "--reason", "test"]);
    let users: Value = serde_json::from_str(&done(folder, &["user", "list", "--json"])).unwrap();
    let flags = |place: usize| {
        let user = &users[place];
        ["name", "blocked", "quarantined", "tokens", "games"].map(|key| user[key].clone())
    };
    assert_eq!(
        serde_json::json!(flags(0)),
        serde_json::json!(["ann", true, false, 0, 0])
    );
    assert_eq!(
        serde_json::json!(flags(1)),
        serde_json::json!(["bob", false, true, 1, 0])
    );
    let lines = done(folder, &["user", "list"]);
    assert!(
        lines.starts_with("ann ") && lines.contains("blocked"),
        "{lines}"
    );
    let clear = || done(folder, &["user", "clear", "bob", "--reason", "test"]);
    assert_eq!(clear(), "User bob is cleared.\n");
    assert!(clear().contains("nothing to clear"));
    assert!(refused(folder, &["user", "create", "a b"]).contains("a b"));
    assert!(refused(folder, &["user", "create", "Coordinator"]).contains("goes by it"));
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_seconds = 11\n").unwrap();
    done(folder, &["run", "create", "main", "--params", "p.toml"]);
    done(folder, &["run", "pause", "main"]);
    let runs: Value = serde_json::from_str(&done(folder, &["run", "list", "--json"])).unwrap();
    assert_eq!(runs[0]["status"], "paused");
    assert_eq!(runs[0]["params"]["scheduling"]["lease_seconds"], 11);
    assert!(refused(folder, &["run", "show", "other"]).contains("run other"));
    let words = ["run", "reject", "main", "7", "--reason", "it overflows"];
    assert!(refused(folder, &words).contains("network number 7"));
    let words = ["run", "reject", "main", "7", "--reason", " "];
    assert!(refused(folder, &words).contains("`reason` needs"));
    for (elo, told) in [
        ("1100", "network number 7"),
        ("-20", "network number 7"),
        ("none", "network number 7"),
        ("strong", "\"strong\" is no Elo"),
        ("10001", "from -10000 to 10000"),
    ] {
        let error = refused(folder, &["run", "anchor", "main", "7", "--elo", elo]);
        assert!(error.contains(told), "{elo}: {error}");
    }
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_second = 11\n").unwrap();
    assert!(
        refused(folder, &["run", "set", "main", "--params", "p.toml"]).contains("lease_second")
    );
    assert!(done(folder, &["ledger", "check"]).contains("every sum follows"));
    assert!(refused(folder, &["--database", "oracle:x", "migrate"]).contains("oracle:x"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut migrate = program(folder.path());
    let status = migrate.arg("migrate").stdout(writer).status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_wrong_folder_is_no_empty_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for words in [
        &["user", "create", "ann"][..],
        &["run", "list"],
        &["ledger", "check"],
        &["store", "sweep"],
        &["puzzles", "mine", "--run", "main"],
    ] {
        let error = refused(folder, words);
        assert!(error.contains("there is no ledger at"), "{error}");
        assert!(error.contains("--data-dir"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    done(folder, &["run", "create", "main"]);
    done(folder, &["user", "create", "ann"]);
    assert!(refused(folder, &["run", "set", "main"]).contains("nothing is given"));
}

#[test]
fn a_ledger_is_backed_up_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    done(folder, &["ledger", "backup", "copy.db"]);
    assert!(refused(folder, &["ledger", "backup", "copy.db"]).contains("exists"));
    done(folder, &["run", "create", "later"]);
    done(folder, &["store", "sweep", "--remove"]);
    let restored = folder.join("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::rename(folder.join("copy.db"), restored.join("ledger.db")).unwrap();
    let of_copy = |words: &[&str]| {
        let mut command = program(folder);
        let output = command.env("ROOKERY_DATABASE", "sqlite:restored/ledger.db");
        let output = output.args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let runs: Value = serde_json::from_str(&of_copy(&["run", "list", "--json"])).unwrap();
    let runs: Vec<&Value> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["name"])
        .collect();
    assert_eq!(runs, ["main"]);
    assert!(of_copy(&["ledger", "check"]).contains("every sum follows"));
    // It is the same ledger: the store that is marked as the original's is the copy's as well.
    assert!(of_copy(&["store", "sweep", "--remove"]).contains("chunks: 0 needed"));
}

#[test]
fn the_store_of_another_ledger_is_not_touched_until_it_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let other = |words: &[&'static str]| [&["--database", "sqlite:other.db"][..], words].concat();
    done(folder, &["run", "create", "main"]);
    done(folder, &other(&["run", "create", "main"]));
    let remove = ["store", "sweep", "--remove", "--grace-hours", "0"];
    done(folder, &remove);
    let blobs = folder.join("data/blobs");
    let mark = std::fs::read(blobs.join("ledger")).unwrap();
    // To the other ledger it is something that nothing needs.
    let chunk = blobs.join("chunks/ab").join("ab".repeat(32));
    std::fs::create_dir_all(chunk.parent().unwrap()).unwrap();
    std::fs::write(&chunk, b"chunk").unwrap();
    for words in [
        &remove[..],
        &["store", "sweep"],
        &["store", "sweep", "--restore"],
        &["store", "archive", "--run", "main"],
        &["serve", "--listen", "127.0.0.1:0", "--create-run", "new"],
    ] {
        let error = refused(folder, &other(words));
        for said in ["belongs to another ledger", "--store", "`store adopt`"] {
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
    assert!(refused(folder, &other(&["run", "show", "new"])).contains("run new"));
    assert!(chunk.exists());
    assert_eq!(std::fs::read(blobs.join("ledger")).unwrap(), mark);
    assert!(done(folder, &other(&["store", "adopt"])).contains("now"));
    assert!(done(folder, &other(&["store", "adopt"])).contains("already"));
    assert!(refused(folder, &remove).contains("belongs to another ledger"));
    assert!(chunk.exists());
    done(folder, &other(&remove));
    assert!(!chunk.exists());
}

#[test]
fn days_before_all_calendars_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, days) = (["store", "archive", "--run", "main"], u32::MAX.to_string());
    let words = [&archive[..], &["--older-than-days", days.as_str()]].concat();
    assert!(refused(folder.path(), &words).contains("36500"));
}

#[test]
fn variables_that_are_set_to_nothing_are_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let empty = [
        "ROOKERY_CONFIG",
        "ROOKERY_DATABASE",
        "ROOKERY_STORE",
        "ROOKERY_LOG",
        "ROOKERY_LOG_FORMAT",
    ];
    let mut command = program(folder.path());
    command.envs(empty.map(|name| (name, "")));
    let output = command.args(["run", "list"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    // It looked where the flag says.
    assert!(error.contains("there is no ledger at"), "{error}");
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

/// Where the coordinator listens, from its log.
#[cfg(unix)]
fn address(log: &mut impl std::io::BufRead) -> String {
    let line = wait_for(log, "http://");
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

/// A coordinator that listens, with its log and its address.
#[cfg(unix)]
fn serve(folder: &Path, words: &[&str]) -> (Served, BufReader<ChildStderr>, String) {
    let mut child = program(folder)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(words)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let served = Served(child);
    let address = address(&mut log);
    (served, log, address)
}

/// An address of this machine at which nothing answers.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_shared_database_with_a_store_of_its_own_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = program(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg("--database")
        .arg(format!("postgres://nobody@{}/rookery", nowhere()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let _served = Served(child);
    let line = wait_for(&mut log, "no --store is given");
    let blobs = folder.path().join("data").join("blobs");
    assert!(line.contains(&blobs.display().to_string()), "{line}");
}

#[test]
fn a_store_that_cannot_be_used_is_warned_of_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let address = nowhere();
    let mut child = program(folder.path())
        .args(["--store", "s3://bucket/prefix"])
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("AWS_ENDPOINT", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let _served = Served(child);
    let line = wait_for(&mut log, "A dependency cannot be used");
    assert!(
        line.contains("store") && line.contains(&address) && line.contains("prefix/ping"),
        "{line}"
    );
    // It may come up later.
    wait_for(&mut log, "The coordinator listens");
}

#[cfg(unix)]
fn signal(served: &Served, name: &str) {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).arg(served.0.id().to_string());
    assert!(kill.status().unwrap().success());
}

#[cfg(unix)]
fn terminate(served: &Served) {
    signal(served, "TERM");
}

/// The status of an answer on a connection of its own.
#[cfg(unix)]
fn status(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.split_whitespace().nth(1).unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_says_so_and_serves_on_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let (mut served, mut log, address) = serve(folder.path(), &["--stop-notice", "3600"]);
    assert_eq!(status(&address, "/readyz"), "200");
    terminate(&served);
    wait_for(&mut log, "about to stop");
    assert_eq!(status(&address, "/readyz"), "503");
    assert_eq!(status(&address, "/api/v1/runs"), "200");
    terminate(&served);
    wait_for(&mut log, "has stopped");
    assert!(served.0.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_hangup_does_not_end_it_where_no_certificate_is() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut log, address) = serve(folder.path(), &[]);
    signal(&served, "HUP");
    wait_for(&mut log, "there is no TLS certificate");
    assert_eq!(status(&address, "/readyz"), "200");
}

#[cfg(unix)]
#[test]
fn it_says_where_it_listens_and_stops_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (mut served, mut log, address) = serve(folder.path(), &["--create-run", "main"]);
    // A stream that never ends by itself must not hold the coordinator up.
    let mut events = TcpStream::connect(&address).unwrap();
    events
        .write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    events.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    terminate(&served);
    wait_for(&mut log, "has stopped");
    assert!(served.0.wait().unwrap().success());
    let run = done(folder.path(), &["run", "show", "main"]);
    assert_eq!(serde_json::from_str::<Value>(&run).unwrap()["name"], "main");
}

/// Sends a request and gives the whole answer.
fn ask(address: &str, method: &str, path: &str, token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The answer's JSON.
fn json(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn the_folders_of_tables_may_stand_in_the_file_and_the_flag_wins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("coordinator.toml"), "syzygy = [\"in-file\"]\n").unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0"];
    let error = refused(folder, &words);
    assert!(error.contains("the tables in in-file"), "{error}");
    let words = [&words[..], &["--syzygy", "by-flag"]].concat();
    let error = refused(folder, &words);
    assert!(error.contains("the tables in by-flag"), "{error}");
}

#[test]
fn no_secret_reaches_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = folder.join("log");
    done(folder, &["migrate"]);
    let words = [
        "user",
        "create",
        "ann",
        "--scope",
        "operate",
        "--scope",
        "contribute",
    ];
    let token = done(folder, &words).trim().to_owned();
    let invitation = done(folder, &["user", "invite", "create"])
        .trim()
        .to_owned();
    done(folder, &["run", "create", "main"]);
    done(folder, &["run", "key", "create", "main"]);
    let secret = std::fs::read_to_string(folder.join("data/keys/main.key")).unwrap();
    let secret = secret.lines().nth(1).unwrap().to_owned();
    let child = program(folder)
        .args(["--log", "trace", "--log-format", "json", "serve"])
        .args(["--listen", "127.0.0.1:0", "--registration", "invitation"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let served = Served(child);
    let logged = || std::fs::read_to_string(&log).unwrap();
    let address = loop {
        assert!(!logged().contains("\"ERROR\""), "{}", logged());
        if let Some(rest) = logged().split("http://").nth(1) {
            break rest.split('"').next().unwrap().to_owned();
        }
        std::thread::yield_now();
    };
    let body = format!("{{\"name\": \"bob\", \"invitation\": \"{invitation}\"}}");
    let bob = json(&ask(&address, "POST", "/api/v1/users", "", &body));
    let bob = bob["token"].as_str().unwrap().to_owned();
    let made = json(&ask(&address, "POST", "/api/v1/tokens", &token, "{}"));
    let made = made["token"].as_str().unwrap().to_owned();
    let unknown = format!("rk_{}", "5".repeat(64));
    for secret in [&token, &bob, &made, &unknown] {
        let request = r#"{"protocol": 1, "version": "1", "worker": "w", "backend": "uniform"}"#;
        ask(&address, "POST", "/api/v1/jobs", secret, request);
        ask(&address, "POST", "/api/v1/jobs", secret, "{");
        // By mistake in the address's query, or where a name belongs.
        ask(
            &address,
            "GET",
            &format!("/api/v1/runs?token={secret}"),
            "",
            "",
        );
    }
    drop(served);
    let log = logged();
    assert!(
        log.contains("\"DEBUG\"") && log.contains("finished processing request"),
        "{log}"
    );
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    for secret in [token, invitation, secret, bob, made, unknown] {
        assert!(!log.contains(&secret), "{secret} is in the log:\n{log}");
    }
}
