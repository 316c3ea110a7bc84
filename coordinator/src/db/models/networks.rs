//! Networks: submission, promotion and what the pages show of them.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, MatchId, NetworkNumber, RunName};
use rookery_common::protocol::API_PREFIX;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::NetworkRef;
use rookery_common::protocol::networks::{
    NetworkExport, NetworkInfo, NetworkName, NetworkStatus, PuzzleScore, Rating,
};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::conditions::best_since;
use crate::db::models::runs::{self, Run};
use crate::db::models::{anchors, exports, puzzles};
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{from_json, hash, network, parse, time_text, to_count, unreadable};

impl Ledger {
    /// Networks of a run, newest first.
    pub async fn networks(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        read!(self, "networks", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let rows = of_run(conn, run).await?;
            let exports = exports::of_run(conn, run).await?;
            let mut scores = puzzles::scores(conn, run, 0..=i64::MAX).await?;
            into_infos(rows, exports, |row| scores.remove(&row.number))
        })
    }

    /// The same, of puzzles only how many each network tried and solved.
    pub async fn networks_in_short(&self, run: &RunName) -> Result<Vec<NetworkInfo>> {
        read!(self, "networks", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let rows = of_run(conn, run).await?;
            let exports = exports::of_run(conn, run).await?;
            into_infos(rows, exports, |row| Some(row.solved()))
        })
    }

    pub async fn network(&self, run: &RunName, name: NetworkName) -> Result<NetworkInfo> {
        read!(self, "networks", |conn| load_info(conn, run, name))
    }

    /// A network by its file, in whichever run.
    pub async fn network_by_hash(&self, hash: &ContentHash) -> Result<NetworkInfo> {
        read!(self, "networks", |conn| by_hash(conn, hash))
    }
}

#[derive(FromRow)]
struct NetworkRow {
    run: String,
    run_id: i64,
    number: i64,
    hash: Vec<u8>,
    bytes: i64,
    spec: String,
    status: String,
    gate_id: Option<i64>,
    submitted_at: i64,
    training_games: i64,
    positions: Option<i64>,
    elo: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    rated_games: Option<i64>,
    tried: Option<i64>,
    solved: Option<i64>,
    name: Option<String>,
    anchor_elo: Option<f64>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.name AS run, n.run_id, n.number, n.hash, n.bytes, n.spec, n.status, n.gate_id,
               n.submitted_at, n.training_games, n.positions, n.name, n.anchor_elo,
               a.elo, a.low, a.high, a.games AS rated_games, p.tried, p.solved
             FROM networks n JOIN runs r ON r.id = n.run_id
             LEFT JOIN ratings a ON a.run_id = n.run_id AND a.network = n.number
             LEFT JOIN puzzle_scores p ON p.run_id = n.run_id AND p.network = n.number
               AND p.kind = 'all' AND p.name = '' ",
            $rest
        )
    };
}

impl NetworkRow {
    fn rating(&self) -> Option<Rating> {
        Some(Rating {
            elo: self.elo?,
            low: self.low?,
            high: self.high?,
            games: to_count(self.rated_games?),
        })
    }

    /// How many puzzles it solved, of all that it tried.
    fn solved(&self) -> PuzzleScore {
        PuzzleScore {
            tried: self.tried.map_or(0, to_count),
            solved: self.solved.map_or(0, to_count),
            ..PuzzleScore::default()
        }
    }

    /// What is told of one network alone.
    async fn alone(self, conn: &mut AnyConnection) -> Result<NetworkInfo> {
        let score = puzzles::score(conn, self.run_id, self.number).await?;
        let exports = exports::of_network(conn, &hash(&self.hash)?).await?;
        self.into_info(score, exports)
    }

    fn into_info(self, score: PuzzleScore, exports: Vec<NetworkExport>) -> Result<NetworkInfo> {
        let number = network(self.number)?;
        let (hash, rating) = (hash(&self.hash)?, self.rating());
        let anchor = self.name.map(|name| parse("name", &name)).transpose()?;
        Ok(NetworkInfo {
            run: parse("run", &self.run)?,
            number,
            anchor,
            anchor_elo: anchors::elo(self.anchor_elo)?,
            hash,
            bytes: to_count(self.bytes),
            spec: from_json("network specification", &self.spec)?,
            status: parse("network status", &self.status)?,
            gate: self.gate_id.map(MatchId),
            rating,
            puzzles: (score.tried > 0).then_some(score),
            training_games: to_count(self.training_games),
            positions: self.positions.map(to_count),
            submitted_at: time_text(self.submitted_at)?,
            file: format!("{API_PREFIX}/networks/{hash}/file"),
            exports,
        })
    }
}

/// The rows of a run's networks, newest first.
async fn of_run(conn: &mut AnyConnection, run: i64) -> Result<Vec<NetworkRow>> {
    let rows: Vec<NetworkRow> =
        sqlx::query_as(select!("WHERE n.run_id = $1 ORDER BY n.number DESC"))
            .bind(run)
            .fetch_all(conn)
            .await?;
    Ok(rows)
}

fn into_infos(
    rows: Vec<NetworkRow>,
    mut exports: HashMap<ContentHash, Vec<NetworkExport>>,
    mut score: impl FnMut(&NetworkRow) -> Option<PuzzleScore>,
) -> Result<Vec<NetworkInfo>> {
    let mut infos = Vec::with_capacity(rows.len());
    for row in rows {
        let exports = exports.remove(&hash(&row.hash)?).unwrap_or_default();
        let score = score(&row).unwrap_or_default();
        infos.push(row.into_info(score, exports)?);
    }
    Ok(infos)
}

