//! Lists of games. Anybody may ask for them, so no filter and no order looks through all that there are.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;

use super::{GameRow, SELECT};
use crate::db::error::Result;
use crate::db::models::{runs, users};
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::statement::Statement;
use crate::db::types::{GameFilter, GameSort};
use crate::openings::OpeningFilter;

impl Ledger {
    /// Games of a filter, in its order.
    pub async fn games(&self, filter: GameFilter) -> Result<Vec<GameInfo>> {
        read!(self, "games", |conn| async {
            let run = match &filter.run {
                Some(run) => Some(runs::id_of(conn, run).await?),
                None => None,
            };
            let contributor = match &filter.contributor {
                Some(name) => Some(users::id_of(conn, name).await?),
                None => None,
            };
            let rows: Vec<GameRow> = build_query(&filter, run, contributor)?
                .fetch_all(conn)
                .await?;
            rows.into_iter().map(GameRow::into_info).collect()
        })
    }
}

fn build_query(
    filter: &GameFilter,
    run: Option<i64>,
    contributor: Option<i64>,
) -> Result<Statement> {
    let mut query = Statement::new(SELECT);
    let (inner, outer) = match filter.sort {
        GameSort::Newest => {
            push_newest(&mut query, filter, run, contributor)?;
            return Ok(query);
        }
        GameSort::Longest => ("s.plies DESC, s.id DESC", "g.plies DESC, g.id DESC"),
        GameSort::Shortest => ("s.plies, s.id DESC", "g.plies, g.id DESC"),
    };
    // Only what is listed is joined with chunks and contributors.
    query.push("WHERE g.id IN (SELECT s.id FROM (SELECT g.id, g.plies FROM games g ");
    if contributor.is_some() {
        query.push("JOIN chunks c ON c.sequence = g.chunk ");
    }
    let newest = GameFilter {
        limit: GameSort::GAMES as u32,
        ..filter.clone()
    };
    push_newest(&mut query, &newest, run, contributor)?;
    query.push(") AS s ORDER BY ").push(inner).push(" LIMIT ");
    query.bind(i64::from(filter.limit))?.push(") ORDER BY ");
    query.push(outer);
    Ok(query)
}

/// Adds the conditions that choose a filter's newest games, and how many are wanted.
fn push_newest(
    query: &mut Statement,
    filter: &GameFilter,
    run: Option<i64>,
    contributor: Option<i64>,
) -> Result<()> {
    match (contributor, filter.network) {
        (Some(user), _) => newest_of(query, filter, run, user)?,
        (None, None) => match filter.opening.filter(|_| filter.match_id.is_none()) {
            Some(opening) => of_opening(query, opening, filter, run)?,
            None => {
                query.push("WHERE TRUE");
                newest(query, filter, run)?;
            }
        },
        (None, Some(network)) if filter.kind == Some(WorkKind::Match) => {
            of_matches(query, filter, run, network)?;
        }
        (None, Some(network)) => {
            // An index for each side: neither serves a condition that joins them by OR.
            query.push("WHERE g.id IN (SELECT id FROM (");
            of_side(query, "white", network, filter, run)?;
            query.push(") AS w UNION SELECT id FROM (");
            of_side(query, "black", network, filter, run)?;
            query.push(") AS b) ORDER BY g.id DESC LIMIT ");
            query.bind(i64::from(filter.limit))?;
        }
    }
    Ok(())
}

/// Adds all conditions for match games in which a network plays, and how many are wanted. Its matches lead to them: among
/// its games there may be a thousand others for each.
fn of_matches(
    query: &mut Statement,
    filter: &GameFilter,
    run: Option<i64>,
    network: NetworkNumber,
) -> Result<()> {
    let number = i64::from(network.0);
    query.push("WHERE g.match_id IN (SELECT m.id FROM matches m WHERE (m.candidate = ");
    query.bind(number)?.push(" OR m.opponent = ");
    query.bind(number)?.push(")");
    if let Some(run) = run {
        query.push(" AND m.run_id = ").bind(run)?;
        // With the plus no database takes the index of the run's games instead.
        query.push(") AND +g.run_id = ").bind(run)?;
    } else {
        query.push(")");
    }
    newest(query, filter, None)
}

/// Adds all conditions for games that began so, and how many are wanted.
fn of_opening(
    query: &mut Statement,
    opening: OpeningFilter,
    filter: &GameFilter,
    run: Option<i64>,
) -> Result<()> {
    let (column, name) = column(opening);
    query.push("WHERE g.").push(column);
    query.push(" = ").bind(name)?;
    newest(query, filter, run)
}

/// The column in which an opening is found, and what it holds there.
const fn column(opening: OpeningFilter) -> (&'static str, &'static str) {
    match opening {
        OpeningFilter::Code(code) => ("eco", code),
        OpeningFilter::Family(name) => ("opening", name),
    }
}

