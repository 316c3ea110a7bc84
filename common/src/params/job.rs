//! Parameters of the three kinds of games.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ending::{self, AdjudicationParams, TableParams};
use super::range::{ParamsError, inside, within};
use super::search::{SearchParams, Temperature};

/// How self-play games are played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SelfPlayParams {
    /// The search of every move.
    pub search: SearchParams,
    /// How moves are sampled from visits.
    pub temperature: Temperature,
    /// Share of moves searched with all visits; the others get `fast_visits`, no noise, and give
    /// no policy target (playout-cap randomisation, KataGo). 0.01 to 1, which searches all fully.
    pub full_search_share: f32,
    /// Visits of a fast search, 2 to 100,000.
    pub fast_visits: u32,
    /// Whether subtrees are kept from move to move.
    pub reuse_tree: bool,
    /// Plies after which a game is a draw, 10 to 1,000.
    pub ply_limit: u32,
    /// Share of games that begin at a line of the run's opening book, 0 to 1; the others
    /// begin at the standard position.
    pub book_share: f32,
    /// Random plies sampled from the network's policy before the first search, and after the book's
    /// moves, 0 to 40: variety of openings.
    pub opening_plies: u32,
    /// Whether and when a lost game is given up.
    pub resign: Option<ResignParams>,
    /// When a game that both sides' searches call won is ended early.
    pub adjudication: Option<AdjudicationParams>,
    /// Whether workers that have endgame tables end games by them.
    pub tables: Option<TableParams>,
}

impl Default for SelfPlayParams {
    fn default() -> Self {
        Self {
            search: SearchParams::default(),
            temperature: Temperature::default(),
            full_search_share: 1.0,
            fast_visits: 16,
            reuse_tree: true,
            ply_limit: 450,
            book_share: 0.0,
            opening_plies: 0,
            resign: None,
            adjudication: None,
            tables: None,
        }
    }
}

/// When a game is given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ResignParams {
    /// The mover resigns when the root value and the best move's value are both below this,
    /// -1 to 0.
    pub threshold: f32,
    /// Share of games that are played on, 0 to 1, to measure how often resigning is wrong.
    pub play_on_share: f32,
}

impl Default for ResignParams {
    fn default() -> Self {
        Self {
            threshold: -0.95,
            play_on_share: 0.1,
        }
    }
}

impl ResignParams {
    /// Whether a mover gives up whose search ends with these values of the root and of the best
    /// move.
    pub fn is_lost(&self, root_q: f32, best_q: f32) -> bool {
        root_q < self.threshold && best_q < self.threshold
    }
}

/// How puzzle games are played: both sides by the network, from the puzzle's position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PuzzleParams {
    /// The search of every move.
    pub search: SearchParams,
    /// Moves are sampled with this temperature; 0 plays the best move. A puzzle's solver always
    /// plays its best move, so that the score is the network's.
    pub temperature: Temperature,
    /// Plies after which a game that did not end is a draw, 2 to 1,000.
    pub ply_limit: u32,
}

impl Default for PuzzleParams {
    fn default() -> Self {
        Self {
            search: SearchParams::default(),
            temperature: Temperature::NONE,
            ply_limit: 20,
        }
    }
}

/// How match games are played: best move by visits, no noise, openings from a book.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MatchParams {
    /// The search of every move; its noise is not used.
    pub search: SearchParams,
    /// How moves are sampled from visits; 0 plays the move with most visits.
    pub temperature: Temperature,
    /// Plies after which a game is a draw, 10 to 1,000.
    pub ply_limit: u32,
    /// When a decided game is ended early.
    pub adjudication: Option<AdjudicationParams>,
    /// Whether workers that have endgame tables end games by them.
    pub tables: Option<TableParams>,
}

impl Default for MatchParams {
    fn default() -> Self {
        Self {
            search: SearchParams {
                noise: None,
                ..SearchParams::default()
            },
            temperature: Temperature::NONE,
            ply_limit: 300,
            adjudication: None,
            tables: None,
        }
    }
}

impl SelfPlayParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        inside("search", self.search.check())?;
        inside("temperature", self.temperature.check())?;
        within("full_search_share", self.full_search_share, 0.01, 1.0)?;
        within("fast_visits", self.fast_visits, 2.0, 100_000.0)?;
        within("ply_limit", self.ply_limit, 10.0, 1000.0)?;
        within("opening_plies", self.opening_plies, 0.0, 40.0)?;
        within("book_share", self.book_share, 0.0, 1.0)?;
        if let Some(resign) = &self.resign {
            within("resign.threshold", resign.threshold, -1.0, 0.0)?;
            within("resign.play_on_share", resign.play_on_share, 0.0, 1.0)?;
        }
        ending::check(self.adjudication.as_ref(), self.tables.as_ref())
    }
}

impl PuzzleParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        inside("search", self.search.check())?;
        inside("temperature", self.temperature.check())?;
        within("ply_limit", self.ply_limit, 2.0, 1000.0)
    }
}

impl MatchParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        inside("search", self.search.check())?;
        inside("temperature", self.temperature.check())?;
        within("ply_limit", self.ply_limit, 10.0, 1000.0)?;
        ending::check(self.adjudication.as_ref(), self.tables.as_ref())
    }
}
