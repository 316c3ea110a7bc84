//! Which ledger it is, and where it goes on.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
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

/// That a ledger was copied into another database and goes on there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Where it goes on, without secrets.
    pub to: String,
    /// Since when.
    pub at: Timestamp,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, at } = self;
        write!(
            f,
            "RK-0205: the ledger was copied into {to} at {at} and goes on there: use that one. To go on with this \
             one instead, without what came into the copy since, stop serving the copy and run `ledger reopen`"
        )
    }
}
