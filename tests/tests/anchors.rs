//! Anchors over the real programs: brought in by the trainer, played by a worker, rated.

use anyhow::Context;
use reqwest::Method;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::Program;
use rookery_common::params::RunParams;
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::{ExportFormat, NetworkInfo, NetworkStatus};
use rookery_common::protocol::people::NewToken;
use rookery_common::protocol::runs::{RunInfo, RunPatch};
use rookery_tests::params::tiny;
use rookery_tests::programs::{eventually, run_with};
use rookery_tests::site::{RUN, Site};

/// Brings a program in, as an operator does; its file's SHA-256.
fn submit(site: &Site, token: &str, program: Program, elo: &str) -> anyhow::Result<String> {
    let (url, program) = (site.url(), program.to_string());
    let name = program.replace(':', "-");
    let arguments = [
        "submit",
        "--program",
        &program,
        "--anchor",
        &name,
        "--elo",
        elo,
        "--server",
        &url,
        "--run",
        RUN,
    ];
    let hash = run_with("rookery-trainer", &arguments, &[("ROOKERY_TOKEN", token)])?;
    Ok(hash.trim().to_owned())
}

#[tokio::test]
async fn a_program_is_an_anchor_that_workers_play_against() -> anyhow::Result<()> {
    let mut params: RunParams = tiny();
    params.scheduling.rating_pairs = 2;
    params.scheduling.rating_share = 1.0;
    let mut site = Site::start(&params).await?;
    let best = site.random_network("1x8", 1)?;
    site.submit(&best).await?;
    params.scheduling.anchor_share = 1.0;
    let patch = RunPatch {
        params: Some(params),
        ..RunPatch::default()
    };
    let path = format!("/runs/{RUN}");
    let changed = site.operator.json(Method::PATCH, &path, Some(&patch));
    let _: RunInfo = changed
        .await?
        .map_err(|problem| anyhow::anyhow!("the run was not changed: {problem}"))?;
    let said = site.command(&["user", "create", "ops", "--scope", "operate", "--json"])?;
    let token: NewToken = serde_json::from_str(&said)?;
    let program = Program::alpha_beta(1);
    let hash = submit(&site, &token.token, program, "0")?;

    let mut worker = site.worker("worker")?;
    let finished = eventually("a rating match is finished", async || {
        let matches = site.trainer.matches(RUN).await?;
        let mut matches = matches.into_iter();
        Ok(matches.find(|m| m.status == MatchStatus::Finished))
    })
    .await?;
    let anchor: NetworkInfo = eventually("the anchor is rated", async || {
        let networks = site.trainer.networks(RUN).await?;
        let mut rated = networks.into_iter().filter(|n| n.rating.is_some());
        Ok(rated.find(|n| n.hash.to_string() == hash))
    })
    .await?;
    worker.interrupt()?;

    assert_eq!(finished.purpose, MatchPurpose::Rating);
    assert_eq!(finished.tally.pairs.pairs(), 2);
    assert_eq!(anchor.status, NetworkStatus::Anchor);
    assert_eq!(anchor.spec.program(), Some(program));
    let rating = anchor.rating.context("the anchor is rated")?;
    assert_eq!(rating.elo, 0.0, "as it was given");
    let run = site.run().await?;
    assert_eq!(run.best.map(|number| number.0), Some(0));
    site.check_ledger()?;
    site.kill_coordinator()
}

/// As DeltaZero's and the thesis's are: another input and another policy than those of the run's networks.
#[tokio::test]
async fn a_network_of_the_lineage_is_an_anchor_that_workers_play_against() -> anyhow::Result<()> {
    let mut params: RunParams = tiny();
    params.scheduling.rating_pairs = 2;
    params.scheduling.rating_share = 1.0;
    let mut site = Site::start(&params).await?;
    site.submit_random(1).await?;
    let file = site.path("lineage.safetensors").display().to_string();
    let shape = "init 1x8 --input classic-19 --policy flat-1968 --value scalar --se-ratio 0";
    let init = shape.split(' ').chain(["--output", &file]);
    run_with("rookery-trainer", &init.collect::<Vec<_>>(), &[])?;
    let said = site.command(&["user", "create", "ops", "--scope", "operate", "--json"])?;
    let token: NewToken = serde_json::from_str(&said)?;
    let (url, token) = (site.url(), token.token);
    let submit = ["submit", &file, "--anchor", "lineage", "--server", &url];
    let arguments = [&submit[..], &["--run", RUN]].concat();
    run_with("rookery-trainer", &arguments, &[("ROOKERY_TOKEN", &token)])?;

    let mut worker = site.worker("worker")?;
    let anchor: NetworkInfo = eventually("the anchor is rated", async || {
        let networks = site.trainer.networks(RUN).await?;
        let mut anchors = networks.into_iter();
        Ok(anchors.find(|n| n.status == NetworkStatus::Anchor && n.rating.is_some()))
    })
    .await?;
    worker.interrupt()?;

    let encodings = (anchor.spec.input, anchor.spec.policy.encoding);
    let expected = (InputEncoding::Classic19, PolicyEncoding::Flat1968);
    assert_eq!(encodings, expected);
    let matches = site.trainer.matches(RUN).await?;
    let mut finished = matches.iter().filter(|m| m.status == MatchStatus::Finished);
    let played = finished.next().context("a rating match is finished")?;
    assert_eq!(played.purpose, MatchPurpose::Rating);
    assert_eq!(played.tally.pairs.pairs(), 2);
    site.check_ledger()?;
    site.kill_coordinator()
}

#[tokio::test]
async fn a_network_that_is_an_anchor_has_files_for_other_programs() -> anyhow::Result<()> {
    let mut site = Site::start(&tiny()).await?;
    site.submit_random(1).await?;
    let file = site.path("anchor.safetensors").display().to_string();
    std::fs::write(&file, site.random_network("1x8", 2)?)?;
    let create = ["user", "create", "ops", "--scope", "operate"];
    let said = site.command(&[&create[..], &["--scope", "train", "--json"]].concat())?;
    let token: NewToken = serde_json::from_str(&said)?;
    let url = site.url();
    let submit = ["submit", &file, "--anchor", "old", "--server", &url];
    let arguments = [&submit[..], &["--run", RUN]].concat();
    run_with(
        "rookery-trainer",
        &arguments,
        &[("ROOKERY_TOKEN", &token.token)],
    )?;
    let networks = site.trainer.networks(RUN).await?;
    let mut anchors = networks.into_iter();
    let anchor = anchors.find(|network| network.status == NetworkStatus::Anchor);
    let exports = anchor.context("the anchor is there")?.exports;
    let formats = exports.iter().map(|export| export.format);
    assert_eq!(formats.collect::<Vec<_>>(), ExportFormat::ALL);
    site.kill_coordinator()
}
