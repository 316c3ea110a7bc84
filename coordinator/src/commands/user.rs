//! `user …`: users and their tokens.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rookery_common::protocol::people::{NewToken, Scope};
use rookery_common::protocol::trust::{TrustInfo, TrustLevel};
use rookery_common::text::{plural, quantity};
use serde::Serialize;

use super::{command_line, invite, refit, say, say_json, with_database};
use crate::api::people::{check_machine, check_name};
use crate::config::Settings;
use crate::db::{
    ChunkStatus, DELETED, ExclusionOrder, Exposure, SharedDatabase, Standing, TokenDraft,
    UserChange, UserDraft,
};
use crate::random;
use crate::tokens::Token;

/// Commands on users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// List all users with what they have contributed and whether they are blocked or in quarantine.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Create a user with a first token. The token is printed once and cannot be shown again.
    Create(CreateArgs),
    /// Give a user another token. It is printed once and cannot be shown again.
    AddToken(CreateArgs),
    /// List a user's tokens, without their texts.
    Tokens(NameArgs),
    /// Revoke a token by its number.
    Revoke {
        /// The token's number, as `user tokens` shows it.
        token: i64,
    },
    /// Revoke a token and print a new one of the same name and scopes in its place.
    Rotate {
        /// The user's name.
        name: String,
        /// The token's number, as `user tokens` shows it.
        token: i64,
    },
    /// Block a user: all requests with the user's tokens are refused.
    Block(NameArgs),
    /// End a user's block.
    Unblock(NameArgs),
    /// Give a user another name. Tokens stay valid.
    Rename {
        /// The user's name.
        name: String,
        /// The new name: 1 to 32 letters of one script, digits, `_` and `-`.
        new: String,
    },
    /// Delete a user. This cannot be undone: the tokens are revoked, and the names of user, tokens and
    /// workers are removed. The games stay, under a name made of the user's number.
    Delete {
        /// The user's name.
        name: String,
        /// Do it: it cannot be undone.
        #[arg(long)]
        yes: bool,
    },
    /// Make invitations, list them, revoke them.
    #[command(subcommand)]
    Invite(invite::InviteCommand),
    /// Hold all chunks of a user, present and future, out of training, matches and ratings.
    Quarantine(QuarantineArgs),
    /// End a user's quarantine: all held chunks count again.
    Clear(QuarantineArgs),
    /// Show a user's trust level, and the reasons.
    Trust {
        /// The user's name.
        name: String,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// `user create`, `user add-token`
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The user's name: 1 to 32 letters of one script, digits, `_` and `-`.
    pub name: String,
    /// What the token may do; may be given several times.
    #[arg(long = "scope", value_name = "SCOPE", default_value = "contribute")]
    pub scopes: Vec<Scope>,
    /// A name for the token, usually that of the machine on which it will be used.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub machine: String,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A user's name.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The user's name.
    pub name: String,
}

