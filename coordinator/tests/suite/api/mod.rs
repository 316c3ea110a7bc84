//! The API through the router.

mod chunks;
mod doors;
mod files;
mod ledger;
mod matches;
mod shows;
