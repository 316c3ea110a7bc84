//! Tallies and what follows from them: a match is decided, a candidate promoted or rejected.

use jiff::Timestamp;
use rookery_common::ids::MatchId;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::gate::GateVerdict;
use rookery_common::rating::pentanomial::Tally;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::gate_decision;
use crate::db::models::matches::{Match, open_next_gate, verdict};
use crate::db::models::pairs::{self, Completed};
use crate::db::models::runs::Run;
use crate::db::models::{chunks, matches, networks, runs, tallies};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{count, unreadable};
use crate::db::types::ExclusionEffects;
use crate::db::use_cases::gate_audits;

impl Ledger {
    /// Ends a gate whose end has waited for audits and waits no more, if there is one.
    pub async fn settle_waiting_gate(&self, now: Timestamp) -> Result<ExclusionEffects> {
        let decided = read!(self, "match_results", |conn| async {
            let open: Vec<i64> = sqlx::query_scalar(
                "SELECT m.id FROM matches m
                 JOIN runs r ON r.id = m.run_id AND r.archived_at IS NULL AND r.deleted_at IS NULL
                 WHERE m.status = 'open' AND m.purpose = 'gate' ORDER BY m.id",
            )
            .fetch_all(&mut *conn)
            .await?;
            for id in open {
                let m = matches::load(conn, MatchId(id)).await?;
                if end_of(conn, &m, 0, now).await?.is_some() {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        })?;
        match decided {
            Some(gate) => transact!(self, "match_results", |conn| settle_gate(conn, gate, now)
                .await),
            None => Ok(ExclusionEffects::default()),
        }
    }
}

struct End {
    status: MatchStatus,
    reason: String,
    /// The tally counts pairs before this one; all, if none is given.
    pairs: Option<u32>,
}

/// Adds pairs to an open match and ends it if they do. The match's new state is told.
pub(crate) async fn count_pairs(
    conn: &mut AnyConnection,
    mut m: Match,
    completed: &Completed,
    chunk: i64,
    now: Timestamp,
) -> Result<Vec<Event>> {
    add(&mut m.tally, &completed.tally);
    settle(conn, m, completed.first, chunk, now).await
}

/// Counts the pairs of a match anew, as chunks with games of it count again or no more. An open match ends if the pairs
/// that came back do that, or those that stay: its end may have waited for an audit.
pub(crate) async fn recount(
    conn: &mut AnyConnection,
    id: i64,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let mut m = matches::load(conn, MatchId(id)).await?;
    m.tally = tallies::tally_of(conn, &m).await?;
    if m.status == MatchStatus::Open {
        let last = chunks::last(conn).await?;
        return settle(conn, m, 0, last, now).await;
    }
    store_tally(conn, &m).await?;
    Ok(Vec::new())
}

/// Ends the open gate of which a chunk has games if its end has waited for the audit of that chunk.
pub(crate) async fn settle_gate_of(
    conn: &mut AnyConnection,
    chunk: i64,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let gate: Option<i64> = sqlx::query_scalar(
        "SELECT m.id FROM chunks c JOIN jobs j ON j.id = c.job_id JOIN matches m ON m.id = j.match_id
         WHERE c.sequence = $1 AND m.status = 'open' AND m.purpose = 'gate'",
    )
    .bind(chunk)
    .fetch_optional(&mut *conn)
    .await?;
    match gate {
        Some(id) => settle_gate(conn, id, now).await,
        None => Ok(ExclusionEffects::default()),
    }
}

/// Ends a gate whose end has waited for audits, if it waits no more.
async fn settle_gate(
    conn: &mut AnyConnection,
    id: i64,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let m = matches::load(conn, MatchId(id)).await?;
    if m.status != MatchStatus::Open || end_of(conn, &m, 0, now).await?.is_none() {
        return Ok(ExclusionEffects::default());
    }
    let (run, last) = (m.run_id, chunks::last(conn).await?);
    let events = settle(conn, m, 0, last, now).await?;
    runs::make_stale(conn, run).await?;
    let stale = runs::name_of(conn, run).await?.into_iter().collect();
    Ok(ExclusionEffects { stale, events })
}

/// Keeps the tally of an open match, and ends the match if its pairs from `first` on do. The match's new state is told.
async fn settle(
    conn: &mut AnyConnection,
    mut m: Match,
    first: u32,
    chunk: i64,
    now: Timestamp,
) -> Result<Vec<Event>> {
    let run = runs::load_by_id(conn, m.run_id).await?;
    let mut events = Vec::new();
    let end = end_of(conn, &m, first, now).await?;
    if let Some(end) = &end {
        m.status = end.status;
        events.extend(judge(conn, &run, &m).await?);
        close(conn, &m, end, chunk, now).await?;
        m.tally = tallies::tally_of(conn, &m).await?;
    }
    store_tally(conn, &m).await?;
    if end.is_some() {
        open_next_gate(conn, &run, now).await?;
    }
    let verdict = verdict(&m.rule, &m.tally)?;
    events.insert(0, state_of(&run, &m, &verdict));
    Ok(events)
}

/// Whether a match ends now that pairs from `first` on came in, and how. The end of a gate waits for
/// [audits](gate_audits).
async fn end_of(
    conn: &mut AnyConnection,
    m: &Match,
    first: u32,
    now: Timestamp,
) -> Result<Option<End>> {
    match m.purpose {
        MatchPurpose::Rating => {
            let all_played = m.tally.pairs.pairs() >= u64::from(m.pair_limit);
            Ok(all_played.then(|| End {
                status: MatchStatus::Finished,
                reason: "all pairs were played".to_owned(),
                pairs: None,
            }))
        }
        MatchPurpose::Gate => {
            let scores = pairs::scores(conn, m.id).await?;
            let decided = |first| {
                gate_decision::decided(&m.rule, &scores, first)
                    .map_err(|error| unreadable("gate rule or scores", &error))
            };
            // Pairs before the first may have decided it, if its end waited.
            let decided = match decided(first)? {
                Some(_) if first > 0 => decided(0)?,
                decided => decided,
            };
            let Some(decided) = decided else {
                return Ok(None);
            };
            let waits = gate_audits::are_awaited(conn, m, decided.pairs, now).await?;
            Ok((!waits).then(|| End {
                status: decided.status,
                reason: decided.reason.to_string(),
                pairs: Some(decided.pairs),
            }))
        }
    }
}

/// Does to a gate's candidate what the match's status says. A promotion is told.
async fn judge(conn: &mut AnyConnection, run: &Run, m: &Match) -> Result<Option<Event>> {
    match m.status {
        MatchStatus::Promoted => {
            networks::set_status(conn, run.id, m.candidate, NetworkStatus::Promoted).await?;
            let candidate = networks::reference(conn, run.id, m.candidate).await?;
            networks::make_best(conn, run, m.candidate, candidate.hash)
                .await
                .map(Some)
        }
        MatchStatus::Rejected => {
            networks::set_status(conn, run.id, m.candidate, NetworkStatus::Rejected).await?;
            Ok(None)
        }
        MatchStatus::Open | MatchStatus::Finished => Ok(None),
    }
}

/// Ends an open gate match whose candidate is rejected whatever its games say.
pub(crate) async fn reject(
    conn: &mut AnyConnection,
    run: &Run,
    mut m: Match,
    reason: &str,
    now: Timestamp,
) -> Result<Event> {
    m.status = MatchStatus::Rejected;
    let last = chunks::last(conn).await?;
    let end = End {
        status: m.status,
        reason: reason.to_owned(),
        pairs: None,
    };
    close(conn, &m, &end, last, now).await?;
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

fn add(tally: &mut Tally, added: &Tally) {
    tally.wins += added.wins;
    tally.draws += added.draws;
    tally.losses += added.losses;
    for (sum, count) in tally.pairs.counts.iter_mut().zip(added.pairs.counts) {
        *sum += count;
    }
}

async fn store_tally(conn: &mut AnyConnection, m: &Match) -> Result<()> {
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
    end: &End,
    chunk: i64,
    now: Timestamp,
) -> Result<()> {
    let now = networks::after_promotions(conn, m.run_id, now).await?;
    sqlx::query(
        "UPDATE matches SET status = $2, reason = $3, decided_at = $4, decided_by_chunk = $5,
           decided_pairs = $6
         WHERE id = $1",
    )
    .bind(m.id)
    .bind(end.status.name())
    .bind(&end.reason)
    .bind(now.as_millisecond())
    .bind(chunk)
    .bind(end.pairs.map(i64::from))
    .execute(conn)
    .await?;
    Ok(())
}
