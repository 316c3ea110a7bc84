//! Network files: fetched once, checked, kept.
//!
//! ```text
//! HASH.part --rest arrives--> size, SHA-256, verify, trial --> HASH.safetensors (rename)
//! ```
//!
//! [`fetch`] brings the bytes, [`trial`] computes one position with them, [`NetworkCache`] owns the folder. A
//! program in place of a network needs no trial: it comes as a file that names it. A file's name is its content's
//! SHA-256, so that it is never changed, only removed. Where the run has a key, the file counts only with a
//! signature by it.

mod download;
mod fetch;
mod trial;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rookery_common::files;
use rookery_common::ids::ContentHash;
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_common::network::{NetworkFileError, Program, verify};
use rookery_common::protocol::jobs::NetworkRef;
use rookery_common::signing::{RunKey, Signature, SigningError};
use tokio::sync::Mutex;

pub use download::Download;
pub use trial::{Trial, TrialError};

use crate::api::{ApiError, Client};
use crate::spool::error::advice;
use crate::trust::TrustError;

/// Files that are kept besides those in use.
const KEPT: usize = 8;

/// A network that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The download failed; what has arrived is kept.
    #[error("RK-0607: a network could not be fetched: {0}")]
    Api(#[from] ApiError),
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}{}", advice(source), path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The connection ended early; what has arrived is kept.
    #[error(
        "RK-0607: network {hash} could not be fetched: the download ended after {have} of {bytes} bytes"
    )]
    Short {
        /// The network.
        hash: ContentHash,
        /// Bytes that arrived.
        have: u64,
        /// Bytes that were promised.
        bytes: u64,
    },
    /// More arrived than was promised.
    #[error(
        "RK-0607: network {hash} could not be fetched: it is longer than the {bytes} bytes that the job names"
    )]
    Long {
        /// The network.
        hash: ContentHash,
        /// Bytes that were promised.
        bytes: u64,
    },
    /// The promised size is not allowed.
    #[error(
        "RK-0607: network {hash} could not be fetched: the job says {bytes} bytes, allowed are 1 to {MAX_FILE_BYTES}"
    )]
    Size {
        /// The network.
        hash: ContentHash,
        /// Bytes that were promised.
        bytes: u64,
    },
    /// Other bytes arrived than were asked for.
    #[error("RK-0412: what arrived for network {expected} has the SHA-256 {found}")]
    Hash {
        /// What was asked for.
        expected: ContentHash,
        /// What arrived.
        found: ContentHash,
    },
    /// The file is not a network.
    #[error("RK-0604: not a usable network, {hash}: {error}")]
    Unusable {
        /// The network.
        hash: ContentHash,
        /// What is wrong.
        error: NetworkFileError,
    },
    /// The run has a key, and the network comes without a signature, or with one that is not by
    /// this key for these bytes.
    #[error(
        "RK-0411: network {hash} is not signed by its run's key ({error}), and is not used: another server may answer \
         in the coordinator's place. Ask the run's operator"
    )]
    Unsigned {
        /// The network.
        hash: ContentHash,
        /// What is wrong.
        error: SigningError,
    },
    /// The run's key is not the one that is trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The network does not compute on this machine.
    #[error("RK-0306: network {hash} cannot be computed here: {error}")]
    Trial {
        /// The network.
        hash: ContentHash,
        /// What is wrong.
        error: TrialError,
    },
}

impl NetworkError {
    /// Whether something is wrong that only the user can put right: no other job will do better.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Trust(error) => !error.may_pass(),
            Self::Unsigned { .. } => true,
            _ => false,
        }
    }

    /// What became of the download's call, if that is what failed.
    pub const fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Whether trying the download again can help.
    pub fn may_pass(&self) -> bool {
        use rookery_common::protocol::problem::Remedy;
        match self {
            Self::Api(error) => error.remedy() == Remedy::Retry,
            Self::Short { .. } | Self::Hash { .. } | Self::Long { .. } => true,
            Self::Trust(_)
            | Self::Unsigned { .. }
            | Self::File { .. }
            | Self::Size { .. }
            | Self::Unusable { .. }
            | Self::Trial { .. } => false,
        }
    }
}

