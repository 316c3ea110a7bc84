//! What people see: progress bars on a terminal, plain log lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use rookery_common::command_line::LogFormat;
use rookery_common::logging;
use rookery_common::terminal::progress_bars;

/// How often a task tells of itself where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

/// Where progress and log lines go: standard error, one undisturbed by the other.
#[derive(Debug, Clone)]
pub struct Screen {
    bars: MultiProgress,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Terminal,
    Plain,
}

impl Screen {
    /// Sets logging up for the process; `filter` is a level or a filter such as `info,hyper=warn`. There are
    /// no progress bars between lines for programs.
    ///
    /// # Errors
    ///
    /// If the text is not a valid filter.
    pub fn set_up(filter: &str, format: LogFormat) -> anyhow::Result<Self> {
        let bars = progress_bars();
        // A dumb terminal has no bars, and sees what a file would get.
        let kind = if bars.is_hidden() || format == LogFormat::Json {
            Kind::Plain
        } else {
            Kind::Terminal
        };
        let screen = Self { bars, kind };
        logging::start(filter, format, &screen.bars)?;
        Ok(screen)
    }

    /// A screen on which nothing is drawn, for tests.
    pub fn hidden() -> Self {
        Self {
            bars: MultiProgress::new(),
            kind: Kind::Plain,
        }
    }

    /// Begins a task of `total` parts; 0 if it is not known.
    pub fn task(&self, name: &str, total: u64) -> Task {
        let bar = match self.kind {
            Kind::Terminal => self.bars.add(ProgressBar::new(total)),
            Kind::Plain => ProgressBar::hidden(),
        };
        bar.set_style(style(total));
        bar.set_prefix(name.to_owned());
        if self.kind == Kind::Terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let last = Instant::now();
        Task {
            name: name.to_owned(),
            total,
            bar,
            kind: self.kind,
            begun: None,
            last,
        }
    }
}

fn style(total: u64) -> ProgressStyle {
    let template = if total > 0 {
        "{prefix} {wide_bar} {human_pos}/{human_len} {msg} {elapsed} eta {eta}"
    } else {
        "{spinner} {prefix} {msg} {elapsed}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Something that takes a while.
#[derive(Debug)]
pub struct Task {
    name: String,
    total: u64,
    bar: ProgressBar,
    kind: Kind,
    /// When it first told how far it was, and how far that was: some was done before.
    begun: Option<(Instant, u64)>,
    last: Instant,
}

impl Task {
    /// Tells how far something is whose parts are not counted here.
    pub fn tell(&mut self, text: &str) {
        match self.kind {
            Kind::Terminal => self.bar.set_message(text.to_owned()),
            Kind::Plain if self.last.elapsed() >= PLAIN_INTERVAL => {
                self.last = Instant::now();
                tracing::info!("{}: {text}", self.name);
            }
            Kind::Plain => {}
        }
    }

    /// Tells how far it is.
    pub fn at(&mut self, done: u64, note: &str) {
        let (begun, first) = *self.begun.get_or_insert_with(|| (Instant::now(), done));
        match self.kind {
            Kind::Terminal => {
                self.bar.set_length(self.total.max(done));
                self.bar.set_position(done);
                self.bar.set_message(note.to_owned());
            }
            Kind::Plain if self.last.elapsed() >= PLAIN_INTERVAL => {
                self.last = Instant::now();
                let missing = self.total.saturating_sub(done);
                let left = left(begun.elapsed(), done.saturating_sub(first), missing);
                tracing::info!("{}", line(&self.name, done, self.total, note, left));
            }
            Kind::Plain => {}
        }
    }
}

/// How long what is missing takes, if it goes on as it went; unknown while nothing was done.
fn left(passed: Duration, done: u64, missing: u64) -> Option<Duration> {
    if done == 0 || missing == 0 {
        return None;
    }
    let seconds = passed.as_secs_f64() * missing as f64 / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What a task tells of itself where there is no terminal.
fn line(name: &str, done: u64, total: u64, note: &str, left: Option<Duration>) -> String {
    let mut line = format!("{name}: {done}");
    if total > 0 {
        line.push_str(&format!(" of {total}"));
    }
    if !note.is_empty() {
        line.push(' ');
        line.push_str(note);
    }
    if let Some(left) = left {
        line.push_str(&format!(", about {} left", HumanDuration(left)));
    }
    line
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_more_than_there_is_to_say() {
        assert_eq!(line("positions", 0, 800, "", None), "positions: 0 of 800");
        assert_eq!(line("games", 3, 0, "played", None), "games: 3 played");
        let left = Some(Duration::from_secs(300));
        assert_eq!(
            line("match", 3, 8, "+1 =2 -0", left),
            "match: 3 of 8 +1 =2 -0, about 5 minutes left"
        );
    }

    #[test]
    fn what_is_missing_takes_as_long_as_what_was_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 20, 100), Some(5 * minute));
        assert_eq!(left(minute, 0, 100), None, "nothing is known yet");
        assert_eq!(left(minute, 100, 0), None, "there is nothing left");
        assert_eq!(left(Duration::MAX, 1, u64::MAX), None, "beyond all time");
    }
}
