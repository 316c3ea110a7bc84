//! Contributors: who gave how much, of all time and lately.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{
    ContributorDetail, ContributorInfo, Credit, DayCredit, Span, SpanCredit,
};
use sqlx::{AnyConnection, FromRow};

use super::activity::last_heard;
use super::rows::{day_text, time_text, time_text_opt, to_count, to_u32};
use super::spans::{DAY, Since};
use super::statement::Statement;
use super::{runs, users};
use crate::store::error::Result;
use crate::store::model::{ACTIVE, ContributorFilter, Contributors};

/// Until when after its last sign of life a worker stands on its contributor's page.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Workers of one contributor that are told.
const WORKERS: u32 = 100;

/// What is told of a contributor everywhere.
#[derive(FromRow)]
struct Told {
    name: String,
    created_at: i64,
    games: i64,
    positions: i64,
    active_workers: i64,
    last_seen: Option<i64>,
}

/// A contributor in a list.
#[derive(FromRow)]
struct Listed {
    #[sqlx(flatten)]
    told: Told,
    /// In the span by which they are listed.
    span_games: i64,
    span_positions: i64,
    /// How many there are, and what all of them gave in the span.
    people: i64,
    all_games: i64,
    all_positions: i64,
}

impl Told {
    fn into_info(self, recent: Option<Credit>) -> Result<ContributorInfo> {
        Ok(ContributorInfo {
            name: self.name,
            games: to_count(self.games),
            positions: to_count(self.positions),
            recent,
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

async fn id_of(conn: &mut AnyConnection, run: Option<&RunName>) -> Result<Option<i64>> {
    match run {
        Some(run) => runs::id_of(conn, run).await.map(Some),
        None => Ok(None),
    }
}

pub(super) async fn list(
    conn: &mut AnyConnection,
    filter: &ContributorFilter,
    now: Timestamp,
) -> Result<Contributors> {
    let run = id_of(conn, filter.run.as_ref()).await?;
    let (sql, arguments) = listing(filter, run, now)?.finish();
    let rows: Vec<Listed> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    let all = rows.first().map(|row| {
        let given = credit(row.all_games, row.all_positions);
        (to_count(row.people), given)
    });
    let (all, together) = all.unwrap_or_default();
    let list = rows.into_iter().map(|row| {
        let recent = credit(row.span_games, row.span_positions);
        row.told
            .into_info((filter.span != Span::All).then_some(recent))
    });
    Ok(Contributors {
        all,
        credit: together,
        list: list.collect::<Result<_>>()?,
    })
}

pub(super) async fn one(
    conn: &mut AnyConnection,
    name: &str,
    run: Option<&RunName>,
    now: Timestamp,
) -> Result<ContributorDetail> {
    let user = users::id_of(conn, name).await?;
    let run = id_of(conn, run).await?;
    let mut query = Statement::new("SELECT ");
    tell(&mut query, run, now)?;
    query.push(" FROM users t WHERE t.id = ").bind(user)?;
    let (sql, arguments) = query.finish();
    let told: Told = sqlx::query_as_with(sql, arguments)
        .fetch_one(&mut *conn)
        .await?;
    let of_all_time = credit(told.games, told.positions);
    let mut spans = Vec::with_capacity(Span::ALL.len());
    let mut days = Vec::new();
    for span in Span::ALL {
        let credit = match Since::of(span, now) {
            Some(since) => {
                let begins = since.begins(now);
                let given = given(conn, user, run, &begins, since.length).await?;
                if span == Span::Month {
                    days = by_day(&begins, &given, told.created_at, now)?;
                }
                total(&given)
            }
            None => of_all_time,
        };
        spans.push(SpanCredit { span, credit });
    }
    Ok(ContributorDetail {
        info: told.into_info(None)?,
        credit: spans,
        days,
        workers: last_heard(conn, Some(user), now - REMEMBERED, WORKERS).await?,
    })
}

/// What a contributor gave in the hours or days that began at these times, each found by its key:
/// when each began of which there is something, and what it is.
async fn given(
    conn: &mut AnyConnection,
    user: i64,
    run: Option<i64>,
    begins: &[i64],
    length: i64,
) -> Result<Vec<(i64, Credit)>> {
    let mut query = Statement::new(
        "SELECT c.begins, CAST(sum(c.games) AS BIGINT), CAST(sum(c.positions) AS BIGINT)
           FROM credit_spans c WHERE ",
    );
    of_runs(&mut query, run)?;
    query.push(" AND c.user_id = ").bind(user)?;
    query.push(" AND c.length = ").bind(length)?;
    query.push(" AND c.begins IN (").bind_all(begins)?;
    query.push(") GROUP BY c.begins");
    let (sql, arguments) = query.finish();
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    let row = |(begins, games, positions)| (begins, credit(games, positions));
    Ok(rows.into_iter().map(row).collect())
}

fn total(given: &[(i64, Credit)]) -> Credit {
    let credit = given.iter().map(|(_, credit)| credit);
    Credit {
        games: credit.clone().map(|credit| credit.games).sum(),
        positions: credit.map(|credit| credit.positions).sum(),
    }
}

/// What was given on each of the days that began at these times, from that of joining to today; of
/// a day that only another coordinator's clock has reached, if there is something.
fn by_day(
    begins: &[i64],
    given: &[(i64, Credit)],
    joined: i64,
    now: Timestamp,
) -> Result<Vec<DayCredit>> {
    let now = now.as_millisecond();
    let of_day = |begins: i64| {
        let found = given.iter().find(|(at, _)| *at == begins);
        let lived = begins + DAY > joined && begins <= now;
        let credit = found.map(|(_, credit)| *credit);
        credit.or_else(|| lived.then(Credit::default))
    };
    let days = begins.iter().filter_map(|begins| {
        let credit = of_day(*begins)?;
        Some(day_text(*begins).map(|day| DayCredit { day, credit }))
    });
    days.collect()
}

/// Those who are listed; what is told of each is asked for them alone.
fn listing(filter: &ContributorFilter, run: Option<i64>, now: Timestamp) -> Result<Statement> {
    let mut query = Statement::new(
        "SELECT t.span_games, t.span_positions, t.people, t.all_games, t.all_positions, ",
    );
    tell(&mut query, run, now)?;
    query.push(" FROM (");
    rank(&mut query, filter, run, now)?;
    query.push(") AS t ORDER BY t.span_positions DESC, t.name");
    Ok(query)
}

/// Adds the columns of what is told of the users `t`.
fn tell(query: &mut Statement, run: Option<i64>, now: Timestamp) -> Result<()> {
    query.push(
        "t.name, t.created_at, (SELECT CAST(coalesce(sum(c.games), 0) AS BIGINT)
           FROM credits c WHERE c.user_id = t.id AND ",
    );
    of_runs(query, run)?;
    query.push(
        ") AS games, (SELECT CAST(coalesce(sum(c.positions), 0) AS BIGINT)
           FROM credits c WHERE c.user_id = t.id AND ",
    );
    of_runs(query, run)?;
    query.push(
        ") AS positions, (SELECT max(w.last_seen) FROM workers w WHERE w.user_id = t.id)
           AS last_seen, (SELECT count(*) FROM workers w WHERE w.user_id = t.id
           AND w.last_seen >= ",
    );
    let active = (now - ACTIVE).as_millisecond();
    query.bind(active)?.push(") AS active_workers");
    Ok(())
}

/// Adds the query of those who are listed, with what they and all gave in the span.
fn rank(
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
    query.push(" ORDER BY sum(c.positions) DESC, u.name LIMIT ");
    query.bind(i64::from(filter.limit))?.push(" OFFSET ");
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
