//! Questions to the person at the terminal.

use std::io::{self, BufRead, IsTerminal as _, Write};

use anyhow::Context as _;

/// Whether anybody can be asked, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Somebody is at a terminal.
    Asks,
    /// `--yes` was given.
    TakesDefaults,
    /// Standard input is not a terminal.
    HasNoTerminal,
}

/// A conversation.
pub(super) struct Dialog<R, W> {
    mode: Mode,
    input: R,
    output: W,
}

impl Dialog<io::StdinLock<'static>, io::Stdout> {
    /// With the user who started the program.
    pub(super) fn with_user(yes: bool) -> Self {
        let mode = match (yes, io::stdin().is_terminal()) {
            (true, _) => Mode::TakesDefaults,
            (false, true) => Mode::Asks,
            (false, false) => Mode::HasNoTerminal,
        };
        Self::new(mode, io::stdin().lock(), io::stdout())
    }
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    pub(super) const fn new(mode: Mode, input: R, output: W) -> Self {
        Self {
            mode,
            input,
            output,
        }
    }

    /// Tells the user something.
    pub(super) fn say(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.output, "{line}")?;
        Ok(())
    }

    /// Tells the user what is wrong, so that the question can be asked again. Without a terminal it is the
    /// command's error.
    pub(super) fn complain(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        match self.mode {
            Mode::Asks => self.say(&format!("{error:#}")),
            Mode::TakesDefaults | Mode::HasNoTerminal => Err(error),
        }
    }

    /// The answer to a question, or `default` if nothing is typed or there is no terminal.
    pub(super) fn ask(
        &mut self,
        question: &str,
        default: Option<&str>,
    ) -> anyhow::Result<Option<String>> {
        let default = default.map(str::to_owned);
        if self.mode != Mode::Asks {
            return Ok(default);
        }
        match &default {
            Some(default) => write!(self.output, "{question} [{default}]: ")?,
            None => write!(self.output, "{question}: ")?,
        }
        self.output.flush()?;
        let mut line = String::new();
        let read = self
            .input
            .read_line(&mut line)
            .context("cannot read the answer")?;
        anyhow::ensure!(
            read > 0,
            "the input ended before the answer; nothing is written"
        );
        Ok(match line.trim() {
            "" => default,
            typed => Some(typed.to_owned()),
        })
    }

    /// The answer to a question that needs one; `flag` gives it without a terminal.
    pub(super) fn require(
        &mut self,
        question: &str,
        default: Option<&str>,
        flag: &str,
    ) -> anyhow::Result<String> {
        loop {
            if let Some(answer) = self.ask(question, default)? {
                return Ok(answer);
            }
            match self.mode {
                Mode::Asks => {
                    self.say("An answer is needed here; Ctrl-C ends without writing anything.")?;
                }
                Mode::TakesDefaults => {
                    anyhow::bail!("{question} is not known, and --yes asks nothing: give {flag}")
                }
                Mode::HasNoTerminal => anyhow::bail!(
                    "{question} is not known and cannot be asked for, as standard input is no terminal: give \
                     {flag}, or start setup in a terminal"
                ),
            }
        }
    }
}
