//! Results between networks and the ratings that were fitted to them.

use jiff::Timestamp;
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::matches::{MatchStatus, RatingRow};
use rookery_common::protocol::networks::Rating;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::{anchors, runs};
use crate::db::sql::dialect;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{count, hash, network, parse, to_count};
use crate::db::types::{FitNumber, Fitting, HeadToHead, RatingBasis, RatingState};

impl Ledger {
    /// What the ratings of a run are fitted to.
    pub async fn rating_basis(&self, run: &RunName) -> Result<RatingBasis> {
        read!(self, "ratings", |conn| basis(conn, run))
    }

    /// The same without matches that are still played, of which pairs may be kept back.
    pub async fn rating_basis_of_ended(&self, run: &RunName) -> Result<RatingBasis> {
        read!(self, "ratings", |conn| async {
            basis_of(conn, run, Matches::Ended).await
        })
    }

    /// What the ratings of a run are fitted to, and a number for the fit: a later one has seen all
    /// that an earlier one has.
    pub async fn begin_fit(&self, run: &RunName) -> Result<(FitNumber, RatingBasis)> {
        let run = run.clone();
        transact!(self, "ratings", |conn| {
            // Games that are counted from now on wait for the next one.
            let id = runs::id_of(conn, &run).await?;
            let number: i64 = sqlx::query_scalar(
                "UPDATE runs SET fits_begun = fits_begun + 1, unrated_games = 0
                     WHERE id = $1 RETURNING fits_begun",
            )
            .bind(id)
            .fetch_one(&mut *conn)
            .await?;
            Ok((FitNumber(number), basis(conn, &run).await?))
        })
    }

    /// Runs whose ratings wait for a fit: games ask for one, or the last one begun was not stored.
    pub async fn runs_to_rate(&self) -> Result<Vec<RunName>> {
        read!(self, "ratings", |conn| async {
            let names: Vec<String> = sqlx::query_scalar(
                "SELECT name FROM runs WHERE games > 0 AND (unrated_games >= $1 OR fit_stored < fits_begun)
                 ORDER BY id",
            )
            .bind(runs::UNRATED_GAMES)
            .fetch_all(conn)
            .await?;
            names.iter().map(|name| parse("run", name)).collect()
        })
    }

    /// Replaces the ratings of a run, unless a later fit has done so; says whether it did.
    pub async fn store_ratings(
        &self,
        run: &RunName,
        fit: FitNumber,
        ratings: Vec<(NetworkNumber, Rating)>,
        now: Timestamp,
    ) -> Result<bool> {
        let run = run.clone();
        transact!(self, "ratings", |conn| {
            let run = runs::id_of(conn, &run).await?;
            let latest =
                sqlx::query("UPDATE runs SET fit_stored = $2 WHERE id = $1 AND fit_stored < $2")
                    .bind(run)
                    .bind(fit.0)
                    .execute(&mut *conn)
                    .await?;
            if latest.rows_affected() == 0 {
                return Ok(false);
            }
            sqlx::query("DELETE FROM ratings WHERE run_id = $1")
                .bind(run)
                .execute(&mut *conn)
                .await?;
            for (network, rating) in ratings {
                sqlx::query(
                    "INSERT INTO ratings (run_id, network, elo, low, high, games, fitted_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7)",
                )
                .bind(run)
                .bind(i64::from(network.0))
                .bind(rating.elo)
                .bind(rating.low)
                .bind(rating.high)
                .bind(count(rating.games))
                .bind(now.as_millisecond())
                .execute(&mut *conn)
                .await?;
            }
            Ok(true)
        })
    }

    /// Ratings of a run, best first.
    pub async fn ratings(&self, run: &RunName) -> Result<Vec<RatingRow>> {
        read!(self, "ratings", |conn| list_ratings(conn, run))
    }

    /// The same with what they follow from, of one moment.
    pub async fn rating_state(&self, run: &RunName) -> Result<RatingState> {
        read!(self.readers.for_checks(), "ratings", |conn| async {
            let mut moment = dialect::begin_snapshot(conn).await?;
            let state = RatingState {
                stored: list_ratings(&mut moment, run).await?,
                basis: basis(&mut moment, run).await?,
                fitted: fitting(&mut moment, run).await?,
            };
            moment.commit().await?;
            Ok(state)
        })
    }
}

/// Which matches results are of.
#[derive(Clone, Copy)]
enum Matches {
    All,
    Ended,
}

async fn basis(conn: &mut AnyConnection, run: &RunName) -> Result<RatingBasis> {
    basis_of(conn, run, Matches::All).await
}

async fn basis_of(conn: &mut AnyConnection, run: &RunName, which: Matches) -> Result<RatingBasis> {
    let id = runs::id_of(conn, run).await?;
    Ok(RatingBasis {
        results: head_to_head(conn, id, which).await?,
        given: anchors::list_given(conn, id).await?,
    })
}

/// The tallies of matches between two networks, added up.
async fn head_to_head(
    conn: &mut AnyConnection,
    run: i64,
    which: Matches,
) -> Result<Vec<HeadToHead>> {
    let left_out = match which {
        Matches::All => "",
        Matches::Ended => MatchStatus::Open.name(),
    };
    let rows: Vec<(i64, i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT a, b, CAST(sum(wins) AS BIGINT), CAST(sum(draws) AS BIGINT),
           CAST(sum(losses) AS BIGINT)
         FROM (SELECT candidate AS a, opponent AS b, wins, draws, losses FROM matches
             WHERE run_id = $1 AND candidate < opponent AND status <> $2
           UNION ALL SELECT opponent, candidate, losses, draws, wins FROM matches
             WHERE run_id = $1 AND candidate > opponent AND status <> $2) AS seen
         WHERE wins + draws + losses > 0 GROUP BY a, b ORDER BY a, b",
    )
    .bind(run)
    .bind(left_out)
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(from_row).collect()
}

fn from_row((a, b, wins, draws, losses): (i64, i64, i64, i64, i64)) -> Result<HeadToHead> {
    Ok(HeadToHead {
        a: network(a)?,
        b: network(b)?,
        wins: to_count(wins),
        draws: to_count(draws),
        losses: to_count(losses),
    })
}

async fn fitting(conn: &mut AnyConnection, run: &RunName) -> Result<Fitting> {
    let (unrated, begun, stored): (i64, i64, i64) =
        sqlx::query_as("SELECT unrated_games, fits_begun, fit_stored FROM runs WHERE name = $1")
            .bind(run.as_str())
            .fetch_one(conn)
            .await?;
    Ok(if unrated > 0 || stored < begun {
        let games = to_count(unrated % runs::STALE);
        Fitting::Due { games }
    } else if begun == 0 {
        Fitting::Never
    } else {
        Fitting::Done
    })
}

async fn list_ratings(conn: &mut AnyConnection, run: &RunName) -> Result<Vec<RatingRow>> {
    let rows: Vec<(i64, Vec<u8>, f64, f64, f64, i64)> = sqlx::query_as(
        "SELECT a.network, n.hash, a.elo, a.low, a.high, a.games
         FROM ratings a JOIN networks n ON n.run_id = a.run_id AND n.number = a.network
         WHERE a.run_id = $1 ORDER BY a.elo DESC, a.network",
    )
    .bind(runs::id_of(conn, run).await?)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|(number, bytes, elo, low, high, games)| {
            Ok(RatingRow {
                network: network(number)?,
                hash: hash(&bytes)?,
                rating: Rating {
                    elo,
                    low,
                    high,
                    games: to_count(games),
                },
            })
        })
        .collect()
}
