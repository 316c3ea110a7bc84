//! A coordinator with something to show, for tests of its pages.

mod season;

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;
use clap::Parser;
use reqwest::Method;
use rookery_common::params::RunParams;
use rookery_common::protocol::runs::{RunInfo, RunPatch};
use rookery_tests::site::{RUN, Site};
use season::Season;

/// Starts a coordinator with something to show, for tests of its pages.
///
/// It is the real coordinator in a folder of its own, filled through the real API: networks,
/// puzzles, games of several contributors, a promoted candidate, a rejected one, one in the
/// middle of its gate match, and a dataset. When that is done, one JSON line tells its address, its
/// people's tokens and the dataset's folder. For each line that is then read from standard input
/// another job is played, and a JSON line tells of what kind it was. The coordinator ends with
/// standard input.
#[derive(Debug, Parser)]
#[command(name = "rookery-showcase", version)]
struct Cli {
    /// Give the coordinator no run; its JSON line has no tokens, and nothing is played.
    #[arg(long)]
    empty: bool,
    /// Give it a run, oddly described, and nothing else; the same holds for it.
    #[arg(long, conflicts_with = "empty")]
    fresh: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if cli.empty {
        wait_beside(&Site::start_without_run().await?)
    } else if cli.fresh {
        wait_beside(&fresh().await?)
    } else {
        full().await
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
    let dataset = season.publish()?;
    say(
        &serde_json::json!({ "url": season.site.url(), "tokens": season.tokens(), "dataset": dataset }),
    )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_showcase_is_empty_or_fresh_or_full() {
        let parse = |line: &str| Cli::try_parse_from(line.split_whitespace());
        assert!(parse("rookery-showcase --empty --fresh").is_err());
        let full = parse("rookery-showcase").unwrap();
        assert!(!full.empty && !full.fresh);
        assert!(parse("rookery-showcase --fresh").unwrap().fresh);
    }
}
