//! Games as facts: entering, refusing repetitions, listing.

use std::collections::HashSet;

use rookery_common::chunk::Side;
use rookery_common::ids::{GameId, MatchId, NetworkNumber};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, GameRefusal, Result};
use crate::db::models::accepted_chunk::AcceptedChunk;
use crate::db::models::leases::JobRow;
use crate::db::models::{runs, users};
use crate::db::sql::rows::{hash, job_bytes, name_of, named, time_text, to_u32, unreadable};
use crate::db::sql::statement::{LISTED, Statement, parts};
use crate::db::types::{ChunkDraft, GameFact, GameFactDetail, GameFilter};

/// Says which game of a chunk was counted before, by index or by content, if one was. Games of
/// the chunk itself (`sequence`) that are in the ledger do not count.
async fn refuse_repeated(
    conn: &mut AnyConnection,
    job: &JobRow,
    sequence: i64,
    chunk: &ChunkDraft,
) -> Result<()> {
    let refuse = |place: usize, reason| DbError::Game {
        game: place as u32,
        reason,
    };
    if job.games_counted > 0 {
        let counted: Vec<i64> =
            sqlx::query_scalar("SELECT game_index FROM games WHERE job_id = $1 AND chunk <> $2")
                .bind(job_bytes(chunk.job))
                .bind(sequence)
                .fetch_all(&mut *conn)
                .await?;
        let counted: HashSet<i64> = counted.into_iter().collect();
        let twice = chunk
            .games
            .iter()
            .position(|game| counted.contains(&i64::from(game.index)));
        if let Some(place) = twice {
            return Err(refuse(place, GameRefusal::IndexCounted));
        }
    }
    let mut seen = HashSet::new();
    let twice = chunk
        .games
        .iter()
        .position(|game| game.fingerprint.is_some_and(|print| !seen.insert(print)));
    if let Some(place) = twice {
        return Err(refuse(place, GameRefusal::Duplicate));
    }
    let known = known_fingerprints(conn, job.run_id, sequence, &chunk.games).await?;
    let twice = chunk.games.iter().position(|game| {
        game.fingerprint
            .is_some_and(|print| known.contains(&print[..]))
    });
    match twice {
        Some(place) => Err(refuse(place, GameRefusal::Duplicate)),
        None => Ok(()),
    }
}

/// Those of the games' fingerprints that other chunks of the run have.
async fn known_fingerprints(
    conn: &mut AnyConnection,
    run: i64,
    sequence: i64,
    games: &[GameFact],
) -> Result<HashSet<Vec<u8>>> {
    let prints: Vec<Vec<u8>> = games
        .iter()
        .filter_map(|game| game.fingerprint.map(|print| print.to_vec()))
        .collect();
    let mut known = HashSet::new();
    for prints in prints.chunks(LISTED) {
        let mut query = Statement::new("SELECT fingerprint FROM games WHERE run_id = ");
        query.bind(run)?.push(" AND chunk <> ");
        query.bind(sequence)?.push(" AND fingerprint IN (");
        query.bind_all(prints)?.push(")");
        let (sql, arguments) = query.finish();
        let rows: Vec<Vec<u8>> = sqlx::query_scalar_with(sql, arguments)
            .fetch_all(&mut *conn)
            .await?;
        known.extend(rows);
    }
    Ok(known)
}

/// A game's columns that depend on its kind.
struct Particular {
    kind: WorkKind,
    white: NetworkNumber,
    black: NetworkNumber,
    pair: Option<u32>,
    puzzle: Option<String>,
    solved: Option<bool>,
}

fn particular(
    game: &GameFact,
    (candidate, opponent): (NetworkNumber, NetworkNumber),
) -> Particular {
    let plain = Particular {
        kind: WorkKind::SelfPlay,
        white: candidate,
        black: opponent,
        pair: None,
        puzzle: None,
        solved: None,
    };
    match &game.detail {
        GameFactDetail::SelfPlay => plain,
        GameFactDetail::Audit => Particular {
            kind: WorkKind::Audit,
            ..plain
        },
        GameFactDetail::Puzzle { id, solved, .. } => Particular {
            kind: WorkKind::Puzzles,
            puzzle: Some(id.clone()),
            solved: Some(*solved),
            ..plain
        },
        GameFactDetail::Match {
            pair,
            candidate: Side::White,
        } => Particular {
            kind: WorkKind::Match,
            pair: Some(*pair),
            ..plain
        },
        GameFactDetail::Match {
            pair,
            candidate: Side::Black,
        } => Particular {
            kind: WorkKind::Match,
            pair: Some(*pair),
            white: opponent,
            black: candidate,
            ..plain
        },
    }
}

