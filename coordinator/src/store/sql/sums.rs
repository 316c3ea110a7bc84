//! The sums that move with every chunk that is accepted: of jobs, runs, networks and contributors.

use std::collections::BTreeMap;

use rookery_common::protocol::jobs::WorkKind;
use sqlx::AnyConnection;

use super::accept::Entered;
use super::rows::{count, job_bytes};
use super::statement::{Statement, filled, parts};
use crate::store::error::Result;
use crate::store::trust::HoldState;

/// What chunks add to the sums of a run.
#[derive(Default)]
struct RunSums {
    chunks: i64,
    games: i64,
    positions: i64,
    training_positions: i64,
    bytes: i64,
}

/// Moves the sums of jobs, runs, networks and contributors.
pub(super) async fn add_up(conn: &mut AnyConnection, entered: &[&Entered<'_>]) -> Result<()> {
    let mut jobs: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut runs: BTreeMap<i64, RunSums> = BTreeMap::new();
    let mut networks: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let mut credits: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
    for Entered {
        job,
        chunk,
        state,
        kind,
        ..
    } in entered
    {
        let (all, positions) = (chunk.games.len() as i64, i64::from(chunk.positions()));
        // What an audit searches again is credited, but no games were played.
        let audit = *kind == WorkKind::Audit;
        let games = if audit { 0 } else { all };
        let credited = i64::from(*state == HoldState::Counted);
        let training = credited * i64::from(kind.is_training());
        *jobs
            .entry(job_bytes(chunk.job))
            .or_insert(job.games_counted) += all;
        let run = runs.entry(job.run_id).or_default();
        run.chunks += 1;
        run.games += games;
        run.positions += if audit { 0 } else { positions };
        run.training_positions += training * positions;
        run.bytes += count(chunk.bytes);
        *networks.entry((job.run_id, job.network)).or_default() += training * games;
        let credit = credits.entry((job.run_id, chunk.user.0)).or_default();
        credit.0 += credited * games;
        credit.1 += credited * positions;
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let jobs: Vec<_> = jobs.into_iter().collect();
    let mut sums = Statement::new(
        "UPDATE jobs SET games_counted = counted.column2, state = CASE
           WHEN counted.column2 >= games AND state = 'open' THEN 'done' ELSE state END
         FROM (VALUES ",
    );
    for (place, (job, counted)) in filled(&jobs).enumerate() {
        sums.push(if place == 0 { "(" } else { ", (" });
        sums.bind(job.clone())?.push(", ");
        sums.bind(*counted)?.push(")");
    }
    sums.push(") AS counted WHERE jobs.id = counted.column1");
    for (id, run) in runs {
        sums.next("UPDATE runs SET chunks = chunks + ");
        sums.bind(run.chunks)?.push(", games = games + ");
        sums.bind(run.games)?.push(", positions = positions + ");
        sums.bind(run.positions)?
            .push(", training_positions = training_positions + ");
        sums.bind(run.training_positions)?
            .push(", chunk_bytes = chunk_bytes + ");
        sums.bind(run.bytes)?.push(" WHERE id = ");
        sums.bind(id)?;
    }
    for ((run, network), games) in networks {
        sums.next("UPDATE networks SET training_games = training_games + ");
        sums.bind(games)?.push(" WHERE run_id = ");
        sums.bind(run)?.push(" AND number = ");
        sums.bind(network)?;
    }
    sums.execute(conn).await?;
    let credits: Vec<_> = credits.into_iter().collect();
    for part in parts(&credits) {
        credit(conn, part).await?;
    }
    Ok(())
}

/// Run and contributor, games and positions.
pub(super) type Credit = ((i64, i64), (i64, i64));

/// Gives contributors credit, or takes it from them. None may stand here twice.
pub(super) async fn credit(conn: &mut AnyConnection, credits: &[Credit]) -> Result<()> {
    let mut query =
        Statement::new("INSERT INTO credits (run_id, user_id, games, positions) VALUES ");
    for (place, ((run, user), (games, positions))) in credits.iter().enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.bind(*run)?.push(", ");
        query.bind(*user)?.push(", ");
        query.bind(*games)?.push(", ");
        query.bind(*positions)?.push(")");
    }
    query.push(
        " ON CONFLICT (run_id, user_id) DO UPDATE SET games = credits.games + excluded.games,
           positions = credits.positions + excluded.positions",
    );
    query.execute(conn).await
}
