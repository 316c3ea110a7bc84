//! From results between networks to ratings.

use std::collections::BTreeSet;

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::Rating;
use rookery_common::rating::RatingError;
use rookery_common::rating::bradley_terry::{self, Anchor, Pairing, RatingFit};

use crate::store::HeadToHead;

/// So many networks are compared when a rating match is chosen.
const NEWEST: usize = 200;

/// What the games of a run say of its networks.
#[derive(Debug)]
pub struct Fitted {
    /// In ascending order.
    networks: Vec<NetworkNumber>,
    fit: RatingFit,
}

/// Rates all networks that have played, and the first, which is 0.
///
/// # Errors
///
/// If there are more networks than a fit can hold.
pub fn fit(results: &[HeadToHead]) -> Result<Fitted, RatingError> {
    let first = NetworkNumber(0);
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
    let fit = bradley_terry::fit(networks.len(), &pairings, &[Anchor::FIRST])?;
    Ok(Fitted { networks, fit })
}

impl Fitted {
    /// The ratings.
    pub fn ratings(&self) -> Vec<(NetworkNumber, Rating)> {
        let ratings = self.fit.players().iter().map(|player| Rating {
            elo: player.elo,
            low: player.low(),
            high: player.high(),
            games: player.games,
        });
        self.networks.iter().copied().zip(ratings).collect()
    }

    /// The one of `others` that is likeliest to be stronger than `network`, with that likelihood of
    /// superiority, 0 to 1; none if none of them has been rated.
    pub fn likeliest_above(
        &self,
        network: NetworkNumber,
        others: impl IntoIterator<Item = NetworkNumber>,
    ) -> Option<(NetworkNumber, f64)> {
        let network = self.place(network)?;
        let superiority = |other| Some((other, self.fit.superiority(self.place(other)?, network)?));
        let rated = others.into_iter().filter_map(superiority);
        rated.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The two of `networks` (in ascending order) of which so many games would say most about all
    /// ratings, the newer one first; none if there are not two.
    ///
    /// A network that has not played comes first, the newest of them, against the one before it:
    /// nothing else says how strong it may be. Of many networks only the newest are looked at.
    pub fn most_informative(
        &self,
        networks: &[NetworkNumber],
        games: u64,
    ) -> Option<(NetworkNumber, NetworkNumber)> {
        let newest = &networks[networks.len().saturating_sub(NEWEST)..];
        let pairs = newest.windows(2).map(|pair| (pair[1], pair[0])).rev();
        if let Some(unknown) = pairs.into_iter().find(|pair| self.place(pair.0).is_none()) {
            return Some(unknown);
        }
        let gain = |(one, other)| {
            let gain = self.fit.gain(self.place(one)?, self.place(other)?, games)?;
            Some(((one, other), gain))
        };
        let pairs = newest.iter().enumerate().flat_map(|(place, one)| {
            let earlier = newest[..place].iter();
            earlier.map(move |other| (*one, *other))
        });
        let best = pairs.filter_map(gain).max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(best.0)
    }

    /// Where a network is in the fit, if it has played or is the first.
    fn place(&self, network: NetworkNumber) -> Option<usize> {
        self.networks.binary_search(&network).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let fitted = fit(&[result(0, 1, 10, 40), result(1, 3, 20, 20)]).unwrap();
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
            let networks: Vec<_> = networks.iter().copied().map(NetworkNumber).collect();
            let (one, other) = fit(results)
                .unwrap()
                .most_informative(&networks, 40)
                .unwrap();
            (one.0, other.0)
        };
        // Equal networks, of which all but one pairing are known well.
        let equal = [
            result(0, 1, 500, 500),
            result(1, 2, 500, 500),
            result(2, 3, 5, 5),
        ];
        assert_eq!(most(&equal, &[0, 1, 2, 3]).0, 3);
        assert_eq!(most(&equal, &[0, 1, 2]), (2, 0), "3 was never best");
        // Nobody learns anything from a network that always beats the other.
        let far = [
            result(0, 1, 5, 195),
            result(1, 2, 5, 195),
            result(2, 3, 10, 10),
        ];
        assert_ne!(most(&far, &[0, 1, 2, 3]).1, 0);
        // What is not known at all comes first, the newest of it.
        assert_eq!(most(&far, &[0, 1, 2, 3, 7, 9]), (9, 7));
        assert_eq!(
            fit(&[]).unwrap().most_informative(&[NetworkNumber(0)], 40),
            None
        );
        assert_eq!(fit(&[]).unwrap().most_informative(&[], 40), None);
        assert_eq!(most(&[], &[0, 1]), (1, 0));
    }

    #[test]
    fn without_games_there_is_only_the_first() {
        assert_eq!(fit(&[]).unwrap().ratings().len(), 1);
    }
}
