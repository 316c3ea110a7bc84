//! What the program does at present. A pause is set in one place, [`ActivityHandle::pause`]; the supervisor, requests for
//! jobs, heartbeats and the progress line read it.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::shutdown::{Phase, Shutdown};

/// What the program does at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Games are played, and jobs are fetched ahead.
    Playing,
    /// Games stand still, and no job is fetched.
    Paused(PauseReason),
    /// The program is ending: games in hand are finished, and no job is fetched.
    Draining,
}

/// Why games stand still. If there are several reasons, the first of this list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PauseReason {
    /// The user has asked for it.
    Asked,
    /// Finished games cannot be written, for example because the disk is full.
    Disk,
}

impl PauseReason {
    /// The progress line's text, in full and in short.
    pub(super) fn words(self) -> [String; 2] {
        let words = match self {
            Self::Asked => ["paused (asked; SIGCONT resumes)", "paused (asked)"],
            Self::Disk => ["paused (finished games cannot be written)", "paused (disk)"],
        };
        words.map(str::to_owned)
    }
}

/// A handle on the program's activity; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ActivityHandle {
    reasons: watch::Sender<BTreeSet<PauseReason>>,
    shutdown: Shutdown,
}

impl ActivityHandle {
    /// The activity of a program that ends by this handle.
    pub(super) fn new(shutdown: Shutdown) -> Self {
        let reasons = watch::Sender::default();
        Self { reasons, shutdown }
    }

    /// The present activity.
    pub(super) fn now(&self) -> Activity {
        if let Some(reason) = self.reasons.borrow().first() {
            Activity::Paused(*reason)
        } else if self.shutdown.has_reached(Phase::Finishing) {
            Activity::Draining
        } else {
            Activity::Playing
        }
    }

    /// Notes that games stand still for this reason, until what it returns is dropped.
    #[must_use = "the pause ends when this is dropped"]
    pub(super) fn pause(&self, reason: PauseReason) -> Pause {
        self.reasons.send_modify(|reasons| {
            reasons.insert(reason);
        });
        Pause {
            reasons: self.reasons.clone(),
            reason,
        }
    }

    /// Waits until there is no reason to pause.
    pub(super) async fn resumed(&self) {
        let mut reasons = self.reasons.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(reasons.wait_for(BTreeSet::is_empty).await);
    }
}

/// A reason to pause, until this is dropped.
#[derive(Debug)]
pub(super) struct Pause {
    reasons: watch::Sender<BTreeSet<PauseReason>>,
    reason: PauseReason,
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.reasons.send_modify(|reasons| {
            reasons.remove(&self.reason);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_lasts_as_long_as_there_is_a_reason() {
        let shutdown = Shutdown::default();
        let activity = ActivityHandle::new(shutdown.clone());
        assert_eq!(activity.now(), Activity::Playing);
        let disk = activity.pause(PauseReason::Disk);
        assert_eq!(activity.now(), Activity::Paused(PauseReason::Disk));
        let asked = activity.pause(PauseReason::Asked);
        assert_eq!(activity.now(), Activity::Paused(PauseReason::Asked));
        drop(asked);
        assert_eq!(activity.now(), Activity::Paused(PauseReason::Disk));
        let waiter = tokio::spawn({
            let activity = activity.clone();
            async move { activity.resumed().await }
        });
        drop(disk);
        waiter.await.unwrap();
        shutdown.advance(Phase::Finishing);
        assert_eq!(activity.now(), Activity::Draining);
    }
}
