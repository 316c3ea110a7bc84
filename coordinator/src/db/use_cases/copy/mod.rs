//! A whole ledger into another database, of the same program or of the other one.
//!
//! ```text
//! source, held alone: one moment ──> rows in the order of their keys, a batch at a time ──> target, held alone:
//!                                           │ summed up                                     one transaction
//!                                           └─────── equal? <─────── read back, summed up ──────┘─> commit
//! source: marked as moved <───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Nobody else has either ledger open, nor can open it, until the copy is whole (`connect`), so nothing is written
//! that the copy would lack. Until the one commit the target stays as empty as it was, whatever
//! interrupts.

mod table;

use rookery_common::text::quantity;
use std::time::Duration;

use serde::Serialize;
use sqlx::{AnyConnection, Connection as _};

use crate::db::Moved;
use crate::db::error::{DbError, Result};
use crate::db::models::identity;
use crate::db::sql::connect::{self, Connector};
use crate::db::sql::dialect::{Dialect, FIRST_STEP};
use table::{Row, Sum, Table};

/// All tables of the schema, each after those that its rows refer to, but `moved`, which a copy does not inherit.
const TABLES: [&str; 35] = [
    "ledger_id",
    "users",
    "tokens",
    "operator_log",
    "invitations",
    "invitation_uses",
    "lease_values",
    "runs",
    "run_keys",
    "matches",
    "networks",
    "network_exports",
    "network_signatures",
    "jobs",
    "match_pairs",
    "chunks",
    "games",
    "credits",
    "credit_spans",
    "ratings",
    "puzzle_sets",
    "puzzles",
    "puzzle_scores",
    "metrics",
    "workers",
    "worker_blocks",
    "audits",
    "audit_parts",
    "audit_opinions",
    "track_records",
    "quarantines",
    "holds",
    "archives",
    "archived_chunks",
    "drift_findings",
];

/// The table of the ledger's identifier, which the schema fills: the copy has its original's.
const IDENTITY: &str = "ledger_id";

/// A ledger that nobody else has open, nor can open, as long as this lasts.
pub struct Alone {
    dialect: Dialect,
    connection: AnyConnection,
    schema: Schema,
}

/// The schema in which a ledger's rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// This build's.
    Today,
    /// That of the last builds before 0.1.0. It has the tables and columns of the first step of today's, so its copy
    /// takes the other steps with the rows in it, when it is opened.
    Legacy,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The table that is copied or compared.
    pub table: &'static str,
    /// Rows copied, and rows compared.
    pub done: u64,
    /// How many that will be in the end: every row twice.
    pub all: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub table: &'static str,
    pub rows: u64,
}

impl Alone {
    /// Opens the ledger at `url` for this process alone and brings it to this build's schema, but one from before
    /// 0.1.0, which stays as it is. One that is open elsewhere is waited for as long as `patience` lasts.
    /// It is an error if others have it open, it is not a ledger, was written by a newer build, or goes on in another
    /// database.
    pub async fn open(url: &str, patience: Duration) -> Result<Self> {
        let mut ledger = Self::connect(url, patience).await?;
        if ledger.is_legacy().await? {
            ledger.schema = Schema::Legacy;
            ledger.raw(ledger.dialect.begin_alone()).await?;
        } else {
            ledger.take_steps().await?;
        }
        match identity::moved(&mut ledger.connection).await? {
            None => Ok(ledger),
            Some(moved) => Err(DbError::Conflict(moved.to_string())),
        }
    }

    /// Opens the database at `url` for this process alone and makes an empty ledger in it, if it
    /// has none, for rows of this schema. An SQLite file is created if it is missing.
    /// It is an error if others have it open, it was written by a newer build, or is a ledger that holds something,
    /// which is left as it is.
    pub async fn open_empty(url: &str, patience: Duration, schema: Schema) -> Result<Self> {
        let mut ledger = Self::connect(url, patience).await?;
        ledger.schema = schema;
        ledger.refuse_rows().await?;
        ledger.take_steps().await?;
        Ok(ledger)
    }

    pub const fn schema(&self) -> Schema {
        self.schema
    }

    async fn connect(url: &str, patience: Duration) -> Result<Self> {
        let database = Connector::alone(url)?;
        let connected = database.connect_patiently(patience).await;
        Ok(Self {
            dialect: database.dialect,
            connection: connected.map_err(|error| database.explain(error))?,
            schema: Schema::Today,
        })
    }

    /// Whether the ledger is of a build before 0.1.0; it must be of one of the last.
    async fn is_legacy(&mut self) -> Result<bool> {
        let taken = connect::steps(self.dialect, &mut self.connection).await?;
        let taken = taken.unwrap_or_default();
        if !taken.iter().any(|step| *step < FIRST_STEP) {
            return Ok(false);
        }
        if self.dialect.legacy_steps().eq(taken) {
            return Ok(true);
        }
        let detail = "it is of an early build from before 0.1.0: bring it to the schema of the last of them by that \
                      build's `migrate`, then copy it";
        Err(DbError::Conflict(detail.to_owned()))
    }

    /// Brings the database to the schema of its rows and begins the transaction that reads or writes them.
    async fn take_steps(&mut self) -> Result<()> {
        let (steps, connection) = (self.dialect.schema(), &mut self.connection);
        match self.schema {
            Schema::Today => steps.run(connection).await?,
            Schema::Legacy => steps.run_to(FIRST_STEP, connection).await?,
        }
        self.raw(self.dialect.begin_alone()).await
    }

