//! Finished games and chunks on disk, from the moment a game ends until the coordinator has
//! acknowledged it.
//!
//! ```text
//! spool/
//!   lock                    held by the worker that uses the spool
//!   JOB/journal             what happened to the job, entry by entry
//!   JOB/HASH.chunk          cut, to be sent as it is, as often as needed
//!   refused/HASH.chunk, .txt  refused by the coordinator, and why; the newest
//!   damaged/JOB.N/journal   could not be read, or not whole; the readable games go on as a job
//! ```
//!
//! [`Spool`] is the state and the files. An actor owns one on a thread of its own and does what a
//! [`SpoolHandle`] asks, so that game threads never wait for a disk.

mod actor;
mod entry;
pub(crate) mod error;
mod frame;
mod handle;
mod job;
mod journal;
mod opening;
mod owner;
mod playable;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rookery_common::chunk::GameRecord;
use rookery_common::file_lock::FileLock;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{Backend, Job, WorkKind};

pub use actor::{Remains, SpoolEvent};
pub use entry::Verdict;
pub use error::SpoolError;
pub use handle::SpoolHandle;
pub use owner::Owner;
pub use playable::JobError;
pub(crate) use playable::check_size;

use entry::JobStarted;
use error::at;
use job::SpooledJob;

/// A worker's spool.
#[derive(Debug)]
pub struct Spool {
    root: PathBuf,
    /// Held for the life of the spool.
    _lock: FileLock,
    jobs: BTreeMap<JobId, SpooledJob>,
    /// Whose jobs are begun.
    owner: Option<Owner>,
    /// Jobs whose chunks wait for the next start.
    postponed: BTreeSet<JobId>,
    /// Chunks that are to be sent after all others.
    passed_over: BTreeSet<ContentHash>,
    /// Jobs whose journals tell nothing any more.
    unreadable: Vec<JobId>,
}

/// A chunk to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingChunk {
    /// Its job.
    pub job: JobId,
    /// The job's kind.
    pub kind: WorkKind,
    /// Its name.
    pub hash: ContentHash,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A job in the spool that is not closed.
#[derive(Debug, Clone)]
pub struct OpenJob {
    /// The job.
    pub job: Arc<Job>,
    /// Its games that have not ended.
    pub missing: Vec<u32>,
    /// Its games that have ended.
    pub finished: u32,
    /// Where its evaluations were computed.
    pub backend: Backend,
}

/// Most bytes of jobs that are played or wait to be uploaded: a fast GPU plays that much in an hour.
const MOST_BYTES: u64 = 1 << 30;
/// Most of such jobs.
const MOST_JOBS: usize = 10_000;

impl Spool {
    /// Begins jobs as this owner's from now on, and lets go of those of other owners, which stay as
    /// they are on disk. Gives how many of their games wait to be uploaded.
    pub fn work_for(&mut self, owner: Owner) -> BTreeMap<Owner, usize> {
        let mut others = BTreeMap::<Owner, usize>::new();
        self.jobs.retain(|_, job| match job.owner() {
            Some(other) if !owner.can_send_for(other) => {
                *others.entry(other.clone()).or_default() += job.unsent();
                false
            }
            _ => true,
        });
        self.owner = Some(owner);
        others
    }

