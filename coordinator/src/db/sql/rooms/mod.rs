//! The ledger's rooms in SQL: every operation goes through a door to the function that does it.

mod accounts;
mod games;
mod runs;
mod trust;
