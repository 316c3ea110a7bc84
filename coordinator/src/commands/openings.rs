//! `openings …`: opening books of runs, and files of openings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use rookery_common::ids::RunName;
use rookery_common::openings::{BookFile, OpeningBook};
use rookery_common::text::quantity;

use super::{command_line, say, with_database};
use crate::config::Settings;
use crate::db::Database;

/// Commands on opening books.
#[derive(Debug, Subcommand)]
pub enum OpeningsCommand {
    /// Give a run an opening book of its own, in place of the one that it has. Jobs from now on begin there, also if the
    /// coordinator is serving.
    Import {
        /// The book, EPD, PGN or CSV, plain or compressed by gzip or zstd.
        file: PathBuf,
        /// The run whose matches, and self-play games by `book_share`, begin at its lines.
        #[arg(long)]
        run: RunName,
    },
    /// Remove a run's own opening book: the run uses that of `serve --openings` again.
    Remove {
        /// The run.
        #[arg(long)]
        run: RunName,
    },
}

/// Does what the command says.
///
/// # Errors
///
/// Whatever went wrong, with its context.
pub async fn run(settings: &Settings, command: OpeningsCommand) -> anyhow::Result<()> {
    with_database(settings, async |db| match command {
        OpeningsCommand::Import { file, run } => import(db, &run, &file).await,
        OpeningsCommand::Remove { run } => {
            db.remove_book(&run, command_line()).await?;
            say(&format!("Run {run} uses the coordinator's openings again."))
        }
    })
    .await
}

async fn import(db: &Database, run: &RunName, file: &Path) -> anyhow::Result<()> {
    let BookFile { book, passed_over } = read(file)?;
    for line in &passed_over {
        say(line)?;
    }
    let openings = quantity(book.openings().len(), "opening");
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    db.set_book(run, &name, book, command_line()).await?;
    say(&format!("Run {run} has {openings} of its own."))
}

/// Reads an opening book.
pub(super) fn read(path: &Path) -> anyhow::Result<BookFile> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .with_context(|| format!("RK-0240: cannot read the opening book {shown}"))?;
    OpeningBook::from_file(path, &bytes).map_err(|error| {
        anyhow!(
            "RK-0219: {shown} is no opening book: {error}; correct it, or give another file of \
             EPD, PGN or CSV"
        )
    })
}
