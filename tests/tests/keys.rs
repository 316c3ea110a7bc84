//! Networks that are signed: real workers play with them, and with no others.

use std::path::Path;

use anyhow::Context;
use rookery_common::signing::SigningKey;
use rookery_tests::params::tiny;
use rookery_tests::programs::Running;
use rookery_tests::site::{RUN, Site};

/// A worker that ends after one job, with more flags.
fn worker(site: &Site, name: &str, flags: &[&str]) -> anyhow::Result<Running> {
    let folder = site.path(name).display().to_string();
    let url = site.url();
    let always = [
        "run",
        "--server",
        &url,
        "--dir",
        &folder,
        "--name",
        name,
        "--max-jobs",
        "1",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--games",
        "4",
    ];
    let log = site.path(&format!("{name}.log"));
    Running::start("rookery-worker", &log, &[&always, flags].concat(), &[])
}

fn pinned(site: &Site, name: &str) -> anyhow::Result<String> {
    let path = site.path(name).join("keys.toml");
    std::fs::read_to_string(&path).with_context(|| format!("{} is missing", path.display()))
}

#[tokio::test]
async fn a_worker_plays_only_what_the_pinned_key_or_its_successor_signed() -> anyhow::Result<()> {
    let mut site = Site::start(&tiny()).await?;
    site.command(&["run", "key", "create", RUN])?;
    let first = site.command(&["run", "key", "show", RUN])?;
    let receipt = site.submit_random(1).await?;
    assert_eq!(receipt.number.0, 0);

    let mut ann = worker(&site, "ann", &[])?;
    anyhow::ensure!(ann.wait()?.success(), "{}", ann.printed());
    assert!(pinned(&site, "ann")?.contains(first.trim()));
    let played = site.run().await?.games;
    assert!(played > 0);

    site.command(&["run", "key", "rotate", RUN])?;
    let second = site.command(&["run", "key", "show", RUN])?;
    assert_ne!(first, second);
    // What jobs say of the key may be a few seconds old; after a start it is not.
    site.kill_coordinator()?;
    site.start_coordinator().await?;
    let mut ann = worker(&site, "ann", &[])?;
    anyhow::ensure!(ann.wait()?.success(), "{}", ann.printed());
    assert!(pinned(&site, "ann")?.contains(second.trim()));
    let after = site.run().await?.games;
    assert!(after > played);

    // Whoever was told another key on another way plays nothing here.
    let stranger = SigningKey::generate()?;
    let flags = ["--run-key", stranger.public().as_str()];
    let mut eve = worker(&site, "eve", &flags)?;
    assert!(!eve.wait()?.success(), "{}", eve.printed());
    let said = eve.printed();
    assert!(
        said.contains(stranger.public().as_str()) && said.contains("--run-key"),
        "{said}"
    );
    assert_eq!(site.run().await?.games, after);
    site.check_ledger()?;
    Ok(())
}

#[tokio::test]
async fn a_key_that_the_coordinator_does_not_have_signs_at_the_trainer() -> anyhow::Result<()> {
    let site = Site::start(&tiny()).await?;
    let secret = site.path("elsewhere/main.key");
    let path = secret.display().to_string();
    site.command(&["run", "key", "create", RUN, "--secret", &path])?;
    assert_private(&secret)?;
    let network = site.random_network("1x8", 1)?;
    let refused = site.trainer.submit(RUN, &network).await?;
    let problem = refused.expect_err("nobody signed it");
    assert_eq!(problem.code.as_str(), "signature-refused");
    let trainer = site.trainer_with("1x8", &["--signing-key", &path])?;
    let first = async || Ok(site.trainer.networks(RUN).await?.pop());
    let signed = rookery_tests::programs::eventually("the trainer submits", first).await;
    let log = trainer.printed();
    let network = signed.with_context(|| log)?;
    trainer.kill()?;
    let mut ann = worker(&site, "ann", &[])?;
    anyhow::ensure!(ann.wait()?.success(), "{}", ann.printed());
    assert_eq!(network.number.0, 0);
    assert!(site.run().await?.games > 0);
    Ok(())
}

#[cfg(unix)]
fn assert_private(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(path)?.permissions().mode() & 0o777, 0o600);
    Ok(())
}
