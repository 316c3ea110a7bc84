//! Opening a spool: taking up what an earlier start left, and repairing what a crash or a disk has damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rookery_common::file_lock::{FileLock, FileLockError};
use rookery_common::ids::JobId;
use rookery_common::text::quantity;

use super::error::at;
use super::job::{self, SpooledJob};
use super::journal::{self, sync_folder_of};
use super::{Spool, SpoolError, playable};

/// The folder of what could not be read.
pub(super) const DAMAGED: &str = "damaged";

impl Spool {
    /// Opens the spool in this folder, creating it if it is missing, and repairs what a crash left
    /// half done. A job whose files cannot be read or written is left as it is, for the next start.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Locked`] if another worker uses it, [`SpoolError::File`] if the folder cannot be
    /// read or written.
    pub fn open(root: &Path) -> Result<Self, SpoolError> {
        std::fs::create_dir_all(root).map_err(at("create", root))?;
        let lock = lock(root)?;
        let mut spool = Self {
            root: root.to_owned(),
            _lock: lock,
            jobs: BTreeMap::new(),
            owner: None,
            postponed: BTreeSet::new(),
            passed_over: BTreeSet::new(),
            unreadable: Vec::new(),
        };
        for folder in std::fs::read_dir(root).map_err(at("read", root))? {
            let folder = folder.map_err(at("read", root))?;
            let id = folder
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if let Some(id) = id
                && let Err(error) = spool.open_job(id, &folder.path())
            {
                let path = folder.path();
                tracing::error!(
                    "RK-0514: the folder of a job, {}, cannot be read now ({error}); the next start tries again",
                    path.display()
                );
            }
        }
        Ok(spool)
    }

    fn open_job(&mut self, id: JobId, folder: &Path) -> Result<(), SpoolError> {
        if !job::has_journal(folder)? {
            // The job was being begun or removed.
            return std::fs::remove_dir_all(folder).map_err(at("remove", folder));
        }
        match SpooledJob::open(folder.to_owned())? {
            Some(job) => self.take_up(id, folder, job),
            None => self.rescue(id, folder),
        }
    }

    fn take_up(&mut self, id: JobId, folder: &Path, mut job: SpooledJob) -> Result<(), SpoolError> {
        if job.over() {
            return job.remove();
        }
        if job.job().id != id {
            drop(job);
            return self.set_aside(folder);
        }
        if let Err(error) = playable::check_size(job.job()) {
            tracing::error!(
                "RK-0512: job {id} in {} cannot be played ({error}); its finished games are uploaded",
                folder.display()
            );
            job.cut()?;
            job.close()?;
        }
        self.jobs.insert(id, job);
        self.remove_if_over(id)
    }

    /// Takes up what can be read of a damaged job; the journal is kept as it was.
    fn rescue(&mut self, id: JobId, folder: &Path) -> Result<(), SpoolError> {
        let path = job::journal_of(folder);
        let Some(rescued) = journal::rescue(&path)? else {
            self.unreadable.push(id);
            return self.set_aside(folder);
        };
        let aside = self.place_aside(folder)?;
        std::fs::create_dir(&aside).map_err(at("create", &aside))?;
        let copy = job::journal_of(&aside);
        std::fs::copy(&path, &copy).map_err(at("copy", &path))?;
        sync_folder_of(&copy)?;
        let Some(job) = SpooledJob::open_rescued(folder.to_owned(), &rescued)? else {
            self.unreadable.push(id);
            return self.set_aside(folder);
        };
        tracing::warn!(
            "RK-0506: {} was damaged; rescued, to be uploaded: {}; as it was it lies in {}",
            path.display(),
            quantity(job.unsent(), "finished game"),
            aside.display()
        );
        self.take_up(id, folder, job)
    }

    /// A free place for a damaged folder; the same job may have been set aside before.
    fn place_aside(&self, folder: &Path) -> Result<PathBuf, SpoolError> {
        let damaged = self.root.join(DAMAGED);
        std::fs::create_dir_all(&damaged).map_err(at("create", &damaged))?;
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let free = (0..u32::MAX)
            .map(|n| damaged.join(format!("{name}.{n}")))
            .find(|p| !p.exists());
        Ok(free.unwrap_or(damaged))
    }

    fn set_aside(&self, folder: &Path) -> Result<(), SpoolError> {
        let target = self.place_aside(folder)?;
        tracing::warn!(
            "RK-0514: the folder of a job, {}, cannot be read and was moved to {}",
            folder.display(),
            target.display()
        );
        std::fs::rename(folder, &target).map_err(at("move", folder))
    }
}

fn lock(root: &Path) -> Result<FileLock, SpoolError> {
    FileLock::take(&root.join("lock")).map_err(|error| match error {
        FileLockError::Held { .. } => SpoolError::Locked(root.to_owned()),
        FileLockError::Io {
            action,
            path,
            source,
        } => at(action, &path)(source),
    })
}
