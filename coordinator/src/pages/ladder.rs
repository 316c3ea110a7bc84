//! How a run's best network fares against known opponents, its anchors.

use std::cmp::Reverse;
use std::fmt;

use rookery_common::ids::{AnchorName, NetworkNumber};
use rookery_common::protocol::matches::MatchInfo;
use rookery_common::protocol::networks::{NetworkInfo, Rating};
use rookery_common::rating::pentanomial::Tally;

use super::networks::{explained, was_best};
use super::text;

/// Where a share of the points is known no better than this, one word for it would be a guess.
const LOOSE: f64 = 0.25;
/// A match of a network so many numbers before the best one still measures the best one.
const NEAR: u32 = 10;

/// How the best network fares against each anchor, the strongest first: by the games that it and the networks shortly before
/// it have played against the anchor, else by the last match of a network that was best. Ratings would say less: they add up
/// what networks gained against one another, which is more than they gain against a stranger.
pub(super) fn ladder(
    best: &NetworkInfo,
    networks: &[NetworkInfo],
    matches: &[MatchInfo],
) -> Vec<String> {
    let mut anchors: Vec<_> = networks
        .iter()
        .filter_map(|info| Some((info, info.anchor.as_ref()?, info.rating?)))
        .collect();
    anchors.sort_by(|a, b| b.2.elo.total_cmp(&a.2.elo));
    let met: Vec<Meeting> = networks
        .iter()
        .filter(|info| was_best(info) && info.number <= best.number)
        .flat_map(|info| matches.iter().filter_map(|m| Meeting::of(info.number, m)))
        .collect();
    let rung = |(info, name, _): &(&NetworkInfo, &AnchorName, Rating)| {
        let what = info.spec.program().map(explained);
        let what = what.map_or_else(String::new, |what| format!(" ({what})"));
        let meetings = || met.iter().filter(|one| one.opponent == info.number);
        let near = meetings().filter(|one| best.number.0 - one.network.0 <= NEAR);
        let fares = match near.map(|one| one.tally).reduce(added) {
            Some(games) => format!(" it {}", fares(&games)),
            // The first of equals is the newest match.
            None => match meetings().min_by_key(|one| Reverse(one.network)) {
                Some(last) => format!(": not measured since {last}"),
                None => ": not measured".to_owned(),
            },
        };
        format!("Against {name}{what}{fares}")
    };
    anchors.iter().map(rung).collect()
}

/// A match of a network, from its side.
struct Meeting {
    network: NetworkNumber,
    opponent: NetworkNumber,
    tally: Tally,
}

impl Meeting {
    /// None if the network does not play in the match, or no game of it is in.
    fn of(network: NetworkNumber, m: &MatchInfo) -> Option<Self> {
        let (opponent, tally) = if m.candidate == network {
            (m.opponent, m.tally)
        } else if m.opponent == network {
            (m.candidate, m.tally.swapped())
        } else {
            return None;
        };
        (tally.games() > 0).then_some(Self {
            network,
            opponent,
            tally,
        })
    }
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} ({})", self.network, results(&self.tally))
    }
}

/// The games of both.
fn added(one: Tally, other: Tally) -> Tally {
    Tally {
        wins: one.wins.saturating_add(other.wins),
        draws: one.draws.saturating_add(other.draws),
        losses: one.losses.saturating_add(other.losses),
        pairs: one.pairs,
    }
}

fn results(games: &Tally) -> String {
    let Tally {
        wins,
        draws,
        losses,
        ..
    } = games;
    format!("{wins} won, {draws} drawn, {losses} lost")
}

/// What such games tell, or between which shares of the points it is if they are few.
fn fares(games: &Tally) -> String {
    let (low, high) = text::points_interval(games.points(), games.games());
    let (low, high) = (low / 100.0, high / 100.0);
    let results = results(games);
    if high - low > LOOSE {
        let (low, high) = (share_of_points(low), share_of_points(high));
        format!("may get from {low} to {high} of the points ({results}); more matches will tell")
    } else {
        let score = games.score().unwrap_or_default();
        let (words, share) = (in_words(score), share_of_points(score));
        format!("{words}: {share} of the points ({results})")
    }
}

