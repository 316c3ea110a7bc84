//! Tallies of matches and scores at puzzles, made again from the games.

use std::collections::BTreeMap;

use rookery_common::chess::GameResult;
use rookery_common::puzzle::Puzzle;
use rookery_common::rating::pentanomial::{GameScore, Tally};
use shakmaty::Color;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::matches::Match;
use crate::db::models::puzzles::{self, Groups};
use crate::db::sql::rows::{from_json, parse};
use crate::db::sql::statement::Statement;
use crate::db::types::ChunkStatus;

/// A match's tally from its games: pairs of which one job played both, up to the deciding chunk
/// and the pair at which it was decided.
pub(crate) async fn tally_of(conn: &mut AnyConnection, m: &Match) -> Result<Tally> {
    let games: Vec<(Vec<u8>, i64, i64, String)> = sqlx::query_as(
        "SELECT g.job_id, g.pair, g.white, g.result FROM games g
         JOIN matches m ON m.id = g.match_id JOIN chunks c ON c.sequence = g.chunk AND c.held = 0
         WHERE m.id = $1 AND (m.decided_by_chunk IS NULL OR g.chunk <= m.decided_by_chunk)
           AND (m.decided_pairs IS NULL OR g.pair < m.decided_pairs)",
    )
    .bind(m.id)
    .fetch_all(conn)
    .await?;
    let mut pairs: BTreeMap<(i64, Vec<u8>), Vec<GameScore>> = BTreeMap::new();
    for (job, pair, white, result) in games {
        let result: GameResult = parse("result", &result)?;
        let side = if white == i64::from(m.candidate.0) {
            Color::White
        } else {
            Color::Black
        };
        pairs
            .entry((pair, job))
            .or_default()
            .push(GameScore::of(result, side));
    }
    let mut tally = Tally::default();
    for scores in pairs.values() {
        if let [first, second] = scores[..] {
            tally.add_pair(first, second);
        }
    }
    Ok(tally)
}

/// How each network of a run did at puzzles.
pub(crate) async fn puzzle_facts(
    conn: &mut AnyConnection,
    run: i64,
) -> Result<BTreeMap<i64, Groups>> {
    let mut query = puzzle_games();
    query.push("c.held = 0 AND c.run_id = ").bind(run)?;
    let facts = facts_of(query.fetch_all(conn).await?)?.into_iter();
    Ok(facts
        .map(|((_, network), groups)| (network, groups))
        .collect())
}

/// How networks did at puzzles in those of the chunks that are not yet so, by run and network.
pub(crate) async fn puzzle_facts_of(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
) -> Result<BTreeMap<(i64, i64), Groups>> {
    let mut query = puzzle_games();
    which.write(&mut query, state)?;
    facts_of(query.fetch_all(conn).await?)
}

/// The puzzle games of chunks `c`: run, network, whether it was solved, and the puzzle as JSON.
fn puzzle_games() -> Statement {
    Statement::new(
        "SELECT g.run_id, g.white, g.solved, p.content FROM games g
         JOIN chunks c ON c.sequence = g.chunk AND c.job_id = g.job_id
         LEFT JOIN puzzles p ON p.run_id = g.run_id AND p.puzzle = g.puzzle
         WHERE c.kind = 'puzzles' AND ",
    )
}

fn facts_of(games: Vec<(i64, i64, i64, Option<String>)>) -> Result<BTreeMap<(i64, i64), Groups>> {
    let mut facts: BTreeMap<(i64, i64), Groups> = BTreeMap::new();
    for (run, network, solved, content) in games {
        let puzzle: Option<Puzzle> = content
            .as_deref()
            .map(|json| from_json("puzzle", json))
            .transpose()?;
        let (rating, themes) = puzzle.map(|p| (p.rating, p.themes)).unwrap_or_default();
        let groups = facts.entry((run, network)).or_default();
        puzzles::count_game(groups, solved != 0, rating, &themes);
    }
    Ok(facts)
}
