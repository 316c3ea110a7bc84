//! Heartbeats, many at a time.
//!
//! ```text
//! heartbeat ─┐
//! heartbeat ─┼─> queue ─> task: one operation of the writer for all of them ─> an answer for each
//! heartbeat ─┘
//! ```
//!
//! Those that come while a batch is being written make the next one. A batch costs three
//! statements, however many there are in it.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::ids::{JobId, MatchId, UserId};
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Instruction, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::runs::RunStatus;
use sqlx::{AnyConnection, FromRow};
use tokio::sync::{mpsc, oneshot};

use super::jobs::finite;
use super::leases::unknown;
use super::rows::{job_bytes, named, to_u32, unreadable};
use super::statement::Statement;
use super::writer::Writer;
use super::{audits, matches, pairs};
use crate::store::decide;
use crate::store::error::{Result, StoreError};

/// Sizes of batches in the database's eyes: a batch is filled up to the next one with its last
/// heartbeat, so that there are few statements to prepare.
const SIZES: [usize; 4] = [1, 8, 64, 256];
/// Heartbeats of a batch at most.
const MOST: usize = SIZES[SIZES.len() - 1];
/// Heartbeats that may wait; further callers wait for room.
const QUEUE: usize = 4096;

/// A heartbeat.
#[derive(Debug, Clone)]
pub(super) struct Beat {
    pub(super) user: UserId,
    pub(super) job: JobId,
    pub(super) heartbeat: Heartbeat,
    pub(super) now: Timestamp,
}

type Waiting = (Beat, oneshot::Sender<Result<HeartbeatReply>>);

/// The stub of the task that collects heartbeats.
#[derive(Clone)]
pub(super) struct Beats(mpsc::Sender<Waiting>);

impl Beats {
    /// Starts the task. It ends when the last stub is gone.
    pub(super) fn start(writer: Writer) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(collect(writer, receiver));
        Self(sender)
    }

    /// Extends a lease, and waits until that is durable.
    pub(super) async fn beat(&self, beat: Beat) -> Result<HeartbeatReply> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.send((beat, reply)).await;
        sent.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

async fn collect(writer: Writer, mut queue: mpsc::Receiver<Waiting>) {
    let mut waiting = Vec::with_capacity(MOST);
    while queue.recv_many(&mut waiting, MOST).await > 0 {
        let (beats, replies): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        let answers = writer.run(move |conn| Box::pin(all(conn, beats))).await;
        match answers {
            // Callers may have gone away; what is done is done.
            Ok(answers) => replies
                .into_iter()
                .zip(answers)
                .for_each(|(reply, answer)| {
                    let _ = reply.send(answer);
                }),
            Err(error) => {
                let reason: Arc<str> = error.to_string().into();
                for reply in replies {
                    let _ = reply.send(Err(StoreError::Unavailable(reason.clone())));
                }
            }
        }
    }
}

/// A lease as its heartbeat needs it.
#[derive(FromRow)]
struct LeaseRow {
    id: Vec<u8>,
    user_id: i64,
    worker: String,
    kind: String,
    match_id: Option<i64>,
    games: i64,
    lease_ms: i64,
    leased_at: i64,
    state: String,
    run_status: String,
}

impl LeaseRow {
    fn kind(&self) -> Result<WorkKind> {
        named("kind of job", &self.kind)
    }
}

async fn all(conn: &mut AnyConnection, beats: Vec<Beat>) -> Result<Vec<Result<HeartbeatReply>>> {
    let leases = find(conn, &beats).await?;
    let mut replies = Vec::with_capacity(beats.len());
    let mut alive = Vec::with_capacity(beats.len());
    for beat in &beats {
        let lease = leases.get(&job_bytes(beat.job));
        let own = lease.filter(|lease| lease.user_id == beat.user.0);
        let reply = match own {
            Some(lease) => answer(conn, beat.job, lease).await,
            None => Err(unknown(beat.job)),
        };
        match (&reply, own) {
            (Err(error), _) if error.is_temporary() => return reply.map(|_| Vec::new()),
            (Ok(_), Some(lease)) => alive.push((beat, lease)),
            _ => {}
        }
        replies.push(reply);
    }
    for part in alive.chunks(MOST) {
        extend(conn, part).await?;
        remember(conn, part).await?;
    }
    Ok(replies)
}

/// The items, and the last one again until there are as many as a statement has places.
fn filled<T>(items: &[T]) -> impl Iterator<Item = &T> {
    let size = SIZES.into_iter().find(|size| *size >= items.len());
    let missing = size.unwrap_or(items.len()) - items.len();
    items
        .iter()
        .chain(items.last().into_iter().cycle().take(missing))
}

