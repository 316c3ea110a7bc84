//! What the coordinator wants the contributor to know: with jobs, and with answers to heartbeats.

use std::collections::HashSet;

use parking_lot::Mutex;
use rookery_common::text::printable;

/// Notices of one answer that are shown, and their longest.
const NOTICES: usize = 5;
const NOTICE_CHARS: usize = 1000;
/// Different notices that are shown at all.
const SHOWN: usize = 100;

/// Notices that were shown since the start.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    shown: Mutex<HashSet<String>>,
}

impl Notices {
    /// Shows those of an answer that are new.
    pub(super) fn show(&self, notices: &[String]) {
        for notice in notices.iter().take(NOTICES) {
            if let Some(notice) = self.add(notice) {
                tracing::warn!("the coordinator says: {notice}");
            }
        }
    }

    /// The notice as it may be shown, if it is new.
    fn add(&self, notice: &str) -> Option<String> {
        let notice = printable(notice, NOTICE_CHARS);
        let mut shown = self.shown.lock();
        (shown.len() < SHOWN && shown.insert(notice.clone())).then_some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_once_and_steers_no_terminal() {
        let notices = Notices::default();
        let held = "2 chunks are held\u{1b}[2J";
        assert_eq!(notices.add(held).as_deref(), Some("2 chunks are held[2J"));
        assert_eq!(notices.add(held), None);
    }

    #[test]
    fn a_coordinator_cannot_fill_the_log_with_notices() {
        let notices = Notices::default();
        let shown = (0..2 * SHOWN).filter_map(|number| notices.add(&number.to_string()));
        assert_eq!(shown.count(), SHOWN);
    }
}
