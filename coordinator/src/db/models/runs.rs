//! Runs.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rookery_common::ids::{ContentHash, NetworkNumber, RunName};
use rookery_common::params::RunParams;
use rookery_common::protocol::runs::{LastReport, RunInfo, RunPatch, RunStatus};
use serde_json::{Value, json};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::audits;
use crate::db::models::operator_log::{self, Action};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{
    from_json, hash, network, parse, time_text, time_text_opt, to_count, to_json, to_u32,
};
use crate::db::types::{Actor, DELETED, Intake, RunDraft};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, title, description, contact, links, status, params, best, created_at, signing_key, versions,
               networks, games, positions, training_positions, chunks, chunk_bytes, reported_step,
               reported_at, archived_at, book
             FROM runs ",
            $rest
        )
    };
}

impl Ledger {
    pub async fn create_run(&self, draft: RunDraft, by: Actor) -> Result<()> {
        transact!(self, "runs", |conn| {
            if draft.name.as_str().starts_with(DELETED) {
                let detail = format!(
                    "a run's name cannot begin with {DELETED}, as those of deleted runs do"
                );
                return Err(DbError::Conflict(detail));
            }
            let created = sqlx::query(
                "INSERT INTO runs (name, description, status, params, created_at, title, contact, links)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING",
            )
            .bind(draft.name.as_str())
            .bind(&draft.description)
            .bind(RunStatus::Open.name())
            .bind(to_json(&draft.params)?)
            .bind(by.at.as_millisecond())
            .bind(&draft.presentation.title)
            .bind(&draft.presentation.contact)
            .bind(to_json(&draft.presentation.links)?)
            .execute(&mut *conn)
            .await?;
            if created.rows_affected() == 0 {
                return Err(DbError::NameTaken(draft.name.to_string()));
            }
            by.note(
                conn,
                Action::CreateRun,
                draft.name.as_str(),
                &to_json(&draft.params)?,
            )
            .await
        })
    }

    /// All runs, oldest first.
    pub async fn runs(&self) -> Result<Vec<RunInfo>> {
        read!(self, "runs", |conn| async {
            let rows: Vec<RunRow> = sqlx::query_as(select!("WHERE deleted_at IS NULL ORDER BY id"))
                .fetch_all(conn)
                .await?;
            rows.into_iter().map(RunRow::into_info).collect()
        })
    }

    pub async fn run(&self, run: &RunName) -> Result<RunInfo> {
        read!(self, "runs", |conn| info(conn, run))
    }

    pub async fn patch_run(&self, run: &RunName, patch: RunPatch, by: Actor) -> Result<RunInfo> {
        let run = run.clone();
        transact!(self, "runs", |conn| self::patch(conn, run, patch, &by)
            .await)
    }

    /// What was acknowledged in a run since `since`.
    pub async fn intake(&self, run: &RunName, since: Timestamp) -> Result<Intake> {
        read!(self, "runs", |conn| async {
            let (chunks, games, positions): (i64, i64, i64) = sqlx::query_as(
                "SELECT count(*), CAST(coalesce(sum(games), 0) AS BIGINT),
                   CAST(coalesce(sum(positions), 0) AS BIGINT)
                 FROM chunks WHERE run_id = $1 AND accepted_at >= $2",
            )
            .bind(id_of(conn, run).await?)
            .bind(since.as_millisecond())
            .fetch_one(conn)
            .await?;
            Ok(Intake {
                chunks: to_count(chunks),
                games: to_count(games),
                positions: to_count(positions),
            })
        })
    }
}

pub(crate) struct Run {
    pub(crate) id: i64,
    pub(crate) name: RunName,
    pub(crate) status: RunStatus,
    pub(crate) params: Arc<RunParams>,
    pub(crate) best: Option<NetworkNumber>,
    /// Its own opening book, among the values of leases.
    pub(crate) book: Option<ContentHash>,
}

#[derive(FromRow)]
pub(crate) struct RunRow {
    id: i64,
    name: String,
    title: Option<String>,
    description: String,
    contact: Option<String>,
    links: String, // JSON
    status: String,
    params: String,
    best: Option<i64>,
    created_at: i64,
    signing_key: Option<String>,
    versions: String, // JSON
    networks: i64,
    games: i64,
    positions: i64,
    training_positions: i64,
    chunks: i64,
    chunk_bytes: i64,
    reported_step: Option<i64>,
    reported_at: Option<i64>,
    archived_at: Option<i64>,
    book: Option<Vec<u8>>,
}

