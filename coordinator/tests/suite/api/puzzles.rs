//! Puzzles: posed, solved, scored.

use axum::http::StatusCode;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::{NetworkInfo, PuzzleScore};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::puzzle::Puzzle;
use rookery_coordinator::db::PuzzleSetDraft;

use crate::support::app::{TestApp, run};
use crate::support::by;
use crate::support::games::{puzzle, puzzle_game};

#[tokio::test]
async fn puzzle_scores_are_drawn_over_numbers_positions_or_time_and_in_parts() {
    let app = TestApp::of_run(1, |run| run.scheduling.puzzle_share = 1.0).await;
    let set = PuzzleSetDraft {
        run: run(),
        name: "own".to_owned(),
        puzzles: vec![puzzle("one"), puzzle("two")],
    };
    app.app.db.add_puzzles(set, by("ops")).await.unwrap();
    // Fewer tries are not drawn.
    let mut tried = 0;
    while tried < 30 {
        let job = app.lease(&app.alice).await;
        let games: Vec<_> = (0..job.work.games())
            .map(|index| puzzle_game(&job, index, true))
            .collect();
        app.hand_in(&app.alice, &job, &games).await;
        tried += job.work.games();
    }
    let path = "/runs/main/puzzles";
    for (query, axis, other) in [
        ("", "network", "?over=time"),
        ("?over=positions", "training positions", ""),
        ("?over=time", "time (UTC)", "?over=positions"),
    ] {
        let page = app.page(&format!("{path}{query}")).await;
        let (axis, other) = (format!(">{axis}</text>"), format!("href=\"{path}{other}\""));
        for part in [&*axis, &*other, "data-span=\"", "/zoom.js\""] {
            assert!(page.contains(part), "{query}: {part}: {page}");
        }
    }
    let later = app.page(&format!("{path}?over=time&from=99999")).await;
    let whole = format!("href=\"{path}?over=time\">whole run");
    for part in ["No data in this part of the chart.", &*whole, ">#0</a>"] {
        assert!(later.contains(part), "{part}: {later}");
    }
    for odd in ["over=moons", "from=soon"] {
        let odd = app.open(&format!("{path}?{odd}")).await;
        assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn puzzles_are_posed_and_scored_by_theme_and_rating() {
    let app = TestApp::of_run(1, |run| run.scheduling.puzzle_share = 1.0).await;
    assert_eq!(
        app.lease(&app.alice).await.work.kind(),
        WorkKind::SelfPlay,
        "none yet"
    );
    let puzzles = vec![puzzle("one"), puzzle("two")];
    let set = PuzzleSetDraft {
        run: run(),
        name: "own".to_owned(),
        puzzles,
    };
    let db = &app.app.db;
    let add = async || db.add_puzzles(set.clone(), by("ops")).await.unwrap();
    let added = add().await;
    assert_eq!(added.puzzles, 2);
    assert_eq!(add().await, added, "the same set again");
    let part = PuzzleSetDraft {
        puzzles: vec![puzzle("two")],
        ..set.clone()
    };
    let nothing = db.add_puzzles(part, by("ops")).await.unwrap();
    assert_eq!(nothing.puzzles, 0);
    let listed = db.puzzle_sets(&run()).await.unwrap();
    assert_eq!(
        listed,
        std::slice::from_ref(&added),
        "nothing new is no set"
    );
    let log = app.operator_log().await;
    let acts = log.entries.iter().filter(|act| act.actor == "ops");
    let acts: Vec<_> = acts
        .map(|act| [&*act.action, &*act.subject, &*act.detail])
        .collect();
    let told = format!("own: 2 new puzzles, set {}", added.hash);
    assert_eq!(acts, [["add-puzzles", "main", told.as_str()]]);
    let job = app.lease(&app.alice).await;
    assert_eq!((job.work.kind(), job.work.games()), (WorkKind::Puzzles, 2));
    let games = [puzzle_game(&job, 0, true), puzzle_game(&job, 1, false)];
    app.hand_in(&app.alice, &job, &games).await;
    let score: PuzzleScore = app.get("/networks/best/puzzles").await;
    assert_eq!((score.tried, score.solved), (2, 1));
    app.submit(1).await;
    let list: Vec<NetworkInfo> = app.get("/networks").await;
    let scores: Vec<_> = list.into_iter().map(|network| network.puzzles).collect();
    assert_eq!(scores, [None, Some(score.clone())], "each has its own");
    let short = db.networks_in_short(&run()).await.unwrap();
    let only = PuzzleScore {
        tried: 2,
        solved: 1,
        ..PuzzleScore::default()
    };
    let scores: Vec<_> = short.into_iter().map(|network| network.puzzles).collect();
    assert_eq!(scores, [None, Some(only)]);
    let numbers = [(0, 0), (1, 9)].map(|(a, b)| NetworkNumber(a)..=NetworkNumber(b));
    for (numbers, expected) in numbers.into_iter().zip([Some(&score), None]) {
        let scores = db.puzzle_scores(&run(), numbers).await.unwrap();
        assert_eq!(scores.get(&NetworkNumber(0)), expected);
    }
    let said = ["mateIn1</th>", "networks/0\">#0</a>"];
    app.says("/runs/main/puzzles", &said).await;
    let older = app.page("/runs/main/puzzles?before=0").await;
    assert!(!older.contains("mateIn1</th>"), "{older}");
    let names: Vec<&str> = score
        .themes
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(names, ["backRankMate", "mateIn1"]);
    assert_eq!(score.ratings[0].name, "1200-1399");
    assert_eq!((score.ratings[0].tried, score.ratings[0].solved), (2, 1));
    let performance = score.performance.unwrap();
    assert!((performance.elo - 1_300.0).abs() < 0.1, "{performance:?}");
    assert!(performance.low < 1_000.0 && performance.high > 1_600.0);
    assert_eq!(app.get::<Puzzle>("/puzzles/main/one").await, puzzle("one"));
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!(run.training_positions, 3);
    app.assert_consistent().await;
    for (quarantined, tried, positions) in [(true, 0, 0), (false, 2, 3)] {
        assert_eq!(app.order("/users/alice", quarantined).await, 204);
        let score: PuzzleScore = app.get("/networks/best/puzzles").await;
        let run: RunInfo = app.get("/runs/main").await;
        assert_eq!((score.tried, run.training_positions), (tried, positions));
        app.assert_consistent().await;
    }
}
