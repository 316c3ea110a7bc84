//! The command `uci`: a chess engine for graphical interfaces and tournament managers, in the
//! Universal Chess Interface (Meyer-Kahlen and Huber; `go`, `position` and the rest).
//!
//! ```text
//! stdin --> session: parses, answers at once --orders--> player: network, tree --> stdout
//!              '------------- control: stop, ponderhit ----^
//! ```
//!
//! [`session`] never waits, so that `stop` and `isready` are heard during a search; `player` owns
//! everything that is large and does one thing after the other. [`command`] and [`options`] are
//! what a GUI may say; `time`, `limits`, `pace` and `lag` decide how long to think; `search` is the loop,
//! `report` what it prints. `perft` counts moves instead.

use std::io::stdin;

use rookery_backends::kernel_tuner;

use crate::cli::UciArgs;
use crate::config::{ConfigFile, or_auto, resolve_data_dir};
use crate::network_argument;

pub mod command;
mod control;
mod lag;
mod limits;
mod networks;
pub mod options;
mod output;
mod pace;
mod perft;
mod player;
mod report;
mod search;
pub mod session;
mod table;
mod time;

pub use networks::{Networks, Opened};
pub use options::{NetworkChoice, Options};
pub use output::Output;
pub use table::SetError;

use networks::RealNetworks;

/// Talks to a GUI on standard input and output until it ends.
///
/// # Errors
///
/// If a flag is not valid, or the input cannot be read.
pub fn run(
    args: UciArgs,
    file: ConfigFile,
    runtime: tokio::runtime::Runtime,
) -> anyhow::Result<()> {
    let mut options = Options::new(NetworkChoice {
        network: args
            .network
            .unwrap_or_else(|| network_argument::default_name(&args.server, &file)),
        device: or_auto(&args.device, &file.device).to_owned(),
        precision: precision(or_auto(&args.precision, &file.precision)),
        threads: args.threads.unwrap_or_else(all_cores),
    });
    if let Ok(folders) = std::env::join_paths(&file.syzygy) {
        options.syzygy_path = folders.to_string_lossy().into_owned();
    }
    let folder = resolve_data_dir(args.server.dir.clone(), &file).ok();
    let networks = RealNetworks {
        server: args.server,
        file,
        runtime,
        kernels: kernel_tuner(folder.as_deref()),
        opened: None,
    };
    session::talk(
        stdin().lock(),
        Output::new(std::io::stdout()),
        options,
        networks,
    )
}

/// The numbers that a chess program's option may name: `run` may be told to measure anew, an engine measures anyway.
fn precision(text: &str) -> String {
    let named = if text == "measure" { "auto" } else { text };
    named.to_owned()
}

/// Number of processor threads that this machine offers, within what the option allows.
fn all_cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).unwrap_or(256).min(256)
}

#[cfg(test)]
mod tests;
