//! `puzzles …`: puzzle sets for a run, from Lichess's database or from the run's own games.

mod mine;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use indicatif::HumanCount;
use rookery_common::chunk::{Caps, ChunkReader};
use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::{ChunkRow, WorkKind};
use rookery_common::puzzle::Puzzle;
use rookery_common::puzzle::table::{self, Filter, Imported, RatingRange};
use rookery_common::text::{plural, quantity};
use rookery_common::unpack::unpack;

use super::{command_line, open_blobs, progress, say, with_database};
use crate::archives::read_chunk;
use crate::config::Settings;
use crate::db::{Database, PuzzleSetDraft};

/// Commands on puzzle sets.
#[derive(Debug, Subcommand)]
pub enum PuzzlesCommand {
    /// Import puzzles from a CSV file of the Lichess puzzle database.
    Import(ImportArgs),
    /// Find forced mates in one and two in the run's own self-play and match games, newest first.
    Mine {
        /// The run whose games are searched, and that will use the puzzles.
        #[arg(long)]
        run: RunName,
        /// Stop after this many puzzles.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        count: usize,
    },
}

/// `puzzles import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The CSV file, plain or compressed by gzip or zstd.
    pub file: PathBuf,
    /// The run that will use the puzzles.
    #[arg(long)]
    pub run: RunName,
    /// Take puzzles with one of these themes, separated by commas; `any` takes all.
    #[arg(long, value_delimiter = ',', default_value = "mateIn1,mateIn2")]
    pub themes: Vec<String>,
    /// Take puzzles with a rating in this range, LOW-HIGH.
    #[arg(long, default_value = "0-4000")]
    pub rating: RatingRange,
    /// Take at most this many puzzles, in the order of the file.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub count: usize,
}

pub async fn run(settings: &Settings, command: PuzzlesCommand) -> anyhow::Result<()> {
    with_database(settings, async |db| match command {
        PuzzlesCommand::Import(args) => import(db, args).await,
        PuzzlesCommand::Mine { run, count } => mine(settings, db, run, count).await,
    })
    .await
}

async fn import(db: &Database, args: ImportArgs) -> anyhow::Result<()> {
    db.run(&args.run).await?;
    let any = args.themes.iter().any(|theme| theme == "any");
    let themes = if any { Vec::new() } else { args.themes };
    let filter = Filter {
        themes,
        rating: args.rating,
        count: args.count,
    };
    let imported = table::read(open(&args.file)?, &filter)
        .with_context(|| format!("cannot import {}", args.file.display()))?;
    say(&report(&imported))?;
    if imported.puzzles.is_empty() {
        bail!(
            "RK-0224: no puzzle of {} passed the filter; see --themes and --rating",
            args.file.display()
        );
    }
    let name = args
        .file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    add(db, args.run, name, imported.puzzles).await
}

async fn mine(
    settings: &Settings,
    db: &Database,
    run: RunName,
    count: usize,
) -> anyhow::Result<()> {
    let chunks = chunks_of(db, &run).await?;
    let blobs = open_blobs(settings)?;
    let bar = progress(
        chunks.len() as u64,
        "{wide_bar} {pos}/{len} chunks, {msg} puzzles",
    );
    let mut puzzles = Vec::new();
    let mut seen = HashSet::new();
    for row in chunks.iter().rev() {
        let bytes = read_chunk(db, &*blobs, &row.hash).await?;
        for puzzle in
            mine_chunk(&bytes).with_context(|| format!("cannot read chunk {}", row.hash))?
        {
            if puzzles.len() < count && seen.insert(puzzle.id.clone()) {
                puzzles.push(puzzle);
            }
        }
        bar.inc(1);
        bar.set_message(puzzles.len().to_string());
        if puzzles.len() == count {
            break;
        }
    }
    bar.finish_and_clear();
    if puzzles.is_empty() {
        let chunks = quantity(chunks.len(), "chunk");
        return say(&format!(
            "There is no forced mate yet in {chunks} of run {run}."
        ));
    }
    let name = format!("mined from {}", quantity(chunks.len(), "chunk"));
    add(db, run, name, puzzles).await
}

/// Self-play and match chunks of a run, oldest first; puzzle games would only give their own
/// puzzles again.
async fn chunks_of(db: &Database, run: &RunName) -> anyhow::Result<Vec<ChunkRow>> {
    let mut chunks = Vec::new();
    let mut after = 0;
    loop {
        let page = db.chunks(run, after, 1_000).await?;
        after = page.next;
        chunks.extend(
            page.chunks
                .into_iter()
                .filter(|row| row.kind != WorkKind::Puzzles),
        );
        if !page.more {
            return Ok(chunks);
        }
    }
}

fn mine_chunk(bytes: &[u8]) -> anyhow::Result<Vec<Puzzle>> {
    let mut reader = ChunkReader::open(bytes, &Caps::default())?;
    let mut puzzles = Vec::new();
    while let Some(game) = reader.next_game()? {
        puzzles.extend(mine::game(&game)?);
    }
    Ok(puzzles)
}

async fn add(
    db: &Database,
    run: RunName,
    name: String,
    puzzles: Vec<Puzzle>,
) -> anyhow::Result<()> {
    let given = puzzles.len() as u64;
    let draft = PuzzleSetDraft {
        run: run.clone(),
        name,
        puzzles,
    };
    let before = db.puzzle_sets(&run).await?;
    let set = db.add_puzzles(draft, command_line()).await?;
    let known = before.iter().any(|earlier| earlier.hash == set.hash);
    let new: u64 = if known { 0 } else { set.puzzles.into() };
    if new == 0 {
        return say(&format!(
            "none of the {} {} is new to run {run}; no set was added",
            HumanCount(given),
            plural(given, "puzzle")
        ));
    }
    say(&format!(
        "set {}: {} {}, {} of them new to run {run}",
        set.hash,
        HumanCount(given),
        plural(given, "puzzle"),
        HumanCount(new)
    ))
}

/// Opens a puzzle file with a progress bar over its bytes, decompressing it if it is compressed.
fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead + Send>> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let size = file.metadata().with_context(cannot)?.len();
    let bar = progress(size, "{wide_bar} {bytes}/{total_bytes}, {eta} left");
    unpack(path, BufReader::new(bar.wrap_read(file))).with_context(cannot)
}

fn report(imported: &Imported) -> String {
    let bad: u64 = imported.skipped.values().map(|(count, _)| count).sum();
    let mut text = format!(
        "{} {} read: {} {} taken, {} left out by the filter, {} bad",
        HumanCount(imported.rows),
        plural(imported.rows, "row"),
        HumanCount(imported.puzzles.len() as u64),
        plural(imported.puzzles.len(), "puzzle"),
        HumanCount(imported.filtered),
        HumanCount(bad),
    );
    for (reason, (count, line)) in &imported.skipped {
        text.push_str(&format!(
            "\n  {} bad: {reason} (first in line {line})",
            HumanCount(*count)
        ));
    }
    text
}
