//! The store's suite: what every implementation of the trait must do. Each test is a function of
//! a store in the database program of the test binary.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, RunName, Seed, UserId};
use rookery_common::network::NetworkSpec;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Backend, Job, JobRequest, WorkKind};
use rookery_common::protocol::networks::{NetworkName, NetworkStatus};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::runs::{RunPatch, RunStatus};
use rookery_coordinator::store::sql::SqlStore;
use rookery_coordinator::store::{
    Chances, LeaseQuotas, LeaseRequest, NetworkDraft, RunDraft, SharedStore, StoreError,
    TokenDraft, UserDraft,
};
use rookery_coordinator::tokens::{Token, TokenHash};
use sqlx::Connection as _;

mod anchors;

use anchors::{anchors_have_an_elo_or_none, programs_play_with_workers_that_have_them};

use crate::support::app::params;
use crate::support::database::Database;
use crate::support::noon;

macro_rules! suite {
    ($($test:ident),* $(,)?) => {
        mod each {
            $(
                #[tokio::test]
                async fn $test() {
                    let database = super::Database::new().await;
                    super::$test(database.open().await).await;
                }
            )*
        }
    };
}

suite! {
    users_are_found_by_their_tokens,
    what_the_command_line_gives_is_in_the_operator_log,
    names_are_unique,
    runs_are_created_and_changed,
    candidates_wait_for_the_gate,
    anchors_have_an_elo_or_none,
    programs_play_with_workers_that_have_them,
    shares_decide_what_is_handed_out,
    a_failed_operation_leaves_its_neighbours_alone,
    many_callers_at_once_get_jobs_of_their_own,
    so_many_leases_are_held_at_once,
    a_match_is_shared_by_those_at_work,
    a_closed_store_says_so,
}

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_left_alone() {
    let database = Database::new().await;
    drop(database.open().await);
    let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let later = "INSERT INTO _sqlx_migrations \
                 SELECT 9999, description, installed_on, success, checksum, execution_time \
                 FROM _sqlx_migrations LIMIT 1";
    sqlx::raw_sql(later).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let error = SqlStore::open(database.url(), Duration::from_secs(20))
        .await
        .err();
    assert!(matches!(error, Some(StoreError::Newer(9999))), "{error:?}");
}

#[tokio::test]
async fn every_ledger_has_an_identifier_of_its_own_and_keeps_it() {
    let (one, other) = (Database::new().await, Database::new().await);
    let id = one.open().await.ledger_id().await.unwrap();
    assert_eq!(one.open().await.ledger_id().await.unwrap(), id);
    assert_ne!(other.open().await.ledger_id().await.unwrap(), id);
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

fn user_draft(name: &str, token: &Token) -> UserDraft {
    let hash = token.hash();
    let token = TokenDraft {
        hash,
        scopes: vec![Scope::Contribute],
        machine: "m".to_owned(),
    };
    UserDraft {
        name: name.to_owned(),
        token,
    }
}

async fn user(store: &SharedStore, name: &str) -> UserId {
    let token = Token::generate().unwrap();
    store
        .create_user(user_draft(name, &token), name, noon())
        .await
        .unwrap()
}

async fn run(store: &SharedStore, text: &str, params: RunParams) {
    let draft = RunDraft {
        name: name(text),
        description: "d".to_owned(),
        params,
    };
    store.create_run(draft, "test", noon()).await.unwrap();
}

fn network(run: &str, user: UserId, number: u8) -> NetworkDraft {
    NetworkDraft {
        run: name(run),
        hash: ContentHash::of(&[number]),
        bytes: 10,
        spec: NetworkSpec::resnet(1, 8),
        user,
        match_seed: Seed(u64::from(number)),
        anchor: None,
    }
}

fn request(user: UserId, chances: Chances) -> LeaseRequest {
    let request = JobRequest {
        protocol: 1,
        version: "v".to_owned(),
        worker: "w".to_owned(),
        backend: Backend::Uniform,
        run: None,
        concurrent_games: 0,
        evals_per_second: f32::NAN,
        programs: false,
    };
    LeaseRequest {
        user,
        request,
        book: Arc::new(OpeningBook::built_in()),
        chances,
        auditor: rookery_coordinator::trust::verdict::Auditor::Volunteer,
        quotas: LeaseQuotas::default(),
    }
}

fn chances(job: u128, gate: f64) -> Chances {
    Chances {
        job: JobId(uuid::Uuid::from_u128(job)),
        seed: Seed(u64::MAX),
        gate,
        rating: gate,
        puzzle: 0.5,
    }
}

async fn lease(store: &SharedStore, user: UserId, chances: Chances) -> Option<Job> {
    store.lease(request(user, chances), noon()).await.unwrap()
}

async fn users_are_found_by_their_tokens(store: SharedStore) {
    let token = Token::generate().unwrap();
    let id = store
        .create_user(user_draft("Ann", &token), "Ann", noon())
        .await
        .unwrap();
    let found = store.principal(&token.hash()).await.unwrap().unwrap();
    assert_eq!((found.user, found.name.as_str()), (id, "Ann"));
    assert_eq!(found.scopes, [Scope::Contribute]);
    let second = Token::generate().unwrap();
    let scopes = vec![Scope::Train, Scope::Operate];
    let draft = TokenDraft {
        hash: second.hash(),
        scopes: scopes.clone(),
        machine: "n".into(),
    };
    let added = store.add_token("Ann", draft, "Ann", noon());
    added.await.unwrap();
    assert_eq!(
        store
            .principal(&second.hash())
            .await
            .unwrap()
            .unwrap()
            .scopes,
        scopes
    );
    let listed = store.tokens("Ann").await.unwrap();
    assert_eq!(listed.len(), 2);
    store
        .revoke_token(listed[1].id, "test", noon())
        .await
        .unwrap();
    assert!(store.principal(&token.hash()).await.unwrap().is_none());
    assert!(
        store
            .principal(&TokenHash([0; 32]))
            .await
            .unwrap()
            .is_none()
    );
    let listed = store.tokens("Ann").await.unwrap();
    let revoked: Vec<bool> = listed.iter().map(|t| t.revoked_at.is_some()).collect();
    assert_eq!(revoked, [false, true]);
    let unknown = store.revoke_token(999, "test", noon()).await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound(_))),
        "{unknown:?}"
    );
}

