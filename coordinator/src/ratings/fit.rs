//! From results between networks to ratings.

use std::collections::BTreeSet;

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::Rating;
use rookery_common::rating::RatingError;
use rookery_common::rating::bradley_terry::{self, Anchor, Pairing};

use crate::store::HeadToHead;

/// The ratings of all networks that have played, and of the first, which is 0.
///
/// # Errors
///
/// If there are more networks than a fit can hold.
pub fn fit(results: &[HeadToHead]) -> Result<Vec<(NetworkNumber, Rating)>, RatingError> {
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
    let ratings = fit.players().iter().map(|player| Rating {
        elo: player.elo,
        low: player.low(),
        high: player.high(),
        games: player.games,
    });
    Ok(networks.into_iter().zip(ratings).collect())
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
        let ratings = fit(&[result(0, 1, 10, 40), result(1, 3, 20, 20)]).unwrap();
        let numbers: Vec<u32> = ratings.iter().map(|(number, _)| number.0).collect();
        assert_eq!(numbers, [0, 1, 3]);
        assert!(ratings[0].1.elo.abs() < 1e-9);
        assert!(ratings[1].1.elo > 50.0);
        assert!((ratings[1].1.elo - ratings[2].1.elo).abs() < 1.0);
        assert!(ratings[1].1.low < ratings[1].1.elo && ratings[1].1.elo < ratings[1].1.high);
        assert_eq!(ratings[1].1.games, 110);
    }

    #[test]
    fn without_games_there_is_only_the_first() {
        assert_eq!(fit(&[]).unwrap().len(), 1);
    }
}
