//! The accounts of a fleet.

use std::net::IpAddr;

use rookery_common::protocol::jobs::Job;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Honest,
    Sybil,
    /// The operator's auditor, who is honest.
    Auditor,
}

/// An account with one worker.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) token: String,
    /// None of the operator's auditor.
    pub(super) address: Option<IpAddr>,
    pub(super) role: Role,
    /// Seconds after midnight at which its working day begins.
    pub(super) begins: i64,
    /// What it is at work on.
    pub(super) job: Option<Job>,
    /// When it uploaded its first false chunk.
    pub(super) lied_at: Option<i64>,
    /// Whether a patient Sybil has waited long enough.
    pub(super) lies: bool,
}

impl Account {
    pub(super) fn new(name: String, token: String, address: Option<IpAddr>, role: Role) -> Self {
        Self {
            name,
            token,
            address,
            role,
            begins: 0,
            job: None,
            lied_at: None,
            lies: false,
        }
    }

    /// Seconds from `now` until the account is at work: 0 if it is.
    pub(super) fn rest(&self, now: i64, hours_a_day: i64) -> i64 {
        if self.role == Role::Auditor {
            return 0;
        }
        let since = (now - self.begins).rem_euclid(DAY);
        if since < hours_a_day * 3_600 {
            0
        } else {
            DAY - since
        }
    }
}

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;
