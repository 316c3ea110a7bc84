//! From results between networks to ratings.

use std::collections::BTreeSet;

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::Rating;
use rookery_common::rating::RatingError;
use rookery_common::rating::bradley_terry::{self, Anchor, Pairing, RatingFit};

use super::contender::{Contender, Role};
use crate::db::RatingBasis;

/// Number of networks that are compared when a rating match is chosen.
const NEWEST: usize = 200;

/// What the games of a run say of its networks.
#[derive(Debug)]
pub struct Fitted {
    /// In ascending order.
    networks: Vec<NetworkNumber>,
    /// Those from which ratings are counted, by their places among the networks.
    anchors: Vec<Anchor>,
    /// Whether games tie each network to one of them, directly or through others.
    connected: Vec<bool>,
    fit: RatingFit,
}

/// Rates all networks that have played. Those whose Elo is given have it; if there is none, the
/// first network is 0, whether or not it has played.
pub fn fit(basis: &RatingBasis) -> Result<Fitted, RatingError> {
    let first = NetworkNumber(0);
    let results = &basis.results;
    let played = results.iter().flat_map(|result| [result.a, result.b]);
    let networks: Vec<NetworkNumber> = played
        .chain([first])
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let pairings: Vec<Pairing> = results
        .iter()
        .filter_map(|result| {
            Some(Pairing {
                player: networks.binary_search(&result.a).ok()?,
                opponent: networks.binary_search(&result.b).ok()?,
                wins: result.wins,
                draws: result.draws,
                losses: result.losses,
            })
        })
        .collect();
    let anchors = anchors(basis, &networks, &pairings);
    let fit = bradley_terry::fit(networks.len(), &pairings, &anchors)?;
    Ok(Fitted {
        connected: connected(networks.len(), &pairings, &anchors),
        networks,
        anchors,
        fit,
    })
}

/// The networks from which ratings are counted.
fn anchors(basis: &RatingBasis, networks: &[NetworkNumber], pairings: &[Pairing]) -> Vec<Anchor> {
    let has_played = |player| {
        let mut played = pairings.iter().filter(|pairing| pairing.games() > 0);
        played.any(|pairing| [pairing.player, pairing.opponent].contains(&player))
    };
    let given = basis.given.iter().filter_map(|(number, elo)| {
        let player = networks.binary_search(number).ok()?;
        let elo = elo.get();
        has_played(player).then_some(Anchor { player, elo })
    });
    let given: Vec<Anchor> = given.collect();
    if given.is_empty() {
        vec![Anchor::FIRST]
    } else {
        given
    }
}

/// Which players are connected to an anchor by games. The others could be anywhere on the scale.
fn connected(players: usize, pairings: &[Pairing], anchors: &[Anchor]) -> Vec<bool> {
    let mut connected = vec![false; players];
    let mut reached: Vec<usize> = anchors.iter().map(|anchor| anchor.player).collect();
    let mut opponents = vec![Vec::new(); players];
    for pairing in pairings.iter().filter(|pairing| pairing.games() > 0) {
        opponents[pairing.player].push(pairing.opponent);
        opponents[pairing.opponent].push(pairing.player);
    }
    while let Some(player) = reached.pop() {
        if !std::mem::replace(&mut connected[player], true) {
            reached.append(&mut opponents[player]);
        }
    }
    connected
}

impl Fitted {
    pub fn ratings(&self) -> Vec<(NetworkNumber, Rating)> {
        let numbers = self.networks.iter().enumerate();
        numbers
            .filter_map(|(place, number)| Some((*number, self.rating(place)?)))
            .collect()
    }

    /// The rating of the network at this place; none if no games tie it to what ratings are counted
    /// from.
    fn rating(&self, place: usize) -> Option<Rating> {
        let player = self.fit.players().get(place)?;
        let games = player.games;
        let given = self.anchors.iter().find(|anchor| anchor.player == place);
        match given {
            Some(Anchor { elo, .. }) => Some(Rating {
                elo: *elo,
                low: *elo,
                high: *elo,
                games,
            }),
            None => self.connected[place].then(|| Rating {
                elo: player.elo,
                low: player.low(),
                high: player.high(),
                games,
            }),
        }
    }

