//! What a warm start says of the games that it read.

use crate::warm::{Counts, Skipped};

/// What helps where games were passed over because nobody has rated their players.
pub(super) fn unrated(counts: &Counts) -> String {
    let help = |games| {
        format!("; {games} games have no rating: --assume-elo says which one they are to have")
    };
    let games = counts.skipped.get(&Skipped::NoRating);
    games.map_or_else(String::new, help)
}

/// Logs what was read, `fresh` games of it in this session.
pub(super) fn log(counts: &Counts, fresh: u64, seconds: f64) {
    tracing::info!(
        "{} games read: {} to train on with {} positions, {} held out; {:.0} games/s",
        counts.games_read(),
        counts.games,
        counts.positions,
        counts.held_out,
        fresh as f64 / seconds.max(1e-9)
    );
    for (reason, count) in &counts.skipped {
        let help = match reason {
            Skipped::NoRating => " (--assume-elo gives them one)",
            _ => "",
        };
        tracing::info!("passed over: {count} games: {reason}{help}");
    }
}
