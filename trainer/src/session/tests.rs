//! Tests of whole sessions against a coordinator in memory.

mod coordinator;

use rookery_common::ids::ContentHash;
use rookery_common::params::{Sampling, SourceWeights, WindowParams};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_nn::{ComputeDevice, Precision};

use super::*;
use crate::api::retry::Backoff;
use crate::buffer::GameStore;
use crate::data::{ChunkFolder, HeldOut, Holds, Ledger};
use crate::testing;
use crate::warm::Filter;
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

/// However often a trainer is stopped on the way, and whatever becomes of the decoded games, the
/// candidate is the same, bit by bit.
async fn assert_interruptions_do_not_matter(params: &TrainingParams, library: Option<Library>) {
    let coordinator = || {
        let coordinator = Coordinator::new(params.clone());
        (0..10).for_each(|seed| coordinator.add_chunk(testing::chunk(seed, 5).1));
        coordinator.hold(4, true);
        coordinator
    };
    let settings = |dir: &tempfile::TempDir| Settings {
        library: library.clone(),
        ..settings(dir.path())
    };
    let (straight, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let undisturbed = coordinator();
    session(&undisturbed, settings(&straight)).await.unwrap();
    let expected = undisturbed.networks()[1].hash;

    let coordinator = coordinator();
    coordinator.stop_at_candidate();
    let mut sessions = 0;
    while coordinator.networks().len() < 2 {
        coordinator.stop_at_metrics();
        session(&coordinator, settings(&broken)).await.unwrap();
        spoil(&broken.path().join("window"), sessions);
        sessions += 1;
        assert!(sessions < 100, "it gets nowhere");
    }
    assert!(sessions > 1, "it was not interrupted");
    assert_eq!(coordinator.networks()[1].hash, expected);
}

/// Damages the decoded games, removes them, or leaves them alone.
fn spoil(window: &std::path::Path, session: usize) {
    let file = window.join("00000000.games");
    match session % 3 {
        0 => {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[5000] ^= 0x10;
            std::fs::write(&file, bytes).unwrap();
        }
        1 => std::fs::remove_dir_all(window).unwrap(),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_makes_the_same_candidate() {
    assert_interruptions_do_not_matter(&params(), None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_makes_the_same_candidate_of_mirrored_and_mixed_positions() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("games.pgn");
    let game = "[Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n\n";
    std::fs::write(&file, game.repeat(20)).unwrap();
    let library = Library {
        files: vec![file],
        filter: Filter {
            min_elo: 0.0,
            assumed_elo: Some(1500.0),
            skip_plies: 0,
            positions_per_game: None,
        },
        share: 0.3,
    };
    let params = TrainingParams {
        mirror_share: 0.5,
        sampling: Sampling::Games,
        sources: Some(SourceWeights {
            selfplay: 2.0,
            puzzles: 1.0,
        }),
        ..params()
    };
    assert_interruptions_do_not_matter(&params, Some(library)).await;
}

/// The games of a chunk that is held are in no batch; when it is let go, the window is what it was.
#[tokio::test(flavor = "multi_thread")]
async fn held_chunks_leave_the_window_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    let server = coordinator.serve().await;
    let run = "main".parse().unwrap();
    let client = Client::new(&server.url, None, run, Shutdown::default()).unwrap();
    let here = |name: &str| dir.path().join(name);
    let open = || {
        let store = GameStore::open(here("window")).unwrap();
        let follower = Follower::new(
            Ledger::open(&here("ledger.jsonl")).unwrap(),
            ChunkFolder::new(here("chunks")),
            Holds::open(&here("holds.json")).unwrap(),
        );
        (follower, Intake::new(store, 10_000, HeldOut::share(0.0)))
    };
    let positions = |intake: &Intake| {
        let window = intake.training().window(u64::MAX);
        let history = |age| {
            let (game, ply) = window.position(age).unwrap();
            game.history(ply).unwrap().repetition_key()
        };
        (0..window.len()).map(history).collect::<Vec<u64>>()
    };
    let (mut follower, mut intake) = open();
    let mut windows = Vec::new();
    for change in [
        None,
        Some((2, true)),
        Some((6, true)),
        Some((2, false)),
        Some((6, false)),
    ] {
        if let Some((place, held)) = change {
            coordinator.hold(place, held);
        }
        follower.update(&client).await.unwrap();
        follower.take_new(&client, &mut intake).await.unwrap();
        windows.push(positions(&intake));
    }
    let [all, without_2, without_both, without_6, again] = &windows[..] else {
        panic!("five windows");
    };
    assert_eq!(all, again);
    let lengths = [all, without_2, without_6, without_both].map(Vec::len);
    assert_eq!(
        lengths[0] - lengths[1],
        lengths[2] - lengths[3],
        "the positions of chunk 2"
    );
    assert!(lengths[1] < lengths[0] && lengths[2] < lengths[0]);
    assert_eq!(
        coordinator.take_chunk_requests(),
        8,
        "each was fetched once"
    );

    // A trainer that starts again knows what is held before it has asked.
    coordinator.hold(2, true);
    follower.update(&client).await.unwrap();
    drop((follower, intake));
    drop(server);
    let (mut follower, mut intake) = open();
    let until = follower.ledger().cursor();
    follower
        .refill(&client, &mut intake, until, 10_000)
        .await
        .unwrap();
    assert_eq!(positions(&intake), *without_2);
}

/// A ledger that comes back from a backup gives the numbers of lost chunks to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_ledger_is_followed_from_where_it_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    let server = coordinator.serve().await;
    let run = "main".parse().unwrap();
    let client = Client::new(&server.url, None, run, Shutdown::default()).unwrap();
    let open = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let follower = Follower::new(
            Ledger::open(&folder.join("ledger.jsonl")).unwrap(),
            ChunkFolder::new(folder.join("chunks")),
            Holds::open(&folder.join("holds.json")).unwrap(),
        );
        let intake = Intake::new(GameStore::in_memory(), 10_000, HeldOut::share(0.0));
        (follower, intake)
    };
    let (mut follower, mut intake) = open("old");
    coordinator.hold(2, true);
    follower.update(&client).await.unwrap();
    follower.take_new(&client, &mut intake).await.unwrap();
    assert_eq!(follower.take_restored(), None);
    for (name, left, new) in [
        ("as many", 5, 3),
        ("more", 4, 9),
        ("fewer", 7, 1),
        ("none", 2, 0),
        ("all", 0, 4),
    ] {
        coordinator.restore(left);
        let known: u64 = coordinator
            .rows()
            .iter()
            .map(|row| u64::from(row.positions))
            .sum();
        (0..new).for_each(|seed| {
            let seed = 100 + 10 * left as u64 + seed;
            coordinator.add_chunk(testing::chunk(seed, 5).1);
        });
        follower.update(&client).await.unwrap();
        follower.take_new(&client, &mut intake).await.unwrap();
        assert_eq!(follower.take_restored(), Some(known), "{name}");
        assert_eq!(follower.ledger().rows(), coordinator.rows(), "{name}");
        let (mut fresh, mut expected) = open(name);
        fresh.update(&client).await.unwrap();
        fresh.take_new(&client, &mut expected).await.unwrap();
        assert_eq!(
            intake.training().positions(),
            expected.training().positions(),
            "{name}"
        );
        assert_eq!(
            follower.taken_positions(),
            fresh.taken_positions(),
            "{name}"
        );
    }
    let copy = Ledger::open(&dir.path().join("old/ledger.jsonl")).unwrap();
    assert_eq!(copy.rows(), coordinator.rows());
}

/// Positions that a restored ledger has lost are not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_goes_on_after_its_coordinators_ledger_was_restored() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    coordinator.restore(4);
    coordinator.add_chunk(testing::chunk(100, 5).1);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
}