async fn what_the_command_line_gives_is_in_the_operator_log(store: SharedStore) {
    const ACTOR: &str = "command line";
    let draft = |scopes: &[Scope]| TokenDraft {
        hash: Token::generate().unwrap().hash(),
        scopes: scopes.to_vec(),
        machine: String::new(),
    };
    let user = UserDraft {
        name: "Ann".to_owned(),
        token: draft(&[Scope::Contribute]),
    };
    store.create_user(user, ACTOR, noon()).await.unwrap();
    let wide = draft(&[Scope::Contribute, Scope::Operate]);
    let added = store.add_token("ann", wide, ACTOR, noon());
    added.await.unwrap();
    let plain = store.add_token("Ann", draft(&[Scope::Contribute]), ACTOR, noon());
    plain.await.unwrap();
    let tokens = store.tokens("Ann").await.unwrap();
    let (plain, wide, first) = (tokens[0].id, tokens[1].id, tokens[2].id);
    let rotated = store.rotate_token(plain, draft(&[Scope::Contribute]), ACTOR, noon());
    let last = rotated.await.unwrap();
    let acts = store.operator_log(None, 10).await.unwrap();
    let shown: Vec<_> = acts
        .iter()
        .filter(|act| act.action != "revoke-token")
        .map(|act| (&*act.actor, &*act.action, &*act.subject, act.detail.clone()))
        .collect();
    let expected = [
        (
            "rotate-token",
            format!("token {last} in place of {plain}: contribute"),
        ),
        ("add-token", format!("token {plain}: contribute")),
        ("add-token", format!("token {wide}: contribute operate")),
        ("create-user", format!("token {first}: contribute")),
    ];
    assert_eq!(
        shown,
        expected.map(|(action, detail)| (ACTOR, action, "Ann", detail))
    );
}

async fn names_are_unique(store: SharedStore) {
    user(&store, "ann").await;
    let token = Token::generate().unwrap();
    let again = store.create_user(user_draft("ANN", &token), "ANN", noon());
    let again = again.await;
    assert!(matches!(again, Err(StoreError::NameTaken(_))), "{again:?}");
    assert!(store.principal(&token.hash()).await.unwrap().is_none());
    run(&store, "a", params()).await;
    let draft = RunDraft {
        name: name("a"),
        description: String::new(),
        params: params(),
    };
    let again = store.create_run(draft, "test", noon()).await;
    assert!(matches!(again, Err(StoreError::NameTaken(_))), "{again:?}");
}

