//! The command `setup`: a few questions, then a configuration file.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::output::print_line;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{NAME_CHARS, is_user_name};
use rookery_common::text::printable;

use crate::api::{ApiError, Client, Server};
use crate::cli::SetupArgs;
use crate::config::{ConfigFile, default_path, write_private};

/// How much of a run's description is shown.
const DESCRIPTION_CHARS: usize = 400;

/// Asks for what was not given, tries the coordinator, and writes the file.
///
/// # Errors
///
/// If an answer is not usable, the coordinator does not answer, or the file cannot be written.
pub async fn run(args: SetupArgs, named: Option<&Path>) -> anyhow::Result<()> {
    let path = named.map(PathBuf::from).or_else(default_path);
    let path = path.context("there is no home folder; name a file with --config")?;
    let before = if path.is_file() {
        ConfigFile::load(Some(&path))?
    } else {
        ConfigFile::default()
    };
    let ask = if args.yes || !std::io::stdin().is_terminal() {
        Ask::Never
    } else {
        Ask::Person
    };
    let server = choose_server(&args, &before, ask)?;
    let name = match args.name {
        Some(name) => Some(name),
        None => ask.for_text("Your name on its pages", before.name.as_deref())?,
    };
    if let Some(name) = &name {
        check_name(name)?;
    }
    check(&server).await?;
    let config = ConfigFile {
        server: Some(server),
        name,
        invitation: args.invitation.or(before.invitation.clone()),
        ..before
    };
    write_private(&path, &toml::to_string(&config)?)?;
    print_line(&format!(
        "{} is written; start with: rookery-worker run",
        path.display()
    ))
}

fn choose_server(args: &SetupArgs, before: &ConfigFile, ask: Ask) -> anyhow::Result<Server> {
    if let Some(server) = &args.server {
        return Ok(server.clone());
    }
    let known = before.server.as_ref().map(ToString::to_string);
    let text = ask.for_text("The coordinator's address", known.as_deref())?;
    Ok(text
        .context("no coordinator is given: use --server https://…")?
        .parse()?)
}

/// Refuses a name that no coordinator takes.
fn check_name(name: &str) -> anyhow::Result<()> {
    let shown = printable(name, 2 * NAME_CHARS);
    anyhow::ensure!(
        is_user_name(name),
        "{shown:?} cannot be your name on the coordinator's pages: use 1 to {NAME_CHARS} of a-z, \
         A-Z, 0-9, _, - (--name NAME)"
    );
    Ok(())
}

/// What is said of an address at which the coordinator's runs cannot be had.
fn no_coordinator(server: &Server, error: &ApiError) -> String {
    match error.code() {
        Some(ProblemCode::NotFound | ProblemCode::MethodNotAllowed) => server.correction(),
        _ => format!("{server} does not answer as a coordinator"),
    }
}

/// Shows the coordinator's runs.
async fn check(server: &Server) -> anyhow::Result<()> {
    let client = Client::new(server.clone())?;
    let runs = client.runs().await.map_err(|error| {
        let what = no_coordinator(server, &error);
        anyhow::Error::from(error).context(what)
    })?;
    for run in runs {
        let description = match printable(&run.description, DESCRIPTION_CHARS) {
            text if text.is_empty() => "no description".to_owned(),
            text => text,
        };
        print_line(&format!(
            "run {}: {description}, {} games so far",
            run.name, run.games
        ))?;
    }
    Ok(())
}

/// Whether there is somebody to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Person,
    Never,
}

impl Ask {
    /// The answer to a question; what is known already if nothing is typed.
    fn for_text(self, question: &str, known: Option<&str>) -> anyhow::Result<Option<String>> {
        let known = known.map(str::to_owned);
        if self == Self::Never {
            return Ok(known);
        }
        let mut output = std::io::stdout().lock();
        match &known {
            Some(known) => write!(output, "{question} [{known}]: ")?,
            None => write!(output, "{question}: ")?,
        }
        output.flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        let typed = line.trim();
        Ok(if typed.is_empty() {
            known
        } else {
            Some(typed.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::Problem;

    use super::*;

    #[tokio::test]
    async fn a_name_that_no_coordinator_takes_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.toml");
        for name in ["bad name!", "", "an-uncommonly-long-name-of-a-person"] {
            let args = SetupArgs {
                server: Some("http://127.0.0.1:1".parse().unwrap()),
                name: Some(name.to_owned()),
                yes: true,
                ..SetupArgs::default()
            };
            let error = format!("{:#}", run(args, Some(&path)).await.unwrap_err());
            assert!(error.contains("--name NAME"), "{error}");
            assert!(!path.exists());
        }
        assert!(check_name("Ann_1-x").is_ok());
    }

    #[test]
    fn a_page_of_the_coordinator_is_corrected() {
        let server: Server = "https://chess.example.org/runs/main".parse().unwrap();
        let said = |error| no_coordinator(&server, &error);
        let missing = ApiError::Problem {
            problem: Box::new(Problem::new(ProblemCode::NotFound, "nothing here")),
            retry_after: None,
        };
        assert!(said(missing).contains("before the first path"));
        let away = said(ApiError::Unreachable("refused".into()));
        assert!(away.contains("does not answer as a coordinator"), "{away}");
    }
}
