//! The two doors to the database: one to the writer's queue, one to the pool of readers.

/// Lost connections that one read may meet: each connection of the pool once.
pub(super) const LOST: usize = 9;

/// Queues an operation: `write!(self, module::function(arguments))`.
macro_rules! write {
    ($self:ident, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let writer = $self.queues()?.writer;
        let work = writer.run(move |conn| Box::pin($module::$function(conn, $($argument),*)));
        let writes = $crate::telemetry::LedgerUse::Write;
        $crate::telemetry::ledger(writes, stringify!($module), work).await
    }};
}

/// Reads: `read!(self.readers, module::function(arguments))`. A connection that turns out to be lost is
/// thrown away and the next one is tried; one that takes too long is thrown away.
macro_rules! read {
    ($readers:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        $crate::db::sql::transactions::read!($readers, within read, $module::$function($($argument),*))
    };
    ($readers:expr, within $limit:ident,
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
        $crate::telemetry::ledger(reads, stringify!($module), read).await
    }};
}

pub(super) use {read, write};
