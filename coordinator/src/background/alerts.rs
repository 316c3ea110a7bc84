//! Alerts to the operator's own webhook, and the looks into the ledger that find them.
//!
//! What the ledger does not know is set elsewhere: dependencies and disks by [`keep_up`](super::keep_up), rows
//! that stay by [`retention`](super::retention).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::webhook::{Webhook, with_link};
use crate::alerts::{Alert, AlertKind, AlertState, Problems};
use crate::app::App;
use crate::config::SiteUrl;
use crate::db::DbError;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(15);
/// How long an open run may be without games.
const QUIET: SignedDuration = SignedDuration::from_mins(30);
/// Longest message, in characters: Discord takes 2,000.
const MESSAGE_CHARS: usize = 1_900;
/// Longest line of it: the cause of a failure may be long.
const LINE_CHARS: usize = 500;

/// Looks for alerts, and posts all of them, until the coordinator stops.
pub async fn keep_alerting(app: App, webhook: Webhook) {
    let (firing, changes) = app.alerts.subscribe();
    tokio::select! {
        () = app.stopping.cancelled() => {}
        () = keep_watching(&app) => {}
        () = keep_posting(firing, changes, app.site.as_ref(), &webhook) => {}
    }
}

/// Looks into the ledger again and again.
async fn keep_watching(app: &App) {
    let mut watch = Watch::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = watch.look(app).await {
            tracing::warn!(%error, "RK-0236: A background task failed: the ledger could not be searched for alerts.");
        }
    }
}

/// What was seen at the last look.
#[derive(Debug, Default)]
pub struct Watch {
    /// Since when each open run has been seen open.
    open: BTreeMap<RunName, Timestamp>,
    has_looked: bool,
}

impl Watch {
    /// Sets the alerts that the ledger tells of. Contributors who are in quarantine at the first look are known: an earlier
    /// coordinator has told of them.
    pub async fn look(&mut self, app: &App) -> Result<(), DbError> {
        let quarantines = app.db.quarantines_by_audits().await?.into_iter();
        let quarantines = quarantines.map(|(contributor, reason)| {
            let problem = format!("{contributor} is in quarantine: {reason}");
            (contributor, problem)
        });
        let quarantines = quarantines.collect();
        if self.has_looked {
            app.alerts.set(AlertKind::Quarantine, quarantines);
        } else {
            app.alerts.set_known(AlertKind::Quarantine, quarantines);
        }
        self.has_looked = true;
        let quiet = self.quiet_runs(app).await?;
        app.alerts.set(AlertKind::NoGames, quiet);
        Ok(())
    }

    /// Runs that have been open for long enough, and got no game.
    async fn quiet_runs(&mut self, app: &App) -> Result<Problems, DbError> {
        let now = app.clock.now();
        let is_open = |run: &&RunInfo| run.status == RunStatus::Open && run.archived_at.is_none();
        let runs = app.db.runs().await?;
        let open = runs.iter().filter(is_open).map(|run| {
            let since = self.open.get(&run.name).copied();
            (run.name.clone(), since.unwrap_or(now))
        });
        self.open = open.collect();
        let mut quiet = Problems::new();
        for (run, since) in &self.open {
            let begin = now - QUIET;
            if *since <= begin && app.db.intake(run, begin).await?.games == 0 {
                let minutes = QUIET.as_mins();
                let problem =
                    format!("The run {run} is open, and no game came in for {minutes} minutes");
                quiet.insert(run.to_string(), problem);
            }
        }
        Ok(quiet)
    }
}

