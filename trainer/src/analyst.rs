//! An engine that says what positions are worth: it comments on games ([`warm::annotate`](crate::warm::annotate))
//! and judges searches ([`judge`](crate::judge)).

use rookery_common::pgn::Evaluation;
use rookery_uci::{Engine, Game, Launch, Limits, Score};
use shakmaty::{Chess, Move, Position};

/// Megabytes of its hash table: a few thousand nodes need no more.
const HASH: &str = "4";

/// A running engine with a fixed number of nodes for each position.
#[derive(Debug)]
pub struct Analyst {
    engine: Engine,
    limits: Limits,
    name: String,
}

/// What it says of a position.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    /// What the position is worth, if the engine said so.
    pub evaluation: Option<Evaluation>,
    /// The best move.
    pub best: Option<Move>,
}

impl Analyst {
    /// Starts the engine, which searches so many nodes a position on one processor core.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(launch: &Launch, nodes: u64) -> anyhow::Result<Self> {
        let mut engine = Engine::start(launch)?;
        for (option, value) in [("Threads", "1"), ("Hash", HASH)] {
            if engine.option(option).is_some() {
                engine.set_option(option, value)?;
            }
        }
        Ok(Self {
            name: format!("{}, {nodes} nodes a position", engine.name()),
            limits: Limits::nodes(nodes),
            engine,
        })
    }

    /// The engine's name with its nodes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells the engine that what follows has nothing to do with what it was asked before.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn new_game(&mut self) -> anyhow::Result<()> {
        Ok(self.engine.new_game()?)
    }

    /// Asks for the position that `moves` lead to from `start`. It must not be the end of a game.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn ask(&mut self, start: &Chess, moves: &[Move]) -> anyhow::Result<Finding> {
        let answer = self.engine.search(Game { start, moves }, &self.limits)?;
        let white_to_move = start.turn().is_white() == moves.len().is_multiple_of(2);
        let for_white = |own: i32| {
            if white_to_move {
                own
            } else {
                own.saturating_neg()
            }
        };
        let evaluation = answer.info.score.map(|score| match score {
            Score::Centipawns(cp) => Evaluation::Centipawns(for_white(cp)),
            Score::Mate(moves) => Evaluation::Mate(for_white(moves)),
        });
        Ok(Finding {
            evaluation,
            best: answer.best,
        })
    }
}
