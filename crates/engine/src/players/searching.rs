//! A player that searches with an evaluator: a network.

use rookery_common::params::SearchParams;

use super::{Choice, LiveGame, Player, PlayerError};
use crate::evaluator::Evaluator;
use crate::search::{Report, search_positions};

/// Plays the move with most visits. All games are searched side by side, so that every call of the
/// evaluator has a position of each.
#[derive(Debug)]
pub struct SearchingPlayer<E> {
    name: String,
    evaluator: E,
    params: SearchParams,
    visits: u32,
}

impl<E: Evaluator> SearchingPlayer<E> {
    /// A player of this name; `visits` of each move's search, those of `params` are not used. With
    /// one visit it plays the policy's favourite.
    pub const fn new(name: String, evaluator: E, params: SearchParams, visits: u32) -> Self {
        Self {
            name,
            evaluator,
            params,
            visits: if visits == 0 { 1 } else { visits },
        }
    }
}

impl<E: Evaluator> Player for SearchingPlayer<E> {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        let fail = |reason: String| PlayerError {
            player: self.name.clone(),
            reason,
        };
        let histories: Vec<_> = games.iter().map(|game| game.history()).collect();
        let evaluator = &mut self.evaluator;
        let reports = search_positions(&histories, &self.params, self.visits, evaluator)
            .map_err(|error| fail(error.to_string()))?;
        let choose = |report: Report| {
            let m = report
                .best
                .ok_or_else(|| fail("the game is over".to_owned()))?;
            Ok(Choice {
                m,
                value: Some(report.value),
            })
        };
        reports.into_iter().map(choose).collect()
    }
}
