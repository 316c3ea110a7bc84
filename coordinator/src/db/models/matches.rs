//! Matches: read, listed, opened.

use jiff::Timestamp;
use rookery_common::ids::{MatchId, NetworkNumber, Seed};
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose, MatchStatus, PairsInOrder};
use rookery_common::rating::gate::{GateRule, GateVerdict};
use rookery_common::rating::pentanomial::{Pentanomial, Tally};
use rookery_common::text::quantity;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::runs::{self, Run};
use crate::db::models::{networks, pairs};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{
    count, from_json, network, parse, seed, seed_column, time_text, time_text_opt, to_count,
    to_json, to_u32, unreadable,
};
use crate::db::types::{Actor, MatchDraft};

pub(crate) struct Match {
    pub(crate) id: i64,
    pub(crate) run_id: i64,
    pub(crate) purpose: MatchPurpose,
    pub(crate) status: MatchStatus,
    pub(crate) candidate: NetworkNumber,
    pub(crate) opponent: NetworkNumber,
    pub(crate) rule: GateRule,
    pub(crate) pair_limit: u32,
    pub(crate) seed: Seed,
    pub(crate) next_pair: u32,
    pub(crate) tally: Tally,
}

impl Match {
    /// Pairs for which the match waits.
    fn pairs_out(&self) -> u64 {
        match self.status {
            MatchStatus::Open => u64::from(self.next_pair).saturating_sub(self.tally.pairs.pairs()),
            _ => 0,
        }
    }
}

#[derive(FromRow)]
pub(super) struct MatchRow {
    id: i64,
    run_id: i64,
    run: String,
    purpose: String,
    status: String,
    candidate: i64,
    opponent: i64,
    rule: String,
    pair_limit: i64,
    seed: i64,
    next_pair: i64,
    opened_at: i64,
    decided_at: Option<i64>,
    reason: Option<String>,
    wins: i64,
    draws: i64,
    losses: i64,
    pairs_0: i64,
    pairs_1: i64,
    pairs_2: i64,
    pairs_3: i64,
    pairs_4: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT m.id, m.run_id, r.name AS run, m.purpose, m.status, m.candidate, m.opponent, m.rule,
               m.pair_limit, m.seed, m.next_pair, m.opened_at, m.decided_at, m.reason, m.wins, m.draws,
               m.losses, m.pairs_0, m.pairs_1, m.pairs_2, m.pairs_3, m.pairs_4
             FROM matches m JOIN runs r ON r.id = m.run_id ",
            $rest
        )
    };
}

/// What is read of matches, to which conditions are added.
pub(super) const SELECT: &str = select!("");

impl Ledger {
    /// Opens a match that only adds to the ratings.
    pub async fn open_match(&self, draft: MatchDraft, by: Actor) -> Result<MatchId> {
        transact!(self, "matches", |conn| {
            let run = runs::load(conn, &draft.run).await?;
            let id = insert_rating(conn, &run, &draft, by.at).await?;
            let detail = format!(
                "{} against {}, {}",
                draft.candidate,
                draft.opponent,
                quantity(draft.pairs, "pair")
            );
            by.note(conn, Action::OpenMatch, draft.run.as_str(), &detail)
                .await?;
            Ok(id)
        })
    }

    /// Opens a match that only adds to the ratings, unless one is open in this run already.
    pub async fn open_next_rating(&self, m: MatchDraft, now: Timestamp) -> Result<Option<MatchId>> {
        transact!(self, "matches", |conn| {
            let run = runs::load(conn, &m.run).await?;
            if any_open(conn, run.id, MatchPurpose::Rating).await? {
                return Ok(None);
            }
            insert_rating(conn, &run, &m, now).await.map(Some)
        })
    }

    pub async fn match_info(&self, id: MatchId, now: Timestamp) -> Result<MatchInfo> {
        read!(self, "matches", |conn| async {
            let row: Option<MatchRow> =
                sqlx::query_as(select!("WHERE m.id = $1 AND r.deleted_at IS NULL"))
                    .bind(id.0)
                    .fetch_optional(&mut *conn)
                    .await?;
            let mut info = row.ok_or_else(|| unknown(id))?.into_info()?;
            add_progress(conn, &mut info, now).await?;
            Ok(info)
        })
    }
}

