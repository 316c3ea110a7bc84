//! Results as they are counted: single games, and pairs of games from one opening with colours
//! swapped.
//!
//! Two games of a pair share their opening, so they are not independent; tests and intervals count
//! pairs (M. Van den Bergh, <https://www.cantate.be/Fishtest/GSPRT_approximation.pdf>).

use serde::{Deserialize, Serialize};
use shakmaty::Color;
use utoipa::ToSchema;

use super::elo::EloEstimate;
use super::error::RatingError;
use crate::chess::GameResult;

/// A game's result as the candidate sees it, worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum GameScore {
    /// The candidate lost.
    Loss,
    /// A draw.
    Draw,
    /// The candidate won.
    Win,
}

impl GameScore {
    /// The score of the side that played `candidate`.
    pub const fn of(result: GameResult, candidate: Color) -> Self {
        match result.score_for(candidate) {
            1 => Self::Win,
            0 => Self::Draw,
            _ => Self::Loss,
        }
    }

    /// Half points: 0, 1 or 2.
    pub const fn half_points(self) -> usize {
        match self {
            Self::Loss => 0,
            Self::Draw => 1,
            Self::Win => 2,
        }
    }
}

/// How often each score of a pair occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ToSchema)]
pub struct Pentanomial {
    /// Pairs in which the candidate scored 0, 1/2, 1, 3/2 and 2 of 2 points.
    pub counts: [u64; 5],
}

impl Pentanomial {
    /// Counts one pair by the results of its two games, in either order.
    pub fn add(&mut self, first: GameScore, second: GameScore) {
        let count = &mut self.counts[first.half_points() + second.half_points()];
        *count = count.saturating_add(1);
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The candidate's mean score for each game, 0 to 1; none without pairs.
    pub fn score(&self) -> Option<f64> {
        let pairs = self.pairs();
        let quarters: f64 = self
            .counts
            .iter()
            .zip(0_u8..)
            .map(|(&n, k)| n as f64 * f64::from(k))
            .sum();
        (pairs > 0).then(|| quarters / (4.0 * pairs as f64))
    }

    /// The same pairs as the opponent sees them.
    pub fn swapped(&self) -> Self {
        let mut counts = self.counts;
        counts.reverse();
        Self { counts }
    }
}

/// A match's results as the candidate sees them.
///
/// A game counts when it arrives, its pair when both games have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Complete pairs.
    pub pairs: Pentanomial,
}

impl Tally {
    /// Counts one game, not its pair.
    pub fn add_game(&mut self, score: GameScore) {
        let count = match score {
            GameScore::Loss => &mut self.losses,
            GameScore::Draw => &mut self.draws,
            GameScore::Win => &mut self.wins,
        };
        *count = count.saturating_add(1);
    }

    /// Counts two games and the pair that they are.
    pub fn add_pair(&mut self, first: GameScore, second: GameScore) {
        self.add_game(first);
        self.add_game(second);
        self.pairs.add(first, second);
    }

    /// How many games there are.
    pub fn games(&self) -> u64 {
        self.wins
            .saturating_add(self.draws)
            .saturating_add(self.losses)
    }

    /// The candidate's points: 1 for a win, 1/2 for a draw.
    pub fn points(&self) -> f64 {
        self.wins as f64 + self.draws as f64 / 2.0
    }

    /// The candidate's mean score, 0 to 1; none without games.
    pub fn score(&self) -> Option<f64> {
        let games = self.games();
        (games > 0).then(|| self.points() / games as f64)
    }

    /// The same games as the opponent sees them.
    pub fn swapped(&self) -> Self {
        Self {
            wins: self.losses,
            draws: self.draws,
            losses: self.wins,
            pairs: self.pairs.swapped(),
        }
    }

