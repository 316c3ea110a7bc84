//! Another program as a player.

use rookery_engine::players::{Choice, LiveGame, Player, PlayerError};
use rookery_uci::{Engine, Game, Launch, Limits, UciError};

/// An engine that is asked for a move of one game after the other. It is told each time that this
/// is a new game, so that what it remembers of one does not help it in another.
#[derive(Debug)]
pub struct UciPlayer {
    engine: Engine,
    limits: Limits,
}

impl UciPlayer {
    /// Starts the engine.
    ///
    /// # Errors
    ///
    /// If it does not start or lacks an option.
    pub fn start(launch: &Launch, limits: Limits) -> Result<Self, UciError> {
        let engine = Engine::start(launch)?;
        Ok(Self { engine, limits })
    }

    fn choose_one(&mut self, game: &LiveGame) -> Result<Choice, PlayerError> {
        let told = Game {
            start: game.history().start(),
            moves: game.moves(),
        };
        let answer = self
            .engine
            .new_game()
            .and_then(|()| self.engine.search(told, &self.limits));
        let failed = |reason: String| PlayerError {
            player: self.engine.name().to_owned(),
            reason,
        };
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let m = answer
            .best
            .ok_or_else(|| failed("the game is over".to_owned()))?;
        Ok(Choice { m, value: None })
    }
}

impl Player for UciPlayer {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        games.iter().map(|game| self.choose_one(game)).collect()
    }
}
