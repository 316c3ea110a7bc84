//! A chunk against what was leased: nothing that a volunteer says is believed.
//!
//! Reading a chunk already shows that it is small enough, well-formed, and that every game is
//! chess. Here each game is compared with its job: the run, networks and kind, its index and seed,
//! where it begins, how much it searched, which moves had to be played, where it had to end, and its puzzle or pair.
//! What depends on the network is what audits search again; `docs/trust.md` lists every field.

use std::collections::HashSet;

use shakmaty::Chess;

mod audit;
mod choice;
mod proofs;
mod searches;
mod start;

use audit::check_audit;
use choice::check_choice;
use searches::SearchCheck;

use super::decode::{ChunkHeader, ChunkReader};
use super::ending;
use super::error::{ChunkError, ChunkErrorCode};
use super::played_on::{self, PlayedOn};
use super::record::{GameKind, GameRecord};
use super::replay::Replayed;
use super::searches::SearchSums;
use super::{Caps, fingerprint};
use crate::chess::{EndgameTables, GameEnd, Termination};
use crate::ids::{JobId, RunName, Seed};
use crate::params::ResignParams;
use crate::play::GameRules;
use crate::play::rules::game_rng;
use crate::protocol::jobs::Work;

/// What was leased.
#[derive(Debug, Clone, Copy)]
pub struct Lease<'a> {
    /// The run.
    pub run: &'a RunName,
    /// The job.
    pub job: JobId,
    /// The job's seed.
    pub seed: Seed,
    /// What it asks for.
    pub work: &'a Work,
    /// Endgame tables by which ends are checked that tables have given, if there are any.
    pub tables: Option<&'a dyn EndgameTables>,
}

/// A game of a verified chunk, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct GameSummary {
    /// Which game of its job it is.
    pub index: u32,
    /// What it was played for.
    pub kind: GameKind,
    /// How it ended.
    pub end: GameEnd,
    /// Searched plies: the positions that count.
    pub plies: u32,
    /// Equal for the same game handed in twice.
    pub fingerprint: [u8; 16],
    /// Of a self-play game that was played on: what it says of resigning.
    pub played_on: Option<PlayedOn>,
    /// Of a self-play game: its searches in sums.
    pub searches: Option<SearchSums>,
    /// Its positions over its first moves: openings are named by them.
    pub first_positions: Vec<Chess>,
}

/// A chunk that passed every check that needs no ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedChunk {
    /// What it says of itself.
    pub header: ChunkHeader,
    /// Its games.
    pub games: Vec<GameSummary>,
    /// Searched positions in all.
    pub positions: u32,
}

/// Verifies a chunk against its lease.
///
/// # Errors
///
/// The first [`ChunkError`] found, with its game and ply.
pub fn verify(bytes: &[u8], caps: &Caps, lease: &Lease<'_>) -> Result<VerifiedChunk, ChunkError> {
    let mut reader = ChunkReader::open(bytes, caps)?;
    check_header(reader.header(), lease)?;
    let mut seen = HashSet::new();
    let mut games = Vec::new();
    let mut searches = SearchCheck::new(lease.work);
    while let Some(replayed) = reader.next_replayed()? {
        let place = games.len() as u32;
        check_game(&replayed, lease, &mut searches).map_err(|error| error.in_game(place))?;
        let game = replayed.game;
        if !seen.insert(game.index) {
            let detail = format!("game {} of the job stands in the chunk twice", game.index);
            return Err(fail(ChunkErrorCode::DuplicateIndex, detail).in_game(place));
        }
        games.push(GameSummary {
            index: game.index,
            end: game.end,
            plies: game.plies.len() as u32,
            fingerprint: fingerprint::of(&game, lease.job, lease.work),
            played_on: resign_params(lease.work).and_then(|params| played_on::judge(&game, params)),
            searches: is_self_play(lease.work).then(|| SearchSums::of(&game)),
            first_positions: game.first_positions(),
            kind: game.kind,
        });
    }
    check_compression(bytes, reader.content_bytes())?;
    let positions = games.iter().map(|game| game.plies).sum();
    Ok(VerifiedChunk {
        header: reader.header().clone(),
        games,
        positions,
    })
}

const fn is_self_play(work: &Work) -> bool {
    matches!(work, Work::SelfPlay { .. })
}

