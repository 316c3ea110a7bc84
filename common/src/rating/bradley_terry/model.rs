//! The posterior of Davidson's model: the gradient and the curvature of its logarithm.
//!
//! With `d` the difference of two log strengths and `e = ln nu`, the results weigh `exp(d/2)`,
//! `exp(e)` and `exp(-d/2)`: an exponential family, so the log-likelihood is concave in the
//! strengths and `e` together, and its curvature is the covariance of the two statistics
//! `x = 1/2, 0, -1/2` and `y = 0, 1, 0`.

use std::collections::BTreeMap;

use super::matrix::Symmetric;
use super::{Anchor, Pairing, Prior};

/// Games of two players at which half of the prior on their difference applies: few games must not
/// bring a whole prior each.
const PRIOR_GAMES: f64 = 10.0;

/// All games of two players, and the prior on their difference.
#[derive(Debug, Clone, Copy, Default)]
struct Link {
    wins: f64,
    draws: f64,
    losses: f64,
    precision: f64,
}

impl Link {
    fn games(&self) -> f64 {
        self.wins + self.draws + self.losses
    }
}

/// A player's place among the unknowns, or its given log strength.
#[derive(Debug, Clone, Copy)]
enum Player {
    Free(usize),
    Anchored(f64),
}

/// The log posterior as a function of the free players' log strengths and `ln nu`.
#[derive(Debug, Clone)]
pub(super) struct Posterior {
    players: Vec<Player>,
    links: Vec<(usize, usize, Link)>,
    /// The prior around 0 of each unknown; 0 for players that games connect to an anchor.
    precisions: Vec<f64>,
}

/// How likely the results of one game are.
pub(super) struct Chances {
    /// The mean of `x`: half of `P(win) - P(loss)`.
    lead: f64,
    /// `P(win) + P(loss)`.
    decided: f64,
    /// `P(draw)`.
    draw: f64,
}

impl Chances {
    /// Of a player against another, by the difference of their log strengths.
    pub(super) fn new(difference: f64, log_nu: f64) -> Self {
        let half = difference / 2.0;
        let most = half.abs().max(log_nu);
        let [win, draw, loss] = [half, log_nu, -half].map(|weight| (weight - most).exp());
        let sum = win + draw + loss;
        Self {
            lead: (win - loss) / sum / 2.0,
            decided: (win + loss) / sum,
            draw: draw / sum,
        }
    }

    /// The variance of `x`: what one game says of the difference, as Fisher counts information.
    pub(super) fn lead_variance(&self) -> f64 {
        (self.decided / 4.0 - self.lead * self.lead).max(0.0)
    }
}

impl Posterior {
    /// The posterior of checked pairings and anchors, these and the prior read on a scale of
    /// `nats_per_elo`: differences of log strength for each point of Elo.
    pub(super) fn new(
        players: usize,
        pairings: &[Pairing],
        anchors: &[Anchor],
        prior: &Prior,
        nats_per_elo: f64,
    ) -> Self {
        let precision = |deviation: f64| (deviation * nats_per_elo).powi(-2);
        let anchored: BTreeMap<usize, f64> = anchors
            .iter()
            .map(|anchor| (anchor.player, anchor.elo * nats_per_elo))
            .collect();
        let links = links(pairings, precision(prior.difference));
        let reached = reached(players, &links, &anchored);
        let mut precisions = Vec::new();
        let place = |player| match anchored.get(&player) {
            Some(&strength) => Player::Anchored(strength),
            None => {
                precisions.push(if reached[player] {
                    0.0
                } else {
                    precision(prior.rating)
                });
                Player::Free(precisions.len() - 1)
            }
        };
        let players = (0..players).map(place).collect();
        precisions.push(prior.log_nu.powi(-2));
        Self {
            players,
            links,
            precisions,
        }
    }

    /// How many players there are, free or anchored.
    pub(super) fn players(&self) -> usize {
        self.players.len()
    }

    /// The free players with their places among the unknowns.
    pub(super) fn free_players(&self) -> impl Iterator<Item = (usize, usize)> {
        self.players
            .iter()
            .enumerate()
            .filter_map(|(player, place)| match place {
                Player::Free(place) => Some((player, *place)),
                Player::Anchored(_) => None,
            })
    }

    /// Where to begin: all free players equal, and as many draws as wins between them.
    pub(super) fn start(&self) -> Vec<f64> {
        vec![0.0; self.precisions.len()]
    }

