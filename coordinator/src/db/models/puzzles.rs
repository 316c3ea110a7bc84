//! Puzzle sets and puzzle scores.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use rookery_common::ids::{ContentHash, NetworkNumber, RunName, Seed};
use rookery_common::protocol::networks::{PuzzleGroup, PuzzleScore};
use rookery_common::puzzle::Puzzle;
use rookery_common::rating::{Tasks, performance};
use rookery_common::text::quantity;
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::scheduling::{RATING_BAND, rating_band};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{
    count, from_json, hash, network as to_network, time_text, to_count, to_json, to_u32, unreadable,
};
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::{Actor, ChunkStatus};
use crate::db::types::{GameFact, GameFactDetail, PuzzleSetDraft, PuzzleSetInfo};
use crate::random;

/// Rows of one INSERT; SQLite allows 32,766 parameters, PostgreSQL twice as many.
const ROWS: usize = 1000;

impl Ledger {
    /// Adds a set of puzzles, and notes it in the operator log; puzzles that the run has already are passed
    /// over, and so is a set that it has.
    pub async fn add_puzzles(&self, set: PuzzleSetDraft, by: Actor) -> Result<PuzzleSetInfo> {
        transact!(self, "puzzles", |conn| add(conn, set, &by).await)
    }

    pub async fn puzzle_sets(&self, run: &RunName) -> Result<Vec<PuzzleSetInfo>> {
        read!(self, "puzzles", |conn| sets(conn, run))
    }

    pub async fn puzzle(&self, run: &RunName, id: &str) -> Result<Puzzle> {
        read!(self, "puzzles", |conn| async {
            let content: Option<String> =
                sqlx::query_scalar("SELECT content FROM puzzles WHERE run_id = $1 AND puzzle = $2")
                    .bind(runs::id_of(conn, run).await?)
                    .bind(id)
                    .fetch_optional(conn)
                    .await?;
            let content =
                content.ok_or_else(|| DbError::NotFound(format!("puzzle {id:?} in run {run}")))?;
            from_json("puzzle", &content)
        })
    }

    /// How the networks of a run did at puzzles that have these numbers.
    pub async fn puzzle_scores(
        &self,
        run: &RunName,
        numbers: RangeInclusive<NetworkNumber>,
    ) -> Result<BTreeMap<NetworkNumber, PuzzleScore>> {
        read!(self, "puzzles", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let (first, last) = (i64::from(numbers.start().0), i64::from(numbers.end().0));
            let scores = scores(conn, run, first..=last).await?.into_iter();
            scores
                .map(|(number, score)| Ok((to_network(number)?, score)))
                .collect()
        })
    }

    pub async fn puzzle_score(&self, run: &RunName, network: NetworkNumber) -> Result<PuzzleScore> {
        read!(self, "puzzles", |conn| async {
            let run = runs::id_of(conn, run).await?;
            score(conn, run, i64::from(network.0)).await
        })
    }
}

/// How many puzzles a run has. Their ordinals count them from 0.
pub(crate) async fn count_in(conn: &mut AnyConnection, run: i64) -> Result<u32> {
    let puzzles: i64 =
        sqlx::query_scalar("SELECT coalesce(max(ordinal) + 1, 0) FROM puzzles WHERE run_id = $1")
            .bind(run)
            .fetch_one(conn)
            .await?;
    to_u32("number of puzzles", puzzles)
}

/// Puzzles drawn by a seed of the first `of` puzzles of a run, all different: `wanted`, or all.
pub(crate) async fn draw(
    conn: &mut AnyConnection,
    run: i64,
    wanted: u32,
    of: u32,
    seed: Seed,
) -> Result<Vec<Puzzle>> {
    let drawn = random::sample(of, wanted, seed);
    let drawn: Vec<i64> = drawn.into_iter().map(i64::from).collect();
    let mut contents = HashMap::with_capacity(drawn.len());
    for part in parts(&drawn) {
        let mut query = Statement::new("SELECT ordinal, content FROM puzzles WHERE run_id = ");
        query.bind(run)?.push(" AND ordinal IN (");
        query.bind_all(part)?.push(")");
        let rows: Vec<(i64, String)> = query.fetch_all(&mut *conn).await?;
        contents.extend(rows);
    }
    drawn
        .iter()
        .map(|ordinal| {
            let content = contents.get(ordinal);
            let content = content.ok_or_else(|| unreadable("puzzle", &"a gap in the ordinals"))?;
            from_json("puzzle", content)
        })
        .collect()
}

