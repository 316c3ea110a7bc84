//! Blobs in a local folder.
//!
//! A blob is written under another name, synced, renamed, and its folder is synced: a crash at any
//! moment leaves the whole blob or none.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use rookery_common::ids::ContentHash;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

use super::{BlobEntry, BlobError, BlobKind, BlobStore, ByteStream, Downloads, MARK, Marking, key};
use rookery_common::files::{create_folder, sync_folder};

/// Where unfinished files lie.
const UNFINISHED: &str = "unfinished";

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, Clone)]
pub struct FolderStore {
    root: PathBuf,
    downloads: Downloads,
}

impl FolderStore {
    /// Opens a folder of blobs; it is created if it is missing. Files that a crash left unfinished
    /// are removed.
    pub fn open(root: &Path) -> Result<Self, BlobError> {
        let unfinished = root.join(UNFINISHED);
        fs::create_dir_all(&unfinished).map_err(failed("cannot create", &unfinished))?;
        // Files older than this belong to no write that is still going on in another process.
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        for entry in fs::read_dir(&unfinished).map_err(failed("cannot read", &unfinished))? {
            let entry = entry.map_err(failed("cannot read", &unfinished))?;
            let age = entry.metadata().and_then(|data| data.modified()).ok();
            if age
                .and_then(|modified| modified.elapsed().ok())
                .is_some_and(|age| age > day)
            {
                fs::remove_file(entry.path()).map_err(failed("cannot remove", &entry.path()))?;
            }
        }
        Ok(Self {
            root: root.to_owned(),
            downloads: Downloads::default(),
        })
    }

    /// The same folder, whose networks a web server may serve.
    #[must_use]
    pub fn with_downloads(self, downloads: Downloads) -> Self {
        Self { downloads, ..self }
    }

    fn path(&self, kind: BlobKind, hash: &ContentHash) -> PathBuf {
        self.root.join(key(kind, hash))
    }
}

fn failed(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    let tried = format!("{tried} {}", path.display());
    move |source| BlobError::Io { tried, source }
}

/// An error of a blob that should be there.
fn failed_read(kind: BlobKind, hash: &ContentHash) -> impl FnOnce(io::Error) -> BlobError {
    let name = key(kind, hash);
    move |source| match source.kind() {
        io::ErrorKind::NotFound => BlobError::Missing(name),
        _ => BlobError::Io {
            tried: format!("cannot read {name}"),
            source,
        },
    }
}

/// Whether a file holds these bytes. One that a disk has damaged is written again.
fn holds(path: &Path, mut bytes: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        let part = &buffer[..read];
        match bytes.strip_prefix(part) {
            Some(_) if part.is_empty() => return Ok(bytes.is_empty()),
            Some(rest) => bytes = rest,
            None => return Ok(false),
        }
    }
}

