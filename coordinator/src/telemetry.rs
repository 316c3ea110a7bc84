//! Log lines and Prometheus metrics.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use rookery_common::causes::explain;
use rookery_common::command_line::{LogFormat, warn_of_visible_secrets};
use rookery_common::logging::has_colours;
use rookery_common::protocol::jobs::Backend;
use tracing_subscriber::EnvFilter;

use crate::blobs::{BlobKind, SharedBlobs};
use crate::config::Settings;
use crate::db::SharedDatabase;

/// Upper bounds of the buckets of durations, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0,
];

/// How long the store of blobs may take to answer before it counts as down.
const PATIENCE: Duration = Duration::from_secs(10);

static PROMETHEUS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to write log lines to standard error.
pub fn begin_logging(settings: &Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log).with_context(|| {
        format!(
            "the log filter {:?} is not valid; write for example info or debug",
            settings.log
        )
    })?;
    let lines = tracing_subscriber::fmt()
        // A line that cannot be written is lost; by default that would panic once the reader is gone.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_ansi(has_colours())
        .with_writer(std::io::stderr);
    let begun = match settings.log_format {
        LogFormat::Plain => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    begun.map_err(|error| anyhow::anyhow!("cannot begin to log: {error}"))?;
    warn_of_visible_secrets();
    Ok(())
}

/// Begins to count. A second call does nothing.
pub fn begin_metrics() -> anyhow::Result<()> {
    if PROMETHEUS.get().is_some() {
        return Ok(());
    }
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?;
    let handle = builder
        .install_recorder()
        .context("cannot record metrics")?;
    describe();
    // Another thread may have been first; then its handle serves.
    let _ = PROMETHEUS.set(handle);
    Ok(())
}

/// All metrics in Prometheus's text format.
pub fn render() -> String {
    PROMETHEUS
        .get()
        .map(PrometheusHandle::render)
        .unwrap_or_default()
}

