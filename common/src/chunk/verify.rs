//! A chunk against what was leased: nothing that a volunteer says is believed.
//!
//! Reading a chunk already shows that it is small enough, well-formed, and that every game is
//! chess. Here each game is compared with its job: the run, networks and kind, its index and seed,
//! where it begins, how much it searched, how it may end, and its puzzle or pair.

use std::collections::HashSet;

mod audit;
mod choice;

use audit::check_audit;
use choice::{Sampling, check_best_played};

use super::decode::{ChunkHeader, ChunkReader};
use super::ending::{self, AllowedEndings};
use super::error::{ChunkError, ChunkErrorCode};
use super::played_on::{self, PlayedOn};
use super::record::{Effort, GameKind, GameRecord, PlyRecord, Side};
use super::searches::SearchSums;
use super::{Caps, fingerprint};
use crate::chess::{EndgameTables, GameEnd, Termination};
use crate::ids::{JobId, RunName, Seed};
use crate::params::{ResignParams, RootSearch, SearchParams};
use crate::protocol::jobs::{Opening, Work, selfplay_start};

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
    while let Some(game) = reader.next_game()? {
        let place = games.len() as u32;
        check_game(&game, lease).map_err(|error| error.in_game(place))?;
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
            kind: game.kind,
        });
    }
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

fn check_game(game: &GameRecord, lease: &Lease<'_>) -> Result<(), ChunkError> {
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
    match lease.work {
        Work::SelfPlay {
            params, openings, ..
        } => {
            check_selfplay_start(game, openings, params.opening_plies)?;
            check_length(game, params.ply_limit)?;
            check_searches(
                game,
                &params.search,
                Some((params.fast_visits, params.full_search_share)),
            )?;
            ending::check(
                game,
                &AllowedEndings::of_self_play(game, params),
                lease.tables,
            )
        }
        Work::Puzzles {
            puzzles, params, ..
        } => {
            check_puzzle(game, &puzzles[game.index as usize])?;
            check_length(game, params.ply_limit)?;
            check_searches(game, &params.search, None)?;
            check_best_played(game, &params.temperature, Sampling::EverySecond)?;
            ending::check(game, &AllowedEndings::default(), None)
        }
        Work::Match { pairs, params, .. } => {
            check_pair(game, pairs)?;
            check_length(game, params.ply_limit)?;
            check_searches(game, &params.search, None)?;
            check_best_played(game, &params.temperature, Sampling::Every)?;
            ending::check(game, &AllowedEndings::of_match(params), lease.tables)
        }
        Work::Audit { rules, tasks } => check_audit(game, rules, &tasks[game.index as usize]),
    }
}

/// A game begins at its opening, after which there may be random plies.
fn check_selfplay_start(
    game: &GameRecord,
    openings: &[Opening],
    opening_plies: u32,
) -> Result<(), ChunkError> {
    let wrong = |detail: String| fail(ChunkErrorCode::WrongStart, detail);
    let start = selfplay_start(openings, game.index).map_err(|error| wrong(error.to_string()))?;
    let random = game.start.moves.strip_prefix(start.moves.as_slice());
    match random {
        Some(random) if game.start.fen == start.fen => {
            if random.len() > opening_plies as usize {
                let detail = format!(
                    "{} random opening plies, leased were {opening_plies}",
                    random.len()
                );
                return Err(wrong(detail));
            }
            Ok(())
        }
        _ => {
            let detail = format!("self-play game {} does not begin where leased", game.index);
            Err(wrong(detail))
        }
    }
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

/// `fast` is the visits of fast searches and the share of full ones, where the job has fast ones.
fn check_searches(
    game: &GameRecord,
    search: &SearchParams,
    fast: Option<(u32, f32)>,
) -> Result<(), ChunkError> {
    for (ply, record) in game.plies.iter().enumerate() {
        let limit = match (record.effort, fast) {
            (Effort::Full, _) => search.visits,
            (Effort::Fast, Some((visits, share))) if share < 1.0 => visits,
            (Effort::Fast, _) => {
                let detail = "the job has no fast searches";
                return Err(fail(ChunkErrorCode::TooManyVisits, detail).at_ply(ply));
            }
        };
        check_visits(record, limit)
            .and_then(|()| check_target(record, search))
            .map_err(|error| error.at_ply(ply))?;
    }
    Ok(())
}

fn check_visits(record: &PlyRecord, limit: u32) -> Result<(), ChunkError> {
    let sum: u64 = record.visits.iter().map(|n| u64::from(*n)).sum();
    if sum > u64::from(limit) {
        let detail = format!("{sum} visits, the limit is {limit}");
        return Err(fail(ChunkErrorCode::TooManyVisits, detail));
    }
    Ok(())
}

/// The policy target stands beside the visits just where the search gives another one than they.
fn check_target(record: &PlyRecord, search: &SearchParams) -> Result<(), ChunkError> {
    let expected = record.effort == Effort::Full && search.has_target();
    let bad = |detail: &str| Err(fail(ChunkErrorCode::BadTarget, detail));
    match &record.target {
        Some(_) if !expected => bad("the search's visits are its policy target"),
        None if expected => bad("the policy target is missing"),
        Some(target) if search.root == RootSearch::Puct => {
            let mut pairs = target.iter().zip(&record.visits);
            if pairs.any(|(weight, visits)| u32::from(*weight) > *visits) {
                return bad("a move has more weight than it had visits before pruning");
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_puzzle(game: &GameRecord, puzzle: &crate::puzzle::Puzzle) -> Result<(), ChunkError> {
    let posed = puzzle
        .pose()
        .map_err(|e| fail(ChunkErrorCode::WrongStart, e.to_string()))?;
    let same_start = game.start.fen.as_deref() == Some(puzzle.fen.as_str());
    if !same_start || game.start.moves != posed.setup {
        let detail = format!("the game does not begin at puzzle {}", puzzle.id);
        return Err(fail(ChunkErrorCode::WrongStart, detail));
    }
    let played: Vec<_> = game.plies.iter().map(|ply| ply.played).collect();
    let expected = GameKind::Puzzle {
        puzzle: puzzle.id.clone(),
        solved: posed.solved_by(&played),
    };
    if game.kind == expected {
        Ok(())
    } else {
        let detail = format!("claimed {:?}, replayed {expected:?}", game.kind);
        Err(fail(ChunkErrorCode::FalseSolution, detail))
    }
}

fn check_pair(
    game: &GameRecord,
    pairs: &[crate::protocol::jobs::PairTask],
) -> Result<(), ChunkError> {
    let task = &pairs[game.index as usize / 2];
    let candidate = if game.index.is_multiple_of(2) {
        Side::White
    } else {
        Side::Black
    };
    let expected = GameKind::Match {
        pair: task.pair,
        candidate,
    };
    if game.kind != expected {
        let detail = format!("claimed {:?}, leased was {expected:?}", game.kind);
        return Err(fail(ChunkErrorCode::WrongPair, detail));
    }
    let start = task
        .opening
        .start()
        .map_err(|detail| fail(ChunkErrorCode::WrongStart, detail.to_string()))?;
    if game.start == start {
        Ok(())
    } else {
        let detail = format!(
            "the game does not begin at the opening of pair {}",
            task.pair
        );
        Err(fail(ChunkErrorCode::WrongStart, detail))
    }
}
