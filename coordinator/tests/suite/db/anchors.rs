//! Anchors: what they are given, and programs among them.

use rookery_common::ids::{NetworkNumber, Seed, UserId};
use rookery_common::network::{NetworkSpec, Program};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::AnchorElo;
use rookery_coordinator::db::{
    AnchorDraft, Checked, LogFilter, MatchDraft, NetworkDraft, SharedDatabase,
};

use super::{chances, name, network, request, run, user};
use crate::support::app::params;
use crate::support::{by, noon};

/// An anchor that is submitted as this one, with this Elo.
async fn anchor(db: &SharedDatabase, user: UserId, number: u8, elo: Option<f64>) {
    let draft = NetworkDraft {
        anchor: Some(AnchorDraft {
            name: format!("maia-{number}").parse().unwrap(),
            elo: elo.map(|elo| AnchorElo::new(elo).unwrap()),
        }),
        ..network("a", user, number)
    };
    let submitted = db.submit_network(draft, noon()).await.unwrap();
    assert_eq!(submitted.receipt.status, NetworkStatus::Anchor);
}

pub(super) async fn anchors_have_an_elo_or_none(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    run(&db, "a", params()).await;
    let first = network("a", ann, 0);
    db.submit_network(first, noon()).await.unwrap();
    anchor(&db, ann, 1, None).await;
    anchor(&db, ann, 2, Some(-12.5)).await;
    anchor(&db, ann, 3, None).await;
    let networks = db.networks(&name("a")).await.unwrap();
    let elos: Vec<_> = networks
        .iter()
        .map(|info| info.anchor_elo.map(AnchorElo::get))
        .collect();
    assert_eq!(elos, [None, Some(-12.5), None, None], "newest first");
    let basis = db.rating_basis(&name("a")).await.unwrap();
    let elo = AnchorElo::new(-12.5).unwrap();
    assert_eq!(basis.given, [(NetworkNumber(2), elo)]);
    let (_, begun) = db.begin_fit(&name("a")).await.unwrap();
    assert_eq!(begun, basis);
    let set = async |number, elo: Option<f64>| {
        let elo = elo.map(|elo| AnchorElo::new(elo).unwrap());
        let set = db
            .set_anchor_elo(&name("a"), NetworkNumber(number), elo, by("ops"))
            .await;
        set.map_err(|error| error.to_string())
    };
    set(1, Some(1100.0)).await.unwrap();
    set(2, None).await.unwrap();
    set(3, None).await.unwrap();
    set(3, Some(1900.5)).await.unwrap();
    let basis = db.rating_basis(&name("a")).await.unwrap();
    let elos = basis
        .given
        .iter()
        .map(|(number, elo)| (number.0, elo.get()));
    assert_eq!(elos.collect::<Vec<_>>(), [(1, 1100.0), (3, 1900.5)]);
    let refused = set(0, Some(0.0)).await.unwrap_err();
    assert!(refused.contains("network 0 is no anchor"), "{refused}");
    let refused = set(9, Some(0.0)).await.unwrap_err();
    assert!(refused.contains("no network number 9"), "{refused}");
    let log = db.operator_log(LogFilter::newest(2)).await.unwrap();
    let acts: Vec<_> = log
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject, &*act.detail))
        .collect();
    assert_eq!(
        acts,
        [
            ("ops", "set-anchor", "a", "network 3: maia-3, 1900.5 Elo"),
            ("ops", "set-anchor", "a", "network 3: maia-3, no Elo"),
        ]
    );
}

/// An anchor of this number that is a program.
async fn program(db: &SharedDatabase, user: UserId, number: u8, program: Program) {
    let draft = NetworkDraft {
        spec: NetworkSpec::of_program(program),
        anchor: Some(AnchorDraft {
            name: program.to_string().replace(':', "-").parse().unwrap(),
            elo: None,
        }),
        ..network("a", user, number)
    };
    db.submit_network(draft, noon()).await.unwrap();
}

/// Opens a match of network 0 against this one.
async fn open(db: &SharedDatabase, opponent: u32) {
    let draft = MatchDraft {
        run: name("a"),
        candidate: NetworkNumber(0),
        opponent: NetworkNumber(opponent),
        pairs: 1,
        seed: Seed(1),
    };
    db.open_match(draft, by("ops")).await.unwrap();
}

/// What a worker is given that plays programs, or does not.
async fn take(db: &SharedDatabase, user: UserId, job: u128, programs: bool) -> WorkKind {
    let mut asked = request(user, chances(job, 0.0));
    asked.request.programs = programs;
    let job = db.lease(asked, noon()).await.unwrap().unwrap();
    job.work.kind()
}

pub(super) async fn programs_play_with_workers_that_have_them(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    run(&db, "a", params()).await;
    // What a network is said to be made by does not make it a program.
    let spec = NetworkSpec {
        creator: r#""kind":"program""#.to_owned(),
        ..NetworkSpec::resnet(1, 8)
    };
    let first = NetworkDraft {
        spec,
        ..network("a", ann, 0)
    };
    db.submit_network(first, noon()).await.unwrap();
    anchor(&db, ann, 1, None).await;
    program(&db, ann, 2, Program::Random).await;
    open(&db, 2).await;
    assert_eq!(take(&db, ann, 1, false).await, WorkKind::SelfPlay);
    assert_eq!(take(&db, ann, 2, true).await, WorkKind::Match);
    // Matches of networks are for everybody, however many of programs were opened before.
    open(&db, 2).await;
    open(&db, 1).await;
    assert_eq!(take(&db, ann, 3, false).await, WorkKind::Match);
    assert_eq!(take(&db, ann, 4, false).await, WorkKind::SelfPlay);
    assert_eq!(take(&db, ann, 5, true).await, WorkKind::Match);
    assert_eq!(db.check(&name("a")).await.unwrap(), Checked::default());
}
