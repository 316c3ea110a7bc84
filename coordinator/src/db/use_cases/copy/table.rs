//! Tables as the databases describe them, and their rows without what differs between both.

use rookery_common::ids::ContentHash;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{AnyConnection, Arguments as _, AssertSqlSafe, Row as _};

use super::TABLES;
use crate::db::error::Result;
use crate::db::sql::dialect::Dialect;
use crate::db::sql::rows::{to_count, unreadable};

/// Rows of a batch. Each value is a parameter, of which a statement of SQLite has 32,766 at most.
const BATCH: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: Vec<Column>,
    /// Which columns are the primary key, in its order.
    key: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
}

/// What both databases mean by the types of columns; flags and times are integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Text,
    Bytes,
}

/// A row: a value for each column.
pub(super) type Row = Vec<Value>;

/// A column's value. What is missing has a type, too: PostgreSQL wants to know it.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Integer(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

/// How many rows there were, and what they have in sum, in whatever order they came: databases do not
/// agree on the order of texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) rows: u64,
    hashes: u128,
}

/// A column as a database describes it: its table, name and type, and its place in the primary key.
type Described = (String, String, String, Option<i64>);

async fn described(conn: &mut AnyConnection, dialect: Dialect) -> Result<Vec<Described>> {
    let mut columns: Vec<Described> = sqlx::query_as(dialect.columns()).fetch_all(conn).await?;
    columns.sort_unstable();
    Ok(columns)
}

/// The tables of the schema that a database has, whatever the version of its schema.
pub(super) async fn names(conn: &mut AnyConnection, dialect: Dialect) -> Result<Vec<&'static str>> {
    let described = described(conn, dialect).await?;
    let mut names = TABLES.to_vec();
    names.retain(|name| described.iter().any(|(table, ..)| table == name));
    Ok(names)
}

pub(super) async fn load_tables(conn: &mut AnyConnection, dialect: Dialect) -> Result<Vec<Table>> {
    let described = described(conn, dialect).await?;
    let table = |name| Table::of(name, &described);
    TABLES.into_iter().map(table).collect()
}

/// Whether there is anything in a table.
pub(super) async fn has_rows(conn: &mut AnyConnection, name: &str) -> Result<bool> {
    let sql = format!("SELECT 1 FROM {} LIMIT 1", quoted(name));
    let row = sqlx::query(AssertSqlSafe(sql)).fetch_optional(conn).await?;
    Ok(row.is_some())
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// So many parameters, with these numbers.
fn parameters(numbers: impl Iterator<Item = usize>) -> String {
    let parameters: Vec<String> = numbers.map(|number| format!("${number}")).collect();
    parameters.join(", ")
}

impl Table {
    fn of(name: &'static str, described: &[Described]) -> Result<Self> {
        let own = described.iter().filter(|(table, ..)| table == name);
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        for (place, (_, column, kind, in_key)) in own.enumerate() {
            let name = column.clone();
            let kind = Kind::of(kind)?;
            columns.push(Column { name, kind });
            key.extend(in_key.map(|order| (order, place)));
        }
        if key.is_empty() {
            let reason = format!("table {name} is missing, or has no primary key");
            return Err(unreadable("schema", &reason));
        }
        key.sort_unstable();
        Ok(Self {
            name,
            columns,
            key: key.into_iter().map(|(_, place)| place).collect(),
        })
    }

    /// The names of columns, as SQL lists them.
    fn list<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
        let names: Vec<String> = columns.map(|column| quoted(&column.name)).collect();
        names.join(", ")
    }

    pub(super) async fn count(&self, conn: &mut AnyConnection) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {}", quoted(self.name));
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(conn)
            .await?;
        Ok(to_count(rows))
    }

    /// The first rows after this one, in the order of the primary key.
    pub(super) async fn fetch_page(
        &self,
        conn: &mut AnyConnection,
        after: Option<&[Value]>,
    ) -> Result<Vec<Row>> {
        let columns = Self::list(self.columns.iter());
        let key = Self::list(self.key.iter().map(|place| &self.columns[*place]));
        let mut sql = format!("SELECT {columns} FROM {}", quoted(self.name));
        let mut arguments = AnyArguments::default();
        if let Some(row) = after {
            for place in &self.key {
                row[*place].bind(&mut arguments)?;
            }
            let last = parameters(1..=self.key.len());
            sql.push_str(&format!(" WHERE ({key}) > ({last})"));
        }
        sql.push_str(&format!(" ORDER BY {key} LIMIT {BATCH}"));
        let rows = sqlx::query_with(AssertSqlSafe(sql), arguments)
            .fetch_all(conn)
            .await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    fn read(&self, row: &AnyRow) -> Result<Row> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(place, column)| Ok(column.kind.read(row, place)?))
            .collect()
    }

    pub(super) async fn insert(&self, conn: &mut AnyConnection, rows: &[Row]) -> Result<()> {
        let columns = Self::list(self.columns.iter());
        let mut sql = format!("INSERT INTO {} ({columns}) VALUES ", quoted(self.name));
        let mut arguments = AnyArguments::default();
        // SQLite looks for every number among all that came before it: of so many, that takes seconds.
        let is_numbered = Dialect::of_connection(conn) == Dialect::Postgres;
        for (number, row) in rows.iter().enumerate() {
            let first = arguments.len() + 1;
            for value in row {
                value.bind(&mut arguments)?;
            }
            let places = if is_numbered {
                parameters(first..=arguments.len())
            } else {
                vec!["?"; row.len()].join(", ")
            };
            let comma = if number == 0 { "" } else { ", " };
            sql.push_str(&format!("{comma}({places})"));
        }
        // A prepared statement would keep the types of its first parameters, and sqlx gives a real number that is
        // missing another type than one that is there.
        sqlx::query_with(AssertSqlSafe(sql), arguments)
            .persistent(false)
            .execute(conn)
            .await?;
        Ok(())
    }

    /// On PostgreSQL: new rows get numbers above those that were copied, and queries are planned by
    /// what the table holds now.
    pub(super) async fn settle(&self, conn: &mut AnyConnection) -> Result<()> {
        if let [place] = self.key[..]
            && self.columns[place].kind == Kind::Integer
        {
            let column = &self.columns[place].name;
            // Of a column that no sequence numbers, or a table without rows, all of this is NULL and does nothing.
            let sql = format!(
                "SELECT setval(CAST(pg_get_serial_sequence($1, $2) AS regclass),
                   (SELECT max({}) FROM {}))",
                quoted(column),
                quoted(self.name)
            );
            sqlx::query(AssertSqlSafe(sql))
                .bind(self.name)
                .bind(column.as_str())
                .execute(&mut *conn)
                .await?;
        }
        let sql = format!("ANALYZE {}", quoted(self.name));
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await?;
        Ok(())
    }
}

