//! `ledger …`: the ledger's sums against its facts, its copies, and what it gives to everyone.

mod copy;
mod export;
mod ratings;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use rookery_common::ids::RunName;
use serde::Serialize;

use super::{command_line, say, say_json, with_any_database, with_database};
use crate::config::Settings;
use crate::db::sql::shown;
use crate::db::{Checked, Moved, SharedDatabase};

/// Commands on the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Recompute every tally, counter, score, verdict and rating from games, chunks and audits, and compare. Says
    /// what could not be compared. Ends with an error if anything differs.
    Check {
        /// Check only this run.
        #[arg(long, value_name = "NAME")]
        run: Option<RunName>,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write a copy of an SQLite ledger to a new file, also while a coordinator serves it. (A
    /// ledger on PostgreSQL is backed up by pg_dump.)
    Backup {
        /// The new file.
        file: PathBuf,
    },
    /// Copy the whole ledger into another database, from SQLite to PostgreSQL or back, and check the copy's sums.
    /// A ledger from before 0.1.0 is brought over by it. No coordinator may serve either meanwhile. The copy is the
    /// same ledger, with the same store; its original is marked as moved and served no more.
    Copy(copy::CopyArgs),
    /// Take a ledger that was copied into another database back into service, without what came into the copy since.
    /// No coordinator may serve the copy any more. The operator log records it.
    Reopen,
    /// Write a run's chunks as a dataset for everyone: positions as Parquet, games as PGN, and a
    /// manifest with the licence. Held chunks and audits are left out.
    Export(export::ExportArgs),
}

#[derive(Serialize)]
struct Report {
    run: RunName,
    #[serde(flatten)]
    checked: Checked,
}

/// It is an error if something differs.
pub async fn run(settings: &Settings, command: LedgerCommand) -> anyhow::Result<()> {
    match command {
        LedgerCommand::Check { run, json } => {
            with_any_database(settings, async |db| check(db, run.as_ref(), json).await).await
        }
        LedgerCommand::Backup { file } => {
            with_any_database(settings, async |db| back_up(db, &file).await).await
        }
        LedgerCommand::Copy(args) => copy::run(settings, &args).await,
        LedgerCommand::Reopen => {
            with_any_database(settings, async |db| reopen(settings, db).await).await
        }
        LedgerCommand::Export(args) => {
            with_database(settings, async |db| export::run(settings, db, &args).await).await
        }
    }
}

async fn back_up(db: &SharedDatabase, file: &Path) -> anyhow::Result<()> {
    db.back_up(file).await?;
    say(&format!("The ledger was copied to {}.", file.display()))
}

async fn reopen(settings: &Settings, db: &SharedDatabase) -> anyhow::Result<()> {
    let here = shown(&settings.database);
    match db.reopen(command_line()).await? {
        Some(Moved { to, at }) => say(&format!(
            "The ledger at {here} can be served again, as it was when it was copied into {to} at {at}. Do not serve \
             the copy any more."
        )),
        None => say(&format!(
            "The ledger at {here} is not marked as moved; nothing was changed."
        )),
    }
}

async fn check(db: &SharedDatabase, only: Option<&RunName>, json: bool) -> anyhow::Result<()> {
    let reports = examine(db, only).await?;
    if json {
        say_json(&reports)?;
    } else {
        reports.iter().try_for_each(tell)?;
    }
    conclude(&reports)
}

/// Compares the sums of this run, or of all.
async fn examine(db: &SharedDatabase, only: Option<&RunName>) -> anyhow::Result<Vec<Report>> {
    let runs = match only {
        Some(run) => vec![run.clone()],
        None => db.runs().await?.into_iter().map(|run| run.name).collect(),
    };
    let mut reports = Vec::new();
    for run in runs {
        let mut checked = db.check(&run).await?;
        ratings::check(&db.rating_state(&run).await?, &mut checked)?;
        reports.push(Report { run, checked });
    }
    Ok(reports)
}

/// Fails if any sum is wrong.
fn conclude(reports: &[Report]) -> anyhow::Result<()> {
    let wrong: usize = reports
        .iter()
        .map(|report| report.checked.discrepancies.len())
        .sum();
    anyhow::ensure!(
        wrong == 0,
        "RK-0221: {wrong} sums of the ledger do not follow from its facts"
    );
    Ok(())
}

fn tell(report: &Report) -> anyhow::Result<()> {
    let Report { run, checked } = report;
    if checked.discrepancies.is_empty() {
        say(&format!("Run {run}: every sum follows from the facts."))?;
    }
    for found in &checked.discrepancies {
        say(&format!(
            "Run {run}: {}: the ledger says {}, the facts say {}",
            found.what, found.stored, found.recomputed
        ))?;
    }
    checked
        .not_compared
        .iter()
        .try_for_each(|what| say(&format!("Run {run}: not compared: {what}")))
}
