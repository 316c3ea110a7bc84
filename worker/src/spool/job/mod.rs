//! One job in the spool: a folder with a journal and chunk files.
//!
//! ```text
//! game ends ──> Game entry ──> uncut ──cut──> HASH.chunk, then ChunkSealed entry ──> pending
//!                                                                              │ answer
//!                                              ChunkAcknowledged entry, then the file goes
//! ```
//!
//! Every arrow is one durable step. [`repair`] mends what a crash leaves between two.

mod repair;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_common::chunk::{self, ChunkHeader, GameRecord};
use rookery_common::files::if_found;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Backend, Job};

use super::entry::{ChunkAcknowledged, ChunkSealed, Entry, JobStarted, Verdict, game_frame};
use super::error::{SpoolError, at};
use super::journal::{self, Journal, write_whole};
use super::owner::Owner;

/// Most games of a chunk.
const CHUNK_GAMES: usize = 512;
const JOURNAL: &str = "journal";

/// A job with its finished games.
#[derive(Debug)]
pub(super) struct SpooledJob {
    folder: PathBuf,
    job: Arc<Job>,
    owner: Option<Owner>,
    header: ChunkHeader,
    journal: Journal,
    /// Indices of all finished games.
    finished: BTreeSet<u32>,
    /// Finished games that are in no chunk yet, in the order in which they ended.
    uncut: Vec<GameRecord>,
    /// Chunks to be sent, in the order of cutting.
    pending: Vec<ChunkSealed>,
    closed: bool,
}

impl SpooledJob {
    /// Begins a job's folder.
    pub(super) fn begin(folder: &Path, taken: JobStarted) -> Result<Self, SpoolError> {
        std::fs::create_dir(folder).map_err(at("create", folder))?;
        let begun = Self::begin_in(folder.to_owned(), taken);
        if begun.is_err() {
            // What a full disk has left of it tells of no job, and would be in the way of the next try.
            drop(std::fs::remove_dir_all(folder));
        }
        begun
    }

    fn begin_in(folder: PathBuf, taken: JobStarted) -> Result<Self, SpoolError> {
        let header = taken.header();
        let (job, owner) = (Arc::new(taken.job.clone()), taken.owner.clone());
        let first = Entry::JobStarted(Box::new(taken)).to_frame(&header)?;
        let journal = Journal::create(&folder.join(JOURNAL), &first)?;
        journal::sync_folder_of(&folder)?;
        Ok(Self {
            folder,
            job,
            owner,
            header,
            journal,
            finished: BTreeSet::new(),
            uncut: Vec::new(),
            pending: Vec::new(),
            closed: false,
        })
    }

    /// The job.
    pub(super) const fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Whose it is, if that is known.
    pub(super) const fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Where everything of it lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where its evaluations were computed.
    pub(super) const fn backend(&self) -> Backend {
        self.header.backend
    }

    /// Finished games, sent ones too.
    pub(super) fn finished(&self) -> u32 {
        self.finished.len() as u32
    }

    /// How many games have not ended.
    pub(super) fn missing_count(&self) -> u32 {
        self.job.work.games().saturating_sub(self.finished())
    }

    /// Games that have not ended.
    pub(super) fn missing(&self) -> Vec<u32> {
        (0..self.job.work.games())
            .filter(|index| !self.finished.contains(index))
            .collect()
    }

    /// Whether no more games will be played.
    pub(super) const fn closed(&self) -> bool {
        self.closed
    }

    /// Games that the coordinator has not answered for.
    pub(super) fn unsent(&self) -> usize {
        self.uncut.len()
            + self
                .pending
                .iter()
                .map(|cut| cut.games.len())
                .sum::<usize>()
    }

    /// What it takes on disk: its journal, and the same games once more in chunks.
    pub(super) const fn bytes(&self) -> u64 {
        2 * self.journal.length()
    }

    /// Whether nothing is left to do.
    pub(super) fn over(&self) -> bool {
        self.closed && self.uncut.is_empty() && self.pending.is_empty()
    }

