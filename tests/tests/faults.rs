//! Machines that die, on files and on servers: nothing that was finished is lost, nothing counts twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{HeartbeatReply, Work};
use rookery_common::protocol::matches::GameInfo;
use rookery_tests::on_all_stores;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::programs::eventually;
use rookery_tests::site::{RUN, Site};
use rookery_tests::stores::Stores;

on_all_stores!(
    a_killed_worker_loses_no_finished_game_and_plays_none_twice,
    a_paused_worker_stands_still_and_goes_on_where_it_was,
    a_worker_whose_terminal_is_closed_gives_its_job_back,
    a_worker_killed_while_uploading_uploads_again_and_counts_once,
    a_killed_coordinator_keeps_what_it_acknowledged,
    a_lease_survives_the_coordinator,
    an_expired_lease_goes_to_another,
);

/// A site with a first network, so that there is self-play to do.
async fn site(stores: Stores, params: &RunParams) -> anyhow::Result<Site> {
    let site = Site::start_on(stores, params).await?;
    site.submit_random(1).await?;
    Ok(site)
}

/// Files below a folder.
fn files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|e| {
            if e.path().is_dir() {
                files(&e.path())
            } else {
                1
            }
        })
        .sum()
}

async fn a_killed_worker_loses_no_finished_game_and_plays_none_twice(
    stores: Stores,
) -> anyhow::Result<()> {
    let mut params = tiny();
    params.scheduling.selfplay_games = 200;
    let site = site(stores, &params).await?;
    let worker = site.worker("worker")?;
    // Games are in hand, and nothing was uploaded.
    worker.wait_for("job taken").await?;
    worker.kill()?;
    let worker = site.worker("worker")?;
    site.wait_for_games(0).await?;
    // Every game's fingerprint and place in its job are unique in the ledger: a game that was
    // played or counted twice would have been refused, and kept aside.
    site.finish("worker", worker)?;
    site.check_ledger()?;
    Ok(())
}

async fn a_paused_worker_stands_still_and_goes_on_where_it_was(
    stores: Stores,
) -> anyhow::Result<()> {
    let mut params = tiny();
    params.scheduling.selfplay_games = 200;
    let site = site(stores, &params).await?;
    let worker = site.worker("worker")?;
    worker.wait_for("job taken").await?;
    worker.signal(Signal::SIGTSTP)?;
    let still = async || Ok(worker.stands_still()?.then_some(()));
    eventually("the worker stands still", still).await?;
    ensure!(worker.printed().contains("pausing"), "{}", worker.printed());
    worker.signal(Signal::SIGCONT)?;
    worker.wait_for("resumed after a pause").await?;
    site.wait_for_games(0).await?;
    let printed = worker.printed();
    worker.stop()?;
    ensure!(!printed.contains("ERROR"), "{printed}");
    site.check_ledger()?;
    Ok(())
}

async fn a_worker_whose_terminal_is_closed_gives_its_job_back(
    stores: Stores,
) -> anyhow::Result<()> {
    let mut params = tiny();
    params.scheduling.selfplay_games = 2000;
    let site = site(stores, &params).await?;
    let mut worker = site.worker("worker")?;
    worker.wait_for("job taken").await?;
    worker.signal(Signal::SIGHUP)?;
    let (status, printed) = (worker.wait()?, worker.printed());
    ensure!(status.success(), "{status}:\n{printed}");
    ensure!(printed.contains("the terminal was closed"), "{printed}");
    ensure!(printed.contains("was given back"), "{printed}");
    Ok(())
}

async fn a_worker_killed_while_uploading_uploads_again_and_counts_once(
    stores: Stores,
) -> anyhow::Result<()> {
    let mut site = site(stores, &tiny()).await?;
    let worker = site.worker("worker")?;
    let before = site.wait_for_games(0).await?;
    // Without a coordinator, chunks pile up in the spool: uploads are being tried when it dies.
    site.kill_coordinator()?;
    let spool = site.path("worker").join("spool");
    eventually("the spool holds games", async || {
        Ok((files(&spool) > 0).then_some(()))
    })
    .await?;
    worker.kill()?;
    site.start_coordinator().await?;
    let worker = site.worker("worker")?;
    site.wait_for_games(before).await?;
    site.finish("worker", worker)?;
    site.check_ledger()?;
    Ok(())
}

/// The chunks in a spool, in the order in which they are sent.
fn waiting(spool: &Path) -> BTreeSet<PathBuf> {
    let jobs = std::fs::read_dir(spool).into_iter().flatten().flatten();
    let files = jobs.filter_map(|job| std::fs::read_dir(job.path()).ok());
    let paths = files.flatten().flatten().map(|file| file.path());
    let chunks = paths.filter(|path| path.extension().is_some_and(|end| end == "chunk"));
    chunks.collect()
}

