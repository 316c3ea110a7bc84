//! A trainer that was stopped goes on where it was, whatever has become of its folder.

use std::collections::BTreeSet;

use rookery_common::ids::ContentHash;
use rookery_common::params::{Sampling, SourceWeights};

use super::*;
use crate::warm::Filter;

/// However often a trainer is stopped on the way, whatever becomes of the decoded games, and whatever the next
/// candidate is to be trained with, the candidate is the same, bit by bit.
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
        coordinator.set_params(TrainingParams {
            batch_size: params.batch_size / 2,
            ..params.clone()
        });
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

/// As a trainer of an earlier version may have left it.
#[tokio::test(flavor = "multi_thread")]
async fn a_newest_checkpoint_whose_numbers_are_not_finite_is_passed_over() {
    let (straight, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let undisturbed = with_chunks(10);
    session(&undisturbed, settings(straight.path()))
        .await
        .unwrap();
    let coordinator = with_chunks(10);
    coordinator.stop_at_metrics();
    coordinator.stop_at_candidate();
    session(&coordinator, settings(broken.path()))
        .await
        .unwrap();
    assert_eq!(coordinator.networks().len(), 1, "it was not stopped");
    let mut folder = CheckpointFolder::open(broken.path().join("checkpoints")).unwrap();
    let good = folder.load(|_: &State, path| Ok(std::fs::read(path)?));
    let mut good = good.unwrap().unwrap();
    let last_number = good.learner.len() - 4;
    good.learner[last_number..].copy_from_slice(&f32::NAN.to_le_bytes());
    folder
        .save(&good.state, |path| Ok(std::fs::write(path, &good.learner)?))
        .unwrap();
    while coordinator.networks().len() < 2 {
        session(&coordinator, settings(broken.path()))
            .await
            .unwrap();
    }
    let [expected, found] = [undisturbed, coordinator].map(|all| all.networks()[1].hash);
    assert_eq!(found, expected);
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

#[tokio::test(flavor = "multi_thread")]
async fn chunks_that_no_window_needs_are_removed_before_the_next_candidate() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    let chunks = || -> BTreeSet<PathBuf> {
        let folders = std::fs::read_dir(dir.path().join("chunks")).unwrap();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    };
    session(&coordinator, settings(dir.path())).await.unwrap();
    let before = chunks();
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
    assert!(before.difference(&chunks()).next().is_some(), "{before:?}");
}

/// Without its checkpoints a trainer begins at the best network, and does not need the chunks that it has removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_that_begins_anew_downloads_no_chunk_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    for _ in 0..2 {
        session(&coordinator, settings(dir.path())).await.unwrap();
    }
    let (downloads, chunks) = (coordinator.take_chunk_requests(), coordinator.chunks());
    for name in ["checkpoints", "window"] {
        std::fs::remove_dir_all(dir.path().join(name)).unwrap();
    }
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 4);
    assert_eq!(coordinator.take_chunk_requests(), chunks - downloads);
}

/// Its file is damaged before it is submitted, or removed before the coordinator has lost it.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_whose_file_is_lost_is_exported_again() {
    for phases in [2, 3] {
        let dir = tempfile::tempdir().unwrap();
        let coordinator = with_chunks(10);
        for _ in 0..phases {
            let one_phase = Settings {
                candidates: Some(0),
                ..settings(dir.path())
            };
            session(&coordinator, one_phase).await.unwrap();
        }
        let candidates = dir.path().join("candidates");
        let mut files = std::fs::read_dir(&candidates).unwrap();
        let file = files.next().unwrap().unwrap().path();
        let expected = ContentHash::of(&std::fs::read(&file).unwrap());
        if phases == 2 {
            std::fs::write(&file, b"damaged").unwrap();
        } else {
            assert_eq!(coordinator.networks()[1].hash, expected);
            coordinator.forget_network();
            std::fs::remove_dir_all(&candidates).unwrap();
        }
        session(&coordinator, settings(dir.path())).await.unwrap();
        assert_eq!(coordinator.networks()[1].hash, expected);
        assert_eq!(ContentHash::of(&std::fs::read(&file).unwrap()), expected);
        let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
        assert!(log.contains("\"kind\":\"verdict\""), "{log}");
    }
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
    let context = SessionContext {
        client,
        screen: Screen::hidden(),
        shutdown,
    };
    let error = run_with(settings(dir.path()), context)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to run main"), "{error}");
}
