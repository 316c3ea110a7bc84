//! What is going on: two live lines on a terminal, a log line every minute elsewhere.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{ChunkReceipt, Job};
use rookery_common::protocol::problem::Remedy;

use super::Shared;
use crate::api::ApiError;
use crate::networks::Download;
use crate::play::Gauge;

/// Between two looks on a terminal.
const LIVE: Duration = Duration::from_millis(500);
/// Between two log lines.
const LOGGED: Duration = Duration::from_secs(60);

/// Numbers for people.
#[derive(Debug)]
pub(crate) struct Status {
    gauge: Arc<Gauge>,
    uploaded_games: AtomicU64,
    uploaded_chunks: AtomicU64,
    /// What is played now.
    now: Mutex<String>,
    /// Games that are played to their end, once the program is to end.
    left: Mutex<Option<usize>>,
    /// When finished games are uploaded next.
    next_upload: Mutex<Option<Instant>>,
    /// A chunk could not be sent and is tried again.
    waiting: AtomicBool,
    /// Bits of an `f64`: evaluations a second of late.
    evals: AtomicU64,
    positions: AtomicU64,
}

impl Status {
    pub(super) const fn new(gauge: Arc<Gauge>) -> Self {
        Self {
            gauge,
            uploaded_games: AtomicU64::new(0),
            uploaded_chunks: AtomicU64::new(0),
            now: Mutex::new(String::new()),
            left: Mutex::new(None),
            next_upload: Mutex::new(None),
            waiting: AtomicBool::new(false),
            evals: AtomicU64::new(0),
            positions: AtomicU64::new(0),
        }
    }

    /// Counts an acknowledged chunk.
    pub(super) fn uploaded(&self, receipt: &ChunkReceipt) {
        self.uploaded_games.fetch_add(receipt.games.into(), Relaxed);
        self.uploaded_chunks.fetch_add(1, Relaxed);
    }

    /// Notes how an attempt to send a chunk ended.
    pub(super) fn tried(&self, answer: &Result<ChunkReceipt, ApiError>) {
        let error = answer.as_ref().err();
        let again = error.is_some_and(|error| error.remedy() == Remedy::Retry);
        self.waiting.store(again, Relaxed);
    }

    /// Games of acknowledged chunks.
    pub(super) fn uploaded_games(&self) -> u64 {
        self.uploaded_games.load(Relaxed)
    }

    /// Names the job that was begun last.
    pub(super) fn set_job(&self, job: &Job) {
        let described =
            |hash: ContentHash| job.networks.iter().find(|network| network.hash == hash);
        let playing = job.work.networks().into_iter().filter_map(described);
        let networks: Vec<String> = playing
            .map(|network| format!("#{}", network.number))
            .collect();
        let text = format!(
            "{} {} {}",
            job.run,
            job.work.kind().name(),
            networks.join(" vs ")
        );
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Tells that the program ends after so many games.
    pub(super) fn set_left(&self, games: usize) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(games);
    }

