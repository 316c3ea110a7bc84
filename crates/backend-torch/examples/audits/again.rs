//! Searches of a sample of games, made again and compared as in an audit.

use rookery_common::audit::{
    AuditDepth, Disagreement, SampledGame, sample, span_distances, task, warm_up,
};
use rookery_common::chunk::GameRecord;
use rookery_common::ids::Seed;
use rookery_common::protocol::audits::AuditedRules;
use rookery_engine::{AuditedGame, Evaluator, GamePool, Job, Planned, Work};

use crate::Outcome;

/// What is known of these games when an audit is planned.
pub(crate) fn sampled(games: &[GameRecord]) -> Vec<SampledGame> {
    let sampled = games.iter().map(|game| SampledGame {
        index: game.index,
        plies: game.plies.len() as u32,
        termination: game.end.termination,
    });
    sampled.collect()
}

/// Samples games and searches the samples again; the distances of each span.
pub(crate) fn audit(
    rules: &AuditedRules,
    games: &[GameRecord],
    chance: u64,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<Vec<Disagreement>>> {
    let spans = sample(
        &sampled(games),
        warm_up(rules),
        AuditDepth::Full,
        Seed(chance),
    );
    let mut audited = Vec::new();
    for (index, span) in (0..).zip(&spans) {
        let game = AuditedGame::of(&task(&games[span.game as usize], span, 0)?)?;
        audited.push(Planned { index, game });
    }
    let work = Work::Audit {
        rules: rules.clone(),
        games: audited,
    };
    let job = Job {
        seed: Seed(0),
        work,
    };
    let mut again = GamePool::new(&job, 64, &[])?.run(&mut [evaluator])?;
    again.sort_by_key(|game| game.index);
    let distances = spans
        .iter()
        .zip(&again)
        .map(|(span, game)| span_distances(&games[span.game as usize], span, game).collect());
    Ok(distances.collect())
}
