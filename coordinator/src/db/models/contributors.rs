//! Contributors: who gave how much, of all time and lately.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{
    ContributorDetail, ContributorInfo, Credit, DayCredit, Span, SpanCredit,
};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::activity::list_last_heard;
use crate::db::models::spans::{DAY, Since};
use crate::db::models::{runs, users};
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{count, day_text, time_text, time_text_opt, to_count, to_u32};
use crate::db::sql::statement::Statement;
use crate::db::types::{ACTIVE, ContributorFilter, ContributorSort, Contributors};

/// Until when after its last sign of life a worker stands on its contributor's page.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Workers of one contributor that are told.
const WORKERS: u32 = 100;

impl Ledger {
    /// Contributors, and how many there are.
    pub async fn contributors(
        &self,
        filter: ContributorFilter,
        now: Timestamp,
    ) -> Result<Contributors> {
        read!(self, "contributors", |conn| async {
            let run = id_of(conn, filter.run.as_ref()).await?;
            let rows: Vec<Listed> = build_listing(&filter, run, now)?.fetch_all(conn).await?;
            let all = rows.first().map(|row| (to_count(row.people), row.of_all()));
            let (all, together) = all.unwrap_or_default();
            let list = rows.into_iter().map(|row| {
                let recent = row.in_span();
                let rank = (recent.positions > 0).then_some(to_count(row.place));
                row.contributor
                    .into_info((filter.span != Span::All).then_some(recent), rank)
            });
            Ok(Contributors {
                all,
                credit: together,
                list: list.collect::<Result<_>>()?,
            })
        })
    }

    /// The contributor of this name, in a run or, if it is `None`, in all together.
    pub async fn contributor(
        &self,
        name: &str,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<ContributorDetail> {
        read!(self, "contributors", |conn| load_contributor(
            conn, name, run, now
        ))
    }
}

/// What is told of a contributor everywhere.
#[derive(FromRow)]
struct ContributorRow {
    name: String,
    created_at: i64,
    #[sqlx(flatten)]
    credit: CreditRow,
    active_workers: i64,
    last_seen: Option<i64>,
}

#[derive(FromRow)]
struct CreditRow {
    games: i64,
    positions: i64,
    audits: i64,
    audit_positions: i64,
}

impl CreditRow {
    fn read(&self) -> Credit {
        Credit {
            games: to_count(self.games),
            positions: to_count(self.positions),
            audits: to_count(self.audits),
            audit_positions: to_count(self.audit_positions),
        }
    }
}

#[derive(FromRow)]
struct Listed {
    #[sqlx(flatten)]
    contributor: ContributorRow,
    /// In the span by which they are listed.
    span_games: i64,
    span_positions: i64,
    span_audits: i64,
    span_audit_positions: i64,
    /// How many gave more, and one.
    place: i64,
    /// How many there are, and what all of them gave in the span.
    people: i64,
    all_games: i64,
    all_positions: i64,
    all_audits: i64,
    all_audit_positions: i64,
}

impl Listed {
    fn in_span(&self) -> Credit {
        let (games, positions) = (self.span_games, self.span_positions);
        let (audits, audit_positions) = (self.span_audits, self.span_audit_positions);
        CreditRow {
            games,
            positions,
            audits,
            audit_positions,
        }
        .read()
    }

