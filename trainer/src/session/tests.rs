//! Tests of whole sessions against a coordinator in memory.

mod coordinator;

use rookery_common::params::WindowParams;
use rookery_common::protocol::networks::NetworkStatus;
use rookery_nn::{ComputeDevice, Precision};

use super::*;
use crate::api::retry::Backoff;
use crate::testing;
use coordinator::Coordinator;

fn params() -> TrainingParams {
    TrainingParams {
        batch_size: 8,
        steps_per_candidate: 30,
        positions_per_candidate: 0,
        window: WindowParams {
            min: 50,
            max: 400,
            exponent: 0.5,
        },
        ..TrainingParams::default()
    }
}

fn settings(dir: &std::path::Path) -> Settings {
    Settings {
        dir: dir.to_owned(),
        first: FirstNetwork::Shape("1x8".into()),
        on_rejection: OnRejection::Continue,
        seed: 7,
        held_out: 0.2,
        max_reuse: 1000.0,
        encode_threads: 2,
        checkpoint_every: Duration::from_secs(3600),
        poll_every: Duration::from_millis(5),
        candidates: Some(1),
        metrics_listen: None,
        place: Place {
            device: ComputeDevice::CPU,
            precision: Precision::F32,
        },
    }
}

/// Runs a session against the coordinator.
async fn session(coordinator: &Coordinator, settings: Settings) -> anyhow::Result<()> {
    // Tests run side by side.
    rookery_nn::use_threads(1);
    let shutdown = Shutdown::default();
    coordinator.give_shutdown(&shutdown);
    let server = coordinator.serve().await;
    let run = "main".parse().unwrap();
    let client = Client::new(&server.url, None, run, shutdown.clone())?;
    let quick = Backoff::new(Duration::from_millis(1), Duration::from_millis(5));
    let client = client.with_backoff(quick);
    run_with(
        settings,
        Surroundings {
            client,
            screen: Screen::hidden(),
            shutdown,
        },
    )
    .await
}

use super::run as run_with;

fn with_chunks(chunks: u64) -> Coordinator {
    let coordinator = Coordinator::new(params());
    (0..chunks).for_each(|seed| coordinator.add_chunk(testing::chunk(seed, 5).1));
    coordinator
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_network_gets_one_and_then_candidates() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.verdicts([NetworkStatus::Promoted, NetworkStatus::Rejected]);
    let two = Settings {
        candidates: Some(2),
        ..settings(dir.path())
    };
    session(&coordinator, two).await.unwrap();
    let networks = coordinator.networks();
    let statuses: Vec<_> = networks.iter().map(|n| n.status).collect();
    use NetworkStatus::{Initial, Promoted, Rejected};
    assert_eq!(statuses, [Initial, Promoted, Rejected]);
    assert_eq!(networks[1].spec.parent, Some(networks[0].hash));
    assert_eq!(networks[2].spec.parent, Some(networks[1].hash));
    assert_eq!(networks[2].spec.training_step, 60);
    for network in &networks {
        let formats = network.exports.iter().map(|export| export.format.name());
        assert_eq!(formats.collect::<Vec<_>>(), ["lc0", "onnx"]);
    }
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    for kind in ["plan", "train", "validation", "verdict"] {
        assert!(
            log.contains(&format!("\"kind\":\"{kind}\"")),
            "{kind} in {log}"
        );
    }
    assert!(coordinator.metrics() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rejection_training_can_return_to_the_best() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.verdicts([NetworkStatus::Rejected, NetworkStatus::Promoted]);
    let best = Settings {
        on_rejection: OnRejection::Best,
        candidates: Some(2),
        ..settings(dir.path())
    };
    session(&coordinator, best).await.unwrap();
    let networks = coordinator.networks();
    assert_eq!(networks[2].spec.parent, Some(networks[0].hash));
    assert_eq!(networks[2].spec.training_step, 30, "the best had none");
}

/// However often a trainer is stopped on the way, the candidate is the same, bit by bit.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_makes_the_same_candidate() {
    let (straight, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let coordinator = with_chunks(10);
    session(&coordinator, settings(straight.path()))
        .await
        .unwrap();
    let expected = coordinator.networks()[1].hash;

    let coordinator = with_chunks(10);
    coordinator.stop_at_candidate();
    let mut sessions = 0;
    while coordinator.networks().len() < 2 {
        coordinator.stop_at_metrics();
        session(&coordinator, settings(broken.path()))
            .await
            .unwrap();
        sessions += 1;
        assert!(sessions < 100, "it gets nowhere");
    }
    assert!(sessions > 1, "it was not interrupted");
    assert_eq!(coordinator.networks()[1].hash, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_ledger_and_lost_chunks_are_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    std::fs::remove_file(dir.path().join("ledger.jsonl")).unwrap();
    std::fs::remove_dir_all(dir.path().join("chunks")).unwrap();
    let two = Settings {
        candidates: Some(1),
        ..settings(dir.path())
    };
    session(&coordinator, two).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
}

/// Two of three calls fail, and some chunks cannot be had or read: the candidate comes all the same,
/// and it is the one that the other chunks give.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_is_away_and_chunks_that_are_bad_hold_nothing_up() {
    let dirs = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let mut candidates = Vec::new();
    for (dir, away) in dirs.iter().zip([false, true]) {
        let coordinator = with_chunks(12);
        coordinator.withdraw(3);
        coordinator.corrupt(7);
        if away {
            coordinator.often_away();
        }
        session(&coordinator, settings(dir.path())).await.unwrap();
        candidates.push(coordinator.networks()[1].hash);
    }
    assert_eq!(candidates[0], candidates[1]);
}

/// Nothing more can be written: the trainer ends with a message that names the file, and goes on
/// from the last good state once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_the_run_and_keeps_the_last_good_state() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    // A file where the folder of candidates should be is as good as no room for them.
    std::fs::write(dir.path().join("candidates"), b"").unwrap();
    let error = session(&coordinator, settings(dir.path()))
        .await
        .unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("cannot write") && error.contains("candidates"),
        "{error}"
    );
    assert_eq!(coordinator.networks().len(), 1);
    std::fs::remove_file(dir.path().join("candidates")).unwrap();
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn divergence_ends_the_run_and_keeps_the_last_good_state() {
    let dir = tempfile::tempdir().unwrap();
    let mut params = params();
    params.learning_rate.base = 1e30;
    params.learning_rate.warmup_steps = 0;
    params.gradient_clip = None;
    let coordinator = Coordinator::new(params);
    (0..10).for_each(|seed| coordinator.add_chunk(testing::chunk(seed, 5).1));
    let error = session(&coordinator, settings(dir.path()))
        .await
        .unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("diverged") && error.contains("of candidate 0"),
        "{error}"
    );
    let folder = CheckpointFolder::open(dir.path().join("checkpoints")).unwrap();
    let loaded = folder.load::<State>().unwrap().unwrap();
    assert!(matches!(loaded.state.phase, Phase::Train(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_another_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    let server = coordinator.serve().await;
    let shutdown = Shutdown::default();
    let client = Client::new(
        &server.url,
        None,
        "other".parse().unwrap(),
        shutdown.clone(),
    )
    .unwrap();
    let around = Surroundings {
        client,
        screen: Screen::hidden(),
        shutdown,
    };
    let error = run_with(settings(dir.path()), around)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to run main"), "{error}");
}
