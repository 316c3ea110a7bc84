//! An object store with trouble: it fails, hangs, or sends something else than it was given. What it does not take
//! is kept until it does, and nobody plays with a network that did not come whole.

use std::pin::pin;

use anyhow::{Context as _, bail, ensure};
use rookery_common::protocol::ProblemCode;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::programs::eventually;
use rookery_tests::s3_fault::S3Fault;
use rookery_tests::site::Site;
use rookery_tests::stores::Servers;

/// A site with a first network, whose clients get files in this way (`--downloads`).
async fn site(servers: &Servers, downloads: &str) -> anyhow::Result<Site> {
    let mut options = servers.options();
    let way = ("ROOKERY_DOWNLOADS".to_owned(), downloads.to_owned());
    options.environment.push(way);
    let site = Site::start_with(&tiny(), options).await?;
    site.submit_random(1).await?;
    Ok(site)
}

/// Every sum follows from the facts, and every file that they name is in the store.
fn check(site: &Site) -> anyhow::Result<()> {
    site.check_ledger()?;
    site.command(&["store", "sweep"])?;
    Ok(())
}

#[tokio::test]
async fn what_a_store_in_trouble_does_not_take_is_kept_and_lands() -> anyhow::Result<()> {
    let servers = Servers::start(None)?;
    let site = site(&servers, "direct").await?;
    let worker = site.worker("worker")?;
    let alice = site.client().register("alice").await?;
    let job = alice.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;
    site.wait_for_games(0).await?;

    servers.s3.set_fault(S3Fault::Failing)?;
    let refusal = alice.upload(&chunk).await?.expect_err("the store fails");
    assert_eq!(refusal.code, ProblemCode::Unavailable, "{refusal}");
    // The worker sends one chunk after the other: none is still on its way into the ledger.
    worker
        .wait_for("a chunk could not be uploaded and is kept")
        .await?;
    let before = site.run().await?;
    eventually("a coordinator without a store is not ready", async || {
        let answer = reqwest::get(format!("{}/readyz", site.url())).await?;
        Ok((!answer.status().is_success()).then_some(()))
    })
    .await?;
    assert_eq!(site.run().await?.games, before.games, "they are not stored");

    servers.s3.set_fault(S3Fault::Hanging)?;
    let mut upload = pin!(alice.upload(&chunk));
    tokio::select! {
        early = &mut upload => bail!("it waited for no store: {early:?}"),
        job = alice.job() => drop(job?.context("others are served meanwhile")?),
    }
    servers.s3.set_fault(S3Fault::None)?;
    let receipt = upload.await?.expect("it is taken, if late");
    assert!(!receipt.duplicate, "{receipt:?}");

    site.wait_for_games(before.games + u64::from(receipt.games))
        .await?;
    site.finish("worker", worker)?;
    check(&site)
}

/// A network reaches a worker whole or not at all, in this way.
async fn send_in_parts(downloads: &str) -> anyhow::Result<()> {
    let servers = Servers::start(None)?;
    let site = site(&servers, downloads).await?;
    servers.s3.set_fault(S3Fault::Short)?;
    let worker = site.worker("worker")?;
    worker.wait_for("next try in").await?;
    let tries = || worker.printed().matches("next try in").count();
    let before = tries();
    servers.s3.set_fault(S3Fault::Cutting)?;
    let again = async || Ok((tries() > before).then_some(()));
    eventually("it is tried again", again).await?;
    servers.s3.set_fault(S3Fault::Garbling)?;
    worker.wait_for("has the SHA-256").await?;

    for file in std::fs::read_dir(site.path("worker").join("networks"))? {
        let file = file?.path();
        let whole = file.extension().is_some_and(|end| end == "safetensors");
        ensure!(!whole, "{} is not what was submitted", file.display());
    }
    let printed = worker.printed();
    ensure!(!printed.contains("job taken"), "{printed}");

    servers.s3.set_fault(S3Fault::None)?;
    site.wait_for_games(0).await?;
    site.finish("worker", worker)?;
    check(&site)
}

#[tokio::test]
async fn a_network_that_the_coordinator_gets_in_parts_is_fetched_again() -> anyhow::Result<()> {
    send_in_parts("through").await
}

#[tokio::test]
async fn a_network_that_the_store_itself_sends_in_parts_is_fetched_again() -> anyhow::Result<()> {
    send_in_parts("direct").await
}
