//! What training measures: a line of JSON for each point in a local log, and the same points for
//! the coordinator's pages, for TensorBoard ([`tensorboard`]) and for Prometheus ([`endpoint`]).
//!
//! The log is the record; points for the coordinator are sent by a task of its own, so that a slow
//! or missing coordinator never holds training up. If it is away for long, the oldest are dropped.

pub mod endpoint;
pub mod tensorboard;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rookery_common::protocol::runs::{MetricPoint, MetricReport};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use self::endpoint::Gauges;
use self::tensorboard::EventFile;
use crate::api::Client;

/// Points that may wait for the coordinator, and that one report may hold.
const WAITING: usize = 1000;

/// How long the last points may take at the end.
const LAST_REPORT: Duration = Duration::from_secs(3);

/// Values by name.
pub type Values = BTreeMap<String, f64>;

/// Makes [`Values`] of names and numbers; numbers that are not finite are left out, as JSON has no
/// way to write them.
pub fn values<const N: usize>(named: [(&str, f64); N]) -> Values {
    let finite = named.into_iter().filter(|(_, number)| number.is_finite());
    finite
        .map(|(name, number)| (name.to_owned(), number))
        .collect()
}

rookery_common::names! {
    /// What a point is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MetricKind {
        /// What the next candidate will be trained on.
        Plan = "plan",
        /// Losses of training steps.
        Train = "train",
        /// Losses on positions held out of training.
        Validation = "validation",
        /// How often resigning would have been wrong.
        Resigning = "resigning",
        /// What the new games say of tactics.
        Tactics = "tactics",
        /// How a candidate's gate match ended.
        Verdict = "verdict",
    }
}

/// The local log.
#[derive(Debug)]
pub struct MetricLog {
    path: PathBuf,
    file: File,
    events: Option<EventFile>,
    gauges: Gauges,
}

impl MetricLog {
    /// Opens the log for appending.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::options().append(true).create(true).open(path);
        let file = file.with_context(|| format!("cannot open the log {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            events: None,
            gauges: Gauges::default(),
        })
    }

    /// The same points also as event files in this folder, for TensorBoard.
    ///
    /// # Errors
    ///
    /// If they cannot be created.
    pub fn with_events(mut self, folder: &Path) -> anyhow::Result<Self> {
        self.events = Some(EventFile::create(folder)?);
        Ok(self)
    }

    /// The newest values.
    pub const fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Adds a line: `{"kind": …, "step": …, values}`.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&mut self, kind: MetricKind, point: &MetricPoint) -> anyhow::Result<()> {
        self.gauges.set(kind, point);
        if let Some(events) = &mut self.events {
            events.write(kind, point)?;
        }
        let mut line = serde_json::Map::new();
        line.insert("kind".into(), kind.name().into());
        line.insert("step".into(), point.step.into());
        line.extend(
            point
                .values
                .iter()
                .map(|(name, value)| (name.clone(), (*value).into())),
        );
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written.with_context(|| format!("cannot write to the log {}", self.path.display()))
    }
}

/// Sends points to the coordinator.
#[derive(Debug)]
pub struct MetricSender {
    points: Sender<MetricPoint>,
    task: JoinHandle<()>,
}

impl MetricSender {
    /// Starts the task; call it inside a tokio runtime.
    pub fn start(client: Client) -> Self {
        let (points, waiting) = channel(WAITING);
        Self {
            points,
            task: tokio::spawn(send_all(client, waiting)),
        }
    }

    /// Hands a point over; does not wait.
    pub fn send(&self, point: MetricPoint) {
        if self.points.try_send(point).is_err() {
            tracing::debug!(
                "a metric is dropped: the coordinator has not taken the last {WAITING}"
            );
        }
    }

    /// Sends what is waiting, for a few seconds at most.
    pub async fn finish(self) {
        drop(self.points);
        if tokio::time::timeout(LAST_REPORT, self.task).await.is_err() {
            tracing::debug!("the last metrics were not sent");
        }
    }
}

async fn send_all(client: Client, mut waiting: Receiver<MetricPoint>) {
    let mut points = Vec::new();
    while waiting.recv_many(&mut points, WAITING).await > 0 {
        let report = MetricReport {
            points: std::mem::take(&mut points),
        };
        if let Err(error) = client.report(&report).await {
            tracing::debug!("{} metrics were not taken: {error}", report.points.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_holds_a_line_of_json_for_each_point() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        for step in 1..3 {
            let values = values([("loss", 0.5), ("broken", f64::NAN)]);
            let mut log = MetricLog::open(&path).unwrap();
            let point = MetricPoint { step, values };
            log.write(MetricKind::Train, &point).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[1],
            serde_json::json!({"kind": "train", "step": 2, "loss": 0.5})
        );
    }
}
