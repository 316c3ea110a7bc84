//! What the ledger can be asked, by subject.

mod accounts;
mod games;