/// Posts what is firing, then what changes. Changes that came while the webhook was called are posted together.
async fn keep_posting(
    firing: Vec<Alert>,
    mut changes: broadcast::Receiver<Alert>,
    site: Option<&SiteUrl>,
    webhook: &Webhook,
) {
    let mut alerts = firing;
    loop {
        while let Ok(alert) = changes.try_recv() {
            alerts.push(alert);
        }
        if !alerts.is_empty() {
            let message = message(&alerts, site);
            webhook.post(&message, "alerts", &alerts).await;
            alerts.clear();
        }
        match changes.recv().await {
            Ok(alert) => alerts.push(alert),
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "RK-0232: The webhook is too slow: alerts were dropped."
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// A line for each alert, as many as a chat takes.
fn message(alerts: &[Alert], site: Option<&SiteUrl>) -> String {
    let (mut lines, mut room) = (Vec::new(), MESSAGE_CHARS);
    for alert in alerts {
        let line: String = line(alert, site).chars().take(LINE_CHARS).collect();
        let length = line.chars().count() + 1;
        if length > room {
            lines.push(format!("and {} more", alerts.len() - lines.len()));
            break;
        }
        room -= length;
        lines.push(line);
    }
    lines.join("\n")
}

fn line(alert: &Alert, site: Option<&SiteUrl>) -> String {
    let text = match alert.state {
        AlertState::Firing => format!("Alert: {}.", alert.problem),
        AlertState::Resolved => format!("Resolved: {}.", alert.problem),
    };
    match alert.kind.path(&alert.subject) {
        Some(path) => with_link(text, site, &path),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::Alerts;
    use crate::background::webhook::tests::hanging;

    fn problem(subject: &str, problem: &str) -> Problems {
        Problems::from([(subject.to_owned(), problem.to_owned())])
    }

    #[test]
    fn a_message_has_a_line_for_each_alert_and_fits_into_a_chat() {
        let alerts = Alerts::default();
        alerts.set(
            AlertKind::Quarantine,
            problem("ann", "ann is in quarantine: audit 3"),
        );
        alerts.set(
            AlertKind::Dependency,
            problem("store", "The store cannot be used: full"),
        );
        let (firing, _) = alerts.subscribe();
        let site = SiteUrl::read("https://chess.example.org").unwrap();
        assert_eq!(
            message(&firing, Some(&site)),
            "Alert: The store cannot be used: full.\n\
             Alert: ann is in quarantine: audit 3. https://chess.example.org/trust"
        );
        let long = "ä".repeat(10 * LINE_CHARS);
        alerts.set(AlertKind::Dependency, problem("store", &long));
        let (mut many, _) = alerts.subscribe();
        for _ in 0..6 {
            many.extend(many.clone());
        }
        let message = message(&many, None);
        assert!(message.chars().count() < 2_000 && message.starts_with("Alert: ä"));
        assert!(message.ends_with(" more"), "{message}");
    }

    /// What comes while the webhook is called is posted together, each alert's beginning and end once.
    #[tokio::test]
    async fn alerts_are_posted_when_they_begin_and_when_they_are_over() {
        let (webhook, mut got, permits) = hanging().await;
        let alerts = Alerts::default();
        alerts.set(
            AlertKind::Dependency,
            problem("store", "The store cannot be used: full"),
        );
        let (firing, changes) = alerts.subscribe();
        let posting = tokio::spawn(async move {
            keep_posting(firing, changes, None, &webhook).await;
        });
        let first = got.recv().await.unwrap();
        assert_eq!(first["content"], "Alert: The store cannot be used: full.");
        assert_eq!(first["text"], first["content"]);
        assert_eq!(first["alerts"][0]["state"], "firing");
        for _ in 0..3 {
            alerts.set(
                AlertKind::Dependency,
                problem("database", "The database only reads"),
            );
        }
        permits.add_permits(2);
        let second = got.recv().await.unwrap();
        let text = "Resolved: The store cannot be used: full.\nAlert: The database only reads.";
        assert_eq!(second["content"], text);
        assert_eq!(second["alerts"][1]["subject"], "database");
        drop(alerts);
        posting.await.unwrap();
        assert!(got.try_recv().is_err(), "nothing is posted twice");
    }
}
