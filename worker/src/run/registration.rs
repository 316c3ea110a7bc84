//! Registering: a new name and token for a worker that has none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use rookery_common::ids::RunName;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{NAME_CHARS, NewToken, NewUser};
use rookery_common::text::printable;

use super::login::{Login, tokens_path};
use crate::api::{ApiError, Client, Server, Token};
use crate::config::{Settings, StoredToken, Tokens, write_private};
use crate::random;
use crate::retry::{CallError, Retry};
use crate::shutdown::Phase;

/// A name for somebody who gives none.
pub(crate) fn anonymous_name() -> String {
    format!("anonymous-{}", random::suffix())
}

/// Makes sure that there is a run of the wanted name, before anything is registered.
async fn check_run(settings: &Settings, client: &Client, retry: &Retry) -> Result<(), RunError> {
    let Some(wanted) = &settings.run else {
        return Ok(());
    };
    let what = cannot_register(client.server());
    let runs = match retry.until(Phase::Finishing, &what, || client.runs()).await {
        Ok(runs) => runs,
        Err(CallError::Interrupted) => return Err(RunError::Interrupted),
        // Registering tells what is wrong, and what to do.
        Err(CallError::Refused(_) | CallError::Fatal(_)) => return Ok(()),
    };
    if runs.iter().any(|run| run.name == *wanted) {
        return Ok(());
    }
    Err(RunError::Unknown {
        wanted: wanted.clone(),
        server: client.server().clone(),
        known: runs.into_iter().map(|run| run.name).collect(),
    })
}

/// Why a worker does not begin with its run.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("the program is ending")]
    Interrupted,
    #[error(
        "RK-0404: there is no run {wanted} at {server}: {} (--run)",
        runs_there(known)
    )]
    Unknown {
        wanted: RunName,
        server: Server,
        known: Vec<RunName>,
    },
}

/// A sentence that names these runs.
pub(super) fn runs_there(known: &[RunName]) -> String {
    let names: Vec<&str> = known.iter().map(RunName::as_str).collect();
    match names.as_slice() {
        [] => "it has none".to_owned(),
        [one] => format!("its only run is {one}"),
        many => format!("its runs are {}", many.join(", ")),
    }
}

/// Registers, so that being killed at any moment does no harm, nor does an answer that is lost: a
/// registration whose token did not reach the disk is noticed by the name's being taken, at the next
/// start or the next try, which takes another name.
pub(super) async fn register(
    settings: &Settings,
    client: Client,
    retry: &Retry,
    tokens: Tokens,
) -> anyhow::Result<Option<Login>> {
    match check_run(settings, &client, retry).await {
        Ok(()) => {}
        Err(RunError::Interrupted) => return Ok(None),
        Err(unknown @ RunError::Unknown { .. }) => return Err(unknown.into()),
    }
    let wanted = settings.name.clone().unwrap_or_else(anonymous_name);
    let (machine, invitation) = (settings.worker.clone(), settings.invitation.clone());
    let (folder, server) = (&settings.data_dir, client.server());
    let mut attempt = Attempt::begin(folder, server, wanted.clone(), machine, invitation)?;
    let answer = match attempt.call(&client, retry, &wanted).await {
        Err(CallError::Fatal(error)) if attempt.is_second(&error) => {
            let name = attempt.other_name();
            tracing::warn!(
                "RK-0413: the token of {wanted} was lost with an answer or an earlier start; registering as {name}"
            );
            attempt.call(&client, retry, &name).await
        }
        answer => answer,
    };
    let new = match answer {
        Ok(new) => new,
        Err(CallError::Interrupted) => {
            // Without an unclear try, the name is still free for others: the next start may not take it for its own.
            if attempt.before == Before::Nothing {
                attempt.end()?;
            }
            return Ok(None);
        }
        Err(CallError::Refused(error) | CallError::Fatal(error)) => {
            attempt.end()?;
            let elsewhere = tokens.address_of(&wanted);
            let advice = advice(error.code(), &wanted, client.server(), elsewhere);
            return Err(error).context(advice);
        }
    };
    let stored = keep(&new, client.server(), tokens, &settings.data_dir)?;
    tracing::info!("registered as {}", stored.name);
    attempt.end()?;
    let StoredToken { name, token } = stored;
    Ok(Some(Login::new(client, Some(&name), token)))
}

/// Keeps the token of a registration durably.
pub(crate) fn keep(
    new: &NewToken,
    server: &Server,
    mut tokens: Tokens,
    data_dir: &Path,
) -> anyhow::Result<StoredToken> {
    let stored = stored(new)?;
    tokens.add(server, stored.clone(), &tokens_path(data_dir))?;
    Ok(stored)
}

