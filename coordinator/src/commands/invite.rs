//! `user invite …`: invitations, with which people register where registration is not open.

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{command_line, say, say_json};
use crate::db::{InvitationDraft, InvitationInfo, SharedDatabase};
use crate::tokens::InvitationCode;

/// Commands on invitations.
#[derive(Debug, Subcommand)]
pub enum InviteCommand {
    /// Make an invitation. Its code is printed once and cannot be shown again.
    Create(CreateArgs),
    /// List invitations with what is left of them.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Revoke an invitation by its number. Accounts that registered with it stay.
    Revoke {
        /// The invitation's number, as `user invite list` shows it.
        invitation: i64,
    },
}

/// `user invite create`
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// How many people may register with it.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub uses: u32,
    /// For how many days it is valid. [default: for ever]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub days: Option<u32>,
    /// A note for your own list, for example a name.
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub note: String,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
}

pub async fn run(db: &SharedDatabase, command: InviteCommand) -> anyhow::Result<()> {
    match command {
        InviteCommand::Create(args) => create(db, args).await,
        InviteCommand::List { json } => list(db, json).await,
        InviteCommand::Revoke { invitation } => {
            db.revoke_invitation(invitation, command_line()).await?;
            say(&format!("Invitation {invitation} is revoked."))
        }
    }
}

async fn create(db: &SharedDatabase, args: CreateArgs) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Created<'a> {
        id: i64,
        code: &'a str,
    }
    let code = InvitationCode::generate()?;
    let now = Timestamp::now();
    let life = |days: u32| SignedDuration::from_hours(24 * i64::from(days));
    let draft = InvitationDraft {
        hash: code.hash(),
        note: args.note,
        uses: args.uses,
        expires_at: args.days.map(|days| now + life(days)),
    };
    let id = db.create_invitation(draft, command_line()).await?;
    let code = code.reveal();
    if args.json {
        return say_json(&Created { id, code });
    }
    say(code)
}

async fn list(db: &SharedDatabase, json: bool) -> anyhow::Result<()> {
    let invitations = db.invitations().await?;
    if json {
        return say_json(&invitations);
    }
    invitations.iter().try_for_each(|one| say(&line(one)))
}

fn line(one: &InvitationInfo) -> String {
    let until = match (&one.revoked_at, &one.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) => format!("valid until {at}"),
        (None, None) => "valid".to_owned(),
    };
    let note = if one.note.is_empty() { "-" } else { &one.note };
    format!(
        "{:>6}  used {} of {}  {until}  {note}",
        one.id, one.used, one.uses
    )
}
