//! The rules of a job's games, with who judges them: endgame tables, an engine, and programs in the place of
//! networks.

use rookery_common::chess::{GameEnd, GameHistory, GameResult, tables};
use rookery_common::chunk::record::PlyRecord;
use rookery_common::network::Program;
use rookery_common::play::GameRules;
use rookery_common::play::ending::adjudicated;
use shakmaty::Color;

use super::job::Work;
use super::judges::Judges;
use crate::search::Settings;

/// The rules of one kind of game, the same for all games of a job.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) game: GameRules,
    pub(super) search: Settings,
    /// The seats of a match, candidate's and opponent's, that have a program instead of a network.
    pub(super) programs: [Option<Program>; 2],
}

impl Rules {
    pub(super) fn new(work: &Work) -> Self {
        let game = match work {
            Work::SelfPlay { params, .. } => GameRules::self_play(params),
            Work::Puzzles { params, .. } => GameRules::puzzles(params),
            Work::Match { params, .. } => GameRules::rivals(params),
            Work::Audit { rules, .. } => GameRules::audit(rules),
        };
        Self {
            search: Settings::new(&game.search),
            game,
            programs: [None; 2],
        }
    }

    /// How the game, which the rules of chess have not ended, ends after these plies, the last of them by
    /// `mover`.
    pub(super) fn stop(
        &self,
        game: &GameHistory,
        plies: &[PlyRecord],
        mover: Color,
        play_on: bool,
        judges: &Judges,
    ) -> Option<GameEnd> {
        self.game
            .resignation(plies, mover, play_on)
            .or_else(|| self.ask_tables(game, judges).map(adjudicated))
            .or_else(|| {
                self.ask_searches(game, plies, mover, judges)
                    .map(adjudicated)
            })
            .or_else(|| self.game.limit(plies.len()))
    }

    /// What endgame tables say of the position.
    fn ask_tables(&self, game: &GameHistory, judges: &Judges) -> Option<GameResult> {
        let (params, tables) = (self.game.tables.as_ref()?, judges.tables.as_ref()?);
        let position = game.position();
        if tables::decide(position, params.pieces) {
            tables.result(position)
        } else {
            None
        }
    }

    /// The winner on whom both sides have agreed for long enough, and the engine with them if it
    /// is to be asked. A program expects nothing, so that it never agrees.
    fn ask_searches(
        &self,
        game: &GameHistory,
        plies: &[PlyRecord],
        mover: Color,
        judges: &Judges,
    ) -> Option<GameResult> {
        if let Some(winner) = self.game.adjudicated_winner(plies, mover) {
            return Some(GameResult::win_of(winner));
        }
        let winner = self.game.winner_to_confirm(plies, mover)?;
        let engine = self.game.adjudication.as_ref()?.engine.as_ref()?;
        let named = judges.referee.as_ref()?.winner(game, engine)?;
        (named == winner).then_some(GameResult::win_of(winner))
    }
}
