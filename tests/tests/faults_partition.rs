//! Two replicas on one PostgreSQL, of which one is cut off from it, or from the bucket that both use, by connections
//! that break or by a cable that is pulled out: it says so, the other goes on, and afterwards both know the same.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use rookery_tests::client::Client;
use rookery_tests::netns::{Cable, NetworkNamespace, Plug};
use rookery_tests::network;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::postgres::Postgres;
use rookery_tests::programs::{Running, eventually, quiet_port};
use rookery_tests::proxy::{Proxy, Way};
use rookery_tests::s3::S3;
use rookery_tests::site::{Site, SiteOptions};
use rookery_tests::stores::Servers;

fn url(address: SocketAddr) -> String {
    format!("postgres://postgres@{address}/rookery")
}

/// A coordinator that reaches its database at this address.
fn by(database: SocketAddr) -> SiteOptions {
    SiteOptions {
        arguments: vec!["--database".to_owned(), url(database)],
        ..SiteOptions::default()
    }
}

/// A coordinator with a network.
async fn site(options: SiteOptions) -> anyhow::Result<Site> {
    let site = Site::start_with(&tiny(), options).await?;
    let first = network::file("faults", 0)?;
    site.submit(&first).await?;
    Ok(site)
}

/// Another coordinator beside the site's, which reaches what both share in these ways.
async fn replica(site: &Site, options: &SiteOptions) -> anyhow::Result<(Running, String)> {
    let listen = format!("127.0.0.1:{}", quiet_port()?);
    let data = site.path("coordinator").display().to_string();
    let mut arguments = vec!["--data-dir", &data];
    arguments.extend(options.arguments.iter().map(String::as_str));
    arguments.extend(["serve", "--listen", &listen]);
    let variables = options.environment.iter();
    let variables: Vec<_> = variables
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let log = site.path("replica.log");
    let running = Running::start("rookery-coordinator", &log, &arguments, &variables)?;
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
    let site = site(by(near.address())).await?;
    let (_replica, other) = replica(&site, &by(far.address())).await?;
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

/// The ledger is within its reach all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_cut_off_from_the_bucket_takes_no_chunk_and_serves_on()
-> anyhow::Result<()> {
    let servers = Servers::start(None)?;
    let way = Proxy::start(servers.s3.address()).await?;
    let site = site(servers.options()).await?;
    let far = SiteOptions {
        environment: S3::environment_at(way.address()),
        ..servers.options()
    };
    let (_replica, other) = replica(&site, &far).await?;
    let here = site.client().register("alice").await?;
    let there = Client::new(&other).with_token(here.token().context("a token")?);
    let job = there.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;

    way.set(Way::Cut);
    let refusal = there.upload(&chunk).await?.expect_err("it is not stored");
    ensure!(refusal.status >= 500, "{refusal:?}");
    assert_eq!(site.run().await?.chunks, 0, "it was counted and not stored");
    eventually("a replica without a store is not ready", async || {
        Ok((!is_ready(&other).await).then_some(()))
    })
    .await?;
    there.job().await?.context("it hands out jobs")?;
    let receipt = here.upload(&chunk).await?.expect("the other one takes it");
    assert!(!receipt.duplicate, "{receipt:?}");

    way.set(Way::Open);
    until_ready(&other).await?;
    let again = there.upload(&chunk).await?.expect("it knows of it");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));
    let job = there.job().await?.context("there is a job")?;
    let receipt = there.upload(&honest_chunk(&job)?).await?;
    assert!(!receipt.expect("it takes chunks again").duplicate);
    assert_eq!(site.run().await?.chunks, 2);
    site.check_ledger()?;
    site.command(&["store", "sweep"])?;
    Ok(())
}

/// Nothing breaks that anyone could see: packets are lost between the replica and its database, then between the
/// replica and its worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_whose_cables_are_pulled_out_loses_nothing() -> anyhow::Result<()> {
    let Some(netns) = NetworkNamespace::new()? else {
        return Ok(());
    };
    let postgres = Postgres::start(None)?;
    let site = site(by(postgres.address())).await?;
    let way = Proxy::start_at(netns.outside_address(Cable::Back), postgres.address()).await?;
    let listen = format!("{}:8080", netns.address(Cable::Front));
    let _replica = netns.start(
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
    netns.set(Cable::Back, Plug::Out)?;
    let (refusal, receipt) = tokio::join!(there.upload(&chunk), here.upload(&chunk));
    let refusal = refusal?.expect_err("it cannot be counted");
    ensure!(refusal.status >= 500, "{refusal:?}");
    let receipt = receipt?.expect("the other one counts it");
    assert!(!receipt.duplicate, "{receipt:?}");
    eventually("a replica without a database is not ready", async || {
        Ok((!is_ready(&other).await).then_some(()))
    })
    .await?;
    netns.set(Cable::Back, Plug::In)?;
    until_ready(&other).await?;
    let again = there.upload(&chunk).await?.expect("it knows of it");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));

    // The replica is out of the worker's reach.
    let job = there.job().await?.context("there is a job")?;
    let chunk = honest_chunk(&job)?;
    netns.set(Cable::Front, Plug::Out)?;
    let lost = tokio::time::timeout(Duration::from_secs(2), there.upload(&chunk)).await;
    assert!(!matches!(lost, Ok(Ok(_))), "{lost:?}");
    let receipt = here.upload(&chunk).await?.expect("the other one counts it");
    netns.set(Cable::Front, Plug::In)?;
    until_ready(&other).await?;
    let again = there.upload(&chunk).await?.expect("it knows of it");
    assert_eq!((again.sequence, again.duplicate), (receipt.sequence, true));
    assert_eq!(site.run().await?.chunks, 2);
    site.check_ledger()?;
    Ok(())
}
