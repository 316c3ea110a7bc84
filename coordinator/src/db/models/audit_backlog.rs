//! How many audits wait: so many of each contributor's chunks, however many it sends, and everybody
//! has a turn. Those that open gates wait for have places of their own, and no flood of others delays them.
//!
//! There may be very many of them. So they are looked through beside the writer, which only gives up those
//! that were found: uploads do not wait for it.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::audit::SampledGame;
use rookery_common::protocol::audits::AuditedRules;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::audits::{VOID_AFTER_MS, record_of};
use crate::db::models::conditions::{gate_audits, gates_first};
use crate::db::models::lease_work::{self, LeaseValues};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{hash, parse, seed, to_u32, unreadable};
use crate::db::sql::statement::{LISTED, Statement};
use crate::db::types::UnplannedAudit;

/// Sampled audits of one contributor that are open in a run at once. More would not be made in time
/// by anybody.
const OPEN: i64 = 200;
/// Audits of a run that are planned ahead: those that open gates wait for, and as many others.
const PLANNED: i64 = 256;
/// The same of one contributor: nobody's wait behind all of another's.
const PLANNED_OF_ONE: i64 = 16;
/// Audits that the writer gives up in one go: some milliseconds, then chunks have their turn.
pub(crate) const AT_ONCE: usize = 64;
/// Audits of one kind, or of one contributor, that are looked for at once.
const SURPLUS: i64 = 4096;

impl Ledger {
    /// Audits whose chunks are to be read next; those that are too old or too many are given up.
    pub async fn unplanned_audits(&self, now: Timestamp) -> Result<Vec<UnplannedAudit>> {
        let surplus = read!(self, "audit_backlog", |conn| surplus(conn, now))?;
        for part in surplus.chunks(AT_ONCE) {
            let part = part.to_vec();
            transact!(self, "audit_backlog", |conn| {
                let mut query = Statement::new(
                    "UPDATE audits SET state = 'void', plan = NULL
                         WHERE state = 'open' AND id IN (",
                );
                query.bind_all(&part)?.push(")");
                query.execute(conn).await
            })?;
        }
        read!(self, "audit_backlog", |conn| async {
            // Whoever audits may play in no other run than the audit's, and a paused one has no audits.
            let runs: Vec<i64> = sqlx::query_scalar("SELECT id FROM runs WHERE status = 'open'")
                .fetch_all(&mut *conn)
                .await?;
            let (mut audits, values) = (Vec::new(), LeaseValues::default());
            for run in runs {
                let rows = next_of(conn, run).await?;
                let mut games = games_of(conn, &rows).await?;
                for row in rows {
                    let games = games.remove(&row.chunk).unwrap_or_default();
                    audits.push(row.into_audit(conn, run, games, &values).await?);
                }
            }
            Ok(audits)
        })
    }
}

/// Open audits that are too old or too many. Of a paused run nobody is given any, so none gets old there. Where more
/// sampled ones of one contributor are open than can be it is those with the lowest sampling key: each has its chance by the
/// positions of its chunk, whenever it came. Those that open gates wait for are the last.
async fn surplus(conn: &mut AnyConnection, now: Timestamp) -> Result<Vec<i64>> {
    let mut surplus: Vec<i64> = sqlx::query_scalar(
        "SELECT id FROM audits WHERE state = 'open' AND opened_at < $1
           AND run_id IN (SELECT id FROM runs WHERE status = 'open') LIMIT $2",
    )
    .bind(now.as_millisecond() - VOID_AFTER_MS)
    .bind(SURPLUS)
    .fetch_all(&mut *conn)
    .await?;
    let crowds: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT user_id, run_id FROM audits WHERE state = 'open' AND cause = 'sampled'
         GROUP BY user_id, run_id HAVING count(*) > $1",
    )
    .bind(OPEN)
    .fetch_all(&mut *conn)
    .await?;
    for (user, run) in crowds {
        let lowest: Vec<i64> = sqlx::query_scalar(concat!(
            "SELECT a.id FROM audits a WHERE a.state = 'open' AND a.cause = 'sampled'
               AND a.user_id = $1 AND a.run_id = $2
             ORDER BY ",
            gates_first!("a", "$2"),
            ", a.sampling_key DESC, a.id LIMIT $3 OFFSET $4",
        ))
        .bind(user)
        .bind(run)
        .bind(SURPLUS)
        .bind(OPEN)
        .fetch_all(&mut *conn)
        .await?;
        surplus.extend(lowest);
    }
    Ok(surplus)
}

