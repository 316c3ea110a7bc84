//! `probe`: what games and values say of a network's tactics.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_cli::chunk_files::chunk_files;
use rookery_cli::{Screen, Shutdown, network_file};
use rookery_common::chunk::{Caps, ChunkReader};
use rookery_common::output;
use rookery_common::text::quantity;
use serde::Serialize;

use rookery_analysis::probe::games::{Counts, GamesReport};
use rookery_analysis::probe::missing::{self, MissingReport};

use super::flags::DeviceArgs;

/// Flags of `probe`.
#[derive(Debug, clap::Args)]
pub struct ProbeArgs {
    /// Files of chunks, or folders of them, for example those that a trainer keeps.
    #[arg(value_name = "CHUNKS", required_unless_present = "network")]
    pub chunks: Vec<PathBuf>,
    /// Show how much less this network expects without a piece: a file of Rookery or of Lc0 (.pb.gz).
    #[arg(long, value_name = "FILE")]
    pub network: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// What came out.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    games: Option<GamesReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<MissingReport>>,
}

/// Probes, and prints what came out; only what there is already, if the user stops.
///
/// # Errors
///
/// If a file cannot be read or is no chunk, or the network cannot be computed.
pub fn execute(args: &ProbeArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let games = (!args.chunks.is_empty())
        .then(|| read(&args.chunks, screen, shutdown))
        .transpose()?;
    let network = args.network.as_deref();
    let network = network.filter(|_| !shutdown.is_requested());
    let missing = network.map(|path| -> anyhow::Result<_> {
        let weights = network_file::read(path)?;
        let mut evaluator = args.device.open_for(&weights)?.evaluator(&weights)?;
        missing::values(&mut evaluator, shutdown)
    });
    let report = Report {
        games,
        missing: missing.transpose()?,
    };
    if args.json {
        output::print_json(&report)
    } else {
        output::print(&report.tables())
    }
}

/// What the games of these files, and of the chunks in these folders, come to.
fn read(paths: &[PathBuf], screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<GamesReport> {
    let files = chunk_files(paths)?;
    let mut counts = Counts::default();
    let mut task = screen.task("chunks", files.len() as u64);
    for (place, path) in files.iter().enumerate() {
        if shutdown.is_requested() {
            tracing::info!(
                "stopped after {place} of {}",
                quantity(files.len(), "chunk")
            );
            break;
        }
        add(path, &mut counts)?;
        task.at(place as u64 + 1, "");
    }
    drop(task);
    let report = counts.report();
    anyhow::ensure!(
        report.games > 0 || !shutdown.is_requested(),
        "stopped before a game was read"
    );
    anyhow::ensure!(report.games > 0, "there is no game in these files");
    Ok(report)
}

/// Counts the games of a chunk.
fn add(path: &Path, counts: &mut Counts) -> anyhow::Result<()> {
    let caps = Caps::default();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let no_chunk = || format!("{} is no chunk of games", path.display());
    let mut reader = ChunkReader::open(&bytes, &caps).with_context(no_chunk)?;
    while let Some(game) = reader.next_game().with_context(no_chunk)? {
        counts.add(&game).with_context(no_chunk)?;
    }
    Ok(())
}

impl Report {
    fn tables(&self) -> String {
        let mut text = String::new();
        if let Some(games) = &self.games {
            let percent = |share: Option<f64>| {
                share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
            };
            text += &format!(
                "{} games, {} moves\nmoves that hang a piece: {} ({}), punished: {}\n\n{:>6} {:>8} {:>8} {:>9}\n",
                games.games,
                games.moves,
                games.hangs,
                percent(games.hang_rate),
                percent(games.punished),
                "ahead",
                "games",
                "score",
                "believed"
            );
            for row in &games.balance {
                text += &format!(
                    "{:>6} {:>8} {:>8.3} {:>9.3}\n",
                    row.ahead, row.games, row.score, row.believed
                );
            }
        }
        if let Some(missing) = &self.missing {
            if self.games.is_some() {
                text.push('\n');
            }
            text += &format!("{:>8} {:>10} {:>7}\n", "missing", "positions", "value");
            for row in missing {
                let piece = row.piece.unwrap_or("nothing");
                text += &format!("{piece:>8} {:>10} {:>+7.3}\n", row.positions, row.value);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(paths: &[PathBuf], shutdown: &Shutdown) -> String {
        let read = super::read(paths, &Screen::hidden(), shutdown);
        format!("{:#}", read.unwrap_err())
    }

    #[test]
    fn what_is_no_chunk_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.chunk");
        std::fs::write(&path, "games").unwrap();
        let goes_on = Shutdown::default();
        for paths in [vec![path.clone()], vec![dir.path().to_owned()]] {
            let error = read(&paths, &goes_on);
            assert!(error.contains("a.chunk is no chunk of games"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = read(&[dir.path().to_owned()], &goes_on);
        assert_eq!(error, "there is no game in these files");
    }

    #[test]
    fn who_stops_reads_no_more_chunks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.chunk");
        std::fs::write(&path, "no chunk").unwrap();
        let shutdown = Shutdown::default();
        shutdown.request();
        assert_eq!(read(&[path], &shutdown), "stopped before a game was read");
    }
}