impl MatchRow {
    fn into_match(self) -> Result<Match> {
        let pairs = [
            self.pairs_0,
            self.pairs_1,
            self.pairs_2,
            self.pairs_3,
            self.pairs_4,
        ];
        let tally = Tally {
            wins: to_count(self.wins),
            draws: to_count(self.draws),
            losses: to_count(self.losses),
            pairs: Pentanomial {
                counts: pairs.map(to_count),
            },
        };
        Ok(Match {
            id: self.id,
            run_id: self.run_id,
            purpose: parse("purpose", &self.purpose)?,
            status: parse("match status", &self.status)?,
            candidate: network(self.candidate)?,
            opponent: network(self.opponent)?,
            rule: from_json("gate rule", &self.rule)?,
            pair_limit: to_u32("pair limit", self.pair_limit)?,
            seed: seed(self.seed),
            next_pair: to_u32("pair", self.next_pair)?,
            tally,
        })
    }

    fn into_info(self) -> Result<MatchInfo> {
        let run = parse("run", &self.run)?;
        let (opened_at, decided_at) = (time_text(self.opened_at)?, time_text_opt(self.decided_at)?);
        let reason = self.reason.clone();
        let m = self.into_match()?;
        let sprt = verdict(&m.rule, &m.tally)?.sprt;
        let elo = m.tally.elo();
        let pairs_out = m.pairs_out();
        Ok(MatchInfo {
            id: MatchId(m.id),
            run,
            purpose: m.purpose,
            status: m.status,
            candidate: m.candidate,
            opponent: m.opponent,
            tally: m.tally,
            rule: m.rule,
            pair_limit: m.pair_limit,
            pairs_out,
            pairs_playing: 0,
            in_order: None,
            llr: sprt.map(|sprt| sprt.llr),
            llr_bounds: sprt.map(|sprt| (sprt.lower, sprt.upper)),
            los: elo.map(|elo| elo.los),
            elo: elo.map(|elo| (elo.elo, elo.low, elo.high)),
            reason,
            opened_at,
            decided_at,
        })
    }
}

/// What a rule says of a tally; parameters were checked when the run was made.
pub(crate) fn verdict(rule: &GateRule, tally: &Tally) -> Result<GateVerdict> {
    rule.decide(tally)
        .map_err(|error| unreadable("gate rule or tally", &error))
}

pub(crate) async fn load(conn: &mut AnyConnection, id: MatchId) -> Result<Match> {
    row(conn, id).await?.into_match()
}

async fn row(conn: &mut AnyConnection, id: MatchId) -> Result<MatchRow> {
    sqlx::query_as(select!("WHERE m.id = $1"))
        .bind(id.0)
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| unknown(id))
}

fn unknown(id: MatchId) -> DbError {
    DbError::NotFound(format!("match number {id}"))
}

/// Of an open match: adds how many pairs are being played, and of a gate what its pairs say in their order.
async fn add_progress(
    conn: &mut AnyConnection,
    info: &mut MatchInfo,
    now: Timestamp,
) -> Result<()> {
    if info.status != MatchStatus::Open {
        return Ok(());
    }
    info.pairs_playing = pairs::playing(conn, info.id, now).await?;
    if info.purpose != MatchPurpose::Gate {
        return Ok(());
    }
    let tally = pairs::in_order(conn, info.id).await?;
    info.in_order = Some(PairsInOrder {
        pairs: tally.pairs.pairs(),
        llr: verdict(&info.rule, &tally)?.sprt.map(|sprt| sprt.llr),
    });
    Ok(())
}

pub(super) async fn infos(
    conn: &mut AnyConnection,
    rows: Vec<MatchRow>,
    now: Timestamp,
) -> Result<Vec<MatchInfo>> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut info = row.into_info()?;
        add_progress(conn, &mut info, now).await?;
        all.push(info);
    }
    Ok(all)
}