/// An audit that is to be planned, with its chunk and the work of its job.
#[derive(FromRow)]
struct Row {
    id: i64,
    chunk: i64,
    hash: Vec<u8>,
    job_id: Vec<u8>,
    seed: i64,
    work: String,
    is_sampled: i64,
    passed: i64,
    vouched: i64,
    failed: i64,
}

impl Row {
    async fn into_audit(
        self,
        conn: &mut AnyConnection,
        run: i64,
        games: Vec<SampledGame>,
        values: &LeaseValues,
    ) -> Result<UnplannedAudit> {
        let rules = lease_work::rules(conn, &self.work, values).await?;
        let rules = rules.ok_or_else(|| unreadable("audit", &"an audit of an audit"))?;
        // Which plies were drawn from the policy follows from the openings.
        let drawing = match &rules {
            AuditedRules::SelfPlay { params, .. } if params.opening_plies > 0 => {
                lease_work::work(conn, (run, seed(self.seed)), &self.work, values).await?
            }
            _ => None,
        };
        let record = record_of(self.passed, self.vouched, self.failed)?;
        Ok(UnplannedAudit {
            id: self.id,
            chunk: hash(&self.hash)?,
            rules,
            drawing,
            games,
            sampled_from: (self.is_sampled != 0).then_some(record),
        })
    }
}

/// Audits of a run without a plan that are, or are not, such that open gates wait for: everybody's first before anybody's
/// second.
macro_rules! unplanned {
    ($of_gates:literal) => {
        concat!(
            "SELECT a.id, a.chunk, c.hash, c.job_id, j.seed, j.work, a.is_sampled,
               COALESCE(t.passed, 0) AS passed, COALESCE(t.vouched, 0) AS vouched, COALESCE(t.failed, 0) AS failed
             FROM (
               SELECT id, chunk, user_id, CASE WHEN cause = 'sampled' THEN 1 ELSE 0 END AS is_sampled,
                 CASE WHEN plan IS NULL THEN 1 ELSE 0 END AS waits,
                 row_number() OVER (PARTITION BY user_id
                   ORDER BY CASE WHEN plan IS NULL THEN 1 ELSE 0 END, id) AS turn
               FROM audits WHERE run_id = $1 AND state = 'open' AND id ",
            $of_gates,
            " (",
            gate_audits!("$1"),
            ")) AS a
             JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
             LEFT JOIN track_records t ON t.user_id = a.user_id
             WHERE a.waits = 1 AND a.turn <= $2 ORDER BY a.turn, a.id LIMIT $3",
        )
    };
}

/// Those of a run: the audits that open gates wait for, then others.
async fn next_of(conn: &mut AnyConnection, run: i64) -> Result<Vec<Row>> {
    let (planned, of_gates): (i64, i64) = sqlx::query_as(concat!(
        "SELECT count(*), CAST(COALESCE(sum(CASE WHEN id IN (",
        gate_audits!("$1"),
        ") THEN 1 ELSE 0 END), 0) AS BIGINT)
         FROM audits WHERE run_id = $1 AND state = 'open' AND plan IS NOT NULL",
    ))
    .bind(run)
    .fetch_one(&mut *conn)
    .await?;
    let mut audits = Vec::new();
    for (unplanned, planned) in [
        (unplanned!("IN"), of_gates),
        (unplanned!("NOT IN"), planned - of_gates),
    ] {
        let room = PLANNED - planned;
        if room <= 0 {
            continue;
        }
        let rows: Vec<Row> = sqlx::query_as(unplanned)
            .bind(run)
            .bind(PLANNED_OF_ONE)
            .bind(room)
            .fetch_all(&mut *conn)
            .await?;
        audits.extend(rows);
    }
    Ok(audits)
}

/// The games of these audits' chunks: their indices in their job and their plies, by chunk.
async fn games_of(
    conn: &mut AnyConnection,
    audits: &[Row],
) -> Result<HashMap<i64, Vec<SampledGame>>> {
    let mut games = HashMap::<_, Vec<_>>::new();
    for part in audits.chunks(LISTED) {
        let jobs: Vec<Vec<u8>> = part.iter().map(|row| row.job_id.clone()).collect();
        let mut query = Statement::new(
            "SELECT chunk, game_index, plies, termination FROM games WHERE job_id IN (",
        );
        query.bind_all(&jobs)?.push(") ORDER BY game_index");
        let rows: Vec<(i64, i64, i64, String)> = query.fetch_all(&mut *conn).await?;
        // A job may have other chunks, too.
        for (chunk, index, plies, termination) in rows {
            let game = SampledGame {
                index: to_u32("game", index)?,
                plies: to_u32("plies", plies)?,
                termination: parse("termination", &termination)?,
            };
            games.entry(chunk).or_default().push(game);
        }
    }
    Ok(games)
}
