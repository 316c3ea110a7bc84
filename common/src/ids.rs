//! Newtypes for the identifiers that programs exchange.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The SHA-256 of a file's bytes: the name of a network, a chunk or a book.
///
/// Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(value_type = String, min_length = 64, max_length = 64, pattern = "^[0-9a-f]{64}$")]
pub struct ContentHash([u8; 32]);

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256: expected 64 hexadecimal digits, got {0:?}")]
pub struct ParseHashError(String);

impl ContentHash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A hash from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        let refuse = || ParseHashError(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| refuse())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| refuse())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

macro_rules! number_newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number_newtype! {
    /// A network's number within its run; the first is 0.
    NetworkNumber(u32)
}
number_newtype! {
    /// A match's number on its coordinator.
    MatchId(i64)
}
number_newtype! {
    /// A game's number on its coordinator.
    GameId(i64)
}
number_newtype! {
    /// A user's number on its coordinator.
    UserId(i64)
}
number_newtype! {
    /// The seed from which a job's or a game's random choices follow.
    Seed(u64)
}

/// By how much the SplitMix64 generator's state grows with each game.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Seed {
    /// The seed of game `index` of a job with this seed: a SplitMix64 step
    /// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    pub fn of_game(self, index: u32) -> Self {
        let mut z = self.starting_at(u64::from(index) + 1).0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }

    /// The seed of a job that begins with game `first` of the games that follow from this seed: its
    /// game `i` has the seed of game `first + i`.
    pub const fn starting_at(self, first: u64) -> Self {
        Self(self.0.wrapping_add(STEP.wrapping_mul(first)))
    }
}

/// A job's identifier: unguessable, given by the coordinator.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct JobId(pub uuid::Uuid);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for JobId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        uuid::Uuid::parse_str(text).map(Self)
    }
}

/// A text that is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}'s name: use 1 to 32 of a-z, 0-9 and '-', beginning with a letter")]
pub struct ParseNameError {
    text: String,
    what: &'static str,
}

macro_rules! name_newtype {
    ($(#[$doc:meta])* $name:ident of $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, pattern = "^[a-z][a-z0-9-]{0,31}$")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if is_name(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(ParseNameError {
                    text: text.chars().take(80).collect(),
                    what: $what,
                })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

name_newtype! {
    /// A run's name: 1 to 32 of `a`-`z`, `0`-`9` and `-`, beginning with a letter.
    RunName of "a run"
}
name_newtype! {
    /// What operators call a network of known strength, for example `maia-1100`: 1 to 32 of
    /// `a`-`z`, `0`-`9` and `-`, beginning with a letter.
    AnchorName of "an anchor"
}

fn is_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    let rest = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    first && rest && text.len() <= 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_round_trips_through_text_and_json() {
        let hash = ContentHash::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text, "FIPS 180-2 test vector");
        assert_eq!(text.parse(), Ok(hash));
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<ContentHash>(&json).unwrap(), hash);
    }

    #[test]
    fn a_hash_of_another_form_is_refused() {
        for text in ["", "zz", &"é".repeat(32), &"a".repeat(63), &"+1".repeat(32)] {
            assert!(text.parse::<ContentHash>().is_err(), "{text}");
        }
    }

    #[test]
    fn run_names_are_plain() {
        assert!("main-2".parse::<RunName>().is_ok());
        for text in ["", "2main", "Main", "a/b", "a b", &"a".repeat(33)] {
            assert!(text.parse::<RunName>().is_err(), "{text}");
        }
    }

    #[test]
    fn game_seeds_differ() {
        let seeds: std::collections::HashSet<_> = (0..1000).map(|i| Seed(7).of_game(i)).collect();
        assert_eq!(seeds.len(), 1000);
    }

    #[test]
    fn a_jobs_game_has_the_seed_that_it_has_in_a_job_that_begins_earlier() {
        for seed in [Seed(7), Seed(u64::MAX)] {
            for (first, index) in [(0, 3), (6, 0), (6, 5)] {
                let later = seed.starting_at(u64::from(first)).of_game(index);
                assert_eq!(later, seed.of_game(first + index));
            }
        }
    }
}