/// Adds a query for games that a network plays on one side, and how many are wanted. No index finds the kind among them, so
/// it is looked for in the newest of them.
fn of_side(
    query: &mut Statement,
    side: &'static str,
    network: NetworkNumber,
    filter: &GameFilter,
    run: Option<i64>,
) -> Result<()> {
    let number = i64::from(network.0);
    query.push("SELECT g.id FROM games g WHERE g.").push(side);
    query.push(" = ").bind(number)?;
    if filter.kind.is_some() {
        query.push(" AND g.id >= COALESCE((SELECT n.id FROM games n WHERE n.");
        query.push(side).push(" = ").bind(number)?;
        if let Some(run) = run {
            query.push(" AND n.run_id = ").bind(run)?;
        }
        if let Some(before) = filter.before {
            query.push(" AND n.id < ").bind(before.0)?;
        }
        query.push(" ORDER BY n.id DESC LIMIT 1 OFFSET ");
        query.bind(LOOKED_THROUGH)?.push("), 0)");
    }
    newest(query, filter, run)
}

/// Adds a filter's conditions but the network to those of a query, and how many games are wanted.
fn newest(query: &mut Statement, filter: &GameFilter, run: Option<i64>) -> Result<()> {
    if let Some(run) = run {
        query.push(" AND g.run_id = ").bind(run)?;
    }
    match filter.kind {
        // With something added no database takes the index of kinds instead of that of openings.
        Some(kind) if filter.opening.is_some() => {
            query.push(" AND g.kind || '' = ").bind(kind.name())?
        }
        Some(kind) => query.push(" AND g.kind = ").bind(kind.name())?,
        // What audits search again are no games.
        None => query.push(" AND g.kind <> 'audit'"),
    };
    narrow(query, filter)?;
    let limit = i64::from(filter.limit);
    query.push(" ORDER BY g.id DESC LIMIT ").bind(limit)?;
    Ok(())
}

/// Adds all conditions for games that a contributor sent, and how many are wanted. Indexes lead to
/// the contributor's newest chunks and from these to their games: so many chunks hold as many games,
/// but the first of them perhaps none before the one that is named. Games that are then sorted come
/// from fewer chunks.
fn newest_of(
    query: &mut Statement,
    filter: &GameFilter,
    run: Option<i64>,
    user: i64,
) -> Result<()> {
    query.push("WHERE c.sequence IN (SELECT k.sequence FROM chunks k");
    query.push(" WHERE k.user_id = ").bind(user)?;
    if let Some(run) = run {
        // With the plus no database takes the index of the run's chunks instead.
        query.push(" AND +k.run_id = ").bind(run)?;
    }
    match filter.kind {
        Some(kind) => query.push(" AND k.kind = ").bind(kind.name())?,
        None => query.push(" AND k.kind <> 'audit'"),
    };
    if let Some(before) = filter.before {
        query.push(" AND k.sequence <= (SELECT b.chunk FROM games b WHERE b.id <= ");
        query.bind(before.0)?.push(" ORDER BY b.id DESC LIMIT 1)");
    }
    if filter.network.is_some() || filter.match_id.is_some() || filter.is_searched() {
        query.push(
            " AND k.sequence >= COALESCE((SELECT l.sequence FROM chunks l WHERE l.user_id = ",
        );
        query.bind(user)?;
        if let Some(before) = filter.before {
            query.push(" AND l.sequence <= (SELECT b.chunk FROM games b WHERE b.id <= ");
            query.bind(before.0)?.push(" ORDER BY b.id DESC LIMIT 1)");
        }
        query.push(" ORDER BY l.sequence DESC LIMIT 1 OFFSET ");
        query.bind(CHUNKS_LOOKED_THROUGH)?.push("), 0)");
        query.push(" AND EXISTS (SELECT 1 FROM games g WHERE g.chunk = k.sequence");
        of_either(query, filter.network)?;
        narrow(query, filter)?;
        query.push(")");
    }
    let limit = i64::from(filter.limit);
    let chunks = match filter.sort {
        GameSort::Newest => limit + 1,
        GameSort::Longest | GameSort::Shortest => GameSort::CHUNKS as i64,
    };
    query.push(" ORDER BY k.sequence DESC LIMIT ");
    query.bind(chunks)?.push(")");
    of_either(query, filter.network)?;
    narrow(query, filter)?;
    query.push(" ORDER BY g.id DESC LIMIT ").bind(limit)?;
    Ok(())
}

/// Adds the condition that a network plays on either side.
fn of_either(query: &mut Statement, network: Option<NetworkNumber>) -> Result<()> {
    if let Some(network) = network {
        let number = i64::from(network.0);
        query.push(" AND (g.white = ").bind(number)?;
        query.push(" OR g.black = ").bind(number)?.push(")");
    }
    Ok(())
}

/// How many games are looked through for what no index finds: where nearly all are drawn, wins are far apart.
const LOOKED_THROUGH: i64 = 200_000;
/// The same for chunks of a contributor.
const CHUNKS_LOOKED_THROUGH: i64 = 20_000;

