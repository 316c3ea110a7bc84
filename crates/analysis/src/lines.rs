//! Commands that answer every line of standard input with one line of JSON.

use std::io::{BufRead, Read as _, Write};
use std::process::ExitCode;

use rookery_common::chess::GameHistory;
use rookery_common::output::{unless_closed, write_json};
use serde::Serialize;

use crate::position_line;

/// What is said of a line that could not be answered.
#[derive(Debug, Serialize)]
struct Failure {
    error: String,
}

/// Answers every line of `input` that is not empty with `answer`'s JSON on `output`. A bad line
/// gets `{"error": …}` naming the line, and the next one is read; the exit code then tells. Ends
/// well when the reader of `output` is gone.
///
/// # Errors
///
/// If `input` cannot be read or `output` written.
pub fn answer_lines<A: Serialize>(
    input: impl BufRead,
    output: impl Write,
    answer: impl FnMut(&GameHistory) -> anyhow::Result<A>,
) -> anyhow::Result<ExitCode> {
    unless_closed(answer_all(input, output, answer))
}

fn answer_all<A: Serialize>(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(&GameHistory) -> anyhow::Result<A>,
) -> anyhow::Result<ExitCode> {
    let mut failed = false;
    let mut number = 0_u64;
    while let Some(line) = next_line(&mut input)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        let answered = position_line::parse(&text).map_err(anyhow::Error::from);
        match answered.and_then(|game| answer(&game)) {
            Ok(answer) => write_json(&mut output, &answer)?,
            Err(error) => {
                failed = true;
                let error = format!("line {number}: {error:#}");
                write_json(&mut output, &Failure { error })?;
            }
        }
        output.flush()?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The next line, cut a little beyond the longest allowed; none at the end.
///
/// # Errors
///
/// If `input` cannot be read.
pub fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = position_line::MAX_LINE as u64 + 2;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(input: &[u8]) -> (Vec<serde_json::Value>, ExitCode) {
        let mut output = Vec::new();
        let code = answer_lines(input, &mut output, |game| Ok(game.plies())).unwrap();
        let text = String::from_utf8(output).unwrap();
        (
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            code,
        )
    }

    #[test]
    fn bad_lines_are_named_and_the_rest_is_answered() {
        let (answers, code) = run(b"startpos\nnonsense\n\nstartpos moves e2e4");
        assert_eq!(answers[0], 0);
        assert!(
            answers[1]["error"]
                .as_str()
                .unwrap()
                .starts_with("line 2: ")
        );
        assert_eq!(answers[2], 1);
        assert_eq!(code, ExitCode::FAILURE);
        assert_eq!(run(b"startpos\n").1, ExitCode::SUCCESS);
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        /// A pipe whose reader has gone.
        struct Closed;

        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }

        let input = b"startpos\nstartpos\n";
        let direct = answer_lines(&input[..], Closed, |game| Ok(game.plies()));
        assert_eq!(direct.unwrap(), ExitCode::SUCCESS);
        let buffered = std::io::BufWriter::new(Closed);
        let buffered = answer_lines(&input[..], buffered, |game| Ok(game.plies()));
        assert_eq!(buffered.unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn an_endless_line_costs_no_memory_and_one_error() {
        let mut input = vec![b'x'; 300_000];
        input.extend_from_slice(b"\nstartpos\n\xff\xfe\n");
        let (answers, _) = run(&input);
        assert_eq!(answers.len(), 3);
        assert!(
            answers[0]["error"]
                .as_str()
                .unwrap()
                .contains("longer than")
        );
        assert_eq!(answers[1], 0);
    }
}
