//! Anchors: what they are given, and programs among them.

use rookery_common::ids::{NetworkNumber, Seed, UserId};
use rookery_common::network::{NetworkSpec, Program};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::AnchorElo;
use rookery_coordinator::store::{AnchorDraft, EloOrder, MatchDraft, NetworkDraft, SharedStore};

use super::{chances, name, network, request, run, user};
use crate::support::app::params;
use crate::support::noon;

/// An anchor that is submitted as this one, with this Elo.
async fn anchor(store: &SharedStore, user: UserId, number: u8, elo: Option<f64>) {
    let draft = NetworkDraft {
        anchor: Some(AnchorDraft {
            name: format!("maia-{number}").parse().unwrap(),
            elo: elo.map(|elo| AnchorElo::new(elo).unwrap()),
        }),
        ..network("a", user, number)
    };
    let submitted = store.submit_network(draft, noon()).await.unwrap();
    assert_eq!(submitted.receipt.status, NetworkStatus::Anchor);
}

pub(super) async fn anchors_have_an_elo_or_none(store: SharedStore) {
    let ann = user(&store, "ann").await;
    run(&store, "a", params()).await;
    let first = network("a", ann, 0);
    store.submit_network(first, noon()).await.unwrap();
    anchor(&store, ann, 1, None).await;
    anchor(&store, ann, 2, Some(-12.5)).await;
    anchor(&store, ann, 3, None).await;
    let networks = store.networks(&name("a")).await.unwrap();
    let elos: Vec<_> = networks
        .iter()
        .map(|info| info.anchor_elo.map(AnchorElo::get))
        .collect();
    assert_eq!(elos, [None, Some(-12.5), None, None], "newest first");
    let basis = store.rating_basis(&name("a")).await.unwrap();
    let elo = AnchorElo::new(-12.5).unwrap();
    assert_eq!(basis.given, [(NetworkNumber(2), elo)]);
    let (_, begun) = store.begin_fit(&name("a")).await.unwrap();
    assert_eq!(begun, basis);
    let set = async |number, elo: Option<f64>| {
        let order = EloOrder {
            number: NetworkNumber(number),
            elo: elo.map(|elo| AnchorElo::new(elo).unwrap()),
            actor: "ops".to_owned(),
        };
        let set = store.set_anchor_elo(&name("a"), order, noon()).await;
        set.map_err(|error| error.to_string())
    };
    set(1, Some(1100.0)).await.unwrap();
    set(2, None).await.unwrap();
    set(3, None).await.unwrap();
    set(3, Some(1900.5)).await.unwrap();
    let basis = store.rating_basis(&name("a")).await.unwrap();
    let elos = basis
        .given
        .iter()
        .map(|(number, elo)| (number.0, elo.get()));
    assert_eq!(elos.collect::<Vec<_>>(), [(1, 1100.0), (3, 1900.5)]);
    let refused = set(0, Some(0.0)).await.unwrap_err();
    assert!(refused.contains("network 0 is no anchor"), "{refused}");
    let refused = set(9, Some(0.0)).await.unwrap_err();
    assert!(refused.contains("no network number 9"), "{refused}");
    let log = store.operator_log(None, 2).await.unwrap();
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

pub(super) async fn programs_play_with_workers_that_have_them(store: SharedStore) {
    let ann = user(&store, "ann").await;
    run(&store, "a", params()).await;
    // What a network is said to be made by does not make it a program.
    let spec = NetworkSpec {
        creator: r#""kind":"program""#.to_owned(),
        ..NetworkSpec::resnet(1, 8)
    };
    let first = NetworkDraft {
        spec,
        ..network("a", ann, 0)
    };
    store.submit_network(first, noon()).await.unwrap();
    anchor(&store, ann, 1, None).await;
    let program = NetworkDraft {
        spec: NetworkSpec::of_program(Program::Random),
        anchor: Some(AnchorDraft {
            name: "random".parse().unwrap(),
            elo: None,
        }),
        ..network("a", ann, 2)
    };
    store.submit_network(program, noon()).await.unwrap();
    let open = async |opponent| {
        let draft = MatchDraft {
            run: name("a"),
            candidate: NetworkNumber(0),
            opponent: NetworkNumber(opponent),
            pairs: 1,
            seed: Seed(1),
        };
        store.open_match(draft, "ops", noon()).await.unwrap()
    };
    let take = async |job, programs| {
        let mut asked = request(ann, chances(job, 0.0));
        asked.request.programs = programs;
        let job = store.lease(asked, noon()).await.unwrap().unwrap();
        job.work.kind()
    };
    open(2).await;
    assert_eq!(take(1, false).await, WorkKind::SelfPlay);
    assert_eq!(take(2, true).await, WorkKind::Match);
    // Matches of networks are for everybody, however many of programs were opened before.
    open(2).await;
    open(1).await;
    assert_eq!(take(3, false).await, WorkKind::Match);
    assert_eq!(take(4, false).await, WorkKind::SelfPlay);
    assert_eq!(take(5, true).await, WorkKind::Match);
    assert_eq!(store.check(&name("a")).await.unwrap(), []);
}
