//! A coordinator with something to show, for tests of its pages.
//!
//! Starts the real coordinator in a folder of its own and fills it through the real API: networks,
//! puzzles, games of several contributors, a promoted candidate, a rejected one, and one in the
//! middle of its gate match; then prints one JSON line with its address and its people's tokens. After that it plays
//! another job for each line that it reads, and ends when its standard input does.
//!
//! With `--empty` the coordinator has no run; with `--fresh` a run, oddly described, and nothing
//! else.

mod season;

use std::io::{BufRead as _, Write as _};

use anyhow::{Context as _, bail};
use reqwest::Method;
use rookery_common::params::RunParams;
use rookery_common::protocol::runs::{RunInfo, RunPatch};
use rookery_tests::site::{RUN, Site};
use season::Season;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        None => full().await,
        Some("--fresh") => wait_beside(&fresh().await?),
        Some("--empty") => wait_beside(&Site::start_without_run().await?),
        Some(other) => bail!("{other:?} is not an argument: give --fresh, --empty or nothing"),
    }
}

/// A run whose description shows whether pages escape what they are given.
async fn fresh() -> anyhow::Result<Site> {
    let site = Site::start(&RunParams::default()).await?;
    let description = Some("<script>alert(1)</script> & <b>more</b>".to_owned());
    let patch = RunPatch {
        description,
        ..RunPatch::default()
    };
    let path = format!("/runs/{RUN}");
    let patched = site
        .operator
        .json::<RunInfo>(Method::PATCH, &path, Some(&patch))
        .await?;
    patched.map_err(|problem| anyhow::anyhow!("the run was not described: {problem}"))?;
    Ok(site)
}

async fn full() -> anyhow::Result<()> {
    let mut season = Season::start().await?;
    let played = season.play_to_the_third_gate().await;
    played.with_context(|| format!("the coordinator logged:\n{}", season.site.log()))?;
    say(&serde_json::json!({ "url": season.site.url(), "tokens": season.tokens() }))?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let played = season.play_one().await?;
        say(&serde_json::json!({ "played": played }))?;
    }
    Ok(())
}

fn wait_beside(site: &Site) -> anyhow::Result<()> {
    say(&serde_json::json!({ "url": site.url() }))?;
    for line in std::io::stdin().lock().lines() {
        line?;
    }
    Ok(())
}

fn say(value: &serde_json::Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}