/// A game that is to be entered.
struct Row<'a> {
    of: &'a AcceptedChunk<'a>,
    /// In the chunk.
    place: usize,
    game: &'a GameFact,
}

/// Enters the games of chunks, or refuses them all for one that was counted before.
pub(in crate::db) async fn insert(
    conn: &mut AnyConnection,
    chunks: &[&AcceptedChunk<'_>],
) -> Result<()> {
    let rows: Vec<Row<'_>> = chunks
        .iter()
        .flat_map(|of| {
            let games = of.chunk.games.iter().enumerate();
            games.map(|(place, game)| Row { of, place, game })
        })
        .collect();
    let mut entered = 0;
    for part in parts(&rows) {
        entered += insert_rows(conn, part).await?;
    }
    if entered == rows.len() as u64 {
        return Ok(());
    }
    for of in chunks {
        refuse_repeated(conn, of.job, of.sequence, of.chunk).await?;
    }
    let detail = format!("{entered} of {} games were entered", rows.len());
    Err(unreadable("uniqueness of games", &detail))
}

/// Enters games and says how many the ledger did not have: its own uniqueness finds those that are
/// repeated, and which ones is asked only then.
async fn insert_rows(conn: &mut AnyConnection, rows: &[Row<'_>]) -> Result<u64> {
    let mut query = Statement::new(
        "INSERT INTO games (run_id, chunk, place, job_id, game_index, kind, white, black,
           match_id, pair, puzzle, solved, result, termination, plies, fingerprint)",
    );
    query.rows(rows, |row, Row { of, place, game }| {
        let own = particular(game, of.networks);
        row.bind(of.job.run_id)?
            .bind(of.sequence)?
            .bind(*place as i64)?
            .bind(job_bytes(of.chunk.job))?
            .bind(i64::from(game.index))?
            .bind(own.kind.name())?
            .bind(i64::from(own.white.0))?
            .bind(i64::from(own.black.0))?
            .bind(of.job.match_id)?
            .bind(own.pair.map(i64::from))?
            .bind(own.puzzle)?
            .bind(own.solved.map(i64::from))?
            .bind(name_of(&game.result)?)?
            .bind(name_of(&game.termination)?)?
            .bind(i64::from(game.plies))?
            .bind(game.fingerprint.map(|print| print.to_vec()))?;
        Ok(())
    })?;
    query.push(" ON CONFLICT DO NOTHING");
    let (sql, arguments) = query.finish();
    let done = sqlx::query_with(sql, arguments).execute(conn).await?;
    Ok(done.rows_affected())
}

#[derive(FromRow)]
struct GameRow {
    id: i64,
    run: String,
    kind: String,
    white: i64,
    black: i64,
    match_id: Option<i64>,
    puzzle: Option<String>,
    solved: Option<i64>,
    result: String,
    termination: String,
    plies: i64,
    contributor: String,
    hash: Vec<u8>,
    place: i64,
    accepted_at: i64,
}

impl GameRow {
    fn into_info(self) -> Result<GameInfo> {
        Ok(GameInfo {
            id: GameId(self.id),
            run: self
                .run
                .parse()
                .map_err(|error| unreadable("run", &error))?,
            kind: WorkKind::from_name(&self.kind)
                .ok_or_else(|| unreadable("kind of game", &&self.kind))?,
            white: NetworkNumber(to_u32("network", self.white)?),
            black: NetworkNumber(to_u32("network", self.black)?),
            match_id: self.match_id.map(MatchId),
            puzzle: self.puzzle,
            solved: self.solved.map(|solved| solved != 0),
            result: named("result", &self.result)?,
            termination: named("termination", &self.termination)?,
            plies: to_u32("plies", self.plies)?,
            contributor: self.contributor,
            chunk: hash(&self.hash)?,
            place: to_u32("place", self.place)?,
            accepted_at: time_text(self.accepted_at)?,
        })
    }
}

const SELECT: &str = "SELECT g.id, r.name AS run, g.kind, g.white, g.black, g.match_id, g.puzzle,
       g.solved, g.result, g.termination, g.plies, u.name AS contributor, c.hash, g.place,
       c.accepted_at
     FROM games g JOIN chunks c ON c.sequence = g.chunk JOIN runs r ON r.id = g.run_id
       JOIN users u ON u.id = c.user_id ";

pub(in crate::db) async fn list(
    conn: &mut AnyConnection,
    filter: &GameFilter,
) -> Result<Vec<GameInfo>> {
    let run = match &filter.run {
        Some(run) => Some(runs::id_of(conn, run).await?),
        None => None,
    };
    let contributor = match &filter.contributor {
        Some(name) => Some(users::id_of(conn, name).await?),
        None => None,
    };
    let (sql, arguments) = chosen(filter, run, contributor)?.finish();
    let rows: Vec<GameRow> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    rows.into_iter().map(GameRow::into_info).collect()
}

/// The query that chooses games. Anybody may ask for them, so no filter looks through all that there are.
fn chosen(filter: &GameFilter, run: Option<i64>, contributor: Option<i64>) -> Result<Statement> {
    let mut query = Statement::new(SELECT);
    match (contributor, filter.network) {
        (Some(user), _) => newest_of(&mut query, filter, run, user)?,
        (None, None) => {
            query.push("WHERE TRUE");
            newest(&mut query, filter, run)?;
        }
        (None, Some(network)) if filter.kind == Some(WorkKind::Match) => {
            of_matches(&mut query, filter, run, network)?;
        }
        (None, Some(network)) => {
            // An index for each side: neither serves a condition that joins them by OR.
            query.push("WHERE g.id IN (SELECT id FROM (");
            of_side(&mut query, "white", network, filter, run)?;
            query.push(") AS w UNION SELECT id FROM (");
            of_side(&mut query, "black", network, filter, run)?;
            query.push(") AS b) ORDER BY g.id DESC LIMIT ");
            query.bind(i64::from(filter.limit))?;
        }
    }
    Ok(query)
}

/// Adds all conditions for match games in which a network plays, and how many are wanted. Its matches lead to them: among
/// its games there may be a thousand others for each.
fn of_matches(
    query: &mut Statement,
    filter: &GameFilter,
    run: Option<i64>,
    network: NetworkNumber,
) -> Result<()> {
    let number = i64::from(network.0);
    query.push("WHERE g.match_id IN (SELECT m.id FROM matches m WHERE (m.candidate = ");
    query.bind(number)?.push(" OR m.opponent = ");
    query.bind(number)?.push(")");
    if let Some(run) = run {
        query.push(" AND m.run_id = ").bind(run)?;
        // With the plus no database takes the index of the run's games instead.
        query.push(") AND +g.run_id = ").bind(run)?;
    } else {
        query.push(")");
    }
    newest(query, filter, None)
}

/// Adds a query for games that a network plays on one side, and how many are wanted. No index finds the kind among them, so
/// it is looked for in the newest of them.
fn of_side(
    query: &mut Statement,
    side: &'static str,
    network: NetworkNumber,
    filter: &GameFilter,
    run: Option<i64>,
) -> Result<()> {
    let number = i64::from(network.0);
    query.push("SELECT g.id FROM games g WHERE g.").push(side);
    query.push(" = ").bind(number)?;
    if filter.kind.is_some() {
        query.push(" AND g.id >= COALESCE((SELECT n.id FROM games n WHERE n.");
        query.push(side).push(" = ").bind(number)?;
        if let Some(run) = run {
            query.push(" AND n.run_id = ").bind(run)?;
        }
        if let Some(before) = filter.before {
            query.push(" AND n.id < ").bind(before.0)?;
        }
        query.push(" ORDER BY n.id DESC LIMIT 1 OFFSET ");
        query.bind(LOOKED_THROUGH)?.push("), 0)");
    }
    newest(query, filter, run)
}

/// Adds a filter's conditions but the network to those of a query, and how many games are wanted.
fn newest(query: &mut Statement, filter: &GameFilter, run: Option<i64>) -> Result<()> {
    if let Some(run) = run {
        query.push(" AND g.run_id = ").bind(run)?;
    }
    match filter.kind {
        Some(kind) => query.push(" AND g.kind = ").bind(kind.name())?,
        // What audits search again are no games.
        None => query.push(" AND g.kind <> 'audit'"),
    };
    narrow(query, filter)?;
    let limit = i64::from(filter.limit);
    query.push(" ORDER BY g.id DESC LIMIT ").bind(limit)?;
    Ok(())
}

/// Adds all conditions for games that a contributor sent, and how many are wanted. Indexes lead to
/// the contributor's newest chunks and from their jobs to the games: so many chunks hold as many
/// games, but the first of them perhaps none before the one that is named.
fn newest_of(
    query: &mut Statement,
    filter: &GameFilter,
    run: Option<i64>,
    user: i64,
) -> Result<()> {
    query.push("WHERE g.job_id = c.job_id AND c.sequence IN (SELECT k.sequence FROM chunks k");
    query.push(" WHERE k.user_id = ").bind(user)?;
    if let Some(run) = run {
        // With the plus no database takes the index of the run's chunks instead.
        query.push(" AND +k.run_id = ").bind(run)?;
    }
    match filter.kind {
        Some(kind) => query.push(" AND k.kind = ").bind(kind.name())?,
        None => query.push(" AND k.kind <> 'audit'"),
    };
    if let Some(before) = filter.before {
        query.push(" AND k.sequence <= (SELECT b.chunk FROM games b WHERE b.id <= ");
        query.bind(before.0)?.push(" ORDER BY b.id DESC LIMIT 1)");
    }
    if filter.network.is_some() || filter.match_id.is_some() || filter.is_searched() {
        query.push(
            " AND k.sequence >= COALESCE((SELECT l.sequence FROM chunks l WHERE l.user_id = ",
        );
        query.bind(user)?;
        if let Some(before) = filter.before {
            query.push(" AND l.sequence <= (SELECT b.chunk FROM games b WHERE b.id <= ");
            query.bind(before.0)?.push(" ORDER BY b.id DESC LIMIT 1)");
        }
        query.push(" ORDER BY l.sequence DESC LIMIT 1 OFFSET ");
        query.bind(CHUNKS_LOOKED_THROUGH)?.push("), 0)");
        query.push(" AND EXISTS (SELECT 1 FROM games g WHERE g.job_id = k.job_id");
        query.push(" AND g.chunk = k.sequence");
        of_either(query, filter.network)?;
        narrow(query, filter)?;
        query.push(")");
    }
    let limit = i64::from(filter.limit);
    query.push(" ORDER BY k.sequence DESC LIMIT ");
    query.bind(limit + 1)?.push(")");
    of_either(query, filter.network)?;
    narrow(query, filter)?;
    query.push(" ORDER BY g.id DESC LIMIT ").bind(limit)?;
    Ok(())
}

/// Adds the condition that a network plays on either side.
fn of_either(query: &mut Statement, network: Option<NetworkNumber>) -> Result<()> {
    if let Some(network) = network {
        let number = i64::from(network.0);
        query.push(" AND (g.white = ").bind(number)?;
        query.push(" OR g.black = ").bind(number)?.push(")");
    }
    Ok(())
}

/// How many games are looked through for what no index finds: where nearly all are drawn, wins are far apart.
const LOOKED_THROUGH: i64 = 200_000;
/// The same for chunks of a contributor, whose games are found by their jobs.
const CHUNKS_LOOKED_THROUGH: i64 = 20_000;

/// Adds the conditions on match, end, length and place in the list.
fn narrow(query: &mut Statement, filter: &GameFilter) -> Result<()> {
    if let Some(id) = filter.match_id {
        query.push(" AND g.match_id = ").bind(id.0)?;
    }
    if let Some(before) = filter.before {
        query.push(" AND g.id < ").bind(before.0)?;
    }
    if let Some(result) = filter.result {
        query.push(" AND g.result = ").bind(name_of(&result)?)?;
    }
    if let Some(termination) = filter.termination {
        query
            .push(" AND g.termination = ")
            .bind(name_of(&termination)?)?;
    }
    if let Some((least, most)) = filter.plies {
        query.push(" AND g.plies >= ").bind(i64::from(least))?;
        query.push(" AND g.plies <= ").bind(i64::from(most))?;
    }
    if filter.is_searched() {
        query.push(" AND g.id >= ");
        match filter.before {
            Some(before) => query.bind(before.0.saturating_sub(LOOKED_THROUGH))?,
            None => query
                .push("(SELECT max(n.id) FROM games n) - ")
                .bind(LOOKED_THROUGH)?,
        };
    }
    Ok(())
}

/// The games before and after one, of its match or else of its run and kind.
pub(in crate::db) async fn beside(
    conn: &mut AnyConnection,
    game: &GameInfo,
) -> Result<[Option<GameId>; 2]> {
    let run = runs::id_of(conn, &game.run).await?;
    let mut found = [None; 2];
    for (place, (end, side)) in [("max", "<"), ("min", ">")].into_iter().enumerate() {
        let mut query = Statement::new("SELECT ");
        query.push(end).push("(g.id) FROM games g WHERE ");
        match game.match_id {
            Some(id) => query.push("g.match_id = ").bind(id.0)?,
            None => {
                query.push("g.run_id = ").bind(run)?;
                query.push(" AND g.kind = ").bind(game.kind.name())?
            }
        };
        query.push(" AND g.id ").push(side).push(" ");
        query.bind(game.id.0)?;
        let (sql, arguments) = query.finish();
        let id: Option<i64> = sqlx::query_scalar_with(sql, arguments)
            .fetch_one(&mut *conn)
            .await?;
        found[place] = id.map(GameId);
    }
    Ok(found)
}

pub(in crate::db) async fn one(conn: &mut AnyConnection, id: GameId) -> Result<GameInfo> {
    let mut query = Statement::new(SELECT);
    query.push("WHERE g.id = ").bind(id.0)?;
    let (sql, arguments) = query.finish();
    let row: Option<GameRow> = sqlx::query_as_with(sql, arguments)
        .fetch_optional(conn)
        .await?;
    row.ok_or_else(|| DbError::NotFound(format!("game number {id}")))?
        .into_info()
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _};

    use super::*;

    const SCHEMA: &str = include_str!("../../../migrations/sqlite/0100_ledger.sql");

    /// How SQLite finds the games.
    async fn plan(filter: &GameFilter, contributor: Option<i64>) -> String {
        sqlx::any::install_default_drivers();
        let mut conn = AnyConnection::connect("sqlite::memory:").await.unwrap();
        sqlx::raw_sql(SCHEMA).execute(&mut conn).await.unwrap();
        let (sql, arguments) = chosen(filter, Some(1), contributor).unwrap().finish();
        let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.0));
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as_with(sql, arguments)
            .fetch_all(&mut conn)
            .await
            .unwrap();
        let steps = steps.into_iter().map(|(.., detail)| detail);
        steps.collect::<Vec<_>>().join("; ")
    }

    /// A network has a thousand games of training for each match game, and anybody may ask for either.
    #[tokio::test]
    async fn no_filter_looks_through_all_games_of_a_network_or_contributor() {
        let filter = |kind, network| GameFilter {
            kind,
            network,
            limit: 50,
            ..GameFilter::default()
        };
        let network = Some(NetworkNumber(3));
        let of_matches = plan(&filter(Some(WorkKind::Match), network), None).await;
        assert!(
            of_matches.contains("games_of_match") && !of_matches.contains("games_of_white"),
            "{of_matches}"
        );
        let of_kind = plan(&filter(Some(WorkKind::Puzzles), network), None).await;
        for index in ["games_of_white", "games_of_black"] {
            let bound = format!("n USING COVERING INDEX {index}");
            assert!(of_kind.contains(&bound), "{of_kind}");
        }
        let of_contributor = plan(&filter(None, network), Some(7)).await;
        let bound = "l USING COVERING INDEX chunks_of_user";
        assert!(of_contributor.contains(bound), "{of_contributor}");
    }
}
