//! Transactions that touch several tables: each file is one, from what it reads to what follows from it.

pub(super) mod accept;
pub(super) mod audit_jobs;
pub(super) mod audit_results;
pub(super) mod check;
pub mod copy;
pub(super) mod exclusions;
pub(super) mod gate_audits;
pub(super) mod heartbeats;
pub(super) mod jobs;
pub(super) mod lease_batch;
pub(super) mod match_results;
pub(super) mod new_leases;
pub(super) mod quarantine;
pub(super) mod quotas;
pub(super) mod registration;
pub(super) mod rejections;
pub(super) mod retention;
pub(super) mod rollback;
pub(super) mod standings;
pub(super) mod submissions;
pub(super) mod sums;
pub(super) mod training_audits;
