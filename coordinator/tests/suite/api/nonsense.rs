//! Whatever is sent as JSON: it is understood or refused as a problem, and nothing breaks.

use axum::http::{Method, header};
use axum::response::Response;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Number, Value, json};

use crate::support::app::{TestApp, body};

/// Requests of each kind.
const ROUNDS: usize = 150;

fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number)),
        Just(json!(1e308)),
        Just(json!(-1)),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number,
        ".{0,40}".prop_map(Value::String),
        "[a-z0-9-]{1,70}".prop_map(Value::String),
        Just(json!("2026-12-01T00:00:00Z")),
        Just(json!("0.2.0")),
        Just(json!("\u{0}")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec(("[a-z_]{1,12}", inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Replaces one value of an object, at whatever depth, by another.
fn mutated(original: &Value, chance: usize, new: Value) -> Value {
    match original {
        Value::Object(map) if !map.is_empty() => {
            let name = map.keys().nth(chance % map.len()).cloned();
            let mut map: Map<String, Value> = map.clone();
            if let Some(value) = name.and_then(|name| map.get_mut(&name)) {
                let deep = value.is_object() && !chance.is_multiple_of(4);
                *value = if deep {
                    mutated(value, chance / 7, new)
                } else {
                    new
                };
            }
            Value::Object(map)
        }
        _ => new,
    }
}

/// Checks that an answer is a success or a well-formed refusal; its body.
pub(super) async fn assert_answered(answer: Response, asked: &str) -> Vec<u8> {
    let status = answer.status();
    assert!(!status.is_server_error(), "{status} for {asked}");
    let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
    let bytes = body(answer).await;
    if status.is_client_error() {
        assert_eq!(kind.unwrap(), "application/problem+json", "{asked}");
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        assert_ne!(problem["code"], "unknown", "{asked}");
    }
    bytes
}

#[tokio::test]
async fn any_json_is_understood_or_refused() {
    let app = TestApp::with_network().await;
    let params = serde_json::to_value(crate::support::app::params()).unwrap();
    let job = app.lease(&app.alice).await.id;
    let heartbeat = format!("/jobs/{job}/heartbeat");
    let calls = [
        (
            Method::POST,
            "/users",
            "",
            json!({"name": "x", "machine": "y", "invitation": "z"}),
        ),
        (
            Method::POST,
            "/jobs",
            &*app.alice,
            json!({"protocol": 2, "version": "0.1.0", "worker": "w", "backend": "uniform",
                "run": "main", "concurrent_games": 4, "evals_per_second": 1.5}),
        ),
        (
            Method::POST,
            &heartbeat,
            &app.alice,
            json!({"games_finished": 1, "positions": 2, "evals_per_second": 3.0}),
        ),
        (
            Method::POST,
            "/tokens",
            &app.alice,
            json!({"machine": "m", "scopes": ["contribute"]}),
        ),
        (
            Method::POST,
            "/matches",
            &app.operator,
            json!({"run": "main", "candidate": 0, "opponent": 0, "pairs": 1}),
        ),
        (
            Method::POST,
            "/networks/0/rejection",
            &app.operator,
            json!({"reason": "r"}),
        ),
        (
            Method::PATCH,
            "/runs/main",
            &app.operator,
            json!({"description": "d", "status": "open", "params": params,
                "versions": {"minimum": "0.0.1", "recommended": "0.0.2", "cut_off": "2026-12-01T00:00:00Z"}}),
        ),
        (
            Method::PATCH,
            "/users/nobody",
            &app.operator,
            json!({"blocked": false}),
        ),
        (
            Method::PUT,
            "/users/bob/quarantine",
            &app.operator,
            json!({"quarantined": false, "reason": "r"}),
        ),
        (
            Method::POST,
            "/runs/main/metrics",
            &app.trainer,
            json!({"points": [{"step": 1, "values": {"loss": 0.5}}]}),
        ),
    ];
    let mut runner = TestRunner::deterministic();
    let (values, chances) = (any_json(), any::<usize>());
    for (method, path, token, good) in calls {
        for round in 0..ROUNDS {
            let value = values.new_tree(&mut runner).unwrap().current();
            let chance = chances.new_tree(&mut runner).unwrap().current();
            let sent = if round.is_multiple_of(5) {
                value
            } else {
                mutated(&good, chance, value)
            };
            let text = sent.to_string();
            let answer = app.call(method.clone(), path, token, text.clone()).await;
            assert_answered(answer, &format!("{method} {path} {text}")).await;
        }
    }
    app.assert_consistent().await;
}
