//! A trainer that is killed while it writes, or has no room to write: the candidate that comes of it
//! in the end is the one that an undisturbed trainer makes, byte for byte.

use std::path::Path;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use rookery_tests::disk::Disk;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::programs::{Running, eventually};
use rookery_tests::site::Site;

/// One thread, so that sums are always made in the same order; a checkpoint after every step; no chunk
/// held out, where there may be a single one.
const FLAGS: [&str; 10] = [
    "--held-out",
    "0",
    "--threads",
    "1",
    "--device",
    "cpu",
    "--checkpoint-every",
    "0",
    "--poll-every",
    "0.1",
];

/// A run with a network and enough positions for a candidate.
async fn ready() -> anyhow::Result<Site> {
    let mut params = tiny();
    params.training.steps_per_candidate = 60;
    let enough = params.training.window.min;
    let site = Site::start(&params).await?;
    site.submit_random(1).await?;
    let alice = site.client().register("alice").await?;
    while site.run().await?.training_positions < enough {
        let job = alice.job().await?.context("there is a job")?;
        alice
            .upload(&honest_chunk(&job)?)
            .await?
            .expect("it is honest");
    }
    Ok(site)
}

/// The names of the files in a folder, none if it is not there yet.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// The finished candidate, whose name holds its hash.
fn candidate(folder: &Path) -> Option<String> {
    let mut names = names(&folder.join("candidates")).into_iter();
    names.find(|name| name.ends_with(".safetensors"))
}

/// Runs a trainer until it has made its candidate.
async fn finish(site: &Site, folder: &Path) -> anyhow::Result<String> {
    let trainer = site.trainer_in(folder, "1x8", &FLAGS)?;
    let made = eventually("a candidate is made", async || Ok(candidate(folder))).await;
    let log = trainer.printed();
    trainer.kill()?;
    made.context(log)
}

/// Starts a trainer, and stops it in the middle of its candidate, with a checkpoint half written. Where its candidate was
/// finished before anybody looked, another one begins anew.
async fn stopped_while_writing(site: &Site, folder: &Path) -> anyhow::Result<Running> {
    loop {
        let mut trainer = site.trainer_in(folder, "1x8", &FLAGS)?;
        while candidate(folder).is_none() {
            ensure!(trainer.ended()?.is_none(), "{}", trainer.printed());
            let mut names = names(&folder.join("checkpoints")).into_iter();
            if names.any(|name| name.ends_with(".partial")) {
                trainer.signal(Signal::SIGSTOP)?;
                let still = async || Ok(trainer.stands_still()?.then_some(()));
                eventually("the trainer stands still", still).await?;
                break;
            }
        }
        if candidate(folder).is_none() {
            return Ok(trainer);
        }
        trainer.kill()?;
        std::fs::remove_dir_all(folder)?;
    }
}

#[tokio::test]
async fn a_trainer_killed_while_it_writes_checkpoints_makes_the_same_candidate()
-> anyhow::Result<()> {
    let site = ready().await?;
    let expected = finish(&site, &site.path("straight")).await?;
    let folder = site.path("killed");
    for _ in 0..6 {
        stopped_while_writing(&site, &folder).await?.kill()?;
    }
    assert_eq!(finish(&site, &folder).await?, expected);
    Ok(())
}

#[tokio::test]
async fn a_trainer_on_a_full_disk_says_so_and_goes_on_when_there_is_room() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(64)? else {
        return Ok(());
    };
    let site = ready().await?;
    let expected = finish(&site, &site.path("straight")).await?;
    let folder = disk.path().join("trainer");
    let mut trainer = stopped_while_writing(&site, &folder).await?;
    disk.fill()?;
    trainer.signal(Signal::SIGCONT)?;
    let status = trainer.wait()?;
    let log = trainer.printed();
    ensure!(!status.success() && log.contains("No space left"), "{log}");
    disk.free()?;
    assert_eq!(finish(&site, &folder).await?, expected);
    Ok(())
}