/// `user quarantine`, `user clear`
#[derive(Debug, Args)]
pub struct QuarantineArgs {
    /// The user's name.
    pub name: String,
    /// The reason, which the user sees.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

pub async fn run(settings: &Settings, command: UserCommand) -> anyhow::Result<()> {
    with_database(settings, async |db| match command {
        UserCommand::List { json } => list(db, json).await,
        UserCommand::Create(args) => create(db, &args).await,
        UserCommand::AddToken(args) => add_token(db, &args).await,
        UserCommand::Tokens(args) => tokens(db, &args.name).await,
        UserCommand::Revoke { token } => {
            db.revoke_token(token, command_line()).await?;
            say(&format!("Token {token} is revoked."))
        }
        UserCommand::Rotate { name, token } => rotate(db, &name, token).await,
        UserCommand::Invite(command) => invite::run(db, command).await,
        UserCommand::Block(args) => {
            db.change_user(
                &args.name,
                UserChange::standing(Standing::Blocked),
                command_line(),
            )
            .await?;
            say(&format!("User {} is blocked.", args.name))
        }
        UserCommand::Unblock(args) => {
            db.change_user(
                &args.name,
                UserChange::standing(Standing::Good),
                command_line(),
            )
            .await?;
            say(&format!("User {} is not blocked.", args.name))
        }
        UserCommand::Rename { name, new } => rename(db, &name, &new).await,
        UserCommand::Delete { name, yes } => delete(db, &name, yes).await,
        UserCommand::Quarantine(args) => hold(db, &args, ChunkStatus::Excluded).await,
        UserCommand::Clear(args) => hold(db, &args, ChunkStatus::Counted).await,
        UserCommand::Trust { name, json } => trust(db, &name, json).await,
    })
    .await
}

/// Carries the order out and fits the ratings that it touches again.
async fn hold(
    db: &SharedDatabase,
    args: &QuarantineArgs,
    state: ChunkStatus,
) -> anyhow::Result<()> {
    let name = &args.name;
    let order = ExclusionOrder {
        state,
        reason: args.reason.clone(),
    };
    let chance = random::seed()?;
    let Some(effects) = db.quarantine(name, order, chance, command_line()).await? else {
        return say(&format!(
            "User {name} is not in quarantine, and no chunk is held: there is nothing to clear."
        ));
    };
    for run in effects.stale {
        refit(db, &run).await?;
    }
    match state {
        ChunkStatus::Excluded => {
            say(&format!("User {name} is in quarantine."))?;
            say_exposures(&db.exposures(name).await?)
        }
        ChunkStatus::Counted => say(&format!("User {name} is cleared.")),
    }
}

/// Says which networks may have learnt from a contributor's games, and how to do without them.
fn say_exposures(exposures: &[Exposure]) -> anyhow::Result<()> {
    for exposure in exposures {
        let (run, since) = (&exposure.run, &exposure.since);
        let networks: Vec<String> = exposure.networks.iter().map(ToString::to_string).collect();
        let best = if exposure.best {
            ", best among them"
        } else {
            ""
        };
        say(&format!(
            "Run {run}: networks {} were submitted after the first of these games came ({since}), and may have \
             learnt from them{best}. `run roll-back {run} NUMBER` makes an earlier network best again; `run reject \
             {run} NUMBER` rejects a candidate.",
            networks.join(", ")
        ))?;
    }
    Ok(())
}

/// What `user trust --json` prints.
#[derive(Serialize)]
struct TrustReport {
    #[serde(flatten)]
    trust: TrustInfo,
    exposures: Vec<Exposure>,
}

async fn trust(db: &SharedDatabase, name: &str, json: bool) -> anyhow::Result<()> {
    let trust = db.trust(name).await?;
    let exposures = db.exposures(name).await?;
    if json {
        return say_json(&TrustReport { trust, exposures });
    }
    let info = trust;
    let level = match info.level {
        TrustLevel::Probation => "on probation",
        TrustLevel::Trusted => "trusted",
        TrustLevel::Quarantined => "in quarantine",
    };
    say(&format!(
        "{} is {level}: {} passed since the last failure, {} failed, {} open; {:.1} % of \
         the audits are full; chunks held: {}",
        info.name,
        quantity(info.audits_passed, "audit"),
        info.audits_failed,
        info.audits_open,
        info.audit_rate * 100.0,
        info.held_chunks
    ))?;
    if let Some(quarantine) = info.quarantine {
        say(&format!(
            "quarantined by {} on {}: {}",
            quarantine.by, quarantine.since, quarantine.reason
        ))?;
        say_exposures(&exposures)?;
    }
    Ok(())
}

async fn list(db: &SharedDatabase, json: bool) -> anyhow::Result<()> {
    let users = db.users().await?;
    if json {
        return say_json(&users);
    }
    for user in users {
        let mut states = Vec::new();
        if user.blocked {
            states.push("blocked");
        }
        if user.quarantined {
            states.push("in quarantine");
        }
        let state = states.join(", ");
        let seen = user.last_seen.as_ref();
        let seen = seen.map_or_else(|| "never seen".to_owned(), |at| format!("last seen {at}"));
        let line = format!(
            "{:32}  {:>9} {:5}  {:>11} {:9}  {:>6} {:6}  {:>3} {:6}  {seen}  {state}",
            user.name,
            user.games,
            plural(user.games, "game"),
            user.positions,
            plural(user.positions, "position"),
            user.audits,
            plural(user.audits, "audit"),
            user.tokens,
            plural(user.tokens, "token")
        );
        say(line.trim_end())?;
    }
    Ok(())
}

fn draft(args: &CreateArgs) -> anyhow::Result<(Token, TokenDraft)> {
    check_machine(&args.machine).map_err(anyhow::Error::msg)?;
    let token = Token::generate()?;
    let mut scopes: Vec<Scope> = Vec::new();
    for scope in args.scopes.iter().copied() {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let draft = TokenDraft {
        hash: token.hash(),
        scopes,
        machine: args.machine.clone(),
    };
    Ok((token, draft))
}

async fn create(db: &SharedDatabase, args: &CreateArgs) -> anyhow::Result<()> {
    let name = check_name(&args.name).map_err(anyhow::Error::msg)?;
    let (token, draft) = draft(args)?;
    let scopes = draft.scopes.clone();
    let user = UserDraft {
        name: name.clone(),
        token: draft,
        block: None,
    };
    let user = db.create_user(user, command_line()).await?;
    if args.json {
        let token = token.reveal().to_owned();
        return say_json(&NewToken {
            user,
            name,
            id: None,
            token,
            scopes,
        });
    }
    say(token.reveal())
}

async fn add_token(db: &SharedDatabase, args: &CreateArgs) -> anyhow::Result<()> {
    let (token, draft) = draft(args)?;
    let scopes = draft.scopes.clone();
    db.add_token(&args.name, draft, command_line()).await?;
    if args.json {
        #[derive(Serialize)]
        struct Added<'a> {
            name: &'a str,
            token: &'a str,
            scopes: &'a [Scope],
        }
        return say_json(&Added {
            name: &args.name,
            token: token.reveal(),
            scopes: &scopes,
        });
    }
    say(token.reveal())
}

async fn rename(db: &SharedDatabase, name: &str, new: &str) -> anyhow::Result<()> {
    let new = check_name(new).map_err(anyhow::Error::msg)?;
    db.change_user(name, UserChange::name(&new), command_line())
        .await?;
    say(&format!("User {name} is {new} now."))
}

async fn delete(db: &SharedDatabase, name: &str, yes: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        yes,
        "RK-0223: user {name} would be deleted, which cannot be undone; add --yes"
    );
    let user = db.delete_user(name, command_line()).await?;
    say(&format!(
        "The user is deleted; the games stand under {DELETED}{user}."
    ))
}

async fn rotate(db: &SharedDatabase, name: &str, old: i64) -> anyhow::Result<()> {
    let found = db
        .tokens(name)
        .await?
        .into_iter()
        .find(|token| token.id == old);
    let old = found.with_context(|| format!("user {name} has no token {old}"))?;
    let token = Token::generate()?;
    let draft = TokenDraft {
        hash: token.hash(),
        scopes: old.scopes,
        machine: old.machine,
    };
    db.rotate_token(old.id, draft, command_line()).await?;
    say(token.reveal())
}

async fn tokens(db: &SharedDatabase, user: &str) -> anyhow::Result<()> {
    for token in db.tokens(user).await? {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
        let state = match token.revoked_at {
            Some(at) => format!("revoked {at}"),
            None => "valid".to_owned(),
        };
        let machine = if token.machine.is_empty() {
            "-"
        } else {
            &token.machine
        };
        say(&format!(
            "{:>6}  {}  {machine}  created {}  {state}",
            token.id,
            scopes.join("+"),
            token.created_at
        ))?;
    }
    Ok(())
}
