//! The page of what a run has published.

use rookery_coordinator::config::{AccessConfig, DatasetConfig, PageUrl};

use super::assert_pages_say;
use crate::support::app::{TestApp, params};

#[tokio::test]
async fn a_dataset_is_shown_with_its_date_size_licence_and_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("main-2030-01-01");
    std::fs::create_dir(&dataset).unwrap();
    let sha256 = "ab".repeat(32);
    let manifest = serde_json::json!({
        "format": "rookery-dataset-1", "run": "main", "licence": "CC0-1.0", "made_at": "2030-01-01T04:30:00Z",
        "made_by": "rookery-coordinator 0.1.0", "params": {}, "networks": [], "chunks": 1, "games": 1_200,
        "positions": 96_000, "columns": [],
        "files": [
            {"name": "games-00001.pgn.zst", "sha256": sha256, "bytes": 2_500_000, "first_chunk": 1, "last_chunk": 9},
        ],
    });
    std::fs::write(dataset.join("manifest.json"), manifest.to_string()).unwrap();
    let datasets = DatasetConfig {
        folder: Some(folder.path().to_owned()),
        url: Some(PageUrl::read("https://data.example.org/rookery/").unwrap()),
        schedule: Some("every Sunday".to_owned()),
    };
    let access = AccessConfig {
        datasets,
        ..AccessConfig::default()
    };
    let app = TestApp::with(access, params()).await;
    let at = "https://data.example.org/rookery/main-2030-01-01";
    assert_pages_say(
        &app,
        &[
            (
                "/runs/main",
                &["<a href=\"/runs/main/dataset\">dataset</a>"],
            ),
            (
                "/runs/main/dataset",
                &[
                    "Published every Sunday.",
                    "<h2>main-2030-01-01</h2>",
                    "2030-01-01 04:30 UTC",
                    "<dd>CC0-1.0</dd>",
                    "2.5 MB, 1\u{202f}200 games, 96\u{202f}000 positions",
                    &format!("href=\"{at}/games-00001.pgn.zst\""),
                    &format!("href=\"{at}/manifest.json\""),
                    &sha256,
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_run_without_a_dataset_says_how_to_get_its_games() {
    let app = TestApp::new().await;
    let page = app.page("/runs/main/dataset").await;
    for part in [
        "No dataset has been published here yet",
        "/api/v1/games/pgn?run=main",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
