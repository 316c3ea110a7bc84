//! What a warm start says of the games that it read.

use crate::warm::{Counts, Skipped};
use rookery_common::text::quantity;

/// Advice for games that were skipped because their players have no rating.
pub(super) fn unrated(counts: &Counts) -> String {
    match counts.skipped.get(&Skipped::NoRating) {
        None => String::new(),
        Some(1) => "; 1 game has no rating: --assume-elo gives one".to_owned(),
        Some(games) => format!("; {games} games have no rating: --assume-elo gives one"),
    }
}

/// Logs what was read, `fresh` games of it in this session.
pub(super) fn log(counts: &Counts, fresh: u64, seconds: f64) {
    tracing::info!(
        "{} read: {} to train on with {}, {} held out; {:.0} games/s",
        quantity(counts.games_read(), "game"),
        counts.games,
        quantity(counts.positions, "position"),
        counts.held_out,
        fresh as f64 / seconds.max(1e-9)
    );
    for (reason, count) in &counts.skipped {
        let help = match reason {
            Skipped::NoRating => " (--assume-elo gives one)",
            _ => "",
        };
        tracing::info!("{}{help}", reason.line(*count));
    }
}
