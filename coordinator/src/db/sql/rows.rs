//! Between columns and types: times, hashes, names and JSON.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, Seed};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::error::{DbError, Result};

/// A column that this build cannot read.
pub(crate) fn unreadable(what: &'static str, reason: &dyn Display) -> DbError {
    DbError::Unreadable {
        what,
        reason: reason.to_string(),
    }
}

/// A time as RFC 3339.
pub(crate) fn time_text(milliseconds: i64) -> Result<String> {
    Ok(time(milliseconds)?.to_string())
}

pub(crate) fn time(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|error| unreadable("time", &error))
}

/// The day, in UTC, in which a time lies, as the API writes it.
pub(crate) fn day_text(milliseconds: i64) -> Result<String> {
    Ok(time(milliseconds)?.strftime("%Y-%m-%d").to_string())
}

pub(crate) fn time_text_opt(milliseconds: Option<i64>) -> Result<Option<String>> {
    milliseconds.map(time_text).transpose()
}

pub(crate) fn hash(bytes: &[u8]) -> Result<ContentHash> {
    let bytes = bytes
        .try_into()
        .map_err(|_| unreadable("hash", &format!("{} bytes", bytes.len())));
    bytes.map(ContentHash::from_bytes)
}

/// A job's identifier as its column holds it.
pub(crate) fn job_bytes(job: JobId) -> Vec<u8> {
    job.0.as_bytes().to_vec()
}

/// A seed as its column holds it: the same 64 bits.
pub(crate) const fn seed_column(seed: Seed) -> i64 {
    seed.0.cast_signed()
}

pub(crate) const fn seed(column: i64) -> Seed {
    Seed(column.cast_unsigned())
}

/// A name, a key or another value that its column holds as text.
pub(crate) fn parse<T: FromStr<Err: Display>>(what: &'static str, text: &str) -> Result<T> {
    text.parse()
        .map_err(|error: T::Err| unreadable(what, &error))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| unreadable("value", &error))
}

pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| unreadable(what, &error))
}

pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count from its column; a negative one reads as 0.
pub(crate) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(crate) fn to_u32(what: &'static str, column: i64) -> Result<u32> {
    u32::try_from(column).map_err(|_| unreadable(what, &format!("{column} is out of range")))
}

pub(crate) fn network(column: i64) -> Result<NetworkNumber> {
    to_u32("network", column).map(NetworkNumber)
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::runs::RunStatus;

    use super::*;

    #[test]
    fn a_text_that_is_no_name_is_reported_with_its_column() {
        let open: RunStatus = parse("status", "open").unwrap();
        assert_eq!(open, RunStatus::Open);
        let error = parse::<RunStatus>("status", "Open").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the ledger holds an unreadable status: \"Open\" is none of its names"
        );
    }
}