    /// The one of `others` that is likeliest to be stronger than `network`, with that likelihood of
    /// superiority, 0 to 1; none if none of them has been rated.
    pub fn likeliest_above(
        &self,
        network: NetworkNumber,
        others: impl IntoIterator<Item = NetworkNumber>,
    ) -> Option<(NetworkNumber, f64)> {
        let network = self.rated(network)?;
        let superiority = |other| Some((other, self.fit.superiority(self.rated(other)?, network)?));
        let rated = others.into_iter().filter_map(superiority);
        rated.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The two of `contenders` (in ascending order) that [may meet](Contender::may_meet) and of which
    /// so many games would say most about all ratings, the newer one first; none if there are not
    /// two.
    ///
    /// One without a rating comes first, against the newest network of the run that has one: a match between
    /// two unrated networks would rate neither. Of many networks only the newest are looked at.
    pub fn most_informative(
        &self,
        contenders: &[Contender],
        games: u64,
    ) -> Option<(NetworkNumber, NetworkNumber)> {
        if let Some(unrated) = self.unrated(contenders) {
            return Some(unrated);
        }
        let newest = &contenders[contenders.len().saturating_sub(NEWEST)..];
        let gain = |(one, other)| {
            let gain = self.fit.gain(self.place(one)?, self.place(other)?, games)?;
            Some(((one, other), gain))
        };
        let pairs = newest.iter().enumerate().flat_map(|(place, one)| {
            let met = newest[..place].iter();
            let met = met.filter(move |other| one.may_meet(**other));
            met.map(move |other| (one.number, other.number))
        });
        let best = pairs.filter_map(gain).max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(best.0)
    }

    /// One without a rating and the newest of the run's own that has one, the newer one first; where none of these
    /// has one, the newest anchor that does.
    ///
    /// Until one anchor with a given Elo is rated there is no scale, so such an anchor comes first. Then come the run's
    /// own networks, the newest first, and other anchors in ascending order.
    pub(super) fn unrated(
        &self,
        contenders: &[Contender],
    ) -> Option<(NetworkNumber, NetworkNumber)> {
        let is_rated = |one: &Contender| self.rated(one.number).is_some();
        let mut rated = contenders.iter().filter(|one| is_rated(one));
        let has_scale = rated.any(|one| one.role == Role::GivenAnchor);
        let order = |one: &&Contender| match one.role {
            Role::GivenAnchor if !has_scale => (0, one.number.0),
            Role::BeenBest => (1, u32::MAX - one.number.0),
            Role::Anchor | Role::GivenAnchor => (2, one.number.0),
        };
        let newest = &contenders[contenders.len().saturating_sub(NEWEST)..];
        let unrated = newest.iter().filter(|one| !is_rated(one));
        let unrated = *unrated.min_by_key(order)?;
        let may_meet = |other: &&Contender| unrated.may_meet(**other) && is_rated(other);
        let own = |other: &&Contender| may_meet(other) && other.role == Role::BeenBest;
        let rated = contenders.iter().rfind(own);
        let rated = rated.or_else(|| contenders.iter().rfind(may_meet))?;
        let (one, other) = (unrated.number, rated.number);
        Some((one.max(other), one.min(other)))
    }

    /// Where a network is in the fit, if it has a rating.
    fn rated(&self, network: NetworkNumber) -> Option<usize> {
        let place = self.place(network)?;
        self.rating(place).map(|_| place)
    }

    /// Where a network is in the fit, if it has played or is the first.
    fn place(&self, network: NetworkNumber) -> Option<usize> {
        self.networks.binary_search(&network).ok()
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::rating::AnchorElo;

    use super::*;
    use crate::db::HeadToHead;

    /// A fit to these results, without a given Elo.
    fn fit_to(results: &[HeadToHead]) -> Fitted {
        fit_with(results, &[])
    }

    /// A fit to these results, with the Elo of these networks given.
    fn fit_with(results: &[HeadToHead], given: &[(u32, f64)]) -> Fitted {
        let given = given
            .iter()
            .map(|(number, elo)| (NetworkNumber(*number), AnchorElo::new(*elo).unwrap()));
        let basis = RatingBasis {
            results: results.to_vec(),
            given: given.collect(),
        };
        fit(&basis).unwrap()
    }

    /// Networks of the run itself.
    fn own(numbers: &[u32]) -> Vec<Contender> {
        let numbers = numbers.iter().copied().map(NetworkNumber);
        let role = Role::BeenBest;
        numbers.map(|number| Contender { number, role }).collect()
    }

    /// Contenders with these roles, numbered from 0.
    fn contenders<const N: usize>(roles: [Role; N]) -> Vec<Contender> {
        let numbers = (0..).map(NetworkNumber);
        let numbered = numbers.zip(roles);
        numbered
            .map(|(number, role)| Contender { number, role })
            .collect()
    }

    /// The match of forty games that says most.
    fn next(fitted: &Fitted, contenders: &[Contender]) -> Option<(u32, u32)> {
        let most = fitted.most_informative(contenders, 40);
        most.map(|(one, other)| (one.0, other.0))
    }

    #[test]
    fn networks_are_rated_against_the_first() {
        let result = |a, b, wins, losses| HeadToHead {
            a: NetworkNumber(a),
            b: NetworkNumber(b),
            wins,
            draws: 10,
            losses,
        };
        // Network 2 was never in a match: the candidates were 1 and 3.
        let fitted = fit_to(&[result(0, 1, 10, 40), result(1, 3, 20, 20)]);
        let ratings = fitted.ratings();
        let numbers: Vec<u32> = ratings.iter().map(|(number, _)| number.0).collect();
        assert_eq!(numbers, [0, 1, 3]);
        assert!(ratings[0].1.elo.abs() < 1e-9);
        assert!(ratings[1].1.elo > 50.0);
        assert!((ratings[1].1.elo - ratings[2].1.elo).abs() < 1.0);
        assert!(ratings[1].1.low < ratings[1].1.elo && ratings[1].1.elo < ratings[1].1.high);
        assert_eq!(ratings[1].1.games, 110);
        let above = |network, others: [u32; 2]| {
            fitted.likeliest_above(NetworkNumber(network), others.map(NetworkNumber))
        };
        let (likeliest, superiority) = above(0, [1, 2]).unwrap();
        assert!(likeliest == NetworkNumber(1) && superiority > 0.99);
        let (_, superiority) = above(1, [0, 2]).unwrap();
        assert!(superiority < 0.01);
        assert_eq!(above(0, [2, 9]), None, "neither has played");
    }

    #[test]
    fn the_next_match_is_the_one_that_says_most() {
        let result = |a, b, wins, losses| HeadToHead {
            a: NetworkNumber(a),
            b: NetworkNumber(b),
            wins,
            draws: 0,
            losses,
        };
        let most = |results: &[HeadToHead], networks: &[u32]| {
            next(&fit_to(results), &own(networks)).unwrap()
        };
        // Equal networks; all but one pairing are known well.
        let equal = [
            result(0, 1, 500, 500),
            result(1, 2, 500, 500),
            result(2, 3, 5, 5),
        ];
        assert_eq!(most(&equal, &[0, 1, 2, 3]).0, 3);
        assert_eq!(most(&equal, &[0, 1, 2]), (2, 0), "3 was never best");
        // A network that always beats the other adds no information.
        let far = [
            result(0, 1, 5, 195),
            result(1, 2, 5, 195),
            result(2, 3, 10, 10),
        ];
        assert_ne!(most(&far, &[0, 1, 2, 3]).1, 0);
        // What is not known at all comes first, the newest of it.
        assert_eq!(most(&far, &[0, 1, 2, 3, 7, 9]), (9, 3));
        assert_eq!(next(&fit_to(&[]), &own(&[0])), None);
        assert_eq!(next(&fit_to(&[]), &[]), None);
        assert_eq!(most(&[], &[0, 1]), (1, 0));
    }

    #[test]
    fn without_games_there_is_only_the_first() {
        assert_eq!(fit_to(&[]).ratings().len(), 1);
    }

    /// Fifty games: wins of the first network; the second won the others.
    fn fifty(a: u32, b: u32, wins: u64) -> HeadToHead {
        HeadToHead {
            a: NetworkNumber(a),
            b: NetworkNumber(b),
            wins,
            draws: 0,
            losses: 50 - wins,
        }
    }

    fn elos(fitted: &Fitted) -> Vec<(u32, f64)> {
        let ratings = fitted.ratings().into_iter();
        ratings.map(|(n, rating)| (n.0, rating.elo)).collect()
    }

    #[test]
    fn an_anchor_that_has_played_moves_the_scale_and_nothing_else() {
        let results = [fifty(0, 1, 10), fifty(1, 2, 20)];
        let (plain, moved) = (fit_to(&results), fit_with(&results, &[(2, 1100.0)]));
        let last = moved.ratings()[2].1;
        assert_eq!((last.elo, last.low, last.high), (1100.0, 1100.0, 1100.0));
        assert_eq!(last.games, 50);
        let shift = 1100.0 - elos(&plain)[2].1;
        for ((_, one), (_, other)) in elos(&plain).into_iter().zip(elos(&moved)) {
            assert!((one + shift - other).abs() < 0.1, "{one} {other}");
        }
        let first = moved.ratings()[0].1;
        assert!(first.low < first.elo && first.elo < first.high);
        // Who is stronger does not depend on where the scale begins.
        let above = |fitted: &Fitted| {
            let (network, others) = (NetworkNumber(0), [NetworkNumber(1)]);
            fitted.likeliest_above(network, others).unwrap().1
        };
        assert!((above(&plain) - above(&moved)).abs() < 1e-3);
    }

    #[test]
    fn several_anchors_keep_what_each_is_given() {
        let results = [fifty(0, 1, 10), fifty(0, 2, 10)];
        // By the games both are as strong; the first is drawn to both.
        let fitted = fit_with(&results, &[(1, 1100.0), (2, 1300.0)]);
        let elos = elos(&fitted);
        assert_eq!((elos[1], elos[2]), ((1, 1100.0), (2, 1300.0)));
        let alone = |anchor: u32, elo: f64| fit_with(&results, &[(anchor, elo)]).ratings()[0].1.elo;
        let (low, high) = (alone(1, 1100.0), alone(2, 1300.0));
        assert!(low < elos[0].1 && elos[0].1 < high, "{elos:?}");
    }

    #[test]
    fn an_anchor_that_has_not_played_says_nothing_of_the_scale() {
        let results = [fifty(0, 1, 10)];
        assert_eq!(
            elos(&fit_with(&results, &[(2, 1100.0)])),
            elos(&fit_to(&results))
        );
        // A pairing without a game is none.
        let none = HeadToHead {
            losses: 0,
            ..fifty(1, 2, 0)
        };
        let with_none = [results[0], none];
        let (with_none, without) = (
            elos(&fit_with(&with_none, &[(2, 1100.0)])),
            elos(&fit_to(&results)),
        );
        assert_eq!((with_none.len(), with_none[0]), (2, (0, 0.0)));
        assert!((with_none[1].1 - without[1].1).abs() < 0.1);
    }

    #[test]
    fn a_first_network_that_has_not_played_is_not_rated_beside_an_anchor() {
        let fitted = fit_with(&[fifty(1, 2, 25)], &[(2, 1100.0)]);
        let numbers: Vec<u32> = elos(&fitted).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2]);
        let (one, first) = (NetworkNumber(1), NetworkNumber(0));
        assert_eq!(fitted.likeliest_above(one, [first]), None);
        // It is the least known one.
        let contenders = contenders([Role::BeenBest, Role::BeenBest, Role::GivenAnchor]);
        let (_, opponent) = next(&fitted, &contenders).unwrap();
        assert_eq!(opponent, first.0);
    }