/// What is kept of a registration. The name is shown at every start, and may be anything.
fn stored(new: &NewToken) -> anyhow::Result<StoredToken> {
    Ok(StoredToken {
        name: printable(&new.name, NAME_CHARS),
        token: Token::parse(&new.token)?,
    })
}

/// What to do where a registration was refused; `elsewhere` is the address of a coordinator where the
/// name is this worker's.
pub(crate) fn advice(
    code: Option<ProblemCode>,
    name: &str,
    server: &Server,
    elsewhere: Option<&str>,
) -> String {
    match (code, elsewhere) {
        (Some(ProblemCode::InvitationNeeded), _) => {
            "RK-0401: this coordinator takes contributors by invitation: get a code from its operator and start \
             with --invitation CODE"
                .to_owned()
        }
        (Some(ProblemCode::RegistrationClosed), _) => {
            "RK-0402: this coordinator's registration is closed: get a token from its operator and start with \
             ROOKERY_TOKEN=TOKEN"
                .to_owned()
        }
        (Some(ProblemCode::NotFound | ProblemCode::MethodNotAllowed), _) => server.correction(),
        (Some(ProblemCode::NameTaken), Some(elsewhere)) => format!(
            "RK-0403: the name {name:?} is taken at {server}, and tokens.toml holds its token for {elsewhere}: if that is \
             the same coordinator, run with that --server or write {server} in its place in tokens.toml; \
             else choose with --name"
        ),
        (Some(ProblemCode::NameTaken), None) => format!(
            "RK-0403: the name {name:?} is taken at {server}: if it is yours, from another machine or another --dir, copy its \
             tokens.toml into this one's folder; else choose another with --name"
        ),
        _ => format!(
            "RK-0415: the name {name:?} could not be registered; choose another with --name"
        ),
    }
}

/// A registration under way, with a file that says so for as long as its end is not known.
pub(crate) struct Attempt {
    user: NewUser,
    marker: PathBuf,
    before: Before,
}

/// What is known of earlier tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// One may have registered this name: an earlier start, as the marker's file tells, or one that was
    /// not answered.
    SameName,
}

/// The log line while a coordinator does not answer a registration: the address may be wrong.
fn cannot_register(server: &Server) -> String {
    format!(
        "this worker could not be registered at {server} (if that is not the coordinator's address, \
         stop with Ctrl-C and give the right one with --server)"
    )
}

impl Attempt {
    pub(crate) fn begin(
        data_dir: &Path,
        server: &Server,
        name: String,
        machine: String,
        invitation: Option<String>,
    ) -> anyhow::Result<Self> {
        let marker = data_dir.join("registering");
        // A name that was asked for at another address says nothing about this coordinator.
        let wish = format!("{server} {name}");
        let earlier = std::fs::read_to_string(&marker).unwrap_or_default();
        let before = if earlier == wish {
            Before::SameName
        } else {
            Before::Nothing
        };
        write_private(&marker, &wish)?;
        let user = NewUser {
            name,
            machine,
            invitation,
        };
        Ok(Self {
            user,
            marker,
            before,
        })
    }

    /// Tries once. Where it is not known whether the coordinator did it, the next start takes the name for its own.
    pub(crate) async fn once(&self, client: &Client) -> anyhow::Result<Result<NewToken, ApiError>> {
        let answer = client.register(&self.user).await;
        if !answer.as_ref().is_err_and(ApiError::may_be_done) {
            self.end()?;
        }
        Ok(answer)
    }

    async fn call(
        &mut self,
        client: &Client,
        retry: &Retry,
        name: &str,
    ) -> Result<NewToken, CallError> {
        let user = NewUser {
            name: name.to_owned(),
            ..self.user.clone()
        };
        let what = cannot_register(client.server());
        let in_doubt = AtomicBool::new(false);
        let call = || async {
            // In doubt until it is answered: it may be interrupted before that.
            let earlier = in_doubt.swap(true, Ordering::Relaxed);
            let answer = client.register(&user).await;
            if !answer.as_ref().is_err_and(ApiError::may_be_done) {
                in_doubt.store(earlier, Ordering::Relaxed);
            }
            answer
        };
        let answer = retry.until(Phase::Finishing, &what, call).await;
        if in_doubt.into_inner() {
            self.before = Before::SameName;
        }
        answer
    }

    /// Whether the name is taken because an earlier try took it.
    fn is_second(&self, error: &ApiError) -> bool {
        self.before == Before::SameName && error.code() == Some(ProblemCode::NameTaken)
    }

