//! Leases after they were handed out: looked up, given back, made longer by an outage. Heartbeats
//! extend them in `heartbeats`.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::ids::{JobId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::jobs::WorkKind;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::audits;
use crate::db::models::conditions::quarantined;
use crate::db::models::lease_work::{self, LeaseValues};
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::rows::{job_bytes, network, parse, seed, to_u32, unreadable};
use crate::db::sql::statement::Statement;
use crate::db::types::LeasedJob;
use crate::trust::rate::TrackRecord;

impl Ledger {
    /// Takes a job back; its unfinished work may go to others at once.
    pub async fn give_back(&self, user: UserId, job: JobId, now: Timestamp) -> Result<()> {
        transact!(self, "leases", |conn| {
            // One of which nothing was played keeps its time: until then it counts as held by the contributor
            // (`quotas`), so that nobody takes and gives back without end.
            find_own(conn, job, user).await?;
            sqlx::query(
                "UPDATE jobs SET state = 'returned', expires_at = CASE
                       WHEN games_counted = 0 OR expires_at < $2 THEN expires_at ELSE $2 END
                     WHERE id = $1 AND state = 'open'",
            )
            .bind(job_bytes(job))
            .bind(now.as_millisecond())
            .execute(conn)
            .await?;
            Ok(())
        })
    }

    /// Leaves the time since any worker was last heard out of the leases that were not over (`is_over!`) then, and answers
    /// how many those are: workers that could not reach a coordinator play on, and find their pairs as they left them. No
    /// lease gets longer than it was. Audits wait longer by the same time.
    ///
    /// Where other coordinators were there meanwhile, a worker was heard a moment ago, and that moment
    /// is all that a lease gains. So it is where one coordinator starts again and again: pairs that
    /// nobody plays come back for all that, a little later.
    pub async fn outlast_outage(&self, now: Timestamp) -> Result<u64> {
        transact!(self, "leases", |conn| {
            let now = now.as_millisecond();
            let heard: Option<i64> = sqlx::query_scalar("SELECT max(last_seen) FROM workers")
                .fetch_one(&mut *conn)
                .await?;
            let Some(heard) = heard.filter(|heard| *heard < now) else {
                return Ok(0);
            };
            audits::extend_waits(conn, heard, now).await?;
            let done = sqlx::query(
                "UPDATE jobs SET expires_at = CASE WHEN expires_at + $2 < $1 + lease_ms
                   THEN expires_at + $2 ELSE $1 + lease_ms END
                 WHERE state = 'open' AND expires_at < $1 + lease_ms AND expires_at + lease_ms >= $3",
            )
            .bind(now)
            .bind(now - heard)
            .bind(heard)
            .execute(conn)
            .await?;
            Ok(done.rows_affected())
        })
    }
}

#[derive(FromRow)]
pub(crate) struct JobRow {
    id: Vec<u8>,
    pub(crate) run_id: i64,
    run: String,
    pub(crate) user_id: i64,
    pub(crate) contributor: String,
    pub(crate) kind: String,
    pub(crate) network: i64,
    pub(crate) match_id: Option<i64>,
    pub(crate) seed: i64,
    pub(crate) work: String,
    pub(crate) games: i64,
    pub(crate) games_counted: i64,
    /// Whether the last order on the contributor was a quarantine: 1 if so.
    pub(crate) quarantined: i64,
    /// Whether the run is archived, or deleted: 1 if so.
    run_is_over: i64,
    passed: i64,
    vouched: i64,
    failed: i64,
}

impl JobRow {
    pub(crate) fn kind(&self) -> Result<WorkKind> {
        parse("kind of job", &self.kind)
    }

    pub(crate) fn run(&self) -> Result<RunName> {
        parse("run", &self.run)
    }

    pub(crate) fn network(&self) -> Result<NetworkNumber> {
        network(self.network)
    }

    /// Refuses games of a run that is over: nobody would audit them, and of a deleted one nothing tells which were
    /// counted before.
    pub(crate) fn check_run(&self, job: JobId) -> Result<()> {
        if self.run_is_over == 0 {
            return Ok(());
        }
        let detail = format!("the run of job {job} was archived: its games are not taken any more");
        Err(DbError::LeaseEnded(detail))
    }

