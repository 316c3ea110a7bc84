//! What is to be played.

use std::collections::HashSet;

use rookery_common::chess::{GameHistory, StartError};
use rookery_common::chunk::record::{GameStart, Side};
use rookery_common::ids::Seed;
use rookery_common::params::{MatchParams, ParamsError, PuzzleParams, SelfPlayParams};
use rookery_common::protocol::audits::{AuditTask, AuditedRules};
use rookery_common::protocol::jobs::OpeningError;
use rookery_common::puzzle::{PosedPuzzle, Puzzle, PuzzleError};
use shakmaty::{Move, Position};

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
    /// Searches of games that were played before are made again, each followed by the move that
    /// was played then.
    Audit {
        /// How the games were played.
        rules: AuditedRules,
        /// The searches.
        games: Vec<Planned<AuditedGame>>,
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

/// Consecutive searches of a game that was played before.
#[derive(Debug, Clone)]
pub struct AuditedGame {
    /// The game's own seed.
    pub seed: Seed,
    /// The game up to the first search.
    pub start: GameStart,
    /// How many of the start's moves were searched.
    pub first_ply: u32,
    /// How many of the start's last moves were drawn from the bare policy, and are drawn again.
    pub drawn: u32,
    /// The moves that were played, one for each search.
    pub moves: Vec<Move>,
    /// Of a match game: the candidate's side.
    pub candidate: Option<Side>,
}

impl AuditedGame {
    /// The searches that a task asks for.
    ///
    /// # Errors
    ///
    /// [`OpeningError`] if a position or a move is not legal.
    pub fn of(task: &AuditTask) -> Result<Self, OpeningError> {
        let (start, moves) = task.parse()?;
        Ok(Self {
            seed: task.seed,
            start,
            first_ply: task.first_ply,
            drawn: task.drawn,
            moves,
            candidate: task.candidate,
        })
    }
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
    /// An audited game has no move, or one that is not legal where it stands, or that follows the
    /// end of the game.
    #[error("game {index}: move {place} to be searched again cannot be played there")]
    Audited {
        /// The game.
        index: u32,
        /// The move's place, from 0.
        place: usize,
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
    /// Its own seed, where it does not follow from the job's.
    pub(super) seed: Option<Seed>,
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
    Audit {
        first_ply: u32,
        /// The moves before the first search that are drawn again, the last first.
        drawn: Vec<Move>,
        /// The moves to be played, the last first.
        moves: Vec<Move>,
        candidate: Option<Side>,
    },
}

impl Work {
    /// Number of games.
    pub const fn len(&self) -> usize {
        match self {
            Self::SelfPlay { games, .. } => games.len(),
            Self::Puzzles { games, .. } => games.len(),
            Self::Match { games, .. } => games.len(),
            Self::Audit { games, .. } => games.len(),
        }
    }

    /// Whether there is no game.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many evaluators it takes.
    pub fn evaluators(&self) -> usize {
        match self {
            Self::SelfPlay { .. } | Self::Puzzles { .. } => 1,
            Self::Match { .. } => 2,
            Self::Audit { rules, .. } => rules.networks().len(),
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
            Self::Audit { rules, .. } => rules.check()?,
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
            Self::Audit { rules, games } => {
                let mut plan = plan_audit(&games[place])?;
                if let PlanKind::Audit { candidate, .. } = &mut plan.kind
                    && rules.networks().len() == 1
                {
                    *candidate = None;
                }
                Ok(plan)
            }
        }
    }
}

fn plan_start(index: u32, start: &GameStart, kind: PlanKind) -> Result<GamePlan, JobError> {
    let mut game = start
        .origin()
        .map_err(|source| JobError::Start { index, source })?;
    for (place, m) in start.moves.iter().enumerate() {
        if !game.position().is_legal(*m) {
            return Err(JobError::Move { index, place });
        }
        game.push(*m);
    }
    plan_game(GamePlan {
        index,
        seed: None,
        start: start.clone(),
        game,
        kind,
    })
}

fn plan_audit(planned: &Planned<AuditedGame>) -> Result<GamePlan, JobError> {
    let Planned { index, game: task } = planned;
    let (first_ply, candidate) = (task.first_ply, task.candidate);
    let mut start = task.start.clone();
    let given = start.moves.len().saturating_sub(task.drawn as usize);
    let mut drawn = start.moves.split_off(given);
    drawn.reverse();
    let kind = PlanKind::Audit {
        first_ply,
        moves: task.moves.iter().rev().copied().collect(),
        candidate,
        drawn,
    };
    let whole = plan_start(*index, &task.start, kind.clone())?;
    let plan = plan_start(*index, &start, kind)?;
    let mut game = whole.game;
    let refuse = |place| JobError::Audited {
        index: *index,
        place,
    };
    if task.moves.is_empty() {
        return Err(refuse(0));
    }
    for (place, m) in task.moves.iter().enumerate() {
        if game.end().is_some() || !game.position().is_legal(*m) {
            return Err(refuse(place));
        }
        game.push(*m);
    }
    Ok(GamePlan {
        seed: Some(task.seed),
        ..plan
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
        seed: None,
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
