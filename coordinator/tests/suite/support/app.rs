//! A coordinator in a temporary folder, asked through its router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::openings::OpeningBook;
use rookery_common::params::{RunParams, SchedulingParams, SelfPlayParams, Temperature};
use rookery_common::protocol::jobs::{ChunkReceipt, HeartbeatReply, Job};
use rookery_common::protocol::networks::NetworkReceipt;
use rookery_common::protocol::people::{OperatorLogPage, Scope};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::server::Presentation;
use rookery_common::protocol::{Problem, ProblemCode};
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::api;
use rookery_coordinator::app::App;
use rookery_coordinator::blobs::{BlobStore, SharedBlobs};
use rookery_coordinator::clock::{Clock as _, ManualClock};
use rookery_coordinator::config::{AccessConfig, Registration};
use rookery_coordinator::db::{Actor, Principal, RunDraft, TokenDraft, UserDraft};
use rookery_coordinator::tokens::Token;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::database::TestDatabase;
use super::files::Files;
use super::games::{EITHER_MATES, chunk};
use super::networks::network_file;
use super::{by, noon};

/// Longest body that a test reads.
const BODY_BYTES: usize = 64 << 20;

/// A coordinator with one run, a contributor, a second one, a trainer and an operator.
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) alice: String,
    pub(crate) bob: String,
    pub(crate) trainer: String,
    pub(crate) operator: String,
    pub(crate) router: Router,
    pub(crate) database: Arc<TestDatabase>,
    pub(crate) files: Option<Files>,
}

/// The parameters of the tests' run: an even chance for everything, short leases, a fixed gate of
/// two pairs that must be won by more than half.
pub(crate) fn params() -> RunParams {
    let mut params = RunParams {
        gate: GateRule::Fixed {
            games: 4,
            threshold: 0.5,
        },
        scheduling: SchedulingParams {
            puzzle_share: 0.0,
            gate_share: 1.0,
            rating_share: 1.0,
            rating_pairs: 0,
            anchor_share: 0.0,
            selfplay_games: 4,
            puzzle_games: 4,
            match_games: 2,
            job_seconds: 300,
            lease_seconds: 60,
        },
        selfplay: SelfPlayParams {
            // Games are made by hand: no move is drawn.
            temperature: Temperature::NONE,
            ..SelfPlayParams::default()
        },
        ..RunParams::default()
    };
    // Searches are made by hand, and prove nothing.
    for search in [
        &mut params.selfplay.search,
        &mut params.puzzle.search,
        &mut params.matches.search,
    ] {
        search.solver = false;
    }
    params
}

impl TestApp {
    /// The coordinator with open registration.
    pub(crate) async fn new() -> Self {
        Self::with(Registration::Open, params()).await
    }

    /// The coordinator with this store of blobs.
    pub(crate) async fn on(blobs: impl BlobStore) -> Self {
        Self::parts(Registration::Open.into(), params(), Arc::new(blobs)).await
    }

    /// The coordinator with these doors and these parameters of the run `main`.
    pub(crate) async fn with(doors: impl Into<AccessConfig>, params: RunParams) -> Self {
        let files = Files::new().await;
        let app = Self::parts(doors.into(), params, files.open()).await;
        Self {
            files: Some(files),
            ..app
        }
    }

    /// The coordinator of a run with a first network.
    pub(crate) async fn with_network() -> Self {
        Self::of_run(1, |_| {}).await
    }

    /// The coordinator of a run whose parameters are changed, and that has so many networks.
    pub(crate) async fn of_run(networks: u64, change: impl FnOnce(&mut RunParams)) -> Self {
        let mut params = params();
        change(&mut params);
        let app = Self::with(Registration::Open, params).await;
        for number in 0..networks {
            app.submit(number).await;
        }
        app
    }

    async fn parts(doors: AccessConfig, params: RunParams, blobs: SharedBlobs) -> Self {
        let database = TestDatabase::new().await;
        let db = database.open().await;
        let clock = Arc::new(ManualClock::new(noon()));
        let book = OpeningBook::from_epd(EITHER_MATES).unwrap();
        let app = App::new(db, blobs, clock.clone(), book, doors);
        let created = app
            .db
            .create_run(draft("main", params), Actor::new("test", clock.now()));
        created.await.unwrap();
        Self {
            alice: user(&app, "alice", &[Scope::Contribute]).await,
            bob: user(&app, "bob", &[Scope::Contribute]).await,
            trainer: user(&app, "trainer", &[Scope::Train]).await,
            operator: user(&app, "operator", &[Scope::Operate]).await,
            router: api::router(app.clone()),
            app,
            clock,
            database: Arc::new(database),
            files: None,
        }
    }

