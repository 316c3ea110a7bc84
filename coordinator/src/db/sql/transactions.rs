//! How operations reach the database: through the writer's queue, or by a connection of the readers' pool. And how one
//! undoes a part of itself.

use sqlx::AnyConnection;

use crate::db::error::Result;

/// Lost connections that one read may meet: each connection of the pool once.
pub(crate) const LOST: usize = 9;

/// Begins a part of an operation that is undone by itself if it is refused.
pub(crate) async fn begin_part(conn: &mut AnyConnection) -> Result<()> {
    sqlx::raw_sql("SAVEPOINT part").execute(conn).await?;
    Ok(())
}

/// Keeps what was done since [`begin_part`], or undoes it if it was refused. If the database failed, so does the operation.
pub(crate) async fn end_part<T>(conn: &mut AnyConnection, outcome: Result<T>) -> Result<Result<T>> {
    let end = match &outcome {
        Ok(_) => "RELEASE SAVEPOINT part",
        Err(error) if error.is_temporary() => return outcome.map(Ok),
        Err(_) => "ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part",
    };
    sqlx::raw_sql(end).execute(conn).await?;
    Ok(outcome)
}

/// Queues an operation: `in_write!(self, module::function(arguments))`. Metrics name the module, or `part`.
macro_rules! in_write {
    ($self:ident, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        $crate::db::sql::transactions::in_write!(
            $self, part stringify!($module), $module::$function($($argument),*))
    };
    ($self:ident, part $part:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        $self
            .write($part, move |conn| Box::pin($module::$function(conn, $($argument),*)))
            .await
    }};
}

/// Reads: `in_read!(self.readers, module::function(arguments))`. A connection that turns out to be lost is
/// thrown away and the next one is tried; one that takes too long is thrown away.
macro_rules! in_read {
    ($readers:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        $crate::db::sql::transactions::in_read!(
            $readers, within read, part stringify!($module), $module::$function($($argument),*))
    };
    ($readers:expr, part $part:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        $crate::db::sql::transactions::in_read!(
            $readers, within read, part $part, $module::$function($($argument),*))
    };
    ($readers:expr, within $limit:ident,
     $module:ident :: $function:ident ( $($argument:expr),* )) => {
        $crate::db::sql::transactions::in_read!(
            $readers, within $limit, part stringify!($module), $module::$function($($argument),*))
    };
    ($readers:expr, within $limit:ident, part $part:expr,
     $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let read = async {
            let limit = $readers.deadlines.$limit;
            let mut lost = 0;
            loop {
                let mut lent = $crate::db::sql::deadlines::Lent::from(&$readers.pool).await?;
                let work = $module::$function(lent.connection()?, $($argument),*);
                match $crate::db::sql::deadlines::within(limit, work).await? {
                    Err($crate::db::DbError::Database(error))
                        if $crate::db::sql::is_temporary(&error)
                            && lost < $crate::db::sql::transactions::LOST =>
                    {
                        lost += 1;
                    }
                    answer => {
                        lent.give_back();
                        break answer;
                    }
                }
            }
        };
        let reads = $crate::telemetry::LedgerUse::Read;
        $crate::telemetry::ledger(reads, $part, read).await
    }};
}

pub(crate) use {in_read, in_write};