pub(crate) async fn load_info(
    conn: &mut AnyConnection,
    run: &RunName,
    name: NetworkName,
) -> Result<NetworkInfo> {
    let id = runs::id_of(conn, run).await?;
    let query = match name {
        NetworkName::Hash(hash) => sqlx::query_as(select!("WHERE n.run_id = $1 AND n.hash = $2"))
            .bind(id)
            .bind(hash.as_bytes().to_vec()),
        NetworkName::Number(number) => {
            sqlx::query_as(select!("WHERE n.run_id = $1 AND n.number = $2"))
                .bind(id)
                .bind(i64::from(number.0))
        }
        NetworkName::Best => {
            sqlx::query_as(select!("WHERE n.run_id = $1 AND n.number = r.best")).bind(id)
        }
    };
    let row: Option<NetworkRow> = query.fetch_optional(&mut *conn).await?;
    let row = row.ok_or_else(|| DbError::NotFound(format!("{} in run {run}", described(name))))?;
    row.alone(conn).await
}

/// What is not found, in words.
fn described(name: NetworkName) -> String {
    match name {
        NetworkName::Hash(hash) => format!("network {hash}"),
        NetworkName::Number(number) => format!("network number {number}"),
        NetworkName::Best => "best network yet".to_owned(),
    }
}

/// A network of the first run that has it and is not deleted.
pub(crate) async fn by_hash(conn: &mut AnyConnection, hash: &ContentHash) -> Result<NetworkInfo> {
    let row: Option<NetworkRow> = sqlx::query_as(select!(
        "WHERE n.hash = $1 AND n.run_id IN (SELECT id FROM runs WHERE deleted_at IS NULL)
             ORDER BY n.run_id LIMIT 1"
    ))
    .bind(&hash.as_bytes()[..])
    .fetch_optional(&mut *conn)
    .await?;
    let row = row.ok_or_else(|| DbError::NotFound(format!("network {hash}")))?;
    row.alone(conn).await
}

/// What a job says of a network.
pub(crate) async fn reference(
    conn: &mut AnyConnection,
    run: i64,
    number: NetworkNumber,
) -> Result<NetworkRef> {
    let (bytes, size): (Vec<u8>, i64) =
        sqlx::query_as("SELECT hash, bytes FROM networks WHERE run_id = $1 AND number = $2")
            .bind(run)
            .bind(i64::from(number.0))
            .fetch_optional(conn)
            .await?
            .ok_or_else(|| DbError::NotFound(format!("network number {number}")))?;
    reference_of(&bytes, number, size)
}

pub(crate) fn reference_of(bytes: &[u8], number: NetworkNumber, size: i64) -> Result<NetworkRef> {
    Ok(NetworkRef {
        hash: hash(bytes)?,
        number,
        bytes: to_count(size),
        signature: None,
    })
}

/// Whether one of two networks of a run is a program.
pub(crate) async fn any_program(
    conn: &mut AnyConnection,
    run: i64,
    networks: [NetworkNumber; 2],
) -> Result<bool> {
    let [one, other] = networks.map(|number| i64::from(number.0));
    let programs: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM networks
         WHERE run_id = $1 AND (number = $2 OR number = $3) AND program IS NOT NULL",
    )
    .bind(run)
    .bind(one)
    .bind(other)
    .fetch_one(conn)
    .await?;
    Ok(programs > 0)
}

/// `now`, or the moment after the run's last promotion if the clock was set back behind it: the
/// order of promotions is the order of their times.
pub(crate) async fn after_promotions(
    conn: &mut AnyConnection,
    run: i64,
    now: Timestamp,
) -> Result<Timestamp> {
    let last: Option<i64> = sqlx::query_scalar(concat!(
        "SELECT max(",
        best_since!(),
        ")
         FROM networks n LEFT JOIN matches m ON m.id = n.gate_id
         WHERE n.run_id = $1 AND n.status IN ('initial', 'promoted')",
    ))
    .bind(run)
    .fetch_one(conn)
    .await?;
    let earliest = last.map_or(i64::MIN, |last| last.saturating_add(1));
    if now.as_millisecond() >= earliest {
        return Ok(now);
    }
    Timestamp::from_millisecond(earliest).map_err(|error| unreadable("time", &error))
}

pub(crate) async fn make_best(
    conn: &mut AnyConnection,
    run: &Run,
    number: NetworkNumber,
    hash: ContentHash,
) -> Result<Event> {
    sqlx::query("UPDATE runs SET best = $2 WHERE id = $1")
        .bind(run.id)
        .bind(i64::from(number.0))
        .execute(conn)
        .await?;
    Ok(Event::Promotion {
        run: run.name.clone(),
        number,
        hash,
    })
}

pub(crate) async fn set_status(
    conn: &mut AnyConnection,
    run: i64,
    number: NetworkNumber,
    status: NetworkStatus,
) -> Result<()> {
    sqlx::query("UPDATE networks SET status = $3 WHERE run_id = $1 AND number = $2")
        .bind(run)
        .bind(i64::from(number.0))
        .bind(status.name())
        .execute(conn)
        .await?;
    Ok(())
}
