//! What is going on, in numbers and in lines that fit the terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{ChunkReceipt, Job, WorkKind};
use rookery_common::protocol::problem::Remedy;
use rookery_common::text::quantity;

use super::activity::{Activity, ActivityHandle};
use crate::api::ApiError;
use crate::networks::Download;
use crate::play::Counters;

/// Numbers for people.
#[derive(Debug)]
pub(crate) struct Status {
    counters: Arc<Counters>,
    activity: ActivityHandle,
    uploaded: Mutex<Uploaded>,
    /// The job that was begun last, while any is in hand.
    job: Mutex<Option<JobWords>>,
    /// Games that are played to their end, once the program is to end.
    left: Mutex<Option<usize>>,
    /// When finished games are uploaded next.
    next_upload: Mutex<Option<Instant>>,
    /// A chunk could not be sent and is tried again.
    upload_fails: AtomicBool,
    /// A job could not be asked for, and it is tried again.
    request_fails: AtomicBool,
    /// Bits of an `f64`: evaluations a second of late.
    evals: AtomicU64,
    positions: AtomicU64,
}

/// What the coordinator has acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Uploaded {
    /// Self-play, puzzle and match games.
    pub(super) games: u64,
    /// Audits: games of other contributors that were searched again.
    pub(super) audits: u64,
    /// Chunks, those of audits among them.
    pub(super) chunks: u64,
}

impl Uploaded {
    /// Games, and audits if there are any.
    pub(super) fn words(self) -> String {
        games_and_audits(self.games, self.audits)
    }

    /// What was acknowledged after `earlier`.
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            games: self.games - earlier.games,
            audits: self.audits - earlier.audits,
            chunks: self.chunks - earlier.chunks,
        }
    }
}

/// A job as the status names it.
#[derive(Debug, Clone)]
struct JobWords {
    run: String,
    /// Its kind and networks, for example `match #3 vs #2`.
    work: String,
}

impl Status {
    pub(super) const fn new(counters: Arc<Counters>, activity: ActivityHandle) -> Self {
        Self {
            counters,
            activity,
            uploaded: Mutex::new(Uploaded {
                games: 0,
                audits: 0,
                chunks: 0,
            }),
            job: Mutex::new(None),
            left: Mutex::new(None),
            next_upload: Mutex::new(None),
            upload_fails: AtomicBool::new(false),
            request_fails: AtomicBool::new(false),
            evals: AtomicU64::new(0),
            positions: AtomicU64::new(0),
        }
    }

    /// Counts an acknowledged chunk of a job of this kind.
    pub(super) fn count_upload(&self, kind: WorkKind, receipt: &ChunkReceipt) {
        let mut uploaded = self.uploaded.lock();
        uploaded.chunks += 1;
        match kind {
            WorkKind::Audit => uploaded.audits += u64::from(receipt.games),
            WorkKind::SelfPlay | WorkKind::Puzzles | WorkKind::Match => {
                uploaded.games += u64::from(receipt.games);
            }
        }
    }

    /// What was acknowledged since the start.
    pub(super) fn uploaded(&self) -> Uploaded {
        *self.uploaded.lock()
    }

    /// Notes how an attempt to send a chunk ended.
    pub(super) fn note_upload<T>(&self, answer: &Result<T, ApiError>) {
        self.upload_fails.store(is_tried_again(answer), Relaxed);
    }

    /// Notes how an attempt to get a job ended.
    pub(super) fn note_request<T>(&self, answer: &Result<T, ApiError>) {
        self.request_fails.store(is_tried_again(answer), Relaxed);
    }

    /// Names the job that was begun last.
    pub(super) fn set_job(&self, job: &Job) {
        *self.job.lock() = Some(JobWords {
            run: job.run.to_string(),
            work: format!("{} {}", job.work.kind().name(), networks(job).join(" vs ")),
        });
    }

    /// Tells that no job is in hand.
    pub(super) fn clear_job(&self) {
        *self.job.lock() = None;
    }

    /// Shows that the program ends after this number of games.
    pub(super) fn set_left(&self, games: usize) {
        *self.left.lock() = Some(games);
    }

    /// Tells when finished games are uploaded next.
    pub(super) fn set_next_upload(&self, pause: Duration) {
        *self.next_upload.lock() = Instant::now().checked_add(pause);
    }

    /// Evaluations a second of late; 0 during a pause.
    pub(super) fn evals_per_second(&self) -> f32 {
        match self.activity.now() {
            Activity::Paused(_) => 0.0,
            Activity::Playing | Activity::Draining => {
                f64::from_bits(self.evals.load(Relaxed)) as f32
            }
        }
    }

