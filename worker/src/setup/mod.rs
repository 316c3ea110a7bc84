//! The command `setup`: a few questions, each asked until its answer works, then a configuration file.
//!
//! [`dialog`] asks, [`account`] registers. Nothing is written to the configuration before the coordinator has
//! answered and taken the account.

mod account;
mod dialog;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_client::candidates;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::secret::read_secret;
use rookery_common::text::printable;

use self::account::{Account, Wanted, check_name};
use self::dialog::Dialog;
use crate::api::{ApiError, Client, Server, Token};
use crate::cli::SetupArgs;
use crate::config::{ConfigFile, default_path, resolve_data_dir, worker_name, write_private};

/// How much of a run's description is shown.
const DESCRIPTION_CHARS: usize = 400;
/// Most runs that are shown.
const RUNS: usize = 20;

/// Asks for what was not given, tries it, and writes the file.
///
/// # Errors
///
/// If there is no terminal and something is missing or refused, or a file cannot be written.
pub async fn run(args: SetupArgs, named: Option<&Path>) -> anyhow::Result<()> {
    let path = named.map(PathBuf::from).or_else(default_path);
    let path = path
        .context("RK-0010: there is no home folder; name the configuration file with --config")?;
    let mut dialog = Dialog::with_user(args.yes);
    set_up(args, &path, &mut dialog).await?;
    let config = match named {
        Some(_) => format!(" --config {}", path.display()),
        None => String::new(),
    };
    dialog.say(&format!(
        "{} is written; start with: rookery-worker{config} run",
        path.display()
    ))
}

async fn set_up(
    args: SetupArgs,
    path: &Path,
    dialog: &mut Dialog<impl BufRead, impl Write>,
) -> anyhow::Result<()> {
    let before = if path.is_file() {
        ConfigFile::load(Some(path))?
    } else {
        ConfigFile::default()
    };
    let mut wanted = Wanted {
        name: args.name.or(before.name.clone()),
        invitation: args.invitation.or(before.invitation.clone()),
        token: None,
        machine: worker_name(before.worker.clone())?,
        data_dir: resolve_data_dir(args.dir.clone(), &before)?,
    };
    if let Some(Err(error)) = wanted.name.as_deref().map(check_name) {
        dialog.complain(error)?;
        wanted.name = None;
    }
    let client = find_coordinator(dialog, args.server, before.server.as_ref()).await?;
    // A token is sent to its own coordinator only.
    let is_known = before.server.as_ref() == Some(client.server());
    let token_file = before.token_file.clone().filter(|_| is_known);
    wanted.token = match &token_file {
        Some(path) => Some(Token::parse(&read_secret(path)?)?),
        None => before.token.clone().filter(|_| is_known),
    };
    let account = account::open(dialog, &client, &wanted).await?;
    let (name, token) = match account {
        Account::Registered(name) => (Some(name), None),
        Account::Token(token) => (wanted.name, Some(token)),
    };
    let config = ConfigFile {
        server: Some(client.server().clone()),
        name,
        token: token.filter(|_| token_file.is_none()),
        token_file,
        // It has done its work.
        invitation: None,
        dir: args.dir.or(before.dir.clone()),
        ..before
    };
    write_private(path, &toml::to_string(&config)?)
}

/// The coordinator that was given, or that the user names, once one answers.
async fn find_coordinator(
    dialog: &mut Dialog<impl BufRead, impl Write>,
    mut given: Option<String>,
    known: Option<&Server>,
) -> anyhow::Result<Client> {
    let known = known.map(ToString::to_string);
    loop {
        let text = match given.take() {
            Some(text) => text,
            None => {
                let question = "The coordinator's address";
                dialog.require(question, known.as_deref(), "--server https://HOST")?
            }
        };
        match try_address(&text).await {
            Ok((client, runs)) => {
                for line in describe(&runs) {
                    dialog.say(&line)?;
                }
                return Ok(client);
            }
            Err(error) => dialog.complain(error)?,
        }
    }
}

/// The coordinator that may be meant by this text, and its runs.
async fn try_address(text: &str) -> anyhow::Result<(Client, Vec<RunInfo>)> {
    let mut failed: Option<anyhow::Error> = None;
    for server in candidates(text)? {
        let client = Client::new(server.clone())?;
        match client.runs().await {
            Ok(runs) => return Ok((client, runs)),
            Err(error) => {
                let what = no_coordinator(&server, &error);
                let error = anyhow::Error::from(error).context(what);
                failed = Some(match failed {
                    Some(first) => anyhow::anyhow!("{first:#}; {error:#}"),
                    None => error,
                });
            }
        }
    }
    Err(failed.unwrap_or_else(|| anyhow::anyhow!("there is no address to try")))
}

/// What is said of an address at which the coordinator's runs cannot be had.
fn no_coordinator(server: &Server, error: &ApiError) -> String {
    match error.code() {
        Some(ProblemCode::NotFound | ProblemCode::MethodNotAllowed) => server.correction(),
        _ => format!("{server} does not answer as a coordinator"),
    }
}

/// A line for each run.
fn describe(runs: &[RunInfo]) -> Vec<String> {
    if runs.is_empty() {
        return vec!["It has no run yet.".to_owned()];
    }
    let line = |run: &RunInfo| {
        let games = match run.games {
            1 => "1 game".to_owned(),
            many => format!("{many} games"),
        };
        match printable(&run.description, DESCRIPTION_CHARS) {
            text if text.is_empty() => format!("Run {}: {games} so far.", run.name),
            text => format!("Run {} ({text}): {games} so far.", run.name),
        }
    };
    runs.iter().take(RUNS).map(line).collect()
}

#[cfg(test)]
mod tests;