async fn add(conn: &mut AnyConnection, set: PuzzleSetDraft, by: &Actor) -> Result<PuzzleSetInfo> {
    let run = runs::id_of(conn, &set.run).await?;
    let lines = set
        .puzzles
        .iter()
        .map(to_json)
        .collect::<Result<Vec<_>>>()?;
    let name = ContentHash::of(lines.join("\n").as_bytes());
    if let Some(known) = sets(conn, &set.run)
        .await?
        .into_iter()
        .find(|known| known.hash == name)
    {
        return Ok(known);
    }
    let known: Vec<String> = sqlx::query_scalar("SELECT puzzle FROM puzzles WHERE run_id = $1")
        .bind(run)
        .fetch_all(&mut *conn)
        .await?;
    let first = known.len();
    let mut known: HashSet<String> = known.into_iter().collect();
    let new: Vec<(&str, String)> = set
        .puzzles
        .iter()
        .zip(lines)
        .filter(|(puzzle, _)| known.insert(puzzle.id.clone()))
        .map(|(puzzle, content)| (puzzle.id.as_str(), content))
        .collect();
    let added = new.len() as u64;
    let puzzles = u32::try_from(added).unwrap_or(u32::MAX);
    let info = PuzzleSetInfo {
        hash: name,
        name: set.name.clone(),
        puzzles,
        added_at: time_text(by.at.as_millisecond())?,
    };
    if new.is_empty() {
        return Ok(info);
    }
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO puzzle_sets (run_id, hash, name, puzzles, added_at)
         VALUES ($1, $2, $3, 0, $4) RETURNING id",
    )
    .bind(run)
    .bind(&name.as_bytes()[..])
    .bind(&set.name)
    .bind(by.at.as_millisecond())
    .fetch_one(&mut *conn)
    .await?;
    insert(conn, run, id, first, &new).await?;
    sqlx::query("UPDATE puzzle_sets SET puzzles = $2 WHERE id = $1")
        .bind(id)
        .bind(count(added))
        .execute(&mut *conn)
        .await?;
    let detail = format!(
        "{}: {}, set {name}",
        set.name,
        quantity(added, "new puzzle")
    );
    by.note(conn, Action::AddPuzzles, set.run.as_str(), &detail)
        .await?;
    Ok(info)
}

/// Inserts puzzles that the run does not have, counted from `first`: ordinals have no gaps, so it
/// is the number of puzzles that there are.
async fn insert(
    conn: &mut AnyConnection,
    run: i64,
    set: i64,
    first: usize,
    puzzles: &[(&str, String)],
) -> Result<()> {
    let numbered: Vec<_> = (first as i64..).zip(puzzles).collect();
    for part in numbered.chunks(ROWS) {
        let mut query =
            Statement::new("INSERT INTO puzzles (run_id, ordinal, set_id, puzzle, content)");
        query.rows(part, |row, (ordinal, (puzzle, content))| {
            row.bind(run)?.bind(*ordinal)?.bind(set)?;
            row.bind(*puzzle)?.bind(content.as_str())?;
            Ok(())
        })?;
        query.execute(conn).await?;
    }
    Ok(())
}

async fn sets(conn: &mut AnyConnection, run: &RunName) -> Result<Vec<PuzzleSetInfo>> {
    let rows: Vec<(Vec<u8>, String, i64, i64)> = sqlx::query_as(
        "SELECT hash, name, puzzles, added_at FROM puzzle_sets WHERE run_id = $1 AND puzzles > 0
         ORDER BY id",
    )
    .bind(runs::id_of(conn, run).await?)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|(bytes, name, puzzles, added_at)| {
            Ok(PuzzleSetInfo {
                hash: hash(&bytes)?,
                name,
                puzzles: to_u32("number of puzzles", puzzles)?,
                added_at: time_text(added_at)?,
            })
        })
        .collect()
}