/// Frees what old observations occupy; to be called now and then.
pub fn upkeep() {
    if let Some(handle) = PROMETHEUS.get() {
        handle.run_upkeep();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerUse {
    Read,
    /// It writes, and waits for its turn.
    Write,
}

/// Times an operation of the ledger, on this part of it.
pub async fn ledger<T>(what: LedgerUse, part: &'static str, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let (operation, _queued) = match what {
        LedgerUse::Read => ("read", None),
        LedgerUse::Write => ("write", Some(Underway::begin("rookery_ledger_queue"))),
    };
    let answer = work.await;
    metrics::histogram!("rookery_ledger_duration_seconds", "operation" => operation, "part" => part)
        .record(begun.elapsed().as_secs_f64());
    answer
}

/// Something that a gauge counts for as long as it goes on: until this is dropped, also where
/// the caller who waits for it goes away.
pub struct Underway(&'static str);

impl Underway {
    /// Counts one more.
    pub fn begin(gauge: &'static str) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}

/// Times an operation of the store of blobs.
pub async fn blob<T>(operation: &'static str, kind: BlobKind, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let answer = work.await;
    metrics::histogram!(
        "rookery_blob_duration_seconds",
        "operation" => operation, "kind" => kind.folder(),
    )
    .record(begun.elapsed().as_secs_f64());
    answer
}

/// What requests depend on, as it answered when it was last asked.
#[derive(Debug)]
pub struct Dependencies {
    store: Dependency,
    database: Dependency,
}

impl Default for Dependencies {
    fn default() -> Self {
        Self {
            store: Dependency::new("store"),
            database: Dependency::new("database"),
        }
    }
}

/// One of them. It counts as up until it is asked.
#[derive(Debug)]
struct Dependency {
    name: &'static str,
    up: bool,
}

impl Dependency {
    const fn new(name: &'static str) -> Self {
        Self { name, up: true }
    }

    /// Takes note of an answer, or of why there is none; whether that is news.
    fn note(&mut self, failure: Option<&str>) -> bool {
        let up = failure.is_none();
        std::mem::replace(&mut self.up, up) != up
    }

    /// Shows the answer; the log has what is news. What is wrong, if the dependency cannot be used.
    fn show(&mut self, failure: Option<&str>) -> Option<(String, String)> {
        let news = self.note(failure);
        metrics::gauge!("rookery_dependency_up", "dependency" => self.name)
            .set(f64::from(u8::from(self.up)));
        match failure {
            Some(cause) if news => tracing::warn!(
                dependency = self.name,
                cause,
                "RK-0210: A dependency does not answer; requests that need it get 503 until it does."
            ),
            None if news => tracing::info!(dependency = self.name, "A dependency is back."),
            _ => {}
        }
        let cause = failure?;
        let problem = format!("The {} cannot be used: {cause}", self.name);
        Some((self.name.to_owned(), problem))
    }
}

fn causes(error: &(dyn Error + 'static)) -> String {
    explain(std::iter::successors(Some(error), |&error| error.source()))
}

/// Why the store of blobs does not answer, if it does not.
async fn store_failure(blobs: &SharedBlobs) -> Option<String> {
    match tokio::time::timeout(PATIENCE, blobs.ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(causes(&error)),
        Err(_) => Some(format!("no answer in {} seconds", PATIENCE.as_secs())),
    }
}

/// Shows how many workers, leases, audits and matches there are, and which dependencies answer. Gives back those that
/// cannot be used, with what is wrong.
pub async fn look_around(
    dependencies: &mut Dependencies,
    db: &SharedDatabase,
    blobs: &SharedBlobs,
    now: Timestamp,
) -> BTreeMap<String, String> {
    let failure = store_failure(blobs).await;
    let mut unusable: BTreeMap<_, _> = dependencies
        .store
        .show(failure.as_deref())
        .into_iter()
        .collect();
    let pulse = match db.ping().await {
        Ok(()) => db.pulse(now).await,
        Err(error) => Err(error),
    };
    let failure = pulse.as_ref().err().map(|error| causes(error));
    unusable.extend(dependencies.database.show(failure.as_deref()));
    let Ok(pulse) = pulse else {
        return unusable;
    };
    metrics::gauge!("rookery_ledger_bytes").set(pulse.ledger_bytes as f64);
    metrics::gauge!("rookery_leases_open").set(pulse.open_leases as f64);
    metrics::gauge!("rookery_audits_open").set(pulse.open_audits as f64);
    metrics::gauge!("rookery_contributors_quarantined").set(pulse.quarantined as f64);
    metrics::gauge!("rookery_match_pairs_wanted").set(pulse.pairs_wanted as f64);
    for backend in Backend::ALL {
        let of_it = |(name, _): &&(String, u64)| name == backend.name();
        let count = pulse
            .workers
            .iter()
            .find(of_it)
            .map_or(0, |(_, count)| *count);
        metrics::gauge!("rookery_workers_alive", "backend" => backend.name()).set(count as f64);
    }
    unusable
}

/// Describes what is measured: each name has its unit and its meaning.
macro_rules! described {
    ($($describe:ident { $($name:literal: $unit:ident, $meaning:literal;)+ })+) => {
        $($($describe!($name, Unit::$unit, $meaning);)+)+
    };
}

fn describe() {
    described! {
        describe_counter {
            "rookery_played_on_games_total": Count,
                "Self-play games that were played on although a side may have been lost, by run and what they say of resigning: \
                 never-resigned, right, or wrong (a false positive).";
            "rookery_problems_total": Count, "Requests that failed, by code.";
            "rookery_leases_total": Count, "Jobs handed out, by kind.";
            "rookery_chunks_total": Count, "Chunks accepted.";
            "rookery_chunks_refused_total": Count, "Chunks refused, by the code of their first failure.";
            "rookery_chunk_bytes_total": Bytes, "Bytes of accepted chunks.";
            "rookery_games_total": Count, "Games of accepted chunks.";
            "rookery_positions_total": Count, "Positions of accepted chunks.";
            "rookery_connections_refused_total": Count,
                "Connections that were not taken: too many of one address, or the system gave none.";
            "rookery_connections_reclaimed_total": Count,
                "Idle connections that were closed because others waited for a permit.";
        }
        describe_gauge {
            "rookery_ledger_bytes": Bytes, "Size of the ledger's database.";
            "rookery_build_info": Count, "1, with the version of the program.";
            "rookery_connections": Count, "Connections that are open.";
            "rookery_http_requests_in_flight": Count, "Requests that are being answered.";
            "rookery_listeners": Count, "Listeners to live events.";
            "rookery_ledger_queue": Count, "Requests that wait for the ledger's writer, or are being written.";
            "rookery_verifications_waiting": Count, "Bodies that wait for a core to be checked.";
            "rookery_leases_open": Count, "Leases that are open and not overdue.";
            "rookery_audits_open": Count, "Chunks whose audit is open.";
            "rookery_contributors_quarantined": Count, "Contributors in quarantine.";
            "rookery_match_pairs_wanted": Count,
                "Pairs of games that open gate and rating matches still want, at most.";
            "rookery_workers_alive": Count, "Workers active in the last ten minutes, by backend.";
            "rookery_dependency_up": Count, "1 if the database or the store answers, else 0.";
            "rookery_disk_free_bytes": Bytes,
                "Free space on the disk of the ledger's file (database) or of the storage's folder (store); database alone if they share one.";
            "rookery_disk_size_bytes": Bytes, "Size of these disks.";
        }
        describe_histogram {
            "rookery_http_request_duration_seconds": Seconds,
                "Time from a request's head to its answer's, by method, route and status.";
            "rookery_ledger_duration_seconds": Seconds,
                "Time of the ledger's operations, waiting for the writer included, by operation and part.";
            "rookery_blob_duration_seconds": Seconds,
                "Time until the store of blobs has taken or found a file, by operation and kind.";
            "rookery_verification_duration_seconds": Seconds,
                "Time that a core takes to check a chunk, its hash or a network.";
            "rookery_rating_fit_duration_seconds": Seconds, "Time that a fit of all ratings of a run takes.";
        }
    }
    metrics::gauge!("rookery_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_is_news() {
        let mut store = Dependency::new("store");
        let answers = [None, Some("refused"), Some("refused"), None, None];
        let news = answers.map(|answer| store.note(answer));
        assert_eq!(news, [false, true, false, true, false]);
    }
}
