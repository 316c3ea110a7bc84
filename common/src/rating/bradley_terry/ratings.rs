//! What a fit says: each player's rating with its interval, and any two compared.

use super::Pairing;
use super::model::{Chances, Posterior};
use super::newton::Top;
use crate::rating::normal::{Z95, cdf};

/// A player's rating with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayerRating {
    /// The rating, in Elo.
    pub elo: f64,
    /// Its standard deviation; 0 for an anchor.
    pub deviation: f64,
    /// Games played.
    pub games: u64,
}

impl PlayerRating {
    /// Lower end of the 95 % interval.
    pub fn low(&self) -> f64 {
        self.elo - Z95 * self.deviation
    }

    /// Upper end of the 95 % interval.
    pub fn high(&self) -> f64 {
        self.elo + Z95 * self.deviation
    }
}

/// The ratings of all players and what is known of them together.
#[derive(Debug, Clone, PartialEq)]
pub struct RatingFit {
    players: Vec<PlayerRating>,
    /// In Elo squared, row by row; 0 for anchors.
    covariance: Vec<f64>,
    nu: f64,
    nats_per_elo: f64,
}

impl RatingFit {
    /// Turns log strengths and their curvature into ratings and covariance in Elo.
    pub(super) fn new(
        posterior: &Posterior,
        top: &Top,
        pairings: &[Pairing],
        nats_per_elo: f64,
    ) -> Self {
        let count = posterior.players();
        let covariance = covariance(posterior, top, nats_per_elo);
        let games = games(count, pairings);
        let players = (0..count).map(|player| PlayerRating {
            elo: posterior.strength(player, &top.point) / nats_per_elo,
            deviation: covariance[player * count + player].sqrt(),
            games: games[player],
        });
        Self {
            players: players.collect(),
            covariance,
            nu: top.nu(),
            nats_per_elo,
        }
    }

    /// The ratings, in the players' order.
    pub fn players(&self) -> &[PlayerRating] {
        &self.players
    }

    /// Davidson's `nu`: equal players draw `nu / (2 + nu)` of their games.
    pub fn nu(&self) -> f64 {
        self.nu
    }

    /// Covariance of two ratings, in Elo squared; none if there is no such player.
    pub fn covariance(&self, one: usize, other: usize) -> Option<f64> {
        let players = self.players.len();
        let known = one < players && other < players;
        known.then(|| self.covariance[one * players + other])
    }

    /// Mean and standard deviation of `one`'s rating minus `other`'s, in Elo; none if there is no
    /// such player.
    pub fn difference(&self, one: usize, other: usize) -> Option<(f64, f64)> {
        let together = self.covariance(one, other)?;
        let (one, other) = (self.players[one], self.players[other]);
        let variance = one.deviation.powi(2) + other.deviation.powi(2) - 2.0 * together;
        Some((one.elo - other.elo, variance.max(0.0).sqrt()))
    }

    /// Likelihood of superiority: the probability that `one` is stronger than `other`, 1/2 for
    /// equal ones; none if there is no such player.
    pub fn superiority(&self, one: usize, other: usize) -> Option<f64> {
        let (mean, deviation) = self.difference(one, other)?;
        Some(if mean == 0.0 {
            0.5
        } else {
            cdf(mean / deviation)
        })
    }

    /// How much `games` more games of two players are expected to take from the sum of all ratings'
    /// variances, in Elo squared, at least 0; none if there is no such player.
    ///
    /// What the games say, as Fisher counts information, is added to the inverse of the covariance
    /// (W. J. Sherman and W. J. Morrison, 1950). To choose by the sum of variances is A-optimal
    /// design (A. C. Atkinson and A. N. Donev, *Optimum Experimental Designs*, 1992).
    pub fn gain(&self, one: usize, other: usize, games: u64) -> Option<f64> {
        let (lead, deviation) = self.difference(one, other)?;
        let chances = Chances::new(lead * self.nats_per_elo, self.nu.ln());
        let information = games as f64 * chances.lead_variance() * self.nats_per_elo.powi(2);
        let count = self.players.len();
        let row = |player: usize| &self.covariance[player * count..(player + 1) * count];
        let apart = row(one)
            .iter()
            .zip(row(other))
            .map(|(a, b)| (a - b).powi(2));
        Some(information * apart.sum::<f64>() / (1.0 + information * deviation.powi(2)))
    }
}

/// The inverse of the curvature, in Elo squared, row by row; 0 for anchors.
fn covariance(posterior: &Posterior, top: &Top, nats_per_elo: f64) -> Vec<f64> {
    let count = posterior.players();
    let inverse = top.curvature.inverse();
    let mut covariance = vec![0.0; count * count];
    for (one, place) in posterior.free_players() {
        for (other, other_place) in posterior.free_players() {
            let nats = inverse.get(place, other_place);
            covariance[one * count + other] = nats / nats_per_elo.powi(2);
        }
    }
    covariance
}

/// How many games each player has played.
fn games(players: usize, pairings: &[Pairing]) -> Vec<u64> {
    let mut games = vec![0_u64; players];
    for pairing in pairings {
        for player in [pairing.player, pairing.opponent] {
            games[player] = games[player].saturating_add(pairing.games());
        }
    }
    games
}
