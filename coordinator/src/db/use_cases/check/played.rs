//! Matches against the games that were played in them: tallies, the scores of pairs, how each ended.

use std::collections::BTreeMap;

use rookery_common::chess::GameResult;
use rookery_common::ids::MatchId;
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::rating::gate::GateDecision;
use rookery_common::rating::pentanomial::{GameScore, Tally};
use shakmaty::Color;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use super::compare::{compare, compare_lists};
use super::lineage::Acts;
use crate::db::error::Result;
use crate::db::gate_decision::{self, PairScore};
use crate::db::models::matches::{self, Match, verdict};
use crate::db::models::tallies::tally_of;
use crate::db::sql::rows::{parse, to_u32, unreadable};
use crate::db::types::{Checked, Discrepancy};

/// By what a match ended.
#[derive(FromRow)]
struct End {
    id: i64,
    decided_by_chunk: Option<i64>,
    decided_pairs: Option<i64>,
}

pub(super) async fn check(
    conn: &mut AnyConnection,
    run: i64,
    acts: &Acts,
    checked: &mut Checked,
) -> Result<()> {
    let ends: Vec<End> = sqlx::query_as(
        "SELECT id, decided_by_chunk, decided_pairs FROM matches WHERE run_id = $1 ORDER BY id",
    )
    .bind(run)
    .fetch_all(&mut *conn)
    .await?;
    let mut unclear = Vec::new();
    for end in ends {
        let id = end.id;
        let m = matches::load(conn, MatchId(id)).await?;
        let found = &mut checked.discrepancies;
        let tally = tally_of(conn, &m).await?;
        compare(found, format!("tally of match {id}"), &m.tally, &tally);
        let pairs = pairs_of(conn, &m).await?;
        check_pairs(&m, &pairs, found);
        match status_of(conn, &m, &end, &tally, &pairs, acts).await? {
            Some(status) => compare(found, format!("status of match {id}"), &m.status, &status),
            None => unclear.push(id.to_string()),
        }
    }
    if !unclear.is_empty() {
        let matches = unclear.join(", ");
        checked.not_compared.push(format!(
            "how these matches ended, as some of their games were held for a while: {matches}"
        ));
    }
    Ok(())
}

/// A pair with the games of it that the job has sent which played it last.
#[derive(Default)]
struct Pair {
    /// Half points of the candidate with White and with Black, as they were entered.
    entered: [Option<i64>; 2],
    games: [Option<Game>; 2],
}

struct Game {
    score: GameScore,
    chunk: i64,
    is_held: bool,
    was_held: bool,
}

impl Pair {
    /// Whether its scores were taken away for as long as others might have played it: they are not given back.
    fn was_freed(&self) -> bool {
        self.games.iter().flatten().any(|game| game.was_held)
    }

    /// The scores that follow from its games.
    fn half_points(&self) -> [Option<i64>; 2] {
        [0, 1].map(|side| {
            let game = self.games[side].as_ref().filter(|game| !game.is_held)?;
            let stays_free = self.was_freed() && self.entered[side].is_none();
            (!stays_free).then_some(game.score.half_points() as i64)
        })
    }

    /// What was known of it once this chunk was in.
    fn score_at(&self, last: i64) -> PairScore {
        let [white, black] = self.games.each_ref().map(|game| {
            let game = game.as_ref().filter(|game| game.chunk <= last)?;
            Some(game.score)
        });
        Some([white?, black?])
    }
}

#[derive(FromRow)]
struct Row {
    pair: i64,
    white_score: Option<i64>,
    black_score: Option<i64>,
    white: Option<i64>,
    result: Option<String>,
    chunk: Option<i64>,
    held: Option<i64>,
    holds: i64,
}

