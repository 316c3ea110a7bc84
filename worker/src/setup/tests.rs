//! Conversations with somebody at a terminal, against a small coordinator.

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use rookery_client::testing::{Answer, Request, Server};
use rookery_common::ids::UserId;
use rookery_common::protocol::Problem;
use rookery_common::protocol::people::{NewToken, NewUser, Scope};

use super::dialog::Mode;
use super::*;
use crate::api::Token;
use crate::config::Tokens;

/// Who may register at the coordinator of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registration {
    Open,
    Invitation,
    Closed,
}

/// A coordinator at which `bob` is taken, the invitation is `ri_good` and the operator's token `rk_good`.
struct Coordinator {
    /// Host and port.
    address: String,
    /// The names that were registered.
    users: Arc<Mutex<Vec<String>>>,
}

impl Coordinator {
    async fn start(registration: Registration) -> Self {
        let users = Arc::new(Mutex::new(Vec::new()));
        let names = Arc::clone(&users);
        let server = Server::start(move |request| answer(request, registration, &names)).await;
        let address = server.url.strip_prefix("http://").unwrap().to_owned();
        Self { address, users }
    }
}

fn answer(request: &Request, registration: Registration, users: &Mutex<Vec<String>>) -> Answer {
    let token = request.header("authorization");
    match request.call().as_str() {
        "GET runs" => Answer::new(200, "[]"),
        "GET tokens" if token == Some("Bearer rk_good") => Answer::new(200, "[]"),
        "GET tokens" => Answer::problem(ProblemCode::Unauthorized),
        "POST users" => {
            let user: NewUser = serde_json::from_slice(&request.body).unwrap();
            let invited = user.invitation.as_deref() == Some("ri_good");
            match registration {
                Registration::Closed => Answer::problem(ProblemCode::RegistrationClosed),
                Registration::Invitation if !invited => {
                    Answer::problem(ProblemCode::InvitationNeeded)
                }
                _ if user.name == "bob" => Answer::problem(ProblemCode::NameTaken),
                _ => Answer {
                    status: 201,
                    ..Answer::json(&token_of(&user.name, users))
                },
            }
        }
        _ => Answer::problem(ProblemCode::NotFound),
    }
}

fn token_of(name: &str, users: &Mutex<Vec<String>>) -> NewToken {
    users.lock().unwrap().push(name.to_owned());
    NewToken {
        user: UserId(1),
        name: name.to_owned(),
        id: None,
        token: "rk_good".to_owned(),
        scopes: vec![Scope::Contribute],
    }
}

/// A folder for the configuration and the tokens, and the arguments that say so.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("worker.toml")
    }

    fn written(&self) -> ConfigFile {
        ConfigFile::load(Some(&self.config())).unwrap()
    }

    /// Sets up; gives what was said, and how it ended.
    async fn set_up(
        &self,
        mode: Mode,
        args: SetupArgs,
        typed: &str,
    ) -> (String, anyhow::Result<()>) {
        let mut said = Vec::new();
        let mut dialog = Dialog::new(mode, Cursor::new(typed.to_owned()), &mut said);
        let args = SetupArgs {
            dir: Some(self.0.path().join("data")),
            ..args
        };
        let ended = set_up(args, &self.config(), &mut dialog).await;
        (String::from_utf8(said).unwrap(), ended)
    }

    /// Somebody types these lines.
    async fn talk(&self, lines: &[&str]) -> String {
        let typed = lines.join("\n") + "\n";
        let (said, ended) = self.set_up(Mode::Asks, SetupArgs::default(), &typed).await;
        ended.unwrap_or_else(|error| panic!("{error:#}: {said}"));
        said
    }
}

