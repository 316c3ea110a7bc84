//! The ledger: SQLite or PostgreSQL, chosen by a URL, by the same statements.
//!
//! ```text
//! leases, heartbeats, chunks ──> collector ─┐
//!              other writes ────────────────┴─> writer: one connection, groups of operations
//!                     reads ──────────────────> pool of readers
//! ```
//!
//! Each operation goes through `in_read!` or `in_write!` to the model or the use case that does it.
//!
//! Several coordinators may share one PostgreSQL: their groups follow each other by a lock of the
//! database, so that nothing is decided twice (`sql::dialect`). What was answered was synced to disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{HeartbeatReply, Job};
use sqlx::{AnyPool, Connection as _};

use super::error::{DbError, Result};
use super::models::lease_work::LeaseValues;
use super::models::{identity, leases, users};
use super::principals::Principals;
use super::sql::announcements::{self, Replica, ReplicaEvents};
use super::sql::collector::Collector;
use super::sql::connect::{self, Connector, Found};
use super::sql::deadlines::{Deadlines, within};
use super::sql::dialect::Dialect;
use super::sql::transactions::{in_read, in_write};
use super::sql::writer::{Ended, Writer};
use super::types::{Checked, ChunkAccepted, LeasedJob, LedgerId, Moved};
use super::use_cases::accept::{self, ChunkUpload};
use super::use_cases::heartbeats::{self, LeaseRenewal};
use super::use_cases::new_leases::PendingLease;
use super::use_cases::{check, jobs};

/// The ledger in an SQL database.
pub struct Database {
    pub(super) readers: Readers,
    database: Connector,
    /// This process among the coordinators of a PostgreSQL.
    replica: Option<Replica>,
    writing: Mutex<Option<Writing>>,
    pub(super) principals: Principals,
}

/// What writes until the database is closed.
struct Writing {
    queues: Queues,
    ended: Ended,
}

/// The ways to the writer: straight, or together with others of the same kind; and what is read so often that it is
/// read together.
#[derive(Clone)]
pub(super) struct Queues {
    pub(super) writer: Writer,
    pub(super) leased: Collector<JobId, LeasedJob>,
    pub(super) leases: Collector<PendingLease, Option<Job>>,
    pub(super) renewals: Collector<LeaseRenewal, HeartbeatReply>,
    pub(super) chunks: Collector<ChunkUpload, ChunkAccepted>,
}

/// The connections that read, and how long they may take.
#[derive(Clone)]
pub(super) struct Readers {
    pub(super) pool: AnyPool,
    pub(super) deadlines: Deadlines,
}

impl Queues {
    fn to(writer: Writer, readers: Readers) -> Self {
        let values = Arc::new(LeaseValues::default());
        Self {
            leased: Collector::start(move |jobs| {
                let (readers, values) = (readers.clone(), values.clone());
                Box::pin(async move { in_read!(readers, leases::leased(&jobs, &values)) })
            }),
            leases: Collector::to(writer.clone(), |conn, asked| {
                Box::pin(jobs::lease(conn, asked))
            }),
            renewals: Collector::to(writer.clone(), |conn, renewals| {
                Box::pin(heartbeats::extend(conn, renewals))
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
        let mut database = Connector::new(url)?;
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
        Ok(Self {
            readers,
            replica,
            writing: Mutex::new(Some(Writing { queues, ended })),
            principals: Principals::default(),
            database,
        })
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

    pub(super) fn queues(&self) -> Result<Queues> {
        let queues = self.writing.lock().as_ref().map(|w| w.queues.clone());
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
            in_read!(self.readers, announcements::notify(&payload))?;
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
        in_read!(self.readers, within check, check::all(run))
    }

    /// Writes a copy of the whole ledger to a new file, while it is in use.
    pub async fn back_up(&self, file: &Path) -> Result<()> {
        self.database.back_up(file).await
    }

    /// Which ledger this is.
    pub async fn ledger_id(&self) -> Result<LedgerId> {
        in_read!(self.readers, identity::id())
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
        in_write!(self, identity::note_adoption(location, before, actor, now))
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
        in_write!(self, identity::note_sweep(location, what, actor, now))
    }

    /// Where this ledger goes on, if it was copied into another database.
    pub async fn moved(&self) -> Result<Option<Moved>> {
        in_read!(self.readers, identity::moved())
    }

    /// Takes a ledger that was copied into another database back into service, and notes that in the
    /// operator log; where it had gone on, if it had.
    pub async fn reopen(&self, actor: &str, now: Timestamp) -> Result<Option<Moved>> {
        let actor = actor.to_owned();
        in_write!(self, identity::reopen(actor, now))
    }

    /// Whether the database answers, and whether it can be written to if it could not lately.
    pub async fn ping(&self) -> Result<()> {
        in_read!(self.readers, users::ping())?;
        // Whoever is sent no more requests has none that would show that it can write again.
        if self.queues()?.writer.is_failing() {
            in_write!(self, identity::touch())?;
        }
        Ok(())
    }

    /// Finishes what is queued and closes.
    pub async fn close(&self) {
        let writing = self.writing.lock().take();
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
