//! Lists of matches. Anybody may ask for them, so each is found by an index or among the newest.

use jiff::Timestamp;
use rookery_common::protocol::matches::MatchInfo;

use crate::db::error::Result;
use crate::db::models::matches::{self, MatchRow};
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::statement::Statement;
use crate::db::types::{MatchFilter, MatchGroup, MatchSort};

/// How many of the newest matches are looked through for an order that no index has.
pub(crate) const SORTED: i64 = 10_000;

fn build_query(filter: &MatchFilter, run: i64) -> Result<Statement> {
    let mut query = Statement::new(matches::SELECT);
    if filter.sort == MatchSort::Newest {
        query.push("WHERE ");
        push_conditions(&mut query, filter, run)?;
        query.push(" ORDER BY m.id DESC");
    } else {
        query.push("WHERE m.id IN (SELECT m.id FROM matches m WHERE ");
        push_conditions(&mut query, filter, run)?;
        query.push(" ORDER BY m.id DESC LIMIT ").bind(SORTED)?;
        query.push(") ORDER BY ").push(match filter.sort {
            MatchSort::Score => {
                "CASE WHEN m.wins + m.draws + m.losses = 0 THEN -1.0
                 ELSE (m.wins + 0.5 * m.draws) / (m.wins + m.draws + m.losses) END DESC, "
            }
            MatchSort::Games | MatchSort::Newest => "m.wins + m.draws + m.losses DESC, ",
        });
        query.push("m.id DESC");
    }
    query.push(" LIMIT ").bind(i64::from(filter.limit))?;
    Ok(query)
}

/// Adds the conditions of a filter. Only an open match may be of either purpose, so one column finds each group.
fn push_conditions(query: &mut Statement, filter: &MatchFilter, run: i64) -> Result<()> {
    match filter.network {
        None => query.push("m.run_id = ").bind(run)?,
        Some(network) => {
            let number = i64::from(network.0);
            query.push("m.id IN (SELECT c.id FROM matches c WHERE c.run_id = ");
            query.bind(run)?.push(" AND c.candidate = ").bind(number)?;
            query.push(" UNION ALL SELECT o.id FROM matches o WHERE o.run_id = ");
            query.bind(run)?.push(" AND o.opponent = ").bind(number)?;
            query.push(")")
        }
    };
    query.push(match filter.group {
        None => "",
        Some(MatchGroup::Gates) => " AND m.purpose = 'gate'",
        Some(MatchGroup::Ratings) => " AND m.purpose = 'rating'",
        Some(MatchGroup::Open) => " AND m.status = 'open'",
        Some(MatchGroup::Promoted) => " AND m.status = 'promoted'",
        Some(MatchGroup::Rejected) => " AND m.status = 'rejected'",
    });
    if let Some(before) = filter.before {
        query.push(" AND m.id < ").bind(before.0)?;
    }
    Ok(())
}

impl Ledger {
    /// Matches of a run that a visitor asks for, in the order that is wanted.
    pub async fn matches(&self, filter: &MatchFilter, now: Timestamp) -> Result<Vec<MatchInfo>> {
        read!(self, "matches", |conn| async {
            let run = runs::id_of(conn, &filter.run).await?;
            let rows: Vec<MatchRow> = build_query(filter, run)?.fetch_all(conn).await?;
            matches::infos(conn, rows, now).await
        })
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::ids::NetworkNumber;

    use super::*;

    #[tokio::test]
    async fn matches_of_a_network_are_found_by_an_index_for_each_side() {
        let newest = MatchFilter::newest(&"main".parse().unwrap(), 200);
        for sort in [MatchSort::Newest, MatchSort::Games] {
            for group in [None, Some(MatchGroup::Open)] {
                let filter = MatchFilter {
                    group,
                    network: Some(NetworkNumber(3)),
                    sort,
                    ..newest.clone()
                };
                let found = build_query(&filter, 1).unwrap().plan().await;
                for (side, index) in [("c", "candidate"), ("o", "opponent")] {
                    let index =
                        format!("{side} USING COVERING INDEX matches_of_{index} (run_id=? AND");
                    assert!(found.contains(&index), "{found}");
                }
                assert!(!found.contains("SCAN m"), "{found}");
                assert!(!found.contains("matches_of_run"), "{found}");
            }
        }
    }
}
