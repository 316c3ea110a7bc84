//! Programs that die, hang and talk nonsense.
#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use rookery_common::chess::moves::parse_uci;
use rookery_uci::{Answer, Engine, Game, Launch, Limits, Timeouts, UciError};
use shakmaty::{Chess, Position as _};

/// What a well-behaved engine says when greeted.
const GREETING: &str = "read uci; echo id name Odd; echo uciok;";
/// The same up to the word `go`.
const UNTIL_GO: &str = "read uci; echo id name Odd; echo uciok; \
    while read line; do case $line in isready) echo readyok;; go*) break;; esac; done;";

/// How long something may take that comes to an end.
const LONG: Duration = Duration::from_secs(240);
/// How long something is waited for that never comes.
const SHORT: Duration = Duration::from_millis(300);

/// A shell that is waited for as long as a slow machine needs.
fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("sh").timeouts(Timeouts {
        ready: LONG,
        search: LONG,
        stop: LONG,
    });
    launch.arguments = vec!["-c".to_owned(), script.to_owned()];
    launch
}

/// One that gets ready too late, if at all.
fn late(script: &str, ready: Duration) -> Launch {
    let mut launch = shell(script);
    launch.timeouts.ready = ready;
    launch
}

/// One that answers no search.
fn endless(script: &str) -> Launch {
    let mut launch = shell(script);
    launch.timeouts.search = SHORT;
    launch.timeouts.stop = SHORT;
    launch
}

fn search(engine: &mut Engine) -> Result<Answer, UciError> {
    let game = Game {
        start: &Chess::default(),
        moves: &[],
    };
    engine.search(game, &Limits::nodes(1))
}

fn searched(launch: &Launch) -> UciError {
    let mut engine = Engine::start(launch).expect("it starts");
    let error = search(&mut engine).expect_err("it misbehaves");
    let again = search(&mut engine).expect_err("it has ended");
    assert!(matches!(again, UciError::Ended { .. }), "{again}");
    error
}

#[test]
fn a_program_that_is_not_there() {
    let error = Engine::start(&Launch::new("/no/such/engine")).unwrap_err();
    assert!(matches!(error, UciError::Start { .. }));
    assert!(error.to_string().contains("/no/such/engine"), "{error}");
}

#[test]
fn one_that_ends_at_once_says_why() {
    let error = Engine::start(&shell("echo no network file >&2; exit 3")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, UciError::Died { .. }), "{text}");
    assert!(
        text.contains("exit status: 3") && text.contains("no network file"),
        "{text}"
    );
}

#[test]
fn one_that_never_answers_the_greeting() {
    let error = Engine::start(&late("sleep 100", SHORT)).unwrap_err();
    assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
}

#[test]
fn one_that_talks_without_end_is_not_listened_to_for_ever() {
    let error = Engine::start(&late("while :; do echo hello; done", SHORT)).unwrap_err();
    assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
    let error = Engine::start(&shell("exec cat /dev/zero")).unwrap_err();
    assert!(matches!(error, UciError::Nonsense { .. }), "{error}");
}

#[test]
fn one_that_is_never_ready() {
    let script = format!("{GREETING} sleep 100");
    let start = |ready| Engine::start(&late(&script, ready)).unwrap_err();
    // On a slow machine the greeting may take longer.
    let patience = std::iter::successors(Some(SHORT), |ready| Some(2 * *ready));
    let mut errors = patience.take_while(|ready| *ready < LONG).map(start);
    let error = errors.find(|error| error.to_string().contains("Odd"));
    let error = error.expect("it has said its name");
    assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
}