async fn find(conn: &mut AnyConnection, beats: &[Beat]) -> Result<HashMap<Vec<u8>, LeaseRow>> {
    let mut query = Statement::new(
        "SELECT j.id, j.user_id, j.worker, j.kind, j.match_id, j.games, j.lease_ms,
           j.leased_at, j.state, r.status AS run_status
         FROM jobs j JOIN runs r ON r.id = j.run_id WHERE j.id IN (",
    );
    for (place, beat) in filled(beats).enumerate() {
        query.push(if place == 0 { "" } else { ", " });
        query.bind(job_bytes(beat.job))?;
    }
    query.push(")");
    let (sql, arguments) = query.finish();
    let rows: Vec<LeaseRow> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}

async fn answer(conn: &mut AnyConnection, job: JobId, lease: &LeaseRow) -> Result<HeartbeatReply> {
    if lease.state == "returned" {
        return Err(StoreError::LeaseEnded(format!("job {job} was given back")));
    }
    Ok(HeartbeatReply {
        lease_seconds: u32::try_from(lease.lease_ms / 1000).unwrap_or(u32::MAX),
        instruction: instruct(conn, job, lease).await?,
    })
}

/// Whether the job's games still matter.
async fn instruct(conn: &mut AnyConnection, job: JobId, lease: &LeaseRow) -> Result<Instruction> {
    if let Some(match_id) = lease.match_id {
        let leased = to_u32("number of games", lease.games)? / 2;
        if pairs::held(conn, match_id, job).await? < leased {
            let detail = format!("the lease of job {job} is over and others play its pairs");
            return Err(StoreError::LeaseEnded(detail));
        }
        if matches::load(conn, MatchId(match_id)).await?.status != MatchStatus::Open {
            return Ok(Instruction::Abandon);
        }
    }
    if lease.kind()? == WorkKind::Audit
        && lease.state == "open"
        && !audits::is_held(conn, job).await?
    {
        return Err(audits::over(job));
    }
    match RunStatus::from_name(&lease.run_status) {
        Some(RunStatus::Open) => Ok(Instruction::Continue),
        Some(RunStatus::Paused) => Ok(Instruction::Abandon),
        None => Err(unreadable("status", &&lease.run_status)),
    }
}

async fn extend(conn: &mut AnyConnection, alive: &[(&Beat, &LeaseRow)]) -> Result<()> {
    let now = latest(alive);
    let mut query = Statement::new("UPDATE jobs SET expires_at = heard.column2 FROM (VALUES ");
    for (place, (beat, lease)) in filled(alive).enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.bind(job_bytes(beat.job))?.push(", ");
        let end = decide::extended(lease.kind()?, lease.leased_at, lease.lease_ms, now);
        query.bind(end)?.push(")");
    }
    query.push(") AS heard WHERE jobs.id = heard.column1");
    let (sql, arguments) = query.finish();
    sqlx::query_with(sql, arguments).execute(conn).await?;
    Ok(())
}

async fn remember(conn: &mut AnyConnection, alive: &[(&Beat, &LeaseRow)]) -> Result<()> {
    let mut query = Statement::new("UPDATE workers SET last_seen = ");
    query.bind(latest(alive))?.push(
        ", evals_per_second = CASE WHEN heard.column3 > 0 THEN heard.column3
             ELSE workers.evals_per_second END
         FROM (VALUES ",
    );
    for (place, (beat, lease)) in filled(alive).enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.bind(beat.user.0)?.push(", ");
        query.bind(lease.worker.clone())?.push(", ");
        query
            .bind(finite(beat.heartbeat.evals_per_second))?
            .push(")");
    }
    query.push(") AS heard WHERE workers.user_id = heard.column1 AND workers.name = heard.column2");
    let (sql, arguments) = query.finish();
    sqlx::query_with(sql, arguments).execute(conn).await?;
    Ok(())
}

fn latest(alive: &[(&Beat, &LeaseRow)]) -> i64 {
    let times = alive.iter().map(|(beat, _)| beat.now.as_millisecond());
    times.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_filled_up_with_their_last_item() {
        for (items, size) in [(1, 1), (2, 8), (8, 8), (9, 64), (256, 256)] {
            let items: Vec<usize> = (0..items).collect();
            let filled: Vec<usize> = filled(&items).copied().collect();
            assert_eq!(filled.len(), size);
            assert_eq!(filled[..items.len()], items);
            assert!(
                filled[items.len()..]
                    .iter()
                    .all(|item| Some(item) == items.last())
            );
        }
    }
}