async fn runs_are_created_and_changed(store: SharedStore) {
    run(&store, "a", params()).await;
    let created = store.run(&name("a")).await.unwrap();
    assert_eq!(
        (created.params, created.status, created.best),
        (params(), RunStatus::Open, None)
    );
    assert_eq!(created.created_at.parse::<Timestamp>().unwrap(), noon());
    let patch = RunPatch {
        status: Some(RunStatus::Paused),
        ..RunPatch::default()
    };
    let patched = store
        .patch_run(&name("a"), patch, "test", noon())
        .await
        .unwrap();
    assert_eq!(
        (patched.status, patched.description.as_str()),
        (RunStatus::Paused, "d")
    );
    let unknown = store.run(&name("b")).await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound(_))),
        "{unknown:?}"
    );
    assert_eq!(store.runs().await.unwrap().len(), 1);
}

async fn candidates_wait_for_the_gate(store: SharedStore) {
    let ann = user(&store, "ann").await;
    run(&store, "a", params()).await;
    let submit = async |number| {
        store
            .submit_network(network("a", ann, number), noon())
            .await
            .unwrap()
            .receipt
    };
    assert_eq!(submit(0).await.status, NetworkStatus::Initial);
    let first = submit(1).await;
    assert_eq!(
        (first.status, first.gate.is_some()),
        (NetworkStatus::Candidate, true)
    );
    let second = submit(2).await;
    assert_eq!(
        (second.status, second.gate),
        (NetworkStatus::Candidate, None)
    );
    assert!(submit(1).await.duplicate);
    assert_eq!(store.matches(&name("a"), 10).await.unwrap().len(), 1);
    let best = store.network(&name("a"), NetworkName::Best).await.unwrap();
    assert_eq!(best.number, NetworkNumber(0));
    assert_eq!(store.check(&name("a")).await.unwrap(), []);
}

async fn shares_decide_what_is_handed_out(store: SharedStore) {
    let ann = user(&store, "ann").await;
    let mut half = params();
    half.scheduling.gate_share = 0.5;
    run(&store, "a", half).await;
    assert!(
        lease(&store, ann, chances(1, 0.0)).await.is_none(),
        "no network yet"
    );
    for number in 0..2 {
        store
            .submit_network(network("a", ann, number), noon())
            .await
            .unwrap();
    }
    let kind = async |job, gate| {
        lease(&store, ann, chances(job, gate))
            .await
            .unwrap()
            .work
            .kind()
    };
    assert_eq!(kind(2, 0.49).await, WorkKind::Match);
    assert_eq!(kind(3, 0.51).await, WorkKind::SelfPlay);
    let job = lease(&store, ann, chances(4, 0.9)).await.unwrap();
    assert_eq!(job.seed, Seed(u64::MAX));
    let leased = store.leased_job(job.id).await.unwrap();
    assert_eq!(
        (leased.user, leased.seed, leased.work),
        (ann, job.seed, job.work)
    );
    assert!(
        store.workers(noon(), 9).await.unwrap().last_heard[0].evals_per_second == 0.0,
        "NaN is no speed"
    );
}

async fn so_many_leases_are_held_at_once(store: SharedStore) {
    let ann = user(&store, "ann").await;
    let bob = user(&store, "bob").await;
    run(&store, "a", params()).await;
    let first = network("a", ann, 0);
    store.submit_network(first, noon()).await.unwrap();
    let ask = async |who: UserId, worker: &str, job: u128, now| {
        let mut request = request(who, chances(job, 0.9));
        request.request.worker = worker.to_owned();
        request.quotas = LeaseQuotas {
            contributor: Some(3),
            worker: Some(2),
        };
        match store.lease(request, now).await {
            Ok(job) => Ok(job.unwrap().id),
            Err(StoreError::TooManyLeases { holder, most, wait }) => Err((holder, most, wait)),
            Err(other) => panic!("{other}"),
        }
    };
    let lease = Duration::from_secs(60);
    let given = ask(ann, "w", 1, noon()).await.unwrap();
    ask(ann, "w", 2, noon()).await.unwrap();
    let refused = Err(("worker", 2, lease));
    assert_eq!(ask(ann, "w", 3, noon()).await, refused);
    ask(ann, "v", 4, noon()).await.unwrap();
    let refused = Err(("contributor", 3, lease));
    assert_eq!(ask(ann, "u", 5, noon()).await, refused);
    ask(bob, "w", 6, noon()).await.unwrap();
    let workers = store.workers(noon(), 2).await.unwrap();
    assert_eq!((workers.all, workers.last_heard.len()), (3, 2));
    // What was given back unplayed counts until it would have ended; what has ended does not.
    store.give_back(ann, given, noon()).await.unwrap();
    let refused = Err(("contributor", 3, lease));
    assert_eq!(ask(ann, "w", 7, noon()).await, refused);
    let later = noon() + jiff::SignedDuration::from_secs(61);
    ask(ann, "w", 8, later).await.unwrap();
    ask(ann, "w", 9, later).await.unwrap();
}

