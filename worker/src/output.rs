//! Standard output of commands whose answers other programs read.

use std::io::{self, Write};

use serde::Serialize;

/// Prints a value as one line of JSON.
///
/// # Errors
///
/// If standard output cannot be written, and not because nobody reads it any more.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    unless_closed(write_json(io::stdout().lock(), value))
}

/// Prints a text as it is.
///
/// # Errors
///
/// As [`print_json`].
pub fn print(text: &str) -> anyhow::Result<()> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    unless_closed(written.map_err(Into::into))
}

/// Writes a value as one line of JSON.
pub(crate) fn write_json(mut output: impl Write, value: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut output, value)?;
    output.write_all(b"\n")?;
    Ok(())
}

/// A reader that has seen enough (`| head`) is not a failure.
pub(crate) fn unless_closed<T: Default>(written: anyhow::Result<T>) -> anyhow::Result<T> {
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
