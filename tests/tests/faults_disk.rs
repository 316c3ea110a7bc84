//! Disks that are full or read-only: nothing that was acknowledged is lost, nothing else counts,
//! and work goes on by itself when there is room again. Root is needed to mount such disks; for
//! others these tests only say that they were not run.

use anyhow::{Context, ensure};
use reqwest::Method;
use rookery_common::protocol::Problem;
use rookery_common::protocol::jobs::HeartbeatReply;
use rookery_tests::client::{Answer, Client};
use rookery_tests::disk::{Access, Disk};
use rookery_tests::network;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, honest_chunk};
use rookery_tests::postgres::Postgres;
use rookery_tests::programs::eventually;
use rookery_tests::site::{Site, SiteOptions};

async fn site(options: SiteOptions) -> anyhow::Result<(Site, Client)> {
    let site = Site::start_with(&tiny(), options).await?;
    site.submit(&network::file("faults", 0)?).await?;
    let alice = site.client().register("alice").await?;
    Ok((site, alice))
}

async fn chunk(client: &Client) -> anyhow::Result<Chunk> {
    honest_chunk(&client.job().await?.context("there is a job")?)
}

/// The coordinator must blame itself, so that workers keep the chunk and try again.
fn assert_its_own_fault(problem: &Problem) {
    assert!(problem.status >= 500, "{problem:?}");
}

/// Uploads until it is taken, as workers do.
async fn upload_surely(client: &Client, chunk: &Chunk) -> anyhow::Result<()> {
    eventually("the chunk is taken", async || {
        Ok(client.upload(chunk).await?.ok().map(drop))
    })
    .await
}

async fn is_ready(site: &Site) -> anyhow::Result<bool> {
    let answer = reqwest::get(format!("{}/readyz", site.url())).await?;
    Ok(answer.status().is_success())
}

#[tokio::test]
async fn a_full_disk_refuses_and_heals() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(16)? else {
        return Ok(());
    };
    let options = SiteOptions {
        folder: Some(disk.path().to_owned()),
        ..SiteOptions::default()
    };
    let (site, alice) = site(options).await?;
    let (first, second) = (chunk(&alice).await?, chunk(&alice).await?);
    upload_surely(&alice, &first).await?;
    let before = site.run().await?;

    disk.fill()?;
    for _ in 0..3 {
        let refusal = alice.upload(&second).await?.expect_err("the disk is full");
        assert_its_own_fault(&refusal);
    }
    // It is asked only now and then.
    eventually("a coordinator that cannot write is not ready", async || {
        Ok((!is_ready(&site).await?).then_some(()))
    })
    .await?;
    // What is there can still be read.
    assert_eq!(site.run().await?.games, before.games);

    disk.free()?;
    upload_surely(&alice, &second).await?;
    eventually("there is room again", async || {
        Ok(is_ready(&site).await?.then_some(()))
    })
    .await?;
    let unfinished = site.path("coordinator").join("blobs/unfinished");
    eventually("what could not be written leaves no files", async || {
        Ok((std::fs::read_dir(&unfinished)?.count() == 0).then_some(()))
    })
    .await?;
    let after = site.run().await?;
    assert_eq!(after.chunks, before.chunks + 1);
    let again = alice.upload(&first).await?.expect("the first one is known");
    assert!(again.duplicate, "{again:?}");
    site.check_ledger()?;
    Ok(())
}

