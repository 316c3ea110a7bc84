//! Two coordinators on one PostgreSQL and one bucket, and databases that go away.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures_util::future::join_all;
use rookery_common::ids::ContentHash;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkReceipt, Job};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkName;
use rookery_common::protocol::runs::RunPatch;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::app::App;
use rookery_coordinator::blobs::{BlobStore, Downloads};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::config::Registration;
use rookery_coordinator::store::sql::announcements::Heard;
use rookery_coordinator::store::sql::{Deadlines, SqlStore};
use rookery_coordinator::store::{RunDraft, SharedStore, StoreError};
use rookery_coordinator::{api, events};

use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use crate::support::app::{TestApp, body, params, parse, run};
use crate::support::database::Database;
use crate::support::games::Score::Win;
use crate::support::games::{EITHER_MATES, chunk, pair_games, pairs, selfplay};
use crate::support::noon;
use crate::support::postgres;
use crate::support::s3::S3;
use crate::support::selfplay::selfplays;

/// Another coordinator on the same ledger, with this store of blobs.
async fn twin(first: &TestApp, blobs: impl BlobStore) -> TestApp {
    let store = first.database.open().await;
    let book = OpeningBook::from_epd(EITHER_MATES).unwrap();
    let clock = first.clock.clone();
    let app = App::new(
        store,
        Arc::new(blobs),
        clock.clone(),
        book,
        Registration::Open,
    );
    TestApp {
        alice: first.alice.clone(),
        bob: first.bob.clone(),
        trainer: first.trainer.clone(),
        operator: first.operator.clone(),
        router: api::router(app.clone()),
        app,
        clock,
        database: first.database.clone(),
        files: None,
    }
}

/// Does something in a database that no coordinator does.
async fn meddle(database: &Database, sql: &'static str) {
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Cuts all connections to a database, as a restart of the server does.
async fn cut_connections(database: &Database) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    meddle(database, cut).await;
}

/// Two coordinators, the best network and a candidate.
async fn two() -> (S3, [TestApp; 2]) {
    let s3 = S3::start().await;
    let first = TestApp::on(s3.blobs(Downloads::default())).await;
    let second = twin(&first, s3.blobs(Downloads::default())).await;
    (s3, [first, second])
}

#[tokio::test]
async fn no_pair_is_handed_out_twice_and_no_promotion_decided_twice() {
    let (_s3, apps) = two().await;
    let wide = RunParams {
        gate: GateRule::Fixed {
            games: 40,
            threshold: 0.5,
        },
        ..params()
    };
    let patch = RunPatch {
        params: Some(wide),
        ..RunPatch::default()
    };
    let now = apps[0].clock.now();
    let patched = apps[0]
        .app
        .store
        .patch_run(&run(), patch, "test", now)
        .await;
    patched.unwrap();
    apps[0].submit(0).await;
    apps[1].submit(1).await;
    // Both are asked for all the pairs at the same time.
    let jobs: Vec<Job> = join_all((0..20).map(|n| apps[n % 2].lease(&apps[0].alice))).await;
    let ids: HashSet<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), 20);
    let mut taken: Vec<u32> = jobs
        .iter()
        .flat_map(|job| pairs(job).iter().map(|task| task.pair))
        .collect();
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..20), "{taken:?}");
    let mut listeners = apps.each_ref().map(|app| app.app.events.subscribe());
    let chunks: Vec<Vec<u8>> = jobs
        .iter()
        .map(|job| chunk(job, &pair_games(job, 0, [Win, Win])))
        .collect();
    // Every chunk goes to both at the same time.
    let uploads = chunks
        .iter()
        .flat_map(|bytes| apps.iter().map(|app| app.accepted(&app.alice, bytes)));
    let receipts: Vec<ChunkReceipt> = join_all(uploads).await;
    let new = receipts.iter().filter(|receipt| !receipt.duplicate).count();
    assert_eq!(new, 20);
    let sequences: HashSet<i64> = receipts.iter().map(|receipt| receipt.sequence).collect();
    assert_eq!(sequences.len(), 20);
    let matches: Vec<MatchInfo> = apps[1].get("/matches").await;
    assert_eq!(matches[0].status, MatchStatus::Promoted);
    let mut promotions = 0;
    for listener in &mut listeners {
        while let Ok(event) = listener.try_recv() {
            promotions += usize::from(matches!(event, Event::Promotion { .. }));
        }
    }
    assert_eq!(promotions, 1);
    apps[0].assert_consistent().await;
    let best = apps[0].app.store.network(&run(), NetworkName::Best).await;
    assert_eq!(best.unwrap().number.0, 1);
}