/// What a share of the points means, as people say it.
const fn in_words(score: f64) -> &'static str {
    match score {
        s if s >= 0.98 => "wins almost every game",
        s if s >= 0.85 => "wins most games",
        s if s >= 0.65 => "wins more often than not",
        s if s >= 0.35 => "is about as strong",
        s if s >= 0.15 => "loses more often than not",
        _ => "loses most games",
    }
}

/// The share of the points that somebody so much stronger gets.
pub(super) fn expected(difference: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf(-difference / 400.0))
}

/// In whole percent; what rounds to nothing or to everything is neither.
pub(super) fn share_of_points(score: f64) -> String {
    match score {
        s if s >= 0.995 => "over 99 %".to_owned(),
        s if s < 0.005 => "under 1 %".to_owned(),
        s => text::decimal(100.0 * s, 0) + " %",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pages::story::tests::network;

    /// A match between two networks.
    fn met(candidate: u32, opponent: u32, (wins, draws, losses): (u64, u64, u64)) -> MatchInfo {
        serde_json::from_value(json!({
            "id": 1, "run": "main", "purpose": "rating", "status": "finished", "candidate": candidate,
            "opponent": opponent, "rule": {"kind": "none"}, "opened_at": "2030-01-01T00:00:00Z",
            "tally": {"wins": wins, "draws": draws, "losses": losses, "pairs": {"counts": [0, 0, 0, 0, 0]}},
        }))
        .unwrap()
    }

    #[test]
    fn the_ladder_is_told_in_words_with_the_strongest_first() {
        // The ratings say that it is as strong as alphabeta-1; the games do not.
        let networks = [
            network(11, 700.0, None),
            network(10, 690.0, None),
            network(1, 0.0, Some("random")),
            network(2, 700.0, Some("alphabeta-1")),
        ];
        let matches = [
            met(1, 11, (0, 0, 40)),
            met(11, 2, (1, 2, 17)),
            met(10, 2, (2, 0, 38)),
        ];
        assert_eq!(
            ladder(&networks[0], &networks, &matches),
            [
                "Against alphabeta-1 it loses most games: 7 % of the points (3 won, 2 drawn, 55 lost)",
                "Against random it wins almost every game: over 99 % of the points (40 won, 0 drawn, 0 lost)",
            ]
        );
    }

    #[test]
    fn a_rung_of_which_few_games_tell_is_told_by_its_bounds() {
        let networks = [
            network(0, 1_100.0, None),
            network(1, 0.0, Some("alphabeta-1")),
        ];
        assert_eq!(
            ladder(&networks[0], &networks, &[met(0, 1, (3, 0, 1))]),
            [
                "Against alphabeta-1 it may get from 30 % to 95 % of the points (3 won, 0 drawn, 1 lost); more matches will tell"
            ]
        );
    }

    #[test]
    fn an_anchor_that_only_weaker_networks_have_met_is_not_measured() {
        let networks = [30, 20, 10, 0]
            .map(|number| network(number, f64::from(number), None))
            .into_iter()
            .chain([network(1, 0.0, Some("alphabeta-1"))]);
        let networks: Vec<_> = networks.collect();
        let told = |matches: &[MatchInfo]| ladder(&networks[0], &networks, matches).concat();
        let anchor = "Against alphabeta-1";
        assert_eq!(told(&[]), format!("{anchor}: not measured"));
        assert_eq!(
            told(&[met(20, 10, (1, 0, 3))]),
            format!("{anchor}: not measured")
        );
        let since = format!("{anchor}: not measured since #10 (4 won, 0 drawn, 1 lost)");
        let old = [
            met(1, 10, (1, 0, 4)),
            met(10, 1, (1, 0, 7)),
            met(0, 1, (1, 0, 9)),
        ];
        assert_eq!(told(&old), since);
        assert!(told(&[met(20, 1, (40, 20, 36))]).contains("it is about as strong: 52 %"));
    }
}