/// PostgreSQL has no room for more rows, but for some in pages that are there.
#[tokio::test]
async fn a_full_disk_of_the_database_refuses_and_heals() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(192)? else {
        return Ok(());
    };
    let postgres = Postgres::start(Some(disk.path()))?;
    let (site, alice) = site(SiteOptions {
        arguments: vec!["--database".to_owned(), postgres.url()],
        ..SiteOptions::default()
    })
    .await?;
    let mut chunks = Vec::new();
    for _ in 0..24 {
        chunks.push(chunk(&alice).await?);
    }
    let (first, others) = chunks.split_first().context("there are some")?;
    upload_surely(&alice, first).await?;
    let (mut acknowledged, mut refused) = (vec![first], Vec::new());

    postgres.make_room_for_log()?;
    disk.fill()?;
    for chunk in others {
        match alice.upload(chunk).await? {
            Ok(_) => acknowledged.push(chunk),
            Err(refusal) => {
                assert_its_own_fault(&refusal);
                refused.push(chunk);
            }
        }
    }
    ensure!(!refused.is_empty(), "there was room for everything");
    // What is there can still be read.
    assert_eq!(site.run().await?.chunks, acknowledged.len() as u64);

    disk.free()?;
    for chunk in refused {
        upload_surely(&alice, chunk).await?;
    }
    for chunk in acknowledged {
        let again = alice.upload(chunk).await?.expect("it is known");
        assert!(again.duplicate, "{again:?}");
    }
    assert_eq!(site.run().await?.chunks, chunks.len() as u64);
    eventually("the coordinator is ready", async || {
        Ok(is_ready(&site).await?.then_some(()))
    })
    .await?;
    site.check_ledger()?;
    Ok(())
}

#[tokio::test]
async fn a_backup_for_which_there_was_no_room_is_none() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(16)? else {
        return Ok(());
    };
    let (site, _) = site(SiteOptions::default()).await?;
    let copy = disk.path().join("copy.db").display().to_string();
    let back_up = || site.command(&["ledger", "backup", &copy]);
    disk.fill()?;
    back_up().expect_err("the disk is full");
    disk.free()?;
    let left = std::fs::read_dir(disk.path())?.count();
    assert_eq!(left, 0, "it looks like a backup");
    back_up()?;
    Ok(())
}

#[tokio::test]
async fn a_coordinator_that_dies_on_a_full_disk_comes_back() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(16)? else {
        return Ok(());
    };
    let options = SiteOptions {
        folder: Some(disk.path().to_owned()),
        ..SiteOptions::default()
    };
    let (mut site, alice) = site(options).await?;
    let (first, second) = (chunk(&alice).await?, chunk(&alice).await?);
    upload_surely(&alice, &first).await?;
    disk.fill()?;
    assert_its_own_fault(&alice.upload(&second).await?.expect_err("the disk is full"));
    site.kill_coordinator()?;
    disk.free()?;
    site.start_coordinator().await?;
    upload_surely(&alice, &second).await?;
    assert_eq!(site.run().await?.chunks, 2);
    assert!(alice.upload(&first).await?.expect("it is known").duplicate);
    site.check_ledger()?;
    Ok(())
}

#[tokio::test]
async fn a_read_only_store_takes_no_chunk_and_everything_else_goes_on() -> anyhow::Result<()> {
    let Some(disk) = Disk::new(16)? else {
        return Ok(());
    };
    let store = disk.path().display().to_string();
    let arguments = vec!["--store".to_owned(), store];
    let (site, alice) = site(SiteOptions {
        arguments,
        ..SiteOptions::default()
    })
    .await?;
    let job = alice.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;

    // A look at the store may have a file open.
    eventually("the disk is read-only", async || {
        Ok(disk.remount(Access::ReadOnly).ok())
    })
    .await?;
    assert_its_own_fault(
        &alice
            .upload(&chunk)
            .await?
            .expect_err("nothing can be stored"),
    );
    let path = format!("/jobs/{}/heartbeat", job.id);
    let beat = serde_json::json!({});
    let reply: Answer<HeartbeatReply> = alice.json(Method::POST, &path, Some(&beat)).await?;
    reply.expect("the lease is kept meanwhile");
    alice.job().await?.context("there are jobs")?;
    assert_eq!(site.run().await?.games, 0);

    disk.remount(Access::ReadWrite)?;
    upload_surely(&alice, &chunk).await?;
    assert_eq!(site.run().await?.games, u64::from(job.work.games()));
    site.check_ledger()?;
    Ok(())
}
