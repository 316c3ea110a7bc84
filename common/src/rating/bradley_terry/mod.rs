//! Ratings of many players from all their games: a Bradley-Terry model with draws.
//!
//! Davidson's model (R. R. Davidson, *JASA* 65 (1970), 317-328): with strengths `a`, `b` and a share
//! of draws set by `nu`, the results win, draw and loss are as likely as
//! `a : nu sqrt(a b) : b`. Its estimate orders a round robin as the usual score does. The fit is
//! maximum a posteriori; the posterior is log-concave, and Newton's method finds its top and, from
//! its curvature, the covariance of all ratings.
//!
//! ```text
//! pairings, anchors --> Posterior (model) --Newton (newton, matrix)--> strengths, nu, curvature
//!                                                                               |
//!                       RatingFit (ratings): Elo, intervals, superiority <------+
//! ```
//!
//! **Scale.** A strength's logarithm becomes Elo such that near equality one point of Elo is worth
//! the score it should be: the factor `2 / (2 + nu)` beside `400 / ln 10`, the same correction as
//! the "scale" of R. Coulom's BayesElo (<https://www.remi-coulom.fr/Bayesian-Elo/>). `nu` for the
//! scale is estimated first, with one anchor that cannot contradict the games, and then held.
//!
//! **Prior.** A weak Gaussian on the difference of each two players that met, so that a player that
//! won all its games stays finite and yet a chain of networks is not drawn together (the place of
//! BayesElo's virtual draws, without their pull on `nu`); and a very wide Gaussian around 0 on the
//! rating of each player that no games connect to an anchor.
//!
//! Davidson's draws fade fast between unequal players; above about 80 % of draws between equals the
//! Elo of lopsided pairings comes out small.

mod matrix;
mod model;
mod newton;
mod ratings;

use model::Posterior;
pub use ratings::{PlayerRating, RatingFit};

use super::anchor::MAX_ANCHOR;
use super::elo::ELO_PER_NAT;
use super::error::{RatingError, within};

/// Most players of one fit: their covariance takes 32 MiB.
pub const MAX_PLAYERS: usize = 2048;

/// Most games of one pairing: the fit would drown in rounding beyond.
const MAX_GAMES: u64 = 1_000_000_000;

/// The `nu` at which the scale stops following: 98 % of draws between equals.
const MAX_SCALE_NU: f64 = 100.0;

/// The results of one player against another. Several of the same two players add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairing {
    /// One player, counted from 0.
    pub player: usize,
    /// The other.
    pub opponent: usize,
    /// Games that `player` won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games that `player` lost.
    pub losses: u64,
}

impl Pairing {
    /// How many games there are, at most 1e9 for a fit.
    pub fn games(&self) -> u64 {
        self.wins
            .saturating_add(self.draws)
            .saturating_add(self.losses)
    }
}

/// A player whose rating is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// The player, counted from 0.
    pub player: usize,
    /// Its rating.
    pub elo: f64,
}

impl Anchor {
    /// The first player at 0.
    pub const FIRST: Self = Self {
        player: 0,
        elo: 0.0,
    };
}

/// How wide the prior is, in standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Of the difference of two players that met often, in Elo, 1 to 1e9.
    pub difference: f64,
    /// Of a rating around 0 if no games connect it to an anchor, in Elo, 1 to 1e9.
    pub rating: f64,
    /// Of the logarithm of `nu` around 0, 0.01 to 1e6.
    pub log_nu: f64,
}

impl Default for Prior {
    /// Differences of 600 Elo, worth about a third of a game; ratings of 3,000.
    fn default() -> Self {
        Self {
            difference: 600.0,
            rating: 3000.0,
            log_nu: 3.0,
        }
    }
}

impl Prior {
    fn check(&self) -> Result<(), RatingError> {
        within("the prior's difference", self.difference, 1.0, 1e9)?;
        within("the prior's rating", self.rating, 1.0, 1e9)?;
        within("the prior's log_nu", self.log_nu, 0.01, 1e6)
    }
}

/// Rates `players` players by their games, with the usual prior.
///
/// Every player gets a rating, whether or not it has played; [`Anchor::FIRST`] puts the first at 0.
///
/// # Errors
///
/// No anchor, too many players, a player that does not exist, is anchored twice or plays itself, a
/// pairing of more than 1e9 games, or an anchor beyond ±10,000 Elo.
pub fn fit(
    players: usize,
    pairings: &[Pairing],
    anchors: &[Anchor],
) -> Result<RatingFit, RatingError> {
    fit_with(players, pairings, anchors, &Prior::default())
}

/// Rates `players` players by their games, with a chosen prior.
///
/// # Errors
///
/// Those of [`fit`], and a prior outside its range.
pub fn fit_with(
    players: usize,
    pairings: &[Pairing],
    anchors: &[Anchor],
    prior: &Prior,
) -> Result<RatingFit, RatingError> {
    check(players, pairings, anchors)?;
    prior.check()?;
    let alone = Posterior::new(players, pairings, &anchors[..1], prior, nats_per_elo(1.0));
    let scale = nats_per_elo(newton::maximise(&alone)?.nu());
    let posterior = Posterior::new(players, pairings, anchors, prior, scale);
    let top = newton::maximise(&posterior)?;
    Ok(RatingFit::new(&posterior, &top, pairings, scale))
}

/// Differences of log strength for each point of Elo.
fn nats_per_elo(nu: f64) -> f64 {
    (1.0 + nu.min(MAX_SCALE_NU) / 2.0) / ELO_PER_NAT
}

fn check(players: usize, pairings: &[Pairing], anchors: &[Anchor]) -> Result<(), RatingError> {
    if players > MAX_PLAYERS {
        return Err(RatingError::TooManyPlayers {
            players,
            max: MAX_PLAYERS,
        });
    }
    let known = |player| {
        if player < players {
            Ok(())
        } else {
            Err(RatingError::UnknownPlayer { player, players })
        }
    };
    for pairing in pairings {
        known(pairing.player)?;
        known(pairing.opponent)?;
        if pairing.player == pairing.opponent {
            return Err(RatingError::SelfPairing {
                player: pairing.player,
            });
        }
        within(
            "the games of a pairing",
            pairing.games() as f64,
            0.0,
            MAX_GAMES as f64,
        )?;
    }
    check_anchors(anchors, known)
}

fn check_anchors(
    anchors: &[Anchor],
    known: impl Fn(usize) -> Result<(), RatingError>,
) -> Result<(), RatingError> {
    if anchors.is_empty() {
        return Err(RatingError::NoAnchor);
    }
    for (place, anchor) in anchors.iter().enumerate() {
        known(anchor.player)?;
        within("an anchor's rating", anchor.elo, -MAX_ANCHOR, MAX_ANCHOR)?;
        if anchors[..place]
            .iter()
            .any(|earlier| earlier.player == anchor.player)
        {
            return Err(RatingError::DuplicateAnchor {
                player: anchor.player,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
