//! What happened to a job, entry by entry: a journal's content.

use rookery_common::chunk::{self, Caps, ChunkHeader, GameRecord};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Backend, Job};
use serde::{Deserialize, Serialize};

use super::error::SpoolError;
use super::frame::{self, Frame};
use super::owner::Owner;

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// The job was taken. Always the first entry.
    JobStarted(Box<JobStarted>),
    /// A game ended.
    Game(Box<GameRecord>),
    /// Games were put into a chunk whose file is on disk.
    ChunkSealed(ChunkSealed),
    /// The coordinator answered for a chunk.
    ChunkAcknowledged(ChunkAcknowledged),
    /// No more games of this job will be played.
    Closed,
}

/// A job, and how its chunks are signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JobStarted {
    pub(super) job: Job,
    /// The worker's version.
    pub(super) version: String,
    pub(super) backend: Backend,
    /// Whose it is; journals of earlier versions do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
}

/// A chunk and the indices of its games.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChunkSealed {
    pub(super) hash: ContentHash,
    pub(super) games: Vec<u32>,
}

/// A chunk that needs no more sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChunkAcknowledged {
    pub(super) hash: ContentHash,
    pub(super) verdict: Verdict,
}

/// What the coordinator said of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is stored and counted.
    Accepted,
    /// It was refused.
    Refused,
}

impl JobStarted {
    /// The header of this job's chunks.
    pub(super) fn header(&self) -> ChunkHeader {
        ChunkHeader {
            run: self.job.run.clone(),
            job: self.job.id,
            networks: self.job.work.networks(),
            worker_version: self.version.clone(),
            backend: self.backend,
            kind: self.job.work.kind(),
        }
    }
}

/// Kinds in the file.
mod kind {
    pub(super) const TAKEN: u8 = 1;
    pub(super) const GAME: u8 = 2;
    pub(super) const CUT: u8 = 3;
    pub(super) const SETTLED: u8 = 4;
    pub(super) const CLOSED: u8 = 5;
}

impl Entry {
    /// The entry as a frame.
    pub(super) fn to_frame(&self, header: &ChunkHeader) -> Result<Vec<u8>, SpoolError> {
        let (kind, payload) = match self {
            Self::JobStarted(taken) => (kind::TAKEN, json(taken)?),
            Self::Game(game) => return game_frame(header, game),
            Self::ChunkSealed(cut) => (kind::CUT, json(cut)?),
            Self::ChunkAcknowledged(settled) => (kind::SETTLED, json(settled)?),
            Self::Closed => (kind::CLOSED, Vec::new()),
        };
        write(kind, &payload)
    }

    /// The entry in a frame.
    pub(super) fn from_frame(frame: &Frame<'_>) -> Result<Self, SpoolError> {
        match frame.kind {
            kind::TAKEN => parse(frame.payload).map(Self::JobStarted),
            kind::GAME => game(frame.payload),
            kind::CUT => parse(frame.payload).map(Self::ChunkSealed),
            kind::SETTLED => parse(frame.payload).map(Self::ChunkAcknowledged),
            kind::CLOSED => Ok(Self::Closed),
            other => Err(SpoolError::Entry(format!("kind {other} is not known"))),
        }
    }
}

/// The entry of a finished game as a frame; the game is kept as a chunk of its own.
pub(super) fn game_frame(header: &ChunkHeader, game: &GameRecord) -> Result<Vec<u8>, SpoolError> {
    write(
        kind::GAME,
        &chunk::encode(header, std::slice::from_ref(game))?,
    )
}

fn write(kind: u8, payload: &[u8]) -> Result<Vec<u8>, SpoolError> {
    frame::write(kind, payload)
        .ok_or_else(|| SpoolError::Entry("an entry is longer than four gigabytes".into()))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, SpoolError> {
    serde_json::to_vec(value).map_err(|error| SpoolError::Entry(error.to_string()))
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, SpoolError> {
    serde_json::from_slice(bytes).map_err(|error| SpoolError::Entry(error.to_string()))
}

fn game(bytes: &[u8]) -> Result<Entry, SpoolError> {
    let bad = |reason: String| SpoolError::Entry(format!("a game cannot be read: {reason}"));
    let (_, mut games) =
        chunk::read(bytes, &Caps::default()).map_err(|error| bad(error.to_string()))?;
    let game = games.pop().ok_or_else(|| bad("there is none".into()))?;
    Ok(Entry::Game(Box::new(game)))
}
