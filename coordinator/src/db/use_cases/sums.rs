//! The sums that move with every chunk that is accepted: of jobs, runs, networks and contributors.

use std::collections::BTreeMap;

use rookery_common::protocol::jobs::WorkKind;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::accepted_chunk::AcceptedChunk;
use crate::db::models::credits::{Credits, credit};
use crate::db::models::spans;
use crate::db::sql::rows::{count, job_bytes};
use crate::db::sql::statement::{Statement, filled, parts};
use crate::db::types::ChunkStatus;

/// What chunks add to the sums of a run.
#[derive(Default)]
struct RunSums {
    chunks: i64,
    games: i64,
    positions: i64,
    training_positions: i64,
    bytes: i64,
}

/// What chunks add, together.
#[derive(Default)]
struct Sums {
    /// Games of each job.
    jobs: BTreeMap<Vec<u8>, i64>,
    runs: BTreeMap<i64, RunSums>,
    /// Training games by run and network.
    networks: BTreeMap<(i64, i64), i64>,
    /// By hour, run and contributor: at an hour's end, somebody's chunks may lie in two.
    credits: BTreeMap<i64, Credits>,
}

impl Sums {
    fn add(&mut self, entered: &AcceptedChunk<'_>) {
        let (job, chunk) = (entered.job, entered.chunk);
        let (all, positions) = (chunk.games.len() as i64, i64::from(chunk.positions()));
        // What an audit searches again is credited, but no games were played.
        let audit = entered.kind == WorkKind::Audit;
        let games = if audit { 0 } else { all };
        let credited = i64::from(entered.state == ChunkStatus::Counted);
        let training = credited * i64::from(entered.kind.is_training());
        *self.jobs.entry(job_bytes(chunk.job)).or_default() += all;
        let run = self.runs.entry(job.run_id).or_default();
        run.chunks += 1;
        run.games += games;
        run.positions += if audit { 0 } else { positions };
        run.training_positions += training * positions;
        run.bytes += count(chunk.bytes);
        *self.networks.entry((job.run_id, job.network)).or_default() += training * games;
        let hour = self.credits.entry(spans::hour_of(entered.now)).or_default();
        let given = hour.entry((job.run_id, chunk.user.0)).or_default();
        given.games += credited * games;
        given.positions += credited * positions;
        if audit {
            given.audits += credited * all;
            given.audit_positions += credited * positions;
        }
    }
}

/// Moves the sums of jobs, runs, networks and contributors.
pub(crate) async fn add_up(conn: &mut AnyConnection, entered: &[&AcceptedChunk<'_>]) -> Result<()> {
    let mut sums = Sums::default();
    for entered in entered {
        sums.add(entered);
    }
    if sums.jobs.is_empty() {
        return Ok(());
    }
    let jobs: Vec<_> = sums.jobs.into_iter().collect();
    let mut query = Statement::new(
        "UPDATE jobs SET games_counted = games_counted + counted.column2, state = CASE
           WHEN games_counted + counted.column2 >= games AND state = 'open' THEN 'done' ELSE state END
         FROM (",
    );
    query.rows(filled(&jobs), |row, (job, games)| {
        row.bind(job.clone())?.bind(*games)?;
        Ok(())
    })?;
    query.push(") AS counted WHERE jobs.id = counted.column1");
    for (id, run) in sums.runs {
        query.next("UPDATE runs SET chunks = chunks + ");
        query.bind(run.chunks)?.push(", games = games + ");
        query.bind(run.games)?.push(", positions = positions + ");
        query
            .bind(run.positions)?
            .push(", training_positions = training_positions + ");
        query
            .bind(run.training_positions)?
            .push(", chunk_bytes = chunk_bytes + ");
        query.bind(run.bytes)?.push(" WHERE id = ");
        query.bind(id)?;
    }
    for ((run, network), games) in sums.networks {
        query.next("UPDATE networks SET training_games = training_games + ");
        query.bind(games)?.push(" WHERE run_id = ");
        query.bind(run)?.push(" AND number = ");
        query.bind(network)?;
    }
    query.execute(conn).await?;
    for (hour, credits) in sums.credits {
        let credits: Vec<_> = credits.into_iter().collect();
        for part in parts(&credits) {
            let mut given = credit(part)?;
            spans::credit(&mut given, hour, part)?;
            given.execute(conn).await?;
        }
    }
    Ok(())
}
