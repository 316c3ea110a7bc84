//! Contributors: who gave how much, of all time and lately.

use jiff::Timestamp;
use rookery_common::protocol::people::{ContributorInfo, Credit, Span};
use sqlx::{AnyConnection, FromRow};

use super::activity::ACTIVE;
use super::rows::{time_text, time_text_opt, to_count, to_u32};
use super::runs;
use super::spans::Since;
use super::statement::Statement;
use crate::store::error::Result;
use crate::store::model::{ContributorFilter, Contributors};

#[derive(FromRow)]
struct ContributorRow {
    name: String,
    created_at: i64,
    games: i64,
    positions: i64,
    /// In the span by which they are listed.
    span_games: i64,
    span_positions: i64,
    active_workers: i64,
    last_seen: Option<i64>,
    /// How many there are, and what all of them gave in the span.
    people: i64,
    all_games: i64,
    all_positions: i64,
}

impl ContributorRow {
    fn into_info(self, span: Span) -> Result<ContributorInfo> {
        let recent = credit(self.span_games, self.span_positions);
        Ok(ContributorInfo {
            name: self.name,
            games: to_count(self.games),
            positions: to_count(self.positions),
            recent: (span != Span::All).then_some(recent),
            active_workers: to_u32("number of workers", self.active_workers)?,
            last_seen: time_text_opt(self.last_seen)?,
            joined_at: time_text(self.created_at)?,
        })
    }
}

fn credit(games: i64, positions: i64) -> Credit {
    Credit {
        games: to_count(games),
        positions: to_count(positions),
    }
}

pub(super) async fn list(
    conn: &mut AnyConnection,
    filter: &ContributorFilter,
    now: Timestamp,
) -> Result<Contributors> {
    let run = match &filter.run {
        Some(run) => Some(runs::id_of(conn, run).await?),
        None => None,
    };
    let (sql, arguments) = listing(filter, run, now)?.finish();
    let rows: Vec<ContributorRow> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    let all = rows.first().map(|row| {
        let given = credit(row.all_games, row.all_positions);
        (to_count(row.people), given)
    });
    let (all, credit) = all.unwrap_or_default();
    let list = rows.into_iter().map(|row| row.into_info(filter.span));
    Ok(Contributors {
        all,
        credit,
        list: list.collect::<Result<_>>()?,
    })
}

/// What is told of each is asked for those alone that are listed.
fn listing(filter: &ContributorFilter, run: Option<i64>, now: Timestamp) -> Result<Statement> {
    let mut query = Statement::new(
        "SELECT t.name, t.created_at, t.span_games, t.span_positions, t.people, t.all_games,
           t.all_positions, (SELECT CAST(coalesce(sum(c.games), 0) AS BIGINT)
             FROM credits c WHERE c.user_id = t.id AND ",
    );
    of_runs(&mut query, run)?;
    query.push(
        ") AS games, (SELECT CAST(coalesce(sum(c.positions), 0) AS BIGINT)
             FROM credits c WHERE c.user_id = t.id AND ",
    );
    of_runs(&mut query, run)?;
    query.push(
        ") AS positions, (SELECT max(w.last_seen) FROM workers w WHERE w.user_id = t.id)
             AS last_seen, (SELECT count(*) FROM workers w WHERE w.user_id = t.id
             AND w.last_seen >= ",
    );
    query
        .bind((now - ACTIVE).as_millisecond())?
        .push(") AS active_workers FROM (");
    ranked(&mut query, filter, run, now)?;
    query.push(") AS t ORDER BY t.span_positions DESC, t.name");
    Ok(query)
}

/// Adds those who are listed with what they and all gave in the span.
fn ranked(
    query: &mut Statement,
    filter: &ContributorFilter,
    run: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let since = Since::of(filter.span, now);
    query.push(
        "SELECT u.id, u.name, u.created_at, CAST(sum(c.games) AS BIGINT) AS span_games,
           CAST(sum(c.positions) AS BIGINT) AS span_positions, count(*) OVER () AS people,
           CAST(sum(sum(c.games)) OVER () AS BIGINT) AS all_games,
           CAST(sum(sum(c.positions)) OVER () AS BIGINT) AS all_positions FROM ",
    );
    query.push(match since {
        Some(_) => "credit_spans",
        None => "credits",
    });
    query.push(" c JOIN users u ON u.id = c.user_id WHERE ");
    of_runs(query, run)?;
    if let Some(since) = since {
        query.push(" AND c.length = ").bind(since.length)?;
        query.push(" AND c.begins >= ").bind(since.begins)?;
    }
    query.push(" GROUP BY u.id");
    if since.is_some() {
        query.push(" HAVING sum(c.positions) > 0");
    }
    let limit = filter.limit.map_or(i64::MAX, i64::from);
    query.push(" ORDER BY sum(c.positions) DESC, u.name LIMIT ");
    query.bind(limit)?.push(" OFFSET ");
    query.bind(i64::from(filter.skip))?;
    Ok(())
}

/// Adds the condition that credit is of this run, or of any: with either, the key serves that
/// begins with the run.
fn of_runs(query: &mut Statement, run: Option<i64>) -> Result<()> {
    match run {
        Some(run) => query.push("c.run_id = ").bind(run)?,
        None => query.push("c.run_id IN (SELECT id FROM runs)"),
    };
    Ok(())
}
