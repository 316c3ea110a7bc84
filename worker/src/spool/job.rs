//! One job in the spool: a folder with a journal and chunk files.
//!
//! ```text
//! game ends ──> Game entry ──> uncut ──cut──> HASH.chunk, then ChunkSealed entry ──> pending
//!                                                                              │ answer
//!                                              ChunkAcknowledged entry, then the file goes
//! ```
//!
//! Every arrow is one durable step, and what a crash leaves between two is repaired by
//! [`SpooledJob::open`]: a chunk file without its `ChunkSealed` entry was never sent and is removed, its
//! games are cut again (if the journal lacks games of it, its end was lost: the chunk is taken up); one with a `ChunkAcknowledged` entry is removed; one that is damaged is written
//! again from its games.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_common::chunk::{self, Caps, ChunkHeader, GameRecord};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Backend, Job};
use rookery_common::text::quantity;

use super::entry::{ChunkAcknowledged, ChunkSealed, Entry, JobStarted, Verdict, game_frame};
use super::error::{SpoolError, at};
use super::frame::MAGIC;
use super::journal::{Journal, Rescued, write_whole};
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
        super::journal::sync_folder_of(&folder)?;
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

    /// Reads a job's folder after a restart and repairs what a crash left half done. None, and the
    /// folder as it was, if the journal does not tell of a job or is damaged.
    pub(super) fn open(folder: PathBuf) -> Result<Option<Self>, SpoolError> {
        let Some((journal, entries)) = Journal::open(&folder.join(JOURNAL))? else {
            return Ok(None);
        };
        let mut entries = entries.into_iter();
        let Some(Entry::JobStarted(taken)) = entries.next() else {
            return Ok(None);
        };
        let state = JournalState::from_entries(entries);
        let header = taken.header();
        let (finished, uncut) = (state.games.keys().copied().collect(), Vec::new());
        let JobStarted { job, owner, .. } = *taken;
        let (job, pending, closed) = (Arc::new(job), Vec::new(), state.closed);
        let mut opened = Self {
            folder,
            job,
            owner,
            header,
            journal,
            finished,
            uncut,
            pending,
            closed,
        };
        opened.repair(state)?;
        Ok(Some(opened))
    }

    /// Opens a job whose journal was damaged, with what was rescued of it.
    pub(super) fn open_rescued(
        folder: PathBuf,
        rescued: &Rescued,
    ) -> Result<Option<Self>, SpoolError> {
        write_whole(&journal_of(&folder), &rescued.bytes)?;
        let Some(mut job) = Self::open(folder)? else {
            return Ok(None);
        };
        // A chunk is refused whole for one game that the coordinator has: these get their own, and if
        // they had been cut, it is the same once more.
        let others = job.uncut.split_off(rescued.doubtful.min(job.uncut.len()));
        let cut = job.cut();
        job.uncut.extend(others);
        cut.map(|()| Some(job))
    }

    fn repair(&mut self, state: JournalState) -> Result<(), SpoolError> {
        let JournalState {
            mut games,
            order,
            cuts,
            settled,
            ..
        } = state;
        for cut in cuts {
            let members: Vec<_> = cut
                .games
                .iter()
                .filter_map(|game| games.remove(game))
                .collect();
            if settled.contains(&cut.hash) {
                self.finished.extend(&cut.games);
            } else {
                self.keep_or_rewrite(&cut, &members)?;
            }
        }
        self.uncut
            .extend(order.iter().filter_map(|index| games.remove(index)));
        self.sort_strays()
    }

    /// Makes sure that the chunk's file is there as it was cut.
    fn keep_or_rewrite(
        &mut self,
        cut: &ChunkSealed,
        games: &[GameRecord],
    ) -> Result<(), SpoolError> {
        if self.has_whole_chunk(cut.hash) {
            self.finished.extend(&cut.games);
            self.pending.push(cut.clone());
            return Ok(());
        }
        let path = self.chunk_path(cut.hash);
        let bytes = chunk::encode(&self.header, games)?;
        if ContentHash::of(&bytes) == cut.hash {
            write_whole(&path, &bytes)?;
            self.pending.push(cut.clone());
        } else {
            // Another version of this program would cut another file, or not all games could be read:
            // it is a new chunk.
            self.append(&Entry::ChunkAcknowledged(ChunkAcknowledged {
                hash: cut.hash,
                verdict: Verdict::Refused,
            }))?;
            if !games.is_empty() {
                self.write_chunk(games)?;
            }
        }
        Ok(())
    }

    fn has_whole_chunk(&self, hash: ContentHash) -> bool {
        std::fs::read(self.chunk_path(hash)).is_ok_and(|bytes| ContentHash::of(&bytes) == hash)
    }

    /// Makes the folder again if somebody has removed it, with all that is in memory: games that are
    /// in no chunk, and which others have ended. Chunks that waited in it are lost.
    pub(super) fn restore_if_gone(&mut self) -> Result<(), SpoolError> {
        if !self.journal.is_gone() {
            return Ok(());
        }
        let pending = self.pending.iter().cloned();
        let (kept, lost): (Vec<ChunkSealed>, Vec<ChunkSealed>) =
            pending.partition(|cut| self.has_whole_chunk(cut.hash));
        let mut finished = self.finished.clone();
        for game in lost.iter().flat_map(|cut| &cut.games) {
            finished.remove(game);
        }
        let mut bytes = MAGIC.to_vec();
        for entry in self.entries_anew(&finished, &kept) {
            bytes.extend(entry.to_frame(&self.header)?);
        }
        std::fs::create_dir_all(&self.folder).map_err(at("create", &self.folder))?;
        super::journal::sync_folder_of(&self.folder)?;
        self.journal = Journal::write(&journal_of(&self.folder), &bytes)?;
        (self.finished, self.pending) = (finished, kept);
        tracing::error!(
            "RK-0507: {} was removed while it was in use and is made again; of its finished games, {} that waited \
             to be uploaded are lost",
            self.folder.display(),
            lost.iter().map(|cut| cut.games.len()).sum::<usize>()
        );
        Ok(())
    }

    /// A journal's entries that tell of this job with these finished games and chunks.
    fn entries_anew(&self, finished: &BTreeSet<u32>, pending: &[ChunkSealed]) -> Vec<Entry> {
        let taken = JobStarted {
            job: Job::clone(&self.job),
            version: self.header.worker_version.clone(),
            backend: self.header.backend,
            owner: self.owner.clone(),
        };
        let mut answered = finished.clone();
        for game in &self.uncut {
            answered.remove(&game.index);
        }
        for game in pending.iter().flat_map(|cut| &cut.games) {
            answered.remove(game);
        }
        // Of games that the coordinator has answered for, it only matters that they have ended.
        let answered = ChunkSealed {
            hash: ContentHash::of(b""),
            games: answered.into_iter().collect(),
        };
        let settled = ChunkAcknowledged {
            hash: answered.hash,
            verdict: Verdict::Accepted,
        };
        let mut entries = vec![
            Entry::JobStarted(Box::new(taken)),
            Entry::ChunkSealed(answered),
            Entry::ChunkAcknowledged(settled),
        ];
        entries.extend(pending.iter().cloned().map(Entry::ChunkSealed));
        let uncut = self.uncut.iter().cloned();
        entries.extend(uncut.map(|game| Entry::Game(Box::new(game))));
        entries.extend(self.closed.then_some(Entry::Closed));
        entries
    }

    /// Takes up chunks of games that the journal lacks, whose end may be lost, and removes other files that no entry
    /// stands for. What cannot be removed does no harm where it is.
    fn sort_strays(&mut self) -> Result<(), SpoolError> {
        let listing = match std::fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) => {
                tracing::warn!("{}", at("read", &self.folder)(error));
                return Ok(());
            }
        };
        for file in listing.flatten() {
            let path = file.path();
            let known = path == self.folder.join(JOURNAL)
                || self
                    .pending
                    .iter()
                    .any(|cut| path == self.chunk_path(cut.hash));
            if known || self.adopt(&path)? {
                continue;
            }
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!("{}; it is left there", at("remove", &path)(error));
            }
        }
        Ok(())
    }

    /// Takes up a whole chunk of this job if it has games that the journal lacks. The coordinator counts a chunk once.
    fn adopt(&mut self, path: &Path) -> Result<bool, SpoolError> {
        let bytes = std::fs::read(path).unwrap_or_default();
        let hash = ContentHash::of(&bytes);
        if *path != self.chunk_path(hash) {
            return Ok(false);
        }
        let Ok((header, games)) = chunk::read(&bytes, &Caps::default()) else {
            return Ok(false);
        };
        let games: Vec<u32> = games.iter().map(|game| game.index).collect();
        let is_new = games.iter().any(|game| !self.finished.contains(game));
        if header.job != self.header.job || !is_new {
            return Ok(false);
        }
        tracing::warn!(
            "RK-0506: {} was damaged; rescued, to be uploaded: {}",
            journal_of(&self.folder).display(),
            quantity(games.len(), "finished game")
        );
        let cut = ChunkSealed { hash, games };
        self.append(&Entry::ChunkSealed(cut.clone()))?;
        self.uncut.retain(|game| !cut.games.contains(&game.index));
        self.finished.extend(&cut.games);
        self.pending.push(cut);
        Ok(true)
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
        let path = self.chunk_path(hash);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(at("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the folder of a job that is over.
    pub(super) fn remove(self) -> Result<(), SpoolError> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(at("remove", &self.folder)(error))
            }
            _ => Ok(()),
        }
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

/// What a journal tells after its first entry.
#[derive(Debug, Default)]
struct JournalState {
    games: BTreeMap<u32, GameRecord>,
    /// Indices of the games in the order in which they ended.
    order: Vec<u32>,
    cuts: Vec<ChunkSealed>,
    settled: BTreeSet<ContentHash>,
    closed: bool,
}

impl JournalState {
    fn from_entries(entries: impl Iterator<Item = Entry>) -> Self {
        let mut state = Self::default();
        for entry in entries {
            match entry {
                Entry::Game(game) => {
                    state.order.push(game.index);
                    state.games.insert(game.index, *game);
                }
                Entry::ChunkSealed(cut) => state.cuts.push(cut),
                Entry::ChunkAcknowledged(settled) => {
                    state.settled.insert(settled.hash);
                }
                Entry::Closed => state.closed = true,
                Entry::JobStarted(_) => {}
            }
        }
        state
    }
}

/// The journal of a job's folder.
pub(super) fn journal_of(folder: &Path) -> PathBuf {
    folder.join(JOURNAL)
}

/// Whether a folder holds a journal.
pub(super) fn has_journal(folder: &Path) -> Result<bool, SpoolError> {
    let path = journal_of(folder);
    match std::fs::metadata(&path) {
        Ok(found) => Ok(found.is_file()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at("read", &path)(error)),
    }
}