/// The pairs that were handed out, by their numbers.
async fn pairs_of(conn: &mut AnyConnection, m: &Match) -> Result<BTreeMap<i64, Pair>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT p.pair, p.white_score, p.black_score, g.white, g.result, g.chunk, c.held,
           (SELECT count(*) FROM holds h WHERE h.chunk = g.chunk AND h.held <> 0) AS holds
         FROM match_pairs p
         LEFT JOIN games g ON g.match_id = p.match_id AND g.pair = p.pair AND g.job_id = p.job_id
         LEFT JOIN chunks c ON c.sequence = g.chunk WHERE p.match_id = $1",
    )
    .bind(m.id)
    .fetch_all(conn)
    .await?;
    let mut pairs: BTreeMap<i64, Pair> = BTreeMap::new();
    for row in rows {
        let pair = pairs.entry(row.pair).or_default();
        pair.entered = [row.white_score, row.black_score];
        let (Some(white), Some(result), Some(chunk)) = (row.white, row.result, row.chunk) else {
            continue;
        };
        let result: GameResult = parse("result", &result)?;
        let (place, side) = if white == i64::from(m.candidate.0) {
            (0, Color::White)
        } else {
            (1, Color::Black)
        };
        pair.games[place] = Some(Game {
            score: GameScore::of(result, side),
            chunk,
            is_held: row.held.is_some_and(|held| held != 0),
            was_held: row.holds > 0,
        });
    }
    Ok(pairs)
}

fn check_pairs(m: &Match, pairs: &BTreeMap<i64, Pair>, found: &mut Vec<Discrepancy>) {
    let handed_out = format!("pairs of match {} that were handed out", m.id);
    compare(found, handed_out, &(m.next_pair as usize), &pairs.len());
    let stored: Vec<_> = pairs
        .iter()
        .map(|(pair, one)| (*pair, one.entered))
        .collect();
    let facts: Vec<_> = (0..)
        .zip(pairs.values())
        .map(|(pair, one)| (pair, one.half_points()))
        .collect();
    let what = format!("scores of a pair of match {}", m.id);
    compare_lists(found, &what, &stored, &facts);
}

/// How a match stands by its facts. Where games that had a say in it were held at some time, it is not known
/// whether they were there when it ended.
async fn status_of(
    conn: &mut AnyConnection,
    m: &Match,
    end: &End,
    tally: &Tally,
    pairs: &BTreeMap<i64, Pair>,
    acts: &Acts,
) -> Result<Option<MatchStatus>> {
    let Some(last) = end.decided_by_chunk else {
        return Ok(Some(MatchStatus::Open));
    };
    let is_gate = m.purpose == MatchPurpose::Gate;
    if is_gate && acts.rejected(m.candidate.0) {
        return Ok(Some(MatchStatus::Rejected));
    }
    if let (true, Some(decisive)) = (is_gate, end.decided_pairs) {
        let decisive = to_u32("number of pairs", decisive)?;
        return status_by_pairs(m, pairs, decisive, last);
    }
    if any_held(conn, m.id).await? {
        return Ok(None);
    }
    if !is_gate {
        let all_played = tally.pairs.pairs() >= u64::from(m.pair_limit);
        return Ok(Some(if all_played {
            MatchStatus::Finished
        } else {
            MatchStatus::Open
        }));
    }
    // Once a gate was decided by the tally, whichever pairs were in it.
    Ok(Some(match verdict(&m.rule, tally)?.decision {
        GateDecision::Promote => MatchStatus::Promoted,
        GateDecision::Reject => MatchStatus::Rejected,
        GateDecision::Continue => MatchStatus::Open,
    }))
}

/// What the first so many pairs decide, by what of them was in with the deciding chunk.
fn status_by_pairs(
    m: &Match,
    pairs: &BTreeMap<i64, Pair>,
    decisive: u32,
    last: i64,
) -> Result<Option<MatchStatus>> {
    let first = || pairs.values().take(decisive as usize);
    if first().any(Pair::was_freed) {
        return Ok(None);
    }
    let scores: Vec<PairScore> = first().map(|pair| pair.score_at(last)).collect();
    let decided = gate_decision::decided(&m.rule, &scores, decisive.saturating_sub(1))
        .map_err(|error| unreadable("gate rule or scores", &error))?;
    Ok(Some(
        decided.map_or(MatchStatus::Open, |decided| decided.status),
    ))
}

/// Whether any game of a match was ever held.
async fn any_held(conn: &mut AnyConnection, match_id: i64) -> Result<bool> {
    let holds: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM games g JOIN holds h ON h.chunk = g.chunk
         WHERE g.match_id = $1 AND h.held <> 0",
    )
    .bind(match_id)
    .fetch_one(conn)
    .await?;
    Ok(holds > 0)
}
