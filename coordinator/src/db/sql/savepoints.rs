//! How an operation undoes a part of itself.

use sqlx::AnyConnection;

use crate::db::error::Result;

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