fn write_durably(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    if holds(path, bytes).unwrap_or(false) {
        File::options()
            .write(true)
            .open(path)?
            .set_modified(SystemTime::now())?;
        // Another writer may have renamed it and not yet synced the folder.
        return sync_folder(folder);
    }
    create_folder(folder)?;
    let unfinished = root.join(UNFINISHED).join(uuid::Uuid::new_v4().to_string());
    let written = (|| {
        let mut file = File::create_new(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        sync_folder(folder)
    })();
    if written.is_err() {
        // The error is returned; an unfinished file is removed at a later start.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Writes the mark whole, or not at all.
fn write_mark(root: &Path, text: &[u8], marking: Marking) -> io::Result<()> {
    let path = root.join(MARK);
    let unfinished = root.join(UNFINISHED).join(uuid::Uuid::new_v4().to_string());
    let written = (|| {
        let mut file = File::create_new(&unfinished)?;
        file.write_all(text)?;
        file.sync_all()?;
        match marking {
            Marking::First => place_first(&unfinished, &path)?,
            Marking::Over => fs::rename(&unfinished, &path)?,
        }
        sync_folder(root)
    })();
    // It is there under its own name now, or the error is returned.
    let _ = fs::remove_file(&unfinished);
    written
}

/// Gives a file this name too, unless another file has it.
fn place_first(file: &Path, name: &Path) -> io::Result<()> {
    let linked = fs::hard_link(file, name);
    // Not every file system has links.
    if linked.is_err() && !name.try_exists()? {
        fs::rename(file, name)?;
    }
    Ok(())
}

fn entry(hash: ContentHash, data: &fs::Metadata) -> io::Result<BlobEntry> {
    let modified = Timestamp::try_from(data.modified()?).map_err(io::Error::other)?;
    Ok(BlobEntry {
        hash,
        bytes: data.len(),
        modified,
    })
}

/// The blobs in the folders of a kind. Files with other names are not the store's, and are passed
/// over.
fn list(folder: &Path) -> io::Result<Vec<BlobEntry>> {
    let parts = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        parts => parts?,
    };
    let mut entries = Vec::new();
    for part in parts {
        let part = part?.path();
        if !part.is_dir() {
            continue;
        }
        for file in fs::read_dir(part)? {
            let file = file?;
            let hash = file.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(hash) = hash else { continue };
            match file.metadata() {
                Ok(data) => entries.push(entry(hash, &data)?),
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(entries)
}

/// Runs file work off the async threads.
async fn blocking<T: Send + 'static>(
    tried: String,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|source| BlobError::Io { tried, source })
}

#[async_trait]
impl BlobStore for FolderStore {
    async fn put(&self, kind: BlobKind, hash: &ContentHash, bytes: Bytes) -> Result<(), BlobError> {
        let (root, path) = (self.root.clone(), self.path(kind, hash));
        let tried = format!("cannot write {}", path.display());
        blocking(tried, move || write_durably(&root, &path, &bytes)).await
    }

    async fn get(&self, kind: BlobKind, hash: &ContentHash) -> Result<Bytes, BlobError> {
        let bytes = tokio::fs::read(self.path(kind, hash)).await;
        bytes.map(Bytes::from).map_err(failed_read(kind, hash))
    }

    async fn entry(&self, kind: BlobKind, hash: &ContentHash) -> Result<BlobEntry, BlobError> {
        let data = tokio::fs::metadata(self.path(kind, hash)).await;
        data.and_then(|data| entry(*hash, &data))
            .map_err(failed_read(kind, hash))
    }

    async fn list(&self, kind: BlobKind) -> Result<Vec<BlobEntry>, BlobError> {
        let folder = self.root.join(kind.folder());
        let tried = format!("cannot list {}", folder.display());
        blocking(tried, move || list(&folder)).await
    }

    async fn remove(&self, kind: BlobKind, hash: &ContentHash) -> Result<(), BlobError> {
        match tokio::fs::remove_file(self.path(kind, hash)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(BlobError::Io {
                tried: format!("cannot remove {}", key(kind, hash)),
                source: error,
            }),
            _ => Ok(()),
        }
    }

    async fn read(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<ByteStream, BlobError> {
        let mut file = tokio::fs::File::open(self.path(kind, hash))
            .await
            .map_err(failed_read(kind, hash))?;
        file.seek(io::SeekFrom::Start(range.start))
            .await
            .map_err(failed_read(kind, hash))?;
        let part = file.take(range.end.saturating_sub(range.start));
        Ok(Box::pin(ReaderStream::with_capacity(part, READ_BYTES)))
    }

    async fn address(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
    ) -> Result<Option<String>, BlobError> {
        Ok(self.downloads.public_address(kind, hash))
    }

    async fn mark(&self) -> Result<Option<Bytes>, BlobError> {
        let path = self.root.join(MARK);
        match tokio::fs::read(&path).await {
            Ok(text) => Ok(Some(text.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("cannot read", &path)(error)),
        }
    }

    async fn set_mark(&self, text: Bytes, marking: Marking) -> Result<(), BlobError> {
        let root = self.root.clone();
        let tried = format!("cannot write {}", root.join(MARK).display());
        blocking(tried, move || write_mark(&root, &text, marking)).await
    }

    async fn ping(&self) -> Result<(), BlobError> {
        let path = self
            .root
            .join(UNFINISHED)
            .join(format!("ping-{}", uuid::Uuid::new_v4()));
        let tried = format!("cannot write to {}", self.root.display());
        blocking(tried, move || {
            let written = File::create_new(&path).and_then(|mut file| file.write_all(b"ping"));
            // Also where a full disk has taken the name but no bytes.
            let removed = fs::remove_file(&path);
            written.and(removed)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_unfinished_stays() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        let bytes = Bytes::from_static(b"0123456789");
        let hash = ContentHash::of(&bytes);
        store.put(BlobKind::Chunk, &hash, bytes).await.unwrap();
        store.ping().await.unwrap();
        for marking in [Marking::First, Marking::First, Marking::Over] {
            let text = Bytes::from_static(b"mark");
            store.set_mark(text, marking).await.unwrap();
        }
        let left = fs::read_dir(folder.path().join(UNFINISHED)).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[tokio::test]
    async fn files_that_are_not_the_stores_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        let bytes = Bytes::from_static(b"0123456789");
        let hash = ContentHash::of(&bytes);
        store.put(BlobKind::Chunk, &hash, bytes).await.unwrap();
        let chunks = folder.path().join(BlobKind::Chunk.folder());
        let path = folder.path().join(key(BlobKind::Chunk, &hash));
        for stray in [chunks, path.parent().unwrap().to_owned()] {
            fs::write(stray.join(".DS_Store"), b"").unwrap();
        }
        let listed = store.list(BlobKind::Chunk).await.unwrap();
        let hashes: Vec<_> = listed.iter().map(|entry| entry.hash).collect();
        assert_eq!(hashes, [hash]);
    }

    #[tokio::test]
    async fn a_blob_that_is_cut_short_or_damaged_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        let bytes = Bytes::from(vec![7; 3 * READ_BYTES + 1]);
        let hash = ContentHash::of(&bytes);
        let path = folder.path().join(key(BlobKind::Chunk, &hash));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut damaged = bytes.to_vec();
        damaged[2 * READ_BYTES] ^= 1;
        for there in [&bytes[..2], &damaged, &bytes] {
            fs::write(&path, there).unwrap();
            store
                .put(BlobKind::Chunk, &hash, bytes.clone())
                .await
                .unwrap();
            assert_eq!(store.get(BlobKind::Chunk, &hash).await.unwrap(), bytes);
        }
    }
}