/// Parameters that were read before, with their text: jobs are handed out far more often than a run
/// changes.
static READ: Mutex<Vec<(String, Arc<RunParams>)>> = Mutex::new(Vec::new());
/// How many are kept.
const KEPT: usize = 16;

fn parsed(text: &str) -> Result<Arc<RunParams>> {
    let read = || READ.lock();
    let known = read()
        .iter()
        .find(|(known, _)| known == text)
        .map(|(_, params)| params.clone());
    if let Some(params) = known {
        return Ok(params);
    }
    let params: Arc<RunParams> = Arc::new(from_json("parameters", text)?);
    let mut read = read();
    if read.len() == KEPT {
        read.remove(0);
    }
    read.push((text.to_owned(), params.clone()));
    Ok(params)
}

impl RunRow {
    fn name(&self) -> Result<RunName> {
        parse("run", &self.name)
    }

    fn status(&self) -> Result<RunStatus> {
        parse("status", &self.status)
    }

    fn best(&self) -> Result<Option<NetworkNumber>> {
        self.best.map(network).transpose()
    }

    pub(crate) fn into_run(self) -> Result<Run> {
        Ok(Run {
            id: self.id,
            name: self.name()?,
            status: self.status()?,
            params: parsed(&self.params)?,
            best: self.best()?,
            book: self.book.as_deref().map(hash).transpose()?,
        })
    }

    fn last_report(&self) -> Result<Option<LastReport>> {
        let Some((step, at)) = self.reported_step.zip(self.reported_at) else {
            return Ok(None);
        };
        let (step, at) = (to_count(step), time_text(at)?);
        Ok(Some(LastReport { step, at }))
    }

    fn into_info(self) -> Result<RunInfo> {
        Ok(RunInfo {
            name: self.name()?,
            status: self.status()?,
            params: from_json("parameters", &self.params)?,
            best: self.best()?,
            key: self
                .signing_key
                .as_deref()
                .map(|key| parse("key", key))
                .transpose()?,
            versions: from_json("versions", &self.versions)?,
            last_report: self.last_report()?,
            title: self.title,
            description: self.description,
            contact: self.contact,
            links: from_json("links", &self.links)?,
            networks: to_u32("networks", self.networks)?,
            games: to_count(self.games),
            training_positions: to_count(self.training_positions),
            positions: to_count(self.positions),
            chunks: to_count(self.chunks),
            chunk_bytes: to_count(self.chunk_bytes),
            created_at: time_text(self.created_at)?,
            archived_at: time_text_opt(self.archived_at)?,
        })
    }
}

pub(crate) fn unknown(run: &RunName) -> DbError {
    DbError::NotFound(format!("run {run}"))
}

pub(crate) async fn id_of(conn: &mut AnyConnection, run: &RunName) -> Result<i64> {
    sqlx::query_scalar("SELECT id FROM runs WHERE name = $1 AND deleted_at IS NULL")
        .bind(run.as_str())
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| unknown(run))
}

/// The name of a run, unless it is deleted.
pub(crate) async fn name_of(conn: &mut AnyConnection, id: i64) -> Result<Option<RunName>> {
    let name: Option<String> =
        sqlx::query_scalar("SELECT name FROM runs WHERE id = $1 AND deleted_at IS NULL")
            .bind(id)
            .fetch_optional(conn)
            .await?;
    name.map(|name| parse("run", &name)).transpose()
}

async fn find_row(conn: &mut AnyConnection, run: &RunName) -> Result<Option<RunRow>> {
    let row = sqlx::query_as(select!("WHERE name = $1 AND deleted_at IS NULL"))
        .bind(run.as_str())
        .fetch_optional(conn)
        .await?;
    Ok(row)
}

pub(crate) async fn find(conn: &mut AnyConnection, run: &RunName) -> Result<Option<Run>> {
    find_row(conn, run).await?.map(RunRow::into_run).transpose()
}

async fn row(conn: &mut AnyConnection, run: &RunName) -> Result<RunRow> {
    find_row(conn, run).await?.ok_or_else(|| unknown(run))
}

pub(crate) async fn load(conn: &mut AnyConnection, run: &RunName) -> Result<Run> {
    row(conn, run).await?.into_run()
}

