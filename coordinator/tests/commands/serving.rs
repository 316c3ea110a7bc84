//! `serve`: that it starts, serves and stops in order, and what it says meanwhile.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{done, program, refused};

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
    address_in(rest)
}

/// The host and port with which a text begins.
#[cfg(unix)]
fn address_in(text: &str) -> String {
    let end = text.find(|c: char| c.is_whitespace() || c == '/' || c == '"');
    text[..end.unwrap_or(text.len())].to_owned()
}

/// A coordinator that begins to serve, with its log.
fn begin(command: &mut Command, words: &[&str]) -> (Served, BufReader<ChildStderr>) {
    let mut child = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(words)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    (Served(child), log)
}

/// A coordinator that listens, with its log and its address.
#[cfg(unix)]
fn serve(folder: &Path, words: &[&str]) -> (Served, BufReader<ChildStderr>, String) {
    let (served, mut log) = begin(&mut program(folder), words);
    let address = address(&mut log);
    (served, log, address)
}

/// An address of this machine at which nothing answers.
const NOWHERE: &str = "127.0.0.1:1";

#[test]
fn an_address_to_which_no_client_can_be_sent_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["cdn.example.org", "ftp://cdn.example.org", "https://"] {
        let error = refused(folder.path(), &["serve", "--public-url", address]);
        assert!(error.contains("no address of files"), "{error}");
    }
}

#[test]
fn a_shared_database_with_a_store_of_its_own_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("postgres://nobody@{NOWHERE}/rookery");
    let mut program = program(folder.path());
    let (_served, mut log) = begin(&mut program, &["--database", &database]);
    let line = wait_for(&mut log, "no --storage is given");
    let blobs = folder.path().join("data").join("blobs");
    assert!(line.contains(&blobs.display().to_string()), "{line}");
}

#[test]
fn a_store_that_cannot_be_used_is_warned_of_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = program(folder.path());
    program
        .env("AWS_ENDPOINT", format!("http://{NOWHERE}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    let (_served, mut log) = begin(&mut program, &["--storage", "s3://bucket/prefix"]);
    let line = wait_for(&mut log, "requests that need it get 503");
    assert!(
        line.contains("store") && line.contains(NOWHERE) && line.contains("prefix/ping"),
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
    // A signal that comes right after another is the same one.
    while served.0.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(300));
        terminate(&served);
    }
    // What was asked for is no error, which would wake somebody.
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("has stopped") && !rest.contains("ERROR"),
        "{rest}"
    );
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

#[cfg(unix)]
#[test]
fn metrics_are_served_at_a_listener_of_their_own_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let (_served, mut log) = begin(
        &mut program(folder.path()),
        &["--metrics-listen", "127.0.0.1:0"],
    );
    let (mut api, mut metrics) = (None, None);
    while api.is_none() || metrics.is_none() {
        let line = wait_for(&mut log, "http://");
        let (_, rest) = line.split_once("http://").unwrap();
        match rest.split_whitespace().next().unwrap().split_once('/') {
            Some((address, "metrics")) => metrics = Some(address.to_owned()),
            _ => api = Some(address_in(rest)),
        }
    }
    let (api, metrics) = (api.unwrap(), metrics.unwrap());
    assert_eq!(status(&api, "/readyz"), "200");
    assert_eq!(status(&api, "/metrics"), "404");
    assert_eq!(status(&metrics, "/metrics"), "200");
    assert_eq!(status(&metrics, "/api/v1/runs"), "404");
}

#[cfg(unix)]
#[test]
fn a_ledger_that_is_served_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (mut served, mut log, _) = serve(folder.path(), &["--create-run", "main"]);
    let copy = ["ledger", "copy", "--to", "sqlite:copy.db"];
    let error = refused(folder.path(), &copy);
    assert!(error.contains("stop every coordinator"), "{error}");
    assert!(!folder.path().join("copy.db").exists());
    terminate(&served);
    wait_for(&mut log, "has stopped");
    assert!(served.0.wait().unwrap().success());
    done(folder.path(), &copy);
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
    assert!(
        error.contains("RK-0011: no endgame table can be used: in-file: "),
        "{error}"
    );
    let words = [&words[..], &["--syzygy", "by-flag"]].concat();
    let error = refused(folder, &words);
    assert!(
        error.contains("RK-0011: no endgame table can be used: by-flag: "),
        "{error}"
    );
}

#[test]
fn lines_for_programs_have_message_and_values_at_the_top() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--log", "info,tower_http=debug", "--log-format", "json"];
    let (_served, mut log) = begin(&mut program(folder.path()), &words);
    let mut line = |text| serde_json::from_str::<Value>(&wait_for(&mut log, text)).unwrap();
    let listens = line("The coordinator listens");
    assert_eq!(listens["level"], "INFO");
    assert!(listens["message"].is_string(), "{listens}");
    let address = listens["address"].as_str().unwrap();
    ask(address, "GET", "/api/v1/runs", "", "");
    let request = line("finished processing request");
    assert_eq!(request["message"], "finished processing request");
    assert_eq!(request["span"]["path"], "/api/v1/runs");
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
        // The line may be written only in part.
        let rest = logged().split("http://").nth(1).map(str::to_owned);
        if let Some((address, _)) = rest.as_deref().and_then(|rest| rest.split_once('"')) {
            break address.to_owned();
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
        let request = r#"{"protocol": 2, "version": "1", "worker": "w", "backend": "uniform"}"#;
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

#[cfg(unix)]
#[test]
fn a_ledger_on_sqlite_has_one_coordinator() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _log, address) = serve(folder.path(), &[]);
    let refusal = refused(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let process = format!("process {}", first.0.id());
    assert!(
        refusal.contains(&process) && refusal.contains("ledger.db"),
        "{refusal}"
    );
    // Commands go on beside it.
    done(folder.path(), &["user", "create", "ann"]);
    assert!(status(&address, "/readyz").contains("200"));
    drop(first);
    serve(folder.path(), &[]);
}

#[test]
fn a_coordinator_that_gets_no_port_makes_no_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let refusal = refused(folder.path(), &["serve", "--listen", &taken]);
    assert!(refusal.contains(&taken), "{refusal}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