/// Open matches of a run, gates first, then the oldest.
pub(crate) async fn open_in(conn: &mut AnyConnection, run: i64) -> Result<Vec<Match>> {
    let rows: Vec<MatchRow> = sqlx::query_as(select!(
        "WHERE m.run_id = $1 AND m.status = 'open' ORDER BY m.purpose <> 'gate', m.id"
    ))
    .bind(run)
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(MatchRow::into_match).collect()
}

/// Opens the gate match of the oldest waiting candidate against best, unless one is open. Returns the
/// candidate and its match.
pub(crate) async fn open_next_gate(
    conn: &mut AnyConnection,
    run: &Run,
    now: Timestamp,
) -> Result<Option<(NetworkNumber, MatchId)>> {
    let busy = any_open(conn, run.id, MatchPurpose::Gate).await?;
    let best: Option<i64> = sqlx::query_scalar("SELECT best FROM runs WHERE id = $1")
        .bind(run.id)
        .fetch_one(&mut *conn)
        .await?;
    let waiting: Option<(i64, i64)> = sqlx::query_as(
        "SELECT number, match_seed FROM networks
         WHERE run_id = $1 AND status = 'candidate' AND gate_id IS NULL ORDER BY number LIMIT 1",
    )
    .bind(run.id)
    .fetch_optional(&mut *conn)
    .await?;
    let (Some(best), Some((number, seed)), false) = (best, waiting, busy) else {
        return Ok(None);
    };
    let rule = run.params.gate;
    // A run whose gate was abolished since still decides its waiting candidates.
    let pairs = rule.max_games().div_ceil(2).max(1);
    let new = NewMatch {
        run: run.id,
        purpose: MatchPurpose::Gate,
        rule,
        pairs,
        seed,
    };
    let id = insert(conn, &new, number, best, now).await?;
    sqlx::query("UPDATE networks SET gate_id = $3 WHERE run_id = $1 AND number = $2")
        .bind(run.id)
        .bind(number)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(Some((network(number)?, id)))
}

async fn any_open(conn: &mut AnyConnection, run: i64, purpose: MatchPurpose) -> Result<bool> {
    let open: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM matches
         WHERE run_id = $1 AND status = 'open' AND purpose = $2",
    )
    .bind(run)
    .bind(purpose.name())
    .fetch_one(conn)
    .await?;
    Ok(open > 0)
}

struct NewMatch {
    run: i64,
    purpose: MatchPurpose,
    rule: GateRule,
    pairs: u64,
    seed: i64,
}

async fn insert(
    conn: &mut AnyConnection,
    new: &NewMatch,
    candidate: i64,
    opponent: i64,
    now: Timestamp,
) -> Result<MatchId> {
    let id = sqlx::query_scalar(
        "INSERT INTO matches (run_id, purpose, status, candidate, opponent, rule, pair_limit,
           seed, opened_at)
         VALUES ($1, $2, 'open', $3, $4, $5, $6, $7, $8) RETURNING id",
    )
    .bind(new.run)
    .bind(new.purpose.name())
    .bind(candidate)
    .bind(opponent)
    .bind(to_json(&new.rule)?)
    .bind(count(new.pairs.min(u64::from(u32::MAX))))
    .bind(new.seed)
    .bind(now.as_millisecond())
    .fetch_one(conn)
    .await?;
    Ok(MatchId(id))
}

async fn insert_rating(
    conn: &mut AnyConnection,
    run: &Run,
    draft: &MatchDraft,
    now: Timestamp,
) -> Result<MatchId> {
    if draft.candidate == draft.opponent {
        let detail = format!(
            "network {} cannot play a match with itself",
            draft.candidate
        );
        return Err(DbError::Conflict(detail));
    }
    networks::reference(conn, run.id, draft.candidate).await?;
    networks::reference(conn, run.id, draft.opponent).await?;
    let new = NewMatch {
        run: run.id,
        purpose: MatchPurpose::Rating,
        rule: GateRule::None,
        pairs: u64::from(draft.pairs),
        seed: seed_column(draft.seed),
    };
    let (candidate, opponent) = (i64::from(draft.candidate.0), i64::from(draft.opponent.0));
    insert(conn, &new, candidate, opponent, now).await
}