impl Kind {
    /// The kind of a type's name.
    fn of(name: &str) -> Result<Self> {
        match name {
            "integer" | "bigint" => Ok(Self::Integer),
            "real" | "double precision" => Ok(Self::Real),
            "text" => Ok(Self::Text),
            "blob" | "bytea" => Ok(Self::Bytes),
            other => Err(unreadable("type of a column", &other)),
        }
    }

    fn read(self, row: &AnyRow, place: usize) -> std::result::Result<Value, sqlx::Error> {
        Ok(match self {
            Self::Integer => Value::Integer(row.try_get(place)?),
            Self::Real => Value::Real(row.try_get(place)?),
            Self::Text => Value::Text(row.try_get(place)?),
            Self::Bytes => Value::Bytes(row.try_get(place)?),
        })
    }
}

impl Value {
    fn bind(&self, arguments: &mut AnyArguments) -> Result<()> {
        let bound = match self {
            Self::Integer(value) => arguments.add(*value),
            Self::Real(value) => arguments.add(*value),
            Self::Text(value) => arguments.add(value.as_deref()),
            Self::Bytes(value) => arguments.add(value.as_deref()),
        };
        Ok(bound.map_err(sqlx::Error::Encode)?)
    }

    /// Writes the value so that no two rows are written alike.
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Integer(value) => write(bytes, value.map(i64::to_le_bytes)),
            // SQLite keeps no zero with a sign.
            Self::Real(value) => write(bytes, value.map(|real| (real + 0.0).to_le_bytes())),
            Self::Text(value) => write(bytes, value.as_ref()),
            Self::Bytes(value) => write(bytes, value.as_ref()),
        }
    }
}

fn write(bytes: &mut Vec<u8>, value: Option<impl AsRef<[u8]>>) {
    let Some(value) = value else {
        bytes.push(0);
        return;
    };
    let value = value.as_ref();
    bytes.push(1);
    bytes.extend_from_slice(&value.len().to_le_bytes());
    bytes.extend_from_slice(value);
}

impl Sum {
    pub(super) fn add(&mut self, row: &[Value]) {
        let mut bytes = Vec::new();
        row.iter().for_each(|value| value.write(&mut bytes));
        let hash = ContentHash::of(&bytes);
        let half = hash.as_bytes()[..16].iter();
        let number = half.fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(number);
    }
}
