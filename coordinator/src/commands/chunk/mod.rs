//! `chunk …`: looks into chunk files, checks them, converts them. Needs no ledger.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use rookery_common::chunk::export::{json, pgn, v6};
use rookery_common::chunk::{Caps, ChunkHeader, ChunkReader, GameRecord, read};
use rookery_common::files::{check_output, write_whole};
use rookery_common::ids::ContentHash;
use rookery_common::output::{self, print_with};
use rookery_common::text::quantity;

mod summary;

use summary::Summary;

use crate::dataset::PositionWriter;

/// Commands on chunk files.
#[derive(Debug, Subcommand)]
pub enum ChunkCommand {
    /// Show what a chunk holds.
    Inspect {
        /// The chunk file.
        file: PathBuf,
        /// Print everything as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Check a chunk as far as that is possible without its job: sizes, schema, every game
    /// replayed, results and terminations true, and its name where that is a SHA-256.
    Verify {
        /// The chunk file.
        file: PathBuf,
        /// Print the outcome as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write a chunk's games in another format.
    Export(ExportArgs),
}

/// `chunk export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The chunk file.
    pub file: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Write to this file and not to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the output file if it exists.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Formats that chunks are exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object, the same as `inspect --json`.
    Json,
    /// PGN with the search's value and draw probability after each move.
    Pgn,
    /// Lc0's V6 training records, 8,356 bytes each, not compressed. `played_q` is NaN where the move
    /// played is not the most visited one, and so are `orig_q`, `orig_d` and `orig_m` always: chunks
    /// do not hold them.
    V6,
    /// Parquet, a row for each searched ply, as `ledger export` writes it; the chunk's number is 0.
    Parquet,
}

pub fn run(command: ChunkCommand) -> anyhow::Result<()> {
    match command {
        ChunkCommand::Inspect { file, json } => inspect(&file, json),
        ChunkCommand::Verify { file, json } => verify(&file, json),
        ChunkCommand::Export(args) => export(&args),
    }
}

fn inspect(file: &Path, json: bool) -> anyhow::Result<()> {
    let bytes = load(file)?;
    let (header, games) = decode(file, &bytes)?;
    print_with(|out| {
        if json {
            write_json(&header, &games, out)
        } else {
            Ok(Summary::of(&bytes, &header, &games).write(out)?)
        }
    })
}

fn verify(file: &Path, json: bool) -> anyhow::Result<()> {
    let bytes = load(file)?;
    let hash = check_name(file, &bytes)?;
    let caps = Caps::default();
    let mut reader = ChunkReader::open(&bytes, &caps).with_context(|| refused(file))?;
    let (mut games, mut positions) = (0_u32, 0);
    while let Some(game) = reader.next_game().with_context(|| refused(file))? {
        games += 1;
        positions += game.plies.len();
    }
    if json {
        let valid = true;
        output::print_json(&serde_json::json!({
            "valid": valid, "hash": hash, "games": games, "positions": positions,
        }))
    } else {
        output::print_line(&format!(
            "{hash}: valid, {}, {}",
            quantity(games, "game"),
            quantity(positions, "position")
        ))
    }
}

fn export(args: &ExportArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.output {
        check_output(path, args.force)?;
    }
    let bytes = load(&args.file)?;
    let (header, games) = decode(&args.file, &bytes)?;
    let Some(path) = &args.output else {
        return print_with(|out| write_as(args.format, &header, &games, out));
    };
    let cannot = || format!("cannot write {}", path.display());
    let mut text = Vec::new();
    write_as(args.format, &header, &games, &mut text).with_context(cannot)?;
    write_whole(path, &text).with_context(cannot)
}

fn write_as(
    format: ExportFormat,
    header: &ChunkHeader,
    games: &[GameRecord],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    match format {
        ExportFormat::Json => write_json(header, games, out)?,
        ExportFormat::Pgn => {
            for game in games {
                out.write_all(pgn::game(game, &tags(header, game))?.as_bytes())?;
            }
        }
        ExportFormat::V6 => {
            for game in games {
                out.write_all(&v6::game(game)?)?;
            }
        }
        ExportFormat::Parquet => {
            let mut file = PositionWriter::new(Vec::new())?;
            file.add(0, header, games)?;
            out.write_all(&file.finish()?)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn write_json(
    header: &ChunkHeader,
    games: &[GameRecord],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    output::write_json(out, &json::chunk(header, games)?)
}

/// A chunk knows its networks only by their hashes.
pub(super) fn tags(header: &ChunkHeader, game: &GameRecord) -> pgn::PgnTags {
    let name = |at: usize| {
        header
            .networks
            .get(at)
            .map(ContentHash::short)
            .unwrap_or_default()
    };
    pgn::PgnTags {
        event: format!("{} {}", header.run, header.kind.name()),
        round: (game.index + 1).to_string(),
        first: name(0),
        second: name(1),
        ..pgn::PgnTags::default()
    }
}

/// Reads a file that is no larger than a chunk may be.
fn load(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cap = Caps::default().compressed_bytes;
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(cap as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(cannot)?;
    if bytes.len() > cap {
        bail!(
            "{} is larger than a chunk may be, {cap} bytes",
            path.display()
        );
    }
    Ok(bytes)
}

fn decode(path: &Path, bytes: &[u8]) -> anyhow::Result<(ChunkHeader, Vec<GameRecord>)> {
    read(bytes, &Caps::default()).with_context(|| refused(path))
}

fn refused(path: &Path) -> String {
    format!("{} is no valid chunk", path.display())
}

/// The chunk's hash; an error if the file is named by another.
fn check_name(path: &Path, bytes: &[u8]) -> anyhow::Result<ContentHash> {
    let hash = ContentHash::of(bytes);
    let claimed = path
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse::<ContentHash>().ok());
    match claimed {
        Some(claimed) if claimed != hash => {
            bail!(
                "{} is named by another hash than its content's, {hash}",
                path.display()
            )
        }
        _ => Ok(hash),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use rookery_common::ids::JobId;
    use rookery_common::protocol::jobs::{Backend, WorkKind};

    use super::*;
    use crate::dataset::tests::record;

    #[test]
    fn an_export_replaces_no_file_by_itself() {
        let there = tempfile::NamedTempFile::new().unwrap();
        let args = ExportArgs {
            file: "no-such.chunk".into(),
            format: ExportFormat::Json,
            output: Some(there.path().to_owned()),
            force: false,
        };
        let said = |args: &ExportArgs| format!("{:#}", export(args).unwrap_err());
        assert!(said(&args).contains("RK-0007"));
        let args = ExportArgs {
            force: true,
            ..args
        };
        assert!(said(&args).contains("no-such.chunk"));
    }

    #[test]
    fn a_chunk_becomes_parquet() {
        let header = ChunkHeader {
            run: "main".parse().unwrap(),
            job: JobId(uuid::Uuid::from_u128(1)),
            networks: vec![ContentHash::of(b"network")],
            worker_version: "0.1.0".into(),
            backend: Backend::CpuF32,
            kind: WorkKind::SelfPlay,
        };
        let game = record(None, 0, "e2e4");
        let mut out = tempfile::tempfile().unwrap();
        write_as(ExportFormat::Parquet, &header, &[game], &mut out).unwrap();
        let reader = SerializedFileReader::new(out).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 1);
    }
}