#[tokio::test]
async fn every_wrong_answer_is_asked_for_again() {
    let coordinator = Coordinator::start(Registration::Open).await;
    let nobody = "127.0.0.1:1";
    let page = format!("{}/runs/main/join", coordinator.address);
    let home = Home::new();
    let said = home
        .talk(&["", "no address", nobody, &page, "bad name!", "bob", "ann"])
        .await;
    for part in [
        "An answer is needed",
        "\"no address\" is not a coordinator's address",
        "does not answer as a coordinator",
        "\"bad name!\" cannot be your name",
        "the name \"bob\" is taken",
        "Registered as ann.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let config = home.written();
    let address = format!("http://{}", coordinator.address);
    assert_eq!(config.server.as_ref().unwrap().to_string(), address);
    assert_eq!(config.name.as_deref(), Some("ann"));
    let tokens = Tokens::load(&home.0.path().join("data/tokens.toml")).unwrap();
    assert_eq!(tokens.of(&config.server.unwrap()).unwrap().name, "ann");
    assert_eq!(*coordinator.users.lock().unwrap(), ["ann"]);
}

#[tokio::test]
async fn a_second_setup_keeps_the_account() {
    let coordinator = Coordinator::start(Registration::Open).await;
    let home = Home::new();
    home.talk(&[&coordinator.address, "ann"]).await;
    let args = SetupArgs {
        name: Some("zoe".to_owned()),
        ..SetupArgs::default()
    };
    let (said, ended) = home.set_up(Mode::Asks, args, "\n").await;
    ended.unwrap();
    assert!(said.contains("is registered as ann"), "{said}");
    assert!(
        said.contains("--dir DIR") && !said.contains("remove"),
        "{said}"
    );
    assert_eq!(home.written().name.as_deref(), Some("ann"));
    assert_eq!(*coordinator.users.lock().unwrap(), ["ann"]);
}

#[tokio::test]
async fn an_invitation_is_asked_for_where_it_is_needed() {
    let coordinator = Coordinator::start(Registration::Invitation).await;
    let home = Home::new();
    let said = home
        .talk(&[&coordinator.address, "ann", "ri_bad", "ri_good"])
        .await;
    assert_eq!(said.matches("The invitation's code: ").count(), 2, "{said}");
    let config = home.written();
    assert_eq!(
        (config.name.as_deref(), config.invitation),
        (Some("ann"), None)
    );
}

#[tokio::test]
async fn where_registration_is_closed_a_token_is_asked_for_and_tried() {
    let coordinator = Coordinator::start(Registration::Closed).await;
    let home = Home::new();
    let said = home
        .talk(&[&coordinator.address, "ann", "rk_bad", "rk_good"])
        .await;
    assert_eq!(
        said.matches("A token from its operator: ").count(),
        2,
        "{said}"
    );
    assert_eq!(home.written().token, Some(Token::parse("rk_good").unwrap()));
}

#[tokio::test]
async fn without_anybody_to_ask_the_true_reason_is_an_error_and_nothing_is_written() {
    let coordinator = Coordinator::start(Registration::Invitation).await;
    let home = Home::new();
    let server = Some(coordinator.address.clone());
    let with = |server: &Option<String>, name: &str| SetupArgs {
        server: server.clone(),
        name: Some(name.to_owned()),
        ..SetupArgs::default()
    };
    for (mode, args, reason) in [
        (
            Mode::HasNoTerminal,
            SetupArgs::default(),
            "standard input is no terminal",
        ),
        (
            Mode::TakesDefaults,
            SetupArgs::default(),
            "--yes asks nothing: give --server",
        ),
        (
            Mode::HasNoTerminal,
            with(&server, "ann"),
            "--invitation CODE",
        ),
        (
            Mode::TakesDefaults,
            with(&server, "bad name!"),
            "--name NAME",
        ),
        (
            Mode::TakesDefaults,
            with(&Some("nowhere at all".to_owned()), "ann"),
            "coordinator's address",
        ),
    ] {
        let (_, ended) = home.set_up(mode, args, "").await;
        let error = format!("{:#}", ended.unwrap_err());
        assert!(error.contains(reason), "{reason}: {error}");
        assert!(!home.config().exists());
    }
    let (_, ended) = home.set_up(Mode::Asks, SetupArgs::default(), "").await;
    let error = format!("{:#}", ended.unwrap_err());
    assert!(error.contains("the input ended"), "{error}");
    let args = SetupArgs {
        invitation: Some("ri_good".to_owned()),
        ..with(&server, "ann")
    };
    home.set_up(Mode::TakesDefaults, args, "").await.1.unwrap();
    assert_eq!(home.written().name.as_deref(), Some("ann"));
}

#[test]
fn a_page_of_the_coordinator_is_corrected() {
    let server: crate::api::Server = "https://chess.example.org/main".parse().unwrap();
    let said = |error| no_coordinator(&server, &error);
    let missing = ApiError::Problem {
        problem: Box::new(Problem::new(ProblemCode::NotFound, "nothing here")),
        retry_after: None,
    };
    assert!(said(missing).contains("before the first path"));
    let away = said(ApiError::Unreachable("refused".into()));
    assert!(away.contains("does not answer as a coordinator"), "{away}");
}
