//! The ledger: SQLite or PostgreSQL, chosen by a URL, by the same statements.
//!
//! ```text
//! leases, heartbeats, chunks ──> collector ─┐
//!              other writes ────────────────┴─> writer: one connection, groups of operations
//!                     reads ──────────────────> pool of readers
//! ```
//!
//! Each model and each use case adds to [`Ledger`] the methods that are its own. Here is what is served in batches.
//!
//! Several coordinators may share one PostgreSQL: their groups follow each other by a lock of the
//! database, so that nothing is decided twice (`sql::dialect`). What was answered was synced to disk.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rookery_common::ids::{JobId, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Job};
use sqlx::Connection as _;

use super::error::{DbError, Result};
use super::models::lease_work::LeaseValues;
use super::models::leases;
use super::sql::announcements::{self, Replica, ReplicaEvents};
use super::sql::collector::Collector;
use super::sql::connect::{self, Connector, Found};
use super::sql::deadlines::Deadlines;
use super::sql::dialect::Dialect;
use super::sql::ledger::{Ledger, Readers, read};
use super::sql::writer::Writer;
use super::types::{ChunkAccepted, ChunkDraft, LeaseRequest, LeasedJob};
use super::use_cases::accept::{self, ChunkUpload};
use super::use_cases::heartbeats::{self, LeaseRenewal};
use super::use_cases::jobs;
use super::use_cases::new_leases::PendingLease;
use crate::telemetry::{self, LedgerUse};

/// The ledger in an SQL database, and the requests to it that are served together.
pub struct Database {
    ledger: Ledger,
    /// Until the database is closed.
    batches: Mutex<Option<Batches>>,
    connector: Connector,
    /// This process among the coordinators of a PostgreSQL.
    replica: Option<Replica>,
}

impl Deref for Database {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

/// Requests that are written together with others of the same kind, and what is read so often that it is
/// read together.
#[derive(Clone)]
struct Batches {
    leased: Collector<JobId, LeasedJob>,
    leases: Collector<PendingLease, Option<Job>>,
    renewals: Collector<LeaseRenewal, HeartbeatReply>,
    chunks: Collector<ChunkUpload, ChunkAccepted>,
}

impl Batches {
    fn start(writer: &Writer, readers: Readers) -> Self {
        let values = Arc::new(LeaseValues::default());
        let shared = values.clone();
        Self {
            leased: Collector::start(move |jobs| {
                let (readers, values) = (readers.clone(), values.clone());
                Box::pin(async move {
                    read!(&readers, "leases", |conn| leases::leased(
                        conn, &jobs, &values
                    ))
                })
            }),
            leases: Collector::to(writer.clone(), move |conn, asked| {
                Box::pin(jobs::lease(conn, asked, shared.clone()))
            }),
            renewals: Collector::to(writer.clone(), |conn, renewals| {
                Box::pin(heartbeats::extend(conn, renewals))
            }),
            chunks: Collector::to(writer.clone(), |conn, sent| {
                Box::pin(accept::accept(conn, sent))
            }),
        }
    }
}

impl Database {
    /// Opens the ledger at `url` (`sqlite:PATH` or `postgres://USER@HOST/DATABASE`), creates an
    /// SQLite file if it is missing, and brings the database to this build's schema. A server
    /// that does not answer yet is waited for as long as `patience` lasts.
    pub async fn open(url: &str, patience: Duration) -> Result<Self> {
        Self::open_within(url, patience, None).await
    }

    /// The same with other limits than those of the database program.
    pub async fn open_within(
        url: &str,
        patience: Duration,
        deadlines: Option<Deadlines>,
    ) -> Result<Self> {
        let mut connector = Connector::new(url)?;
        connector.deadlines = deadlines.unwrap_or(connector.deadlines);
        let connected = connector.connect_patiently(patience).await;
        let mut connection = connected.map_err(|error| connector.explain(error))?;
        connector.dialect.schema().run(&mut connection).await?;
        let readers = Readers {
            pool: connector.readers(),
            deadlines: connector.deadlines,
        };
        let replica = (connector.dialect == Dialect::Postgres).then(|| Replica::new(url));
        let (writer, ended) = Writer::start(connector.clone(), patience).await?;
        // Not before the writer has its own: nobody else may have the ledger for itself in between.
        connection.close().await?;
        let batches = Batches::start(&writer, readers.clone());
        Ok(Self {
            ledger: Ledger::new(readers, writer, ended),
            batches: Mutex::new(Some(batches)),
            connector,
            replica,
        })
    }

    /// What is at `url`; nothing is made or changed. A server that does not answer yet is waited
    /// for as long as `patience` lasts.
    pub async fn find(url: &str, patience: Duration) -> Result<Found> {
        connect::find(url, patience).await
    }

    fn batches(&self) -> Result<Batches> {
        self.batches.lock().clone().ok_or(DbError::Closed)
    }

    /// Hands out a job, or nothing.
    pub async fn lease(&self, request: LeaseRequest, now: Timestamp) -> Result<Option<Job>> {
        let leases = self.batches()?.leases;
        telemetry::ledger(
            LedgerUse::Write,
            "jobs",
            leases.ask(PendingLease { request, now }),
        )
        .await
    }

    /// Extends a lease.
    pub async fn heartbeat(
        &self,
        user: UserId,
        job: JobId,
        heartbeat: Heartbeat,
        now: Timestamp,
    ) -> Result<HeartbeatReply> {
        let renewal = LeaseRenewal {
            user,
            job,
            heartbeat,
            now,
        };
        let renewals = self.batches()?.renewals;
        telemetry::ledger(LedgerUse::Write, "heartbeats", renewals.ask(renewal)).await
    }

    /// What a job allows its chunks to hold.
    pub async fn leased_job(&self, job: JobId) -> Result<LeasedJob> {
        // Timed by the batch, as what is read.
        self.batches()?.leased.ask(job).await
    }

    /// Enters a verified, stored chunk with its games, moves tallies and decides its match.
    pub async fn accept_chunk(&self, chunk: ChunkDraft, now: Timestamp) -> Result<ChunkAccepted> {
        let chunks = self.batches()?.chunks;
        let chunk = Arc::new(chunk);
        telemetry::ledger(
            LedgerUse::Write,
            "chunks",
            chunks.ask(ChunkUpload { chunk, now }),
        )
        .await
    }

    /// Tells the other coordinators on this ledger what happened. Events are for those who watch:
    /// they may be lost when a coordinator or the database ends.
    pub async fn announce(&self, events: &[Event]) -> Result<()> {
        let Some(replica) = &self.replica else {
            return Ok(());
        };
        for payload in replica.payloads(events) {
            read!(self, "announcements", |conn| announcements::notify(
                conn, &payload
            ))?;
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

    /// Writes a copy of the whole ledger to a new file, while it is in use.
    pub async fn back_up(&self, file: &Path) -> Result<()> {
        self.connector.back_up(file).await
    }

    /// Finishes what is queued and closes.
    pub async fn close(&self) {
        // Each has the writer's stub.
        drop(self.batches.lock().take());
        self.ledger.close().await;
    }
}
