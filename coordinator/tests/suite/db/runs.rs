//! Runs and their networks.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::{NetworkName, NetworkStatus};
use rookery_common::protocol::people::Change;
use rookery_common::protocol::runs::{RunPatch, RunStatus};
use rookery_coordinator::blobs::BlobKind;
use rookery_coordinator::db::{
    Actor, CANDIDATES, Checked, DbError, LogFilter, MatchFilter, SharedDatabase,
};

use super::{name, network, run, run_draft, user};
use crate::support::app::params;
use crate::support::{by, noon};

pub(super) async fn runs_are_created_and_changed(db: SharedDatabase) {
    run(&db, "a", params()).await;
    let created = db.run(&name("a")).await.unwrap();
    assert_eq!(
        (created.params, created.status, created.best),
        (params(), RunStatus::Open, None)
    );
    assert_eq!(created.created_at.parse::<Timestamp>().unwrap(), noon());
    let patch = RunPatch {
        status: Some(RunStatus::Paused),
        ..RunPatch::default()
    };
    let patched = db.patch_run(&name("a"), patch, by("test")).await.unwrap();
    assert_eq!(
        (patched.status, patched.description.as_str()),
        (RunStatus::Paused, "d")
    );
    let unknown = db.run(&name("b")).await;
    assert!(matches!(unknown, Err(DbError::NotFound(_))), "{unknown:?}");
    assert_eq!(db.runs().await.unwrap().len(), 1);
}

pub(super) async fn candidates_wait_for_the_gate(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    run(&db, "a", params()).await;
    let submit = async |number| {
        db.submit_network(network("a", ann, number), noon())
            .await
            .unwrap()
            .receipt
    };
    assert_eq!(submit(0).await.status, NetworkStatus::Initial);
    let first = submit(1).await;
    assert_eq!(
        (first.status, first.gate.is_some()),
        (NetworkStatus::Candidate, true)
    );
    let second = submit(2).await;
    assert_eq!(
        (second.status, second.gate),
        (NetworkStatus::Candidate, None)
    );
    assert!(submit(1).await.duplicate);
    let matches = db
        .matches(&MatchFilter::newest(&name("a"), 10), noon())
        .await
        .unwrap();
    assert_eq!(matches.len(), 1);
    let best = db.network(&name("a"), NetworkName::Best).await.unwrap();
    assert_eq!(best.number, NetworkNumber(0));
    assert_eq!(db.check(&name("a")).await.unwrap(), Checked::default());
}

pub(super) async fn only_so_many_candidates_wait(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    run(&db, "a", params()).await;
    let submit = async |number| {
        let submitted = db.submit_network(network("a", ann, number), noon());
        submitted.await.map(|submitted| submitted.receipt)
    };
    let last = u8::try_from(CANDIDATES).unwrap();
    for number in 0..=last {
        assert!(!submit(number).await.unwrap().duplicate);
    }
    let refused = submit(last + 1).await;
    assert!(
        matches!(refused, Err(DbError::TooManyCandidates(_))),
        "{refused:?}"
    );
    assert!(submit(last).await.unwrap().duplicate);
    for (number, fits) in [(last, true), (last + 1, false)] {
        let hash = network("a", ann, number).hash;
        let room = db.must_have_room(&name("a"), &hash).await;
        assert_eq!(room.is_ok(), fits, "{room:?}");
    }
    db.reject_network(&name("a"), NetworkNumber(1), "nobody wants it", by("test"))
        .await
        .unwrap();
    let taken = submit(last + 1).await.unwrap();
    assert_eq!(
        (taken.status, taken.number),
        (NetworkStatus::Candidate, NetworkNumber(u32::from(last) + 1))
    );
    assert_eq!(db.check(&name("a")).await.unwrap(), Checked::default());
}