#[tokio::test]
async fn what_happens_at_one_is_told_at_the_other_once() {
    let (_s3, apps) = two().await;
    let relays = apps
        .each_ref()
        .map(|app| tokio::spawn(events::relay(app.app.clone())));
    let mut listener = apps[0].app.events.subscribe();
    // The relays listen once a first event has crossed.
    let mut step = 0;
    loop {
        step += 1;
        let run = run();
        apps[1].app.events.publish(Event::Metrics { run, step });
        let heard = tokio::time::timeout(Duration::from_millis(200), listener.recv()).await;
        if heard.is_ok() {
            break;
        }
    }
    let hash = apps[1].submit(0).await.hash;
    let mut told = Vec::new();
    loop {
        let event = listener.recv().await.unwrap();
        let done = matches!(event, Event::Promotion { .. });
        told.push(event);
        if done {
            break;
        }
    }
    let networks = told
        .iter()
        .filter(|event| matches!(event, Event::Network { hash: h, .. } if *h == hash));
    assert_eq!(networks.count(), 1, "{told:?}");
    for app in &apps {
        app.app.stopping.cancel();
    }
    join_all(relays).await.into_iter().for_each(Result::unwrap);
}

#[tokio::test]
async fn an_older_fit_never_replaces_a_newer_one() {
    let (_s3, apps) = two().await;
    apps[0].submit(0).await;
    let now = apps[0].clock.now();
    let (store, other) = (&apps[0].app.store, &apps[1].app.store);
    let (older, _) = store.begin_fit(&run()).await.unwrap();
    let (newer, basis) = other.begin_fit(&run()).await.unwrap();
    assert!(older < newer);
    let fitted = rookery_coordinator::ratings::fit(&basis).unwrap();
    assert!(
        other
            .store_ratings(&run(), newer, fitted.ratings(), now)
            .await
            .unwrap()
    );
    assert!(
        !store
            .store_ratings(&run(), older, Vec::new(), now)
            .await
            .unwrap()
    );
    assert_eq!(store.ratings(&run()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_stored_by_one_is_served_by_the_other() {
    let (_s3, apps) = two().await;
    apps[0].submit(0).await;
    let job = apps[0].lease(&apps[0].alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    let receipt = apps[1].accepted(&apps[1].alice, &bytes).await;
    let path = format!("/chunks/{}", receipt.hash);
    let answer = apps[0]
        .call(
            axum::http::Method::GET,
            &path,
            &apps[0].trainer,
            Body::empty(),
        )
        .await;
    assert_eq!(body(answer).await, bytes);
}

#[tokio::test]
async fn cut_connections_cost_nothing_that_was_acknowledged() {
    let s3 = S3::start().await;
    let app = TestApp::on(s3.blobs(Downloads::default())).await;
    app.submit(0).await;
    let mut acknowledged = Vec::new();
    for round in 0..8 {
        let job = loop {
            let answer = app.ask(&app.alice).await;
            if answer.status() == StatusCode::OK {
                break parse::<Job>(StatusCode::OK, answer).await;
            }
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        };
        let bytes = chunk(&job, &[selfplay(&job, 0, round)]);
        // The connections are cut while the chunk is on its way in.
        let ((), first) = tokio::join!(
            cut_connections(&app.database),
            app.upload(&app.alice, &bytes)
        );
        let mut answer = first;
        while answer.status() != StatusCode::OK {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            answer = app.upload(&app.alice, &bytes).await;
        }
        acknowledged.push(ContentHash::of(&bytes));
    }
    for hash in acknowledged {
        assert!(app.app.store.receipt(&hash).await.unwrap().is_some());
    }
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    assert_eq!(app.send(request).await.status(), StatusCode::OK);
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_explained() {
    let patience = Duration::from_millis(300);
    let absent = SqlStore::open("postgres://127.0.0.1:1/rookery", patience).await;
    let Err(StoreError::Unreachable { advice, .. }) = absent else {
        panic!("there is a server at port 1")
    };
    assert!(advice.contains("host and port"), "{advice}");
    let database = Database::new().await;
    let missing = database.url().replace("///t", "///missing");
    let Err(StoreError::Unreachable { advice, .. }) = SqlStore::open(&missing, patience).await
    else {
        panic!("there is no such database")
    };
    assert!(advice.contains("createdb"), "{advice}");
}

#[tokio::test]
async fn an_empty_database_is_no_empty_ledger() {
    let database = Database::new().await;
    let folder = tempfile::tempdir().unwrap();
    let command = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"))
            .args(["--database", database.url(), "--data-dir"])
            .arg(folder.path())
            .args(words)
            .output()
            .unwrap()
    };
    for words in [&["user", "create", "ann"][..], &["run", "list"]] {
        let refused = command(words);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{words:?} succeeded");
        assert!(error.contains("there is no ledger at postgres:"), "{error}");
        assert!(error.contains("--database"), "{error}");
    }
    for words in [&["run", "create", "main"][..], &["user", "create", "ann"]] {
        let done = command(words);
        assert!(done.status.success(), "{done:?}");
    }
    // Other coordinators do not have the key's file by themselves.
    let done = command(&["run", "key", "create", "main"]);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("DATA_DIR/keys of each"), "{said}");
}

#[tokio::test]
async fn a_ledger_is_backed_up_by_pg_dump_and_restored() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let bytes = selfplays(&app, &app.alice, &[1]).await;
    let dump = postgres::program("pg_dump")
        .args(["--format=custom", "--dbname"])
        .arg(app.database.url())
        .current_dir("/")
        .output()
        .unwrap();
    assert!(dump.status.success(), "{dump:?}");
    let restored = Database::new().await;
    let mut restore = postgres::program("pg_restore")
        .args(["--single-transaction", "--no-owner", "--dbname"])
        .arg(restored.url())
        .current_dir("/")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    restore
        .stdin
        .take()
        .unwrap()
        .write_all(&dump.stdout)
        .unwrap();
    assert!(restore.wait().unwrap().success());
    let copy = restored.open().await;
    assert!(
        copy.receipt(&ContentHash::of(&bytes))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(copy.check(&run()).await.unwrap(), []);
    let original = app.app.store.ledger_id().await.unwrap();
    assert_eq!(copy.ledger_id().await.unwrap(), original);
    // It goes on where the original was: new rows get new numbers.
    let now = app.clock.now();
    let runs = RunDraft {
        name: "second".parse().unwrap(),
        description: String::new(),
        params: params(),
    };
    copy.create_run(runs, "test", now).await.unwrap();
    assert_eq!(copy.runs().await.unwrap().len(), 2);
}

/// A way to a database that can be blocked: then nothing passes, and nobody is told.
struct Way {
    url: String,
    open: watch::Sender<bool>,
    /// What is sent on connections of an earlier age is swallowed.
    age: watch::Sender<u32>,
}

impl Way {
    async fn to(database: &Database) -> Self {
        let (name, socket) = database.url().split_once("?host=").unwrap();
        let name = name.rsplit('/').next().unwrap().to_owned();
        let folder = socket.split('&').next().unwrap();
        let socket = format!("{folder}/.s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, is_open) = watch::channel(true);
        let (age, present) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let born = *present.borrow();
                let age = (born, present.clone());
                tokio::spawn(pass(from_client, to_server, is_open.clone(), age.clone()));
                tokio::spawn(pass(from_server, to_client, is_open.clone(), age));
            }
        });
        let url = format!("postgres://postgres@127.0.0.1:{port}/{name}");
        Self { url, open, age }
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
    (born, present): (u32, watch::Receiver<u32>),
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if born < *present.borrow() {
            continue;
        }
        let passes = open.wait_for(|open| *open).await.is_ok();
        if !passes || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// A run of default parameters.
fn draft(name: &str) -> RunDraft {
    RunDraft {
        name: name.parse().unwrap(),
        description: String::new(),
        params: RunParams::default(),
    }
}

/// Says of a database whether new connections only read: `on` or `off`.
async fn set_read_only(database: &Database, read_only: &str) {
    let path = database.url().strip_prefix("postgres:///").unwrap();
    let name = path.split('?').next().unwrap();
    let alter = format!("ALTER DATABASE {name} SET default_transaction_read_only = {read_only}");
    let mut server = PgConnection::connect(&postgres::url("postgres"))
        .await
        .unwrap();
    let altered = sqlx::raw_sql(sqlx::AssertSqlSafe(alter));
    altered.execute(&mut server).await.unwrap();
    server.close().await.unwrap();
}

/// A failover: for a while the address leads to a server that only reads, and then to one that writes,
/// while the connection to the first one still stands.
#[tokio::test]
async fn a_server_that_only_reads_is_left_for_one_that_writes() {
    let database = Database::new().await;
    let store = database.open().await;
    let create = async |name| store.create_run(draft(name), "test", noon()).await;
    create("first").await.unwrap();
    set_read_only(&database, "on").await;
    cut_connections(&database).await;
    let refused = create("second").await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert!(store.ping().await.is_err(), "it says that it can be used");
    set_read_only(&database, "off").await;
    store.ping().await.unwrap();
    create("second").await.unwrap();
    store.close().await;
}

/// A full disk, as PostgreSQL tells of it.
#[tokio::test]
async fn a_server_without_room_is_tried_again_and_not_ready_meanwhile() {
    let database = Database::new().await;
    let store = database.open().await;
    let fill = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_room BEFORE INSERT ON runs EXECUTE FUNCTION no_room();
        CREATE TRIGGER no_room BEFORE UPDATE ON ledger_id EXECUTE FUNCTION no_room()";
    meddle(&database, fill).await;
    let create = async || store.create_run(draft("first"), "test", noon()).await;
    let refused = create().await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert!(store.ping().await.is_err(), "it says that it can be used");
    meddle(&database, "DROP FUNCTION no_room CASCADE").await;
    store.ping().await.unwrap();
    create().await.unwrap();
    store.close().await;
}

/// Statements of a large ledger's check take longer than those for which somebody waits.
#[tokio::test]
async fn a_check_may_take_longer_than_other_reading() {
    let database = Database::new().await;
    let long = Duration::from_secs(60);
    let deadlines = Deadlines {
        connect: long,
        read: long,
        statement: Duration::from_millis(250),
        begin: long,
        write: long,
        check: long,
    };
    let store = SqlStore::open_within(database.url(), long, Some(deadlines));
    let store: SharedStore = Arc::new(store.await.unwrap());
    let run = draft("main");
    let name = run.name.clone();
    store.create_run(run, "test", noon()).await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let lock = "BEGIN; LOCK TABLE games";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let ended = async {
        // Whoever wants to read games has waited for long by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.close().await.unwrap();
    };
    let (found, ()) = tokio::join!(store.check(&name), ended);
    assert_eq!(found.unwrap(), []);
    store.close().await;
}

/// A break of the network of which nobody is told: what comes after it is heard, and a quiet
/// connection is no broken one.
#[tokio::test]
async fn a_connection_that_hears_nothing_more_is_replaced() {
    let database = Database::new().await;
    let way = Way::to(&database).await;
    let patience = Duration::from_secs(20);
    let store: SharedStore = Arc::new(SqlStore::open(&way.url, patience).await.unwrap());
    let other = database.open().await;
    let event = |step| Event::Metrics { run: run(), step };
    let mut announcements = store.announcements().await.unwrap().unwrap();
    let silence = Duration::from_millis(20);
    let told = async {
        tokio::time::sleep(10 * silence).await;
        other.announce(&[event(1)]).await.unwrap();
    };
    let (heard, ()) = tokio::join!(announcements.next_within(silence, patience), told);
    assert_eq!(heard.unwrap(), Heard::Events(vec![event(1)]));
    way.age.send_modify(|age| *age += 1);
    other.announce(&[event(2)]).await.unwrap();
    let heard = announcements.next_within(silence, 10 * silence).await;
    assert_eq!(heard.unwrap(), Heard::Gap);
    other.announce(&[event(3)]).await.unwrap();
    let heard = announcements.next_within(silence, patience).await;
    assert_eq!(heard.unwrap(), Heard::Events(vec![event(3)]));
}

#[tokio::test]
async fn a_database_that_hangs_is_given_up_and_taken_up_again() {
    let database = Database::new().await;
    let way = Way::to(&database).await;
    let short = Duration::from_secs(1);
    let deadlines = Deadlines {
        connect: short,
        read: short,
        statement: short,
        begin: short,
        write: short,
        check: short,
    };
    let store = SqlStore::open_within(&way.url, 20 * short, Some(deadlines));
    let store: SharedStore = Arc::new(store.await.unwrap());
    let create = async |name| store.create_run(draft(name), "test", noon()).await;
    create("first").await.unwrap();
    assert_eq!(store.runs().await.unwrap().len(), 1);
    way.open.send(false).unwrap();
    assert!(store.runs().await.unwrap_err().is_temporary());
    assert!(create("second").await.unwrap_err().is_temporary());
    way.open.send(true).unwrap();
    create("third").await.unwrap();
    let runs = store.runs().await.unwrap();
    assert_eq!(runs.last().unwrap().name.as_str(), "third");
    store.close().await;
}
