//! What becomes of a job's folder after a crash, after damage, or when somebody has removed it.
//!
//! | found | done |
//! |---|---|
//! | a chunk file without its `ChunkSealed` entry | it was never sent: removed, its games are cut again |
//! | the same, with games that the journal lacks | the journal's end was lost: the chunk is taken up |
//! | a chunk file with a `ChunkAcknowledged` entry | removed |
//! | a chunk file that is damaged or gone | written again from its games |
//! | no folder, while the job is in use | made again with what is in memory |

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rookery_common::chunk::{self, Caps, GameRecord};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::Job;
use rookery_common::text::quantity;

use super::super::entry::{ChunkAcknowledged, ChunkSealed, Entry, JobStarted, Verdict};
use super::super::error::{SpoolError, at};
use super::super::frame::MAGIC;
use super::super::journal::{Journal, Rescued, sync_folder_of, write_whole};
use super::{JOURNAL, SpooledJob, journal_of};

impl SpooledJob {
    /// Reads a job's folder after a restart and repairs what a crash left half done. None, and the
    /// folder as it was, if the journal does not tell of a job or is damaged.
    pub(in crate::spool) fn open(folder: PathBuf) -> Result<Option<Self>, SpoolError> {
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
    pub(in crate::spool) fn open_rescued(
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
    pub(in crate::spool) fn restore_if_gone(&mut self) -> Result<(), SpoolError> {
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
        sync_folder_of(&self.folder)?;
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

    /// Takes up chunks of games that the journal lacks, as its end may be lost, and removes other files
    /// without an entry. What cannot be removed does no harm where it is.
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
