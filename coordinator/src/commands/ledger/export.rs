//! `ledger export`: a run's chunks as a dataset for everyone, with licence and manifest.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use rookery_common::chunk::export::pgn;
use rookery_common::chunk::{Caps, ChunkHeader, GameRecord, read};
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::network::NetworkSpec;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{ChunkRow, WorkKind};
use rookery_common::text::quantity;
use serde::Serialize;

use super::super::chunk::tags;
use super::super::{open_blobs, say};
use crate::archives::read_chunk;
use crate::blobs::BlobStore;
use crate::config::Settings;
use crate::dataset::{COLUMNS, PositionWriter};
use crate::db::Database;

/// Chunks of a page of the ledger.
const PAGE: u32 = 200;
/// How hard PGN is compressed.
const LEVEL: i32 = 12;

/// `ledger export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The run.
    #[arg(long, value_name = "NAME")]
    pub run: RunName,
    /// Write into this folder, which must not hold a dataset yet.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// The licence of the data, an SPDX identifier such as CC0-1.0.
    #[arg(long, alias = "license", value_name = "SPDX")]
    pub licence: String,
    /// What to write: positions as Parquet, games as PGN. May be given twice. [default: both]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Vec<Format>,
    /// Begin after this number of the ledger, for example the last of an earlier export.
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub after: i64,
    /// Chunks of one file.
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..))]
    pub part_chunks: u32,
}

/// Formats of datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Positions, a row for each searched ply.
    Parquet,
    /// Games, compressed by zstd.
    Pgn,
}

/// What a dataset says of itself.
#[derive(Serialize)]
struct Manifest {
    format: &'static str,
    run: RunName,
    licence: String,
    made_at: String,
    made_by: &'static str,
    params: RunParams,
    networks: Vec<Network>,
    chunks: u64,
    games: u64,
    positions: u64,
    files: Vec<Part>,
    columns: Vec<(&'static str, &'static str)>,
}

#[derive(Serialize)]
struct Network {
    number: u32,
    sha256: ContentHash,
    spec: NetworkSpec,
}

/// A file of a dataset.
#[derive(Serialize)]
struct Part {
    name: String,
    sha256: ContentHash,
    bytes: u64,
    first_chunk: i64,
    last_chunk: i64,
}

/// The files that are being written.
struct Open {
    number: usize,
    parquet: Option<PositionWriter<BufWriter<File>>>,
    pgn: Option<zstd::Encoder<'static, BufWriter<File>>>,
    chunks: Vec<i64>,
}

struct Export<'a> {
    args: &'a ExportArgs,
    open: Option<Open>,
    parts: usize,
    done: Vec<Part>,
    counts: [u64; 3],
}

pub(super) async fn run(
    settings: &Settings,
    db: &Database,
    args: &ExportArgs,
) -> anyhow::Result<()> {
    let manifest = args.output.join("manifest.json");
    anyhow::ensure!(
        !manifest.exists(),
        "{} holds a dataset already",
        args.output.display()
    );
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create {}", args.output.display()))?;
    let blobs = open_blobs(settings)?;
    let exported = export(db, &*blobs, args).await?;
    let mut text = serde_json::to_string_pretty(&exported)?;
    text.push('\n');
    fs::write(&manifest, text).with_context(|| format!("cannot write {}", manifest.display()))?;
    say(&format!(
        "{} of {} in {}: {}",
        quantity(exported.positions, "position"),
        quantity(exported.games, "game"),
        quantity(exported.files.len(), "file"),
        args.output.display()
    ))
}

