//! The Elo that an operator gives an anchor, on a scale that others know.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use super::error::{RatingError, within};

/// Largest rating of an anchor, in Elo; the smallest is as far below 0.
pub const MAX_ANCHOR: f64 = 10_000.0;

/// The Elo that an anchor is given: a number from -10,000 to 10,000.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, ToSchema, Default)]
#[serde(transparent)]
#[schema(value_type = f64, minimum = -10000.0, maximum = 10000.0)]
pub struct AnchorElo(f64);

/// A text that is no Elo of an anchor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no Elo of an anchor: give a number from -10000 to 10000")]
pub struct ParseAnchorEloError(String);

impl AnchorElo {
    /// This many points of Elo.
    ///
    /// # Errors
    ///
    /// [`RatingError::OutOfRange`] if it is not a number from -10,000 to 10,000.
    pub fn new(elo: f64) -> Result<Self, RatingError> {
        within("an anchor's rating", elo, -MAX_ANCHOR, MAX_ANCHOR)?;
        Ok(Self(elo))
    }

    /// The points of Elo.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for AnchorElo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for AnchorElo {
    type Err = ParseAnchorEloError;

    fn from_str(text: &str) -> Result<Self, ParseAnchorEloError> {
        let elo = text.parse().ok().and_then(|elo| Self::new(elo).ok());
        elo.ok_or_else(|| ParseAnchorEloError(text.chars().take(80).collect()))
    }
}

impl<'de> Deserialize<'de> for AnchorElo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elo_round_trips_and_what_a_fit_would_refuse_is_refused() {
        for (text, elo) in [
            ("1100", 1100.0),
            ("-12.5", -12.5),
            ("10000", MAX_ANCHOR),
            ("-10000", -MAX_ANCHOR),
        ] {
            let read: AnchorElo = text.parse().unwrap();
            assert_eq!((read.get(), &*read.to_string()), (elo, text));
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<AnchorElo>(&json).unwrap(), read);
        }
        for text in ["", "strong", "10000.1", "-10001", "NaN", "inf", "1e400"] {
            let error = text.parse::<AnchorElo>().unwrap_err().to_string();
            assert!(error.contains("-10000 to 10000"), "{error}");
        }
        let beyond = serde_json::from_str::<AnchorElo>("10001").unwrap_err();
        assert!(beyond.to_string().contains("anchor's rating"), "{beyond}");
    }
}