    async fn refuse_rows(&mut self) -> Result<()> {
        for name in table::names(&mut self.connection, self.dialect).await? {
            if name != IDENTITY && table::has_rows(&mut self.connection, name).await? {
                let detail = format!(
                    "it is a ledger that holds something already (its table {name} has rows), and \
                     is left as it is: give a database that is new, or empty"
                );
                return Err(DbError::Conflict(detail));
            }
        }
        Ok(())
    }

    async fn tables(&mut self) -> Result<Vec<Table>> {
        table::load_tables(&mut self.connection, self.dialect).await
    }

    async fn raw(&mut self, sql: &'static str) -> Result<()> {
        sqlx::raw_sql(sql).execute(&mut self.connection).await?;
        Ok(())
    }
}

/// Copies all that `source` holds into `target`, reads it back, compares it, and marks `source` as
/// moved; `watch` is told how far that has come.
/// It is an error if a database holds after the copying something else than what was read. After an error nothing was
/// copied, unless a commit failed.
pub async fn copy(
    mut source: Alone,
    mut target: Alone,
    moved: &Moved,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Copied>> {
    let copied = transfer(&mut source, &mut target, moved, watch).await;
    for ledger in [source, target] {
        // What was not committed is undone, and what was committed stays, however it is closed.
        let _ = ledger.connection.close().await;
    }
    copied
}

async fn transfer(
    source: &mut Alone,
    target: &mut Alone,
    moved: &Moved,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Copied>> {
    let tables = source.tables().await?;
    if target.tables().await? != tables {
        let detail = match source.schema {
            Schema::Today => {
                "the tables of the two ledgers differ, although both have this version's schema: \
                 one was changed by hand"
            }
            Schema::Legacy => {
                "a ledger from before 0.1.0 is copied into a new database, and this one has a later \
                 ledger, though an empty one"
            }
        };
        return Err(DbError::Conflict(detail.to_owned()));
    }
    let mut bar = Bar::new(watch);
    for table in &tables {
        bar.progress.all += 2 * table.count(&mut source.connection).await?;
    }
    // An empty ledger may have moved, too.
    target
        .raw("DELETE FROM ledger_id; DELETE FROM moved")
        .await?;
    let mut sums = Vec::with_capacity(tables.len());
    for table in &tables {
        sums.push(fill(table, source, target, &mut bar).await?);
    }
    for (table, sum) in tables.iter().zip(&sums) {
        compare(table, *sum, target, &mut bar).await?;
    }
    if target.dialect == Dialect::Postgres {
        for table in &tables {
            table.settle(&mut target.connection).await?;
        }
    }
    // What cannot be written there is found out before there is a copy.
    identity::mark_moved(&mut source.connection, moved).await?;
    target.raw("COMMIT").await?;
    source
        .raw("COMMIT")
        .await
        .map_err(|error| unmarked(&error))?;
    let counted = tables.iter().zip(sums);
    let copied = counted.map(|(table, sum)| Copied {
        table: table.name,
        rows: sum.rows,
    });
    Ok(copied.collect())
}

fn unmarked(error: &DbError) -> DbError {
    let detail = format!(
        "the copy is whole, but its original may not be marked as moved ({error}): serve the copy, and \
         the original no more"
    );
    DbError::Conflict(detail)
}

/// Who is told how far the copy has come.
struct Bar<'a> {
    progress: Progress,
    watch: &'a mut (dyn FnMut(Progress) + Send),
}

impl<'a> Bar<'a> {
    fn new(watch: &'a mut (dyn FnMut(Progress) + Send)) -> Self {
        let progress = Progress {
            table: IDENTITY,
            done: 0,
            all: 0,
        };
        Self { progress, watch }
    }

    fn advance(&mut self, table: &Table, rows: usize) {
        self.progress.table = table.name;
        self.progress.done += rows as u64;
        (self.watch)(self.progress);
    }
}

/// A table that is read from its first row to its last.
struct Reading<'a> {
    table: &'a Table,
    last: Option<Row>,
    sum: Sum,
}

impl<'a> Reading<'a> {
    fn of(table: &'a Table) -> Self {
        Self {
            table,
            last: None,
            sum: Sum::default(),
        }
    }

    /// The next rows; none after the last one.
    async fn next(&mut self, ledger: &mut Alone) -> Result<Vec<Row>> {
        let after = self.last.as_deref();
        let rows = self.table.fetch_page(&mut ledger.connection, after).await?;
        rows.iter().for_each(|row| self.sum.add(row));
        if let Some(last) = rows.last() {
            self.last = Some(last.clone());
        }
        Ok(rows)
    }
}

/// Copies a table's rows; what they sum up to.
async fn fill(
    table: &Table,
    source: &mut Alone,
    target: &mut Alone,
    bar: &mut Bar<'_>,
) -> Result<Sum> {
    let mut reading = Reading::of(table);
    loop {
        let rows = reading.next(source).await?;
        if rows.is_empty() {
            return Ok(reading.sum);
        }
        table.insert(&mut target.connection, &rows).await?;
        bar.advance(table, rows.len());
    }
}

/// Refuses a copy that is not what was read.
async fn compare(table: &Table, sum: Sum, target: &mut Alone, bar: &mut Bar<'_>) -> Result<()> {
    let mut reading = Reading::of(table);
    loop {
        let rows = reading.next(target).await?;
        if rows.is_empty() {
            break;
        }
        bar.advance(table, rows.len());
    }
    if reading.sum == sum {
        return Ok(());
    }
    let detail = format!(
        "the copy of table {} is not what was read: it has {} for {}, or other values in them",
        table.name,
        quantity(reading.sum.rows, "row"),
        sum.rows
    );
    Err(DbError::Conflict(detail))
}
