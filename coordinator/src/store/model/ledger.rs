//! Which ledger it is.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// A ledger's identifier: random, made with the ledger, and the same in every copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerId(Uuid);

impl fmt::Display for LedgerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.simple(), f)
    }
}

impl FromStr for LedgerId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}