    /// What was computed since the start.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            evaluations: self.counters.evaluations.load(Relaxed),
            positions: self.counters.positions.load(Relaxed),
        }
    }

    /// Notes the speeds since `before`, some seconds ago.
    pub(super) fn measure(&self, before: Counts, seconds: f64) -> Counts {
        let now = self.counts();
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds.max(1e-3);
        self.evals
            .store(rate(now.evaluations, before.evaluations).to_bits(), Relaxed);
        self.positions
            .store(rate(now.positions, before.positions).to_bits(), Relaxed);
        now
    }

    /// Why nothing is played, what is played, or how many games the end still takes: in full, and without the run's name.
    fn now(&self) -> [String; 2] {
        if let Activity::Paused(reason) = self.activity.now() {
            return reason.words();
        }
        let same = |text: String| [text.clone(), text];
        match (*self.left.lock(), &*self.job.lock()) {
            (Some(0), _) => same("uploading, then ending".to_owned()),
            (Some(games), _) => same(format!("ending, {} left", quantity(games, "game"))),
            (None, Some(JobWords { run, work })) => [format!("{run} {work}"), work.clone()],
            (None, None) if self.request_fails.load(Relaxed) => {
                same("waiting for the coordinator".to_owned())
            }
            (None, None) => same("waiting for a job".to_owned()),
        }
    }

    /// When the next upload is, in full and in short.
    fn next_upload(&self) -> [String; 2] {
        let waits = "games wait for the coordinator";
        if self.upload_fails.load(Relaxed) {
            return [format!(", finished {waits}"), waits.to_owned()];
        }
        if self.left.lock().is_some() {
            return [", the rest at the end".to_owned(), String::new()];
        }
        let next = *self.next_upload.lock();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()).as_secs());
        let full = match left {
            Some(seconds @ 0..120) => format!(", next within {seconds} s"),
            Some(seconds) => format!(", next within {} min", seconds.div_ceil(60)),
            None => String::new(),
        };
        [full, String::new()]
    }

    /// What is played, and what was uploaded or is being fetched, with as much as fits into this number of columns.
    pub(super) fn lines(&self, columns: usize, download: Option<Download>) -> [String; 2] {
        [
            fitting(self.played(), columns),
            fitting(self.sent(download), columns),
        ]
    }

    /// What is played and how fast, the longest text first.
    fn played(&self) -> Vec<String> {
        let [full, short] = self.now();
        let Counters { games, audits, .. } = &*self.counters;
        let games = games_and_audits(games.load(Relaxed), audits.load(Relaxed));
        if let Activity::Paused(_) = self.activity.now() {
            return vec![
                format!("{full} | {games}"),
                format!("{short} | {games}"),
                short,
            ];
        }
        let positions = f64::from_bits(self.positions.load(Relaxed));
        let evals = f64::from_bits(self.evals.load(Relaxed));
        vec![
            format!("{full} | {games}, {positions:.0} positions/s, {evals:.0} evals/s"),
            format!("{short} | {games}, {positions:.0} pos/s, {evals:.0} evals/s"),
            format!("{short} | {positions:.0} pos/s, {evals:.0} evals/s"),
            format!("{short} | {evals:.0} evals/s"),
            short,
        ]
    }

    /// What was uploaded and what is under way, the longest text first.
    fn sent(&self, download: Option<Download>) -> Vec<String> {
        let uploaded = self.uploaded();
        let (words, games) = (uploaded.words(), quantity(uploaded.games, "game"));
        let chunks = quantity(uploaded.chunks, "chunk");
        let [full, short] = match download {
            Some(download) => [format!(" | {download}"), download.to_string()],
            None => self.next_upload(),
        };
        let last = if short.is_empty() {
            format!("uploaded {games}")
        } else {
            short
        };
        vec![
            format!("uploaded {words} in {chunks}{full}"),
            format!("uploaded {words}{full}"),
            format!("uploaded {games}{full}"),
            last,
        ]
    }
}

/// The numbers of the networks that a job plays with.
pub(super) fn networks(job: &Job) -> Vec<String> {
    let described = |hash: ContentHash| job.networks.iter().find(|network| network.hash == hash);
    let playing = job.work.networks().into_iter().filter_map(described);
    playing
        .map(|network| format!("#{}", network.number))
        .collect()
}

fn games_and_audits(games: u64, audits: u64) -> String {
    let games = quantity(games, "game");
    match audits {
        0 => games,
        audits => format!("{games}, {}", quantity(audits, "audit")),
    }
}

fn is_tried_again<T>(answer: &Result<T, ApiError>) -> bool {
    let error = answer.as_ref().err();
    error.is_some_and(|error| error.remedy() == Remedy::Retry)
}

/// The first of the texts that fits into this number of columns, or the last.
fn fitting(mut texts: Vec<String>, columns: usize) -> String {
    let fits = |text: &String| text.chars().count() <= columns;
    let chosen = texts
        .iter()
        .position(fits)
        .unwrap_or_else(|| texts.len().saturating_sub(1));
    texts.swap_remove(chosen)
}

/// What was computed since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    evaluations: u64,
    pub(super) positions: u64,
}

#[cfg(test)]
mod tests;