pub(crate) async fn load_by_id(conn: &mut AnyConnection, id: i64) -> Result<Run> {
    let row: RunRow = sqlx::query_as(select!("WHERE id = $1"))
        .bind(id)
        .fetch_one(conn)
        .await?;
    row.into_run()
}

/// Runs that hand out jobs, the newest first.
pub(crate) async fn open(conn: &mut AnyConnection) -> Result<Vec<Run>> {
    let rows: Vec<RunRow> = sqlx::query_as(select!("WHERE status = 'open' ORDER BY id DESC"))
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(RunRow::into_run).collect()
}

pub(crate) async fn info(conn: &mut AnyConnection, run: &RunName) -> Result<RunInfo> {
    row(conn, run).await?.into_info()
}

async fn patch(
    conn: &mut AnyConnection,
    run: RunName,
    patch: RunPatch,
    by: &Actor,
) -> Result<RunInfo> {
    let id = id_of(conn, &run).await?;
    let before = info(conn, &run).await?;
    let archived_at = archived_at(conn, &before, &patch, by.at).await?;
    let status = match archived_at {
        Some(_) => Some(RunStatus::Paused),
        None => patch.status,
    };
    if before.status == RunStatus::Paused && status == Some(RunStatus::Open) {
        audits::resume(conn, id, by.at).await?;
    }
    let params = patch.params.as_ref().map(to_json).transpose()?;
    let versions = patch.versions.as_ref().map(to_json).transpose()?;
    let links = patch.links.as_ref().map(to_json).transpose()?;
    sqlx::query(
        "UPDATE runs SET description = coalesce($2, description), status = coalesce($3, status),
           params = coalesce($4, params), versions = coalesce($5, versions),
           title = nullif(coalesce($6, title), ''), contact = nullif(coalesce($7, contact), ''),
           links = coalesce($8, links), archived_at = $9
         WHERE id = $1",
    )
    .bind(id)
    .bind(&patch.description)
    .bind(status.map(RunStatus::name))
    .bind(params)
    .bind(versions)
    .bind(&patch.title)
    .bind(&patch.contact)
    .bind(links)
    .bind(archived_at)
    .execute(&mut *conn)
    .await?;
    let after = info(conn, &run).await?;
    let action = match patch.archived {
        Some(true) => Action::ArchiveRun,
        Some(false) => Action::RestoreRun,
        None => Action::ChangeRun,
    };
    let detail = operator_log::changes(&ordered(&before)?, &ordered(&after)?)?;
    by.note(conn, action, run.as_str(), &detail).await?;
    Ok(after)
}

/// What operators order of a run.
fn ordered(run: &RunInfo) -> Result<Value> {
    Ok(json!({
        "title": run.title,
        "description": run.description,
        "contact": run.contact,
        "links": run.links,
        "status": run.status,
        "params": operator_log::as_value(&run.params)?,
        "versions": run.versions,
    }))
}

/// Since when a run is archived once a change is made. One that is archived does not open.
async fn archived_at(
    conn: &mut AnyConnection,
    before: &RunInfo,
    patch: &RunPatch,
    now: Timestamp,
) -> Result<Option<i64>> {
    let since: Option<i64> = sqlx::query_scalar("SELECT archived_at FROM runs WHERE name = $1")
        .bind(before.name.as_str())
        .fetch_one(conn)
        .await?;
    let archived_at = match patch.archived {
        Some(true) => Some(since.unwrap_or_else(|| now.as_millisecond())),
        Some(false) => None,
        None => since,
    };
    if archived_at.is_some() && patch.status == Some(RunStatus::Open) {
        return Err(DbError::Conflict(format!(
            "run {0} is archived; take it back first (`run restore {0}`)",
            before.name
        )));
    }
    Ok(archived_at)
}

/// Match games that make ratings stale at once.
pub(crate) const STALE: i64 = 1 << 20;

/// Lets ratings be fitted after the next game at the latest.
pub(crate) async fn make_stale(conn: &mut AnyConnection, run: i64) -> Result<()> {
    sqlx::query("UPDATE runs SET unrated_games = unrated_games + $2 WHERE id = $1")
        .bind(run)
        .bind(STALE)
        .execute(conn)
        .await?;
    Ok(())
}

/// Match games after which ratings are fitted again even if no match was decided.
pub(crate) const UNRATED_GAMES: i64 = 200;
