//! What the worker plays in positions of real games, for the browser's search to be compared with.
//!
//! `coordinator/web` searches the positions of `fixtures/best-moves.json` with the network that comes with Rookery, whose
//! ONNX file this test writes, and must play the same move in nearly all of them. After a change of the network or of the search,
//! `ROOKERY_WRITE_FIXTURES=1 cargo test -p rookery-backend-cpu --test browser_searches` writes the moves anew.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::{parse_uci, uci};
use rookery_common::params::SearchParams;
use rookery_engine::search::search_positions;
use rookery_model::{included, onnx};
use serde_json::{Value, json};
use shakmaty::CastlingMode;

const VISITS: u32 = 100;
const POSITIONS: usize = 100;
/// Of them, how many may have another best move on another processor, which rounds otherwise.
const NEARLY_EQUAL: usize = 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../coordinator/web")
}

fn game(position: &Value) -> GameHistory {
    let mut game = GameHistory::default();
    for text in position["moves"].as_array().unwrap() {
        let m = parse_uci(game.position(), text.as_str().unwrap()).unwrap();
        game.push(m);
    }
    game
}

/// The best moves of positions, castling being king takes rook.
fn best_moves(positions: &[Value]) -> Vec<String> {
    let network = CpuNetwork::new(&included::weights().unwrap()).unwrap();
    let mut evaluator = CpuEvaluator::new(Arc::new(network));
    let games: Vec<_> = positions.iter().map(game).collect();
    let games: Vec<_> = games.iter().collect();
    let params = SearchParams::for_strength();
    let reports = search_positions(&games, &params, VISITS, &mut evaluator).unwrap();
    let best = |m| uci(m, CastlingMode::Chess960);
    reports
        .iter()
        .map(|report| best(report.best.unwrap()))
        .collect()
}

#[test]
fn the_browsers_network_is_exported_for_its_tests() {
    let model = onnx::to_bytes(&included::weights().unwrap()).unwrap();
    let path = folder().join("generated/small.onnx");
    if std::fs::read(&path).ok().as_ref() != Some(&model) {
        std::fs::create_dir_all(folder().join("generated")).unwrap();
        std::fs::write(&path, model).unwrap();
    }
}

#[test]
fn the_browsers_best_moves_are_the_workers() {
    let path = folder().join("fixtures/best-moves.json");
    let mut fixture: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(fixture["visits"], json!(VISITS));
    let positions = fixture["positions"].as_array_mut().unwrap();
    assert_eq!(positions.len(), POSITIONS);
    let best = best_moves(positions);
    let differ = positions
        .iter()
        .zip(&best)
        .filter(|(kept, best)| kept["best"] != **best);
    let differ = differ.count();
    if std::env::var_os("ROOKERY_WRITE_FIXTURES").is_some() {
        for (position, best) in positions.iter_mut().zip(best) {
            position["best"] = json!(best);
        }
        std::fs::write(&path, format!("{fixture}\n")).unwrap();
        return;
    }
    assert!(
        differ <= NEARLY_EQUAL,
        "{differ} of {POSITIONS} best moves are not the worker's"
    );
}
