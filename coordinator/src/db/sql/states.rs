//! The states of jobs and of audits, under the names that their columns hold.
//!
//! Statements spell the names out: the partial indexes of the schema match only literals.

use super::rows::unreadable;
use crate::db::error::Result;

macro_rules! states {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$state_doc:meta])* $state:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name {
            $($(#[$state_doc])* $state,)+
        }

        impl $name {
            /// The text of the column.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$state => $text,)+
                }
            }

            /// Reads the column.
            pub(super) fn read(column: &str) -> Result<Self> {
                match column {
                    $($text => Ok(Self::$state),)+
                    other => Err(unreadable($what, &other)),
                }
            }
        }
    };
}

states! {
    /// The state of a job: a lease and what came of it.
    JobState, "state of a job" {
        /// It is leased; whether it has expired, its times say.
        Open = "open",
        /// All its games are counted.
        Done = "done",
        /// The worker gave it back, or its chunks were excluded.
        Returned = "returned",
    }
}

states! {
    /// The state of an audit.
    AuditState, "state of an audit" {
        /// It waits for opinions.
        Open = "open",
        /// The chunk is what it claims to be.
        Passed = "passed",
        /// It is not.
        Failed = "failed",
        /// It was given up.
        Void = "void",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_back_from_its_column() {
        for state in [JobState::Open, JobState::Done, JobState::Returned] {
            assert_eq!(JobState::read(state.name()).unwrap(), state);
        }
        for state in [
            AuditState::Open,
            AuditState::Passed,
            AuditState::Failed,
            AuditState::Void,
        ] {
            assert_eq!(AuditState::read(state.name()).unwrap(), state);
        }
        assert!(JobState::read("void").is_err());
        assert!(AuditState::read("").is_err());
    }
}