async fn a_failed_operation_leaves_its_neighbours_alone(store: SharedStore) {
    user(&store, "taken").await;
    let tokens: Vec<Token> = (0..40).map(|_| Token::generate().unwrap()).collect();
    let creations = tokens.iter().enumerate().map(|(place, token)| {
        let name = if place % 2 == 0 {
            "taken".to_owned()
        } else {
            format!("user{place}")
        };
        let (store, draft) = (store.clone(), user_draft(&name, token));
        tokio::spawn(async move { store.create_user(draft, "test", noon()).await })
    });
    let creations: Vec<_> = creations.collect();
    for (place, creation) in creations.into_iter().enumerate() {
        let created = creation.await.unwrap();
        assert_eq!(created.is_ok(), place % 2 == 1, "{place}: {created:?}");
        let known = store.principal(&tokens[place].hash()).await.unwrap();
        assert_eq!(known.is_some(), place % 2 == 1);
    }
}

/// A run whose second network has a gate of thirty pairs to play.
async fn thirty_pairs(store: &SharedStore, owner: UserId, mut params: RunParams) {
    params.gate = rookery_common::rating::gate::GateRule::Fixed {
        games: 60,
        threshold: 0.5,
    };
    run(store, "a", params).await;
    for number in 0..2 {
        let submitted = store.submit_network(network("a", owner, number), noon());
        submitted.await.unwrap();
    }
}

async fn many_callers_at_once_get_jobs_of_their_own(store: SharedStore) {
    let ann = user(&store, "ann").await;
    thirty_pairs(&store, ann, params()).await;
    let asking: Vec<_> = (0..50)
        .map(|job| {
            let store = store.clone();
            tokio::spawn(async move { lease(&store, ann, chances(job, 0.0)).await.unwrap() })
        })
        .collect();
    let mut pairs = Vec::new();
    for job in asking {
        if let rookery_common::protocol::jobs::Work::Match { pairs: own, .. } =
            job.await.unwrap().work
        {
            pairs.extend(own.into_iter().map(|task| task.pair));
        }
    }
    pairs.sort_unstable();
    assert!(
        pairs.into_iter().eq(0..30),
        "every pair is out once, and no more than are needed"
    );
}

async fn a_match_is_shared_by_those_at_work(store: SharedStore) {
    let ann = user(&store, "ann").await;
    let bob = user(&store, "bob").await;
    let mut wide = params();
    wide.scheduling.gate_share = 0.5;
    thirty_pairs(&store, ann, wide).await;
    let pairs = async |who: UserId, job: u128| {
        let mut request = request(who, chances(job, 0.0));
        request.request.concurrent_games = u32::MAX;
        let job = store.lease(request, noon()).await.unwrap().unwrap();
        let games = if job.work.kind() == WorkKind::Match {
            job.work.games()
        } else {
            0
        };
        games / 2
    };
    let other = lease(&store, bob, chances(1, 0.9)).await.unwrap();
    assert_eq!(other.work.kind(), WorkKind::SelfPlay);
    let anns = [
        pairs(ann, 2).await,
        pairs(ann, 3).await,
        pairs(ann, 4).await,
    ];
    assert_eq!(anns, [8, 7, 0], "half of thirty");
    assert_eq!([pairs(bob, 5).await, pairs(bob, 6).await], [8, 7]);
    // Alone she finishes it.
    let later = noon() + jiff::SignedDuration::from_secs(3600);
    let mut request = request(ann, chances(7, 0.0));
    request.request.concurrent_games = u32::MAX;
    let mut taken = 0;
    for job in 7..11 {
        request.chances = chances(job, 0.0);
        let job = store.lease(request.clone(), later).await.unwrap().unwrap();
        assert_eq!(job.work.kind(), WorkKind::Match);
        taken += job.work.games() / 2;
    }
    assert_eq!(taken, 30);
}

async fn a_closed_store_says_so(store: SharedStore) {
    store.close().await;
    let closed = store
        .create_user(user_draft("x", &Token::generate().unwrap()), "x", noon())
        .await;
    assert!(matches!(closed, Err(StoreError::Closed)), "{closed:?}");
    store.close().await;
}