/// The groups in which a puzzle game counts, with tried and solved.
pub(crate) type Groups = BTreeMap<(&'static str, String), (u64, u64)>;

/// How a chunk's puzzle games count.
pub(crate) fn groups(games: &[GameFact]) -> Groups {
    let mut groups = Groups::new();
    for game in games {
        let GameFactDetail::Puzzle {
            solved,
            rating,
            themes,
            ..
        } = &game.detail
        else {
            continue;
        };
        count_game(&mut groups, *solved, *rating, themes);
    }
    groups
}

/// Counts one puzzle game in all its groups.
pub(crate) fn count_game(groups: &mut Groups, solved: bool, rating: u32, themes: &[String]) {
    let band = (rating > 0).then(|| ("rating", rating_band(rating)));
    let themes = themes.iter().map(|theme| ("theme", theme.clone()));
    for group in std::iter::once(("all", String::new()))
        .chain(themes)
        .chain(band)
    {
        let (tried, solved_of) = groups.entry(group).or_default();
        *tried += 1;
        *solved_of += u64::from(solved);
    }
}

/// Adds puzzle games to the scores of a network of a run if they count from now on, and takes them out if they no longer do.
pub(crate) async fn move_scores(
    conn: &mut AnyConnection,
    (run, network): (i64, i64),
    groups: &Groups,
    state: ChunkStatus,
) -> Result<()> {
    let groups: Vec<_> = groups.iter().collect();
    for part in parts(&groups) {
        let mut query = Statement::new(
            "INSERT INTO puzzle_scores (run_id, network, kind, name, tried, solved)",
        );
        query.rows(part, |row, ((kind, name), (tried, solved))| {
            row.bind(run)?
                .bind(network)?
                .bind(*kind)?
                .bind(name.clone())?
                .bind(count(*tried))?
                .bind(count(*solved))?;
            Ok(())
        })?;
        query.push(" ON CONFLICT (run_id, network, kind, name) DO UPDATE SET ");
        query.push(match state {
            ChunkStatus::Counted => {
                "tried = puzzle_scores.tried + excluded.tried,
                 solved = puzzle_scores.solved + excluded.solved"
            }
            ChunkStatus::Excluded => {
                "tried = puzzle_scores.tried - excluded.tried,
                 solved = puzzle_scores.solved - excluded.solved"
            }
        });
        query.execute(&mut *conn).await?;
    }
    if state == ChunkStatus::Excluded {
        sqlx::query("DELETE FROM puzzle_scores WHERE run_id = $1 AND network = $2 AND tried = 0")
            .bind(run)
            .bind(network)
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// A group of a network's puzzles: kind, name, tried, solved.
type ScoreRow = (String, String, i64, i64);

pub(crate) async fn score(conn: &mut AnyConnection, run: i64, network: i64) -> Result<PuzzleScore> {
    let mut scores = scores(conn, run, network..=network).await?;
    Ok(scores.remove(&network).unwrap_or_default())
}

/// How the networks of a run did that have these numbers, by their numbers.
pub(crate) async fn scores(
    conn: &mut AnyConnection,
    run: i64,
    numbers: RangeInclusive<i64>,
) -> Result<BTreeMap<i64, PuzzleScore>> {
    let rows: Vec<(i64, String, String, i64, i64)> = sqlx::query_as(
        "SELECT network, kind, name, tried, solved FROM puzzle_scores
         WHERE run_id = $1 AND network BETWEEN $2 AND $3",
    )
    .bind(run)
    .bind(*numbers.start())
    .bind(*numbers.end())
    .fetch_all(conn)
    .await?;
    let mut networks: BTreeMap<i64, Vec<ScoreRow>> = BTreeMap::new();
    for (network, kind, name, tried, solved) in rows {
        let rows = networks.entry(network).or_default();
        rows.push((kind, name, tried, solved));
    }
    let scores = networks.into_iter();
    Ok(scores
        .map(|(network, rows)| (network, score_of(rows)))
        .collect())
}

fn score_of(mut rows: Vec<ScoreRow>) -> PuzzleScore {
    rows.sort_by_cached_key(|(_, name, ..)| (lowest(name), name.clone()));
    let mut score = PuzzleScore::default();
    for (kind, name, tried, solved) in rows {
        let (tried, solved) = (to_count(tried), to_count(solved));
        match kind.as_str() {
            "theme" => score.themes.push(PuzzleGroup {
                name,
                tried,
                solved,
            }),
            "rating" => score.ratings.push(PuzzleGroup {
                name,
                tried,
                solved,
            }),
            _ => (score.tried, score.solved) = (tried, solved),
        }
    }
    let band = |group: &PuzzleGroup| Tasks {
        rating: f64::from(lowest(&group.name)) + f64::from(RATING_BAND / 2),
        tried: group.tried,
        solved: group.solved,
    };
    score.performance = performance(&score.ratings.iter().map(band).collect::<Vec<_>>());
    score
}

/// The lower end of a rating band; 0 of a theme.
fn lowest(name: &str) -> u32 {
    let (low, _) = name.split_once('-').unwrap_or((name, ""));
    low.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rating_that_a_puzzle_can_have_is_scored() {
        for rating in [1, 1500, u32::MAX] {
            let row = ("rating".to_owned(), rating_band(rating), 4, 2);
            let score = score_of(vec![row]);
            assert_eq!(score.ratings.len(), 1, "{rating}");
        }
    }
}
