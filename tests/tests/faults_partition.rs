//! Two replicas on one PostgreSQL, of which one is cut off, by connections that break or by a cable
//! that is pulled out: it says so, the other goes on, and afterwards both know the same.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use rookery_tests::client::Client;
use rookery_tests::island::{Cable, Island, Plug};
use rookery_tests::network;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::postgres::Postgres;
use rookery_tests::programs::{Running, eventually, free_port};
use rookery_tests::proxy::{Proxy, Way};
use rookery_tests::site::{Site, SiteOptions};

fn url(address: SocketAddr) -> String {
    format!("postgres://postgres@{address}/rookery")
}

/// A coordinator with a network, which reaches its database at this address.
async fn site(database: SocketAddr) -> anyhow::Result<Site> {
    let options = SiteOptions {
        arguments: vec!["--database".to_owned(), url(database)],
        ..SiteOptions::default()
    };
    let site = Site::start_with(&tiny(), options).await?;
    let first = network::file("faults", 0)?;
    site.submit(&first).await?;
    Ok(site)
}

/// Another coordinator on the site's store, which reaches the database at this address.
async fn replica(site: &Site, database: &str) -> anyhow::Result<(Running, String)> {
    let listen = format!("127.0.0.1:{}", free_port()?);
    let data = site.path("coordinator").display().to_string();
    let arguments = [
        "--data-dir",
        &data,
        "--database",
        database,
        "serve",
        "--listen",
        &listen,
    ];
    let running = Running::start(
        "rookery-coordinator",
        &site.path("replica.log"),
        &arguments,
        &[],
    )?;
    let url = format!("http://{listen}");
    until_ready(&url).await?;
    Ok((running, url))
}

async fn is_ready(url: &str) -> bool {
    let answer = reqwest::get(format!("{url}/readyz")).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

async fn until_ready(url: &str) -> anyhow::Result<()> {
    eventually("a replica is ready", async || {
        Ok(is_ready(url).await.then_some(()))
    })
    .await
}

// The proxies go on while commands are waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_cut_off_counts_nothing_and_finds_what_the_other_counted()
-> anyhow::Result<()> {
    let postgres = Postgres::start(None)?;
    let (near, far) = (
        Proxy::start(postgres.address()).await?,
        Proxy::start(postgres.address()).await?,
    );
    let site = site(near.address()).await?;
    let (_replica, other) = replica(&site, &url(far.address())).await?;
    let here = site.client().register("alice").await?;
    let there = Client::new(&other).with_token(here.token().context("a token")?);

    for (cut, alone, beyond, up) in [
        (&near, &there, &here, site.url()),
        (&far, &here, &there, other.clone()),
    ] {
        let job = alone.job().await?.context("there is a job")?;
        let chunk = honest_chunk(&job)?;
        cut.set(Way::Cut);
        let refusal = beyond
            .upload(&chunk)
            .await?
            .expect_err("it cannot be counted");
        ensure!(refusal.status >= 500, "{refusal:?}");
        // It looks at its database only now and then.
        eventually("a replica without a database is not ready", async || {
            Ok((!is_ready(&up).await).then_some(()))
        })
        .await?;
        let receipt = alone
            .upload(&chunk)
            .await?
            .expect("the other one counts it");
        assert!(!receipt.duplicate, "{receipt:?}");
        cut.set(Way::Open);
        until_ready(&up).await?;
        let again = eventually("the replica writes again", async || {
            Ok(beyond.upload(&chunk).await?.ok())
        });
        let again = again.await?;
        assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));
    }
    assert_eq!(site.run().await?.chunks, 2);
    site.check_ledger()?;
    Ok(())
}

/// Nothing breaks that anyone could see: packets are lost between the replica and its database, then between the
/// replica and its worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_whose_cables_are_pulled_out_loses_nothing() -> anyhow::Result<()> {
    let Some(island) = Island::new()? else {
        return Ok(());
    };
    let postgres = Postgres::start(None)?;
    let site = site(postgres.address()).await?;
    let way = Proxy::start_at(island.mainland(Cable::Back), postgres.address()).await?;
    let listen = format!("{}:8080", island.address(Cable::Front));
    let _replica = island.start(
        "rookery-coordinator",
        &site.path("replica.log"),
        &[
            "--data-dir",
            &site.path("coordinator").display().to_string(),
            "--database",
            &url(way.address()),
            "serve",
            "--listen",
            &listen,
        ],
    )?;
    let other = format!("http://{listen}");
    until_ready(&other).await?;
    let here = site.client().register("alice").await?;
    let there = Client::new(&other).with_token(here.token().context("a token")?);

    // The database is out of the replica's reach.
    let job = there.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;
    island.set(Cable::Back, Plug::Out)?;
    let (refusal, receipt) = tokio::join!(there.upload(&chunk), here.upload(&chunk));
    let refusal = refusal?.expect_err("it cannot be counted");
    ensure!(refusal.status >= 500, "{refusal:?}");
    let receipt = receipt?.expect("the other one counts it");
    assert!(!receipt.duplicate, "{receipt:?}");
    eventually("a replica without a database is not ready", async || {
        Ok((!is_ready(&other).await).then_some(()))
    })
    .await?;
    island.set(Cable::Back, Plug::In)?;
    until_ready(&other).await?;
    let again = there.upload(&chunk).await?.expect("it knows of it");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));

    // The replica is out of the worker's reach.
    let job = there.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;
    island.set(Cable::Front, Plug::Out)?;
    let lost = tokio::time::timeout(Duration::from_secs(2), there.upload(&chunk)).await;
    assert!(!matches!(lost, Ok(Ok(_))), "{lost:?}");
    let receipt = here.upload(&chunk).await?.expect("the other one counts it");
    island.set(Cable::Front, Plug::In)?;
    until_ready(&other).await?;
    let again = there.upload(&chunk).await?.expect("it knows of it");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));
    assert_eq!(site.run().await?.chunks, 2);
    site.check_ledger()?;
    Ok(())
}
