//! Coordinators that are restarted one after the other while work goes on, told to end as for an update, or killed:
//! what fails succeeds when it is tried again at once.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{ChunkPage, Job};
use rookery_tests::client::Client;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, honest_chunk};
use rookery_tests::programs::{PATIENCE, eventually, quiet_port};
use rookery_tests::proxy::Proxy;
use rookery_tests::site::{RUN, Site};
use rookery_tests::stores::Stores;

/// Contributors that ask without a pause.
const CONTRIBUTORS: usize = 4;
/// How often all coordinators are restarted.
const ROUNDS: usize = 2;

/// How a coordinator comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is told to finish.
    Told,
    /// It dies in the midst of whatever it does.
    Killed,
}

/// Says whether to try again after a failure, a while later: one of two coordinators is always up, but a request that takes
/// long can meet the ends of both.
struct Patience {
    begin: Instant,
    failures: String,
}

impl Patience {
    fn new() -> Self {
        Self {
            begin: Instant::now(),
            failures: String::new(),
        }
    }

    async fn after(&mut self, why: impl Display) -> anyhow::Result<()> {
        let past = self.begin.elapsed();
        self.failures += &format!("\nafter {past:.1?}: {why:#}");
        ensure!(past < PATIENCE, "tried for {PATIENCE:?}:{}", self.failures);
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }
}

async fn job(contributor: &Client) -> anyhow::Result<Job> {
    let mut patience = Patience::new();
    loop {
        match contributor.job().await {
            Ok(Some(job)) => return Ok(job),
            Ok(None) => patience.after("no job now").await?,
            Err(error) => patience.after(error).await?,
        }
    }
}

async fn upload(contributor: &Client, chunk: &Chunk) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    loop {
        match contributor.upload(chunk).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(problem)) => {
                ensure!(problem.status >= 500, "{problem:?}");
                patience.after(problem).await?;
            }
            Err(error) => patience.after(error).await?,
        }
    }
}

/// Plays jobs until it is told to stop; the chunks that were acknowledged.
async fn contribute(
    contributor: Client,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Vec<ContentHash>> {
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let job = job(&contributor).await?;
        let chunk = tokio::task::block_in_place(|| honest_chunk(&job))?;
        upload(&contributor, &chunk).await?;
        acknowledged.push(chunk.hash);
    }
    Ok(acknowledged)
}

/// All chunks of the ledger.
async fn ledger(site: &Site) -> anyhow::Result<Vec<ContentHash>> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let path = format!("/chunks?run={RUN}&limit=1000&after={after}");
        let page: ChunkPage = site.trainer.get(&path).await?;
        all.extend(page.chunks.iter().map(|row| row.hash));
        after = page.next;
        if !page.more {
            return Ok(all);
        }
    }
}

// The balancer and the contributors go on while restarts are waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn coordinators_are_restarted_one_after_the_other_and_nobody_is_refused() -> anyhow::Result<()>
{
    restart_all(End::Told).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn coordinators_are_killed_one_after_the_other_and_lose_nothing() -> anyhow::Result<()> {
    restart_all(End::Killed).await
}

/// Restarts both coordinators again and again under load; then the ledger has what was acknowledged, once.
async fn restart_all(end: End) -> anyhow::Result<()> {
    let mut site = Site::start_on(Stores::Servers, &tiny()).await?;
    site.submit_random(1).await?;
    let other = format!("127.0.0.1:{}", quiet_port()?);
    let mut replica = site.replica(&other).await?;
    let balancer = Proxy::balance(vec![site.address().parse()?, other.parse()?]).await?;
    let url = format!("http://{}", balancer.address());

    let stop = Arc::new(AtomicBool::new(false));
    let mut contributors = Vec::new();
    for index in 0..CONTRIBUTORS {
        let contributor = Client::new(&url).register(&format!("c{index}")).await?;
        contributors.push(tokio::spawn(contribute(contributor, stop.clone())));
    }
    let worker = site.worker_at(&url, "worker")?;
    worker.wait_for("job taken").await?;
    for _ in 0..ROUNDS {
        let before = site.run().await?.chunks;
        match end {
            End::Told => site.stop_coordinator()?,
            End::Killed => site.kill_coordinator()?,
        }
        site.start_coordinator().await?;
        match end {
            End::Told => replica.stop()?,
            End::Killed => replica.kill()?,
        }
        replica = site.replica(&other).await?;
        eventually("work goes on", async || {
            let chunks = site.run().await?.chunks;
            Ok((chunks > before + CONTRIBUTORS as u64).then_some(()))
        })
        .await?;
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for contributor in contributors {
        acknowledged.extend(contributor.await??);
    }
    site.finish("worker", worker)?;

    let mut counted = ledger(&site).await?;
    counted.sort_unstable();
    let all = counted.len();
    counted.dedup();
    ensure!(counted.len() == all, "a chunk is in the ledger twice");
    for hash in acknowledged {
        counted
            .binary_search(&hash)
            .ok()
            .with_context(|| format!("{hash} was acknowledged and is not in the ledger"))?;
    }
    site.check_ledger()?;
    Ok(())
}