/// Adds the conditions on match, end, length and place in the list.
fn narrow(query: &mut Statement, filter: &GameFilter) -> Result<()> {
    if let Some(id) = filter.match_id {
        query.push(" AND g.match_id = ").bind(id.0)?;
    }
    if let Some(before) = filter.before {
        query.push(" AND g.id < ").bind(before.0)?;
    }
    if let Some(result) = filter.result {
        query.push(" AND g.result = ").bind(result.name())?;
    }
    if let Some(termination) = filter.termination {
        query
            .push(" AND g.termination = ")
            .bind(termination.name())?;
    }
    if let Some(opening) = filter.opening {
        // The same: what leads to the games is chosen elsewhere.
        let (column, name) = column(opening);
        query.push(" AND g.").push(column);
        query.push(" || '' = ").bind(name)?;
    }
    if let Some((least, most)) = filter.plies {
        query.push(" AND g.plies >= ").bind(i64::from(least))?;
        query.push(" AND g.plies <= ").bind(i64::from(most))?;
    }
    if filter.is_searched() {
        query.push(" AND g.id >= ");
        match filter.before {
            Some(before) => query.bind(before.0.saturating_sub(LOOKED_THROUGH))?,
            None => query
                .push("(SELECT max(n.id) FROM games n) - ")
                .bind(LOOKED_THROUGH)?,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite finds the games.
    async fn plan(filter: &GameFilter, contributor: Option<i64>) -> String {
        build_query(filter, Some(1), contributor)
            .unwrap()
            .plan()
            .await
    }

    /// A network has a thousand games of training for each match game, and anybody may ask for either.
    #[tokio::test]
    async fn no_filter_looks_through_all_games_of_a_network_or_contributor() {
        let filter = |kind, network| GameFilter {
            kind,
            network,
            limit: 50,
            ..GameFilter::default()
        };
        let network = Some(NetworkNumber(3));
        let of_matches = plan(&filter(Some(WorkKind::Match), network), None).await;
        assert!(
            of_matches.contains("games_of_match") && !of_matches.contains("games_of_white"),
            "{of_matches}"
        );
        let of_kind = plan(&filter(Some(WorkKind::Puzzles), network), None).await;
        for index in ["games_of_white", "games_of_black"] {
            let bound = format!("n USING COVERING INDEX {index}");
            assert!(of_kind.contains(&bound), "{of_kind}");
        }
        let of_contributor = plan(&filter(None, network), Some(7)).await;
        // A job may have come in as many chunks, and each of them is looked into.
        for part in [
            "l USING COVERING INDEX chunks_of_user",
            "g USING INDEX games_of_chunk",
        ] {
            assert!(of_contributor.contains(part), "{of_contributor}");
        }
    }

    /// What is sorted are the newest games that the same indexes find; only those in the list are joined with others.
    #[tokio::test]
    async fn sorted_games_are_found_as_the_newest_are() {
        let filter = GameFilter {
            sort: GameSort::Longest,
            limit: 50,
            ..GameFilter::default()
        };
        let of_kind = GameFilter {
            kind: Some(WorkKind::SelfPlay),
            ..filter.clone()
        };
        for (filter, contributor, index) in [
            (&filter, None, "games_of_run"),
            (&of_kind, None, "games_of_kind"),
            (&filter, Some(7), "chunks_of_user"),
        ] {
            let found = plan(filter, contributor).await;
            let listed = "SEARCH g USING INTEGER PRIMARY KEY (rowid=?)";
            assert!(found.contains(index) && found.contains(listed), "{found}");
            assert!(!found.contains("SCAN g"), "{found}");
        }
    }

    #[tokio::test]
    async fn an_opening_is_found_by_its_index() {
        for (opening, column, index) in [
            (OpeningFilter::Code("B20"), "eco", "games_of_eco"),
            (
                OpeningFilter::Family("Sicilian Defense"),
                "opening",
                "games_of_opening",
            ),
        ] {
            for kind in [None, Some(WorkKind::Match)] {
                let filter = GameFilter {
                    kind,
                    opening: Some(opening),
                    limit: 50,
                    ..GameFilter::default()
                };
                let found = plan(&filter, None).await;
                let games = match kind {
                    // It is looked for in the newest games only.
                    Some(_) => {
                        format!("SEARCH g USING INDEX {index} (run_id=? AND {column}=? AND id>?)")
                    }
                    None => format!("SEARCH g USING INDEX {index} (run_id=? AND {column}=?)"),
                };
                assert!(
                    found.contains(&games) && !found.contains("B-TREE"),
                    "{found}"
                );
            }
        }
        let both = GameFilter {
            network: Some(NetworkNumber(3)),
            opening: Some(OpeningFilter::Code("B20")),
            limit: 50,
            ..GameFilter::default()
        };
        let found = plan(&both, None).await;
        assert!(
            found.contains("games_of_white") && !found.contains("games_of_eco"),
            "{found}"
        );
        let found = plan(&both, Some(7)).await;
        assert!(
            found.contains("chunks_of_user") && !found.contains("games_of_eco"),
            "{found}"
        );
    }
}
