//! A player's rating by games with opponents whose ratings are known: by the performance formula, and by Bradley-Terry.

use std::str::FromStr;

use rookery_common::rating::anchor::ParseAnchorEloError;
use rookery_common::rating::{Anchor, AnchorElo, Pairing, RatingError, Tally, bradley_terry};
use serde::Serialize;

/// The rating of an opponent, written `NAME=ELO`.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRating {
    name: String,
    elo: AnchorElo,
}

impl FromStr for KnownRating {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?}: write NAME=ELO, for example maia-1100.pb.gz@1=1100");
        let (name, elo) = text.rsplit_once('=').ok_or_else(refuse)?;
        let elo = elo
            .parse()
            .map_err(|error: ParseAnchorEloError| error.to_string())?;
        let name = name.to_owned();
        (!name.is_empty())
            .then_some(Self { name, elo })
            .ok_or_else(refuse)
    }
}

/// The rating of an opponent: the known one of its name, or the one that Stockfish is limited to.
pub(crate) fn rating_of(opponent: &str, known: &[KnownRating]) -> Option<AnchorElo> {
    let found = known.iter().find(|one| one.name == opponent);
    let by_name = || {
        opponent
            .strip_prefix("stockfish:")?
            .parse::<AnchorElo>()
            .ok()
    };
    found.map(|one| one.elo).or_else(by_name)
}

/// Refuses ratings of players that do not play.
///
/// # Errors
///
/// If one is not among the opponents.
pub(crate) fn check_names(known: &[KnownRating], opponents: &[&str]) -> anyhow::Result<()> {
    for KnownRating { name, .. } in known {
        anyhow::ensure!(
            opponents.contains(&&**name),
            "--rating names {name:?}, which is no opponent; these play: {}",
            opponents.join(", ")
        );
    }
    Ok(())
}

/// What games with rated opponents say of a player.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatedPerformance {
    /// Games with rated opponents.
    pub games: u64,
    /// Their ratings' mean, by games, and 400 (wins - losses) / games.
    pub performance: f64,
    /// The likeliest rating by Bradley-Terry, with its 95 % interval.
    pub bradley_terry: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl RatedPerformance {
    /// By the results with each rated opponent; none without games.
    ///
    /// # Errors
    ///
    /// [`RatingError`] if there are more games than can be counted.
    pub fn new(results: &[(AnchorElo, Tally)]) -> Result<Option<Self>, RatingError> {
        let (mut games, mut ratings, mut balance) = (0, 0.0, 0.0);
        let (mut pairings, mut anchors) = (Vec::new(), Vec::new());
        for (place, (elo, tally)) in results.iter().enumerate() {
            games += tally.games();
            ratings += elo.get() * tally.games() as f64;
            balance += tally.wins as f64 - tally.losses as f64;
            pairings.push(Pairing {
                player: 0,
                opponent: place + 1,
                wins: tally.wins,
                draws: tally.draws,
                losses: tally.losses,
            });
            anchors.push(Anchor {
                player: place + 1,
                elo: elo.get(),
            });
        }
        if games == 0 {
            return Ok(None);
        }
        let fit = bradley_terry::fit(results.len() + 1, &pairings, &anchors)?;
        let own = fit.players()[0];
        Ok(Some(Self {
            games,
            performance: (ratings + 400.0 * balance) / games as f64,
            bradley_terry: own.elo,
            low: own.low(),
            high: own.high(),
        }))
    }

    /// For people.
    pub fn line(&self) -> String {
        format!(
            "{} games with rated opponents: performance {:.0}, Bradley-Terry {:.0} ({:.0} to {:.0})",
            self.games, self.performance, self.bradley_terry, self.low, self.high
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(elo: f64, wins: u64, draws: u64, losses: u64) -> (AnchorElo, Tally) {
        let tally = Tally {
            wins,
            draws,
            losses,
            ..Tally::default()
        };
        (AnchorElo::new(elo).unwrap(), tally)
    }

    #[test]
    fn performance_is_as_counted_by_hand() {
        // 10 games at 1000 and 30 at 1400 have a mean of 1300; 400 * (12 - 20) / 40 is -80.
        let results = [result(1000.0, 8, 1, 1), result(1400.0, 4, 7, 19)];
        let found = RatedPerformance::new(&results).unwrap().unwrap();
        assert_eq!((found.games, found.performance), (40, 1220.0));
        assert!(found.low < found.bradley_terry && found.bradley_terry < found.high);
        assert!((1150.0..1300.0).contains(&found.bradley_terry), "{found:?}");
        let text = found.line();
        assert!(
            text.starts_with("40 games with rated opponents: performance 1220, "),
            "{text}"
        );
    }

    #[test]
    fn the_two_formulas_differ_where_nearly_everything_is_won() {
        let found = RatedPerformance::new(&[result(1000.0, 99, 0, 1)])
            .unwrap()
            .unwrap();
        // 400 more at most; the logarithm of 99 is some 800.
        assert_eq!(found.performance, 1392.0);
        assert!(found.bradley_terry > 1600.0, "{found:?}");
        assert_eq!(RatedPerformance::new(&[]).unwrap(), None);
        assert_eq!(
            RatedPerformance::new(&[result(1000.0, 0, 0, 0)]).unwrap(),
            None
        );
    }

    #[test]
    fn ratings_are_given_by_name_and_stockfish_has_its_own() {
        let known: KnownRating = "a=b@1=1100".parse().unwrap();
        let known = [known];
        assert_eq!(rating_of("a=b@1", &known).unwrap().get(), 1100.0);
        assert_eq!(rating_of("stockfish:1500", &known).unwrap().get(), 1500.0);
        for unrated in ["stockfish:nodes=100", "random", "a"] {
            assert_eq!(rating_of(unrated, &known), None);
        }
        check_names(&known, &["random", "a=b@1"]).unwrap();
        let error = check_names(&known, &["random"]).unwrap_err().to_string();
        assert!(
            error.contains("a=b@1") && error.ends_with("random"),
            "{error}"
        );
        for text in ["a", "=100", "a=x", "a=1e9"] {
            text.parse::<KnownRating>().unwrap_err();
        }
    }
}
