//! `storage …`: the storage of networks and chunks against the ledger; old chunks into archives; whose
//! the storage is.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::ChunkRow;
use rookery_common::text::quantity;

use super::{command_line, not_used, open_blobs, say, say_json, with_database};
use crate::blobs::{BlobKind, BlobStore};
use crate::config::Settings;
use crate::db::sql::shown;
use crate::db::{Archivable, Database};
use crate::sweep::{self, Found, Salvage};
use crate::{archives, storage_identity};

/// Chunks that are looked for at a time.
const PAGE: u32 = 10_000;
/// Most chunks of an archive.
const CHUNKS: usize = 10_000;

/// Commands on the store.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Compare the store with the ledger: what nothing needs any more, and what is missing. Ends
    /// with an error if something is missing.
    Sweep(SweepArgs),
    /// Pack chunks that training no longer samples into larger files. They keep their addresses.
    Archive(ArchiveArgs),
    /// Give the store to this ledger, whichever ledger it is marked as belonging to. The operator
    /// log says so. No other ledger must use the store any more.
    Adopt,
}

/// `storage sweep`
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Remove what nothing needs. Nothing is removed while anything is missing.
    #[arg(long)]
    pub remove: bool,
    /// Put missing chunks back into the store that are in archives which the ledger does not name,
    /// as after a backup from before `storage archive` was restored.
    #[arg(long, conflicts_with = "remove")]
    pub restore: bool,
    /// Ignore files that are younger: their uploads may be in progress.
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub grace_hours: u32,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `storage archive`
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// The run.
    #[arg(long, value_name = "NAME")]
    pub run: RunName,
    /// Leave chunks of the last days alone, even if they are older than the window.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(..=36500))]
    pub older_than_days: u32,
    /// The size of an archive. Chunks that do not fill one stay as they are.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub mebibytes: u32,
    /// Pack also what does not fill an archive.
    #[arg(long)]
    pub rest: bool,
}

/// It is an error if blobs are missing.
pub async fn run(settings: &Settings, command: StorageCommand) -> anyhow::Result<()> {
    with_database(settings, async |db| {
        let blobs = open_blobs(settings)?;
        obey(settings, db, &*blobs, command).await
    })
    .await
}

/// Nothing is done with the store of another ledger, and to look changes nothing.
async fn obey(
    settings: &Settings,
    db: &Database,
    blobs: &dyn BlobStore,
    command: StorageCommand,
) -> anyhow::Result<()> {
    let refused = || not_used(settings);
    match command {
        StorageCommand::Sweep(args) => {
            if args.remove || args.restore {
                storage_identity::claim(db, blobs)
                    .await
                    .with_context(refused)?;
            } else {
                storage_identity::check(db, blobs)
                    .await
                    .with_context(refused)?;
            }
            sweep(settings, db, blobs, &args).await
        }
        StorageCommand::Archive(args) => {
            storage_identity::claim(db, blobs)
                .await
                .with_context(refused)?;
            archive(db, blobs, &args).await
        }
        StorageCommand::Adopt => adopt(settings, db, blobs).await,
    }
}

async fn adopt(settings: &Settings, db: &Database, blobs: &dyn BlobStore) -> anyhow::Result<()> {
    let location = &settings.storage;
    let adopted = storage_identity::adopt(db, blobs, location, command_line()).await?;
    let when = if adopted { "now" } else { "already" };
    say(&format!(
        "The store {location} belongs to the ledger at {} {when}.",
        shown(&settings.database)
    ))
}

async fn sweep(
    settings: &Settings,
    db: &Database,
    blobs: &dyn BlobStore,
    args: &SweepArgs,
) -> anyhow::Result<()> {
    let grace = SignedDuration::from_hours(i64::from(args.grace_hours));
    let mut all = sweep::compare_all(db, blobs, grace, Timestamp::now()).await?;
    let mut salvage = sweep::look_into_archives(blobs, &all).await;
    let mut restored = 0;
    if args.restore && !salvage.holders.is_empty() {
        restored = sweep::put_back(blobs, &salvage).await?;
        all = sweep::compare_all(db, blobs, grace, Timestamp::now()).await?;
        salvage = sweep::look_into_archives(blobs, &all).await;
    }
    let location = &settings.storage;
    let removed =
        args.remove && sweep::remove_all(db, blobs, &all, grace, location, command_line()).await?;
    if args.json {
        say_json(&json(&all, &salvage, restored))?;
    } else {
        all.iter().try_for_each(|found| tell(found, removed))?;
        tell_salvage(&salvage, restored)?;
    }
    let kept = if args.remove {
        "; nothing was removed"
    } else {
        ""
    };
    let way = if args.restore || salvage.holders.is_empty() {
        ""
    } else {
        "; `storage sweep --restore` puts back those that are in archives"
    };
    let missing = sweep::missing(&all);
    let are = if missing == 1 { "is" } else { "are" };
    anyhow::ensure!(
        missing == 0,
        "RK-0222: {} that the ledger names {are} not in the store{kept}{way}",
        quantity(missing, "blob")
    );
    Ok(())
}

