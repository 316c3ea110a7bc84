//! Any query string and any body for every call of the API that its document names, by someone
//! whose token may do everything: an answer or a problem, never a failure inside.
//!
//! The first byte chooses the call, a line follows that is the query, the rest is the body.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::API_PREFIX;
use rookery_common::protocol::people::Scope;
use rookery_coordinator::api;
use rookery_coordinator::app::App;
use rookery_coordinator::blobs::FolderStore;
use rookery_coordinator::clock::SystemClock;
use rookery_coordinator::config::Registration;
use rookery_coordinator::store::sql::SqlStore;
use rookery_coordinator::store::{RunDraft, SharedStore, TokenDraft, UserDraft};
use rookery_coordinator::tokens::Token;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// A coordinator with one run and one user, and everything that it may be asked.
struct Site {
    runtime: Runtime,
    router: Router,
    token: String,
    calls: Vec<(Method, String)>,
    _folder: TempDir,
}

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

impl Site {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        let token = Token::generate().expect("random numbers");
        let app = runtime.block_on(async {
            let store = SqlStore::open(&url, Duration::ZERO).await.expect("a ledger");
            let store: SharedStore = Arc::new(store);
            let run = RunDraft {
                name: "main".parse().expect("a name"),
                description: String::new(),
                params: RunParams::default(),
            };
            store.create_run(run, "fuzz", Timestamp::now()).await.expect("a run");
            let token = TokenDraft {
                hash: token.hash(),
                scopes: Scope::ALL.to_vec(),
                machine: String::new(),
            };
            let user = UserDraft { name: "fuzz".to_owned(), token };
            store.create_user(user, Timestamp::now()).await.expect("a user");
            let blobs = FolderStore::open(&folder.path().join("blobs")).expect("a store");
            let book = OpeningBook::built_in();
            App::new(store, Arc::new(blobs), Arc::new(SystemClock), book, Registration::Closed)
        });
        Self {
            runtime,
            router: api::router(app),
            token: token.reveal().to_owned(),
            calls: calls(),
            _folder: folder,
        }
    }

    fn ask(&self, call: u8, query: &str, body: &[u8]) -> Option<StatusCode> {
        let (method, path) = &self.calls[usize::from(call) % self.calls.len()];
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?{query}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Body::from(Bytes::copy_from_slice(body)))
            .ok()?;
        let answer = self.router.clone().oneshot(request);
        let answer = self.runtime.block_on(answer).expect("routers do not fail");
        Some(answer.status())
    }
}

/// Every call, with something that is there where the path asks for it; but not those by which the
/// token would make itself useless.
fn calls() -> Vec<(Method, String)> {
    let document = api::document();
    let mut calls = Vec::new();
    for (path, item) in &document.paths.paths {
        let methods = [
            (Method::GET, item.get.is_some()),
            (Method::PUT, item.put.is_some()),
            (Method::POST, item.post.is_some()),
            (Method::DELETE, item.delete.is_some()),
            (Method::PATCH, item.patch.is_some()),
        ];
        let there = path
            .replace("{run}", "main")
            .replace("/networks/{name}", "/networks/best")
            .replace("{name}", "fuzz")
            .replace("/jobs/{id}", "/jobs/00000000-0000-4000-8000-000000000000")
            .replace("{id}", "1")
            .replace("{sha256}", &"0".repeat(64))
        assert!(path.starts_with(API_PREFIX));
        let suicidal = path.contains("/tokens/") || path.ends_with("/users/{name}");
        for (method, exists) in methods {
            if exists && !suicidal {
                calls.push((method, there.clone()));
            }
        }
    }
    calls
}

fuzz_target!(|input: &[u8]| {
    let Some((call, rest)) = input.split_first() else {
        return;
    };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (query, body) = rest.split_at(end);
    let Ok(query) = std::str::from_utf8(query) else {
        return;
    };
    let status = SITE.ask(*call, query, body.get(1..).unwrap_or_default());
    assert_ne!(status, Some(StatusCode::INTERNAL_SERVER_ERROR));
});