/// A network that was tried and can be played with, or a program in the place of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFile {
    /// Its name.
    pub hash: ContentHash,
    /// Its file.
    pub path: PathBuf,
    /// What the file holds.
    pub contents: Contents,
}

/// What plays where a job names a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// A network, which is evaluated.
    Network,
    /// A program, which is not.
    Program(Program),
}

/// A file that was checked since the program started.
#[derive(Debug, Clone)]
struct Checked {
    /// The key that its signature was checked with.
    by: Option<RunKey>,
    contents: Contents,
}

/// What shows that a file is one of the run's networks.
#[derive(Debug, Clone)]
struct Proof(Option<(RunKey, Signature)>);

impl Proof {
    /// The proof that a network must bring where its run has a key.
    fn of(network: &NetworkRef, key: Option<&RunKey>) -> Result<Self, NetworkError> {
        match (key, &network.signature) {
            (None, _) => Ok(Self(None)),
            (Some(key), Some(signature)) => Ok(Self(Some((key.clone(), signature.clone())))),
            (Some(_), None) => Err(NetworkError::Unsigned {
                hash: network.hash,
                error: SigningError::Form,
            }),
        }
    }

    fn check(&self, bytes: &[u8]) -> Result<(), SigningError> {
        match &self.0 {
            Some((key, signature)) => key.verify(bytes, signature),
            None => Ok(()),
        }
    }
}

/// The folder of network files.
#[derive(Debug)]
pub struct NetworkCache {
    folder: PathBuf,
    trial: Trial,
    /// Files that were checked since the program started. Held while one is fetched, so that none is
    /// fetched twice at once.
    checked: Mutex<HashMap<ContentHash, Checked>>,
    progress: download::Progress,
}

impl NetworkCache {
    /// A cache in this folder, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// [`NetworkError::File`] if it cannot be.
    pub fn open(folder: PathBuf, trial: Trial) -> Result<Arc<Self>, NetworkError> {
        std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
        Ok(Arc::new(Self {
            folder,
            trial,
            checked: Mutex::default(),
            progress: download::Progress::default(),
        }))
    }

    /// The network's file, fetched if it is not here, and signed by `key` if there is one. One
    /// attempt; what has arrived is kept for the next.
    ///
    /// # Errors
    ///
    /// [`NetworkError`] saying what is wrong with the download or the network.
    pub async fn get(
        self: &Arc<Self>,
        client: &Client,
        network: &NetworkRef,
        key: Option<&RunKey>,
    ) -> Result<NetworkFile, NetworkError> {
        let hash = network.hash;
        let path = self.folder.join(format!("{hash}.safetensors"));
        let mut checked = self.checked.lock().await;
        let proof = Proof::of(network, key)?;
        let known = checked
            .get(&hash)
            .filter(|known| (key.is_none() || known.by.as_ref() == key) && path.is_file());
        if let Some(Checked { contents, .. }) = known {
            let contents = *contents;
            return Ok(NetworkFile {
                hash,
                path,
                contents,
            });
        }
        let kept = match path.is_file() {
            true => self.recheck(hash, &path, proof.clone()).await?,
            false => None,
        };
        let contents = match kept {
            Some(contents) => contents,
            None => {
                // Somebody may have removed it.
                std::fs::create_dir_all(&self.folder).map_err(at("create", &self.folder))?;
                let partial = self.folder.join(format!("{hash}.part"));
                fetch::fetch(client, network, &partial, &self.progress).await?;
                self.admit(&partial, hash, &path, proof).await?
            }
        };
        let by = key.cloned();
        checked.insert(hash, Checked { by, contents });
        Ok(NetworkFile {
            hash,
            path,
            contents,
        })
    }

