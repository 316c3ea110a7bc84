//! Getting a token: the operator's, the one kept from an earlier start, or a new one by
//! [registering](super::registration).

use std::path::{Path, PathBuf};

use rookery_common::protocol::ProblemCode;

use super::registration::register;
use crate::api::{ApiError, Client, Token};
use crate::config::{Settings, StoredToken, Tokens};
use crate::retry::Retry;
use crate::spool::Owner;

/// Where the tokens are kept that came by registering.
pub(crate) fn tokens_path(data_dir: &Path) -> PathBuf {
    data_dir.join("tokens.toml")
}

/// A client with a token, and whose that is.
pub(super) struct Login {
    pub(super) client: Client,
    pub(super) owner: Owner,
}

impl Login {
    pub(super) fn new(client: Client, name: Option<&str>, token: Token) -> Self {
        let owner = Owner::new(client.server(), name, &token);
        let client = client.with_token(token);
        Self { client, owner }
    }
}

/// Gives the client a token; none if the program was stopped meanwhile.
pub(super) async fn log_in(
    settings: &Settings,
    client: Client,
    retry: &Retry,
) -> anyhow::Result<Option<Login>> {
    if let Some(token) = &settings.token {
        return Ok(Some(Login::new(client, None, token.clone())));
    }
    let tokens = Tokens::load(&tokens_path(&settings.data_dir))?;
    let Some(StoredToken { name, token }) = tokens.of(client.server()) else {
        return register(settings, client, retry, tokens).await;
    };
    if settings.name.as_ref().is_some_and(|wanted| wanted != name) {
        tracing::warn!("{}", other_name(name));
    }
    tracing::info!("playing as {name}");
    Ok(Some(Login::new(client, Some(name), token.clone())))
}

/// What is said to a user of this name's token who asks for another name.
pub(crate) fn other_name(name: &str) -> String {
    format!(
        "this machine is registered as {name} and goes on as {name}; to play under another name as well, give \
         that worker a folder of its own (--dir DIR)"
    )
}

/// The coordinator's refusal that ends the program, with what it was doing and what the volunteer can do about it.
pub(crate) fn fatal_error(error: ApiError, what: &str) -> anyhow::Error {
    let advice = match error.code() {
        Some(ProblemCode::Unauthorized) => {
            " (RK-0405: ask its operator for another token of your account and start with ROOKERY_TOKEN=TOKEN; finished \
             games are kept and uploaded then)"
        }
        _ => "",
    };
    anyhow::Error::from(error).context(format!("{what}{advice}"))
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::Problem;

    use super::*;

    #[test]
    fn a_token_that_is_not_valid_any_more_is_told_with_what_to_do() {
        let told = |code| {
            let problem = Box::new(Problem::new(code, "why"));
            let retry_after = None;
            let error = ApiError::Problem {
                problem,
                retry_after,
            };
            format!("{:#}", fatal_error(error, "no job could be fetched"))
        };
        let revoked = told(ProblemCode::Unauthorized);
        assert!(
            revoked.starts_with("no job could be fetched (RK-0405"),
            "{revoked}"
        );
        assert!(revoked.contains("ROOKERY_TOKEN"), "{revoked}");
        let blocked = told(ProblemCode::Blocked);
        assert!(
            blocked.starts_with("no job could be fetched: "),
            "{blocked}"
        );
    }
}
