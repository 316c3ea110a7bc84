//! What decides which jobs of a run are handed out, asked for in one step: a step costs more than what
//! is done there.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::{NetworkRef, WorkKind};
use rookery_common::protocol::networks::NetworkStatus;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::conditions::best_since;
use crate::db::models::networks;
use crate::db::scheduling::Lengths;
use crate::db::sql::rows::{network, unreadable};

/// How things stand in a run.
#[derive(Clone)]
pub(crate) struct SchedulingStats {
    /// Whether the best network was ever handed out with puzzles; false in a run without.
    pub(crate) puzzles_begun: bool,
    /// The best network.
    pub(crate) network: NetworkRef,
    /// When it was promoted, in milliseconds since 1970.
    pub(crate) since: i64,
    /// How long games of each kind were in the run's last chunks.
    pub(crate) lengths: Lengths,
}

/// One row for each kind of game among the last chunks, or one without any.
#[derive(FromRow)]
struct Row {
    hash: Vec<u8>,
    bytes: i64,
    since: i64,
    kind: Option<String>,
    games: Option<i64>,
    positions: Option<i64>,
}

/// Games of the last 48 chunks say how long games are. That number is not a parameter: SQLite plans a
/// statement whose limit is one anew each time.
///
/// Whether puzzles were begun is only looked up if the run has `puzzles`.
pub(crate) async fn of_run(
    conn: &mut AnyConnection,
    run: i64,
    best: NetworkNumber,
    puzzles: bool,
) -> Result<SchedulingStats> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        "SELECT n.hash, n.bytes, ",
        best_since!(),
        " AS since,
           l.kind, l.games, l.positions
         FROM networks n LEFT JOIN matches m ON m.id = n.gate_id LEFT JOIN
           (SELECT kind, CAST(sum(games) AS BIGINT) AS games,
              CAST(sum(positions) AS BIGINT) AS positions
            FROM (SELECT kind, games, positions FROM chunks WHERE run_id = $1
              ORDER BY sequence DESC LIMIT 48) AS recent GROUP BY kind) AS l ON TRUE
         WHERE n.run_id = $1 AND n.number = $2",
    ))
    .bind(run)
    .bind(i64::from(best.0))
    .fetch_all(&mut *conn)
    .await?;
    let first = rows.first().ok_or_else(|| unreadable("network", &best))?;
    Ok(SchedulingStats {
        puzzles_begun: puzzles && puzzles_begun(conn, run, best).await?,
        network: networks::reference_of(&first.hash, best, first.bytes)?,
        since: first.since,
        lengths: lengths(&rows),
    })
}

/// The network that was best before `best`, if `best` is the last one that was promoted and was not
/// come back to by a rollback. Those that were demoted since are passed over: no more than a few follow
/// each other, and a run with more is told of its next best at once.
pub(crate) async fn load_predecessor(
    conn: &mut AnyConnection,
    run: i64,
    best: NetworkNumber,
) -> Result<Option<NetworkRef>> {
    let line: Vec<(i64, Vec<u8>, i64, String)> = sqlx::query_as(concat!(
        "SELECT n.number, n.hash, n.bytes, n.status
         FROM networks n LEFT JOIN matches m ON m.id = n.gate_id
         WHERE n.run_id = $1 AND n.status IN ('initial', 'promoted', 'demoted')
         ORDER BY ",
        best_since!(),
        " DESC, n.number DESC LIMIT 8",
    ))
    .bind(run)
    .fetch_all(conn)
    .await?;
    let Some(((last, ..), earlier)) = line.split_first() else {
        return Ok(None);
    };
    if *last != i64::from(best.0) {
        return Ok(None);
    }
    let demoted = NetworkStatus::Demoted.name();
    let former = earlier.iter().find(|(.., status)| status != demoted);
    former
        .map(|(number, hash, bytes, _)| networks::reference_of(hash, network(*number)?, *bytes))
        .transpose()
}

/// Whether a network was ever handed out with puzzles. A statement of its own: SQLite plans one that
/// it answers by a partial index anew for every contributor.
async fn puzzles_begun(conn: &mut AnyConnection, run: i64, network: NetworkNumber) -> Result<bool> {
    let query = "SELECT count(*) FROM (SELECT 1 FROM jobs
        WHERE run_id = $1 AND network = $2 AND kind = 'puzzles' LIMIT 1) AS begun";
    let begun = sqlx::query_scalar(query)
        .bind(run)
        .bind(i64::from(network.0));
    let begun: i64 = begun.fetch_one(conn).await?;
    Ok(begun > 0)
}

/// How many times shorter or longer than usual games are taken to be at most. One contributor may
/// have sent all of the last chunks, and the sizes of everybody's jobs follow from their games.
const MOST_UNUSUAL: f64 = 4.0;

fn lengths(rows: &[Row]) -> Lengths {
    let mean = |kind: WorkKind, default: f64| {
        let row = rows
            .iter()
            .find(|row| row.kind.as_deref() == Some(kind.name()));
        match row.and_then(|row| row.games.zip(row.positions)) {
            Some((games, positions)) if games > 0 && positions > 0 => {
                let mean = positions as f64 / games as f64;
                mean.clamp(default / MOST_UNUSUAL, default * MOST_UNUSUAL)
            }
            _ => default,
        }
    };
    let default = Lengths::default();
    Lengths {
        selfplay: mean(WorkKind::SelfPlay, default.selfplay),
        puzzle: mean(WorkKind::Puzzles, default.puzzle),
        matches: mean(WorkKind::Match, default.matches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: WorkKind, games: i64, positions: i64) -> Row {
        Row {
            hash: Vec::new(),
            bytes: 0,
            since: 0,
            kind: Some(kind.name().to_owned()),
            games: Some(games),
            positions: Some(positions),
        }
    }

    #[test]
    fn games_of_odd_lengths_bend_job_sizes_within_bounds() {
        let rows = [
            row(WorkKind::SelfPlay, 512 * 48, 512 * 48),
            row(WorkKind::Puzzles, 10, 70),
            row(WorkKind::Match, 10, 9_000),
        ];
        let expected = Lengths {
            selfplay: 25.0,
            puzzle: 7.0,
            matches: 400.0,
        };
        assert_eq!(lengths(&rows), expected);
        assert_eq!(lengths(&[]), Lengths::default());
    }
}
