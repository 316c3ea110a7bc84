//! Tree nodes a second on one core with a free evaluator: what search itself costs.
//!
//! `cargo run --release -p rookery-engine --example tree_speed [visits [games [input [solver]]]]`; `solver` is 0 or 1.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

use std::time::Instant;

use rookery_common::chunk::record::GameStart;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::Seed;
use rookery_common::params::{SearchParams, SelfPlayParams};
use rookery_engine::dummy::UniformEvaluator;
use rookery_engine::{GamePool, Job, Planned, Work};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (visits, games) = (number(800), number(32));
    let input = InputEncoding::ALL[number(2) as usize % 3];
    let solver = number(0) == 1;
    let search = SearchParams {
        visits,
        solver,
        ..SearchParams::default()
    };
    let params = SelfPlayParams {
        search,
        ply_limit: 20,
        ..SelfPlayParams::default()
    };
    let plan = |index| Planned {
        index,
        game: GameStart::default(),
    };
    let work = Work::SelfPlay {
        params,
        games: (0..games).map(plan).collect(),
    };
    let job = Job {
        seed: Seed(1),
        work,
    };
    let mut pool = GamePool::new(&job, games as usize, &[]).expect("the job is sound");
    let mut evaluator = UniformEvaluator::new(input, PolicyEncoding::Lc01858);
    let start = Instant::now();
    let records = pool.run(&mut [&mut evaluator]).expect("it never fails");
    let seconds = start.elapsed().as_secs_f64();
    let progress = pool.progress();
    println!(
        "{} games, {} positions, {} visits with {} in {seconds:.2} s: {:.0} nodes/s",
        records.len(),
        progress.positions,
        progress.visits,
        input.name(),
        progress.visits as f64 / seconds,
    );
}
