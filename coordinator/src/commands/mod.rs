//! The commands: each opens what it needs, does one thing and returns.

pub mod chunk;
pub mod invite;
pub mod ledger;
pub mod log;
pub mod openings;
pub mod puzzles;
pub mod run;
pub mod run_anchor;
pub mod run_key;
pub mod serve;
pub mod storage;
pub mod user;
pub mod worker;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::output::print_line as say;
use rookery_common::text::without_secrets;
use serde::Serialize;

use crate::blobs::{self, Downloads, SharedBlobs};
use crate::config::Settings;
use crate::db::Database;
use crate::db::sql::{Found, shown};
use crate::db::{Actor, DbError, SharedDatabase};
use crate::ratings;
use crate::storage_identity::StorageIdentityError;

/// The operator log names the command line for what it does.
fn command_line() -> Actor {
    Actor::new("command line", Timestamp::now())
}

/// How long a command waits for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens the ledger, makes it if there is none, and brings it to this build's schema; a database
/// server that does not answer yet is waited for as long as `patience` lasts.
async fn open_database_within(
    settings: &Settings,
    patience: Duration,
) -> anyhow::Result<SharedDatabase> {
    let db = Database::open(&settings.database, patience).await;
    Ok(Arc::new(db.with_context(|| not_opened(settings))?))
}

fn not_opened(settings: &Settings) -> String {
    format!("cannot open the ledger at {}", shown(&settings.database))
}

/// Opens the ledger for a command that may be the first of all.
async fn create_database(settings: &Settings) -> anyhow::Result<SharedDatabase> {
    open_database_within(settings, PATIENCE).await
}

/// Opens the ledger for a command that asks something of it.
async fn open_database(settings: &Settings) -> anyhow::Result<SharedDatabase> {
    find_ledger(settings).await?;
    create_database(settings).await
}

/// Opens the ledger for a command that asks something of it, and closes it.
async fn with_database<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&SharedDatabase) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_any_database(settings, async |db| {
        refuse_moved(db).await?;
        work(db).await
    })
    .await
}

/// The same for a command that is of use on a ledger which goes on elsewhere, too.
async fn with_any_database<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&SharedDatabase) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    closing(open_database(settings).await?, work).await
}

/// Refuses a ledger that was copied and goes on elsewhere: a change would be missing there, and an answer is out of date.
async fn refuse_moved(db: &Database) -> anyhow::Result<()> {
    match db.moved().await? {
        None => Ok(()),
        Some(moved) => Err(StorageIdentityError::Moved(moved).into()),
    }
}

/// Does something with a ledger, and closes it, also after an error.
async fn closing<T>(
    db: SharedDatabase,
    work: impl AsyncFnOnce(&SharedDatabase) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let done = work(&db).await;
    db.close().await;
    done
}

/// Makes sure that there is a ledger: in the wrong folder, a new one would have an answer, and a
/// false one. An older one is not changed by the way either: a coordinator of its own version could not serve it
/// any more.
async fn find_ledger(settings: &Settings) -> anyhow::Result<()> {
    let found = Database::find(&settings.database, PATIENCE).await;
    match found.with_context(|| not_opened(settings))? {
        Found::Ledger => Ok(()),
        Found::Nothing => anyhow::bail!(
            "RK-0202: there is no ledger at {}; give --data-dir or --database (`run create`, `migrate` and \
             `serve` make a new one)",
            shown(&settings.database)
        ),
        Found::Legacy => Err(DbError::Legacy).with_context(|| not_opened(settings)),
        Found::Older(steps) => anyhow::bail!(
            "RK-0204: the ledger at {} is of an older rookery-coordinator (its schema is {steps} behind this one's): back it \
             up with that version, then run this one's `migrate`; older ones cannot serve it any more after that",
            shown(&settings.database)
        ),
    }
}

/// Opens the store of networks and chunks for a command.
fn open_blobs(settings: &Settings) -> anyhow::Result<SharedBlobs> {
    open_blobs_for(settings, Downloads::default())
}

/// Opens the store of networks and chunks; clients get files as told.
fn open_blobs_for(settings: &Settings, downloads: Downloads) -> anyhow::Result<SharedBlobs> {
    blobs::open(&settings.storage, downloads).with_context(|| {
        format!(
            "RK-0220: cannot open the store {}",
            without_secrets(&settings.storage)
        )
    })
}

/// What to say before why the store is not used with the ledger.
fn not_used(settings: &Settings) -> String {
    format!(
        "the store {} is not used with the ledger at {}",
        without_secrets(&settings.storage),
        shown(&settings.database)
    )
}

/// Fits the ratings of a run again.
async fn refit(db: &SharedDatabase, run: &RunName) -> anyhow::Result<()> {
    let (number, basis) = db.begin_fit(run).await?;
    let ratings = ratings::fit(&basis)?.ratings();
    db.store_ratings(run, number, ratings, Timestamp::now())
        .await?;
    Ok(())
}

/// `migrate`
pub(crate) async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let db = create_database(settings).await?;
    db.close().await;
    say(&format!(
        "The ledger at {} has this version's schema.",
        shown(&settings.database)
    ))
}

/// A progress bar that shows itself on terminals only.
fn progress(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Writes a value as JSON to standard output.
fn say_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    say(&serde_json::to_string_pretty(value)?)
}
