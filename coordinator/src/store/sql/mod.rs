//! The ledger in SQL: SQLite or PostgreSQL, chosen by a URL, by the same statements.
//!
//! ```text
//!     leases, heartbeats, chunks ──> collector ─┐
//! dialect ──> connect ──> writer: one connection, groups of operations ──> users, jobs, chunks, …
//!                    └──> pool of readers ──────────────────────────────────────┘
//! ```
//!
//! `rooms` forwards each operation of the store through one of the two `doors` to the module that
//! does it; `copy` takes a whole ledger into another database.
//!
//! Several coordinators may share one PostgreSQL: their groups follow each other by a lock of the
//! database, so that nothing is decided twice (`dialect`). What was answered was synced to disk.

mod accept;
mod activity;
mod anchors;
pub mod announcements;
mod archives;
mod auditing;
mod audits;
mod backlog;
mod beats;
mod check;
mod chunks;
mod collector;
mod connect;
mod contributors;
pub mod copy;
mod deadlines;
mod desk;
mod dialect;
mod doors;
mod draws;
mod drift;
mod entries;
mod evidence;
mod exports;
mod exposure;
mod forgotten;
mod games;
mod holds;
mod identity;
mod invitations;
mod jobs;
mod keys;
mod lease_work;
mod leases;
mod load;
mod matches;
mod metrics;
mod missing;
mod networks;
mod newcomers;
mod operator_log;
mod opinions;
mod outlook;
mod pairs;
mod principals;
mod puzzles;
mod quarantine;
mod quotas;
mod ratings;
mod rejections;
mod rollback;
mod rooms;
mod rows;
mod runs;
mod spans;
mod standings;
mod statement;
mod sums;
mod tokens;
mod users;
mod verdicts;
mod worker_blocks;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{HeartbeatReply, Job};
use sqlx::{AnyPool, Connection as _};

use super::{Checked, ChunkAccepted, LeasedJob, LedgerId, Moved, Result, Store, StoreError};
use accept::Sent;
use announcements::{Announcements, Replica};
use beats::Beat;
use collector::Collector;
use connect::Database;
use deadlines::within;
use dialect::Dialect;
use doors::{read, write};
use jobs::Asked;
use lease_work::LeaseValues;
use principals::Principals;
use writer::{Ended, Writer};

pub use connect::{Found, ledger_file};
pub use deadlines::Deadlines;
pub use dialect::{is_temporary, shown};

/// The ledger in an SQL database.
pub struct SqlStore {
    readers: Readers,
    database: Database,
    /// This process among the coordinators of a PostgreSQL.
    replica: Option<Replica>,
    writing: Mutex<Option<Writing>>,
    principals: Principals,
}

/// What writes until the store is closed.
struct Writing {
    queues: Queues,
    ended: Ended,
}

/// The ways to the writer: straight, or together with others of the same kind; and what is read so often that it is
/// read together.
#[derive(Clone)]
struct Queues {
    writer: Writer,
    leased: Collector<JobId, LeasedJob>,
    leases: Collector<Asked, Option<Job>>,
    beats: Collector<Beat, HeartbeatReply>,
    chunks: Collector<Sent, ChunkAccepted>,
}

/// The connections that read, and how long they may take.
#[derive(Clone)]
struct Readers {
    pool: AnyPool,
    deadlines: Deadlines,
}

impl Queues {
    fn to(writer: Writer, readers: Readers) -> Self {
        let values = Arc::new(LeaseValues::default());
        Self {
            leased: Collector::start(move |jobs| {
                let (readers, values) = (readers.clone(), values.clone());
                Box::pin(async move { read!(readers, leases::leased(&jobs, &values)) })
            }),
            leases: Collector::to(writer.clone(), |conn, asked| {
                Box::pin(jobs::lease(conn, asked))
            }),
            beats: Collector::to(writer.clone(), |conn, beats| {
                Box::pin(beats::extend(conn, beats))
            }),
            chunks: Collector::to(writer.clone(), |conn, sent| {
                Box::pin(accept::accept(conn, sent))
            }),
            writer,
        }
    }
}

