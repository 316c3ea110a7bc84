//! Leases: what is handed out, to whom and how much.

use std::time::Duration;

use rookery_common::ids::{Seed, UserId};
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Job, Work, WorkKind};
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::db::{Chances, DbError, LeaseQuotas, SharedDatabase};

use super::{chances, network, request, run, user};
use crate::support::app::params;
use crate::support::noon;

async fn lease(db: &SharedDatabase, user: UserId, chances: Chances) -> Option<Job> {
    db.lease(request(user, chances), noon()).await.unwrap()
}

pub(super) async fn shares_decide_what_is_handed_out(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    let mut half = params();
    half.scheduling.gate_share = 0.5;
    run(&db, "a", half).await;
    assert!(
        lease(&db, ann, chances(1, 0.0)).await.is_none(),
        "no network yet"
    );
    for number in 0..2 {
        db.submit_network(network("a", ann, number), noon())
            .await
            .unwrap();
    }
    let kind = async |job, gate| {
        lease(&db, ann, chances(job, gate))
            .await
            .unwrap()
            .work
            .kind()
    };
    assert_eq!(kind(2, 0.49).await, WorkKind::Match);
    assert_eq!(kind(3, 0.51).await, WorkKind::SelfPlay);
    let job = lease(&db, ann, chances(4, 0.9)).await.unwrap();
    assert_eq!(job.seed, Seed(u64::MAX));
    let leased = db.leased_job(job.id).await.unwrap();
    assert_eq!(
        (leased.user, leased.seed, leased.work),
        (ann, job.seed, job.work)
    );
    assert!(
        db.workers(None, noon(), 9).await.unwrap().last_heard[0].evals_per_second == 0.0,
        "NaN is no speed"
    );
}

pub(super) async fn so_many_leases_are_held_at_once(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    let bob = user(&db, "bob").await;
    run(&db, "a", params()).await;
    let first = network("a", ann, 0);
    db.submit_network(first, noon()).await.unwrap();
    let ask = async |who: UserId, worker: &str, job: u128, now| {
        let mut request = request(who, chances(job, 0.9));
        request.request.worker = worker.to_owned();
        request.quotas = LeaseQuotas {
            contributor: Some(3),
            worker: Some(2),
        };
        match db.lease(request, now).await {
            Ok(job) => Ok(job.unwrap().id),
            Err(DbError::TooManyLeases { holder, most, wait }) => Err((holder, most, wait)),
            Err(other) => panic!("{other}"),
        }
    };
    let lease = Duration::from_secs(60);
    let given = ask(ann, "w", 1, noon()).await.unwrap();
    ask(ann, "w", 2, noon()).await.unwrap();
    let refused = Err(("worker", 2, lease));
    assert_eq!(ask(ann, "w", 3, noon()).await, refused);
    ask(ann, "v", 4, noon()).await.unwrap();
    let refused = Err(("contributor", 3, lease));
    assert_eq!(ask(ann, "u", 5, noon()).await, refused);
    ask(bob, "w", 6, noon()).await.unwrap();
    let workers = db.workers(None, noon(), 2).await.unwrap();
    assert_eq!((workers.all, workers.last_heard.len()), (3, 2));
    // What was given back unplayed counts until it would have ended; what has ended does not.
    db.give_back(ann, given, noon()).await.unwrap();
    let refused = Err(("contributor", 3, lease));
    assert_eq!(ask(ann, "w", 7, noon()).await, refused);
    let later = noon() + jiff::SignedDuration::from_secs(61);
    ask(ann, "w", 8, later).await.unwrap();
    ask(ann, "w", 9, later).await.unwrap();
}

pub(super) async fn jobs_with_the_solver_are_for_workers_that_know_it(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    let mut solving = params();
    solving.selfplay.search.solver = true;
    run(&db, "a", solving).await;
    let first = network("a", ann, 0);
    db.submit_network(first, noon()).await.unwrap();
    let mut request = request(ann, chances(1, 0.9));
    request.request.solver = false;
    let refused = db.lease(request.clone(), noon()).await.unwrap();
    assert_eq!(refused, None);
    request.request.solver = true;
    assert!(db.lease(request, noon()).await.unwrap().is_some());
}

/// A run whose second network has a gate of thirty pairs to play.
async fn thirty_pairs(db: &SharedDatabase, owner: UserId, mut params: RunParams) {
    params.gate = GateRule::Fixed {
        games: 60,
        threshold: 0.5,
    };
    run(db, "a", params).await;
    for number in 0..2 {
        let submitted = db.submit_network(network("a", owner, number), noon());
        submitted.await.unwrap();
    }
}

pub(super) async fn many_callers_at_once_get_jobs_of_their_own(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    thirty_pairs(&db, ann, params()).await;
    let asking: Vec<_> = (0..50)
        .map(|job| {
            let db = db.clone();
            tokio::spawn(async move { lease(&db, ann, chances(job, 0.0)).await.unwrap() })
        })
        .collect();
    let mut pairs = Vec::new();
    for job in asking {
        if let Work::Match { pairs: own, .. } = job.await.unwrap().work {
            pairs.extend(own.into_iter().map(|task| task.pair));
        }
    }
    pairs.sort_unstable();
    assert!(
        pairs.into_iter().eq(0..30),
        "every pair is out once, and no more than are needed"
    );
}

pub(super) async fn a_match_is_shared_by_those_at_work(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    let bob = user(&db, "bob").await;
    let mut wide = params();
    wide.scheduling.gate_share = 0.5;
    thirty_pairs(&db, ann, wide).await;
    let pairs = async |who: UserId, job: u128| {
        let mut request = request(who, chances(job, 0.0));
        request.request.concurrent_games = u32::MAX;
        let job = db.lease(request, noon()).await.unwrap().unwrap();
        let games = if job.work.kind() == WorkKind::Match {
            job.work.games()
        } else {
            0
        };
        games / 2
    };
    let other = lease(&db, bob, chances(1, 0.9)).await.unwrap();
    assert_eq!(other.work.kind(), WorkKind::SelfPlay);
    let anns = [
        pairs(ann, 2).await,
        pairs(ann, 3).await,
        pairs(ann, 4).await,
    ];
    assert_eq!(anns, [8, 7, 0], "half of thirty");
    assert_eq!([pairs(bob, 5).await, pairs(bob, 6).await], [8, 7]);
    // Alone she finishes it.
    let later = noon() + jiff::SignedDuration::from_secs(3600);
    let mut request = request(ann, chances(7, 0.0));
    request.request.concurrent_games = u32::MAX;
    let mut taken = 0;
    for job in 7..11 {
        request.chances = chances(job, 0.0);
        let job = db.lease(request.clone(), later).await.unwrap().unwrap();
        assert_eq!(job.work.kind(), WorkKind::Match);
        taken += job.work.games() / 2;
    }
    assert_eq!(taken, 30);
}
