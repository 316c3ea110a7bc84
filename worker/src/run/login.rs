//! Getting a token: the operator's, the one kept from an earlier start, or a new one by
//! registering.

use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::protocol::people::NewUser;

use crate::api::Client;
use crate::config::{Settings, StoredToken, Token, Tokens};
use crate::random;
use crate::retry::{CallError, Retry};
use crate::shutdown::Phase;

fn tokens_path(settings: &Settings) -> PathBuf {
    settings.data_dir.join("tokens.toml")
}

/// Gives the client a token; none if the program was stopped meanwhile.
pub(super) async fn log_in(
    settings: &Settings,
    client: Client,
    retry: &Retry,
) -> anyhow::Result<Option<Client>> {
    if let Some(token) = &settings.token {
        return Ok(Some(client.with_token(token.clone())));
    }
    let path = tokens_path(settings);
    let tokens = Tokens::load(&path)?;
    let Some(StoredToken { name, token }) = tokens.of(client.server()) else {
        return register(settings, client, retry, tokens).await;
    };
    if settings.name.as_ref().is_some_and(|wanted| wanted != name) {
        let path = path.display();
        tracing::warn!("this worker is registered as {name}; remove {path} to register anew");
    }
    tracing::info!("playing as {name}");
    Ok(Some(client.with_token(token.clone())))
}

async fn register(
    settings: &Settings,
    client: Client,
    retry: &Retry,
    mut tokens: Tokens,
) -> anyhow::Result<Option<Client>> {
    let name = settings
        .name
        .clone()
        .unwrap_or_else(|| format!("anonymous-{}", random::suffix()));
    let user = NewUser {
        name,
        machine: settings.worker.clone(),
    };
    let call = || client.register(&user);
    let answer = retry
        .until(
            Phase::Finishing,
            "this worker could not be registered",
            call,
        )
        .await;
    let new = match answer {
        Ok(new) => new,
        Err(CallError::Interrupted) => return Ok(None),
        Err(CallError::Refused(error) | CallError::Fatal(error)) => {
            return Err(error).with_context(|| {
                format!(
                    "the name {:?} could not be registered; choose with --name",
                    user.name
                )
            });
        }
    };
    let stored = StoredToken {
        name: new.name,
        token: Token::parse(&new.token)?,
    };
    let token = stored.token.clone();
    tracing::info!("registered as {}", stored.name);
    tokens.add(client.server(), stored, &tokens_path(settings))?;
    Ok(Some(client.with_token(token)))
}
