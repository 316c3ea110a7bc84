//! A poisoner: somebody who wants training to fail, and whose chunks pass door and audits.
//!
//! ```text
//! poisoner play NETWORK FOLDER AIM CHUNKS SEED    plays CHUNKS chunks of 8 games into FOLDER
//! poisoner audit NETWORK FOLDER                   audits them again
//! poisoner limits NETWORK [GAMES]                 the largest lies that audits accept
//! ```
//!
//! AIM is `honest`, or one of the aims of [`aims`]. Every chunk is verified against its lease by
//! the coordinator's own code and audited by the network that played it, in 32 bits and in
//! bfloat16. `play` prints one JSON object: games, positions, what the door refused, and of how
//! many audits each tolerance accepts. `limits` prints a table, the one of
//! `docs/results/trust.md`. `scripts/poisoning` trains networks on what comes of it.

#![expect(clippy::print_stdout, reason = "figures for whoever started it")]

#[path = "../audits/again.rs"]
mod again;
mod aims;
mod games;
mod limits;
mod pool;

use std::path::Path;

use rookery_backend_torch::NetworkEvaluator;
use rookery_common::params::{
    GumbelParams, ResignParams, RootSearch, SearchParams, SelfPlayParams, Temperature,
};
use rookery_engine::{DeviceChoice, Precision};
use rookery_model::Weights;

/// What this program's functions return.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The games: those of `deploy/runs/demo.toml`, with resignation.
fn params(root: RootSearch) -> SelfPlayParams {
    SelfPlayParams {
        search: SearchParams {
            visits: 32,
            root,
            ..SearchParams::default()
        },
        temperature: Temperature {
            start: 1.0,
            end: 0.4,
            plies: 40,
        },
        reuse_tree: false,
        ply_limit: 160,
        resign: Some(ResignParams {
            threshold: -0.9,
            play_on_share: 0.1,
        }),
        ..SelfPlayParams::default()
    }
}

fn gumbel() -> RootSearch {
    RootSearch::Gumbel(GumbelParams::default())
}

/// The network in 32 bits and in bfloat16.
fn open(path: &Path) -> Outcome<[NetworkEvaluator; 2]> {
    let (_, weights) = Weights::read(path)?;
    let device = rookery_backend_torch::ComputeDevice::open(DeviceChoice::Cpu)?;
    let in_precision = |precision| NetworkEvaluator::new(&weights, device, precision);
    Ok([
        in_precision(Precision::F32)?,
        in_precision(Precision::Bf16)?,
    ])
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    rookery_backend_torch::use_threads(1);
    match words.as_slice() {
        ["play", network, folder, aim, chunks, seed] => {
            let evaluators = open(Path::new(network))?;
            let plan = pool::Plan {
                folder: Path::new(folder),
                aim: aim.parse()?,
                chunks: chunks.parse()?,
                seed: seed.parse()?,
            };
            println!("{}", pool::play(&plan, evaluators)?);
            Ok(())
        }
        ["audit", network, folder] => {
            println!("{}", pool::audit_again(Path::new(folder), open(Path::new(network))?)?);
            Ok(())
        }
        ["limits", network, rest @ ..] => {
            let games = rest.first().map_or(Ok(48), |games| games.parse())?;
            limits::print(open(Path::new(network))?, games)
        }
        _ => {
            Err("expected `play NETWORK FOLDER AIM CHUNKS SEED`, `audit NETWORK FOLDER` or `limits NETWORK [GAMES]`".into())
        }
    }
}
