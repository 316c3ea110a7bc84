//! Standard output of commands, whose reader may have seen enough before they have said all
//! (`| head`): that is not a failure.
//!
//! Behind the feature `command-line`.

use std::io::{self, BufWriter, StdoutLock, Write};

use anyhow::Context as _;
use serde::Serialize;

/// Prints a text as it is.
///
/// # Errors
///
/// If standard output cannot be written, and not because its reader is gone.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_with(|out| Ok(out.write_all(text.as_bytes())?))
}

/// Prints a line.
///
/// # Errors
///
/// As [`print()`].
pub fn print_line(line: &str) -> anyhow::Result<()> {
    print_with(|out| Ok(writeln!(out, "{line}")?))
}

/// Prints a value as one line of JSON.
///
/// # Errors
///
/// As [`print()`], or if the value has no JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_with(|out| write_json(out, value))
}

/// Prints what `write` writes.
///
/// # Errors
///
/// As [`print()`], or whatever else hinders `write`.
pub fn print_with(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    unless_closed(written).context("cannot write to standard output")
}

/// Writes a value as one line of JSON.
///
/// # Errors
///
/// If it cannot be written or has no JSON.
pub fn write_json(mut output: impl Write, value: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut output, value)?;
    output.write_all(b"\n")?;
    Ok(())
}

/// What was written, where a reader that has gone is not a failure.
///
/// # Errors
///
/// Every other error, as it is.
pub fn unless_closed<T: Default>(written: anyhow::Result<T>) -> anyhow::Result<T> {
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(T::default()),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json_kind = error
        .downcast_ref::<serde_json::Error>()
        .and_then(serde_json::Error::io_error_kind);
    io_kind.or(json_kind) == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_a_reader_that_has_gone_is_no_failure() {
        use io::ErrorKind::{BrokenPipe, StorageFull};
        let json = |kind| unless_closed(write_json(Failing(kind), &1));
        let text = |kind| unless_closed(Failing(kind).flush().map_err(Into::into));
        assert!(json(BrokenPipe).is_ok() && text(BrokenPipe).is_ok());
        assert!(json(StorageFull).is_err() && text(StorageFull).is_err());
    }
}
