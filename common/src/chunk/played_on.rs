//! How often resigning would have been wrong, from games that were played on.

use super::record::{GameKind, GameRecord, PlyRecord};
use crate::names::names;
use crate::params::ResignParams;
use shakmaty::Color;

names! {
    /// What a game that was played on says of resigning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum PlayedOn {
        /// Neither side would have resigned.
        NeverResigned = "never-resigned",
        /// Who would have resigned first lost in the end.
        Right = "right",
        /// Who would have resigned first drew or won: a false positive.
        Wrong = "wrong",
    }
}

/// Compares resigning with what came of playing on; nothing for a game that was not to be played
/// on.
pub fn judge(game: &GameRecord, params: &ResignParams) -> Option<PlayedOn> {
    if game.kind != (GameKind::SelfPlay { play_on: true }) {
        return None;
    }
    let first = game.start.history().ok()?.turn();
    let lost = |record: &PlyRecord| params.is_lost(record.root_q, record.best_q);
    // The first ply is played even where its search would resign: a game without plies is refused.
    let resigned = game.plies.iter().skip(1).position(lost);
    Some(match resigned {
        None => PlayedOn::NeverResigned,
        Some(place) => {
            let loser: Color = if place % 2 == 0 { !first } else { first };
            match game.end.result.score_for(loser) {
                -1 => PlayedOn::Right,
                _ => PlayedOn::Wrong,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{GameEnd, GameResult, Termination};
    use crate::chunk::testing;

    /// A random game whose searches see nothing but at these plies a loss, ended so.
    fn game(lost: &[usize], result: GameResult, play_on: bool) -> GameRecord {
        let mut game = testing::game(0);
        game.kind = GameKind::SelfPlay { play_on };
        game.end = GameEnd {
            result,
            termination: Termination::PlyLimit,
        };
        for (place, ply) in game.plies.iter_mut().enumerate() {
            let q = if lost.contains(&place) { -0.96 } else { 0.0 };
            (ply.root_q, ply.best_q) = (q, q);
        }
        game
    }

    #[test]
    fn the_first_who_would_have_resigned_is_compared_with_the_result() {
        let params = ResignParams::default();
        let judge = |lost: &[usize], result| super::judge(&game(lost, result, true), &params);
        use GameResult::{BlackWins, Draw, WhiteWins};
        assert_eq!(judge(&[], Draw), Some(PlayedOn::NeverResigned));
        assert_eq!(judge(&[4], BlackWins), Some(PlayedOn::Right));
        assert_eq!(judge(&[4], Draw), Some(PlayedOn::Wrong));
        assert_eq!(judge(&[5], BlackWins), Some(PlayedOn::Wrong));
        assert_eq!(judge(&[5, 6], WhiteWins), Some(PlayedOn::Right));
        assert_eq!(
            judge(&[0], WhiteWins),
            Some(PlayedOn::NeverResigned),
            "not at once"
        );
        assert_eq!(super::judge(&game(&[4], Draw, false), &params), None);
    }
}
