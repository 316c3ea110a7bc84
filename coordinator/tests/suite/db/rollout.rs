//! A new best network and a large fleet: who still gets the one before.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::{ContentHash, JobId, NetworkNumber, Seed, UserId};
use rookery_common::protocol::jobs::{Job, Work, WorkKind};
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::db::{
    Actor, Chances, MatchDraft, PuzzleSetDraft, Rollback, SharedDatabase,
};

use super::{chances, name, network, request, run, user};
use crate::support::app::params;
use crate::support::games::puzzle;
use crate::support::{by, noon};

/// A fleet that is told of a network in forty seconds, and those of it that ask.
const FLEET: u64 = 2_000;
const ASKING: u32 = 200;

fn after(seconds: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(seconds)
}

/// A run without gates in which these networks became best at these seconds.
async fn promoted(db: &SharedDatabase, puzzle_share: f32, at: &[i64]) -> UserId {
    let ann = user(db, "ann").await;
    let mut params = params();
    params.gate = GateRule::None;
    params.scheduling.puzzle_share = puzzle_share;
    run(db, "a", params).await;
    for (number, seconds) in (0..).zip(at) {
        let submitted = db.submit_network(network("a", ann, number), after(*seconds));
        submitted.await.unwrap();
    }
    ann
}

/// What a worker of a fleet of this size gets.
async fn lease(
    db: &SharedDatabase,
    (user, worker): (UserId, u32),
    fleet: u64,
    chance: f64,
    now: Timestamp,
) -> Job {
    let chances = Chances {
        job: JobId(uuid::Uuid::new_v4()),
        seed: Seed(u64::from(worker)),
        ..chances(0, chance)
    };
    let mut asked = request(user, chances);
    asked.request.worker = format!("w{worker}");
    asked.fleet = fleet;
    db.lease(asked, now).await.unwrap().unwrap()
}

/// Which workers of a fleet of this size get the network of this number, and all others the one
/// before; they ask at once.
async fn given(
    db: &SharedDatabase,
    ann: UserId,
    fleet: u64,
    number: u8,
    seconds: i64,
) -> HashSet<u32> {
    let asking: Vec<_> = (0..ASKING)
        .map(|worker| {
            let db = db.clone();
            let asking = async move { lease(&db, (ann, worker), fleet, 0.9, after(seconds)).await };
            (worker, tokio::spawn(asking))
        })
        .collect();
    let mut given = HashSet::new();
    for (worker, job) in asking {
        let job = job.await.unwrap();
        let network = only_network(&job);
        if network == ContentHash::of(&[number]) {
            given.insert(worker);
        } else {
            assert_eq!(network, ContentHash::of(&[number - 1]), "after {seconds} s");
        }
    }
    given
}

/// The network of a job of training games, which names it alone.
fn only_network(job: &Job) -> ContentHash {
    let (Work::SelfPlay { network, .. } | Work::Puzzles { network, .. }) = &job.work else {
        panic!("{:?}", job.work)
    };
    let listed: Vec<_> = job.networks.iter().map(|network| network.hash).collect();
    assert_eq!(listed, [*network]);
    *network
}

pub(super) async fn a_large_fleet_gets_a_new_best_gradually(db: SharedDatabase) {
    let ann = promoted(&db, 0.0, &[0]).await;
    // Nothing was best before the first.
    let told = given(&db, ann, FLEET, 0, 0).await;
    assert_eq!(told.len(), ASKING as usize);
    let second = db.submit_network(network("a", ann, 1), after(3_600));
    second.await.unwrap();
    let mut before = HashSet::new();
    for (seconds, told) in [(0, 0..=0), (10, 30..=70), (20, 75..=125), (40, 200..=200)] {
        let now = given(&db, ann, FLEET, 1, 3_600 + seconds).await;
        assert!(told.contains(&now.len()), "{seconds} s: {}", now.len());
        assert!(before.is_subset(&now), "who has the new one keeps it");
        before = now;
    }
}

pub(super) async fn a_small_fleet_gets_a_new_best_at_once(db: SharedDatabase) {
    let ann = promoted(&db, 0.0, &[0, 3_600]).await;
    let told = given(&db, ann, 99, 1, 3_600).await;
    assert_eq!(told.len(), ASKING as usize);
}

pub(super) async fn matches_name_a_new_best_at_once(db: SharedDatabase) {
    let ann = promoted(&db, 0.0, &[0, 3_600]).await;
    let draft = MatchDraft {
        run: name("a"),
        candidate: NetworkNumber(1),
        opponent: NetworkNumber(0),
        pairs: 4,
        seed: Seed(1),
    };
    db.open_match(draft, Actor::new("test", after(3_600)))
        .await
        .unwrap();
    let job = lease(&db, (ann, 0), FLEET, 0.0, after(3_600)).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    assert_eq!(
        job.work.networks(),
        [1, 0].map(|number| ContentHash::of(&[number]))
    );
}

pub(super) async fn a_demoted_best_stops_at_once(db: SharedDatabase) {
    let ann = promoted(&db, 0.0, &[0, 3_600, 3_610]).await;
    let rollback = Rollback {
        from: NetworkNumber(2),
        to: NetworkNumber(1),
        reason: "which is stronger".to_owned(),
    };
    let run = name("a");
    let rolled = db.roll_back(&run, rollback, Actor::new("test", after(3_620)));
    assert_eq!(rolled.await.unwrap().len(), 1);
    // The second one is best again, and few were told of it when it was promoted.
    let told = given(&db, ann, FLEET, 1, 3_620).await;
    assert_eq!(told.len(), ASKING as usize);
    // The next one follows on it, and not on the one that was demoted.
    let next = db.submit_network(network("a", ann, 3), after(3_700));
    next.await.unwrap();
    for worker in 0..20 {
        let job = lease(&db, (ann, worker), FLEET, 0.9, after(3_700)).await;
        assert_eq!(only_network(&job), ContentHash::of(&[1]));
    }
}

pub(super) async fn a_new_best_begins_with_puzzles_whichever_worker_gets_it_first(
    db: SharedDatabase,
) {
    let ann = promoted(&db, 0.05, &[0]).await;
    let set = PuzzleSetDraft {
        run: name("a"),
        name: "set".to_owned(),
        puzzles: vec![puzzle("one")],
    };
    db.add_puzzles(set, by("console")).await.unwrap();
    let first = lease(&db, (ann, 0), FLEET, 0.9, noon()).await;
    assert_eq!(first.work.kind(), WorkKind::Puzzles);
    let second = db.submit_network(network("a", ann, 1), after(3_600));
    second.await.unwrap();
    let mut begun = false;
    for worker in 0..20 {
        let job = lease(&db, (ann, worker), FLEET, 0.9, after(3_620)).await;
        let new = only_network(&job) == ContentHash::of(&[1]);
        let puzzles = job.work.kind() == WorkKind::Puzzles;
        assert_eq!(puzzles, new && !begun, "worker {worker}");
        begun |= new;
    }
    assert!(begun);
}