#[test]
fn one_that_dies_in_the_middle_of_a_search() {
    let script = format!("{UNTIL_GO} echo info depth 1; kill -9 $$");
    let error = searched(&shell(&script));
    assert!(matches!(error, UciError::Died { .. }), "{error}");
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[test]
fn one_that_does_not_stop() {
    for pause in ["sleep 0.01", ":"] {
        let script = format!("{UNTIL_GO} while :; do echo info depth 1; {pause}; done");
        let error = searched(&endless(&script));
        assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
    }
    // Lines that take longer to understand than to write: one always waits to be read.
    let script = format!("{UNTIL_GO} exec yes info score cp 1 pv $(seq 3000)");
    let error = searched(&endless(&script));
    assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
}

#[test]
fn one_whose_name_would_write_over_the_terminal() {
    let greeting = r"read uci; printf 'id name \033[2Jm\303\274d\007\n'; echo uciok;";
    let engine = Engine::start(&shell(&format!("{greeting} read a; echo readyok; cat"))).unwrap();
    assert_eq!(engine.name(), "[2Jmüd");
    let nameless = shell("read uci; echo id name ' '; echo uciok; read a; echo readyok; cat");
    assert_eq!(Engine::start(&nameless).unwrap().name(), "sh");
    let error = Engine::start(&shell(r"printf 'no \033[31mfile\n' >&2; exit 3")).unwrap_err();
    assert!(error.to_string().contains("no [31mfile"), "{error}");
}

#[test]
fn one_that_does_not_read_is_not_waited_for_for_ever() {
    let script =
        "read uci; echo uciok; read a; echo readyok; read b; echo readyok; exec sleep 1000";
    let mut engine = Engine::start(&endless(script)).unwrap();
    // More than a pipe holds.
    let mut position = Chess::default();
    let moves: Vec<_> = ["g1f3", "g8f6", "f3g1", "f6g8"]
        .iter()
        .cycle()
        .take(40_000)
        .map(|text| {
            let m = parse_uci(&position, text).unwrap();
            position.play_unchecked(m);
            m
        })
        .collect();
    let game = Game {
        start: &Chess::default(),
        moves: &moves,
    };
    let error = engine.search(game, &Limits::nodes(1)).unwrap_err();
    assert!(matches!(error, UciError::TimedOut { .. }), "{error}");
}

#[test]
fn one_that_stops_when_told_has_answered() {
    let script =
        format!("{UNTIL_GO} read stop; echo bestmove e2e4; read isready; echo readyok; cat");
    let mut launch = shell(&script);
    launch.timeouts.search = SHORT;
    let mut engine = Engine::start(&launch).unwrap();
    assert!(search(&mut engine).unwrap().best.is_some());
}

#[test]
fn one_that_plays_an_illegal_move() {
    for word in ["e2e5", "hello", "", "(none)", "0000", "♞"] {
        let error = searched(&shell(&format!("{UNTIL_GO} echo 'bestmove {word}'")));
        assert!(
            matches!(error, UciError::IllegalMove { .. }),
            "{word}: {error}"
        );
    }
}

#[test]
fn an_answer_to_an_earlier_question_is_not_taken() {
    let script = "read uci; echo uciok; \
        while read line; do case $line in \
            isready) echo bestmove a2a3; echo readyok;; \
            go*) echo bestmove e2e4;; esac; done";
    let mut engine = Engine::start(&shell(script)).unwrap();
    for _ in 0..3 {
        assert_eq!(
            search(&mut engine).unwrap().best.unwrap().to().to_string(),
            "e4"
        );
    }
}

#[test]
fn chess960_is_refused_where_it_is_not_played() {
    let mut engine = Engine::start(&shell(UNTIL_GO)).unwrap();
    let fen = "1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgb - 0 1";
    let start = rookery_common::chess::GameHistory::from_fen(fen).unwrap();
    let game = Game {
        start: start.start(),
        moves: &[],
    };
    let error = engine.search(game, &Limits::nodes(1)).unwrap_err();
    assert!(matches!(error, UciError::NoChess960 { .. }), "{error}");
}

#[test]
fn what_an_engine_has_started_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!(
        "sleep 1000 & echo $! > '{}'; {UNTIL_GO} sleep 1000",
        pid.display()
    );
    let mut engine = Engine::start(&endless(&script)).unwrap();
    let child = std::fs::read_to_string(&pid).unwrap();
    let process = format!("/proc/{}", child.trim());
    assert!(!cfg!(target_os = "linux") || Path::new(&process).exists());
    search(&mut engine).unwrap_err();
    // The signal has been sent; its effect may take a moment on a busy machine.
    let deadline = Instant::now() + LONG;
    while runs(child.trim()) {
        assert!(Instant::now() < deadline, "process {child} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs; one that is dead but was not waited for does not.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
