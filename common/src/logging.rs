//! Log lines of programs that people start by hand: on standard error, out of the way of progress bars.
//!
//! Behind the feature `command-line`.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;
use indicatif::MultiProgress;
use jiff::Zoned;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::command_line::{LogFormat, warn_of_visible_secrets};

/// Libraries that tell people of what they find at the level `info`. A filter may name them all the same.
const QUIET: &str = "wgpu_hal=warn,wgpu_core=warn,naga=warn";

/// Starts logging to standard error, above `bars`. On a terminal lines are short: coloured, and with the clock's
/// time.
///
/// # Errors
///
/// If the filter cannot be read: a level, or a filter such as `info,hyper=warn`.
pub fn start(filter: &str, format: LogFormat, bars: &MultiProgress) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{filter}")).with_context(|| {
        format!("the log filter {filter:?} is not valid; write for example info or debug")
    })?;
    let bars = bars.clone();
    let lines = tracing_subscriber::fmt()
        // A line that cannot be written is lost; by default that would panic once the reader is gone.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(move || AboveBars(bars.clone()));
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Plain if io::stderr().is_terminal() => lines
            .with_target(false)
            .with_ansi(has_colours())
            .with_timer(Clock)
            .try_init(),
        LogFormat::Plain => lines.with_target(false).with_ansi(false).try_init(),
    };
    // Logging that is running already stays as it is.
    drop(started);
    warn_of_visible_secrets();
    Ok(())
}

/// Whether log lines are coloured: on a terminal that has colours (`TERM`) and whose user wants them (`NO_COLOR`).
pub fn has_colours() -> bool {
    io::stderr().is_terminal() && wants_colours(|name| std::env::var_os(name))
}

fn wants_colours(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let no_color = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").map_or(cfg!(unix), |term| term.is_empty() || term == "dumb");
    !no_color && !is_dumb
}

/// The time of day where the program runs, to the second.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        write!(line, "{}", Zoned::now().strftime("%H:%M:%S"))
    }
}

/// Standard error, while the bars below make room.
struct AboveBars(MultiProgress);

impl Write for AboveBars {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0
            .suspend(|| io::stderr().write_all(line))
            .map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_the_time_of_day() {
        let mut line = String::new();
        Clock.format_time(&mut Writer::new(&mut line)).unwrap();
        assert!(
            jiff::civil::Time::strptime("%H:%M:%S", &line).is_ok() && line.len() == 8,
            "{line}"
        );
    }

    #[test]
    fn colours_are_for_terminals_that_have_them_and_people_who_want_them() {
        let wanted = |term: Option<&str>, no_color: Option<&str>| {
            wants_colours(|name| match name {
                "TERM" => term.map(OsString::from),
                _ => no_color.map(OsString::from),
            })
        };
        assert!(wanted(Some("xterm"), None) && wanted(Some("xterm"), Some("")));
        assert!(!wanted(Some("xterm"), Some("1")));
        assert!(!wanted(Some("dumb"), None) && !wanted(Some(""), None));
        assert_eq!(wanted(None, None), cfg!(windows));
    }

    #[test]
    fn a_filter_that_is_none_is_refused() {
        let error = start("rookery=loud", LogFormat::Plain, &MultiProgress::new()).unwrap_err();
        assert!(
            error.to_string().contains("write for example info"),
            "{error}"
        );
    }
}
