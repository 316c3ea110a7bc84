//! When the job's rules end a game that the rules of chess have not ended.

use shakmaty::Color;

use super::rules::GameRules;
use crate::chess::{GameEnd, GameResult, Termination};
use crate::chunk::record::PlyRecord;
use crate::params::AdjudicationParams;

impl GameRules {
    /// The resignation with which a game ends after these plies, the last of them by `mover`: who found the
    /// position lost gives up once the move is made, but never with the game's first search.
    pub fn resignation(&self, plies: &[PlyRecord], mover: Color, play_on: bool) -> Option<GameEnd> {
        let resign = self
            .resign
            .as_ref()
            .filter(|_| !play_on && plies.len() > 1)?;
        let last = plies.last()?;
        resign.is_lost(last.root_q, last.best_q).then(|| GameEnd {
            result: GameResult::win_of(!mover),
            termination: Termination::Resignation,
        })
    }

    /// The winner on whom the searches of the last plies have agreed, the last of them by `mover`, where that alone ends
    /// the game.
    pub fn adjudicated_winner(&self, plies: &[PlyRecord], mover: Color) -> Option<Color> {
        let params = self.adjudication.as_ref()?;
        if params.engine.is_some() {
            return None;
        }
        agreed_winner(plies, mover, params)
    }

    /// The winner on whom the last plies have agreed, where an engine is asked now whether it agrees: at
    /// first, and again after as many plies.
    pub fn winner_to_confirm(&self, plies: &[PlyRecord], mover: Color) -> Option<Color> {
        let params = self.adjudication.as_ref()?;
        if params.engine.is_none() || !plies.len().is_multiple_of(params.plies as usize) {
            return None;
        }
        agreed_winner(plies, mover, params)
    }

    /// The draw of a game that has come to the ply limit.
    pub fn limit(&self, plies: usize) -> Option<GameEnd> {
        (plies >= self.ply_limit as usize).then_some(GameEnd::draw(Termination::PlyLimit))
    }
}

fn agreed_winner(plies: &[PlyRecord], mover: Color, params: &AdjudicationParams) -> Option<Color> {
    let last = plies.len().checked_sub(params.plies as usize)?;
    let values = plies[last..].iter().rev().enumerate().map(|(back, ply)| {
        // As the last mover sees it.
        if back % 2 == 0 {
            ply.root_q
        } else {
            -ply.root_q
        }
    });
    if values.clone().all(|q| q >= params.win_value) {
        Some(mover)
    } else if values.clone().all(|q| q <= -params.win_value) {
        Some(!mover)
    } else {
        None
    }
}

/// An adjudicated game's end.
pub const fn adjudicated(result: GameResult) -> GameEnd {
    GameEnd {
        result,
        termination: Termination::Adjudication,
    }
}