    /// The coordinator's own store of blobs.
    pub(crate) fn files(&self) -> &Files {
        self.files.as_ref().unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request with a token and a body.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: impl Into<Body>,
    ) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.into())
            .unwrap();
        self.send(request).await
    }

    /// Asks for something that anyone may see.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let request = Request::get(format!("/api/v1{path}"))
            .body(Body::empty())
            .unwrap();
        parse(StatusCode::OK, self.send(request).await).await
    }

    /// Asks for something with a token, or with none.
    pub(crate) async fn look(&self, token: &str, path: &str) -> Response {
        self.call(Method::GET, path, token, "").await
    }

    /// Asks for something that this token may see.
    pub(crate) async fn get_as<T: DeserializeOwned>(&self, token: &str, path: &str) -> T {
        parse(StatusCode::OK, self.look(token, path).await).await
    }

    /// The number of the run's best network.
    pub(crate) async fn best(&self) -> Option<u32> {
        let run: RunInfo = self.get("/runs/main").await;
        run.best.map(|network| network.0)
    }

    /// Asks for a page as a browser does.
    pub(crate) async fn open(&self, path: &str) -> Response {
        let request = Request::get(path)
            .header(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")
            .body(Body::empty());
        self.send(request.unwrap()).await
    }

    /// The text of a page that there must be.
    pub(crate) async fn page(&self, path: &str) -> String {
        html(StatusCode::OK, self.open(path).await).await
    }

    /// The text of a page, which has all of these.
    pub(crate) async fn says(&self, path: &str, texts: &[&str]) -> String {
        let page = self.page(path).await;
        for text in texts {
            assert!(page.contains(text), "{path}: {text}: {page}");
        }
        page
    }

    /// Creates one more run of the tests' parameters.
    pub(crate) async fn create_run(&self, name: &str) {
        let draft = draft(name, params());
        let created = self.app.db.create_run(draft, by("test"));
        created.await.unwrap();
    }

    pub(crate) async fn ask(&self, token: &str) -> Response {
        self.ask_with(token, &json!({})).await
    }

    /// Asks for a job, with these fields beside the usual ones or in their place.
    pub(crate) async fn ask_with(&self, token: &str, fields: &Value) -> Response {
        let mut request = json!({
            "protocol": 2, "version": "0.1.0", "worker": "w", "backend": "uniform",
        });
        for (name, value) in fields.as_object().unwrap() {
            request[name] = value.clone();
        }
        self.call(Method::POST, "/jobs", token, request.to_string())
            .await
    }

    /// Takes a job that there must be.
    pub(crate) async fn lease(&self, token: &str) -> Job {
        self.lease_with(token, &json!({})).await
    }

    /// Takes a job that there must be for who asks with these fields.
    pub(crate) async fn lease_with(&self, token: &str, fields: &Value) -> Job {
        parse(StatusCode::OK, self.ask_with(token, fields).await).await
    }

    /// Takes a job that there must be, for a worker that plays programs.
    pub(crate) async fn lease_with_programs(&self, token: &str) -> Job {
        self.lease_with(token, &json!({"programs": true})).await
    }

    /// Sends a heartbeat of a job.
    pub(crate) async fn beat(&self, token: &str, job: &Job) -> Response {
        let path = format!("/jobs/{}/heartbeat", job.id);
        self.call(Method::POST, &path, token, "{}").await
    }

    /// Sends a heartbeat of a job that is still its sender's.
    pub(crate) async fn keep(&self, token: &str, job: &Job) -> HeartbeatReply {
        parse(StatusCode::OK, self.beat(token, job).await).await
    }

    /// Gives back a job that is its sender's.
    pub(crate) async fn give_back(&self, token: &str, job: &Job) {
        let path = format!("/jobs/{}", job.id);
        let answer = self.call(Method::DELETE, &path, token, "").await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    }

    pub(crate) async fn upload(&self, token: &str, chunk: &[u8]) -> Response {
        let path = format!("/chunks/{}", ContentHash::of(chunk));
        self.call(Method::PUT, &path, token, chunk.to_vec()).await
    }

    /// Uploads a chunk that must be accepted.
    pub(crate) async fn accepted(&self, token: &str, chunk: &[u8]) -> ChunkReceipt {
        parse(StatusCode::OK, self.upload(token, chunk).await).await
    }

    /// Hands in games of a job, which must be accepted.
    pub(crate) async fn hand_in(
        &self,
        token: &str,
        job: &Job,
        games: &[GameRecord],
    ) -> ChunkReceipt {
        self.accepted(token, &chunk(job, games)).await
    }

    /// Submits the network of this number, which must be new.
    pub(crate) async fn submit(&self, number: u64) -> NetworkReceipt {
        let file = network_file(number);
        let path = format!("/networks/{}", ContentHash::of(&file));
        let response = self.call(Method::PUT, &path, &self.trainer, file).await;
        parse(StatusCode::CREATED, response).await
    }

    /// Changes the run, which must be possible.
    pub(crate) async fn patch_run(&self, patch: &Value) -> RunInfo {
        let patch = patch.to_string();
        let answer = self.call(Method::PATCH, "/runs/main", &self.operator, patch);
        parse(StatusCode::OK, answer.await).await
    }

    /// Opens a match for the ratings, as the operator.
    pub(crate) async fn open_match(&self, candidate: u32, opponent: u32, pairs: u32) {
        let request = json!({
            "run": "main", "candidate": candidate, "opponent": opponent, "pairs": pairs,
        });
        let (operator, request) = (&self.operator, request.to_string());
        let opened = self.call(Method::POST, "/matches", operator, request).await;
        assert_eq!(opened.status(), StatusCode::CREATED);
    }

    /// Whose token this is.
    pub(crate) async fn holder(&self, token: &str) -> Principal {
        let hash = Token::parse(token).unwrap().hash();
        self.app.db.principal(&hash).await.unwrap().unwrap()
    }

    /// Holds a contributor or a chunk, or clears it, as the operator.
    pub(crate) async fn order(&self, path: &str, quarantined: bool) -> StatusCode {
        let order = json!({"quarantined": quarantined, "reason": "looked at by hand"});
        let path = format!("{path}/quarantine");
        let answer = self.call(Method::PUT, &path, &self.operator, order.to_string());
        answer.await.status()
    }

    /// What operators did, the newest first.
    pub(crate) async fn operator_log(&self) -> OperatorLogPage {
        self.get_as(&self.operator, "/operator-log").await
    }

    /// Checks that every sum of the ledger follows from its facts.
    pub(crate) async fn assert_consistent(&self) {
        let checked = self.app.db.check(&run()).await.unwrap();
        assert_eq!(checked.discrepancies, []);
    }
}

