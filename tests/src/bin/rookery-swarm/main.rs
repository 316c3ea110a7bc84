//! A load generator for coordinators: many simulated workers over real HTTP, with real chunks.
//!
//! ```text
//! cli ─> target (own coordinator, or --url) ─> phases, one after the other ─> reconcile ─> report
//!                                               │ jobs, uploads, heartbeats, reconnect, mix
//!                                               └─ book: what was leased, what was acknowledged
//! ```
//!
//! Games are played by the engine with the uniform evaluator before anything is measured; each
//! chunk then holds games of its own ([`games`]). Every phase keeps the [`book`], and at the end
//! the coordinator must agree with it to the last chunk ([`reconcile`]).

mod book;
mod cli;
mod games;
mod http;
mod measure;
mod phases;
mod reconcile;
mod report;
mod target;
mod workers;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use cli::Cli;

fn main() -> ExitCode {
    match work(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error may be closed; there is no reader then.
            let _ = writeln!(std::io::stderr(), "rookery-swarm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing was lost and nothing counted twice.
fn work(cli: Cli) -> anyhow::Result<bool> {
    cli.check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cli.threads)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut swarm = phases::Swarm::begin(cli).await?;
        swarm.run().await?;
        let outcome = reconcile::reconcile(&swarm).await?;
        report::report(&swarm, &outcome)?;
        Ok(outcome.is_clean())
    })
}
