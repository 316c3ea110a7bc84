//! What the swarm knows to be true: jobs that it was given, chunks that were acknowledged.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{ChunkReceipt, Job, WorkKind};

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A worker has it still.
    Held,
    /// Its chunk was acknowledged.
    Finished,
    /// Its worker went away without a word.
    Abandoned,
}

/// A job as the swarm remembers it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    /// Whose it is.
    pub(crate) contributor: usize,
    /// What it is for.
    pub(crate) kind: WorkKind,
    pub(crate) fate: Fate,
}

/// The accounts.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) leases: HashMap<JobId, Lease>,
    /// Jobs that were handed out twice.
    pub(crate) leased_twice: u64,
    /// Jobs whose heartbeat was refused although the worker held them.
    pub(crate) leases_lost: HashSet<JobId>,
    pub(crate) acknowledged: HashMap<ContentHash, ChunkReceipt>,
    /// Chunks whose fate the swarm does not know: they were sent, and not answered.
    pub(crate) unanswered: HashSet<ContentHash>,
    /// Acknowledgements of one chunk that do not agree, and of games that were counted before.
    pub(crate) counted_twice: u64,
    /// Honest chunks that were refused.
    pub(crate) refused: HashMap<String, u64>,
    /// Chunks with a lie in them.
    pub(crate) lies: u64,
    /// Those that were acknowledged.
    pub(crate) believed: u64,
    /// Uploads that were broken off in the middle.
    pub(crate) broken_off: u64,
    /// Candidates that were taken.
    pub(crate) submitted: HashSet<ContentHash>,
    /// Times that the coordinator was killed.
    pub(crate) kills: u64,
}

/// The accounts, shared by all tasks.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Accounts>);

impl Book {
    /// Looks into the accounts or writes to them.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Accounts) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Notes a job that was handed out.
    pub(crate) fn leased(&self, job: &Job, contributor: usize) {
        let lease = Lease {
            contributor,
            kind: job.work.kind(),
            fate: Fate::Held,
        };
        self.with(|accounts| {
            if accounts.leases.insert(job.id, lease).is_some() {
                accounts.leased_twice += 1;
            }
        });
    }

    /// Notes what became of a job.
    pub(crate) fn ended(&self, job: JobId, fate: Fate) {
        self.with(|accounts| {
            if let Some(lease) = accounts.leases.get_mut(&job) {
                lease.fate = fate;
            }
        });
    }

    /// Notes an acknowledgement. Two of one chunk must say the same.
    pub(crate) fn acknowledged(&self, receipt: ChunkReceipt) {
        self.with(|accounts| {
            accounts.unanswered.remove(&receipt.hash);
            let before = accounts.acknowledged.get(&receipt.hash);
            let differs = before.is_some_and(|before| {
                before.sequence != receipt.sequence || !(before.duplicate || receipt.duplicate)
            });
            accounts.counted_twice += u64::from(differs);
            let first = before.is_none_or(|before| before.duplicate);
            if first {
                accounts.acknowledged.insert(receipt.hash, receipt);
            }
        });
    }
}
