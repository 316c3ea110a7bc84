//! What becomes of a job, from its first game to the end of its lease.
//!
//! ```text
//! Playing ──ordered──> Draining ──left──> Closing ──closed, all games ended──> Done
//!    '───────────────left─────────────────^  │ '─failed─┘                       ^
//!                                            '─closed, games missing─> Returning ──sent──'
//! ```
//!
//! [`JobState::after`] is the one place where a state changes. It only decides; the supervisor carries the
//! [`Effect`]s out, and what comes of them is the next [`JobEvent`].

use crate::play::Control;

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    /// Threads begin and finish its games.
    Playing,
    /// Threads begin no more of its games.
    Draining,
    /// No thread plays it. The spool makes chunks of its last games.
    Closing {
        /// Attempts that failed.
        failures: u32,
    },
    /// Games are missing. Its lease is given back once the coordinator has answered for all that were finished.
    Returning,
    /// There is nothing left to do but to upload its chunks.
    Done,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobEvent {
    /// It is to end early.
    Ordered(Control),
    /// All threads have left it.
    Left,
    /// The spool has closed it; the number of its games that never ended.
    Closed { missing: u32 },
    /// The spool could not close it.
    CloseFailed(CloseFailure),
    /// The coordinator has answered for every chunk of it.
    Sent,
}

/// What to do about a job that could not be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseFailure {
    /// Try again.
    Retry,
    /// Do without: the spool does not have it.
    GiveUp,
    /// Leave it to the next start, as the program stops at once.
    Leave,
}

/// What the supervisor has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Pass the order on to the threads.
    Order(Control),
    /// Have the spool close it.
    Close,
    /// The same after a pause.
    CloseLater,
    /// End its heartbeat.
    EndHeartbeat,
    /// Find out whether the coordinator has answered for every chunk of it.
    CheckSent,
    /// Give its lease back.
    GiveBack,
}

impl JobState {
    /// The state after an event, and what has to be done. An event that does not concern the state changes nothing.
    pub(super) const fn after(self, event: JobEvent) -> (Self, &'static [Effect]) {
        use Effect::{CheckSent, Close, CloseLater, EndHeartbeat, GiveBack, Order};
        match (self, event) {
            (Self::Playing | Self::Draining, JobEvent::Ordered(Control::FinishInHand)) => {
                (Self::Draining, &[Order(Control::FinishInHand)])
            }
            (Self::Playing | Self::Draining, JobEvent::Ordered(Control::Drop)) => {
                (Self::Draining, &[Order(Control::Drop)])
            }
            (Self::Playing | Self::Draining, JobEvent::Left) => {
                (Self::Closing { failures: 0 }, &[Close])
            }
            (Self::Closing { .. }, JobEvent::Left) => (self, &[Close]),
            (
                Self::Closing { .. },
                JobEvent::Closed { missing: 0 } | JobEvent::CloseFailed(CloseFailure::Leave),
            ) => (Self::Done, &[EndHeartbeat]),
            (Self::Closing { .. }, JobEvent::Closed { .. }) => {
                (Self::Returning, &[EndHeartbeat, CheckSent])
            }
            (Self::Closing { failures }, JobEvent::CloseFailed(CloseFailure::Retry)) => {
                let failures = failures.saturating_add(1);
                (Self::Closing { failures }, &[CloseLater])
            }
            (Self::Closing { .. }, JobEvent::CloseFailed(CloseFailure::GiveUp)) => {
                (Self::Returning, &[EndHeartbeat])
            }
            (Self::Returning, JobEvent::Sent) => (Self::Done, &[GiveBack]),
            _ => (self, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states and effects of a job that begins in `state`.
    fn course(state: JobState, events: &[JobEvent]) -> (JobState, Vec<Effect>) {
        let mut effects = Vec::new();
        let end = events.iter().fold(state, |state, event| {
            let (next, to_do) = state.after(*event);
            effects.extend_from_slice(to_do);
            next
        });
        (end, effects)
    }

    #[test]
    fn a_job_that_is_played_to_its_end_keeps_its_heartbeat_until_it_is_closed() {
        let played = [JobEvent::Left, JobEvent::Closed { missing: 0 }];
        let (end, effects) = course(JobState::Playing, &played);
        assert_eq!(end, JobState::Done);
        assert_eq!(effects, [Effect::Close, Effect::EndHeartbeat]);
    }

    #[test]
    fn a_lease_with_missing_games_is_given_back_once_all_finished_ones_are_sent() {
        let cut_short = [
            JobEvent::Ordered(Control::FinishInHand),
            JobEvent::Ordered(Control::Drop),
            JobEvent::Left,
            JobEvent::Closed { missing: 3 },
        ];
        let (state, effects) = course(JobState::Playing, &cut_short);
        assert_eq!(state, JobState::Returning);
        let [.., end, check] = effects.as_slice() else {
            panic!("{effects:?}")
        };
        assert_eq!(
            effects[..2],
            [Control::FinishInHand, Control::Drop].map(Effect::Order)
        );
        assert_eq!([*end, *check], [Effect::EndHeartbeat, Effect::CheckSent]);
        assert_eq!(
            state.after(JobEvent::Sent),
            (JobState::Done, &[Effect::GiveBack][..])
        );
    }

    #[test]
    fn a_job_that_cannot_be_closed_is_closed_again_under_its_lease() {
        let failed = JobEvent::CloseFailed(CloseFailure::Retry);
        let tried = [JobEvent::Left, failed, JobEvent::Left, failed];
        let (state, effects) = course(JobState::Draining, &tried);
        assert_eq!(state, JobState::Closing { failures: 2 });
        use Effect::{Close, CloseLater};
        assert_eq!(effects, [Close, CloseLater, Close, CloseLater]);
        let given_up = state.after(JobEvent::CloseFailed(CloseFailure::GiveUp));
        assert_eq!(given_up, (JobState::Returning, &[Effect::EndHeartbeat][..]));
        let left = state.after(JobEvent::CloseFailed(CloseFailure::Leave));
        assert_eq!(left, (JobState::Done, &[Effect::EndHeartbeat][..]));
    }

    #[test]
    fn what_does_not_concern_a_state_changes_nothing() {
        for (state, event) in [
            (JobState::Playing, JobEvent::Sent),
            (JobState::Playing, JobEvent::Closed { missing: 1 }),
            (
                JobState::Closing { failures: 1 },
                JobEvent::Ordered(Control::Drop),
            ),
            (JobState::Returning, JobEvent::Left),
            (JobState::Done, JobEvent::Sent),
            (JobState::Playing, JobEvent::Ordered(Control::Play)),
        ] {
            assert_eq!(state.after(event), (state, &[][..]), "{state:?} {event:?}");
        }
    }
}