    /// A player's log strength at a point.
    pub(super) fn strength(&self, player: usize, point: &[f64]) -> f64 {
        match self.players[player] {
            Player::Free(place) => point[place],
            Player::Anchored(strength) => strength,
        }
    }

    /// The gradient of the log posterior at a point.
    pub(super) fn gradient(&self, point: &[f64]) -> Vec<f64> {
        let nu = self.nu_place();
        let mut gradient: Vec<f64> = point
            .iter()
            .zip(&self.precisions)
            .map(|(at, precision)| -precision * at)
            .collect();
        for (one, other, link) in &self.links {
            let d = self.strength(*one, point) - self.strength(*other, point);
            let chances = Chances::new(d, point[nu]);
            let slope =
                (link.wins - link.losses) / 2.0 - link.games() * chances.lead - link.precision * d;
            gradient[nu] += link.draws - link.games() * chances.draw;
            for (player, slope) in [(*one, slope), (*other, -slope)] {
                if let Player::Free(place) = self.players[player] {
                    gradient[place] += slope;
                }
            }
        }
        gradient
    }

    /// The negative Hessian of the log posterior at a point.
    pub(super) fn curvature(&self, point: &[f64]) -> Symmetric {
        let nu = self.nu_place();
        let mut curvature = Symmetric::zeros(point.len());
        for (place, precision) in self.precisions.iter().enumerate() {
            curvature.add(place, place, *precision);
        }
        for (one, other, link) in &self.links {
            let d = self.strength(*one, point) - self.strength(*other, point);
            let chances = Chances::new(d, point[nu]);
            self.bend(&mut curvature, (*one, *other), link, &chances);
        }
        curvature
    }

    /// Adds the curvature that the games of two players contribute.
    fn bend(
        &self,
        curvature: &mut Symmetric,
        (one, other): (usize, usize),
        link: &Link,
        chances: &Chances,
    ) {
        let nu = self.nu_place();
        let games = link.games();
        let of_difference = games * chances.lead_variance() + link.precision;
        curvature.add(nu, nu, games * chances.draw * (1.0 - chances.draw));
        let ends = [(self.players[one], -1.0), (self.players[other], 1.0)];
        for (player, sign) in ends {
            if let Player::Free(place) = player {
                curvature.add(place, place, of_difference);
                curvature.add(place, nu, sign * games * chances.lead * chances.draw);
            }
        }
        if let [(Player::Free(one), _), (Player::Free(other), _)] = ends {
            curvature.add(one, other, -of_difference);
        }
    }

    /// The place of `ln nu` among the unknowns: the last.
    fn nu_place(&self) -> usize {
        self.precisions.len() - 1
    }
}

/// The games of each two players that met, and the prior on their difference, whose full
/// `precision` a link approaches as its games grow beyond [`PRIOR_GAMES`].
fn links(pairings: &[Pairing], precision: f64) -> Vec<(usize, usize, Link)> {
    let mut merged: BTreeMap<(usize, usize), Link> = BTreeMap::new();
    for pairing in pairings {
        let ordered = pairing.player < pairing.opponent;
        let (wins, losses) = (pairing.wins as f64, pairing.losses as f64);
        let ends = (
            pairing.player.min(pairing.opponent),
            pairing.player.max(pairing.opponent),
        );
        let link = merged.entry(ends).or_default();
        link.wins += if ordered { wins } else { losses };
        link.losses += if ordered { losses } else { wins };
        link.draws += pairing.draws as f64;
    }
    let played = merged.into_iter().filter(|(_, link)| link.games() > 0.0);
    played
        .map(|((one, other), mut link)| {
            link.precision = precision * link.games() / (link.games() + PRIOR_GAMES);
            (one, other, link)
        })
        .collect()
}

/// Which players a chain of games connects to an anchor.
fn reached(
    players: usize,
    links: &[(usize, usize, Link)],
    anchored: &BTreeMap<usize, f64>,
) -> Vec<bool> {
    let mut neighbours = vec![Vec::new(); players];
    for (one, other, _) in links {
        neighbours[*one].push(*other);
        neighbours[*other].push(*one);
    }
    let mut reached = vec![false; players];
    let mut frontier: Vec<usize> = anchored.keys().copied().collect();
    while let Some(player) = frontier.pop() {
        if !std::mem::replace(&mut reached[player], true) {
            frontier.extend(&neighbours[player]);
        }
    }
    reached
}
