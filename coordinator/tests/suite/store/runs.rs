//! Runs and their networks.

use jiff::Timestamp;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::{NetworkName, NetworkStatus};
use rookery_common::protocol::runs::{RunPatch, RunStatus};
use rookery_coordinator::store::{CANDIDATES, Checked, Rejection, SharedStore, StoreError};

use super::{name, network, run, user};
use crate::support::app::params;
use crate::support::noon;

pub(super) async fn runs_are_created_and_changed(store: SharedStore) {
    run(&store, "a", params()).await;
    let created = store.run(&name("a")).await.unwrap();
    assert_eq!(
        (created.params, created.status, created.best),
        (params(), RunStatus::Open, None)
    );
    assert_eq!(created.created_at.parse::<Timestamp>().unwrap(), noon());
    let patch = RunPatch {
        status: Some(RunStatus::Paused),
        ..RunPatch::default()
    };
    let patched = store
        .patch_run(&name("a"), patch, "test", noon())
        .await
        .unwrap();
    assert_eq!(
        (patched.status, patched.description.as_str()),
        (RunStatus::Paused, "d")
    );
    let unknown = store.run(&name("b")).await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound(_))),
        "{unknown:?}"
    );
    assert_eq!(store.runs().await.unwrap().len(), 1);
}

pub(super) async fn candidates_wait_for_the_gate(store: SharedStore) {
    let ann = user(&store, "ann").await;
    run(&store, "a", params()).await;
    let submit = async |number| {
        store
            .submit_network(network("a", ann, number), noon())
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
    let matches = store.matches(&name("a"), None, 10).await.unwrap();
    assert_eq!(matches.len(), 1);
    let best = store.network(&name("a"), NetworkName::Best).await.unwrap();
    assert_eq!(best.number, NetworkNumber(0));
    assert_eq!(store.check(&name("a")).await.unwrap(), Checked::default());
}

pub(super) async fn only_so_many_candidates_wait(store: SharedStore) {
    let ann = user(&store, "ann").await;
    run(&store, "a", params()).await;
    let submit = async |number| {
        let submitted = store.submit_network(network("a", ann, number), noon());
        submitted.await.map(|submitted| submitted.receipt)
    };
    let last = u8::try_from(CANDIDATES).unwrap();
    for number in 0..=last {
        assert!(!submit(number).await.unwrap().duplicate);
    }
    let refused = submit(last + 1).await;
    assert!(
        matches!(refused, Err(StoreError::TooManyCandidates(_))),
        "{refused:?}"
    );
    assert!(submit(last).await.unwrap().duplicate);
    for (number, fits) in [(last, true), (last + 1, false)] {
        let hash = network("a", ann, number).hash;
        let room = store.must_have_room(&name("a"), &hash).await;
        assert_eq!(room.is_ok(), fits, "{room:?}");
    }
    let rejection = Rejection {
        number: NetworkNumber(1),
        reason: "nobody wants it".to_owned(),
        actor: "test".to_owned(),
    };
    store
        .reject_network(&name("a"), rejection, noon())
        .await
        .unwrap();
    let taken = submit(last + 1).await.unwrap();
    assert_eq!(
        (taken.status, taken.number),
        (NetworkStatus::Candidate, NetworkNumber(u32::from(last) + 1))
    );
    assert_eq!(store.check(&name("a")).await.unwrap(), Checked::default());
}
