//! Match games that are worth a look: turnarounds, an upset, the shortest mate and the longest.

use rookery_common::chess::{GameResult, Termination};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;
use rookery_common::protocol::networks::NetworkInfo;

use super::digests::Digested;
use super::error::PageError;
use super::{PagesState, text};
use crate::db::GameFilter;

/// Match games among which they are looked for, the newest.
const GAMES: u32 = 500;
/// Decided ones among which turnarounds and upsets are looked for: their chunks are read.
const READ: usize = 120;
/// Turnarounds that are told.
const TURNS: usize = 3;
/// What the side that lost was expected to score at least, -1 to 1, in a turnaround.
const TURN: f32 = 0.3;
/// Who wins against somebody so many points stronger has caused an upset.
const UPSET: f64 = 50.0;

pub(super) struct Instructive {
    pub(super) game: GameInfo,
    pub(super) white: String,
    pub(super) black: String,
    pub(super) result: &'static str,
    pub(super) why: String,
    /// The ply at which it is, if not as a whole.
    pub(super) ply: Option<usize>,
}

/// The games of a run that are worth a look.
pub(super) async fn find(
    state: &PagesState,
    run: &RunName,
    networks: &[NetworkInfo],
) -> Result<Vec<Instructive>, PageError> {
    let filter = GameFilter {
        run: Some(run.clone()),
        kind: Some(WorkKind::Match),
        limit: GAMES,
        ..GameFilter::default()
    };
    let games = state
        .list(|db| async move { db.games(filter).await })
        .await?;
    let decided = games.iter().filter(|game| game.result != GameResult::Draw);
    let decided = decided.take(READ).cloned().collect();
    let mut level = state.digests.describe(state, decided).await;
    level.retain(|game| game.digest.is_level);
    Ok(choose_games(&games, &level, networks))
}

/// The games in which the side that lost was expected to score most, the greatest turn first.
fn turned(games: &[Digested]) -> Vec<&Digested> {
    let value = |game: &Digested| game.digest.peak.map_or(f32::MIN, |peak| peak.value);
    let mut turned: Vec<_> = games.iter().filter(|game| value(game) >= TURN).collect();
    turned.sort_by(|a, b| value(b).total_cmp(&value(a)));
    turned.truncate(TURNS);
    turned
}

/// Picks among all games and, for turnarounds and upsets, among those that began with equal material.
fn choose_games(
    games: &[GameInfo],
    level: &[Digested],
    networks: &[NetworkInfo],
) -> Vec<Instructive> {
    let mates = || {
        let all = games.iter();
        all.filter(|game| game.termination == Termination::Checkmate)
    };
    let longest = mates().max_by_key(|game| game.plies);
    let shortest = mates().min_by_key(|game| game.plies);
    let turned = turned(level);
    let turns = turned.iter().filter_map(|game| {
        let peak = game.digest.peak?;
        let hope = 50.0 * (1.0 + f64::from(peak.value));
        let why = format!(
            "a turnaround: after {}, the two sides expected on average {} % of the points for the one that lost",
            text::counted(peak.ply as u64, "ply"),
            text::decimal(hope, 0)
        );
        Some((&game.info, why, Some(peak.ply)))
    });
    let upset = greatest_upset(level, networks).map(|(game, points)| {
        let points = text::decimal(points, 0);
        (
            game,
            format!("an upset: the winner is rated {points} points lower"),
            None,
        )
    });
    let mate = |game: &GameInfo, which: &str| {
        format!("the {which} mate, {}", text::counted(game.plies, "ply"))
    };
    let shortest = shortest.map(|game| (game, mate(game, "shortest"), None));
    let longest = longest.map(|game| (game, mate(game, "longest"), None));
    let mut found: Vec<Instructive> = Vec::new();
    for (game, why, ply) in turns.chain(upset).chain(shortest).chain(longest) {
        if found.iter().all(|known| known.game.id != game.id) {
            found.push(Instructive {
                game: game.clone(),
                white: named(game.white, networks),
                black: named(game.black, networks),
                result: text::result(game.result),
                why,
                ply,
            });
        }
    }
    found
}

