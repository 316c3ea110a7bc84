//! The fixtures of the browser's engine: positions as three small networks see and evaluate them.
//!
//! `coordinator/web` encodes the same positions in TypeScript and evaluates the same ONNX files. Its tests read
//! `coordinator/web/fixtures`, which this test compares with what the worker computes. After a change of the encodings,
//! `ROOKERY_WRITE_FIXTURES=1 cargo test -p rookery-backend-cpu --test browser_fixtures` writes them anew.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::{canonical_moves, parse_uci, uci};
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{NetworkSpec, PolicyHead, PolicySpec, ValueHead};
use rookery_common::params::SearchParams;
use rookery_engine::search::search_position;
use rookery_model::testing::busy_weights;
use rookery_model::{Weights, onnx};
use serde_json::{Value, json};
use shakmaty::CastlingMode;

/// Name, start (`startpos` or a FEN) and moves.
const POSITIONS: [(&str, &str, &str); 16] = [
    ("start", "startpos", ""),
    ("black to move", "startpos", "e2e4"),
    (
        "history",
        "startpos",
        "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6",
    ),
    ("repetition", "startpos", "g1f3 g8f6 f3g1 f6g8 g1f3"),
    ("en passant by White", "startpos", "e2e4 a7a6 e4e5 d7d5"),
    (
        "en passant by Black",
        "startpos",
        "a2a3 d7d5 a3a4 d5d4 e2e4",
    ),
    (
        "castling by White",
        "r3k2r/pppq1ppp/2npbn2/2b1p3/2B1P3/2NPBN2/PPPQ1PPP/R3K2R w KQkq - 8 9",
        "",
    ),
    (
        "castling by Black",
        "r3k2r/pppq1ppp/2npbn2/2b1p3/2B1P3/2NPBN2/PPPQ1PPP/R3K2R w KQkq - 8 9",
        "a2a3",
    ),
    (
        "after castling",
        "r3k2r/pppq1ppp/2npbn2/2b1p3/2B1P3/2NPBN2/PPPQ1PPP/R3K2R w KQkq - 8 9",
        "e1c1 e8g8",
    ),
    (
        "promotion by White",
        "1n2k3/P6P/8/8/8/8/p6p/1N2K3 w - - 0 30",
        "",
    ),
    (
        "promotion by Black",
        "1n2k3/P6P/8/8/8/8/p6p/1N2K3 w - - 0 30",
        "a7a8n",
    ),
    (
        "en passant square of the FEN",
        "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3",
        "",
    ),
    (
        "en passant square without a capture",
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
        "g8f6",
    ),
    ("fifty moves", "8/5k2/8/8/3R4/2K5/8/8 b - - 97 120", "f7e7"),
    (
        "Chess960",
        "bqnrkrnb/pppppppp/8/8/8/8/PPPPPPPP/BQNRKRNB w FDfd - 0 1",
        "g1h3 g8h6",
    ),
    (
        "Chess960, castling",
        "4k3/8/8/8/8/8/8/1R2KR2 w FB - 3 7",
        "",
    ),
];

