//! What the tests share: a coordinator in a temporary folder, and games made by hand.

pub(crate) mod anchors;
pub(crate) mod app;
pub(crate) mod audit_scenario;
pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod games;
pub(crate) mod matches;
pub(crate) mod networks;
pub(crate) mod postgres;
pub(crate) mod s3;
pub(crate) mod selfplay;

use jiff::Timestamp;
use rookery_coordinator::db::Actor;

/// When the tests begin.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_second(1_750_000_000).unwrap()
}

/// Somebody who does something at noon.
pub(crate) fn by(name: &str) -> Actor {
    Actor::new(name, noon())
}
