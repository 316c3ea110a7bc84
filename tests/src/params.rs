//! Parameters of runs that finish within a test.

use rookery_common::params::{Optimizer, RunParams, SearchParams};
use rookery_common::rating::gate::GateRule;

/// A run whose every part is small: few visits, short games, tiny jobs, one candidate after a few
/// hundred positions.
pub fn tiny() -> RunParams {
    let mut params = RunParams::default();
    let search = SearchParams {
        visits: 6,
        // Games are whole, and as long as their limit.
        solver: false,
        ..SearchParams::default()
    };
    params.selfplay.search = search.clone();
    params.selfplay.ply_limit = 40;
    params.puzzle.search = search.clone();
    params.puzzle.ply_limit = 8;
    params.matches.search = SearchParams {
        noise: None,
        ..search
    };
    params.matches.ply_limit = 20;
    params.gate = GateRule::Fixed {
        games: 4,
        threshold: 0.55,
    };
    params.scheduling.puzzle_share = 0.0;
    params.scheduling.anchor_share = 0.0;
    params.scheduling.selfplay_games = 6;
    params.scheduling.match_games = 4;
    // Far longer than a test takes on a slow machine.
    params.scheduling.lease_seconds = 3600;
    params.training.batch_size = 32;
    params.training.steps_per_candidate = 4;
    params.training.positions_per_candidate = 200;
    params.training.window.min = 200;
    params.training.optimizer = Optimizer::Sgd { momentum: 0.9 };
    params
}