async fn export(
    db: &Database,
    blobs: &dyn BlobStore,
    args: &ExportArgs,
) -> anyhow::Result<Manifest> {
    let info = db.run(&args.run).await?;
    let mut export = Export {
        args,
        open: None,
        parts: 0,
        done: Vec::new(),
        counts: [0; 3],
    };
    let mut after = args.after;
    loop {
        let page = db.chunks(&args.run, after, PAGE).await?;
        for row in page.chunks.iter().filter(|row| is_published(row)) {
            let bytes = read_chunk(db, blobs, &row.hash).await?;
            let (header, games) = read(&bytes, &Caps::default())
                .with_context(|| format!("chunk {} is damaged in the store", row.hash))?;
            export.add(row, &header, &games)?;
        }
        after = page.next;
        if !page.more {
            break;
        }
    }
    export.close()?;
    let networks = db.networks(&args.run).await?.into_iter();
    let networks = networks.map(|network| Network {
        number: network.number.0,
        sha256: network.hash,
        spec: network.spec,
    });
    let [chunks, games, positions] = export.counts;
    Ok(Manifest {
        format: "rookery-dataset-1",
        run: args.run.clone(),
        licence: args.licence.clone(),
        made_at: Timestamp::now().to_string(),
        made_by: concat!("rookery-coordinator ", env!("CARGO_PKG_VERSION")),
        params: info.params,
        networks: networks.collect(),
        chunks,
        games,
        positions,
        files: export.done,
        columns: COLUMNS.to_vec(),
    })
}

/// Whether a chunk belongs into a dataset: its games count, and are not another chunk's, searched
/// again.
fn is_published(row: &ChunkRow) -> bool {
    !row.held && row.kind != WorkKind::Audit
}

impl Export<'_> {
    fn wants(&self, format: Format) -> bool {
        self.args.format.is_empty() || self.args.format.contains(&format)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.args.output.join(name)
    }

    fn create(&self, name: &str) -> anyhow::Result<BufWriter<File>> {
        let path = self.path(name);
        let file =
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(BufWriter::new(file))
    }

    fn begin(&mut self) -> anyhow::Result<Open> {
        self.parts += 1;
        let number = self.parts;
        let parquet = match self.wants(Format::Parquet) {
            true => Some(PositionWriter::new(self.create(&parquet_name(number))?)?),
            false => None,
        };
        let pgn = match self.wants(Format::Pgn) {
            true => Some(zstd::Encoder::new(self.create(&pgn_name(number))?, LEVEL)?),
            false => None,
        };
        Ok(Open {
            number,
            parquet,
            pgn,
            chunks: Vec::new(),
        })
    }

    fn add(
        &mut self,
        row: &ChunkRow,
        header: &ChunkHeader,
        games: &[GameRecord],
    ) -> anyhow::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        if let Some(parquet) = &mut open.parquet {
            parquet.add(row.sequence, header, games)?;
        }
        if let Some(out) = &mut open.pgn {
            for game in games {
                out.write_all(pgn::game(game, &tags(header, game))?.as_bytes())?;
            }
        }
        open.chunks.push(row.sequence);
        let counted = [1, u64::from(row.games), u64::from(row.positions)];
        for (sum, count) in self.counts.iter_mut().zip(counted) {
            *sum += count;
        }
        let full = open.chunks.len() >= self.args.part_chunks as usize;
        self.open = Some(open);
        if full { self.close() } else { Ok(()) }
    }

    /// Ends the files that are open.
    fn close(&mut self) -> anyhow::Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        if let Some(parquet) = open.parquet {
            parquet.finish()?.into_inner()?.sync_all()?;
            self.enter(parquet_name(open.number), &open.chunks)?;
        }
        if let Some(pgn) = open.pgn {
            pgn.finish()?.into_inner()?.sync_all()?;
            self.enter(pgn_name(open.number), &open.chunks)?;
        }
        Ok(())
    }

    fn enter(&mut self, name: String, chunks: &[i64]) -> anyhow::Result<()> {
        let (sha256, bytes) = hash_of(&self.path(&name))?;
        self.done.push(Part {
            name,
            sha256,
            bytes,
            first_chunk: chunks.first().copied().unwrap_or_default(),
            last_chunk: chunks.last().copied().unwrap_or_default(),
        });
        Ok(())
    }
}

fn parquet_name(number: usize) -> String {
    format!("positions-{number:05}.parquet")
}

fn pgn_name(number: usize) -> String {
    format!("games-{number:05}.pgn.zst")
}

fn hash_of(path: &Path) -> anyhow::Result<(ContentHash, u64)> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((ContentHash::of(&bytes), bytes.len() as u64))
}
