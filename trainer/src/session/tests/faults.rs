//! What goes wrong ends a run with a message and loses nothing, or holds nothing up.

use rookery_common::ids::ContentHash;

use super::*;

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

/// Other candidates are in the way: this one is handed in again until there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_for_which_there_is_no_room_waits() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.too_many(3);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.still_too_many(), 0);
    assert_eq!(coordinator.networks().len(), 2);
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
        coordinator.damage(9);
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
        // A file in a folder's place makes every write there fail, as a full disk does.
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

/// Every step multiplies the weights by about -99.
fn ruinous() -> TrainingParams {
    let mut params = params();
    params.learning_rate.base = 100.0;
    params.learning_rate.warmup_steps = 0;
    params.weight_decay = 1.0;
    params.gradient_clip = None;
    params
}

async fn diverged(coordinator: &Coordinator, settings: Settings) -> String {
    let error = session(coordinator, settings).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("training diverged") && error.contains(" batch "),
        "{error}"
    );
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn divergence_ends_the_run_and_other_parameters_let_it_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || settings(dir.path());
    let coordinator = with_chunks(10);
    coordinator.set_params(ruinous());
    let error = diverged(&coordinator, settings()).await;
    assert!(error.contains("(now 100)"), "{error}");
    let folder = CheckpointFolder::open(dir.path().join("checkpoints")).unwrap();
    let phase = |state: &State, _: &std::path::Path| Ok(state.phase.clone());
    let kept = folder.load(phase).unwrap().unwrap().learner;
    assert!(matches!(kept, Phase::Train(_)));
    // With the same parameters it comes to the same end.
    assert_eq!(diverged(&coordinator, settings()).await, error);
    coordinator.set_params(params());
    session(&coordinator, settings()).await.unwrap();
    assert_eq!(coordinator.networks()[1].spec.training_step, 30);
    assert!(!dir.path().join("diverged.json").exists());
}

/// The file of a network whose first layer gives numbers so large that their variance is beyond 32 bits. Losses are
/// finite all the same: in training the next normalisations divide by a batch's own.
fn overflowing() -> Vec<u8> {
    let spec = presets::named_or_shaped("1x8").unwrap();
    let mut bytes = Weights::random(spec, 1).unwrap().to_bytes().unwrap();
    let begin = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..begin]).unwrap();
    let offsets = &header["input.norm.weight"]["data_offsets"];
    let [from, to] = [0, 1].map(|end| begin + offsets[end].as_u64().unwrap() as usize);
    for number in bytes[from..to].chunks_exact_mut(4) {
        number.copy_from_slice(&1e21_f32.to_le_bytes());
    }
    bytes
}

/// Each start goes on from a good state, however often it was saved on the way.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_could_go_on_from_replaces_no_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("first.safetensors");
    std::fs::write(&file, overflowing()).unwrap();
    let settings = || Settings {
        first: FirstNetwork::File(file.clone()),
        checkpoint_every: Duration::ZERO,
        ..settings(dir.path())
    };
    let coordinator = with_chunks(10);
    let error = diverged(&coordinator, settings()).await;
    assert!(error.contains("after batch 0:"), "{error}");
    assert!(error.contains("cannot write a checkpoint"), "{error}");
    assert_eq!(diverged(&coordinator, settings()).await, error);
}

/// What takes no more bytes.
#[cfg(target_os = "linux")]
const FULL: &str = "/dev/full";

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_log_for_which_there_is_no_room_ends_the_run_and_keeps_the_last_good_state() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    let log = dir.path().join("metrics.jsonl");
    std::os::unix::fs::symlink(FULL, &log).unwrap();
    let ended = session(&coordinator, settings(dir.path())).await;
    let error = format!("{:#}", ended.unwrap_err());
    assert!(error.contains("cannot write to the log"), "{error}");
    std::fs::remove_file(log).unwrap();
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 2);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_for_which_there_is_no_room_ends_the_run_and_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    let context = session_context(&coordinator).await;
    let mut begun = Session::begin(settings(dir.path()), context).await.unwrap();
    // The name under which the second one is written before it gets its own.
    let partial = format!("checkpoints/00000001.net.{}.partial", std::process::id());
    std::os::unix::fs::symlink(FULL, dir.path().join(partial)).unwrap();
    let error = format!("{:#}", begun.run_phases().await.unwrap_err());
    assert!(error.contains("cannot write a checkpoint"), "{error}");
    drop(begun);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 2);
}
