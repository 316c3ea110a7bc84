//! A match in both colours, and its table: the new network against the random one that it began as.

use std::sync::Arc;

use rookery_analysis::Device;
use rookery_analysis::arena::{self, MatchPlan, Players, Standing, report};
use rookery_cli::Shutdown;
use rookery_common::chunk::{GameKind, GameRecord, Side};
use rookery_common::rating::{GameScore, Tally};
use rookery_model::Weights;

/// How a match went.
#[derive(Debug, Default)]
pub struct Evaluation {
    /// The new network's results with White, and with Black.
    colours: [Tally; 2],
    all: Standing,
}

impl Evaluation {
    /// Plays the match.
    ///
    /// # Errors
    ///
    /// If a network cannot be computed, or an opening is wrong.
    pub fn play(
        plan: &MatchPlan,
        [new, old]: [&Weights; 2],
        device: &Device,
        shutdown: &Shutdown,
    ) -> anyhow::Result<Self> {
        let networks = [device.load(new)?, device.load(old)?];
        let seats =
            |_| -> Players<'static> { [0, 1].map(|i| Arc::clone(&networks[i]).evaluator()) };
        let players = (0..device.playing_threads(2 * plan.pairs))
            .map(seats)
            .collect();
        let mut colours = <[Tally; 2]>::default();
        let all = arena::play(plan, players, |game, _| {
            count(&mut colours, game);
            Ok(shutdown.flow())
        })?;
        Ok(Self { colours, all })
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let row = |name: &str, tally: &Tally| {
            let Tally {
                wins,
                draws,
                losses,
                ..
            } = tally;
            format!(
                "| {name} | {} | {wins} | {draws} | {losses} |\n",
                tally.games()
            )
        };
        let [white, black] = &self.colours;
        format!(
            "| the new network has | games | wins | draws | losses |\n|---|---|---|---|---|\n{}{}{}\nNew against random: {}\n",
            row("White", white),
            row("Black", black),
            row("both", &self.all.tally),
            report::line(&self.all)
        )
    }
}

/// Counts a game under the new network's colour.
fn count(colours: &mut [Tally; 2], game: &GameRecord) {
    if let GameKind::Match { candidate, .. } = game.kind {
        let score = GameScore::of(game.end.result, candidate.into());
        colours[usize::from(candidate == Side::Black)].add_game(score);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::{GameEnd, GameResult, Termination};
    use rookery_common::chunk::GameStart;
    use rookery_common::ids::Seed;

    use super::*;

    #[test]
    fn games_are_counted_under_the_new_networks_colour() {
        let mut evaluation = Evaluation::default();
        for (candidate, result) in [
            (Side::White, GameResult::WhiteWins),
            (Side::Black, GameResult::WhiteWins),
            (Side::White, GameResult::Draw),
            (Side::Black, GameResult::BlackWins),
        ] {
            let game = GameRecord {
                index: 0,
                kind: GameKind::Match { pair: 0, candidate },
                seed: Seed(1),
                start: GameStart::default(),
                plies: Vec::new(),
                end: GameEnd {
                    result,
                    termination: Termination::Resignation,
                },
            };
            count(&mut evaluation.colours, &game);
        }
        let table = evaluation.table();
        assert!(
            table.contains("| White | 2 | 1 | 1 | 0 |\n| Black | 2 | 1 | 0 | 1 |\n"),
            "{table}"
        );
    }
}
