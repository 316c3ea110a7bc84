//! Many workers: they do not fetch a new network at once, and do not ask for nothing too often.

use axum::http::StatusCode;
use axum::response::Response;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::{ChunkPage, Job};
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::clock::Clock as _;
use serde_json::json;

use crate::support::app::{TestApp, parse};
use crate::support::games::selfplay;

/// Workers that are told of a network in two seconds and a half.
const WORKERS: u32 = 120;

async fn asks(app: &TestApp, worker: u32) -> Response {
    let fields = json!({"worker": format!("w{worker}")});
    app.ask_with(&app.alice, &fields).await
}

async fn leases(app: &TestApp, worker: u32) -> Job {
    parse(StatusCode::OK, asks(app, worker).await).await
}

#[tokio::test]
async fn games_of_the_previous_network_count_while_a_new_one_rolls_out() {
    let app = TestApp::of_run(1, |run| run.gate = GateRule::None).await;
    for worker in 0..WORKERS {
        leases(&app, worker).await;
    }
    // Long enough for the fleet to be counted again.
    app.clock.advance_seconds(20);
    app.submit(1).await;
    let job = leases(&app, 0).await;
    assert_eq!(job.networks[0].number, NetworkNumber(0));
    app.hand_in(&app.alice, &job, &[selfplay(&job, 0, 1)]).await;
    let path = "/chunks?run=main&after=0";
    let page: ChunkPage = app.get_as(&app.trainer, path).await;
    assert_eq!((page.chunks.len(), page.chunks[0].held), (1, false));
    app.clock.advance_seconds(3);
    for worker in 0..WORKERS {
        let job = leases(&app, worker).await;
        assert_eq!(job.networks[0].number, NetworkNumber(1));
    }
    app.assert_consistent().await;
}

#[tokio::test]
async fn the_more_wait_for_a_paused_run_the_less_often_each_asks() {
    let app = TestApp::with_network().await;
    app.patch_run(&json!({"status": "paused"})).await;
    let wait = async |worker| {
        let nothing = asks(&app, worker).await;
        assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
        let wait = nothing.headers()["retry-after"].to_str().unwrap();
        wait.parse::<u32>().unwrap()
    };
    let first = wait(0).await;
    assert!((15..=23).contains(&first), "{first}");
    // As if ten thousand more had asked in this second.
    for _ in 0..10_000 {
        app.app.fleet.wait(&[], None, 0.0, app.clock.now());
    }
    let next = wait(1).await;
    assert!((50..=76).contains(&next), "{next}");
}
