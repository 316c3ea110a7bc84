//! Databases on PostgreSQL that go away, hang, are full or only read, and come back.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use rookery_common::ids::ContentHash;
use rookery_common::params::RunParams;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::Job;
use rookery_coordinator::blobs::Downloads;
use rookery_coordinator::db::Database;
use rookery_coordinator::db::SharedDatabase;
use rookery_coordinator::db::sql::Deadlines;
use rookery_coordinator::db::sql::announcements::Heard;
use rookery_tests::programs::{PATIENCE, eventually};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use crate::support::app::{TestApp, draft, parse, run};
use crate::support::database::TestDatabase;
use crate::support::games::{chunk, selfplay};
use crate::support::s3::S3;
use crate::support::{by, postgres};

/// Does something in a database that no coordinator does.
async fn meddle(database: &TestDatabase, sql: &'static str) {
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Cuts all connections to a database, as a restart of the server does.
async fn cut_connections(database: &TestDatabase) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    meddle(database, cut).await;
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
        assert!(app.app.db.receipt(&hash).await.unwrap().is_some());
    }
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    assert_eq!(app.send(request).await.status(), StatusCode::OK);
    app.assert_consistent().await;
}

/// A way to a database that can be blocked: then nothing passes, and nobody is told.
struct Way {
    url: String,
    open: watch::Sender<bool>,
    /// What is sent on connections of an earlier age is swallowed.
    age: watch::Sender<u32>,
}

impl Way {
    async fn to(database: &TestDatabase) -> Self {
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

/// Says of a database whether new connections only read: `on` or `off`.
async fn set_read_only(database: &TestDatabase, read_only: &str) {
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
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let create = async |name| {
        db.create_run(draft(name, RunParams::default()), by("test"))
            .await
    };
    create("first").await.unwrap();
    set_read_only(&database, "on").await;
    cut_connections(&database).await;
    let refused = create("second").await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert!(db.ping().await.is_err(), "it says that it can be used");
    set_read_only(&database, "off").await;
    db.ping().await.unwrap();
    create("second").await.unwrap();
    db.close().await;
}

/// A full disk, as PostgreSQL tells of it.
#[tokio::test]
async fn a_server_without_room_is_tried_again_and_not_ready_meanwhile() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let fill = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_room BEFORE INSERT ON runs EXECUTE FUNCTION no_room();
        CREATE TRIGGER no_room BEFORE UPDATE ON ledger_id EXECUTE FUNCTION no_room()";
    meddle(&database, fill).await;
    let create = async || {
        db.create_run(draft("first", RunParams::default()), by("test"))
            .await
    };
    let refused = create().await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    assert!(db.ping().await.is_err(), "it says that it can be used");
    meddle(&database, "DROP FUNCTION no_room CASCADE").await;
    db.ping().await.unwrap();
    create().await.unwrap();
    db.close().await;
}

/// Statements of a large ledger's check take longer than those for which somebody waits.
#[tokio::test]
async fn a_check_may_take_longer_than_other_reading() {
    let database = TestDatabase::new().await;
    let long = Duration::from_secs(60);
    let deadlines = Deadlines {
        connect: long,
        read: long,
        statement: Duration::from_millis(250),
        begin: long,
        write: long,
        check: long,
    };
    let db = Database::open_within(database.url(), long, Some(deadlines));
    let db: SharedDatabase = Arc::new(db.await.unwrap());
    let run = draft("main", RunParams::default());
    let name = run.name.clone();
    db.create_run(run, by("test")).await.unwrap();
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let lock = "BEGIN; LOCK TABLE games";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let ended = async {
        // Whoever wants to read games has waited for long by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.close().await.unwrap();
    };
    let (found, ()) = tokio::join!(db.check(&name), ended);
    assert_eq!(found.unwrap().discrepancies, []);
    db.close().await;
}

/// A break of the network of which nobody is told: what comes after it is heard, and a quiet
/// connection is no broken one.
#[tokio::test]
async fn a_connection_that_hears_nothing_more_is_replaced() {
    let database = TestDatabase::new().await;
    let way = Way::to(&database).await;
    let db: SharedDatabase = Arc::new(Database::open(&way.url, PATIENCE).await.unwrap());
    let other = database.open().await;
    let event = |step| Event::Metrics { run: run(), step };
    let mut announcements = db.announcements().await.unwrap().unwrap();
    let silence = Duration::from_millis(20);
    let told = async {
        tokio::time::sleep(10 * silence).await;
        other.announce(&[event(1)]).await.unwrap();
    };
    let (heard, ()) = tokio::join!(announcements.next_within(silence, PATIENCE), told);
    assert_eq!(heard.unwrap(), Heard::Events(vec![event(1)]));
    way.age.send_modify(|age| *age += 1);
    other.announce(&[event(2)]).await.unwrap();
    let heard = announcements.next_within(silence, 10 * silence).await;
    assert_eq!(heard.unwrap(), Heard::Gap);
    other.announce(&[event(3)]).await.unwrap();
    let heard = announcements.next_within(silence, PATIENCE).await;
    assert_eq!(heard.unwrap(), Heard::Events(vec![event(3)]));
}

/// Creates a run in a database whose limits may be too short for a slow machine.
async fn create_surely(db: &SharedDatabase, name: &str) {
    eventually("the run is written and read", async || {
        let draft = draft(name, RunParams::default());
        drop(db.create_run(draft, by("test")).await);
        let runs = db.runs().await.unwrap_or_default();
        let is_there = runs.iter().any(|run| run.name.as_str() == name);
        Ok(is_there.then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_database_that_hangs_is_given_up_and_taken_up_again() {
    let database = TestDatabase::new().await;
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
    let db = Database::open_within(&way.url, PATIENCE, Some(deadlines));
    let db: SharedDatabase = Arc::new(db.await.unwrap());
    create_surely(&db, "first").await;
    way.open.send(false).unwrap();
    assert!(db.runs().await.unwrap_err().is_temporary());
    let second = draft("second", RunParams::default());
    let refused = db.create_run(second, by("test")).await;
    assert!(refused.unwrap_err().is_temporary());
    way.open.send(true).unwrap();
    create_surely(&db, "third").await;
    db.close().await;
}
