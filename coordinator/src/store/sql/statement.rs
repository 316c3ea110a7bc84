//! Statements whose length is only known when they are made, with numbered parameters.

use sqlx::any::AnyArguments;
use sqlx::{Any, Arguments as _, AssertSqlSafe, Encode, Type};

use crate::store::error::Result;

/// A statement in the making: fixed pieces of SQL, and values as parameters between them.
pub(super) struct Statement {
    sql: String,
    arguments: AnyArguments,
}

impl Statement {
    /// Begins with this piece.
    pub(super) fn new(sql: &'static str) -> Self {
        Self {
            sql: sql.to_owned(),
            arguments: AnyArguments::default(),
        }
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// Adds a parameter.
    pub(super) fn bind<'q, T>(&mut self, value: T) -> Result<&mut Self>
    where
        T: Encode<'q, Any> + Type<Any>,
    {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        self.sql.push('$');
        self.sql.push_str(&self.arguments.len().to_string());
        Ok(self)
    }

    /// The SQL, which holds nothing but fixed pieces, and its parameters.
    pub(super) fn finish(self) -> (AssertSqlSafe<String>, AnyArguments) {
        (AssertSqlSafe(self.sql), self.arguments)
    }
}