const fn resign_params(work: &Work) -> Option<&ResignParams> {
    match work {
        Work::SelfPlay { params, .. } => params.resign.as_ref(),
        Work::Puzzles { .. } | Work::Match { .. } | Work::Audit { .. } => None,
    }
}

fn fail(code: ChunkErrorCode, detail: impl Into<String>) -> ChunkError {
    ChunkError::new(code, detail)
}

fn check_header(header: &ChunkHeader, lease: &Lease<'_>) -> Result<(), ChunkError> {
    if header.run != *lease.run {
        let detail = format!(
            "the chunk is of run {}, the lease of {}",
            header.run, lease.run
        );
        return Err(fail(ChunkErrorCode::WrongRun, detail));
    }
    if header.job != lease.job {
        let detail = format!(
            "the chunk is of job {}, the lease is {}",
            header.job, lease.job
        );
        return Err(fail(ChunkErrorCode::WrongJob, detail));
    }
    if header.networks != lease.work.networks() {
        let detail = format!(
            "the chunk names {:?}, leased was {:?}",
            header.networks,
            lease.work.networks()
        );
        return Err(fail(ChunkErrorCode::WrongNetworks, detail));
    }
    if header.kind != lease.work.kind() {
        let detail = format!(
            "{} games, leased were {}",
            header.kind.name(),
            lease.work.kind().name()
        );
        return Err(fail(ChunkErrorCode::WrongKind, detail));
    }
    Ok(())
}

/// A frame that is larger than its content has room for anything.
fn check_compression(bytes: &[u8], content: usize) -> Result<(), ChunkError> {
    /// Bytes that a frame and the headers of its blocks need.
    const FRAME: usize = 1024;
    if bytes.len() <= content + FRAME {
        return Ok(());
    }
    let detail = format!("{} bytes for a content of {content}", bytes.len());
    Err(fail(ChunkErrorCode::TooLarge, detail))
}

fn check_game(
    replayed: &Replayed,
    lease: &Lease<'_>,
    searches: &mut SearchCheck,
) -> Result<(), ChunkError> {
    let game = &replayed.game;
    check_identity(game, lease)?;
    let candidate = start::check(game, lease.work)?;
    if let Work::Audit { tasks, .. } = lease.work {
        let task = &tasks[game.index as usize];
        searches.check(replayed, task.first_ply, task.candidate)?;
        return check_audit(game, task);
    }
    check_play_on(game, searches.rules())?;
    check_length(game, searches.rules().ply_limit)?;
    searches.check(replayed, 0, candidate)?;
    check_choice(replayed, searches.rules())?;
    ending::check(replayed, searches.rules(), lease.tables)
}

fn check_identity(game: &GameRecord, lease: &Lease<'_>) -> Result<(), ChunkError> {
    if game.index >= lease.work.games() {
        let detail = format!("game {} of a job of {}", game.index, lease.work.games());
        return Err(fail(ChunkErrorCode::BadIndex, detail));
    }
    let seed = match lease.work {
        Work::Audit { tasks, .. } => tasks[game.index as usize].seed,
        _ => lease.seed.of_game(game.index),
    };
    if game.seed != seed {
        let detail = format!("seed {} is not the one of game {}", game.seed, game.index);
        return Err(fail(ChunkErrorCode::WrongSeed, detail));
    }
    Ok(())
}

/// The seed says which games are played on after a resignation.
fn check_play_on(game: &GameRecord, rules: &GameRules) -> Result<(), ChunkError> {
    let GameKind::SelfPlay { play_on } = game.kind else {
        return Ok(());
    };
    if play_on == rules.draw_play_on(&mut game_rng(game.seed)) {
        return Ok(());
    }
    let detail = format!("`play_on` is {play_on}, and not so by the game's seed");
    Err(fail(ChunkErrorCode::WrongPlayOn, detail))
}

fn check_length(game: &GameRecord, limit: u32) -> Result<(), ChunkError> {
    let plies = game.plies.len();
    let limit = limit as usize;
    if plies == 0 {
        let detail = "no game ends before its first search";
        return Err(fail(ChunkErrorCode::FalseTermination, detail));
    }
    if plies > limit {
        return Err(fail(
            ChunkErrorCode::TooLong,
            format!("{plies} plies, the limit is {limit}"),
        ));
    }
    if game.end.termination == Termination::PlyLimit && plies < limit {
        let detail = format!("the ply limit of {limit} was not reached with {plies}");
        return Err(fail(ChunkErrorCode::FalseTermination, detail));
    }
    Ok(())
}
