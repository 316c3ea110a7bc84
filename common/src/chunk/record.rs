//! Games in memory: what the engine produces, chunks carry, and the trainer learns from.

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move, Position as _};
use utoipa::ToSchema;

use crate::chess::{GameEnd, GameHistory, StartError};
use crate::ids::Seed;

/// A finished game.
#[derive(Debug, Clone, PartialEq)]
pub struct GameRecord {
    /// Which game of its job this is, from 0; no two games of a job share it.
    pub index: u32,
    /// What it was played for.
    pub kind: GameKind,
    /// The seed of its random choices.
    pub seed: Seed,
    /// Where it began.
    pub start: GameStart,
    /// The searched plies after the start's own moves.
    pub plies: Vec<PlyRecord>,
    /// How it ended.
    pub end: GameEnd,
}

/// Plies by which openings are named.
const OPENING_PLIES: usize = 12;

impl GameRecord {
    /// Its positions from where it began over its first twelve plies, given ones and searched ones; none if its
    /// start is no position.
    pub fn first_positions(&self) -> Vec<Chess> {
        let Ok(origin) = self.start.origin() else {
            return Vec::new();
        };
        let given = self.start.moves.iter().copied();
        let moves = given.chain(self.plies.iter().map(|ply| ply.played));
        let mut positions = vec![origin.position().clone()];
        for m in moves.take(OPENING_PLIES) {
            let mut position = positions[positions.len() - 1].clone();
            position.play_unchecked(m);
            positions.push(position);
        }
        positions
    }
}

/// What a game was played for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GameKind {
    /// Training data: one network plays itself.
    SelfPlay {
        /// Whether this game would be played on after a resignation, to measure false positives.
        play_on: bool,
    },
    /// Training data and a measure of strength: one network plays itself from a puzzle.
    Puzzle {
        /// The puzzle's identifier in its set.
        puzzle: String,
        /// Whether the side to move at the start found the solution.
        solved: bool,
    },
    /// A game between two networks.
    Match {
        /// The pair: two games from one opening with colours swapped.
        pair: u32,
        /// Which side the candidate (the match's first network) has.
        candidate: Side,
    },
    /// Searches of another contributor's game, made again. It begins where the first of them does
    /// and ends with the last as if that were the ply limit, unless the rules end it there.
    Audit {
        /// For each search the move that follows from it, whatever was played: where the move is drawn from
        /// the visits, which anybody can do, the one that was played. Before them those that the policy
        /// draws in the place of the start's last moves, if the task asks for it.
        chosen: Vec<Move>,
    },
}

/// A side of the board, for the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// White.
    White,
    /// Black.
    Black,
}

impl From<shakmaty::Color> for Side {
    fn from(color: shakmaty::Color) -> Self {
        color.fold_wb(Self::White, Self::Black)
    }
}

impl From<Side> for shakmaty::Color {
    fn from(side: Side) -> Self {
        match side {
            Side::White => Self::White,
            Side::Black => Self::Black,
        }
    }
}

/// Where a game began: a position and moves that were given or chosen without search (a book
/// line, a puzzle's first move, a random opening). They are history for the encodings, and no
/// training positions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GameStart {
    /// The position as FEN; `None` is the standard start.
    pub fen: Option<String>,
    /// Moves from there, legal one after the other.
    pub moves: Vec<Move>,
}

impl GameStart {
    /// The game as it stands when the first search begins.
    ///
    /// # Errors
    ///
    /// If the FEN is bad. Moves are played as they are: the maker of a start has checked them.
    pub fn history(&self) -> Result<GameHistory, StartError> {
        let mut game = self.origin()?;
        self.moves.iter().for_each(|m| game.push(*m));
        Ok(game)
    }

    /// The game before the first of the moves.
    ///
    /// # Errors
    ///
    /// If the FEN is bad.
    pub fn origin(&self) -> Result<GameHistory, StartError> {
        match &self.fen {
            Some(fen) => GameHistory::from_fen(fen),
            None => Ok(GameHistory::default()),
        }
    }
}

/// One ply: a move and the search that chose it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlyRecord {
    /// The move played.
    pub played: Move,
    /// Whether the search was full or fast.
    pub effort: Effort,
    /// Visits of each legal move, in canonical order.
    pub visits: Vec<u32>,
    /// The policy target where it is not the visit distribution (Gumbel's improved policy, pruned
    /// forced playouts): weights of the legal moves in canonical order, not all zero.
    pub target: Option<Vec<u16>>,
    /// The root's value for the mover, -1 to 1: the mean over the visits, but of a Gumbel search what its
    /// improved policy expects.
    pub root_q: f32,
    /// The root's probability of a draw, 0 to 1.
    pub root_draw: f32,
    /// The value of the move with most visits, for the mover, -1 to 1.
    pub best_q: f32,
}

/// Values are recorded in thousandths, and everything that follows from one follows from the recorded one.
const VALUE_UNITS: f32 = 1000.0;

/// A value from -1 to 1 in thousandths.
pub(super) fn to_thousandths(value: f32) -> i32 {
    (value.clamp(-1.0, 1.0) * VALUE_UNITS).round() as i32
}

/// A value from its thousandths.
pub(super) fn from_thousandths(units: i32) -> f32 {
    units as f32 / VALUE_UNITS
}

impl PlyRecord {
    /// A move after a full search that found nothing: no visits, and values of 0.
    pub const fn new(played: Move) -> Self {
        Self {
            played,
            effort: Effort::Full,
            visits: Vec::new(),
            target: None,
            root_q: 0.0,
            root_draw: 0.0,
            best_q: 0.0,
        }
    }

    /// A value from -1 to 1 as it is recorded.
    pub fn recorded(value: f32) -> f32 {
        from_thousandths(to_thousandths(value))
    }

    /// Whether this is how a search is recorded whose result is proven: one visit, of the move that wins or
    /// that resists longest, and the values of the result.
    pub fn is_decided(&self) -> bool {
        let visits: u64 = self.visits.iter().map(|n| u64::from(*n)).sum();
        let values = (self.root_q, self.root_draw, self.best_q);
        visits == 1 && (values == (1.0, 0.0, 1.0) || values == (-1.0, 0.0, -1.0))
    }

    /// The policy target's weights in canonical order: the target, or else the visits.
    pub fn policy_weights(&self) -> Vec<f32> {
        match &self.target {
            Some(target) => target.iter().map(|w| f32::from(*w)).collect(),
            None => self.visits.iter().map(|n| *n as f32).collect(),
        }
    }
}

/// How much a ply's search was given (playout-cap randomisation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// All visits: the ply gives a policy target.
    Full,
    /// Few visits, only to go on: no policy target.
    Fast,
}
