//! Credit by the hour and by the day, from which that over recent time is read.
//!
//! Each contributor has a row for each hour and each day, in UTC, in which something of theirs was
//! accepted. The last 24 hours are hours, the last weeks are days: no list reads more than some
//! thirty rows of a contributor, however many chunks there are.

use jiff::Timestamp;
use rookery_common::protocol::people::Span;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::credits::Credit;
use crate::db::sql::statement::Statement;
use crate::db::types::ChunkStatus;

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;
/// Milliseconds of a day.
pub(crate) const DAY: i64 = 24 * HOUR;

/// Where there is a row already.
const ADDED: &str = " ON CONFLICT (run_id, length, begins, user_id) DO UPDATE SET
       games = credit_spans.games + excluded.games,
       positions = credit_spans.positions + excluded.positions,
       audits = credit_spans.audits + excluded.audits,
       audit_positions = credit_spans.audit_positions + excluded.audit_positions";

/// Rows of one length that begin at this moment or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    /// Milliseconds of an hour or of a day.
    pub(crate) length: i64,
    /// Milliseconds since 1970.
    pub(crate) begins: i64,
}

impl Since {
    /// The rows that a span is made of, from the hour or the day in which it begins; none for all
    /// time, which has sums of its own.
    pub(crate) fn of(span: Span, now: Timestamp) -> Option<Self> {
        let (days, length) = match span {
            Span::Day => (1, HOUR),
            Span::Week => (7, DAY),
            Span::Month => (30, DAY),
            Span::All => return None,
        };
        let begins = begin_of(now.as_millisecond() - days * DAY, length);
        Some(Self { length, begins })
    }

    /// When its rows begin, and one more: another coordinator's clock may be ahead.
    pub(crate) fn begins(self, now: Timestamp) -> Vec<i64> {
        let last = now.as_millisecond() + self.length;
        (self.begins..=last).step_by(self.length as usize).collect()
    }
}

/// When the hour began in which a moment lies.
pub(crate) fn hour_of(moment: Timestamp) -> i64 {
    begin_of(moment.as_millisecond(), HOUR)
}

const fn begin_of(moment: i64, length: i64) -> i64 {
    moment - moment.rem_euclid(length)
}

/// Adds to a statement what credit in an hour means for its row and for its day's. None may stand
/// here twice.
pub(crate) fn credit(statement: &mut Statement, hour: i64, credits: &[Credit]) -> Result<()> {
    statement.next(
        "INSERT INTO credit_spans (run_id, length, begins, user_id, games, positions, audits,
           audit_positions)",
    );
    let spans = [(HOUR, hour), (DAY, begin_of(hour, DAY))];
    let rows: Vec<_> = spans
        .into_iter()
        .flat_map(|span| credits.iter().map(move |credit| (span, credit)))
        .collect();
    statement.rows(&rows, |row, ((length, begins), ((run, user), given))| {
        row.bind(*run)?.bind(*length)?.bind(*begins)?.bind(*user)?;
        for column in given.columns() {
            row.bind(column)?;
        }
        Ok(())
    })?;
    statement.push(ADDED);
    Ok(())
}

/// Takes chunks that will change out of their hours and days, or puts them back. None of them is an
/// audit.
pub(crate) async fn change(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
) -> Result<()> {
    let mut query = Statement::new(
        "INSERT INTO credit_spans (run_id, length, begins, user_id, games, positions)
         SELECT c.run_id, spans.column1, c.accepted_at - c.accepted_at % spans.column1, c.user_id, ",
    );
    let (games, positions) = match state {
        ChunkStatus::Excluded => ("-sum(c.games)", "-sum(c.positions)"),
        ChunkStatus::Counted => ("sum(c.games)", "sum(c.positions)"),
    };
    query.push("CAST(").push(games).push(" AS BIGINT), CAST(");
    query
        .push(positions)
        .push(" AS BIGINT) FROM chunks c, (VALUES (3600000), (86400000)) AS spans WHERE ");
    which.write(&mut query, state)?;
    query.push(
        " GROUP BY c.run_id, spans.column1, c.accepted_at - c.accepted_at % spans.column1,
           c.user_id",
    );
    query.push(ADDED);
    query.execute(conn).await
}
