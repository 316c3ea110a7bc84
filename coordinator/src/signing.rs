//! The secret keys of runs that lie beside the coordinator, and what every job of a run says
//! besides its work: the run's key, its networks' signatures, notices.
//!
//! ```text
//! DATA_DIR/keys/RUN.key ──> signs networks that come without a signature
//! ledger: key and versions of runs (a few seconds old), signatures ──> Job
//! ```

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::jobs::Job;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::signing::{RunKey, Signature, SigningKey};
use tokio::time::Instant;

use crate::db::{Result, SharedDatabase};
use rookery_common::files::{create_folder, folder_of, sync_folder, write_private};

/// How old what is known of runs may be.
const FRESH: Duration = Duration::from_secs(3);
/// Signatures that are remembered.
const SIGNATURES: usize = 10_000;

#[derive(Debug, Clone, Default)]
pub struct KeyFolder(Option<PathBuf>);

impl KeyFolder {
    /// The keys in this folder, which need not be there.
    pub const fn new(folder: PathBuf) -> Self {
        Self(Some(folder))
    }

    pub fn path(&self, run: &RunName) -> Option<PathBuf> {
        self.0
            .as_ref()
            .map(|folder| folder.join(format!("{run}.key")))
    }

    /// The key of a run, if it lies here.
    pub fn load(&self, run: &RunName) -> anyhow::Result<Option<SigningKey>> {
        match self.path(run) {
            Some(path) => read(&path),
            None => Ok(None),
        }
    }
}

/// Reads a secret key, if the file is there.
pub fn read(path: &Path) -> anyhow::Result<Option<SigningKey>> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("RK-0711: cannot read the signing key {shown}"));
        }
    };
    let key = SigningKey::from_text(&text);
    key.map(Some)
        .with_context(|| format!("RK-0712: {shown} is no secret key"))
}

/// Writes a secret key where only this user can read it, whole or not at all, and never over another file. When it
/// returns, no power cut loses the key.
/// A file that is there stays, and is an error.
pub fn write(path: &Path, key: &SigningKey) -> anyhow::Result<()> {
    let attempt = || -> anyhow::Result<()> {
        let folder = folder_of(path);
        create_folder(folder)?;
        let unfinished = path.with_added_extension(std::process::id().to_string());
        write_private(&unfinished, key.reveal()?.as_bytes())?;
        let named = name_first(&unfinished, path);
        // It has its own name now, or the error is returned.
        drop(std::fs::remove_file(&unfinished));
        Ok(named.and_then(|()| sync_folder(folder))?)
    };
    attempt().with_context(|| format!("RK-0241: cannot write the key {}", path.display()))
}

/// Gives a file a name that no file has.
fn name_first(file: &Path, name: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(file, name) {
        // Not every file system has links.
        Err(_) if !name.try_exists()? => std::fs::rename(file, name),
        linked => linked,
    }
}

/// What is known of runs and signatures.
#[derive(Default)]
pub struct JobMetadataCache {
    runs: Mutex<Option<(Instant, Arc<Vec<RunInfo>>)>>,
    signatures: Mutex<HashMap<(RunName, ContentHash, RunKey), Signature>>,
}

impl JobMetadataCache {
    /// All runs, as they were at most a few seconds ago.
    pub async fn runs(&self, db: &SharedDatabase) -> Result<Arc<Vec<RunInfo>>> {
        let known = {
            let runs = self.runs.lock();
            runs.clone()
        };
        if let Some((at, runs)) = known
            && at.elapsed() < FRESH
        {
            return Ok(runs);
        }
        let runs = Arc::new(db.runs().await?);
        let mut known = self.runs.lock();
        *known = Some((Instant::now(), runs.clone()));
        Ok(runs)
    }

    /// Forgets the runs, because one may have changed.
    pub fn invalidate(&self) {
        *self.runs.lock() = None;
    }

    /// Adds the run's key and its networks' signatures to a job.
    pub async fn sign(&self, db: &SharedDatabase, job: &mut Job) -> Result<()> {
        let runs = self.runs(db).await?;
        let run = runs.iter().find(|run| run.name == job.run);
        let Some(key) = run.and_then(|run| run.key.clone()) else {
            return Ok(());
        };
        for network in &mut job.networks {
            network.signature = self.signature(db, &job.run, network.hash, &key).await?;
        }
        job.run_key = Some(key);
        Ok(())
    }

    async fn signature(
        &self,
        db: &SharedDatabase,
        run: &RunName,
        network: ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>> {
        let name = (run.clone(), network, key.clone());
        let known = self.signatures.lock().get(&name).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = db.signature(run, &network, key).await?;
        if let Some(signature) = &found {
            let mut known = self.signatures.lock();
            if known.len() >= SIGNATURES {
                known.clear();
            }
            known.insert(name, signature.clone());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_where_nothing_was_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/keys/main.key");
        let key = SigningKey::generate().unwrap();
        write(&path, &key).unwrap();
        let other = SigningKey::generate().unwrap();
        let error = write(&path, &other).unwrap_err().to_string();
        assert!(error.contains("main.key"), "{error}");
        let kept = read(&path).unwrap().unwrap();
        assert_eq!(kept.public(), key.public());
        // Nothing is left beside it.
        assert_eq!(std::fs::read_dir(folder_of(&path)).unwrap().count(), 1);
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
