//! A worker on a GPU, or on lavapipe in its place, under a coordinator: its chunks are audited by the processor, it is
//! paused, and its device is lost in the middle of a job.

use anyhow::ensure;
use nix::sys::signal::Signal;
use reqwest::Method;
use rookery_common::chunk::{self, Caps};
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Backend, ChunkPage};
use rookery_common::protocol::people::{ContributorDetail, NewToken};
use rookery_common::protocol::trust::TrustInfo;
use rookery_tests::params::tiny;
use rookery_tests::programs::{Running, eventually};
use rookery_tests::site::{RUN, Site};

/// Enough visits that an audit can tell searches apart, and jobs that stay short.
fn params() -> RunParams {
    let mut params = tiny();
    params.selfplay.search.visits = 16;
    params.scheduling.job_seconds = 10;
    params
}

/// A worker with a user's token, the user having the worker's name.
fn worker(
    site: &Site,
    name: &str,
    scopes: &[&str],
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> anyhow::Result<Running> {
    let mut create = vec!["user", "create", name, "--json"];
    scopes
        .iter()
        .for_each(|scope| create.extend(["--scope", scope]));
    let token: NewToken = serde_json::from_str(&site.command(&create)?)?;
    let token = [("ROOKERY_TOKEN", token.token.as_str())];
    site.worker_with(name, arguments, &[&token, environment].concat())
}

/// What audits have shown of the GPU's user.
async fn trust(site: &Site) -> anyhow::Result<TrustInfo> {
    site.operator.get("/users/gpu/trust").await
}

/// Where each chunk of the run was computed, as its header says.
async fn chunk_backends(site: &Site) -> anyhow::Result<Vec<Backend>> {
    let page: ChunkPage = site.trainer.get(&format!("/chunks?run={RUN}")).await?;
    let mut backends = Vec::new();
    for row in &page.chunks {
        let path = format!("/chunks/{}", row.hash);
        let answer = site.trainer.send(Method::GET, &path, "").await?;
        let bytes = answer.error_for_status()?.bytes().await?;
        backends.push(chunk::read(&bytes, &Caps::default())?.0.backend);
    }
    Ok(backends)
}

/// Waits until a program has printed this.
async fn says(program: &mut Running, what: &str) -> anyhow::Result<()> {
    eventually(what, async || {
        ensure!(program.ended()?.is_none(), "{}", program.printed());
        Ok(program.printed().contains(what).then_some(()))
    })
    .await
}

/// Waits until the run has more positions than now.
async fn more_positions(site: &Site, program: &mut Running) -> anyhow::Result<()> {
    let before = site.run().await?.training_positions;
    eventually("games come in", async || {
        ensure!(program.ended()?.is_none(), "{}", program.printed());
        let now = site.run().await?.training_positions;
        Ok((now > before).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_worker_on_a_gpu_is_audited_paused_and_loses_its_device() -> anyhow::Result<()> {
    let site = Site::start(&params()).await?;
    site.submit_random(1).await?;
    // Its appearance loses the device.
    let loss = site.path("loss");
    let on_gpu = [
        "--device",
        "gpu:0",
        "--precision",
        "f16",
        "--threads",
        "2",
        "--games",
        "8",
    ];
    let environment = [("ROOKERY_TEST_GPU_LOSS", loss.to_str().unwrap_or_default())];
    let mut gpu = worker(&site, "gpu", &["contribute"], &on_gpu, &environment)?;
    more_positions(&site, &mut gpu).await?;
    let said = gpu.printed();
    ensure!(said.contains("8 games at once; gpu:0 is "), "{said}");
    for backend in chunk_backends(&site).await? {
        ensure!(backend == Backend::GpuF16, "{backend:?}");
    }
    let shown: ContributorDetail = site.client().get("/contributors/gpu").await?;
    let shown: Vec<_> = shown.workers.iter().map(|one| &one.backend[..]).collect();
    ensure!(shown == ["gpu-f16"], "{shown:?}");

    let on_cpu = ["--device", "cpu", "--threads", "1", "--games", "8"];
    let scopes = ["contribute", "audit"];
    let auditor = worker(&site, "auditor", &scopes, &on_cpu, &[])?;
    let audited = eventually("games of the GPU are searched again", async || {
        let trust = trust(&site).await?;
        Ok((trust.audited_positions > 0).then_some(trust))
    })
    .await?;
    ensure!(audited.audits_failed == 0, "{audited:?}");
    site.finish("auditor", auditor)?;

    gpu.signal(Signal::SIGTSTP)?;
    eventually("the worker stands still", async || {
        Ok(gpu.stands_still()?.then_some(()))
    })
    .await?;
    ensure!(
        gpu.printed().contains("gpu:0 is free for other programs"),
        "{}",
        gpu.printed()
    );
    gpu.signal(Signal::SIGCONT)?;
    says(&mut gpu, "resumed after a pause").await?;
    more_positions(&site, &mut gpu).await?;

    std::fs::write(&loss, "")?;
    says(&mut gpu, "RK-0307: gpu:0 was lost").await?;
    // A chunk that was ready before the loss may come in first.
    for _ in 0..2 {
        more_positions(&site, &mut gpu).await?;
    }
    site.finish("gpu", gpu)?;
    let found = trust(&site).await?;
    ensure!(found.audits_failed == 0, "{found:?}");
    site.check_ledger()?;
    Ok(())
}
