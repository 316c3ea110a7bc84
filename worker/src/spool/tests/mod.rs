//! Jobs in the spool, from the first game to the last answer, and what may happen to their files.

use std::path::Path;

use rookery_common::chunk::{self, Caps, GameRecord};
use rookery_common::protocol::jobs::{Backend, Job};
use tempfile::TempDir;

use super::opening::DAMAGED;
use super::testing::{games, job};
use super::*;

mod damage;
mod kill;
mod life;
mod removal;
mod thread;

/// A spool in a folder of its own.
struct Fixture {
    folder: TempDir,
    job: Job,
    games: Vec<GameRecord>,
}

impl Fixture {
    fn new(count: u32) -> Self {
        let job = job(count);
        let games = games(&job);
        Self {
            folder: tempfile::tempdir().unwrap(),
            job,
            games,
        }
    }

    fn open(&self) -> Spool {
        Spool::open(self.folder.path()).unwrap()
    }

    fn begin(&self) -> Spool {
        let mut spool = self.open();
        spool.begin(self.job.clone(), Backend::CpuF32).unwrap();
        spool
    }

    /// A spool with the job and these of its games.
    fn begin_with(&self, games: &[GameRecord]) -> Spool {
        let mut spool = self.begin();
        record(&mut spool, self.job.id, games);
        spool
    }

    fn job_folder(&self) -> PathBuf {
        self.folder.path().join(self.job.id.to_string())
    }

    fn journal(&self) -> PathBuf {
        self.job_folder().join("journal")
    }

    fn journal_bytes(&self) -> Vec<u8> {
        std::fs::read(self.journal()).unwrap()
    }

    /// Writes a journal with one bit changed in this byte, and gives it.
    fn damage(&self, mut journal: Vec<u8>, place: usize) -> Vec<u8> {
        journal[place] ^= 1;
        std::fs::write(self.journal(), &journal).unwrap();
        journal
    }

    /// The file of one of the job's chunks.
    fn chunk_file(&self, hash: ContentHash) -> PathBuf {
        self.job_folder().join(format!("{hash}.chunk"))
    }

    /// The journal of the job that was kept as damaged for the `n`th time.
    fn damaged_journal(&self, n: usize) -> Vec<u8> {
        let folder = self.folder.path().join(DAMAGED);
        let folder = folder.join(format!("{}.{n}", self.job.id));
        std::fs::read(folder.join("journal")).unwrap()
    }
}

/// Keeps games.
fn record(spool: &mut Spool, job: JobId, games: &[GameRecord]) {
    for game in games {
        spool.record(job, game).unwrap();
    }
}

/// The chunk that is to be sent next.
fn pending(spool: &mut Spool) -> PendingChunk {
    spool.next_pending().unwrap().unwrap()
}

/// Indices of the games in a chunk.
fn indices(bytes: &[u8]) -> Vec<u32> {
    let (_, games) = chunk::read(bytes, &Caps::default()).unwrap();
    games.iter().map(|game| game.index).collect()
}

/// Accepts everything that the spool wants to send; gives the indices of its games.
fn send_all(spool: &mut Spool) -> Vec<u32> {
    let mut sent = Vec::new();
    while let Some(chunk) = spool.next_pending().unwrap() {
        assert_eq!(ContentHash::of(&chunk.bytes), chunk.hash);
        sent.extend(indices(&chunk.bytes));
        spool.accept(chunk.job, chunk.hash).unwrap();
    }
    sent.sort_unstable();
    sent
}
