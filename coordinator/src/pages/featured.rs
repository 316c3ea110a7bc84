//! The game of the day: of the best network's wins, the one in which it was least in trouble.

use askama::Template;
use jiff::Timestamp;
use rookery_common::chess::{GameResult, Termination};
use rookery_common::chunk::Side;
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;

use super::PagesState;
use super::board::{Board, squares};
use super::digests::Digested;
use super::error::PageError;
use super::text;
use crate::db::GameFilter;

/// Match games of the best network among which it is looked for, the newest: more than those that it loses to programs in
/// its first matches with them.
const GAMES: u32 = 200;
/// Shorter games show little, longer ones are dull.
const PLIES: std::ops::RangeInclusive<u32> = 30..=160;

#[derive(Template)]
#[template(path = "featured.html")]
pub(super) struct Featured {
    game: GameInfo,
    winner: NetworkNumber,
    loser: NetworkNumber,
    color: &'static str,
    /// What the loser could hope for at most, in percent of the points.
    hope: f64,
    board: Board,
}

/// The game of the day; none if the best network has won none lately.
pub(super) async fn find(
    state: &PagesState,
    run: &RunName,
    best: NetworkNumber,
) -> Result<Option<Featured>, PageError> {
    let filter = GameFilter {
        run: Some(run.clone()),
        network: Some(best),
        kind: Some(WorkKind::Match),
        limit: GAMES,
        ..GameFilter::default()
    };
    let mut games = state
        .list(|db| async move { db.games(filter).await })
        .await?;
    games.retain(|game| winner_of(game) == Some(best) && is_telling(game));
    let games = state.digests.describe(state, games).await;
    Ok(pick(&games, state.now()).map(|game| Featured::new(game, best)))
}

const fn winner_of(game: &GameInfo) -> Option<NetworkNumber> {
    match game.result {
        GameResult::WhiteWins => Some(game.white),
        GameResult::BlackWins => Some(game.black),
        GameResult::Draw => None,
    }
}

fn is_telling(game: &GameInfo) -> bool {
    let by_strength = matches!(
        game.termination,
        Termination::Checkmate | Termination::Resignation
    );
    by_strength && PLIES.contains(&game.plies)
}

/// Of the games that began with equal material, the cleanest one of the newest day that is over, or else of today. Games
/// come with the newest first.
fn pick(games: &[Digested], now: Timestamp) -> Option<&Digested> {
    let today = now.strftime("%Y-%m-%d").to_string();
    let day = |game: &&Digested| game.info.accepted_at.chars().take(10).collect::<String>();
    let level = || games.iter().filter(|game| game.digest.is_level);
    let over = level().map(|game| day(&game)).find(|day| *day != today);
    let chosen = over.unwrap_or(today);
    let of_day = level().filter(|game| day(game) == chosen);
    of_day
        .filter_map(|game| Some((game, game.digest.peak?.value)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(game, _)| game)
}

impl Featured {
    fn new(game: &Digested, winner: NetworkNumber) -> Self {
        let info = game.info.clone();
        let (color, below, loser) = match info.result {
            GameResult::BlackWins => ("Black", Side::Black, info.white),
            _ => ("White", Side::White, info.black),
        };
        let (position, last) = &game.digest.end;
        let marked = last.map(squares).unwrap_or_default();
        Self {
            winner,
            loser,
            color,
            hope: game
                .digest
                .peak
                .map_or(50.0, |peak| 50.0 * (1.0 + f64::from(peak.value))),
            board: Board::new(position, &marked, below),
            game: info,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pages::instructive::tests as instructive;

    fn game(id: i64, day: &str, value: f32) -> Digested {
        let mut info = instructive::game(id, (3, 1), "white-wins", 57);
        info.accepted_at = format!("{day}T10:00:00Z");
        instructive::digested(info, value)
    }

    #[test]
    fn a_game_that_began_with_unequal_material_is_not_shown() {
        let now: Timestamp = "2030-01-03T12:00:00Z".parse().unwrap();
        let mut odds = game(1, "2030-01-02", -0.9);
        Arc::get_mut(&mut odds.digest).unwrap().is_level = false;
        let games = [odds, game(2, "2030-01-01", -0.1)];
        assert_eq!(pick(&games, now).unwrap().info.id.0, 2);
    }

    #[test]
    fn the_cleanest_game_of_the_last_whole_day_is_shown() {
        let now: Timestamp = "2030-01-03T12:00:00Z".parse().unwrap();
        let games = [
            game(5, "2030-01-03", -0.9),
            game(4, "2030-01-02", 0.3),
            game(3, "2030-01-02", -0.2),
            game(2, "2030-01-01", -0.8),
        ];
        let picked = |games: &[Digested]| pick(games, now).map(|game| game.info.id.0);
        assert_eq!(picked(&games), Some(3));
        assert_eq!(picked(&games[..1]), Some(5), "none of an earlier day");
        assert_eq!(picked(&[]), None);
    }

    #[test]
    fn it_is_told_from_the_winners_side() {
        let mut won = game(1, "2030-01-01", -0.5);
        won.info.result = GameResult::BlackWins;
        (won.info.white, won.info.black) = (NetworkNumber(1), NetworkNumber(3));
        assert_eq!(winner_of(&won.info), Some(NetworkNumber(3)));
        let told = Featured::new(&won, NetworkNumber(3)).render().unwrap();
        assert!(told.contains("with Black"), "{told}");
        assert!(told.contains("25 %"), "{told}");
    }
}