pub(super) async fn the_log_says_what_changed(db: SharedDatabase) {
    let mut first = params();
    first.selfplay.search.visits = 77;
    run(&db, "a", first.clone()).await;
    let mut second = first;
    second.selfplay.search.visits = 99;
    second.scheduling.gate_share = 0.7;
    let patch = RunPatch {
        description: Some("longer".to_owned()),
        params: Some(second),
        ..RunPatch::default()
    };
    db.patch_run(&name("a"), patch.clone(), by("ann"))
        .await
        .unwrap();
    let later = noon() + SignedDuration::from_secs(60);
    db.patch_run(&name("a"), patch, Actor::new("bob", later))
        .await
        .unwrap();
    let log = db.operator_log(LogFilter::newest(10)).await.unwrap();
    let changed: Vec<String> = log[1].changes.iter().map(Change::to_string).collect();
    let expected = [
        "description: d → longer",
        "params.scheduling.gate_share: 1.0 → 0.7",
        "params.selfplay.search.visits: 77 → 99",
    ];
    assert_eq!(changed, expected);
    assert_eq!(log[1].detail, expected.join("; "));
    assert!(
        log[0].changes.is_empty() && log[0].detail.contains("nothing"),
        "{:?}",
        log[0]
    );
    assert!(!log[2].detail.contains("0000"), "{}", log[2].detail);
    let created = &log[2].changes;
    assert!(
        created
            .iter()
            .any(|c| c.key == "selfplay.search.visits" && c.to.as_deref() == Some("77"))
    );
    assert!(created.len() < 30, "only what is no default: {created:?}");
    let shown = async |filter: LogFilter| -> Vec<String> {
        let acts = db
            .operator_log(LogFilter {
                limit: 10,
                ..filter
            })
            .await
            .unwrap();
        acts.into_iter().map(|act| act.actor).collect()
    };
    let of = |actor: &str| Some(actor.to_owned());
    assert_eq!(
        shown(LogFilter {
            actor: of("ANN"),
            ..LogFilter::default()
        })
        .await,
        ["ann"]
    );
    assert_eq!(
        shown(LogFilter {
            action: of("create-run"),
            ..LogFilter::default()
        })
        .await,
        ["test"]
    );
    assert_eq!(
        shown(LogFilter {
            since: Some(later),
            ..LogFilter::default()
        })
        .await,
        ["bob"]
    );
}

pub(super) async fn an_archived_run_is_kept_and_a_deleted_one_is_not(db: SharedDatabase) {
    let ann = user(&db, "ann").await;
    let reserved = run_draft("deleted-7", params());
    let reserved = db.create_run(reserved, by("test")).await;
    assert!(
        matches!(reserved, Err(DbError::Conflict(_))),
        "{reserved:?}"
    );
    run(&db, "a", params()).await;
    run(&db, "b", params()).await;
    for run in ["a", "b"] {
        db.submit_network(network(run, ann, 0), noon())
            .await
            .unwrap();
    }
    db.submit_network(network("a", ann, 1), noon())
        .await
        .unwrap();
    let needed = async || db.blobs_needed(BlobKind::Network).await.unwrap().len();
    assert_eq!(needed().await, 2, "both runs have one of them");
    let patch = async |archived, status| {
        let patch = RunPatch {
            archived: Some(archived),
            status,
            ..RunPatch::default()
        };
        db.patch_run(&name("a"), patch, by("test")).await
    };
    let delete = async || db.delete_run(&name("a"), by("test")).await;
    let early = delete().await;
    assert!(matches!(early, Err(DbError::Conflict(_))), "{early:?}");
    let archived = patch(true, None).await.unwrap();
    assert_eq!(archived.status, RunStatus::Paused);
    assert!(archived.archived_at.is_some());
    let open = RunPatch {
        status: Some(RunStatus::Open),
        ..RunPatch::default()
    };
    let open = db.patch_run(&name("a"), open, by("test")).await;
    assert!(matches!(open, Err(DbError::Conflict(_))), "{open:?}");
    let back = patch(false, Some(RunStatus::Open)).await.unwrap();
    assert_eq!((back.status, back.archived_at), (RunStatus::Open, None));
    patch(true, None).await.unwrap();
    assert_eq!(needed().await, 2, "an archived run keeps its files");
    delete().await.unwrap();
    let gone = db.run(&name("a")).await;
    assert!(matches!(gone, Err(DbError::NotFound(_))), "{gone:?}");
    assert_eq!(db.runs().await.unwrap().len(), 1);
    assert_eq!(needed().await, 1);
    let networks_are_gone = async || {
        let hash = network("b", ann, 0).hash;
        assert_eq!(db.network_by_hash(&hash).await.unwrap().run, name("b"));
        let hash = network("a", ann, 1).hash;
        let gone = db.network_by_hash(&hash).await;
        assert!(matches!(gone, Err(DbError::NotFound(_))), "{gone:?}");
    };
    networks_are_gone().await;
    while db.remove_deleted().await.unwrap() > 0 {}
    networks_are_gone().await;
    assert_eq!(db.check(&name("b")).await.unwrap().discrepancies, []);
    run(&db, "a", params()).await;
    let log = db.operator_log(LogFilter::newest(3)).await.unwrap();
    let acts: Vec<_> = log.iter().map(|act| &*act.action).collect();
    assert_eq!(acts, ["create-run", "delete-run", "archive-run"]);
}
