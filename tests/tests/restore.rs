//! Backups of a site at work, made and restored as the operator's guide says, after everything else is lost: what was
//! acknowledged before the backup is there, and work goes on.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use reqwest::Method;
use rookery_common::ids::ContentHash;
use rookery_tests::client::Client;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, honest_chunk};
use rookery_tests::programs::{Running, eventually};
use rookery_tests::site::Site;
use rookery_tests::stores::{Servers, Stores};

/// A site with a network, games, and a worker that goes on playing.
struct Live {
    site: Site,
    worker: Running,
    network: ContentHash,
    alice: Client,
    /// Acknowledged to alice.
    chunk: Chunk,
    /// Counted when that was.
    games: u64,
}

impl Live {
    async fn on(stores: Stores) -> anyhow::Result<Self> {
        let site = Site::start_on(stores, &tiny()).await?;
        let network = site.submit_random(1).await?.hash;
        let worker = site.worker("worker")?;
        let alice = site.client().register("alice").await?;
        let chunk = honest_chunk(&alice.job().await?.context("there is a job")?)?;
        let receipt = alice.upload(&chunk).await?;
        let receipt = receipt.expect("an honest chunk is taken");
        site.wait_for_games(u64::from(receipt.games)).await?;
        Ok(Self {
            games: site.run().await?.games,
            network,
            site,
            worker,
            alice,
            chunk,
        })
    }

    /// Time in which more comes than the backup of the ledger has.
    async fn go_on(&self) -> anyhow::Result<()> {
        let now = self.site.run().await?.games;
        self.site.wait_for_games(now).await.map(drop)
    }

    /// Looks at what was restored, starts the coordinator and sees work go on.
    async fn resume(mut self) -> anyhow::Result<()> {
        let site = &mut self.site;
        site.check_ledger()?;
        site.command(&["store", "sweep"])?;
        site.start_coordinator().await?;
        let restored = site.run().await?.games;
        ensure!(restored >= self.games, "{restored} of {} games", self.games);
        for (path, hash) in [
            (format!("/chunks/{}", self.chunk.hash), self.chunk.hash),
            (format!("/networks/{}/file", self.network), self.network),
        ] {
            let answer = site.trainer.send(Method::GET, &path, "").await?;
            let bytes = answer.error_for_status()?.bytes().await?;
            assert_eq!(ContentHash::of(&bytes), hash, "{path}");
        }
        let again = self.alice.upload(&self.chunk).await?;
        assert!(again.expect("it is known").duplicate);
        // What it sends for jobs that the backup does not have is refused; it takes others.
        site.wait_for_games(restored).await?;
        self.worker.kill()?;
        site.check_ledger()?;
        Ok(())
    }
}

/// Copies a file, or a folder in which others write: a file that is gone when its turn comes was none that counts, but
/// `cp` takes it for a failure.
async fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    eventually("it is copied", async || {
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--no-target-directory"]);
        let status = copy.arg(from).arg(to).status()?;
        Ok(status.success().then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_site_on_files_is_restored_and_work_goes_on() -> anyhow::Result<()> {
    let mut live = Live::on(Stores::Files).await?;
    let safe = tempfile::tempdir()?;
    let (ledger, blobs) = (safe.path().join("copy.db"), safe.path().join("blobs"));
    let data = live.site.path("coordinator");
    let copied = ledger.display().to_string();
    live.site.command(&["ledger", "backup", &copied])?;
    live.go_on().await?;
    copy(&data.join("blobs"), &blobs).await?;

    live.site.kill_coordinator()?;
    std::fs::remove_dir_all(&data)?;
    std::fs::create_dir(&data)?;
    copy(&ledger, &data.join("ledger.db")).await?;
    copy(&blobs, &data.join("blobs")).await?;
    live.resume().await
}

#[tokio::test]
async fn a_site_on_servers_is_restored_on_others_and_work_goes_on() -> anyhow::Result<()> {
    let mut live = Live::on(Stores::Servers).await?;
    let safe = tempfile::tempdir()?;
    let (ledger, objects) = (safe.path().join("ledger.dump"), safe.path().join("buckets"));
    let lost = live.site.servers().context("it is on servers")?;
    copy(&lost.postgres.back_up()?, &ledger).await?;
    live.go_on().await?;
    copy(&lost.s3.files(), &objects).await?;

    live.site.kill_coordinator()?;
    let others = Servers::start(None)?;
    others.postgres.restore(&ledger)?;
    copy(&objects, &others.s3.files()).await?;
    live.site.move_to(others);
    live.resume().await
}
