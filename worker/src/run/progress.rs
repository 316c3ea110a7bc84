//! Showing what is going on: two live lines on a terminal, a log line every minute elsewhere, and how the hour went.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rookery_common::terminal;

use super::{Shared, summary, ticks};

/// Between two looks on a terminal.
const LIVE: Duration = Duration::from_millis(500);
/// Between two log lines.
const LOGGED: Duration = Duration::from_secs(60);
/// Between two summaries.
const SUMMED_UP: Duration = Duration::from_secs(3600);
/// What stands before the text in a live line.
const MARGIN: usize = 2;

/// Shows the status until stopped.
pub(super) async fn show(shared: Shared, screen: MultiProgress) {
    let shown = async {
        if std::io::stderr().is_terminal() && !screen.is_hidden() {
            live(&shared, &screen).await;
        } else {
            logged(&shared).await;
        }
    };
    tokio::join!(shown, hourly(&shared));
}

async fn live(shared: &Shared, screen: &MultiProgress) {
    let bars = ["{spinner} {wide_msg}", "  {wide_msg}"].map(|template| {
        let bar = screen.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    });
    let mut ticks = ticks(LIVE);
    // Rates over ten looks are calm enough to read.
    let mut looks = VecDeque::new();
    loop {
        ticks.tick().await;
        looks.push_back((Instant::now(), shared.status.counts()));
        if looks.len() > 10 {
            looks.pop_front();
        }
        if let Some((since, before)) = looks.front() {
            shared
                .status
                .measure(*before, since.elapsed().as_secs_f64());
        }
        let columns = terminal::columns().saturating_sub(MARGIN);
        let lines = shared.status.lines(columns, shared.networks.download());
        for (bar, line) in bars.iter().zip(lines) {
            bar.set_message(line);
            bar.tick();
        }
    }
}

async fn logged(shared: &Shared) {
    let mut before = shared.status.counts();
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(LOGGED).await;
        before = shared.status.measure(before, since.elapsed().as_secs_f64());
        since = Instant::now();
        let lines = shared.status.lines(usize::MAX, shared.networks.download());
        tracing::info!("{}", lines.join(" | "));
    }
}

async fn hourly(shared: &Shared) {
    loop {
        let (status, since) = (&shared.status, Instant::now());
        let (before, counts) = (status.uploaded(), status.counts());
        tokio::time::sleep(SUMMED_UP).await;
        let uploaded = status.uploaded().since(before);
        let positions = status.counts().positions - counts.positions;
        let given = summary::given(uploaded, positions, since.elapsed());
        tracing::info!("uploaded in the last hour: {given}");
        summary::log_account(shared).await;
    }
}
