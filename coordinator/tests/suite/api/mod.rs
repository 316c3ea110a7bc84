//! The API through the router.

mod accounts;
mod addresses;
mod backlog;
mod chunks;
mod cleared;
mod clock;
mod doors;
mod dropped_pairs;
mod files;
mod forgotten;
mod keys;
mod ledger;
mod matches;
mod newcomers;
mod nonsense;
mod pages;
mod rating_matches;
mod rejections;
mod revoked;
mod rollbacks;
mod shows;
mod trust;
mod versions;
mod voices;
