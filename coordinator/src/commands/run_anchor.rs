//! `run anchor`: the Elo of a network that others are compared with.

use clap::Args;
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::events::Event;

use super::{command_line, refit, say};
use crate::db::SharedDatabase;

/// `run anchor`
#[derive(Debug, Args)]
pub struct AnchorArgs {
    /// The run's name.
    pub name: RunName,
    /// The anchor's number.
    pub number: u32,
    /// The Elo that it has on a scale that others know, -10000 to 10000: once it has played, the
    /// run's ratings are counted from it. With `none` it is rated as any other network.
    #[arg(long, value_name = "ELO", allow_negative_numbers = true)]
    pub elo: String,
}

/// Gives an anchor an Elo, or takes it away, and fits the ratings again.
pub(super) async fn run(db: &SharedDatabase, args: &AnchorArgs) -> anyhow::Result<()> {
    let elo = match args.elo.as_str() {
        "none" => None,
        text => Some(text.parse()?),
    };
    db.set_anchor_elo(&args.name, NetworkNumber(args.number), elo, command_line())
        .await?;
    refit(db, &args.name).await?;
    let run = args.name.clone();
    db.announce(&[Event::Ratings { run }]).await?;
    let number = args.number;
    match elo {
        Some(elo) => say(&format!("Anchor {number} has {elo} Elo.")),
        None => say(&format!("Anchor {number} is rated as any other network.")),
    }
}