/// What a network is called: an anchor by its name, others by their number.
fn named(number: NetworkNumber, networks: &[NetworkInfo]) -> String {
    let info = networks.iter().find(|info| info.number == number);
    let anchor = info.and_then(|info| info.anchor.as_ref());
    anchor.map_or_else(|| format!("#{number}"), ToString::to_string)
}

/// The game whose winner is rated most points lower, and how many.
fn greatest_upset<'a>(
    games: &'a [Digested],
    networks: &[NetworkInfo],
) -> Option<(&'a GameInfo, f64)> {
    let elo = |number| {
        let of = networks.iter().find(|info| info.number == number);
        of.and_then(|info| info.rating).map(|rating| rating.elo)
    };
    let upset = |game: &GameInfo| {
        let (white, black) = (elo(game.white)?, elo(game.black)?);
        match game.result {
            GameResult::WhiteWins => Some(black - white),
            GameResult::BlackWins => Some(white - black),
            GameResult::Draw => None,
        }
    };
    games
        .iter()
        .filter_map(|game| Some((&game.info, upset(&game.info)?)))
        .filter(|(_, points)| *points >= UPSET)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use shakmaty::Chess;

    use super::*;
    use crate::pages::digests::{Digest, Peak};
    use crate::pages::story::tests::network;

    pub(in crate::pages) fn game(
        id: i64,
        (white, black): (u32, u32),
        result: &str,
        plies: u32,
    ) -> GameInfo {
        serde_json::from_value(json!({
            "id": id, "run": "main", "kind": "match", "white": white, "black": black, "result": result,
            "termination": "checkmate", "plies": plies, "contributor": "ada", "chunk": "0".repeat(64),
            "place": 0, "accepted_at": "2030-01-01T00:00:00Z",
        }))
        .unwrap()
    }

    pub(in crate::pages) fn digested(info: GameInfo, value: f32) -> Digested {
        Digested {
            info,
            digest: Arc::new(Digest {
                opening: None,
                is_level: true,
                peak: Some(Peak { ply: 21, value }),
                end: (Chess::default(), None),
            }),
        }
    }

    #[test]
    fn an_anchor_is_called_by_its_name() {
        let networks = [
            network(0, 0.0, None),
            network(1, 200.0, Some("alphabeta-1")),
        ];
        let found = choose_games(&[game(1, (0, 1), "white-wins", 90)], &[], &networks);
        assert_eq!(
            (found[0].white.as_str(), found[0].black.as_str()),
            ("#0", "alphabeta-1")
        );
    }

    #[test]
    fn an_upset_and_the_mates_at_both_ends_are_worth_a_look_once_each() {
        let networks = [network(0, 0.0, None), network(1, 200.0, None)];
        let games = [
            game(1, (0, 1), "white-wins", 90),
            game(2, (1, 0), "white-wins", 30),
            game(3, (0, 1), "black-wins", 60),
        ];
        let level = games.clone().map(|game| digested(game, 0.0));
        let found = choose_games(&games, &level, &networks);
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.game.id.0, one.why.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, "an upset: the winner is rated 200 points lower"),
                (2, "the shortest mate, 30 plies"),
            ]
        );
        let without_level = choose_games(&games, &[], &networks);
        assert!(
            without_level
                .iter()
                .all(|one| !one.why.contains("an upset"))
        );
    }

    #[test]
    fn the_greatest_turns_come_first_and_lead_to_where_they_begin() {
        let games = [(1, 0.4), (2, 0.9), (3, 0.1)]
            .map(|(id, value)| digested(game(id, (0, 1), "white-wins", 60), value));
        let found = choose_games(&[], &games, &[]);
        let told: Vec<_> = found.iter().map(|one| (one.game.id.0, one.ply)).collect();
        assert_eq!(told, [(2, Some(21)), (1, Some(21))]);
        assert!(
            found[0].why.contains("95 % of the points"),
            "{}",
            found[0].why
        );
    }
}
