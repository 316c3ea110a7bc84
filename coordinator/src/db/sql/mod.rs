//! The ledger in SQL: SQLite or PostgreSQL, chosen by a URL, by the same statements.
//!
//! ```text
//!     leases, heartbeats, chunks ──> collector ─┐
//! dialect ──> connect ──> writer: one connection, groups of operations ──> users, jobs, chunks, …
//!                    └──> pool of readers ──────────────────────────────────────┘
//! ```
//!
//! [`Database`] takes each operation through `transactions::read` or `write` to the module that does it; `copy`
//! takes a whole ledger into another database.
//!
//! Several coordinators may share one PostgreSQL: their groups follow each other by a lock of the
//! database, so that nothing is decided twice (`dialect`). What was answered was synced to disk.

mod accept;
mod accepted_chunk;
mod activity;
mod anchors;
pub mod announcements;
mod archives;
mod audit_jobs;
mod audit_recent;
mod audit_results;
mod audit_votes;
mod auditing;
mod audits;
mod backlog;
mod check;
mod chunks;
mod collector;
mod connect;
mod contributors;
pub mod copy;
mod credits;
mod deadlines;
mod dialect;
mod draws;
mod drift;
mod exclusions;
mod exports;
mod exposure;
mod games;
mod heartbeats;
mod identity;
mod invitations;
mod jobs;
mod keys;
mod lease_batch;
mod lease_work;
mod leases;
mod load;
mod match_results;
mod matches;
mod metrics;
mod networks;
mod new_leases;
mod newcomers;
mod operator_log;
mod pairs;
mod principals;
mod puzzles;
mod quarantine;
mod quotas;
mod ratings;
mod registration;
mod rejections;
mod retention;
mod rollback;
mod rooms;
mod rows;
mod runs;
mod scheduling_stats;
mod spans;
mod standings;
mod statement;
mod states;
mod submissions;
mod sums;
mod tallies;
mod tokens;
mod transactions;
mod unreturned_games;
mod users;
mod worker_blocks;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{HeartbeatReply, Job};
use sqlx::{AnyPool, Connection as _};

use super::{Checked, ChunkAccepted, DbError, LeasedJob, LedgerId, Moved, Result};
use accept::ChunkUpload;
use announcements::{Replica, ReplicaEvents};
use collector::Collector;
use connect::Backend;
use deadlines::within;
use dialect::Dialect;
use heartbeats::LeaseRenewal;
use lease_work::LeaseValues;
use new_leases::PendingLease;
use principals::Principals;
use transactions::{read, write};
use writer::{Ended, Writer};

pub use connect::{Found, ledger_file};
pub use deadlines::Deadlines;
pub use dialect::{is_temporary, shown};

/// The ledger in an SQL database.
pub struct Database {
    readers: Readers,
    database: Backend,
    /// This process among the coordinators of a PostgreSQL.
    replica: Option<Replica>,
    writing: Mutex<Option<Writing>>,
    principals: Principals,
}

/// What writes until the database is closed.
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
    leases: Collector<PendingLease, Option<Job>>,
    beats: Collector<LeaseRenewal, HeartbeatReply>,
    chunks: Collector<ChunkUpload, ChunkAccepted>,
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
                Box::pin(heartbeats::extend(conn, beats))
            }),
            chunks: Collector::to(writer.clone(), |conn, sent| {
                Box::pin(accept::accept(conn, sent))
            }),
            writer,
        }
    }
}

impl Database {
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
        let mut database = Backend::new(url)?;
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
        let db = Self {
            readers,
            replica,
            writing: Mutex::new(Some(Writing { queues, ended })),
            principals: Principals::default(),
            database,
        };
        if read!(db.readers, users::lack_skeletons())? {
            write!(db, users::fill_skeletons())?;
        }
        Ok(db)
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
        queues.ok_or(DbError::Closed)
    }
}

impl Database {
    /// Tells the other coordinators on this ledger what happened. Events are for those who watch:
    /// they may be lost when a coordinator or the database ends.
    pub async fn announce(&self, events: &[Event]) -> Result<()> {
        let Some(replica) = &self.replica else {
            return Ok(());
        };
        for payload in replica.payloads(events) {
            read!(self.readers, announcements::notify(&payload))?;
        }
        Ok(())
    }

    /// Begins to listen to the other coordinators; `None` where there can be none.
    pub async fn announcements(&self) -> Result<Option<ReplicaEvents>> {
        match &self.replica {
            Some(replica) => replica.listen().await.map(Some),
            None => Ok(None),
        }
    }

    /// Recomputes a run's sums from its facts and tells where they differ; all but ratings, which are
    /// [fitted](crate::ratings::refit).
    pub async fn check(&self, run: &RunName) -> Result<Checked> {
        read!(self.readers, within check, check::all(run))
    }

    /// Writes a copy of the whole ledger to a new file, while it is in use.
    pub async fn back_up(&self, file: &Path) -> Result<()> {
        self.database.back_up(file).await
    }

    /// Which ledger this is.
    pub async fn ledger_id(&self) -> Result<LedgerId> {
        read!(self.readers, identity::id())
    }

    /// Notes in the operator log that the actor gave this ledger the store of blobs at `location`;
    /// `before` tells whose it was.
    pub async fn note_adoption(
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

    /// Notes in the operator log that the actor removes from the store of blobs at `location` what
    /// nothing needs: `what`.
    pub async fn note_sweep(
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

    /// Where this ledger goes on, if it was copied into another database.
    pub async fn moved(&self) -> Result<Option<Moved>> {
        read!(self.readers, identity::moved())
    }

    /// Takes a ledger that was copied into another database back into service, and notes that in the
    /// operator log; where it had gone on, if it had.
    pub async fn reopen(&self, actor: &str, now: Timestamp) -> Result<Option<Moved>> {
        let actor = actor.to_owned();
        write!(self, identity::reopen(actor, now))
    }

    /// Whether the database answers, and whether it can be written to if it could not lately.
    pub async fn ping(&self) -> Result<()> {
        read!(self.readers, users::ping())?;
        // Whoever is sent no more requests has none that would show that it can write again.
        if self.queues()?.writer.is_failing() {
            write!(self, identity::touch())?;
        }
        Ok(())
    }

    /// Finishes what is queued and closes.
    pub async fn close(&self) {
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
