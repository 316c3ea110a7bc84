//! Runs and their networks.

use jiff::Timestamp;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::networks::{NetworkName, NetworkStatus};
use rookery_common::protocol::runs::{RunPatch, RunStatus};
use rookery_coordinator::store::{SharedStore, StoreError};

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
    assert_eq!(store.check(&name("a")).await.unwrap(), []);
}
