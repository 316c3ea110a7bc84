//! Jobs and finished games for tests.

use rookery_common::chunk::{GameRecord, GameStart};
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, Seed};
use rookery_common::params::{SearchParams, SelfPlayParams};
use rookery_common::protocol::jobs::{Job, NetworkRef, Work};
use rookery_engine::dummy::UniformEvaluator;
use rookery_engine::{GamePool, Planned};

/// A self-play job of short games.
pub(crate) fn job(games: u32) -> Job {
    let network = ContentHash::of(b"network");
    let search = SearchParams {
        visits: 4,
        ..SearchParams::default()
    };
    let params = SelfPlayParams {
        search,
        ply_limit: 10,
        ..SelfPlayParams::default()
    };
    Job {
        id: JobId(uuid::Uuid::from_u128(games.into())),
        run: "main".parse().unwrap(),
        lease_seconds: 60,
        heartbeat_seconds: 10,
        seed: Seed(7),
        work: Work::SelfPlay {
            network,
            games,
            openings: Vec::new(),
            params,
        },
        networks: vec![NetworkRef {
            hash: network,
            number: NetworkNumber(0),
            bytes: 1,
            signature: None,
        }],
        run_key: None,
        notices: Vec::new(),
    }
}

/// The job's games, played by a uniform evaluator.
pub(crate) fn games(job: &Job) -> Vec<GameRecord> {
    let Work::SelfPlay { games, params, .. } = &job.work else {
        panic!("a self-play job")
    };
    let plan = |index| Planned {
        index,
        game: GameStart::default(),
    };
    let work = rookery_engine::Work::SelfPlay {
        params: params.clone(),
        games: (0..*games).map(plan).collect(),
    };
    let job = rookery_engine::Job {
        seed: job.seed,
        work,
    };
    let mut pool = GamePool::new(&job, 8, &[]).unwrap();
    pool.run(&mut [&mut UniformEvaluator::default()]).unwrap()
}
