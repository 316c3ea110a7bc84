//! Scores to Elo and back, and an Elo difference with its interval.
//!
//! *Logistic* Elo is the usual scale: 400 points for odds of ten to one. *Normalised* Elo (nElo)
//! measures the score in standard deviations of one game, so that the same number of games tells
//! the same nElo apart whatever the share of draws (M. Van den Bergh, "Normalized Elo",
//! <https://www.cantate.be/Fishtest/normalized_elo.pdf>).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::multinomial::Shares;
use super::normal::{Z95, cdf};
use super::pentanomial::Pentanomial;
use super::roots::bisect;

/// Points of Elo for each natural unit of log odds: `400 / ln 10`.
pub(super) const ELO_PER_NAT: f64 = 400.0 / std::f64::consts::LN_10;

/// Points of nElo for a mean score one deviation of a game above 1/2: `800 / ln 10`.
pub(super) const NELO_PER_DEVIATION: f64 = 800.0 / std::f64::consts::LN_10;

/// Scores are taken to lie this far from 0 and 1, as fishtest does: Elo stays within ±1,200.
const SCORE_MARGIN: f64 = 1e-3;

/// The expected score of a player `elo` points above its opponent.
///
/// A. Elo, *The Rating of Chessplayers* (1978), in its logistic form.
pub(super) fn score_from_elo(elo: f64) -> f64 {
    1.0 / (1.0 + (-elo / ELO_PER_NAT).exp())
}

/// The Elo difference at which `score` is expected; scores outside 0.001 to 0.999 count as these.
fn elo_from_score(score: f64) -> f64 {
    let score = score.clamp(SCORE_MARGIN, 1.0 - SCORE_MARGIN);
    ELO_PER_NAT * (score / (1.0 - score)).ln()
}

/// The nElo of a mean `score` if one game's score has the standard deviation `deviation`.
fn nelo_from_score(score: f64, deviation: f64) -> f64 {
    NELO_PER_DEVIATION * (score - 0.5) / deviation
}

/// What a match says about the difference in strength of its two sides.
///
/// The interval and the likelihood of superiority come from the likelihood ratio of the counts
/// (Wilks' theorem) and not from a Gaussian around the estimate: the same to a fraction of a percent
/// for hundreds of games, and still true when a side won them all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EloEstimate {
    /// Games counted.
    pub games: u64,
    /// Mean score, 0 to 1.
    pub score: f64,
    /// Lower end of the score's 95 % interval.
    pub score_low: f64,
    /// Upper end of the score's 95 % interval.
    pub score_high: f64,
    /// The Elo difference, within ±1,200.
    pub elo: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// The difference in normalised Elo.
    pub nelo: f64,
    /// Likelihood of superiority: how sure it is that the candidate is the stronger, 0 to 1.
    pub los: f64,
}

impl EloEstimate {
    /// From single games, taken as independent (trinomial); none without games.
    pub fn from_games(wins: u64, draws: u64, losses: u64) -> Option<Self> {
        let games = wins.saturating_add(draws).saturating_add(losses);
        let shares = Shares::new(&[losses, draws, wins]);
        (games > 0).then(|| Self::new(games, &shares, 1.0))
    }

    /// From pairs of games (pentanomial); none without pairs.
    pub fn from_pairs(pairs: &Pentanomial) -> Option<Self> {
        let count = pairs.pairs();
        let shares = Shares::new(&pairs.counts);
        (count > 0).then(|| Self::new(count.saturating_mul(2), &shares, 2.0))
    }

    fn new<const N: usize>(games: u64, shares: &Shares<N>, games_each: f64) -> Self {
        let score = shares.mean();
        let (score_low, score_high) = interval(shares);
        let deviation = shares.deviation() * games_each.sqrt();
        Self {
            games,
            score,
            score_low,
            score_high,
            elo: elo_from_score(score),
            low: elo_from_score(score_low),
            high: elo_from_score(score_high),
            nelo: nelo_from_score(score, deviation),
            los: superiority(shares),
        }
    }
}

/// The scores at which the likelihood has fallen by as much as 95 % confidence allows.
fn interval<const N: usize>(shares: &Shares<N>) -> (f64, f64) {
    let mean = shares.mean();
    let allowed = Z95 * Z95 / 2.0;
    let lost = |score: f64| shares.total() * shares.loss_at_mean(score);
    let low = bisect(0.0, mean, |score| lost(score) > allowed);
    let high = bisect(mean, 1.0, |score| lost(score) < allowed);
    (low, high)
}

/// The signed root of the likelihood ratio against equal strength, as a probability.
fn superiority<const N: usize>(shares: &Shares<N>) -> f64 {
    let lost = (shares.total() * shares.loss_at_mean(0.5)).max(0.0);
    cdf((2.0 * lost).sqrt().copysign(shares.mean() - 0.5))
}

#[cfg(test)]
mod tests;