    fn of_all(&self) -> Credit {
        let (games, positions) = (self.all_games, self.all_positions);
        let (audits, audit_positions) = (self.all_audits, self.all_audit_positions);
        CreditRow {
            games,
            positions,
            audits,
            audit_positions,
        }
        .read()
    }
}

impl ContributorRow {
    fn into_info(self, recent: Option<Credit>, rank: Option<u64>) -> Result<ContributorInfo> {
        let Credit {
            games,
            positions,
            audits,
            audit_positions,
        } = self.credit.read();
        Ok(ContributorInfo {
            name: self.name,
            games,
            positions,
            audits,
            audit_positions,
            rank,
            recent,
            active_workers: to_u32("number of workers", self.active_workers)?,
            last_seen: time_text_opt(self.last_seen)?,
            joined_at: time_text(self.created_at)?,
        })
    }
}

async fn id_of(conn: &mut AnyConnection, run: Option<&RunName>) -> Result<Option<i64>> {
    match run {
        Some(run) => runs::id_of(conn, run).await.map(Some),
        None => Ok(None),
    }
}

async fn load_contributor(
    conn: &mut AnyConnection,
    name: &str,
    run: Option<&RunName>,
    now: Timestamp,
) -> Result<ContributorDetail> {
    let user = users::id_of(conn, name).await?;
    let run = id_of(conn, run).await?;
    let mut query = Statement::new("SELECT ");
    push_columns(&mut query, run, now)?;
    query.push(" FROM users t WHERE t.id = ").bind(user)?;
    let contributor: ContributorRow = query.fetch_one(&mut *conn).await?;
    let of_all_time = contributor.credit.read();
    let mut spans = Vec::with_capacity(Span::ALL.len());
    let mut days = Vec::new();
    let mut of_all = None;
    for span in Span::ALL {
        let since = Since::of(span, now);
        let credit = match since {
            Some(since) => {
                let begins = since.begins(now);
                let given = list_spans(conn, user, run, &begins, since.length).await?;
                if span == Span::Month {
                    days = by_day(&begins, &given, contributor.created_at, now)?;
                }
                add_up(&given)
            }
            None => of_all_time,
        };
        let rank = load_rank(conn, run, since, credit.positions).await?;
        of_all = rank.filter(|_| span == Span::All);
        spans.push(SpanCredit { span, credit, rank });
    }
    Ok(ContributorDetail {
        info: contributor.into_info(None, of_all)?,
        credit: spans,
        days,
        workers: list_last_heard(conn, (Some(user), None), now - REMEMBERED, WORKERS).await?,
    })
}

/// The place by positions of somebody who gave so many in a span, from 1; none without any. Those who
/// gave as many share the place.
async fn load_rank(
    conn: &mut AnyConnection,
    run: Option<i64>,
    since: Option<Since>,
    positions: u64,
) -> Result<Option<u64>> {
    if positions == 0 {
        return Ok(None);
    }
    let mut query = Statement::new("SELECT count(*) FROM (SELECT c.user_id FROM ");
    push_span(&mut query, run, since, "")?;
    query.push(" GROUP BY c.user_id HAVING sum(c.positions) > ");
    query.bind(count(positions))?.push(") AS ahead");
    let (ahead,): (i64,) = query.fetch_one(conn).await?;
    Ok(Some(to_count(ahead) + 1))
}

/// What a contributor gave in the hours or days that began at these times, each found by its key:
/// when each began of which there is something, and what it is.
async fn list_spans(
    conn: &mut AnyConnection,
    user: i64,
    run: Option<i64>,
    begins: &[i64],
    length: i64,
) -> Result<Vec<(i64, Credit)>> {
    let mut query = Statement::new(
        "SELECT c.begins, CAST(sum(c.games) AS BIGINT) AS games,
           CAST(sum(c.positions) AS BIGINT) AS positions, CAST(sum(c.audits) AS BIGINT) AS audits,
           CAST(sum(c.audit_positions) AS BIGINT) AS audit_positions
         FROM credit_spans c WHERE ",
    );
    push_run(&mut query, run)?;
    query.push(" AND c.user_id = ").bind(user)?;
    query.push(" AND c.length = ").bind(length)?;
    query.push(" AND c.begins IN (").bind_all(begins)?;
    query.push(") GROUP BY c.begins");
    let rows: Vec<SpanRow> = query.fetch_all(conn).await?;
    let row = |row: SpanRow| (row.begins, row.credit.read());
    Ok(rows.into_iter().map(row).collect())
}

/// What was given in one hour or day.
#[derive(FromRow)]
struct SpanRow {
    begins: i64,
    #[sqlx(flatten)]
    credit: CreditRow,
}

fn add_up(given: &[(i64, Credit)]) -> Credit {
    let add = |all: Credit, (_, credit): &(i64, Credit)| Credit {
        games: all.games + credit.games,
        positions: all.positions + credit.positions,
        audits: all.audits + credit.audits,
        audit_positions: all.audit_positions + credit.audit_positions,
    };
    given.iter().fold(Credit::default(), add)
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
fn build_listing(
    filter: &ContributorFilter,
    run: Option<i64>,
    now: Timestamp,
) -> Result<Statement> {
    let mut query = Statement::new(
        "SELECT t.span_games, t.span_positions, t.span_audits, t.span_audit_positions, t.place,
           t.people, t.all_games, t.all_positions, t.all_audits, t.all_audit_positions, ",
    );
    push_columns(&mut query, run, now)?;
    query.push(" FROM (");
    push_listed(&mut query, filter, run, now)?;
    query.push(") AS t ORDER BY ").push(order(filter.sort));
    Ok(query)
}

/// The order of the rows `t`. Names come last, as no two contributors share one.
const fn order(sort: ContributorSort) -> &'static str {
    match sort {
        ContributorSort::Positions => "t.span_positions DESC, t.name",
        ContributorSort::Games => "t.span_games DESC, t.span_positions DESC, t.name",
        ContributorSort::LastSeen => {
            "coalesce((SELECT max(w.last_seen) FROM workers w WHERE w.user_id = t.id), 0) DESC, t.name"
        }
        ContributorSort::Name => "lower(t.name)",
    }
}

/// Adds the columns of what is told of the users `t`.
fn push_columns(query: &mut Statement, run: Option<i64>, now: Timestamp) -> Result<()> {
    query.push("t.name, t.created_at");
    for column in ["games", "positions", "audits", "audit_positions"] {
        query.push(", (SELECT CAST(coalesce(sum(c.").push(column);
        query.push("), 0) AS BIGINT) FROM credits c WHERE c.user_id = t.id AND ");
        push_run(query, run)?;
        query.push(") AS ").push(column);
    }
    query.push(
        ", (SELECT max(w.last_seen) FROM workers w WHERE w.user_id = t.id)
           AS last_seen, (SELECT count(*) FROM workers w WHERE w.user_id = t.id
           AND w.last_seen >= ",
    );
    let active = (now - ACTIVE).as_millisecond();
    query.bind(active)?.push(") AS active_workers");
    Ok(())
}

/// Adds the query of those who are listed, with what they and all that are wanted gave in the span. Names are looked for
/// among the run's contributors, whom the list ranks anyway.
fn push_listed(
    query: &mut Statement,
    filter: &ContributorFilter,
    run: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    query.push("SELECT t.*, count(*) OVER () AS people");
    for column in ["games", "positions", "audits", "audit_positions"] {
        query.push(", CAST(sum(t.span_").push(column);
        query.push(") OVER () AS BIGINT) AS all_").push(column);
    }
    query.push(" FROM (");
    push_ranking(query, run, Since::of(filter.span, now))?;
    query.push(") AS t");
    if let Some(name) = &filter.name {
        query.push(" WHERE lower(t.name) LIKE lower(");
        query.bind(containing(name))?.push(") ESCAPE '!'");
    }
    query.push(" ORDER BY ").push(order(filter.sort));
    query.push(" LIMIT ").bind(i64::from(filter.limit))?;
    query.push(" OFFSET ");
    query.bind(i64::from(filter.skip))?;
    Ok(())
}

/// The pattern of names that contain this.
fn containing(name: &str) -> String {
    let escaped = name.replace('!', "!!").replace('%', "!%");
    format!("%{}%", escaped.replace('_', "!_"))
}

/// Adds the query of all who gave something in a span, with their places. Those who gave as much share one.
fn push_ranking(query: &mut Statement, run: Option<i64>, since: Option<Since>) -> Result<()> {
    query.push(
        "SELECT u.id, u.name, u.created_at, rank() OVER (ORDER BY sum(c.positions) DESC) AS place",
    );
    for column in ["games", "positions", "audits", "audit_positions"] {
        query.push(", CAST(sum(c.").push(column);
        query.push(") AS BIGINT) AS span_").push(column);
    }
    query.push(" FROM ");
    push_span(query, run, since, " JOIN users u ON u.id = c.user_id")?;
    query.push(" GROUP BY u.id");
    if since.is_some() {
        query.push(" HAVING sum(c.positions) > 0");
    }
    Ok(())
}

/// Adds the credit `c` of a span, joined with `others`, and the condition that it is of the run.
fn push_span(
    query: &mut Statement,
    run: Option<i64>,
    since: Option<Since>,
    others: &'static str,
) -> Result<()> {
    query.push(match since {
        Some(_) => "credit_spans c",
        None => "credits c",
    });
    query.push(others).push(" WHERE ");
    push_run(query, run)?;
    if let Some(since) = since {
        query.push(" AND c.length = ").bind(since.length)?;
        query.push(" AND c.begins >= ").bind(since.begins)?;
    }
    Ok(())
}

/// Adds the condition that credit is of this run, or of any: with either, the key serves that
/// begins with the run.
fn push_run(query: &mut Statement, run: Option<i64>) -> Result<()> {
    match run {
        Some(run) => query.push("c.run_id = ").bind(run)?,
        None => query.push("c.run_id IN (SELECT id FROM runs)"),
    };
    Ok(())
}
