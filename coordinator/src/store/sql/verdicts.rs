//! Tallies and what follows from them: a match is decided, a candidate promoted or rejected.

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, MatchId, NetworkNumber};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::gate::{GateDecision, GateVerdict};
use rookery_common::rating::pentanomial::Tally;
use sqlx::AnyConnection;

use super::matches::{Match, open_next_gate, verdict};
use super::rows::{count, hash};
use super::runs::Run;
use super::{networks, runs};
use crate::store::error::Result;

/// Adds pairs to an open match and decides it if they do. The match's new state is told.
pub(super) async fn count_pairs(
    conn: &mut AnyConnection,
    mut m: Match,
    added: &Tally,
    chunk: i64,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let run = runs::load_by_id(conn, m.run_id).await?;
    add(&mut m.tally, added);
    store_tally(conn, &m).await?;
    let verdict = verdict(&m.rule, &m.tally)?;
    let mut events = Vec::new();
    let all_played = m.tally.pairs.pairs() >= u64::from(m.pair_limit);
    match (m.purpose, verdict.decision) {
        (MatchPurpose::Gate, GateDecision::Promote) => {
            m.status = MatchStatus::Promoted;
            networks::set_status(conn, run.id, m.candidate, NetworkStatus::Promoted).await?;
            let hash = hash_of(conn, run.id, m.candidate).await?;
            events.push(networks::make_best(conn, &run, m.candidate, hash).await?);
        }
        (MatchPurpose::Gate, GateDecision::Reject) => {
            m.status = MatchStatus::Rejected;
            networks::set_status(conn, run.id, m.candidate, NetworkStatus::Rejected).await?;
        }
        (MatchPurpose::Rating, _) if all_played => m.status = MatchStatus::Finished,
        (MatchPurpose::Gate, GateDecision::Continue) | (MatchPurpose::Rating, _) => {}
    }
    if m.status != MatchStatus::Open {
        let reason = match m.purpose {
            MatchPurpose::Gate => verdict.reason.to_string(),
            MatchPurpose::Rating => "all pairs were played".to_owned(),
        };
        close(conn, &m, &reason, chunk, now).await?;
        open_next_gate(conn, &run, now).await?;
    }
    events.insert(0, state_of(&run, &m, &verdict));
    Ok(events)
}

/// Ends an open gate match whose candidate is rejected whatever its games say.
pub(super) async fn reject(
    conn: &mut AnyConnection,
    run: &Run,
    mut m: Match,
    reason: &str,
    now: Timestamp,
) -> Result<Event> {
    m.status = MatchStatus::Rejected;
    let last: i64 = sqlx::query_scalar("SELECT coalesce(max(sequence), 0) FROM chunks")
        .fetch_one(&mut *conn)
        .await?;
    close(conn, &m, reason, last, now).await?;
    let verdict = verdict(&m.rule, &m.tally)?;
    Ok(state_of(run, &m, &verdict))
}

fn state_of(run: &Run, m: &Match, verdict: &GateVerdict) -> Event {
    Event::Match {
        run: run.name.clone(),
        id: MatchId(m.id),
        status: m.status,
        tally: m.tally,
        llr: verdict.sprt.map(|sprt| sprt.llr),
    }
}

async fn hash_of(conn: &mut AnyConnection, run: i64, number: NetworkNumber) -> Result<ContentHash> {
    let bytes: Vec<u8> =
        sqlx::query_scalar("SELECT hash FROM networks WHERE run_id = $1 AND number = $2")
            .bind(run)
            .bind(i64::from(number.0))
            .fetch_one(conn)
            .await?;
    hash(&bytes)
}

fn add(tally: &mut Tally, added: &Tally) {
    tally.wins += added.wins;
    tally.draws += added.draws;
    tally.losses += added.losses;
    for (sum, count) in tally.pairs.counts.iter_mut().zip(added.pairs.counts) {
        *sum += count;
    }
}

pub(super) async fn store_tally(conn: &mut AnyConnection, m: &Match) -> Result<()> {
    let [p0, p1, p2, p3, p4] = m.tally.pairs.counts.map(count);
    sqlx::query(
        "UPDATE matches SET wins = $2, draws = $3, losses = $4, pairs_0 = $5, pairs_1 = $6,
           pairs_2 = $7, pairs_3 = $8, pairs_4 = $9
         WHERE id = $1",
    )
    .bind(m.id)
    .bind(count(m.tally.wins))
    .bind(count(m.tally.draws))
    .bind(count(m.tally.losses))
    .bind(p0)
    .bind(p1)
    .bind(p2)
    .bind(p3)
    .bind(p4)
    .execute(conn)
    .await?;
    Ok(())
}

async fn close(
    conn: &mut AnyConnection,
    m: &Match,
    reason: &str,
    chunk: i64,
    now: Timestamp,
) -> Result<()> {
    let now = networks::after_promotions(conn, m.run_id, now).await?;
    sqlx::query(
        "UPDATE matches SET status = $2, reason = $3, decided_at = $4, decided_by_chunk = $5
         WHERE id = $1",
    )
    .bind(m.id)
    .bind(m.status.name())
    .bind(reason)
    .bind(now.as_millisecond())
    .bind(chunk)
    .execute(conn)
    .await?;
    Ok(())
}
