//! Networks in the formats of other programs.

use std::collections::HashMap;

use rookery_common::ids::ContentHash;
use rookery_common::protocol::API_PREFIX;
use rookery_common::protocol::networks::NetworkExport;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::sql::rows::{hash, parse, to_count};

pub(crate) async fn of_network(
    conn: &mut AnyConnection,
    network: &ContentHash,
) -> Result<Vec<NetworkExport>> {
    let rows: Vec<(String, Vec<u8>, i64)> = sqlx::query_as(
        "SELECT format, hash, bytes FROM network_exports WHERE network = $1 ORDER BY format",
    )
    .bind(&network.as_bytes()[..])
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| export(network, row)).collect()
}

/// All exports of a run's networks, by network.
pub(crate) async fn of_run(
    conn: &mut AnyConnection,
    run: i64,
) -> Result<HashMap<ContentHash, Vec<NetworkExport>>> {
    let rows: Vec<(Vec<u8>, String, Vec<u8>, i64)> = sqlx::query_as(
        "SELECT e.network, e.format, e.hash, e.bytes FROM network_exports e
         JOIN networks n ON n.hash = e.network WHERE n.run_id = $1 ORDER BY e.format",
    )
    .bind(run)
    .fetch_all(conn)
    .await?;
    let mut exports: HashMap<_, Vec<_>> = HashMap::new();
    for (network, name, bytes, size) in rows {
        let network = hash(&network)?;
        let export = export(&network, (name, bytes, size))?;
        exports.entry(network).or_default().push(export);
    }
    Ok(exports)
}

/// An export from its columns: format, hash, size.
fn export(network: &ContentHash, row: (String, Vec<u8>, i64)) -> Result<NetworkExport> {
    let (name, bytes, size) = row;
    Ok(NetworkExport {
        format: parse("export format", &name)?,
        hash: hash(&bytes)?,
        bytes: to_count(size),
        file: format!("{API_PREFIX}/networks/{network}/file?format={name}"),
    })
}
