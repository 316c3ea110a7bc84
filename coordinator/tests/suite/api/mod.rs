//! The API through the router.

mod chunks;
mod doors;
mod files;
mod matches;
mod shows;