    /// Jobs that were set aside because nothing can be read of them. Their leases are to be given back.
    pub fn take_unreadable(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.unreadable)
    }

    /// Jobs that are not closed.
    pub fn open_jobs(&self) -> Vec<OpenJob> {
        let open = self.jobs.values().filter(|job| !job.closed());
        open.map(|job| OpenJob {
            job: Arc::clone(job.job()),
            missing: job.missing(),
            finished: job.finished(),
            backend: job.backend(),
        })
        .collect()
    }

    /// Begins a job.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Job`] if it cannot be played or is here already, [`SpoolError::File`] if it
    /// cannot be written.
    pub fn begin(&mut self, job: Job, backend: Backend) -> Result<Arc<Job>, SpoolError> {
        let id = job.id;
        let refuse = |error| SpoolError::Job { id, error };
        playable::check_size(&job).map_err(refuse)?;
        if self.jobs.contains_key(&id) {
            return Err(refuse(JobError::Known));
        }
        let folder = self.root.join(id.to_string());
        // Somebody may have removed it.
        std::fs::create_dir_all(&self.root).map_err(at("create", &self.root))?;
        let taken = JobStarted {
            job,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend,
            owner: self.owner.clone(),
        };
        let spooled = SpooledJob::begin(&folder, taken)?;
        let job = Arc::clone(spooled.job());
        self.jobs.insert(id, spooled);
        Ok(job)
    }

    /// Whether another job may be begun: what waits has a bound, whatever the coordinator does with it.
    pub fn has_room(&self) -> bool {
        self.has_room_within(MOST_JOBS, MOST_BYTES)
    }

    fn has_room_within(&self, jobs: usize, bytes: u64) -> bool {
        let held: u64 = self.jobs.values().map(SpooledJob::bytes).sum();
        self.jobs.len() < jobs && held < bytes
    }

    /// Keeps a finished game durably; one that is there already is dropped.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if it cannot be written; nothing has then changed.
    pub fn record(&mut self, job: JobId, game: &GameRecord) -> Result<(), SpoolError> {
        self.job(job)?.record(game)
    }

    /// Puts finished games of a job into chunks.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if they cannot be written; the games stay where they were.
    pub fn cut(&mut self, job: JobId) -> Result<(), SpoolError> {
        self.job(job)?.cut()
    }

    /// Notes that no more games of a job will be played, and puts the rest into chunks. Gives the
    /// number of the job's games that have not ended.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if that cannot be written.
    pub fn close(&mut self, job: JobId) -> Result<u32, SpoolError> {
        let spooled = self.job(job)?;
        spooled.cut()?;
        spooled.close()?;
        let missing = spooled.missing_count();
        self.remove_if_over(job)?;
        Ok(missing)
    }

    /// The next chunk to be sent. One whose file cannot be read is written again from the journal.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if there are only chunks whose files cannot be read nor written.
    pub fn next_pending(&mut self) -> Result<Option<PendingChunk>, SpoolError> {
        let found = self.first_pending();
        if self.passed_over.is_empty() || matches!(found, Ok(Some(_))) {
            return found;
        }
        self.passed_over.clear();
        self.first_pending()
    }

    /// Has all other chunks sent before this one.
    pub fn defer(&mut self, chunk: ContentHash) {
        self.passed_over.insert(chunk);
    }

    /// The first chunk that was not passed over.
    fn first_pending(&mut self) -> Result<Option<PendingChunk>, SpoolError> {
        let mut trouble = None;
        let mut over = Vec::new();
        for (id, job) in &mut self.jobs {
            if self.postponed.contains(id) {
                continue;
            }
            match job.read_pending(&self.passed_over) {
                Ok(Some((hash, bytes))) => {
                    let (kind, job) = (job.job().work.kind(), *id);
                    return Ok(Some(PendingChunk {
                        job,
                        kind,
                        hash,
                        bytes: bytes.into(),
                    }));
                }
                // What was left of it went with its folder.
                Ok(None) if job.over() => over.push(*id),
                Ok(None) => {}
                Err(error) => trouble = Some(error),
            }
        }
        for job in over {
            self.remove_if_over(job)?;
        }
        trouble.map_or(Ok(None), Err)
    }

    /// Notes that the coordinator has counted a chunk, and forgets it.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if that cannot be written; the chunk will then be sent again.
    pub fn accept(&mut self, job: JobId, hash: ContentHash) -> Result<(), SpoolError> {
        self.job(job)?.settle(hash, Verdict::Accepted)?;
        self.remove_if_over(job)
    }

    /// Puts a chunk aside that the coordinator refused, with the reason beside it. Gives its
    /// file.
    ///
    /// # Errors
    ///
    /// [`SpoolError::File`] if it cannot be moved.
    pub fn refuse(
        &mut self,
        job: JobId,
        hash: ContentHash,
        why: &str,
    ) -> Result<PathBuf, SpoolError> {
        let from = self.job(job)?.chunk_path(hash);
        let bytes = std::fs::read(&from).map_err(at("read", &from))?;
        let target = refused::keep(&self.root, hash, &bytes, why)?;
        self.job(job)?.settle(hash, Verdict::Refused)?;
        self.remove_if_over(job)?;
        Ok(target)
    }

    /// Lets a job's chunks wait for the next start, as the coordinator does not know the job, and
    /// gives the folder where they lie.
    ///
    /// # Errors
    ///
    /// [`SpoolError::NoJob`] if it is not here.
    pub fn postpone(&mut self, job: JobId) -> Result<PathBuf, SpoolError> {
        let folder = self.job(job)?.folder().to_owned();
        self.postponed.insert(job);
        Ok(folder)
    }

    /// Games that the coordinator has not answered for.
    pub fn unsent(&self) -> usize {
        self.jobs.values().map(SpooledJob::unsent).sum()
    }

    /// Games on disk that the coordinator has not answered for. Folders that somebody has removed are
    /// made again with what is in memory.
    pub fn kept(&mut self) -> usize {
        let mut kept = 0;
        for job in self.jobs.values_mut() {
            match job.restore_if_gone() {
                Ok(()) => kept += job.unsent(),
                Err(error) => {
                    let lost = job.unsent();
                    tracing::error!(
                        "RK-0513: finished games are lost: {lost} could not be written: {error}"
                    );
                }
            }
        }
        kept
    }

    /// Games of a job that the coordinator has not answered for.
    pub fn unsent_of(&self, job: JobId) -> usize {
        self.jobs.get(&job).map_or(0, SpooledJob::unsent)
    }

    fn remove_if_over(&mut self, job: JobId) -> Result<(), SpoolError> {
        match self.jobs.entry(job) {
            std::collections::btree_map::Entry::Occupied(job) if job.get().over() => {
                job.remove().remove()
            }
            _ => Ok(()),
        }
    }

    fn job(&mut self, job: JobId) -> Result<&mut SpooledJob, SpoolError> {
        self.jobs.get_mut(&job).ok_or(SpoolError::NoJob(job))
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
