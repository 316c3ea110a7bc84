//! What is to be played.

use std::collections::HashSet;

use rookery_common::chess::{GameHistory, StartError};
use rookery_common::chunk::record::{GameStart, Side};
use rookery_common::ids::Seed;
use rookery_common::params::{MatchParams, ParamsError, PuzzleParams, SelfPlayParams};
use rookery_common::puzzle::{PosedPuzzle, Puzzle, PuzzleError};
use shakmaty::Position;

/// A job: games of one kind, played with one set of parameters.
#[derive(Debug, Clone)]
pub struct Job {
    /// The seed from which every game's own follows ([`Seed::of_game`]).
    pub seed: Seed,
    /// The games.
    pub work: Work,
}

/// The games of a job.
#[derive(Debug, Clone)]
pub enum Work {
    /// One network plays itself.
    SelfPlay {
        /// How.
        params: SelfPlayParams,
        /// From where.
        games: Vec<Planned<GameStart>>,
    },
    /// One network plays both sides of puzzles.
    Puzzles {
        /// How.
        params: PuzzleParams,
        /// The puzzles.
        games: Vec<Planned<Puzzle>>,
    },
    /// Two networks play each other: evaluator 0 is the candidate, evaluator 1 its opponent.
    Match {
        /// How.
        params: MatchParams,
        /// The games.
        games: Vec<Planned<MatchGame>>,
    },
}

/// A game to play.
#[derive(Debug, Clone)]
pub struct Planned<G> {
    /// Its place in the job, from which its seed follows; no two games of a job share it.
    pub index: u32,
    /// What to play.
    pub game: G,
}

/// A game of a match.
#[derive(Debug, Clone)]
pub struct MatchGame {
    /// The pair it belongs to.
    pub pair: u32,
    /// The candidate's side.
    pub candidate: Side,
    /// The opening.
    pub start: GameStart,
}

/// A job that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A parameter is out of range.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A game's start is no legal position.
    #[error("game {index}: {source}")]
    Start {
        /// The game.
        index: u32,
        /// What is wrong.
        source: StartError,
    },
    /// A start's move is not legal where it stands.
    #[error("game {index}: move {place} of its start is not legal there")]
    Move {
        /// The game.
        index: u32,
        /// The move's place, from 0.
        place: usize,
    },
    /// A game is over before it begins.
    #[error("game {index}: its start is the end of a game")]
    Over {
        /// The game.
        index: u32,
    },
    /// A puzzle cannot be posed.
    #[error("game {index}: {source}")]
    Puzzle {
        /// The game.
        index: u32,
        /// What is wrong.
        source: PuzzleError,
    },
    /// Two games share an index.
    #[error("game {index} is there twice")]
    Twice {
        /// The index.
        index: u32,
    },
}

/// One game of any kind, checked and set up.
#[derive(Debug, Clone)]
pub(super) struct GamePlan {
    pub(super) index: u32,
    pub(super) start: GameStart,
    /// The game when the first move is to be chosen.
    pub(super) game: GameHistory,
    pub(super) kind: PlanKind,
}

/// What sets a game of one kind apart.
#[derive(Debug, Clone)]
pub(super) enum PlanKind {
    SelfPlay,
    Puzzle {
        id: String,
        puzzle: Box<PosedPuzzle>,
    },
    Match {
        pair: u32,
        candidate: Side,
    },
}

impl Work {
    /// Number of games.
    pub const fn len(&self) -> usize {
        match self {
            Self::SelfPlay { games, .. } => games.len(),
            Self::Puzzles { games, .. } => games.len(),
            Self::Match { games, .. } => games.len(),
        }
    }

    /// Whether there is no game.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many evaluators it takes.
    pub const fn evaluators(&self) -> usize {
        match self {
            Self::SelfPlay { .. } | Self::Puzzles { .. } => 1,
            Self::Match { .. } => 2,
        }
    }

    /// Checks parameters and every game.
    ///
    /// # Errors
    ///
    /// [`JobError`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), JobError> {
        self.plans().map(drop)
    }

    /// Checks parameters, and checks and sets up every game.
    pub(super) fn plans(&self) -> Result<Vec<GamePlan>, JobError> {
        match self {
            Self::SelfPlay { params, .. } => params.check()?,
            Self::Puzzles { params, .. } => params.check()?,
            Self::Match { params, .. } => params.check()?,
        }
        let plans: Vec<_> = (0..self.len())
            .map(|place| self.plan(place))
            .collect::<Result<_, _>>()?;
        let mut indices = HashSet::with_capacity(plans.len());
        match plans.iter().find(|plan| !indices.insert(plan.index)) {
            Some(plan) => Err(JobError::Twice { index: plan.index }),
            None => Ok(plans),
        }
    }

    /// Sets up the game at `place`.
    fn plan(&self, place: usize) -> Result<GamePlan, JobError> {
        match self {
            Self::SelfPlay { games, .. } => {
                let Planned { index, game } = &games[place];
                plan_start(*index, game, PlanKind::SelfPlay)
            }
            Self::Puzzles { games, .. } => plan_puzzle(&games[place]),
            Self::Match { games, .. } => {
                let Planned { index, game } = &games[place];
                let kind = PlanKind::Match {
                    pair: game.pair,
                    candidate: game.candidate,
                };
                plan_start(*index, &game.start, kind)
            }
        }
    }
}

fn plan_start(index: u32, start: &GameStart, kind: PlanKind) -> Result<GamePlan, JobError> {
    let bare = GameStart {
        fen: start.fen.clone(),
        moves: Vec::new(),
    };
    let mut game = bare
        .history()
        .map_err(|source| JobError::Start { index, source })?;
    for (place, m) in start.moves.iter().enumerate() {
        if !game.position().is_legal(*m) {
            return Err(JobError::Move { index, place });
        }
        game.push(*m);
    }
    plan_game(GamePlan {
        index,
        start: start.clone(),
        game,
        kind,
    })
}

fn plan_puzzle(planned: &Planned<Puzzle>) -> Result<GamePlan, JobError> {
    let Planned {
        index,
        game: puzzle,
    } = planned;
    let posed = puzzle.pose().map_err(|source| JobError::Puzzle {
        index: *index,
        source,
    })?;
    let start = GameStart {
        fen: Some(puzzle.fen.clone()),
        moves: posed.setup.clone(),
    };
    let game = posed.game.clone();
    let kind = PlanKind::Puzzle {
        id: puzzle.id.clone(),
        puzzle: Box::new(posed),
    };
    plan_game(GamePlan {
        index: *index,
        start,
        game,
        kind,
    })
}

fn plan_game(plan: GamePlan) -> Result<GamePlan, JobError> {
    if plan.game.end().is_some() {
        Err(JobError::Over { index: plan.index })
    } else {
        Ok(plan)
    }
}
