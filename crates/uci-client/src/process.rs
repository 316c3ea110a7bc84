//! The program and its pipes: lines in, lines out, and an end to both.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rookery_common::text::printable;

use crate::launch::{Launch, locate};

/// Longest line that an engine may write, in bytes: a principal variation is far shorter.
const LONGEST_LINE: u64 = 64 * 1024;
/// Lines that may wait to be read; an engine that writes more waits itself.
const WAITING_LINES: usize = 1024;
/// What is kept of the standard error, in lines of at most this number of characters.
const KEPT_ERRORS: usize = 3;
const KEPT_ERROR_CHARACTERS: usize = 300;
/// How long the standard error of a program that has ended is read on, if something else keeps it open.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often an ending process is looked at.
const POLL: Duration = Duration::from_millis(5);

/// What came out of the standard output.
#[derive(Debug)]
pub(crate) enum Output {
    Line(String),
    /// A line that is too long to be one.
    TooLong,
}

/// Why there was no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// None in time.
    TimedOut,
    /// There will be none: the output was closed.
    Closed,
}

/// A running program in a process group of its own. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Lines for the standard input.
    input: Option<Sender<String>>,
    output: Receiver<Output>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Closed when the standard error has been read to its end.
    errors_end: Receiver<()>,
}

impl Process {
    /// Starts the program.
    pub(crate) fn start(launch: &Launch) -> std::io::Result<Self> {
        let mut command = Command::new(locate(&launch.program));
        command
            .args(&launch.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C at the terminal is for us; the engine is ended when its work is over.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (sender, output) = sync_channel(WAITING_LINES);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || forward(stdout, &sender));
        }
        let input = child.stdin.take().map(|stdin| {
            let (input, lines) = channel();
            std::thread::spawn(move || pass_on(stdin, &lines));
            input
        });
        let errors = Arc::default();
        let (end, errors_end) = sync_channel(0);
        if let Some(stderr) = child.stderr.take() {
            let errors = Arc::clone(&errors);
            std::thread::spawn(move || {
                remember(stderr, &errors);
                drop::<SyncSender<()>>(end);
            });
        }
        Ok(Self {
            input,
            child,
            output,
            errors,
            errors_end,
        })
    }

    /// Writes a line, without waiting until the program reads it.
    pub(crate) fn write(&self, line: &str) -> std::io::Result<()> {
        let written = self
            .input
            .as_ref()
            .map(|input| input.send(format!("{line}\n")));
        match written {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next line, if it comes before `deadline`.
    pub(crate) fn read(&self, deadline: Instant) -> Result<Output, Silence> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.output.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::TimedOut,
            RecvTimeoutError::Disconnected => Silence::Closed,
        })
    }

    /// The end of the standard error of a program that has ended, in words that continue a
    /// sentence; empty if there is none.
    pub(crate) fn said(&self) -> String {
        let _closed = self.errors_end.recv_timeout(LAST_WORDS);
        let errors = self.errors.lock();
        if errors.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = errors.iter().map(String::as_str).collect();
        format!("; it last wrote: {}", lines.join(" | "))
    }

    /// Lets the program end by itself for a while, then kills it and everything it has started. In
    /// words how it ended.
    pub(crate) fn end(&mut self, patience: Duration) -> String {
        drop(self.write("quit"));
        drop(self.input.take());
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    // What it has started may still run.
                    self.kill_group();
                    return status.to_string();
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
                Ok(None) | Err(_) => return self.kill(),
            }
        }
    }

    fn kill(&mut self) -> String {
        self.kill_group();
        drop(self.child.kill());
        match self.child.wait() {
            Ok(_) => "killed".to_owned(),
            Err(error) => format!("cannot be waited for: {error}"),
        }
    }

    #[cfg(unix)]
    fn kill_group(&self) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            let group = nix::unistd::Pid::from_raw(id);
            // Where there is no such group any more, there is nothing to end.
            let _ended = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        }
    }

    #[cfg(not(unix))]
    fn kill_group(&self) {}
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.input.is_some() {
            self.end(Duration::ZERO);
        }
    }
}

/// Reads one line of at most `LONGEST_LINE` bytes; nothing at the end.
fn line(reader: &mut impl BufRead) -> Option<Output> {
    let mut bytes = Vec::new();
    let read = reader
        .by_ref()
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut bytes);
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LONGEST_LINE => {
            Some(Output::TooLong)
        }
        Ok(_) => Some(Output::Line(
            String::from_utf8_lossy(&bytes).trim().to_owned(),
        )),
    }
}

/// Writes lines until there will be no more or the program takes none. A program that does not read
/// holds up this thread alone, until it is ended.
fn pass_on(mut stdin: ChildStdin, lines: &Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
}

fn forward(stdout: ChildStdout, lines: &SyncSender<Output>) {
    let mut reader = BufReader::new(stdout);
    while let Some(line) = line(&mut reader) {
        if lines.send(line).is_err() {
            break;
        }
    }
}

fn remember(stderr: ChildStderr, errors: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    while let Some(line) = line(&mut reader) {
        let Output::Line(line) = line else { continue };
        let mut errors = errors.lock();
        if errors.len() == KEPT_ERRORS {
            errors.pop_front();
        }
        errors.push_back(printable(&line, KEPT_ERROR_CHARACTERS));
    }
}