impl SqlStore {
    /// Opens the ledger at `url` (`sqlite:PATH` or `postgres://USER@HOST/DATABASE`), creates an
    /// SQLite file if it is missing, and brings the database to this build's schema. A server
    /// that does not answer yet is waited for as long as `patience` lasts.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached or opened, is not a ledger, or was written by a newer build.
    pub async fn open(url: &str, patience: Duration) -> Result<Self> {
        Self::open_within(url, patience, None).await
    }

    /// The same with other limits than those of the database program.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_within(
        url: &str,
        patience: Duration,
        deadlines: Option<Deadlines>,
    ) -> Result<Self> {
        let mut database = Database::new(url)?;
        database.deadlines = deadlines.unwrap_or(database.deadlines);
        let connected = database.connect_patiently(patience).await;
        let mut connection = connected.map_err(|error| database.explain(error))?;
        database.dialect.schema().run(&mut connection).await?;
        let readers = Readers {
            pool: database.readers(),
            deadlines: database.deadlines,
        };
        let replica = (database.dialect == Dialect::Postgres).then(|| Replica::new(url));
        let (writer, ended) = Writer::start(database.clone(), patience).await?;
        // Not before the writer has its own: nobody else may have the ledger for itself in between.
        connection.close().await?;
        let queues = Queues::to(writer, readers.clone());
        let store = Self {
            readers,
            replica,
            writing: Mutex::new(Some(Writing { queues, ended })),
            principals: Principals::default(),
            database,
        };
        if read!(store.readers, users::lack_skeletons())? {
            write!(store, users::fill_skeletons())?;
        }
        Ok(store)
    }

    /// What is at `url`; nothing is made or changed. A server that does not answer yet is waited
    /// for as long as `patience` lasts.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached.
    pub async fn find(url: &str, patience: Duration) -> Result<Found> {
        connect::find(url, patience).await
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> Result<Queues> {
        let queues = self.writing().as_ref().map(|w| w.queues.clone());
        queues.ok_or(StoreError::Closed)
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn announce(&self, events: &[Event]) -> Result<()> {
        let Some(replica) = &self.replica else {
            return Ok(());
        };
        for payload in replica.payloads(events) {
            read!(self.readers, announcements::notify(&payload))?;
        }
        Ok(())
    }

    async fn announcements(&self) -> Result<Option<Announcements>> {
        match &self.replica {
            Some(replica) => replica.listen().await.map(Some),
            None => Ok(None),
        }
    }

    async fn check(&self, run: &RunName) -> Result<Checked> {
        read!(self.readers, within check, check::all(run))
    }

    async fn back_up(&self, file: &Path) -> Result<()> {
        self.database.back_up(file).await
    }

    async fn ledger_id(&self) -> Result<LedgerId> {
        read!(self.readers, identity::id())
    }

    async fn note_adoption(
        &self,
        location: &str,
        before: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (location, before) = (location.to_owned(), before.to_owned());
        let actor = actor.to_owned();
        write!(self, identity::note_adoption(location, before, actor, now))
    }

    async fn note_sweep(
        &self,
        location: &str,
        what: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (location, what) = (location.to_owned(), what.to_owned());
        let actor = actor.to_owned();
        write!(self, identity::note_sweep(location, what, actor, now))
    }

    async fn moved(&self) -> Result<Option<Moved>> {
        read!(self.readers, identity::moved())
    }

    async fn reopen(&self, actor: &str, now: Timestamp) -> Result<Option<Moved>> {
        let actor = actor.to_owned();
        write!(self, identity::reopen(actor, now))
    }

    async fn ping(&self) -> Result<()> {
        read!(self.readers, users::ping())?;
        // Whoever is sent no more requests has none that would show that it can write again.
        if self.queues()?.writer.is_failing() {
            write!(self, identity::touch())?;
        }
        Ok(())
    }

    async fn close(&self) {
        let writing = self.writing().take();
        if let Some(Writing { queues, ended }) = writing {
            drop(queues);
            if let Err(error) = ended.await {
                tracing::error!(%error, "The ledger's writer ended with an error.");
            }
        }
        let limit = self.database.deadlines.begin;
        if let Err(silence) = within(limit, self.readers.pool.close()).await {
            tracing::warn!(%silence, "The database could not be closed in order.");
        }
    }
}
