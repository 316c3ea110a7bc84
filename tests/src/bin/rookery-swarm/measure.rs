//! How long requests took, by route, and which failed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is measured apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Route {
    Jobs,
    Heartbeats,
    Uploads,
    /// A new connection and a heartbeat, from the moment at which all workers lost theirs.
    Reconnect,
}

impl Route {
    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "POST /jobs",
            Self::Heartbeats => "POST /jobs/{id}/heartbeat",
            Self::Uploads => "PUT /chunks/{sha256}",
            Self::Reconnect => "reconnect",
        }
    }
}

/// Requests of a route.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// How long each took, in microseconds.
    micros: Vec<u32>,
    /// How many failed, by status and code, or by what happened to the connection.
    pub(crate) errors: BTreeMap<String, u64>,
    /// How long the route was under load.
    pub(crate) under_load: Duration,
}

impl Samples {
    /// Requests, failed ones too.
    pub(crate) fn requests(&self) -> u64 {
        self.micros.len() as u64
    }

    /// Failed requests.
    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Requests a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.requests() as f64 / self.under_load.as_secs_f64().max(1e-9)
    }

    /// The times under which a share of the requests stayed, in milliseconds.
    pub(crate) fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        shares.map(|share| {
            let place = (share * sorted.len() as f64).ceil() as usize;
            let micros = sorted.get(place.saturating_sub(1)).copied().unwrap_or(0);
            f64::from(micros) / 1000.0
        })
    }

    fn merge(&mut self, other: Self) {
        self.micros.extend(other.micros);
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
    }
}

/// What one task has measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(pub(crate) BTreeMap<Route, Samples>);

impl Record {
    /// Notes a request that began (or was due) at `begun`.
    pub(crate) fn note(&mut self, route: Route, begun: Instant, error: Option<String>) {
        let samples = self.0.entry(route).or_default();
        let micros = begun.elapsed().as_micros();
        samples
            .micros
            .push(u32::try_from(micros).unwrap_or(u32::MAX));
        if let Some(code) = error {
            *samples.errors.entry(code).or_default() += 1;
        }
    }

    /// Adds what another task measured at the same time.
    pub(crate) fn merge(&mut self, other: Self) {
        for (route, samples) in other.0 {
            self.0.entry(route).or_default().merge(samples);
        }
    }

    /// Adds the measurements of a phase that took `duration`.
    pub(crate) fn add_phase(&mut self, phase: Self, duration: Duration) {
        for (route, samples) in phase.0 {
            let all = self.0.entry(route).or_default();
            all.merge(samples);
            all.under_load += duration;
        }
    }
}

/// When the next request is due.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    begun: Instant,
    until: Instant,
    /// Seconds between requests, in an open loop.
    interval: Option<f64>,
    tickets: Arc<AtomicU64>,
}

impl Pace {
    /// A pace from now on.
    pub(crate) fn new(seconds: u64, rate: Option<f64>) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            until: begun + Duration::from_secs(seconds),
            interval: rate.map(f64::recip),
            tickets: Arc::default(),
        }
    }

    /// Waits until the next request is due and says since when it is; nothing if time is over.
    pub(crate) async fn next(&self) -> Option<Instant> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let due = match self.interval {
            Some(interval) => self.begun + Duration::from_secs_f64(interval * ticket as f64),
            None => Instant::now(),
        };
        if due >= self.until {
            return None;
        }
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
        Some(due)
    }

    /// Whether time is over.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let samples = Samples {
            micros: (1..=100).rev().map(|n| n * 1000).collect(),
            ..Samples::default()
        };
        assert_eq!(
            samples.percentiles([0.5, 0.95, 0.99, 1.0]),
            [50.0, 95.0, 99.0, 100.0]
        );
        assert_eq!(Samples::default().percentiles([0.5]), [0.0]);
    }
}
