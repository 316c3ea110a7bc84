//! The scale on which a run's ratings stand, and how they are written on it.

use std::borrow::Borrow;
use std::fmt;

use rookery_common::ids::AnchorName;
use rookery_common::protocol::networks::{NetworkInfo, Rating};

use super::text;

/// From what the ratings of a run are counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RatingScale {
    /// From the first network, which is 0: ratings are differences from it, with their signs.
    First,
    /// From anchors with the Elo that they are given, in the order of their numbers.
    Given(Vec<(AnchorName, f64)>),
}

impl RatingScale {
    /// The scale on which the ratings of these networks of one run stand.
    ///
    /// The ratings themselves tell, not what anchors were given: that may have changed since they
    /// were fitted.
    pub(super) fn of(networks: &[NetworkInfo]) -> Self {
        let is_reference =
            |info: &&NetworkInfo| info.rating.as_ref().is_some_and(text::is_reference);
        let mut anchors: Vec<&NetworkInfo> = networks.iter().filter(is_reference).collect();
        anchors.sort_by_key(|info| info.number);
        let given = anchors
            .into_iter()
            .filter_map(|info| Some((info.anchor.clone()?, info.rating?.elo)));
        let given: Vec<_> = given.collect();
        if given.is_empty() {
            Self::First
        } else {
            Self::Given(given)
        }
    }

    /// That from which ratings are counted.
    pub(super) fn reference(&self) -> String {
        match self {
            Self::First => "network 0".to_owned(),
            Self::Given(anchors) => {
                let names: Vec<&str> = anchors.iter().map(|(name, _)| name.as_str()).collect();
                names.join(" or ")
            }
        }
    }

    /// What a point on the scale is called. Without opponents of a known rating it says only how networks of one run
    /// compare with each other.
    pub(super) const fn unit(&self) -> &'static str {
        match self {
            Self::First => "self-play Elo",
            Self::Given(_) => "Elo",
        }
    }

    /// A point on the scale.
    pub(super) fn point(&self, n: impl Borrow<f64>) -> String {
        match self {
            Self::First => text::signed(n),
            Self::Given(_) => text::decimal(n, 0),
        }
    }

    /// A rating and half of its interval: `+123 ± 14`, or `1523 ± 14` beside anchors; without an
    /// interval if ratings are counted from it.
    pub(super) fn elo(&self, rating: &Rating) -> String {
        match self {
            Self::First => text::rating(rating),
            Self::Given(_) if text::is_reference(rating) => format_given(rating.elo),
            Self::Given(_) => {
                let half = (rating.high - rating.low) / 2.0;
                format!("{} ± {half:.0}", self.point(rating.elo))
            }
        }
    }

    /// The same, where nothing else says whether it is measured: `1100 given`.
    pub(super) fn rating(&self, rating: &Rating) -> String {
        let elo = self.elo(rating);
        match self {
            Self::Given(_) if text::is_reference(rating) => format!("{elo} given"),
            Self::First | Self::Given(_) => elo,
        }
    }
}

impl fmt::Display for RatingScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("network 0 = 0"),
            Self::Given(anchors) => {
                let anchors = anchors.iter();
                let each: Vec<_> = anchors
                    .map(|(name, elo)| format!("{name} = {}", format_given(*elo)))
                    .collect();
                f.write_str(&each.join(", "))
            }
        }
    }
}

/// What an anchor was given: mostly a whole number.
fn format_given(elo: f64) -> String {
    text::decimal(elo, usize::from(elo.fract() != 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(elo: f64, half: f64) -> Rating {
        Rating {
            elo,
            low: elo - half,
            high: elo + half,
            games: 8,
        }
    }

    #[test]
    fn ratings_counted_from_the_first_network_have_signs() {
        let scale = RatingScale::First;
        assert_eq!(scale.to_string(), "network 0 = 0");
        assert_eq!(scale.unit(), "self-play Elo");
        assert_eq!(scale.rating(&of(123.4, 14.0)), "+123 ± 14");
        assert_eq!(scale.rating(&of(0.0, 0.0)), "0");
        assert_eq!(scale.point(-20.0), "−20");
    }

    #[test]
    fn ratings_counted_from_anchors_are_plain_and_what_is_given_says_so() {
        let name = |text: &str| text.parse().unwrap();
        let anchors = vec![(name("maia-1100"), 1100.0), (name("other"), -3.5)];
        let scale = RatingScale::Given(anchors);
        assert_eq!(scale.to_string(), "maia-1100 = 1100, other = −3.5");
        assert_eq!(scale.unit(), "Elo");
        assert_eq!(scale.rating(&of(1523.4, 14.0)), "1523 ± 14");
        assert_eq!(scale.rating(&of(1100.0, 0.0)), "1100 given");
        assert_eq!(scale.elo(&of(1100.0, 0.0)), "1100");
        assert_eq!([scale.point(12.0), scale.point(-20.0)], ["12", "−20"]);
    }
}
