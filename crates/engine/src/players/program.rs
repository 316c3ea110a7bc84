//! A program that everybody has, as a player.

use rookery_common::chess::GameHistory;
use rookery_common::network::Program;
use shakmaty::Move;

use super::alpha_beta::AlphaBeta;
use super::random::RandomMover;
use super::{Choice, LiveGame, Player, PlayerError};

/// Plays as its program does. Its moves follow from the seed, the position with its history and the
/// number of moves before it, whoever asks and in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramPlayer {
    program: Program,
    seed: u64,
}

impl ProgramPlayer {
    /// A player with this seed, which only random programs use.
    pub const fn new(program: Program, seed: u64) -> Self {
        Self { program, seed }
    }

    /// The move that is played in a position; nothing where there is no legal move.
    pub fn pick(&self, game: &GameHistory) -> Option<Move> {
        match self.program {
            Program::Random => RandomMover::new(self.seed).pick(game),
            Program::AlphaBeta { depth, random } => {
                let by_chance = RandomMover::new(self.seed).pick_sometimes(game, random);
                let found = || AlphaBeta::new(depth).search(game).map(|found| found.m);
                by_chance.or_else(found)
            }
        }
    }
}

impl Player for ProgramPlayer {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        let choose = |game: &&LiveGame| {
            let m = self.pick(game.history()).ok_or_else(|| PlayerError {
                player: self.program.to_string(),
                reason: "the game is over".to_owned(),
            })?;
            Ok(Choice { m, value: None })
        };
        games.iter().map(choose).collect()
    }
}
