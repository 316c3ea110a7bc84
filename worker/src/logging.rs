//! Log lines on standard error, and the live progress line out of their way.

use std::io::{IsTerminal as _, Write};

use anyhow::Context as _;
use rookery_common::command_line::LogFormat;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Starts logging to standard error through `screen`, so that lines and a live progress line do
/// not overwrite each other.
///
/// # Errors
///
/// If the filter cannot be read.
pub fn start(
    filter: &str,
    format: LogFormat,
    screen: &indicatif::MultiProgress,
) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("the log filter {filter:?} is not valid; write for example info or debug")
    })?;
    let writer = Screen(screen.clone());
    let lines = tracing_subscriber::fmt()
        // A line that cannot be written is lost; by default that would panic where nobody reads any more.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(writer);
    let started = match format {
        LogFormat::Plain => lines
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    // Logging that is running already stays as it is.
    drop(started);
    Ok(())
}

/// Standard error, with the progress line out of the way while a log line is written.
#[derive(Clone)]
struct Screen(indicatif::MultiProgress);

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.suspend(|| std::io::stderr().write(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for Screen {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
