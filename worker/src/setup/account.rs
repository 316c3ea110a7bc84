//! The account at the coordinator: the one that this machine has, or a new one.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{NAME_CHARS, is_user_name};
use rookery_common::protocol::user_name::RULE;
use rookery_common::text::printable;

use super::dialog::Dialog;
use crate::api::{Client, Token};
use crate::config::{StoredToken, Tokens};
use crate::run::login;
use crate::run::registration::{self, Attempt};

/// What is known of the account before anything is asked.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The name from flags, variables or the file.
    pub(super) name: Option<String>,
    /// The invitation from flags, variables or the file.
    pub(super) invitation: Option<String>,
    /// The operator's token in the file.
    pub(super) token: Option<Token>,
    /// This machine's name.
    pub(super) machine: String,
    /// Where the token is kept.
    pub(super) data_dir: PathBuf,
}

/// How the worker will log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    /// By the token kept in the worker's folder, under this name.
    Registered(String),
    /// By a token that the operator gave.
    Token(Token),
}

/// Refuses a name that no coordinator takes.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    let shown = printable(name, 2 * NAME_CHARS);
    anyhow::ensure!(
        is_user_name(name),
        "RK-0408: {shown:?} cannot be your name on the coordinator's pages: {RULE} (--name NAME)"
    );
    Ok(())
}

/// The account of this machine at the coordinator; registers one if there is none.
pub(super) async fn open(
    dialog: &mut Dialog<impl BufRead, impl Write>,
    client: &Client,
    wanted: &Wanted,
) -> anyhow::Result<Account> {
    let tokens = Tokens::load(&login::tokens_path(&wanted.data_dir))?;
    if let Some(StoredToken { name, token }) = tokens.of(client.server()) {
        check_token(client, token).await?;
        if wanted.name.as_ref().is_some_and(|other| other != name) {
            dialog.say(&login::other_name(name))?;
        }
        dialog.say(&format!("This machine is registered there as {name}."))?;
        return Ok(Account::Registered(name.clone()));
    }
    if let Some(token) = &wanted.token {
        check_token(client, token).await?;
        dialog.say("The token in the configuration file is valid there.")?;
        return Ok(Account::Token(token.clone()));
    }
    register(dialog, client, wanted, tokens).await
}

async fn check_token(client: &Client, token: &Token) -> anyhow::Result<()> {
    let client = client.clone().with_token(token.clone());
    let answer = client.check_token().await;
    answer.map_err(|error| login::fatal_error(error, "the token of this machine is not taken"))
}

/// Registers, and asks again for whatever the coordinator does not take.
async fn register(
    dialog: &mut Dialog<impl BufRead, impl Write>,
    client: &Client,
    wanted: &Wanted,
    tokens: Tokens,
) -> anyhow::Result<Account> {
    let mut name = None;
    let mut proposed = wanted.name.clone();
    let mut invitation = wanted.invitation.clone();
    loop {
        let chosen = match name.take() {
            Some(name) => name,
            None => choose_name(dialog, proposed.take().as_deref())?,
        };
        let (folder, machine) = (&wanted.data_dir, wanted.machine.clone());
        let server = client.server();
        let attempt = Attempt::begin(folder, server, chosen.clone(), machine, invitation.clone())?;
        let error = match attempt.once(client).await? {
            Ok(new) => {
                let stored = registration::keep(&new, client.server(), tokens, folder)?;
                dialog.say(&format!("Registered as {}.", stored.name))?;
                return Ok(Account::Registered(stored.name));
            }
            Err(error) => error,
        };
        let code = error.code();
        let elsewhere = tokens.address_of(&chosen);
        let advice = registration::advice(code, &chosen, client.server(), elsewhere);
        dialog.complain(anyhow::Error::from(error).context(advice))?;
        match code {
            Some(ProblemCode::InvitationNeeded) => {
                invitation =
                    Some(dialog.require("The invitation's code", None, "--invitation CODE")?);
                name = Some(chosen);
            }
            Some(ProblemCode::RegistrationClosed) => return ask_for_token(dialog, client).await,
            // These ask for another name.
            Some(ProblemCode::NameTaken | ProblemCode::BadRequest) => {}
            // Whatever it is may pass: the same again, once the user says so.
            _ => {
                dialog.ask("Enter tries again, Ctrl-C ends", None)?;
                name = Some(chosen);
            }
        }
    }
}

fn choose_name(
    dialog: &mut Dialog<impl BufRead, impl Write>,
    proposed: Option<&str>,
) -> anyhow::Result<String> {
    loop {
        let question = "Your name on its pages (nothing: an anonymous one)";
        let Some(name) = dialog.ask(question, proposed)? else {
            return Ok(registration::anonymous_name());
        };
        match check_name(&name) {
            Ok(()) => return Ok(name),
            Err(error) => dialog.complain(error)?,
        }
    }
}

/// Asks for a token until the coordinator takes one.
async fn ask_for_token(
    dialog: &mut Dialog<impl BufRead, impl Write>,
    client: &Client,
) -> anyhow::Result<Account> {
    loop {
        let text = dialog.require("A token from its operator", None, "ROOKERY_TOKEN to `run`")?;
        let checked = match Token::parse(&text) {
            Ok(token) => check_token(client, &token).await.map(|()| token),
            Err(error) => Err(error.into()),
        };
        match checked {
            Ok(token) => return Ok(Account::Token(token)),
            Err(error) => dialog.complain(error)?,
        }
    }
}
