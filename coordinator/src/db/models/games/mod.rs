//! Games as facts: entering, refusing repetitions, showing. `list` finds those of a filter, `openings` names what
//! older builds did not.

mod list;
mod openings;

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
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{hash, job_bytes, network, parse, time_text, to_u32, unreadable};
use crate::db::sql::statement::{LISTED, Statement, parts};
use crate::db::types::{ChunkDraft, GameFact, GameFactDetail};

impl Ledger {
    pub async fn game(&self, id: GameId) -> Result<GameInfo> {
        read!(self, "games", |conn| async {
            let mut query = Statement::new(SELECT);
            query.push("WHERE g.id = ").bind(id.0)?;
            let row: Option<GameRow> = query.fetch_optional(conn).await?;
            row.ok_or_else(|| DbError::NotFound(format!("game number {id}")))?
                .into_info()
        })
    }

    /// The games before and after one, of its match or else of its run and kind.
    pub async fn games_beside(&self, game: &GameInfo) -> Result<[Option<GameId>; 2]> {
        read!(self, "games", |conn| async {
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
                let (id,): (Option<i64>,) = query.fetch_one(&mut *conn).await?;
                found[place] = id.map(GameId);
            }
            Ok(found)
        })
    }
}

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
        let rows: Vec<(Vec<u8>,)> = query.fetch_all(&mut *conn).await?;
        known.extend(rows.into_iter().map(|(print,)| print));
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

struct Row<'a> {
    of: &'a AcceptedChunk<'a>,
    /// In the chunk.
    place: usize,
    game: &'a GameFact,
}

/// Enters the games of chunks, or refuses them all for one that was counted before.
pub(crate) async fn insert(conn: &mut AnyConnection, chunks: &[&AcceptedChunk<'_>]) -> Result<()> {
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
           match_id, pair, puzzle, solved, result, termination, plies, eco, opening, fingerprint)",
    );
    query.rows(rows, |row, Row { of, place, game }| {
        let own = particular(game, of.networks);
        let named = own.kind != WorkKind::Audit;
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
            .bind(game.result.name())?
            .bind(game.termination.name())?
            .bind(i64::from(game.plies))?
            .bind(named.then(|| openings::code(game.opening)))?
            .bind(
                game.opening
                    .filter(|_| named)
                    .map(|opening| opening.family()),
            )?
            .bind(game.fingerprint.map(|print| print.to_vec()))?;
        Ok(())
    })?;
    query.push(" ON CONFLICT DO NOTHING");
    query.affected(conn).await
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
    eco: Option<String>,
    opening: Option<String>,
    contributor: String,
    hash: Vec<u8>,
    place: i64,
    accepted_at: i64,
}

impl GameRow {
    fn into_info(self) -> Result<GameInfo> {
        Ok(GameInfo {
            id: GameId(self.id),
            run: parse("run", &self.run)?,
            kind: parse("kind of game", &self.kind)?,
            white: network(self.white)?,
            black: network(self.black)?,
            match_id: self.match_id.map(MatchId),
            puzzle: self.puzzle,
            solved: self.solved.map(|solved| solved != 0),
            result: parse("result", &self.result)?,
            termination: parse("termination", &self.termination)?,
            plies: to_u32("plies", self.plies)?,
            eco: self.opening.is_some().then_some(self.eco).flatten(),
            opening_name: self.opening,
            contributor: self.contributor,
            chunk: hash(&self.hash)?,
            place: to_u32("place", self.place)?,
            accepted_at: time_text(self.accepted_at)?,
        })
    }
}

const SELECT: &str = "SELECT g.id, r.name AS run, g.kind, g.white, g.black, g.match_id, g.puzzle,
       g.solved, g.result, g.termination, g.plies, g.eco, g.opening, u.name AS contributor, c.hash, g.place,
       c.accepted_at
     FROM games g JOIN chunks c ON c.sequence = g.chunk JOIN runs r ON r.id = g.run_id
       JOIN users u ON u.id = c.user_id ";