    fn other_name(&self) -> String {
        let suffix = random::suffix();
        let room = NAME_CHARS - suffix.len() - 1;
        let start: String = self.user.name.chars().take(room).collect();
        format!("{start}-{suffix}")
    }

    /// The end is known.
    fn end(&self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.marker)
            .with_context(|| format!("cannot remove {}", self.marker.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rookery_client::RetryPolicy;
    use rookery_client::testing::Answer;
    use rookery_common::ids::UserId;
    use rookery_common::text::is_plain;

    use super::*;
    use crate::shutdown::Shutdown;

    /// What becomes of an attempt that is answered by these problems, one after the other, and
    /// whether it is a second one.
    async fn tried(problems: &[ProblemCode]) -> (CallError, bool) {
        let answers = problems.iter().map(|code| Answer::problem(*code));
        let server = rookery_client::testing::Server::answering(answers.collect()).await;
        let quick = Duration::from_millis(1);
        let policy = RetryPolicy {
            first: quick,
            longest: quick,
            longest_asked: quick,
        };
        let retry = Retry::new(policy, Shutdown::default());
        let mut attempt = Attempt {
            user: NewUser {
                name: "ann".to_owned(),
                machine: "m".to_owned(),
                invitation: None,
            },
            marker: PathBuf::new(),
            before: Before::Nothing,
        };
        let client = Client::new(server.url.parse().unwrap()).unwrap();
        let error = attempt.call(&client, &retry, "ann").await.unwrap_err();
        let second = match &error {
            CallError::Fatal(error) => attempt.is_second(error),
            other => panic!("{other}"),
        };
        (error, second)
    }

    /// A registration that was done, and whose answer said that it may not have been: the name is
    /// taken, by this worker itself.
    #[tokio::test]
    async fn a_name_that_an_unclear_try_may_have_taken_is_no_error_of_the_users() {
        use ProblemCode::{NameTaken, TooManyRequests, Unavailable};
        assert!(tried(&[Unavailable, NameTaken]).await.1);
        for problems in [&[NameTaken][..], &[TooManyRequests, NameTaken]] {
            let (error, second) = tried(problems).await;
            assert!(!second, "{problems:?}: {error}");
        }
    }

    #[test]
    fn a_name_that_was_asked_for_elsewhere_is_not_taken_for_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |server: &str| {
            let server: Server = server.parse().unwrap();
            let (name, machine) = ("ann".to_owned(), "m".to_owned());
            Attempt::begin(folder.path(), &server, name, machine, None).unwrap()
        };
        let (here, elsewhere) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        assert!(begin(elsewhere).before == Before::Nothing);
        assert!(begin(here).before == Before::Nothing);
        let again = begin(here);
        assert!(again.before == Before::SameName);
        again.end().unwrap();
        assert!(begin(here).before == Before::Nothing);
    }

    #[test]
    fn refused_registrations_say_what_to_do() {
        let server = "https://chess.example.org/main".parse().unwrap();
        for (code, says) in [
            (Some(ProblemCode::InvitationNeeded), "--invitation CODE"),
            (Some(ProblemCode::RegistrationClosed), "ROOKERY_TOKEN"),
            (Some(ProblemCode::NotFound), "--server"),
            (
                Some(ProblemCode::NameTaken),
                "from another machine or another --dir, copy its tokens.toml",
            ),
            (None, "--name"),
        ] {
            let advice = advice(code, "ann", &server, None);
            assert!(advice.contains(says), "{code:?}: {advice}");
        }
        let known = Some("https://chess.example.org");
        let advice = advice(Some(ProblemCode::NameTaken), "ann", &server, known);
        assert!(
            advice.contains("its token for https://chess.example.org"),
            "{advice}"
        );
    }

    #[test]
    fn no_coordinator_steers_the_terminal_by_a_name() {
        let new = NewToken {
            user: UserId(1),
            name: "\u{1b}[2Jann\nforged line".to_owned(),
            id: None,
            token: "rk_1".to_owned(),
            scopes: Vec::new(),
        };
        let name = stored(&new).unwrap().name;
        assert!(is_plain(&name, NAME_CHARS), "{name:?}");
        assert!(name.starts_with("[2Jann"), "{name:?}");
    }

    #[test]
    fn a_mistyped_address_is_named_with_what_to_do() {
        let server = "https://roookery.example.org".parse().unwrap();
        let text = cannot_register(&server);
        assert!(text.contains("https://roookery.example.org"), "{text}");
        assert!(text.contains("--server"), "{text}");
    }
}
