//! Statements whose length is only known when they are made, with numbered parameters, and several
//! statements that go to the database in one step: every step is a way to another thread or another
//! machine and back, which costs more than what is done there.

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, AnyConnection, Arguments as _, AssertSqlSafe, Encode, FromRow, Type};

use crate::db::error::Result;
use crate::db::sql::dialect::Dialect;

/// The most items that one statement lists.
pub(crate) const LISTED: usize = 256;

/// How many items a statement has places for: few numbers, so that there are few statements to
/// prepare.
const SIZES: [usize; 4] = [1, 8, 64, LISTED];

/// The items, and the last one again until there are as many as a statement has places.
pub(crate) fn filled<T>(items: &[T]) -> impl Iterator<Item = &T> {
    let size = SIZES.into_iter().find(|size| *size >= items.len());
    let missing = size.unwrap_or(items.len()) - items.len();
    items
        .iter()
        .chain(items.last().into_iter().cycle().take(missing))
}

/// The most rows of [`parts`].
const LARGEST_PART: usize = 64;

/// The items in parts of few different lengths, multiples of eight and then what is left, for statements that must
/// not meet an item twice. Each part is a step, and each length a statement to prepare.
pub(crate) fn parts<T>(mut items: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = match items.len() {
            0 => return None,
            few @ 1..8 => few,
            many => (many - many % 8).min(LARGEST_PART),
        };
        let (part, rest) = items.split_at(length);
        items = rest;
        Some(part)
    })
}

/// A statement in the making: fixed pieces of SQL, and values as parameters between them.
pub(crate) struct Statement {
    sql: String,
    arguments: AnyArguments,
    /// Where a statement ends and the next one begins.
    ends: Vec<usize>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            sql: sql.to_owned(),
            arguments: AnyArguments::default(),
            ends: Vec::new(),
        }
    }

    /// Ends this statement and begins another one with this piece. All of them must change
    /// different rows: none may rely on what another one does.
    pub(crate) fn next(&mut self, sql: &'static str) -> &mut Self {
        self.ends.push(self.sql.len());
        self.push(sql)
    }

    pub(crate) fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    pub(crate) fn bind<'q, T>(&mut self, value: T) -> Result<&mut Self>
    where
        T: Encode<'q, Any> + Type<Any>,
    {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        self.sql.push('$');
        self.sql.push_str(&self.arguments.len().to_string());
        Ok(self)
    }

    /// Adds values as parameters with commas between them, as many as a statement has places.
    pub(crate) fn bind_all<'q, T>(&mut self, values: &[T]) -> Result<&mut Self>
    where
        T: Clone + Encode<'q, Any> + Type<Any>,
    {
        for (place, value) in filled(values).enumerate() {
            self.push(if place == 0 { "" } else { ", " });
            self.bind(value.clone())?;
        }
        Ok(self)
    }

    /// Adds `VALUES` and rows, for each item what `columns` binds.
    pub(crate) fn rows<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut columns: impl FnMut(&mut Columns<'_>, T) -> Result<()>,
    ) -> Result<&mut Self> {
        for (place, item) in items.into_iter().enumerate() {
            self.push(if place == 0 { " VALUES (" } else { ", (" });
            let mut row = Columns {
                statement: self,
                empty: true,
            };
            columns(&mut row, item)?;
            self.push(")");
        }
        Ok(self)
    }

    /// The SQL, which holds nothing but fixed pieces, and its parameters.
    pub(crate) fn finish(self) -> (AssertSqlSafe<String>, AnyArguments) {
        (AssertSqlSafe(self.sql), self.arguments)
    }

    pub(crate) async fn fetch_all<T>(self, connection: &mut AnyConnection) -> Result<Vec<T>>
    where
        T: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    {
        let (sql, arguments) = self.finish();
        let rows = sqlx::query_as_with(sql, arguments).fetch_all(connection);
        Ok(rows.await?)
    }

    pub(crate) async fn fetch_one<T>(self, connection: &mut AnyConnection) -> Result<T>
    where
        T: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    {
        let (sql, arguments) = self.finish();
        let row = sqlx::query_as_with(sql, arguments).fetch_one(connection);
        Ok(row.await?)
    }

    /// The row of the statement, if it has one.
    pub(crate) async fn fetch_optional<T>(self, connection: &mut AnyConnection) -> Result<Option<T>>
    where
        T: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    {
        let (sql, arguments) = self.finish();
        let row = sqlx::query_as_with(sql, arguments).fetch_optional(connection);
        Ok(row.await?)
    }

    /// Executes the statements in one step.
    pub(crate) async fn execute(self, connection: &mut AnyConnection) -> Result<()> {
        self.affected(connection).await.map(drop)
    }

    /// Executes the statements in one step and returns how many rows changed. Of several statements PostgreSQL counts the
    /// rows of the last one only.
    pub(crate) async fn affected(self, connection: &mut AnyConnection) -> Result<u64> {
        let sql = match Dialect::of_connection(connection) {
            Dialect::Postgres => self.as_one(),
            Dialect::Sqlite => self.in_a_row(),
        };
        let done = sqlx::query_with(AssertSqlSafe(sql), self.arguments).execute(connection);
        Ok(done.await?.rows_affected())
    }

    fn statements(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let ends = self.ends.iter().copied().chain([self.sql.len()]);
        begins.zip(ends).map(|(begin, end)| &self.sql[begin..end])
    }

    /// SQLite takes several statements at once.
    fn in_a_row(&self) -> String {
        self.statements().collect::<Vec<_>>().join(";\n")
    }

    /// PostgreSQL takes one, but that may hold others.
    fn as_one(&self) -> String {
        let mut one = String::new();
        let last = self.ends.len();
        for (place, statement) in self.statements().enumerate() {
            match place {
                _ if place == last => one.push_str(statement),
                0 => one.push_str(&format!("WITH step0 AS ({statement})")),
                _ => one.push_str(&format!(", step{place} AS ({statement})")),
            }
            one.push('\n');
        }
        one
    }
}

