//! Sentences for contributors, which answers to requests for jobs and to heartbeats carry.
//!
//! What is said of a contributor is read together with the token (`Principal::restrictions`), so a
//! notice costs no statement of its own. A notice says the same thing for as long as its cause lasts:
//! workers show each once.

use jiff::Timestamp;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::server::Presentation;
use rookery_common::protocol::trust::WorkerBlock;

use crate::db::Restrictions;

/// What a worker without a visible name is called.
pub const UNNAMED: &str = "unnamed";

/// Where people reach the operator: what the coordinator says, else the first run that says it.
pub fn contact<'a>(presentation: &'a Presentation, runs: &'a [RunInfo]) -> Option<&'a str> {
    let of_runs = || runs.iter().find_map(|run| run.contact.as_deref());
    presentation.contact.as_deref().or_else(of_runs)
}

/// What a contributor has to know of games that do not count and workers that get no jobs.
pub fn restrictions(of: &Restrictions, contact: Option<&str>) -> Vec<String> {
    let details = format!(
        "The page /trust of the coordinator says more{}.",
        write_to(contact)
    );
    let quarantine = of.quarantine.as_ref().map(|quarantine| {
        format!(
            "Your games are held back since {} and do not count until the operator clears them. \
             Reason: {} {details}",
            moment(&quarantine.since),
            sentence(&quarantine.reason),
        )
    });
    let held = (of.has_held_chunks && of.quarantine.is_none()).then(|| {
        format!("Some of your games are held back and do not count; the others do. {details}")
    });
    let blocks = of.workers.iter().map(|block| worker_block(block, contact));
    quarantine.into_iter().chain(held).chain(blocks).collect()
}

/// Why one worker of a contributor gets no jobs.
pub fn worker_block(block: &WorkerBlock, contact: Option<&str>) -> String {
    format!(
        "The operator has blocked the worker {:?} since {}, your other workers play on. Reason: {} \
         Mend the machine, then ask the operator to unblock it{}.",
        block.worker,
        moment(&block.since),
        sentence(&block.reason),
        write_to(contact),
    )
}

/// That two machines go by one name.
pub fn shared_name(worker: &str) -> String {
    format!(
        "Two machines of yours seem to play as the worker {worker:?} at the same time. Give each a \
         name of its own with --worker: pages and statistics take them for one."
    )
}

/// That a worker has no name.
pub fn no_name() -> String {
    format!(
        "This worker has no name and is listed as {UNNAMED:?}. Give it one with --worker, for example \
         the machine's."
    )
}

fn write_to(contact: Option<&str>) -> String {
    contact.map_or_else(String::new, |contact| format!(" (contact: {contact})"))
}

/// A reason with one full stop at its end.
fn sentence(reason: &str) -> String {
    let reason = reason.trim();
    if reason.ends_with(['.', '!', '?']) {
        return reason.to_owned();
    }
    format!("{reason}.")
}

/// A time of the API as people read it.
fn moment(at: &str) -> String {
    let read: Result<Timestamp, _> = at.parse();
    read.map_or_else(
        |_| at.to_owned(),
        |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::trust::QuarantineInfo;

    use super::*;

    #[test]
    fn a_notice_of_a_quarantine_has_reason_time_and_contact() {
        let restrictions = Restrictions {
            quarantine: Some(QuarantineInfo {
                reason: "the audits of rig failed".to_owned(),
                by: "audits".to_owned(),
                since: "2026-11-20T14:03:59Z".to_owned(),
            }),
            has_held_chunks: true,
            workers: Vec::new(),
        };
        let told = super::restrictions(&restrictions, Some("ann@example.org"));
        assert_eq!(
            told,
            [
                "Your games are held back since 2026-11-20 14:03 UTC and do not count until the \
                 operator clears them. Reason: the audits of rig failed. The page /trust of the \
                 coordinator says more (contact: ann@example.org)."
            ]
        );
        let held = Restrictions {
            quarantine: None,
            ..restrictions
        };
        let told = super::restrictions(&held, None);
        assert!(told[0].starts_with("Some of your games"), "{told:?}");
        assert!(super::restrictions(&Restrictions::default(), None).is_empty());
    }
}