/// What was decoded once is not decoded again: neither file nor coordinator is asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_decodes_nothing_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    let (first, before) = (coordinator.take_chunk_requests(), coordinator.chunks());
    assert!(
        first > 0 && first < before,
        "what came during the gate waits"
    );
    std::fs::remove_dir_all(dir.path().join("chunks")).unwrap();
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
    assert_eq!(coordinator.take_chunk_requests(), before - first);
}

/// A candidate that the coordinator does not take ends the run with a message, and is handed in again
/// when the trainer is started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_candidate_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.refuse(true);
    let error = session(&coordinator, settings(dir.path()))
        .await
        .unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("cannot submit") && error.contains("candidates"),
        "{error}"
    );
    let kept = std::fs::read_dir(dir.path().join("candidates"))
        .unwrap()
        .next();
    let kept = ContentHash::of(&std::fs::read(kept.unwrap().unwrap().path()).unwrap());
    coordinator.refuse(false);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks()[1].hash, kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_ledger_and_lost_chunks_are_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    std::fs::remove_file(dir.path().join("ledger.jsonl")).unwrap();
    std::fs::remove_dir_all(dir.path().join("chunks")).unwrap();
    std::fs::remove_dir_all(dir.path().join("window")).unwrap();
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
    for name in ["candidates", "window", "chunks"] {
        let dir = tempfile::tempdir().unwrap();
        let coordinator = with_chunks(10);
        // A file where a folder should be is as good as no room for what belongs there.
        std::fs::write(dir.path().join(name), b"").unwrap();
        let error = session(&coordinator, settings(dir.path()))
            .await
            .unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("cannot") && error.contains(name), "{error}");
        assert_eq!(coordinator.networks().len(), 1);
        std::fs::remove_file(dir.path().join(name)).unwrap();
        session(&coordinator, settings(dir.path())).await.unwrap();
        assert_eq!(coordinator.networks().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn divergence_ends_the_run_and_keeps_the_last_good_state() {
    let dir = tempfile::tempdir().unwrap();
    let mut params = params();
    // Every step multiplies the weights by about -99.
    params.learning_rate.base = 100.0;
    params.learning_rate.warmup_steps = 0;
    params.weight_decay = 1.0;
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