    /// The contributor's.
    pub(crate) fn track_record(&self) -> Result<TrackRecord> {
        audits::record_of(self.passed, self.vouched, self.failed)
    }
}

pub(crate) fn unknown(job: JobId) -> DbError {
    DbError::NotFound(format!("job {job}"))
}

/// These jobs, as far as they exist.
pub(crate) async fn find_all(
    conn: &mut AnyConnection,
    jobs: &[JobId],
) -> Result<HashMap<JobId, JobRow>> {
    let mut query = Statement::new(concat!(
        "SELECT j.id, j.run_id, r.name AS run, j.user_id, u.name AS contributor, j.kind, j.network,
           j.match_id, j.seed, j.work, j.games, j.games_counted,
           ",
        quarantined!("j.user_id"),
        " AS quarantined,
           CAST(CASE WHEN r.archived_at IS NULL AND r.deleted_at IS NULL THEN 0 ELSE 1 END AS BIGINT)
             AS run_is_over,
           COALESCE(t.passed, 0) AS passed, COALESCE(t.vouched, 0) AS vouched,
           COALESCE(t.failed, 0) AS failed
         FROM jobs j JOIN runs r ON r.id = j.run_id JOIN users u ON u.id = j.user_id
           LEFT JOIN track_records t ON t.user_id = j.user_id
         WHERE j.id IN (",
    ));
    let wanted: Vec<Vec<u8>> = jobs.iter().copied().map(job_bytes).collect();
    query.bind_all(&wanted)?.push(")");
    let rows: Vec<JobRow> = query.fetch_all(conn).await?;
    let mut rows: HashMap<Vec<u8>, JobRow> =
        rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let found = |job: &JobId| Some((*job, rows.remove(&job_bytes(*job))?));
    Ok(jobs.iter().filter_map(found).collect())
}

async fn find(conn: &mut AnyConnection, job: JobId) -> Result<JobRow> {
    let mut found = find_all(conn, &[job]).await?;
    found.remove(&job).ok_or_else(|| unknown(job))
}

/// A job of this user; another's is as good as none.
pub(crate) async fn find_own(conn: &mut AnyConnection, job: JobId, user: UserId) -> Result<JobRow> {
    let row = find(conn, job).await?;
    if row.user_id == user.0 {
        Ok(row)
    } else {
        Err(unknown(job))
    }
}

/// Jobs as their chunks are compared with them, or why there is none, in the order in which they are named.
pub(crate) async fn leased(
    conn: &mut AnyConnection,
    jobs: &[JobId],
    values: &LeaseValues,
) -> Result<Vec<Result<LeasedJob>>> {
    let rows = find_all(conn, jobs).await?;
    let mut leased = Vec::with_capacity(jobs.len());
    for job in jobs {
        let found = match rows.get(job) {
            Some(row) => of_row(conn, *job, row, values).await,
            None => Err(unknown(*job)),
        };
        match found {
            Err(error) if error.is_temporary() => return Err(error),
            found => leased.push(found),
        }
    }
    Ok(leased)
}

async fn of_row(
    conn: &mut AnyConnection,
    job: JobId,
    row: &JobRow,
    values: &LeaseValues,
) -> Result<LeasedJob> {
    row.check_run(job)?;
    let seed = seed(row.seed);
    let (work, audited) = match row.kind()? {
        WorkKind::Audit => {
            let (work, audited) = audits::audited(conn, job).await?;
            (work, Some(audited))
        }
        WorkKind::SelfPlay | WorkKind::Puzzles | WorkKind::Match => {
            let work = lease_work::work(conn, (row.run_id, seed), &row.work, values).await?;
            let work = work.ok_or_else(|| unreadable("job", &"games without their work"))?;
            (work, None)
        }
    };
    Ok(LeasedJob {
        audited,
        games_counted: to_u32("job", row.games_counted)?,
        user: UserId(row.user_id),
        run: row.run()?,
        work,
        seed,
    })
}
