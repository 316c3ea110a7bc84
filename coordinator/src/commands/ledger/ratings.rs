//! Ratings against the games that they were fitted to.

use std::collections::{BTreeMap, BTreeSet};

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::Rating;
use rookery_common::text::quantity;

use crate::db::{Checked, Discrepancy, Fitting, RatingState};
use crate::ratings;

/// Tolerance of a new fit, in Elo: the order of sums changes it.
const ELO_TOLERANCE: f64 = 1e-3;

/// Compares ratings, if they were fitted to all the games that there are.
pub(super) fn check(state: &RatingState, checked: &mut Checked) -> anyhow::Result<()> {
    let facts = match state.fitted {
        Fitting::Due { games } => {
            checked.not_compared.push(waiting(games));
            return Ok(());
        }
        Fitting::Never => Vec::new(),
        Fitting::Done => ratings::fit(&state.basis)?.ratings(),
    };
    let facts: BTreeMap<NetworkNumber, Rating> = facts.into_iter().collect();
    let stored = state.stored.iter().map(|row| (row.network, row.rating));
    let stored: BTreeMap<NetworkNumber, Rating> = stored.collect();
    let networks: BTreeSet<&NetworkNumber> = facts.keys().chain(stored.keys()).collect();
    for network in networks {
        let (stored, fitted) = (stored.get(network), facts.get(network));
        if !agree(stored, fitted) {
            checked.discrepancies.push(Discrepancy {
                what: format!("rating of network {network}"),
                stored: told(stored),
                recomputed: told(fitted),
            });
        }
    }
    Ok(())
}

fn waiting(games: u64) -> String {
    if games == 0 {
        return "ratings, whose fit is pending".to_owned();
    }
    let are = if games == 1 { "is" } else { "are" };
    format!(
        "ratings, as {} {are} not rated yet",
        quantity(games, "game")
    )
}

fn agree(stored: Option<&Rating>, fitted: Option<&Rating>) -> bool {
    match (stored, fitted) {
        (None, None) => true,
        (Some(stored), Some(fitted)) => {
            let near = |one: f64, other: f64| one == other || (one - other).abs() <= ELO_TOLERANCE;
            stored.games == fitted.games
                && near(stored.elo, fitted.elo)
                && near(stored.low, fitted.low)
                && near(stored.high, fitted.high)
        }
        _ => false,
    }
}

fn told(rating: Option<&Rating>) -> String {
    let Some(rating) = rating else {
        return "none".to_owned();
    };
    let Rating {
        elo,
        low,
        high,
        games,
    } = rating;
    let games = quantity(*games, "game");
    format!("{elo} Elo, {low} to {high}, by {games}")
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::ContentHash;
    use rookery_common::protocol::matches::RatingRow;

    use super::*;
    use crate::db::{HeadToHead, RatingBasis};

    /// The ratings of two networks that have played ten games, as they follow.
    fn fitted() -> RatingState {
        let result = HeadToHead {
            a: NetworkNumber(0),
            b: NetworkNumber(1),
            wins: 3,
            draws: 2,
            losses: 5,
        };
        let basis = RatingBasis {
            results: vec![result],
            given: Vec::new(),
        };
        let ratings = ratings::fit(&basis).unwrap().ratings().into_iter();
        let stored = ratings.map(|(network, rating)| row(network, rating));
        RatingState {
            stored: stored.collect(),
            basis,
            fitted: Fitting::Done,
        }
    }

    fn row(network: NetworkNumber, rating: Rating) -> RatingRow {
        RatingRow {
            network,
            hash: ContentHash::of(b"network"),
            rating,
        }
    }

    /// What is found, and what is not compared.
    fn checked(state: &RatingState) -> (Vec<String>, Vec<String>) {
        let mut checked = Checked::default();
        check(state, &mut checked).unwrap();
        let found = checked.discrepancies.into_iter().map(|found| found.what);
        (found.collect(), checked.not_compared)
    }

    /// A change of the ratings that are kept.
    type Tampering = fn(&mut RatingState);

    #[test]
    fn whatever_differs_in_ratings_is_named() {
        assert_eq!(checked(&fitted()), (Vec::new(), Vec::new()));
        let changes: [(&str, Tampering); 6] = [
            ("1", |state| state.stored[1].rating.elo += 0.01),
            ("1", |state| state.stored[1].rating.low = -5_000.0),
            ("1", |state| state.stored[1].rating.high = 5_000.0),
            ("1", |state| state.stored[1].rating.games = 37),
            ("0", |state| state.stored.retain(|row| row.network.0 != 0)),
            ("2", |state| {
                let rating = state.stored[1].rating;
                state.stored.push(row(NetworkNumber(2), rating));
            }),
        ];
        for (network, change) in changes {
            let mut state = fitted();
            change(&mut state);
            let named = vec![format!("rating of network {network}")];
            assert_eq!(checked(&state), (named, Vec::new()));
        }
    }

    #[test]
    fn ratings_that_were_never_fitted_are_none() {
        let never = RatingState {
            fitted: Fitting::Never,
            ..fitted()
        };
        assert_eq!(checked(&never).0.len(), 2);
        let none = RatingState {
            stored: Vec::new(),
            ..never
        };
        assert_eq!(checked(&none), (Vec::new(), Vec::new()));
    }

    #[test]
    fn ratings_that_wait_for_a_fit_are_not_compared_and_that_is_said() {
        for (games, said) in [(0, "fit is pending"), (37, "37 games")] {
            let mut state = fitted();
            state.stored.clear();
            state.fitted = Fitting::Due { games };
            let (found, not_compared) = checked(&state);
            assert_eq!(found, [""; 0]);
            assert!(not_compared[0].contains(said), "{not_compared:?}");
        }
    }
}