    /// The download that is under way, if there is one.
    pub fn download(&self) -> Option<Download> {
        self.progress.get()
    }

    /// What a file from an earlier start holds; if it is no longer what its name says, it is removed.
    async fn recheck(
        self: &Arc<Self>,
        hash: ContentHash,
        file: &Path,
        proof: Proof,
    ) -> Result<Option<Contents>, NetworkError> {
        let (cache, path) = (Arc::clone(self), file.to_owned());
        match blocking(move || cache.check(&path, hash, &proof)).await {
            Ok(contents) => Ok(Some(contents)),
            Err(error @ (NetworkError::Trial { .. } | NetworkError::Unsigned { .. })) => Err(error),
            Err(error) => {
                tracing::warn!("{error}; it will be fetched again");
                std::fs::remove_file(file).map_err(at("remove", file))?;
                Ok(None)
            }
        }
    }

    /// Checks what was fetched and gives it its name. What fails is removed, but for what only this machine cannot
    /// compute: it would be fetched anew for every job.
    async fn admit(
        self: &Arc<Self>,
        partial: &Path,
        hash: ContentHash,
        file: &Path,
        proof: Proof,
    ) -> Result<Contents, NetworkError> {
        let (cache, path) = (Arc::clone(self), partial.to_owned());
        match blocking(move || cache.check(&path, hash, &proof)).await {
            result @ (Ok(_) | Err(NetworkError::Trial { .. })) => {
                files::finish(partial, file).map_err(at("rename", partial))?;
                result
            }
            Err(error) => {
                std::fs::remove_file(partial).map_err(at("remove", partial))?;
                Err(error)
            }
        }
    }

    fn check(
        &self,
        path: &Path,
        hash: ContentHash,
        proof: &Proof,
    ) -> Result<Contents, NetworkError> {
        let bytes = std::fs::read(path).map_err(at("read", path))?;
        let found = ContentHash::of(&bytes);
        if found != hash {
            return Err(NetworkError::Hash {
                expected: hash,
                found,
            });
        }
        proof
            .check(&bytes)
            .map_err(|error| NetworkError::Unsigned { hash, error })?;
        let verified = verify(&bytes).map_err(|error| NetworkError::Unusable { hash, error })?;
        if let Some(program) = verified.spec.program() {
            return Ok(Contents::Program(program));
        }
        self.trial
            .run(&bytes)
            .map_err(|error| NetworkError::Trial { hash, error })?;
        Ok(Contents::Network)
    }

    /// Removes files that are not in use but for the last used few.
    pub async fn prune(&self, in_use: &[ContentHash]) {
        let _held = self.checked.lock().await;
        if let Err(error) = self.remove_old(in_use) {
            tracing::warn!("old networks cannot be removed: {error}");
        }
    }

    fn remove_old(&self, in_use: &[ContentHash]) -> std::io::Result<()> {
        let mut old: Vec<(SystemTime, PathBuf)> = Vec::new();
        // Somebody may have removed all of them.
        let Some(listing) = files::if_found(std::fs::read_dir(&self.folder))? else {
            return Ok(());
        };
        for file in listing {
            let file = file?;
            let name = file.file_name();
            let hash = Path::new(&name)
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse().ok());
            if hash.is_some_and(|hash| !in_use.contains(&hash)) {
                let data = file.metadata()?;
                old.push((data.accessed().or_else(|_| data.modified())?, file.path()));
            }
        }
        old.sort_unstable();
        let surplus = old.len().saturating_sub(KEPT);
        old.into_iter()
            .take(surplus)
            .try_for_each(|(_, path)| std::fs::remove_file(path))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NetworkError> + Send + 'static,
) -> Result<T, NetworkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

/// Names what was tried on which file.
fn at(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NetworkError {
    move |source| NetworkError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