/// A run that says nothing of itself.
pub(crate) fn draft(name: &str, params: RunParams) -> RunDraft {
    RunDraft {
        name: name.parse().unwrap(),
        description: String::new(),
        presentation: Presentation::default(),
        params,
    }
}

pub(crate) fn run() -> RunName {
    "main".parse().unwrap()
}

/// Creates a user with a token of these scopes.
pub(crate) async fn user(app: &App, name: &str, scopes: &[Scope]) -> String {
    let token = Token::generate().unwrap();
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: scopes.to_vec(),
        machine: "test".to_owned(),
    };
    let user = UserDraft {
        name: name.to_owned(),
        token: draft,
        block: None,
    };
    let created = app.db.create_user(user, Actor::new(name, app.clock.now()));
    created.await.unwrap();
    token.reveal().to_owned()
}

pub(crate) async fn body(response: Response) -> Vec<u8> {
    axum::body::to_bytes(response.into_body(), BODY_BYTES)
        .await
        .unwrap()
        .to_vec()
}

/// The text of a page that has this status.
pub(crate) async fn html(status: StatusCode, page: Response) -> String {
    assert_eq!(page.status(), status);
    assert_eq!(
        page.headers()[header::CONTENT_TYPE],
        "text/html; charset=utf-8"
    );
    String::from_utf8(body(page).await).unwrap()
}

/// Reads an answer that must have this status.
pub(crate) async fn parse<T: DeserializeOwned>(status: StatusCode, response: Response) -> T {
    let actual = response.status();
    let bytes = body(response).await;
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(actual, status, "{text}");
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Reads a problem and checks that it is told as problems are.
pub(crate) async fn problem(response: Response) -> Problem {
    let status = response.status();
    let kind = response.headers()[header::CONTENT_TYPE].clone();
    let retry = response.headers().contains_key(header::RETRY_AFTER);
    let id = response.headers()["x-request-id"].clone();
    let problem: Problem = parse(status, response).await;
    assert_eq!(kind, "application/problem+json");
    assert_eq!(status.as_u16(), problem.status);
    assert_eq!(problem.status, problem.code.status());
    let later = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    assert_eq!(retry, later);
    assert_eq!(problem.request_id.as_deref(), id.to_str().ok());
    assert!(!problem.detail.is_empty());
    problem
}

pub(crate) async fn code(response: Response) -> ProblemCode {
    problem(response).await.code
}

pub(crate) async fn value(response: Response) -> Value {
    parse(StatusCode::OK, response).await
}
