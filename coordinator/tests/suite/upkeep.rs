//! The program's commands on a ledger and a store in use: export, archive, sweep.

use std::fs;
use std::path::Path;
use std::process::Output;

use axum::http::StatusCode;
use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use rookery_common::ids::ContentHash;
use rookery_common::params::WindowParams;
use rookery_common::protocol::matches::RatingRow;
use rookery_common::protocol::runs::RunPatch;
use rookery_coordinator::blobs::BlobKind;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::db::{Actor, ChunkStatus, ExclusionOrder};
use rookery_coordinator::trust::plan::{draw_waiting, plan_waiting};
use serde_json::Value;
use sqlx::Connection as _;
use tokio::process::Command;

use crate::support::anchors::beaten_by_an_anchor;
use crate::support::app::{TestApp, params, run};
use crate::support::games::{Found, audit, selfplay};
use crate::support::matches::contested;
use crate::support::selfplay::selfplays;

/// What a command of the program does.
pub(super) async fn tried(app: &TestApp, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"))
        .args(words)
        .env("ROOKERY_DATABASE", app.database.url())
        .envs(app.files().environment())
        .output()
        .await
        .unwrap()
}

/// What a command of the program prints; it must succeed.
pub(super) async fn done(app: &TestApp, words: &[&str]) -> String {
    let output = tried(app, words).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A coordinator with this many chunks of one game each.
async fn with_chunks(count: u32) -> TestApp {
    let app = TestApp::with_network().await;
    for salt in 1..=count {
        selfplays(&app, &app.alice, &[salt]).await;
    }
    app
}

/// The ratings of the networks 0 and 1.
async fn elos(app: &TestApp) -> [f64; 2] {
    let rows: Vec<RatingRow> = app.get("/ratings").await;
    let of = |number: u32| rows.iter().find(|row| row.network.0 == number);
    [0, 1].map(|number| of(number).unwrap().rating.elo)
}

#[tokio::test]
async fn ratings_are_checked_on_the_scale_of_their_anchors() {
    let app = beaten_by_an_anchor(Some(1100)).await;
    let check = &["ledger", "check"];
    let set = async |elo: &str| {
        let said = done(&app, &["run", "anchor", "main", "1", "--elo", elo]).await;
        assert!(done(&app, check).await.contains("every sum follows"));
        (said, elos(&app).await)
    };
    assert!(done(&app, check).await.contains("every sum follows"));
    let [first, anchor] = elos(&app).await;
    assert!(anchor == 1100.0 && first < 1050.0, "{first}");
    let (said, [moved, anchor]) = set("1900").await;
    assert!(said.contains("1900 Elo"), "{said}");
    assert_eq!(anchor, 1900.0);
    assert!((moved - first - 800.0).abs() < 0.1, "{first} {moved}");
    let (said, [own, anchor]) = set("none").await;
    assert!(said.contains("as any other"), "{said}");
    assert_eq!(own, 0.0);
    assert!(anchor > 50.0);
    set("1100").await;
    let changes = [
        (
            "UPDATE ratings SET elo = elo + 1 WHERE network = 0",
            "rating of network 0",
        ),
        (
            "UPDATE networks SET anchor_elo = 1200 WHERE number = 1",
            "rating of network 1",
        ),
    ];
    are_named(&app, changes).await;
}

/// Changes the ledger, one statement after the other; `ledger check` must name what each leads to.
async fn are_named<const N: usize>(app: &TestApp, changes: [(&'static str, &str); N]) {
    for (change, named) in changes {
        app.database.tamper(change).await;
        let checked = tried(app, &["ledger", "check"]).await;
        let found = String::from_utf8_lossy(&checked.stdout);
        assert!(!checked.status.success(), "{change}");
        assert!(found.contains(named), "{change}: {found}");
    }
}

#[tokio::test]
async fn a_trainer_is_seen_by_the_use_of_its_token() {
    let app = TestApp::new().await;
    let seen = async || {
        let users = app.app.db.users().await.unwrap();
        let trainer = users.into_iter().find(|user| user.name == "trainer");
        trainer.unwrap().last_seen
    };
    app.clock.advance_seconds(3600);
    let path = "/chunks?run=main";
    let answer = app.look(&app.trainer, path).await;
    assert_eq!(answer.status(), StatusCode::OK);
    // It is noted beside the answer.
    let now = app.clock.now().to_string();
    while seen().await.is_none_or(|at| at < now) {
        tokio::task::yield_now().await;
    }
    let said = done(&app, &["user", "list"]).await;
    let line = said
        .lines()
        .find(|line| line.starts_with("trainer"))
        .unwrap();
    assert!(!line.contains("never seen"), "{line}");
}

#[tokio::test]
async fn ratings_are_compared_whole_or_it_is_said_that_they_are_not() {
    let app = beaten_by_an_anchor(None).await;
    let changes = [
        (
            "UPDATE ratings SET low = -5000, high = 5000 WHERE network = 1",
            "rating of network 1",
        ),
        (
            "UPDATE ratings SET games = 37 WHERE network = 0",
            "rating of network 0",
        ),
        (
            "DELETE FROM ratings",
            "rating of network 0: the ledger says none",
        ),
    ];
    are_named(&app, changes).await;
    app.database
        .tamper("UPDATE runs SET unrated_games = 37")
        .await;
    let said = done(&app, &["ledger", "check"]).await;
    let waiting = "not compared: ratings, as 37 games are not rated yet";
    assert!(said.contains("every sum follows"), "{said}");
    assert!(said.contains(waiting), "{said}");
}

/// The moves of the games, from the Parquet files.
fn moves(folder: &Path, files: &[&Value]) -> Vec<String> {
    let mut moves = Vec::new();
    for file in files {
        let path = folder.join(file["name"].as_str().unwrap());
        let bytes = fs::read(&path).unwrap();
        assert_eq!(file["sha256"], ContentHash::of(&bytes).to_string());
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let (fen, played) = (row.get_string(6).unwrap(), row.get_string(7).unwrap());
            if row.get_int(2).unwrap() == 0 {
                assert!(fen.starts_with("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq"));
            }
            // The tests' games visit the move that is played.
            assert!(row.get_string(12).unwrap().contains(&format!("{played} ")));
            assert_eq!(row.get_int(13).unwrap(), 0);
            assert_eq!(row.get_string(14).unwrap(), "threefold");
            moves.push(played.clone());
        }
    }
    moves
}

/// The words that export the run into this folder, two chunks a file.
fn export(output: &Path) -> [&str; 10] {
    let output = output.to_str().unwrap();
    [
        "ledger",
        "export",
        "--run",
        "main",
        "--licence",
        "CC0-1.0",
        "--part-chunks",
        "2",
        "--output",
        output,
    ]
}

/// What an exported dataset says of itself.
fn manifest(output: &Path) -> Value {
    let bytes = fs::read(output.join("manifest.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn held_chunks_and_audits_are_not_exported() {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    // Audits are drawn among those at work.
    app.lease(&app.bob).await;
    let games = [selfplay(&job, 0, 1)];
    app.hand_in(&app.alice, &job, &games).await;
    plan_waiting(&app.app).await.unwrap();
    app.clock.advance_seconds(30);
    draw_waiting(&app.app).await.unwrap();
    let auditing = app.lease(&app.bob).await;
    app.accepted(&app.bob, &audit(&auditing, &games, Found::Same))
        .await;
    let held = selfplays(&app, &app.bob, &[2]).await;
    let order = ExclusionOrder {
        state: ChunkStatus::Excluded,
        reason: "looked at by hand".to_owned(),
    };
    let (held, by) = (ContentHash::of(&held), Actor::new("test", app.clock.now()));
    app.app.db.hold_chunk(held, order, by).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("data");
    done(&app, &export(&output)).await;
    let manifest = manifest(&output);
    assert_eq!(
        (&manifest["chunks"], &manifest["positions"]),
        (&1.into(), &8.into())
    );
    let files = manifest["files"].as_array().unwrap();
    let positions: Vec<&Value> = files.iter().take(1).collect();
    assert_eq!(moves(&output, &positions).len(), 8);
}

#[tokio::test]
async fn a_run_becomes_a_dataset_with_a_licence() {
    let app = with_chunks(3).await;
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("data");
    let words = export(&output);
    done(&app, &words).await;
    let manifest = manifest(&output);
    assert_eq!(manifest["licence"], "CC0-1.0");
    assert_eq!(
        (
            &manifest["chunks"],
            &manifest["games"],
            &manifest["positions"]
        ),
        (&3.into(), &3.into(), &24.into())
    );
    assert_eq!(manifest["networks"][0]["number"], 0);
    let files = manifest["files"].as_array().unwrap();
    assert_eq!(files.len(), 4);
    let of = |ending: &str| -> Vec<&Value> {
        let ends = |file: &&Value| file["name"].as_str().unwrap().ends_with(ending);
        files.iter().filter(ends).collect()
    };
    let moves = moves(&output, &of(".parquet"));
    assert_eq!(moves.len(), 24);
    assert_eq!(moves[..4], ["g1f3", "g8f6", "f3g1", "f6g8"]);
    let mut games = 0;
    for file in of(".pgn.zst") {
        let bytes = fs::read(output.join(file["name"].as_str().unwrap())).unwrap();
        let text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap();
        games += text.matches("[Result \"1/2-1/2\"]").count();
    }
    assert_eq!(games, 3);
    // What is there is not written over.
    let again = tried(&app, &words).await;
    assert!(String::from_utf8_lossy(&again.stderr).contains("already"));
}

/// A coordinator with three chunks of one game each, of which training samples only the last one.
async fn with_old_chunks() -> TestApp {
    let app = with_chunks(3).await;
    // A window of eight positions is the last game.
    let mut params = params();
    params.training.window = WindowParams {
        min: 8,
        max: 8,
        exponent: 0.0,
        slope: None,
    };
    let patch = RunPatch {
        params: Some(params),
        ..RunPatch::default()
    };
    let now = app.clock.now();
    let patched = app
        .app
        .db
        .patch_run(&run(), patch, Actor::new("test", now))
        .await;
    patched.unwrap();
    app
}

/// The words that archive what training no longer samples and fills an archive.
const ARCHIVE: [&str; 6] = [
    "storage",
    "archive",
    "--run",
    "main",
    "--older-than-days",
    "0",
];

#[tokio::test]
async fn archives_and_sweeps_run_while_the_coordinator_serves() {
    let app = with_old_chunks().await;
    let left = done(&app, &ARCHIVE).await;
    assert!(left.contains("0 chunks went into 0 archives"), "{left}");
    let packed = done(&app, &[&ARCHIVE[..], &["--rest"]].concat()).await;
    assert!(packed.contains("2 chunks went into 1 archive"), "{packed}");
    let swept = done(&app, &["storage", "sweep", "--json"]).await;
    let swept: Value = serde_json::from_str(&swept).unwrap();
    let needed = |kind: usize| swept[kind]["needed"].as_u64().unwrap();
    assert_eq!((needed(0), needed(1), needed(3)), (1, 1, 1), "{swept}");
    for found in swept.as_array().unwrap() {
        assert_eq!(
            (&found["orphans"], &found["missing"]),
            (&0.into(), &serde_json::json!([]))
        );
    }
    app.assert_consistent().await;
}

/// Makes the ledger what a backup from before its archives is.
async fn forget_archives(app: &TestApp) {
    let mut database = app.database.connect().await;
    for forget in ["DELETE FROM archived_chunks", "DELETE FROM archives"] {
        let forgotten = sqlx::query(forget).execute(&mut database).await.unwrap();
        assert_ne!(forgotten.rows_affected(), 0);
    }
    database.close().await.unwrap();
}

#[tokio::test]
async fn a_ledger_from_before_an_archive_gets_its_chunks_back() {
    let app = with_old_chunks().await;
    let blobs = &app.app.blobs;
    let chunks = blobs.list(BlobKind::Chunk).await.unwrap();
    assert_eq!(chunks.len(), 3);
    done(&app, &[&ARCHIVE[..], &["--rest"]].concat()).await;
    forget_archives(&app).await;
    let archive = blobs.list(BlobKind::Archive).await.unwrap()[0].hash;
    let remove = ["storage", "sweep", "--remove", "--grace-hours", "0"];
    let refused = tried(&app, &remove).await;
    assert!(!refused.status.success());
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(
        error.contains("2 blobs") && error.contains("nothing was removed"),
        "{error}"
    );
    let told = String::from_utf8(refused.stdout).unwrap();
    let expected = format!("2 of the missing chunks are in archive {archive}");
    assert!(told.contains(&expected), "{told}");
    assert!(blobs.get(BlobKind::Archive, &archive).await.is_ok());
    let told = done(&app, &["storage", "sweep", "--restore"]).await;
    assert!(told.contains("2 chunks were put back"), "{told}");
    for chunk in &chunks {
        let bytes = blobs.get(BlobKind::Chunk, &chunk.hash).await.unwrap();
        assert_eq!(ContentHash::of(&bytes), chunk.hash);
    }
    // The chunks are there: now nothing needs the archive.
    done(&app, &remove).await;
    assert!(blobs.get(BlobKind::Archive, &archive).await.is_err());
    app.assert_consistent().await;
}

/// What the command line did, by the operator log, the oldest first: action, subject and detail.
pub(super) async fn command_line(app: &TestApp) -> Vec<[String; 3]> {
    let log = app.operator_log().await.entries.into_iter().rev();
    let acts = log.filter(|act| act.actor == "command line");
    acts.map(|act| [act.action, act.subject, act.detail])
        .collect()
}

#[tokio::test]
async fn what_is_archived_and_removed_is_in_the_operator_log() {
    let app = with_old_chunks().await;
    done(&app, &[&ARCHIVE[..], &["--rest"]].concat()).await;
    let blobs = &app.app.blobs;
    let archive = blobs.list(BlobKind::Archive).await.unwrap()[0];
    let stray = Bytes::from_static(b"uploaded, never entered");
    let hash = ContentHash::of(&stray);
    blobs.put(BlobKind::Chunk, &hash, stray).await.unwrap();
    let remove = ["storage", "sweep", "--remove", "--grace-hours", "0"];
    for words in [&["storage", "sweep"][..], &remove, &remove] {
        done(&app, words).await;
    }
    assert!(blobs.get(BlobKind::Chunk, &hash).await.is_err());
    let packed = format!(
        "2 chunks went into archive {}, {} bytes",
        archive.hash, archive.bytes
    );
    let db = &app.files().environment()[0].1;
    let expected = [
        ["archive", "main", &packed],
        ["sweep-store", db, "1 of chunks (23 bytes)"],
    ];
    assert_eq!(command_line(&app).await, expected);
}

#[tokio::test]
async fn puzzles_that_are_imported_and_mined_are_in_the_operator_log() {
    // Games with a mate in them.
    let app = contested().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lichess.csv");
    let rows = "PuzzleId,FEN,Moves,Rating,Themes\n\
                one,k7/8/8/8/8/8/6R1/K6R b - - 0 1,a8b8 h1h7 b8a8 g2g8,900,mateIn2\n";
    fs::write(&file, rows).unwrap();
    let import = ["puzzles", "import", file.to_str().unwrap(), "--run", "main"];
    for words in [&import[..], &import, &["puzzles", "mine", "--run", "main"]] {
        done(&app, words).await;
    }
    let acts = command_line(&app).await;
    let told: Vec<_> = acts
        .iter()
        .map(|act| act.each_ref().map(|word| word.split(',').next().unwrap()))
        .collect();
    assert_eq!(
        told[0],
        ["add-puzzles", "main", "lichess.csv: 1 new puzzle"]
    );
    assert_eq!(told[1][..2], ["add-puzzles", "main"]);
    assert!(told[1][2].starts_with("mined from 2 chunks: "), "{told:?}");
    assert_eq!(told.len(), 2);
    app.assert_consistent().await;
}
