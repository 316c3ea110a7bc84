//! A chunk as JSON, as `rookery-coordinator chunk inspect --json` prints it.

use serde::{Deserialize, Serialize};

use super::super::decode::ChunkHeader;
use super::super::record::{Effort, GameKind, GameRecord, Side};
use crate::chess::moves::{canonical_moves, castling_mode, uci};
use crate::chess::{GameResult, StartError, Termination, fen};
use crate::ids::{ContentHash, JobId, RunName, Seed};
use crate::protocol::jobs::{Backend, WorkKind};

/// A whole chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChunkJson {
    /// Searched positions in all.
    pub positions: usize,
    /// The run.
    pub run: RunName,
    /// The job.
    pub job: JobId,
    /// The networks: the only one, or the candidate and its opponent.
    pub networks: Vec<ContentHash>,
    /// The worker's program version.
    pub worker_version: String,
    /// Where evaluations were computed.
    pub backend: Backend,
    /// What the games were played for.
    pub kind: WorkKind,
    /// The games.
    pub games: Vec<GameJson>,
}

/// One game.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameJson {
    /// Which game of its job it is.
    pub index: u32,
    /// What it was played for.
    pub kind: WorkKind,
    /// The seed of its random choices.
    pub seed: Seed,
    /// The start position as FEN.
    pub start: String,
    /// Moves from there that were not searched, in UCI.
    pub opening: Vec<String>,
    /// The searched moves, in UCI.
    pub moves: Vec<String>,
    /// Who won.
    pub result: GameResult,
    /// Why it ended.
    pub termination: Termination,
    /// Of a self-play game: it would be played on after a resignation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub play_on: Option<bool>,
    /// Of a puzzle game: the puzzle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub puzzle: Option<String>,
    /// Of a puzzle game: whether it was solved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solved: Option<bool>,
    /// Of a match game: the pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<u32>,
    /// Of a match game: the candidate's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Side>,
    /// The searches, one for each of `moves`.
    pub plies: Vec<PlyJson>,
}

/// One search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlyJson {
    /// Whether it was full or fast.
    pub effort: Effort,
    /// The root's value for the mover.
    pub root_q: f32,
    /// The root's probability of a draw.
    pub root_draw: f32,
    /// The value of the move with most visits.
    pub best_q: f32,
    /// Visited moves in UCI with their visits, in canonical order.
    pub visits: Vec<(String, u32)>,
    /// Weights of the policy target where it is not the visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<(String, u16)>>,
}

/// A chunk as JSON.
///
/// # Errors
///
/// [`StartError`] if a game's start is not a position; in games read from a chunk it
/// always is one.
pub fn chunk(header: &ChunkHeader, games: &[GameRecord]) -> Result<ChunkJson, StartError> {
    Ok(ChunkJson {
        positions: games.iter().map(|game| game.plies.len()).sum(),
        run: header.run.clone(),
        job: header.job,
        networks: header.networks.clone(),
        worker_version: header.worker_version.clone(),
        backend: header.backend,
        kind: header.kind,
        games: games
            .iter()
            .map(|record| game(record, header.kind))
            .collect::<Result<_, _>>()?,
    })
}

fn game(record: &GameRecord, kind: WorkKind) -> Result<GameJson, StartError> {
    let start = record.start.origin()?;
    let mode = castling_mode(start.position());
    let mut history = start.clone();
    let mut text = |m| {
        history.push(m);
        uci(m, mode)
    };
    let opening = record.start.moves.iter().map(|m| text(*m)).collect();
    let moves = record.plies.iter().map(|ply| text(ply.played)).collect();
    let mut json = GameJson {
        index: record.index,
        kind,
        seed: record.seed,
        start: fen(start.position()),
        opening,
        moves,
        result: record.end.result,
        termination: record.end.termination,
        play_on: None,
        puzzle: None,
        solved: None,
        pair: None,
        candidate: None,
        plies: plies(record, mode)?,
    };
    match &record.kind {
        GameKind::SelfPlay { play_on } => json.play_on = Some(*play_on),
        GameKind::Puzzle { puzzle, solved } => {
            (json.puzzle, json.solved) = (Some(puzzle.clone()), Some(*solved));
        }
        GameKind::Match { pair, candidate } => {
            (json.pair, json.candidate) = (Some(*pair), Some(*candidate));
        }
        GameKind::Audit { .. } => {}
    }
    Ok(json)
}

fn plies(record: &GameRecord, mode: shakmaty::CastlingMode) -> Result<Vec<PlyJson>, StartError> {
    let mut history = record.start.history()?;
    let mut plies = Vec::with_capacity(record.plies.len());
    for ply in &record.plies {
        let legal = canonical_moves(history.position());
        let texts = || legal.iter().map(|m| uci(*m, mode));
        plies.push(PlyJson {
            effort: ply.effort,
            root_q: ply.root_q,
            root_draw: ply.root_draw,
            best_q: ply.best_q,
            visits: texts()
                .zip(ply.visits.iter().copied())
                .filter(|(_, n)| *n > 0)
                .collect(),
            target: ply.target.as_ref().map(|target| {
                texts()
                    .zip(target.iter().copied())
                    .filter(|(_, w)| *w > 0)
                    .collect()
            }),
        });
        history.push(ply.played);
    }
    Ok(plies)
}