    #[test]
    fn an_island_of_networks_is_not_rated_and_is_tied_to_the_others_next() {
        // 3 and 4 have played each other only.
        let island = [fifty(0, 1, 20), fifty(3, 4, 20)];
        let fitted = fit_to(&island);
        let numbers: Vec<u32> = elos(&fitted).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 1]);
        let above = fitted.likeliest_above(NetworkNumber(1), [3, 4].map(NetworkNumber));
        assert_eq!(above, None);
        assert_eq!(next(&fitted, &own(&[0, 1, 3, 4])), Some((4, 1)));
        let tied = fit_to(&[island[0], fifty(1, 4, 20), island[1]]);
        let intervals = tied.ratings();
        assert_eq!(intervals.len(), 4);
        let wide = |(_, rating): &(NetworkNumber, Rating)| rating.high - rating.low > 600.0;
        assert!(!intervals.iter().any(wide), "{intervals:?}");
    }

    #[test]
    fn who_has_played_no_given_anchor_is_not_on_its_scale() {
        let fitted = fit_with(&[fifty(0, 1, 25), fifty(2, 3, 25)], &[(3, 1100.0)]);
        let numbers: Vec<u32> = elos(&fitted).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 3]);
        use Role::{BeenBest, GivenAnchor};
        let contenders = contenders([BeenBest, BeenBest, BeenBest, GivenAnchor]);
        assert_eq!(next(&fitted, &contenders), Some((2, 1)));
    }

    #[test]
    fn what_has_not_played_meets_a_network_of_the_run_first() {
        use Role::{Anchor, BeenBest, GivenAnchor};
        let first = |roles: [Role; 3]| next(&fit_to(&[]), &contenders(roles));
        for one in [Anchor, GivenAnchor] {
            for other in [Anchor, GivenAnchor] {
                let (_, opponent) = first([BeenBest, one, other]).unwrap();
                assert_eq!(opponent, 0, "{one:?} {other:?}");
            }
        }
        assert_eq!(first([BeenBest, Anchor, BeenBest]), Some((2, 0)));
        let after = fit_to(&[fifty(0, 2, 25)]);
        assert_eq!(
            next(&after, &contenders([BeenBest, Anchor, Anchor])),
            Some((1, 0))
        );
    }

    #[test]
    fn the_anchor_that_gives_the_scale_is_rated_first_and_weak_ones_before_strong_ones() {
        use Role::{Anchor, BeenBest, GivenAnchor};
        let next = |results: &[HeadToHead], roles: [Role; 5]| {
            next(&fit_with(results, &[(2, 0.0)]), &contenders(roles))
        };
        let roles = [BeenBest, Anchor, GivenAnchor, Anchor, BeenBest];
        assert_eq!(next(&[], roles), Some((2, 0)));
        let mut results = vec![fifty(0, 2, 25)];
        assert_eq!(next(&results, roles), Some((4, 0)), "the run's own");
        results.push(fifty(4, 0, 25));
        assert_eq!(next(&results, roles), Some((4, 1)), "the weakest anchor");
        results.push(fifty(4, 1, 25));
        assert_eq!(next(&results, roles), Some((4, 3)));
        // Where there is a scale, another given anchor waits for the run's networks.
        let second = [BeenBest, GivenAnchor, GivenAnchor, Anchor, BeenBest];
        assert_eq!(next(&results[..1], second), Some((4, 0)));
    }

    #[test]
    fn anchors_meet_only_where_the_elo_of_one_of_them_is_given() {
        use Role::{Anchor, BeenBest, GivenAnchor};
        let results = [fifty(0, 1, 25), fifty(0, 2, 25)];
        let next = |given: &[(u32, f64)], roles: [Role; 3]| {
            next(&fit_with(&results, given), &contenders(roles)).unwrap()
        };
        // The two that never met say most of each other.
        assert_eq!(next(&[], [BeenBest; 3]), (2, 1));
        assert_eq!(next(&[], [BeenBest, Anchor, Anchor]).1, 0);
        let one = [(1, 1100.0)];
        assert_eq!(next(&one, [BeenBest, GivenAnchor, Anchor]), (2, 1));
        let both = [(1, 1100.0), (2, 1100.0)];
        assert_eq!(next(&both, [BeenBest, GivenAnchor, GivenAnchor]).1, 0);
    }
}