#[tokio::test]
async fn a_chunk_that_cannot_be_stored_holds_up_no_other() -> anyhow::Result<()> {
    let site = site(Stores::Files, &tiny()).await?;
    let blobs = site.path("coordinator").join("blobs");
    // For a while no chunk can be stored.
    std::os::unix::fs::symlink("later", blobs.join("chunks"))?;
    let worker = site.worker("worker")?;
    let spool = site.path("worker").join("spool");
    let chunks = eventually("chunks wait", async || {
        let chunks = waiting(&spool);
        Ok((chunks.len() > 2).then_some(chunks))
    })
    .await?;
    // Then all can be but the first, in whose place a folder is.
    let first = chunks.first().context("there are some")?;
    let name = first.file_stem().and_then(|name| name.to_str());
    let name = name.context("a hash")?;
    let place = Path::new(&name[..2]).join(name);
    std::fs::create_dir_all(blobs.join("prepared").join(&place))?;
    std::fs::rename(blobs.join("prepared"), blobs.join("later"))?;
    let gone = |chunk: &PathBuf| !chunk.exists();
    eventually("the others are uploaded", async || {
        Ok(chunks.iter().skip(1).all(gone).then_some(()))
    })
    .await?;
    ensure!(first.exists(), "it was stored in the place of a folder");
    std::fs::remove_dir(blobs.join("later").join(&place))?;
    let sent = async || Ok(gone(first).then_some(()));
    eventually("it is uploaded as well", sent).await?;
    site.finish("worker", worker)?;
    site.check_ledger()?;
    Ok(())
}

async fn a_killed_coordinator_keeps_what_it_acknowledged(stores: Stores) -> anyhow::Result<()> {
    let mut site = site(stores, &tiny()).await?;
    let contributor = site.client().register("alice").await?;
    let job = contributor.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;
    let receipt = contributor
        .upload(&chunk)
        .await?
        .expect("an honest chunk is taken");
    site.kill_coordinator()?;
    site.start_coordinator().await?;
    assert_eq!(site.run().await?.games, u64::from(receipt.games));
    let again = contributor
        .upload(&chunk)
        .await?
        .expect("the same bytes again");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));
    assert_eq!(site.run().await?.games, u64::from(receipt.games));
    let listed: Vec<GameInfo> = site
        .client()
        .get(&format!("/games?run={RUN}&limit=100"))
        .await?;
    assert_eq!(listed.len(), receipt.games as usize);
    site.check_ledger()?;
    Ok(())
}

async fn a_lease_survives_the_coordinator(stores: Stores) -> anyhow::Result<()> {
    let mut site = site(stores, &tiny()).await?;
    let contributor = site.client().register("alice").await?;
    let job = contributor.job().await?.context("there is a job")?;
    site.kill_coordinator()?;
    site.start_coordinator().await?;
    let path = format!("/jobs/{}/heartbeat", job.id);
    let beat = serde_json::json!({"games_finished": 1});
    let reply: Result<HeartbeatReply, _> = contributor
        .json(reqwest::Method::POST, &path, Some(&beat))
        .await?;
    reply.expect("the lease lives on");
    let receipt = contributor.upload(&honest_chunk(&job)?).await?;
    assert_eq!(receipt.expect("the chunk is taken").games, job.work.games());
    Ok(())
}

async fn an_expired_lease_goes_to_another(stores: Stores) -> anyhow::Result<()> {
    let mut params = tiny();
    params.scheduling.lease_seconds = 10;
    params.scheduling.gate_share = 1.0;
    let site = site(stores, &params).await?;
    site.submit_random(2).await?;
    let (alice, bob) = (
        site.client().register("alice").await?,
        site.client().register("bob").await?,
    );
    let lost = alice.job().await?.context("there is a match job")?;
    let Work::Match {
        pairs: lost_pairs, ..
    } = &lost.work
    else {
        panic!("{lost:?}")
    };
    // All pairs of the match are out; when the lease has ended they come again, to bob more than once if his end too.
    eventually("bob's games count", async || match bob.job().await? {
        Some(job) if matches!(&job.work, Work::Match { pairs, .. } if pairs == lost_pairs) => {
            Ok(bob.upload(&honest_chunk(&job)?).await?.ok())
        }
        _ => Ok(None),
    })
    .await?;
    let late = alice
        .upload(&honest_chunk(&lost)?)
        .await?
        .expect_err("the lease has ended");
    assert_eq!(late.code.as_str(), "lease-ended");
    site.check_ledger()?;
    Ok(())
}
