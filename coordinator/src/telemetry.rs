//! Log lines and Prometheus metrics.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use anyhow::Context as _;
use metrics::{Unit, describe_counter, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, Settings};

/// Upper bounds of the buckets of durations, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0,
];

static PROMETHEUS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to write log lines to standard error.
///
/// # Errors
///
/// If the filter is none, or logging was begun before.
pub fn begin_logging(settings: &Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log)
        .with_context(|| format!("{:?} is no filter for log lines", settings.log))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let begun = match settings.log_format {
        LogFormat::Plain => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    begun.map_err(|error| anyhow::anyhow!("cannot begin to log: {error}"))
}

/// Begins to count. A second call does nothing.
///
/// # Errors
///
/// If something else records metrics in this process.
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

fn describe() {
    describe_histogram!(
        "rookery_http_request_duration_seconds",
        Unit::Seconds,
        "Time from a request's head to its answer's, by method, route and status."
    );
    describe_counter!(
        "rookery_played_on_games_total",
        "Self-play games that were played on although a side may have been lost, by run and what \
         they say of resigning: never-resigned, right, or wrong (a false positive)."
    );
    describe_counter!(
        "rookery_problems_total",
        Unit::Count,
        "Requests that failed, by code."
    );
    describe_counter!(
        "rookery_leases_total",
        Unit::Count,
        "Jobs handed out, by kind."
    );
    describe_counter!("rookery_chunks_total", Unit::Count, "Chunks accepted.");
    describe_counter!(
        "rookery_chunk_bytes_total",
        Unit::Bytes,
        "Bytes of accepted chunks."
    );
    describe_counter!(
        "rookery_games_total",
        Unit::Count,
        "Games of accepted chunks."
    );
    describe_counter!(
        "rookery_positions_total",
        Unit::Count,
        "Positions of accepted chunks."
    );
    describe_histogram!(
        "rookery_rating_fit_duration_seconds",
        Unit::Seconds,
        "Time that a fit of all ratings of a run takes."
    );
}
