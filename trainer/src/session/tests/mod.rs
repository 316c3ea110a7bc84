//! Tests of whole sessions against a coordinator in memory: one candidate after the other.

mod coordinator;
mod faults;
mod ledger;
mod resume;

use rookery_backend_torch::ComputeDevice;
use rookery_common::params::{LearningRate, WindowParams};
use rookery_common::protocol::networks::{ExportFormat, NetworkStatus};
use rookery_engine::Precision;
use rookery_model::Weights;

use super::run as run_with;
use super::*;
use crate::buffer::GameStore;
use crate::data::HeldOut;
use crate::presets;
use crate::testing;
use crate::training_loop::validate;
use coordinator::Coordinator;

fn params() -> TrainingParams {
    TrainingParams {
        batch_size: 8,
        steps_per_candidate: 30,
        positions_per_candidate: 1,
        window: WindowParams {
            min: 50,
            max: 400,
            exponent: 0.5,
            slope: None,
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
        chunk_delay: Duration::ZERO,
        library: None,
        encode_threads: 2,
        checkpoint_every: Duration::from_secs(3600),
        poll_every: Duration::from_millis(5),
        candidates: Some(1),
        metrics_listen: None,
        compute: Compute {
            device: ComputeDevice::CPU,
            precision: Precision::F32,
        },
    }
}

/// Runs a session against the coordinator.
async fn session(coordinator: &Coordinator, settings: Settings) -> anyhow::Result<()> {
    run_with(settings, session_context(coordinator).await).await
}

/// What a session against the coordinator needs.
async fn session_context(coordinator: &Coordinator) -> SessionContext {
    // Tests run side by side.
    rookery_backend_torch::use_threads(1);
    let shutdown = Shutdown::default();
    coordinator.give_shutdown(&shutdown);
    let server = coordinator.serve().await;
    let run = "main".parse().unwrap();
    let client = Client::new(&server.url, None, run, shutdown.clone()).unwrap();
    SessionContext {
        client: client.impatient(),
        screen: Screen::hidden(),
        shutdown,
    }
}

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
async fn exports_that_failed_are_made_with_the_next_candidate() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.verdicts([NetworkStatus::Promoted]);
    coordinator.refuse_exports(ExportFormat::ALL.len());
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 2);
    for network in &coordinator.networks() {
        let formats = network.exports.iter().map(|export| export.format);
        assert_eq!(formats.collect::<Vec<_>>(), ExportFormat::ALL);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_whose_file_is_missing_and_that_lacks_exports_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.refuse_exports(ExportFormat::ALL.len());
    coordinator.remove_network_files();
    session(&coordinator, settings(dir.path())).await.unwrap();
    let exports: Vec<_> = (coordinator.networks().iter().map(|n| n.exports.len())).collect();
    assert_eq!(exports, [0, ExportFormat::ALL.len()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runs_learning_rate_begins_with_the_run_however_long_its_first_network_was_trained() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = presets::named_or_shaped("1x8").unwrap();
    spec.training_step = 400_000;
    let file = dir.path().join("first.safetensors");
    let weights = Weights::random(spec, 1).unwrap();
    std::fs::write(&file, weights.to_bytes().unwrap()).unwrap();
    let learning_rate = LearningRate {
        base: 0.001,
        warmup_steps: 1000,
        drops: vec![(5000, 0.1)],
        cosine: None,
    };
    let coordinator = Coordinator::new(TrainingParams {
        learning_rate,
        ..params()
    });
    (0..10).for_each(|seed| coordinator.add_chunk(testing::chunk(seed, 5).1));
    let from_file = Settings {
        first: FirstNetwork::File(file),
        ..settings(dir.path())
    };
    session(&coordinator, from_file).await.unwrap();
    assert_eq!(coordinator.networks()[1].spec.training_step, 400_030);
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    let points = log.lines().map(serde_json::from_str::<serde_json::Value>);
    let rates: Vec<f64> = points
        .filter_map(|point| point.unwrap()["learning_rate"].as_f64())
        .collect();
    // Each point has the rate of the last of ten steps.
    assert_eq!(rates.len(), 3, "{rates:?}");
    for (rate, expected) in rates.iter().zip([1e-5, 2e-5, 3e-5]) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
}

/// The candidate has the averaged weights, and others than those of the last step.
#[tokio::test(flavor = "multi_thread")]
async fn validation_measures_the_candidate() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path());
    let (compute, held_out) = (settings.compute, HeldOut::share(settings.held_out));
    session(&with_chunks(10), settings).await.unwrap();
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    let mut points = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let point = points.find(|point| point["kind"] == "validation").unwrap();

    let mut files = std::fs::read_dir(dir.path().join("candidates")).unwrap();
    let (_, weights) = Weights::read(&files.next().unwrap().unwrap().path()).unwrap();
    let mut candidate = Learner::new(&weights, &params(), compute).unwrap();
    let mut ingest = ChunkIngest::new(GameStore::in_memory(), u64::MAX, held_out);
    for (hash, bytes) in (0..10).map(|seed| testing::chunk(seed, 5)) {
        let chunk = ingest.decode(hash, "a chunk", &bytes).unwrap();
        ingest.add(chunk.unwrap());
    }
    let plan = BatchPlan::new(candidate.trainer.spec(), &params());
    let meter = validate(&mut candidate.trainer, &ingest.validation(), &plan).unwrap();
    for (name, expected) in meter.unwrap().validation() {
        let measured = point[&name].as_f64().unwrap();
        assert!((measured - expected).abs() < 1e-9, "{name} in {point}");
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rollback_training_can_return_to_the_best() {
    use NetworkStatus::{Demoted, Promoted};
    let from_best = |dir: &tempfile::TempDir| Settings {
        on_rejection: OnRejection::Best,
        ..settings(dir.path())
    };
    // Demoted while the trainer gathers positions for the next candidate.
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, from_best(&dir)).await.unwrap();
    coordinator.demote(1);
    session(&coordinator, from_best(&dir)).await.unwrap();
    let networks = coordinator.networks();
    assert_eq!(networks[2].spec.parent, Some(networks[0].hash));
    // Demoted before the trainer has heard that it was promoted.
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.verdicts([Demoted, Promoted]);
    let two = Settings {
        candidates: Some(2),
        ..from_best(&dir)
    };
    session(&coordinator, two).await.unwrap();
    let networks = coordinator.networks();
    assert_eq!(networks[2].spec.parent, Some(networks[0].hash));
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    assert!(log.contains("\"promoted\":0"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_cannot_be_followed_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    for (params, named) in [
        (
            TrainingParams {
                batch_size: u32::MAX,
                ..params()
            },
            "training.batch_size is 4294967295",
        ),
        (
            TrainingParams {
                steps_per_candidate: 0,
                ..params()
            },
            "training.steps_per_candidate is 0",
        ),
    ] {
        coordinator.set_params(params);
        let begun = session(&coordinator, settings(dir.path())).await;
        let error = format!("{:#}", begun.unwrap_err());
        assert!(error.contains(named), "{error}");
    }
    coordinator.set_params(params());
    session(&coordinator, settings(dir.path())).await.unwrap();
    let mut changed = params();
    changed.window.max = 0;
    coordinator.set_params(changed);
    let resumed = session(&coordinator, settings(dir.path())).await;
    let error = format!("{:#}", resumed.unwrap_err());
    assert!(error.contains("training.window.max is 0"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_in_training_grows_where_the_run_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.set_params(TrainingParams {
        grow: vec![(1, "2x16".to_owned())],
        ..params()
    });
    coordinator.verdicts([NetworkStatus::Promoted, NetworkStatus::Promoted]);
    for candidates in [1, 1] {
        let one = Settings {
            candidates: Some(candidates),
            ..settings(dir.path())
        };
        session(&coordinator, one).await.unwrap();
    }
    let networks = coordinator.networks();
    let shapes: Vec<_> = networks.iter().map(|n| n.spec.shape()).collect();
    assert_eq!(shapes, ["1x8", "1x8", "2x16"]);
    assert_eq!(networks[2].spec.parent, Some(networks[1].hash));
    assert_eq!(networks[2].spec.training_step, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grown_network_is_kept_after_a_rejection() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.set_params(TrainingParams {
        grow: vec![(1, "2x16".to_owned())],
        ..params()
    });
    let (promoted, rejected) = (NetworkStatus::Promoted, NetworkStatus::Rejected);
    coordinator.verdicts([promoted, rejected, promoted]);
    let three = Settings {
        on_rejection: OnRejection::Best,
        candidates: Some(3),
        ..settings(dir.path())
    };
    session(&coordinator, three).await.unwrap();
    let networks = coordinator.networks();
    let shapes: Vec<_> = networks.iter().map(|n| n.spec.shape()).collect();
    assert_eq!(shapes, ["1x8", "1x8", "2x16", "2x16"]);
    assert_eq!(networks[3].spec.parent, Some(networks[2].hash));
    assert_eq!(networks[3].spec.training_step, 90);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_games_are_probed_before_each_candidate() {
    let dir = tempfile::tempdir().unwrap();
    session(&with_chunks(10), settings(dir.path()))
        .await
        .unwrap();
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    let mut points = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let point = points.find(|point| point["kind"] == "tactics").unwrap();
    let rate = point["hang_rate"].as_f64().unwrap();
    assert!((0.01..1.0).contains(&rate), "{point}");
}
