//! The API's description of itself.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::app::TestApp;

#[tokio::test]
async fn the_openapi_document_names_every_route_and_problem() {
    let app = TestApp::new().await;
    let document: serde_json::Value = app.get("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/users",
        "/jobs",
        "/jobs/{id}",
        "/jobs/{id}/heartbeat",
        "/chunks",
        "/chunks/{sha256}",
        "/networks",
        "/networks/{name}",
        "/networks/{name}/file",
        "/networks/{name}/puzzles",
        "/networks/{name}/rejection",
        "/runs",
        "/runs/{run}",
        "/runs/{run}/metrics",
        "/matches",
        "/matches/{id}",
        "/games",
        "/games/{id}",
        "/games/{id}/pgn",
        "/games/pgn",
        "/ratings",
        "/contributors",
        "/contributors/{name}",
        "/workers",
        "/puzzles",
        "/events",
    ] {
        assert!(paths.contains_key(&format!("/api/v1{path}")), "{path}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let references = document.to_string();
    for part in references.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            schemas.contains_key(name),
            "{name} is referred to and not described"
        );
    }
    assert_operations_are_well_described(paths);
    let games = &paths["/api/v1/games"]["get"];
    assert_eq!(games["operationId"], "get_games");
    let parameters = games["parameters"].as_array().unwrap();
    let limit = parameters.iter().find(|p| p["name"] == "limit").unwrap();
    assert_eq!(
        (&limit["in"], &limit["required"]),
        (&json!("query"), &json!(false))
    );
    assert_eq!(limit["schema"]["minimum"].as_f64(), Some(1.0));
}

/// Every operation has an identifier of its own, and its parameters in the path are those that the
/// path has.
fn assert_operations_are_well_described(paths: &serde_json::Map<String, serde_json::Value>) {
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        let in_path: BTreeSet<&str> = path
            .split('{')
            .skip(1)
            .filter_map(|part| part.split('}').next())
            .collect();
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is there twice");
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let described: BTreeSet<&str> = parameters
                .filter(|parameter| parameter["in"] == "path")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            assert_eq!(described, in_path, "{method} {path}");
        }
    }
}
