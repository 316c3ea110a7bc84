//! Between columns and types: times, hashes, names and JSON.

use std::fmt::Display;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, JobId, Seed};
use rookery_common::signing::RunKey;
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

fn time(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|error| unreadable("time", &error))
}

/// The day, in UTC, in which a time lies, as the API writes it.
pub(crate) fn day_text(milliseconds: i64) -> Result<String> {
    Ok(time(milliseconds)?.strftime("%Y-%m-%d").to_string())
}

/// A time that may be missing.
pub(crate) fn time_text_opt(milliseconds: Option<i64>) -> Result<Option<String>> {
    milliseconds.map(time_text).transpose()
}

/// A hash column.
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

/// The seed of a column.
pub(crate) const fn seed(column: i64) -> Seed {
    Seed(column.cast_unsigned())
}

/// The name that serde gives a variant without fields.
pub(crate) fn name_of<T: Serialize>(value: &T) -> Result<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(name),
        Ok(other) => Err(unreadable("name", &format!("{other} is no name"))),
        Err(error) => Err(unreadable("name", &error)),
    }
}

/// The variant of a name.
pub(crate) fn named<T: DeserializeOwned>(what: &'static str, name: &str) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|error| unreadable(what, &error))
}

/// A value as JSON.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| unreadable("value", &error))
}

/// A JSON column.
pub(crate) fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| unreadable(what, &error))
}

/// A count as its column holds it.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count from its column; a negative one reads as 0.
pub(crate) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// A small number from its column.
pub(crate) fn to_u32(what: &'static str, column: i64) -> Result<u32> {
    u32::try_from(column).map_err(|_| unreadable(what, &format!("{column} is out of range")))
}

/// The key of a column.
pub(crate) fn run_key(text: &str) -> Result<RunKey> {
    text.parse().map_err(|error| unreadable("key", &error))
}