    /// The Elo difference: from the pairs if most games are in one, as games whose pair is not complete are few in any
    /// match that goes on, else from single games.
    pub fn elo(&self) -> Option<EloEstimate> {
        if self.pairs.pairs().saturating_mul(4) > self.games() {
            EloEstimate::from_pairs(&self.pairs)
        } else {
            EloEstimate::from_games(self.wins, self.draws, self.losses)
        }
    }

    /// Checks that the pairs fit into the games.
    ///
    /// # Errors
    ///
    /// If there are more games in pairs than games.
    pub fn check(&self) -> Result<(), RatingError> {
        let (pairs, games) = (self.pairs.pairs(), self.games());
        if pairs <= games / 2 {
            Ok(())
        } else {
            Err(RatingError::TallyMismatch { pairs, games })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GameScore::{Draw, Loss, Win};
    use super::*;

    #[test]
    fn a_game_without_its_pair_does_not_make_the_others_single() {
        let mut tally = Tally::default();
        for _ in 0..20 {
            tally.add_pair(Win, Loss);
        }
        let whole = tally.elo();
        assert_eq!(whole, EloEstimate::from_pairs(&tally.pairs));
        tally.add_game(Win);
        assert_eq!(tally.elo(), whole);
        tally.pairs = Pentanomial::default();
        assert_eq!(tally.elo(), EloEstimate::from_games(21, 0, 20));
        assert_ne!(tally.elo(), whole);
    }

    #[test]
    fn a_pair_counts_by_its_points_in_either_order() {
        let mut pairs = Pentanomial::default();
        for (first, second) in [
            (Loss, Loss),
            (Loss, Draw),
            (Draw, Loss),
            (Win, Loss),
            (Draw, Draw),
        ] {
            pairs.add(first, second);
        }
        pairs.add(Draw, Win);
        pairs.add(Win, Win);
        assert_eq!(pairs.counts, [1, 2, 2, 1, 1]);
        assert_eq!(pairs.pairs(), 7);
        assert_eq!(pairs.score(), Some((1.0 + 2.0 + 1.5 + 2.0) / 14.0));
        assert_eq!(pairs.swapped().counts, [1, 1, 2, 2, 1]);
    }

    #[test]
    fn the_candidate_sees_the_result_from_its_colour() {
        assert_eq!(GameScore::of(GameResult::WhiteWins, Color::White), Win);
        assert_eq!(GameScore::of(GameResult::WhiteWins, Color::Black), Loss);
        assert_eq!(GameScore::of(GameResult::Draw, Color::Black), Draw);
    }

    #[test]
    fn games_count_before_their_pair() {
        let mut tally = Tally::default();
        tally.add_game(Win);
        assert_eq!((tally.games(), tally.pairs.pairs()), (1, 0));
        assert_eq!(tally.score(), Some(1.0));
        tally.add_pair(Draw, Loss);
        assert_eq!((tally.wins, tally.draws, tally.losses), (1, 1, 1));
        assert_eq!(tally.score(), tally.swapped().score());
        assert_eq!(tally.check(), Ok(()));
    }

    #[test]
    fn nothing_played_has_no_score() {
        assert_eq!(Tally::default().score(), None);
        assert_eq!(Tally::default().elo(), None);
        assert_eq!(Pentanomial::default().score(), None);
    }

    #[test]
    fn more_pairs_than_games_are_refused() {
        let tally = Tally {
            wins: 3,
            pairs: Pentanomial {
                counts: [0, 0, 0, 0, 2],
            },
            ..Tally::default()
        };
        assert_eq!(
            tally.check(),
            Err(RatingError::TallyMismatch { pairs: 2, games: 3 })
        );
    }

    #[test]
    fn a_tally_is_plain_json() {
        let mut tally = Tally::default();
        tally.add_pair(Win, Draw);
        let json = serde_json::to_value(tally).unwrap();
        let expected = serde_json::json!({
            "wins": 1, "draws": 1, "losses": 0, "pairs": {"counts": [0, 0, 0, 1, 0]}
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<Tally>(json).unwrap(), tally);
    }
}