/// A row of a statement in the making.
pub(crate) struct Columns<'a> {
    statement: &'a mut Statement,
    empty: bool,
}

impl Columns<'_> {
    /// Adds a column's value.
    pub(crate) fn bind<'q, T>(&mut self, value: T) -> Result<&mut Self>
    where
        T: Encode<'q, Any> + Type<Any>,
    {
        if !std::mem::take(&mut self.empty) {
            self.statement.push(", ");
        }
        self.statement.bind(value)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use super::*;

    impl Statement {
        /// How SQLite finds the rows.
        pub(crate) async fn plan(self) -> String {
            sqlx::any::install_default_drivers();
            let mut connection = AnyConnection::connect("sqlite::memory:").await.unwrap();
            let schema = Dialect::Sqlite.schema();
            schema.run(&mut connection).await.unwrap();
            let (sql, arguments) = self.finish();
            let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.0));
            let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as_with(sql, arguments)
                .fetch_all(&mut connection)
                .await
                .unwrap();
            let steps = steps.into_iter().map(|(.., detail)| detail);
            steps.collect::<Vec<_>>().join("; ")
        }
    }

    #[test]
    fn lists_are_filled_up_with_their_last_item() {
        for (items, size) in [(1, 1), (2, 8), (8, 8), (9, 64), (256, 256)] {
            let items: Vec<usize> = (0..items).collect();
            let filled: Vec<usize> = filled(&items).copied().collect();
            assert_eq!(filled.len(), size);
            assert_eq!(filled[..items.len()], items);
            assert!(
                filled[items.len()..]
                    .iter()
                    .all(|item| Some(item) == items.last())
            );
        }
        assert_eq!(filled::<u8>(&[]).count(), 0);
    }

    #[test]
    fn parts_have_few_lengths_and_all_items_in_order() {
        for (items, expected) in [
            (0, vec![]),
            (1, vec![1]),
            (7, vec![7]),
            (45, vec![40, 5]),
            (64, vec![64]),
            (131, vec![64, 64, 3]),
        ] {
            let items: Vec<usize> = (0..items).collect();
            let lengths: Vec<usize> = parts(&items).map(<[usize]>::len).collect();
            assert_eq!(lengths, expected);
            assert_eq!(parts(&items).flatten().copied().collect::<Vec<_>>(), items);
        }
    }

    #[test]
    fn rows_have_a_place_for_each_column() {
        let mut statement = Statement::new("INSERT INTO t (a, b)");
        let pair = |row: &mut Columns<'_>, n: &i64| row.bind(*n)?.bind(*n).map(drop);
        statement.rows(&[1, 2], pair).unwrap();
        let sql = "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)";
        assert_eq!(statement.in_a_row(), sql);
    }

    #[test]
    fn several_statements_are_one_to_postgresql_and_a_row_to_sqlite() {
        let mut statement = Statement::new("UPDATE a SET x = ");
        statement.bind(1_i64).unwrap().next("UPDATE b SET x = ");
        statement.bind(2_i64).unwrap().next("DELETE FROM c");
        assert_eq!(
            statement.in_a_row(),
            "UPDATE a SET x = $1;\nUPDATE b SET x = $2;\nDELETE FROM c"
        );
        assert_eq!(
            statement.as_one(),
            "WITH step0 AS (UPDATE a SET x = $1)\n, step1 AS (UPDATE b SET x = $2)\nDELETE FROM c\n"
        );
        let alone = Statement::new("DELETE FROM c");
        assert_eq!(alone.as_one(), "DELETE FROM c\n");
    }
}