    fn left(&self) -> Option<usize> {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when finished games are uploaded next.
    pub(super) fn set_next_upload(&self, pause: Duration) {
        let next = Instant::now().checked_add(pause);
        *self
            .next_upload
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn next_upload(&self) -> String {
        if self.waiting.load(Relaxed) {
            return ", finished games wait for the coordinator".to_owned();
        }
        if self.left().is_some() {
            return ", the rest at the end".to_owned();
        }
        let next = *self
            .next_upload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match next.map(|next| next.saturating_duration_since(Instant::now()).as_secs()) {
            Some(seconds @ 0..120) => format!(", next in {seconds} s"),
            Some(seconds) => format!(", next in {} min", seconds / 60),
            None => String::new(),
        }
    }

    /// Evaluations a second of late.
    pub(super) fn evals_per_second(&self) -> f32 {
        f64::from_bits(self.evals.load(Relaxed)) as f32
    }

    fn measure(&self, before: Counts, seconds: f64) -> Counts {
        let now = Counts::of(&self.gauge);
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds.max(1e-3);
        self.evals
            .store(rate(now.evaluations, before.evaluations).to_bits(), Relaxed);
        self.positions
            .store(rate(now.positions, before.positions).to_bits(), Relaxed);
        now
    }

    /// What is played, or how many games the end still takes.
    fn now(&self) -> String {
        match self.left() {
            Some(0) => "uploading, then ending".to_owned(),
            Some(1) => "ending, 1 game left".to_owned(),
            Some(games) => format!("ending, {games} games left"),
            None => self.job(),
        }
    }

    fn job(&self) -> String {
        let job = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if job.is_empty() {
            return "waiting for a job".to_owned();
        }
        job.clone()
    }

    /// What is played, and what was uploaded or is being fetched: each fits into a line of a terminal of 80 columns.
    fn lines(&self, download: Option<Download>) -> [String; 2] {
        let played = format!(
            "{} | {} games, {:.0} positions/s, {:.0} evals/s",
            self.now(),
            self.gauge.games.load(Relaxed),
            f64::from_bits(self.positions.load(Relaxed)),
            f64::from_bits(self.evals.load(Relaxed)),
        );
        let uploaded = format!(
            "uploaded {} games in {} chunks{}",
            self.uploaded_games(),
            self.uploaded_chunks.load(Relaxed),
            download.map_or_else(|| self.next_upload(), |download| format!(" | {download}")),
        );
        [played, uploaded]
    }
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    evaluations: u64,
    positions: u64,
}

impl Counts {
    fn of(gauge: &Gauge) -> Self {
        Self {
            evaluations: gauge.evaluations.load(Relaxed),
            positions: gauge.positions.load(Relaxed),
        }
    }
}

/// Shows the status until stopped.
pub(super) async fn show(shared: Shared, screen: MultiProgress) {
    if std::io::stderr().is_terminal() && !screen.is_hidden() {
        live(&shared, &screen).await;
    } else {
        logged(&shared).await;
    }
}

async fn live(shared: &Shared, screen: &MultiProgress) {
    let bars = ["{spinner} {wide_msg}", "  {wide_msg}"].map(|template| {
        let bar = screen.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    });
    let mut ticks = tokio::time::interval(LIVE);
    // Rates over ten looks are calm enough to read.
    let mut looks = std::collections::VecDeque::new();
    loop {
        ticks.tick().await;
        looks.push_back((Instant::now(), Counts::of(&shared.status.gauge)));
        if looks.len() > 10 {
            looks.pop_front();
        }
        if let Some((since, before)) = looks.front() {
            shared
                .status
                .measure(*before, since.elapsed().as_secs_f64());
        }
        for (bar, line) in bars
            .iter()
            .zip(shared.status.lines(shared.networks.download()))
        {
            bar.set_message(line);
            bar.tick();
        }
    }
}

async fn logged(shared: &Shared) {
    let mut before = Counts::of(&shared.status.gauge);
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(LOGGED).await;
        before = shared.status.measure(before, since.elapsed().as_secs_f64());
        since = Instant::now();
        tracing::info!(
            "{}",
            shared.status.lines(shared.networks.download()).join(" | ")
        );
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::NetworkNumber;
    use rookery_common::protocol::jobs::NetworkRef;
    use rookery_common::protocol::{Problem, ProblemCode};

    use super::*;

    #[test]
    fn the_lines_tell_what_is_played_and_what_was_uploaded() {
        let status = Status::new(Arc::default());
        let [played, _] = status.lines(None);
        assert!(
            played.starts_with("waiting for a job | 0 games"),
            "{played}"
        );
        let mut job = crate::spool::testing::job(3);
        // What a coordinator describes besides is not played.
        let other = NetworkRef {
            hash: ContentHash::of(b"another"),
            number: NetworkNumber(7),
            ..job.networks[0].clone()
        };
        job.networks.insert(0, other);
        status.set_job(&job);
        status.gauge.games.fetch_add(5, Relaxed);
        status.gauge.evaluations.fetch_add(1000, Relaxed);
        status.measure(
            Counts {
                evaluations: 0,
                positions: 0,
            },
            2.0,
        );
        status.set_next_upload(Duration::from_secs(300));
        let [played, uploaded] = status.lines(None);
        assert_eq!(
            played,
            "main self-play #0 | 5 games, 0 positions/s, 500 evals/s"
        );
        assert_eq!(uploaded, "uploaded 0 games in 0 chunks, next in 4 min");
    }

    #[test]
    fn the_lines_promise_no_upload_while_none_succeeds() {
        let status = Status::new(Arc::default());
        status.set_next_upload(Duration::from_secs(5));
        status.tried(&Err(ApiError::Unreachable("test".into())));
        let [_, uploaded] = status.lines(None);
        assert!(
            uploaded.ends_with("in 0 chunks, finished games wait for the coordinator"),
            "{uploaded}"
        );
        // What is refused is put aside, and waits for nothing.
        status.tried(&Err(ApiError::Problem {
            problem: Box::new(Problem::new(ProblemCode::ChunkRefused, "test")),
            retry_after: None,
        }));
        let [_, uploaded] = status.lines(None);
        assert!(uploaded.contains("in 0 chunks, next in"), "{uploaded}");
    }

    #[test]
    fn the_lines_of_a_fast_machine_fit_into_80_columns() {
        let status = Status::new(Arc::default());
        *status.now.lock().unwrap() = "main match #1234 vs #1233".into();
        status.gauge.games.store(1_234_567, Relaxed);
        status.evals.store(123_456.0_f64.to_bits(), Relaxed);
        status.positions.store(12_345.0_f64.to_bits(), Relaxed);
        status.uploaded_games.store(123_456, Relaxed);
        status.uploaded_chunks.store(1_234, Relaxed);
        status.waiting.store(true, Relaxed);
        let fit = || status.lines(None).iter().all(|line| line.len() <= 78);
        assert!(fit(), "{:?}", status.lines(None));
        status.set_left(1024);
        assert!(fit(), "{:?}", status.lines(None));
        let download = Download {
            number: NetworkNumber(1234),
            have: 345_000_000,
            bytes: 396_000_000,
        };
        let [_, fetching] = status.lines(Some(download));
        assert!(fetching.len() <= 78, "{fetching}");
        assert!(
            fetching.ends_with("| fetching network #1234: 345 of 396 MB"),
            "{fetching}"
        );
    }

    #[test]
    fn the_lines_tell_how_many_games_are_left_before_the_end() {
        let status = Status::new(Arc::default());
        status.set_next_upload(Duration::from_secs(300));
        for (games, said) in [
            (41, "ending, 41 games left | 0 games, "),
            (1, "ending, 1 game left | "),
            (0, "uploading, then ending |"),
        ] {
            status.set_left(games);
            let [played, uploaded] = status.lines(None);
            assert!(played.starts_with(said), "{played}");
            assert!(uploaded.ends_with("in 0 chunks, the rest at the end"));
        }
    }
}
