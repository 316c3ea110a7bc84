//! A match in both colours, and its table: the new network against the random one that it began as.

use std::sync::Arc;

use rookery_analysis::Device;
use rookery_analysis::arena::{self, MatchPlan, Players, Standing, report};
use rookery_cli::Shutdown;
use rookery_model::Weights;

/// Plays the match, in which the new network's wins are counted.
///
/// # Errors
///
/// If a network cannot be computed, or an opening is wrong.
pub fn play(
    plan: &MatchPlan,
    [new, random]: [&Weights; 2],
    device: &Device,
    shutdown: &Shutdown,
) -> anyhow::Result<Standing> {
    let networks = [device.load(new)?, device.load(random)?];
    let seats = |_| -> Players<'static> { [0, 1].map(|i| Arc::clone(&networks[i]).evaluator()) };
    let threads = device.playing_threads(2 * plan.pairs);
    let players = (0..threads).map(seats).collect();
    arena::play(plan, players, |_, _| Ok(shutdown.flow()))
}

/// The table, in Markdown, and the line with the difference in Elo.
pub fn table(standing: &Standing) -> String {
    let table = report::table("the new network", standing);
    format!("{table}\nNew against random: {}\n", report::line(standing))
}
