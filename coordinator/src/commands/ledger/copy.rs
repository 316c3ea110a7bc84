//! `ledger copy`: the whole ledger into another database.

use rookery_common::text::{plural, quantity};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use indicatif::HumanCount;
use jiff::Timestamp;
use serde::Serialize;

use super::super::{PATIENCE, closing, find_ledger, not_opened, progress, say, say_json};
use super::{Report, conclude, examine, tell};
use crate::config::Settings;
use crate::db::copy::{self, Alone, Copied, Progress};
use crate::db::sql::{Found, shown};
use crate::db::{Database, Moved};

/// `ledger copy`
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// Copy into this database: sqlite:PATH for a file, or postgres://USER@HOST/DATABASE. It must be new, or
    /// hold an empty ledger.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub to: String,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What was copied, and what the check of the copy says.
#[derive(Serialize)]
struct Outcome {
    from: String,
    to: String,
    rows: u64,
    tables: Vec<Copied>,
    runs: Vec<Report>,
}

/// Copies the ledger and checks the copy, which has this version's schema; the ledger may be from before 0.1.0.
/// It is an error if either ledger is in use, this one was copied before, the other one holds something, or the sums
/// do not follow from the facts.
pub(super) async fn run(settings: &Settings, args: &CopyArgs) -> anyhow::Result<()> {
    let (from, to) = (shown(&settings.database), shown(&args.to));
    anyhow::ensure!(
        settings.database != args.to,
        "{to} is the ledger itself: --to takes another database"
    );
    let found = Database::find(&settings.database, PATIENCE).await;
    if !matches!(found, Ok(Found::Legacy)) {
        find_ledger(settings).await?;
    }
    let source = Alone::open(&settings.database, PATIENCE).await;
    let source = source.with_context(|| not_opened(settings))?;
    let target = Alone::open_empty(&args.to, PATIENCE, source.schema()).await;
    let target = target.with_context(|| format!("cannot copy the ledger into {to}"))?;
    let moved = Moved {
        to: to.clone(),
        at: Timestamp::now(),
    };
    let tables = transfer(source, target, &moved).await;
    let tables = tables.with_context(|| format!("cannot copy the ledger into {to}"))?;
    let runs = check(&args.to).await;
    let runs = runs.with_context(|| {
        format!("the ledger was copied into {to}, but its sums could not be checked there")
    })?;
    let rows = tables.iter().map(|table| table.rows).sum();
    let outcome = Outcome {
        from,
        to,
        rows,
        tables,
        runs,
    };
    if args.json {
        say_json(&outcome)?;
    } else {
        outcome.runs.iter().try_for_each(tell)?;
        say(&outcome.told())?;
    }
    conclude(&outcome.runs).context("the copy is equal to its original, whose sums are wrong too")
}

/// Copies with a progress bar.
async fn transfer(source: Alone, target: Alone, moved: &Moved) -> anyhow::Result<Vec<Copied>> {
    let bar = progress(0, "{wide_bar} {percent} % ({msg}), {eta} left");
    let mut watch = |progress: Progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
        bar.set_message(progress.table);
    };
    let copied = copy::copy(source, target, moved, &mut watch).await;
    bar.finish_and_clear();
    Ok(copied?)
}

/// What `ledger check` finds in the copy.
async fn check(database: &str) -> anyhow::Result<Vec<Report>> {
    let db = Arc::new(Database::open(database, PATIENCE).await?);
    closing(db, async |db| examine(db, None).await).await
}

impl Outcome {
    fn told(&self) -> String {
        format!(
            "The ledger at {} was copied into {}: {} {} of {}. Serve it there from now on, with the store \
             and the keys that it has. Where it was, it is marked as moved and served no more (`ledger reopen` takes \
             the mark away): both are the same ledger.",
            self.from,
            self.to,
            HumanCount(self.rows),
            plural(self.rows, "row"),
            quantity(self.tables.len(), "table")
        )
    }
}