    /// The next chunk to be sent, with its bytes; none of those that were passed over. Where its file
    /// is not what was cut, the folder is repaired as after a restart.
    pub(super) fn read_pending(
        &mut self,
        passed_over: &BTreeSet<ContentHash>,
    ) -> Result<Option<(ContentHash, Vec<u8>)>, SpoolError> {
        let first = |pending: &[ChunkSealed]| {
            let mut hashes = pending.iter().map(|cut| cut.hash);
            hashes.find(|hash| !passed_over.contains(hash))
        };
        self.restore_if_gone()?;
        let Some(hash) = first(&self.pending) else {
            return Ok(None);
        };
        let path = self.chunk_path(hash);
        match std::fs::read(&path) {
            Ok(bytes) if ContentHash::of(&bytes) == hash => return Ok(Some((hash, bytes))),
            Ok(_) => tracing::warn!("{} is damaged and is written again", path.display()),
            Err(error) => tracing::warn!("{}; it is written again", at("read", &path)(error)),
        }
        let Some(repaired) = Self::open(self.folder.clone())? else {
            return Err(SpoolError::Entry(format!("in {}", self.folder.display())));
        };
        *self = repaired;
        let Some(hash) = first(&self.pending) else {
            return Ok(None);
        };
        let path = self.chunk_path(hash);
        let bytes = std::fs::read(&path).map_err(at("read", &path))?;
        Ok(Some((hash, bytes)))
    }

    /// Keeps a finished game, durably. A game that is there already is dropped.
    pub(super) fn record(&mut self, game: &GameRecord) -> Result<(), SpoolError> {
        if self.finished.contains(&game.index) {
            return Ok(());
        }
        self.restore_if_gone()?;
        self.journal.append(&game_frame(&self.header, game)?)?;
        self.finished.insert(game.index);
        self.uncut.push(game.clone());
        Ok(())
    }

    /// Puts all finished games that are in no chunk into chunks.
    pub(super) fn cut(&mut self) -> Result<(), SpoolError> {
        self.restore_if_gone()?;
        while !self.uncut.is_empty() {
            let games = self.uncut[..self.uncut.len().min(CHUNK_GAMES)].to_vec();
            let count = games.len();
            self.write_chunk(&games)?;
            self.uncut.drain(..count);
        }
        Ok(())
    }

    fn write_chunk(&mut self, games: &[GameRecord]) -> Result<(), SpoolError> {
        let bytes = chunk::encode(&self.header, games)?;
        let hash = ContentHash::of(&bytes);
        write_whole(&self.chunk_path(hash), &bytes)?;
        let games: Vec<u32> = games.iter().map(|game| game.index).collect();
        let cut = ChunkSealed { hash, games };
        self.append(&Entry::ChunkSealed(cut.clone()))?;
        self.pending.push(cut);
        Ok(())
    }

    /// Notes that no more games will be played.
    pub(super) fn close(&mut self) -> Result<(), SpoolError> {
        self.restore_if_gone()?;
        if !self.closed {
            self.append(&Entry::Closed)?;
            self.closed = true;
        }
        Ok(())
    }

    /// Notes the coordinator's answer for a chunk, then removes its file.
    pub(super) fn settle(&mut self, hash: ContentHash, verdict: Verdict) -> Result<(), SpoolError> {
        if self.journal.is_gone() {
            // Of what went with the folder, this is not lost.
            self.pending.retain(|cut| cut.hash != hash);
            return self.restore_if_gone();
        }
        self.append(&Entry::ChunkAcknowledged(ChunkAcknowledged {
            hash,
            verdict,
        }))?;
        self.pending.retain(|cut| cut.hash != hash);
        journal::remove_if_there(&self.chunk_path(hash))
    }

    /// Removes the folder of a job that is over.
    pub(super) fn remove(self) -> Result<(), SpoolError> {
        journal::remove_folder_if_there(&self.folder)
    }

    /// The file of a chunk.
    pub(super) fn chunk_path(&self, hash: ContentHash) -> PathBuf {
        self.folder.join(format!("{hash}.chunk"))
    }

    /// From now on nothing can be written to the journal.
    #[cfg(test)]
    pub(super) fn break_journal(&mut self) {
        self.journal.break_file();
    }

    /// From now on everything can be written to the journal again.
    #[cfg(test)]
    pub(super) fn mend_journal(&mut self) {
        self.journal.mend_file();
    }

    fn append(&mut self, entry: &Entry) -> Result<(), SpoolError> {
        let bytes = entry.to_frame(&self.header)?;
        self.journal.append(&bytes)
    }
}

/// The journal of a job's folder.
pub(super) fn journal_of(folder: &Path) -> PathBuf {
    folder.join(JOURNAL)
}

/// Whether a folder holds a journal.
pub(super) fn has_journal(folder: &Path) -> Result<bool, SpoolError> {
    let path = journal_of(folder);
    let found = if_found(std::fs::metadata(&path)).map_err(at("read", &path))?;
    Ok(found.is_some_and(|found| found.is_file()))
}
