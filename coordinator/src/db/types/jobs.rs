//! Leases: what is asked, and who works.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use rookery_common::ids::{JobId, RunName, Seed, UserId};
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::jobs::{JobRequest, Work};

use crate::db::types::AuditedChunk;
use crate::trust::verdict::Auditor;

/// A request for a job, with the random numbers that decide it.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    /// Who asks.
    pub user: UserId,
    /// What the worker said.
    pub request: JobRequest,
    /// Runs that do not serve this worker, for example because it is too old for them.
    pub refused_by: BTreeSet<RunName>,
    /// The openings of runs that have no book of their own: of matches, and of self-play games that begin in a book.
    pub book: Arc<OpeningBook>,
    pub chances: Chances,
    /// Whose word the asker's audits would be.
    pub auditor: Auditor,
    /// How many leases may be out at once.
    pub quotas: LeaseQuotas,
    /// The block of addresses that the request comes from, if it says something of who asks.
    pub block: Option<i64>,
    /// Workers that were heard lately, of all runs: a large fleet is told of a new network by and by.
    pub fleet: u64,
}

/// How many leases may be out at once; `None` is as many as one likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseQuotas {
    /// Of one contributor.
    pub contributor: Option<u32>,
    /// Of one worker of a contributor, by the name that it gives itself.
    pub worker: Option<u32>,
}

/// The random numbers of one lease, drawn by the caller so that tests can choose them.
#[derive(Debug, Clone, Copy)]
pub struct Chances {
    pub job: JobId,
    pub seed: Seed,
    /// From 0 to 1: below the gate share, an open gate match is served.
    pub gate: f64,
    /// From 0 to 1: below the rating share, an open rating match is served.
    pub rating: f64,
    /// From 0 to 1: below the puzzles' share of jobs, puzzles are handed out.
    pub puzzle: f64,
}

/// What a chunk's job allows.
#[derive(Debug, Clone)]
pub struct LeasedJob {
    /// Who leased it.
    pub user: UserId,
    pub run: RunName,
    pub work: Work,
    pub seed: Seed,
    /// Its games that are in the ledger.
    pub games_counted: u32,
    /// Of an audit: the chunk that it is about.
    pub audited: Option<AuditedChunk>,
}

/// How long after its last sign of life a worker counts as active.
pub const ACTIVE: SignedDuration = SignedDuration::from_mins(10);

/// How much is going on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulse {
    /// Jobs that are out and not overdue.
    pub open_leases: u64,
    /// Workers that were heard in the last ten minutes, by backend.
    pub workers: Vec<(String, u64)>,
    /// Audits that nobody has decided yet.
    pub open_audits: u64,
    /// Contributors whose work is held back.
    pub quarantined: u64,
    /// The size of the ledger's database.
    pub ledger_bytes: u64,
    /// Pairs that open gate and rating matches still want, at most.
    pub pairs_wanted: u64,
}

/// The place of a job among those of which nothing came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCursor {
    /// When its lease ended, in milliseconds since 1970.
    pub ended: i64,
    pub id: Vec<u8>,
}

/// What became of some jobs of which nothing came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobsForgotten {
    pub removed: u64,
    /// The last one that was looked at, if there may be more.
    pub last: Option<JobCursor>,
}

/// Rows that were removed, as nothing refers to them any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs of which nothing came.
    pub jobs: u64,
    /// Workers that were not heard for long.
    pub workers: u64,
}