/// The networks' file names and specifications: each input, each policy, both values.
fn networks() -> [(&'static str, NetworkSpec); 3] {
    let small = |input, encoding, head, value| NetworkSpec {
        input,
        policy: PolicySpec { encoding, head },
        value,
        ..NetworkSpec::resnet(1, 8)
    };
    let wdl = ValueHead::Wdl {
        channels: 4,
        hidden: 16,
    };
    let scalar = ValueHead::Scalar {
        channels: 4,
        hidden: 16,
    };
    let (convolution, dense) = (PolicyHead::Convolution, PolicyHead::Dense { channels: 1 });
    [
        (
            "lc0",
            small(
                InputEncoding::Lc0112,
                PolicyEncoding::Lc01858,
                convolution,
                wdl,
            ),
        ),
        (
            "az",
            small(
                InputEncoding::Az119,
                PolicyEncoding::Az73,
                convolution,
                scalar,
            ),
        ),
        (
            "classic",
            small(
                InputEncoding::Classic19,
                PolicyEncoding::Flat1968,
                dense,
                wdl,
            ),
        ),
    ]
}

/// Random weights in steps of 1/64, so that the files compress well.
fn weights(spec: &NetworkSpec) -> Weights {
    let mut weights = busy_weights(spec, 7);
    for layout in rookery_common::network::tensors(spec) {
        for number in weights.get_mut(&layout.name).unwrap() {
            *number = (*number * 64.0).round() / 64.0;
        }
    }
    weights
}

fn game(start: &str, moves: &str) -> GameHistory {
    let mut game = match start {
        "startpos" => GameHistory::default(),
        fen => GameHistory::from_fen(fen).unwrap(),
    };
    for text in moves.split_whitespace() {
        let m = parse_uci(game.position(), text).unwrap();
        game.push(m);
    }
    game
}

/// What the browser must find for a position; numbers that fill planes stand in `scalars`.
fn expected(spec: &NetworkSpec, evaluator: &mut CpuEvaluator, game: &GameHistory) -> Value {
    let packed = spec.input.encode(game);
    let report = search_position(game, &SearchParams::default(), 0, evaluator, 1).unwrap();
    let planes: Vec<_> = packed
        .binary
        .iter()
        .map(|plane| format!("{plane:016x}"))
        .collect();
    let moves = canonical_moves(game.position());
    let legal: Vec<_> = moves
        .iter()
        .zip(&report.moves)
        .map(|(m, found)| {
            assert_eq!(*m, found.m);
            json!({
                "move": uci(*m, CastlingMode::Chess960),
                "index": spec.policy.encoding.index(*m, game.turn()),
                "prior": found.prior,
            })
        })
        .collect();
    let value = report.value;
    json!({ "planes": planes, "scalars": packed.scalars, "legal": legal, "wdl": [value.win, value.draw, value.loss] })
}

fn fixture(name: &str, spec: &NetworkSpec, weights: &Weights) -> Value {
    let mut evaluator = CpuEvaluator::new(Arc::new(CpuNetwork::new(weights).unwrap()));
    let positions: Vec<_> = POSITIONS
        .iter()
        .map(|(title, start, moves)| {
            let mut answer = expected(spec, &mut evaluator, &game(start, moves));
            answer["name"] = json!(title);
            answer["start"] = json!(start);
            answer["moves"] = json!(moves.split_whitespace().collect::<Vec<_>>());
            answer
        })
        .collect();
    json!({
        "network": format!("{name}.onnx"),
        "input": spec.input.name(),
        "policy": spec.policy.encoding.name(),
        "positions": positions,
    })
}

/// Whether two fixtures are the same but for rounding errors, which depend on the processor.
fn agree(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-5
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| agree(a, b)))
        }
        _ => a == b,
    }
}

/// A model's graph, from its first name on: before it stands the version of the program that wrote the file.
fn graph(model: &[u8]) -> &[u8] {
    let name = b"/input/planes";
    let begins = model
        .windows(name.len())
        .position(|part| part == name)
        .unwrap();
    &model[begins..]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../coordinator/web/fixtures")
}

#[test]
fn the_browsers_fixtures_are_what_the_worker_computes() {
    for (name, spec) in networks() {
        let weights = weights(&spec);
        let model = onnx::to_bytes(&weights).unwrap();
        let fixture = fixture(name, &spec, &weights);
        let (model_path, path) = (
            folder().join(format!("{name}.onnx")),
            folder().join(format!("{name}.json")),
        );
        if std::env::var_os("ROOKERY_WRITE_FIXTURES").is_some() {
            std::fs::write(&model_path, &model).unwrap();
            std::fs::write(&path, format!("{fixture}\n")).unwrap();
        }
        let kept = std::fs::read(&model_path).unwrap();
        assert!(
            graph(&kept) == graph(&model),
            "{name}.onnx is not what is exported today"
        );
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(
            agree(&written, &fixture),
            "{name}.json is not what the worker computes"
        );
    }
}
