//! Alerts: what an operator must act on, for as long as it lasts.
//!
//! ```text
//! keep_up, watch, retention ──> Alerts ──> changes ──> webhook of the operator
//! ```
//!
//! Whoever detects a problem says again and again which ones there are. Only changes are announced: an alert that
//! begins, and one that is over.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;

/// Changes that a slow listener may lie behind.
const BACKLOG: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// The database or the storage cannot be used: no answer, a full disk, a database that only reads.
    Dependency,
    /// A disk of the database or the storage is nearly full.
    Disk,
    /// An open run gets no games.
    NoGames,
    /// Failed audits have put a contributor into quarantine.
    Quarantine,
    /// Old rows stay in the ledger.
    Retention,
}

impl AlertKind {
    /// The page of the coordinator that says more, if one does.
    pub(crate) fn path(self, subject: &str) -> Option<String> {
        match self {
            Self::NoGames => Some(format!("/runs/{subject}")),
            Self::Quarantine => Some("/trust".to_owned()),
            Self::Dependency | Self::Disk | Self::Retention => None,
        }
    }
}

/// Whether an alert has begun or is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertState {
    Firing,
    Resolved,
}

/// An alert that has begun or is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    pub kind: AlertKind,
    /// The dependency, run or contributor.
    pub subject: String,
    pub state: AlertState,
    /// What is wrong, in a sentence without its full stop.
    pub problem: String,
}

/// The subject of each alert of a kind, with what is wrong.
pub type Problems = BTreeMap<String, String>;

/// The alerts that are firing.
#[derive(Debug)]
pub struct Alerts {
    firing: Mutex<BTreeMap<AlertKind, Problems>>,
    changes: broadcast::Sender<Alert>,
}

impl Default for Alerts {
    fn default() -> Self {
        Self {
            firing: Mutex::default(),
            changes: broadcast::channel(BACKLOG).0,
        }
    }
}

impl Alerts {
    /// Takes these problems for all of their kind, and announces what changed.
    pub fn set(&self, kind: AlertKind, problems: Problems) {
        let mut firing = self.firing.lock();
        let before = firing.remove(&kind).unwrap_or_default();
        let ended = before
            .iter()
            .filter(|(subject, _)| !problems.contains_key(*subject));
        let begun = problems
            .iter()
            .filter(|(subject, _)| !before.contains_key(*subject));
        for alert in
            alerts(kind, AlertState::Resolved, ended).chain(alerts(kind, AlertState::Firing, begun))
        {
            // An error only means that there is no listener.
            let _ = self.changes.send(alert);
        }
        firing.insert(kind, problems);
    }

    /// Takes problems for known: only their end is announced.
    pub fn set_known(&self, kind: AlertKind, problems: Problems) {
        self.firing.lock().insert(kind, problems);
    }

    /// The alerts that are firing, and the changes from now on.
    pub fn subscribe(&self) -> (Vec<Alert>, broadcast::Receiver<Alert>) {
        let firing = self.firing.lock();
        let all = firing
            .iter()
            .flat_map(|(kind, problems)| alerts(*kind, AlertState::Firing, problems.iter()));
        (all.collect(), self.changes.subscribe())
    }
}

fn alerts<'a>(
    kind: AlertKind,
    state: AlertState,
    problems: impl Iterator<Item = (&'a String, &'a String)>,
) -> impl Iterator<Item = Alert> {
    problems.map(move |(subject, problem)| Alert {
        kind,
        subject: subject.clone(),
        state,
        problem: problem.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(names: &[&str]) -> Problems {
        let problem = |name: &&str| ((*name).to_owned(), format!("the {name} is down"));
        names.iter().map(problem).collect()
    }

    #[test]
    fn only_changes_are_announced() {
        let alerts = Alerts::default();
        let (firing, mut changes) = alerts.subscribe();
        assert_eq!(firing, []);
        let mut changed = |names: &[&str]| -> Vec<(String, AlertState)> {
            alerts.set(AlertKind::Dependency, down(names));
            std::iter::from_fn(|| changes.try_recv().ok())
                .map(|alert| (alert.subject, alert.state))
                .collect()
        };
        let (store, database) = ("store".to_owned(), "database".to_owned());
        assert_eq!(changed(&[]), []);
        let began = [(store.clone(), AlertState::Firing)];
        assert_eq!(changed(&["store"]), began);
        assert_eq!(changed(&["store"]), []);
        assert_eq!(
            changed(&["database"]),
            [
                (store, AlertState::Resolved),
                (database, AlertState::Firing)
            ]
        );
    }

    #[test]
    fn a_late_subscriber_gets_alerts_that_are_firing() {
        let alerts = Alerts::default();
        alerts.set(AlertKind::Dependency, down(&["store"]));
        let (firing, _) = alerts.subscribe();
        assert_eq!(firing.len(), 1);
        assert_eq!(firing[0].problem, "the store is down");
    }

    #[test]
    fn of_what_is_known_only_the_end_is_announced() {
        let alerts = Alerts::default();
        let (_, mut changes) = alerts.subscribe();
        alerts.set_known(AlertKind::Quarantine, down(&["alice"]));
        alerts.set(AlertKind::Quarantine, down(&["alice"]));
        alerts.set(AlertKind::Quarantine, Problems::new());
        let ended = changes.try_recv().unwrap();
        assert_eq!(ended.state, AlertState::Resolved);
    }
}
