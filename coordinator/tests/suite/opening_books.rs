//! Opening books of runs, given by commands while the coordinator serves.

use std::fs;

use axum::http::{Method, StatusCode};
use rookery_common::ids::ContentHash;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Job, Opening, Work, WorkKind};
use serde_json::json;

use crate::support::app::{TestApp, draft, params};
use crate::support::by;
use crate::support::games::Score::{Draw, Win};
use crate::support::games::{EITHER_MATES, chunk, pair_games};
use crate::support::networks::network_file;
use crate::upkeep::{command_line, done, tried};

/// Positions of books of runs. The coordinator's book has [`EITHER_MATES`].
const KING_PAWN: &str = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
const QUEEN_PAWN: &str = "4k3/8/8/8/8/8/3P4/4K3 w - - 0 1";

fn from_books() -> RunParams {
    let mut params = params();
    params.selfplay.book_share = 1.0;
    params
}

/// What the program prints when it imports this text as a run's book, on standard output if it succeeds.
async fn import(app: &TestApp, run: &str, text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("book.epd");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let words = ["openings", "import", "--run", run, file];
    let output = tried(app, &words).await;
    let printed = |bytes| String::from_utf8(bytes).unwrap();
    match output.status.success() {
        true => Ok(printed(output.stdout)),
        false => Err(printed(output.stderr)),
    }
}

/// The next job of a run.
async fn lease(app: &TestApp, run: &str) -> Job {
    app.lease_with(&app.alice, &json!({"run": run})).await
}

/// What a job is, and the positions where its games begin, each once if they follow each other.
fn starts(job: &Job) -> (WorkKind, Vec<&str>) {
    let openings: Vec<&Opening> = match &job.work {
        Work::SelfPlay { openings, .. } => openings.iter().collect(),
        Work::Match { pairs, .. } => pairs.iter().map(|task| &task.opening).collect(),
        other => panic!("{other:?}"),
    };
    let fens = openings.iter().map(|opening| opening.fen.as_deref());
    let mut fens: Vec<&str> = fens.map(Option::unwrap).collect();
    fens.dedup();
    (job.work.kind(), fens)
}

#[tokio::test]
async fn each_run_has_its_own_openings_or_the_coordinators() {
    let app = TestApp::of_run(0, |run| *run = from_books()).await;
    for name in ["second", "third"] {
        let draft = draft(name, from_books());
        app.app.db.create_run(draft, by("test")).await.unwrap();
    }
    let runs = ["main", "main", "second", "second", "third", "third"];
    for (number, run) in (0..).zip(runs) {
        let file = network_file(number);
        let path = format!("/networks/{}?run={run}", ContentHash::of(&file));
        let answer = app.call(Method::PUT, &path, &app.trainer, file).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    let said = import(&app, "main", KING_PAWN).await.unwrap();
    assert_eq!(said, "Run main has 1 opening of its own.\n");
    import(&app, "second", QUEEN_PAWN).await.unwrap();
    for (run, fen) in [
        ("main", KING_PAWN),
        ("second", QUEEN_PAWN),
        ("third", EITHER_MATES),
    ] {
        // Two pairs of the gate match, then self-play.
        for kind in [WorkKind::Match, WorkKind::Match, WorkKind::SelfPlay] {
            assert_eq!(starts(&lease(&app, run).await), (kind, vec![fen]), "{run}");
        }
    }
}

#[tokio::test]
async fn a_new_book_is_for_the_next_job_and_jobs_from_earlier_ones_stay_valid() {
    let app = TestApp::of_run(2, |run| run.selfplay.book_share = 1.0).await;
    let first = lease(&app, "main").await;
    assert_eq!(starts(&first), (WorkKind::Match, vec![EITHER_MATES]));
    import(&app, "main", KING_PAWN).await.unwrap();
    let second = lease(&app, "main").await;
    assert_eq!(starts(&second), (WorkKind::Match, vec![KING_PAWN]));
    import(&app, "main", QUEEN_PAWN).await.unwrap();
    let third = lease(&app, "main").await;
    assert_eq!(starts(&third), (WorkKind::SelfPlay, vec![QUEEN_PAWN]));
    done(&app, &["openings", "remove", "--run", "main"]).await;
    let fourth = lease(&app, "main").await;
    assert_eq!(starts(&fourth), (WorkKind::SelfPlay, vec![EITHER_MATES]));

    // Another coordinator on the ledger, which has handed out none of them, takes their games.
    let other = app.database.open().await;
    for job in [&first, &second, &third, &fourth] {
        let leased = other.leased_job(job.id).await.unwrap();
        assert!(leased.work == job.work, "{:?}", job.work);
    }
    other.close().await;
    let games = pair_games(&first, 0, [Win, Draw]);
    app.accepted(&app.alice, &chunk(&first, &games)).await;
    let acts = command_line(&app).await;
    let acts: Vec<&str> = acts.iter().map(|[action, ..]| &**action).collect();
    assert_eq!(acts, ["set-openings", "set-openings", "remove-openings"]);
}

#[tokio::test]
async fn what_is_no_book_is_refused_with_its_line_and_replaces_nothing() {
    let app = TestApp::of_run(1, |run| run.selfplay.book_share = 1.0).await;
    let remove = ["openings", "remove", "--run", "main"];
    let refused = tried(&app, &remove).await;
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("no opening book of run main"), "{error}");
    import(&app, "main", KING_PAWN).await.unwrap();
    let no_king = format!("{QUEEN_PAWN}\n4k3/8/8/8/8/8/3P4/8 w - - 0 1\n");
    for (run, text, expected) in [
        ("main", &*no_king, "no opening book: line 2: "),
        ("main", "", "; correct it, or give another file"),
        ("other", QUEEN_PAWN, "there is no run other"),
    ] {
        let error = import(&app, run, text).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let job = lease(&app, "main").await;
    assert_eq!(starts(&job), (WorkKind::SelfPlay, vec![KING_PAWN]));
    assert_eq!(command_line(&app).await.len(), 1);
}