/// An object for each kind; that of chunks has what archives have to do with it.
fn json(all: &[Found], salvage: &Salvage, restored: usize) -> serde_json::Value {
    let of_kind = |found: &Found| {
        let mut object = serde_json::json!({
            "kind": found.kind.folder(),
            "needed": found.needed,
            "orphans": found.orphans.len(),
            "orphan_bytes": found.bytes(),
            "missing": found.missing,
        });
        if found.kind == BlobKind::Chunk {
            let holders = salvage.holders.iter().map(|holder| {
                serde_json::json!({"archive": holder.archive, "chunks": holder.chunks.len()})
            });
            object["in_archives"] = holders.collect();
            object["restored"] = restored.into();
        }
        object
    };
    all.iter().map(of_kind).collect()
}

fn tell(found: &Found, removed: bool) -> anyhow::Result<()> {
    say(&format!(
        "{}: {} needed, {} that nothing needs ({}{}), {} missing",
        found.kind.folder(),
        found.needed,
        found.orphans.len(),
        quantity(found.bytes(), "byte"),
        if removed { ", removed" } else { "" },
        found.missing.len()
    ))?;
    found
        .missing
        .iter()
        .try_for_each(|hash| say(&format!("  missing: {hash}")))
}

fn tell_salvage(salvage: &Salvage, restored: usize) -> anyhow::Result<()> {
    if restored > 0 {
        let were = if restored == 1 { "was" } else { "were" };
        let chunks = quantity(restored, "chunk");
        say(&format!("{chunks} {were} put back from archives."))?;
    }
    for holder in &salvage.holders {
        say(&format!(
            "{} of the missing chunks are in archive {}, which the ledger does not name",
            holder.chunks.len(),
            holder.archive
        ))?;
    }
    for (archive, why) in &salvage.unreadable {
        say(&format!(
            "archive {archive}, which the ledger does not name, may hold some: {why}"
        ))?;
    }
    Ok(())
}

async fn archive(db: &Database, blobs: &dyn BlobStore, args: &ArchiveArgs) -> anyhow::Result<()> {
    let info = db.run(&args.run).await?;
    let asked = Archivable {
        window: info.params.training.window.max,
        before: Timestamp::now() - SignedDuration::from_hours(24 * i64::from(args.older_than_days)),
        limit: PAGE,
    };
    let limit = u64::from(args.mebibytes.max(1)) << 20;
    let (mut archives, mut chunks) = (0, 0);
    loop {
        let rows = db.archivable(&args.run, asked).await?;
        let part = first_archive(&rows, limit);
        let full = part.len() < rows.len() || part.len() == CHUNKS;
        if part.is_empty() || !(full || args.rest) {
            break;
        }
        let archived = archives::archive(db, blobs, &args.run, part, command_line()).await;
        let (hash, size) = archived.with_context(|| {
            format!("cannot archive the chunks from number {}", part[0].sequence)
        })?;
        let content = quantity(part.len(), "chunk");
        say(&format!("{hash}: {content}, {}", quantity(size, "byte")))?;
        archives += 1;
        chunks += part.len();
    }
    say(&format!(
        "{} went into {}.",
        quantity(chunks, "chunk"),
        quantity(archives, "archive")
    ))
}

/// The chunks from the first one on that one archive holds.
fn first_archive(rows: &[ChunkRow], limit: u64) -> &[ChunkRow] {
    let mut bytes = 0;
    let fits = rows.iter().take(CHUNKS).take_while(|row| {
        let first = bytes == 0;
        bytes += row.bytes;
        first || bytes <= limit
    });
    &rows[..fits.count()]
}
