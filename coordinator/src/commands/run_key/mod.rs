//! `run key …`: keys that sign a run's networks.

mod rotation;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::signing::{RunKey, Signature, SigningKey};

use self::rotation::Rotation;
use super::{command_line, open_blobs, say, say_json};
use crate::blobs::{BlobKind, SharedBlobs};
use crate::config::Settings;
use crate::db::SharedDatabase;
use crate::signing;

/// Commands on a run's keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make the run's key, and sign all its networks with it, present and future. Workers then accept no others.
    Create {
        /// The run's name.
        run: RunName,
        /// Keep the secret key in this file, or use the one that is there. With DATA_DIR/keys/RUN.key the coordinator
        /// signs by itself; a key elsewhere goes to the trainer (`--signing-key`), and a coordinator that is broken
        /// into cannot sign. [default: DATA_DIR/keys/RUN.key]
        #[arg(long, value_name = "FILE")]
        secret: Option<PathBuf>,
    },
    /// Replace the run's key by a new one, which the old key endorses, so that workers trust it by themselves. All
    /// networks are signed again. If the command is interrupted, give it again.
    Rotate(RotateArgs),
    /// Print the run's public key, or all its keys with --json.
    Show {
        /// The run's name.
        run: RunName,
        /// Print a JSON array of all keys, oldest first, with their endorsements.
        #[arg(long)]
        json: bool,
    },
}

/// `run key rotate`
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// The run's name.
    pub run: RunName,
    /// The present secret key. [default: DATA_DIR/keys/RUN.key]
    #[arg(long, value_name = "FILE")]
    pub old: Option<PathBuf>,
    /// Keep the new secret key in this file, or use the one that is there. Without it, the new one
    /// takes the place of the old one, which is kept beside it as RUN.key.old, or RUN.key.old.2 and
    /// so on: a ledger that is restored from an older backup needs it.
    #[arg(long, value_name = "FILE")]
    pub secret: Option<PathBuf>,
}

pub async fn run(
    settings: &Settings,
    db: &SharedDatabase,
    command: KeyCommand,
) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create { run, secret } => create(settings, db, &run, secret.as_deref()).await,
        KeyCommand::Rotate(args) => rotate(settings, db, &args).await,
        KeyCommand::Show { run, json } => show(db, &run, json).await,
    }
}

async fn show(db: &SharedDatabase, run: &RunName, json: bool) -> anyhow::Result<()> {
    if json {
        return say_json(&db.run_keys(run).await?);
    }
    match db.run(run).await?.key {
        Some(key) => say(key.as_str()),
        None => anyhow::bail!("the networks of run {run} are not signed"),
    }
}

async fn create(
    settings: &Settings,
    db: &SharedDatabase,
    run: &RunName,
    secret: Option<&Path>,
) -> anyhow::Result<()> {
    if let Some(key) = db.run(run).await?.key {
        anyhow::bail!("run {run} has the key {key}; use `run key rotate`");
    }
    let path = match secret {
        Some(path) => path.to_owned(),
        None => own_path(settings, run)?,
    };
    let key = read_or_make(&path)?;
    adopt(settings, db, run, &key, None, || Ok(())).await?;
    say(&format!(
        "The networks of run {run} are signed by {}; the secret key is in {}. Keep a copy of it elsewhere: without it \
         the key cannot be followed by another.",
        key.public(),
        path.display()
    ))?;
    say_where_else(settings, secret, &path)
}

/// Tells who has several coordinators where else a key by which they sign must lie.
fn say_where_else(settings: &Settings, secret: Option<&Path>, own: &Path) -> anyhow::Result<()> {
    if secret.is_some() || !settings.may_have_replicas() {
        return Ok(());
    }
    say(&format!(
        "If there are several coordinators, copy {} into DATA_DIR/keys of each: one that lacks it refuses \
         networks that come without a signature.",
        own.display()
    ))
}

async fn rotate(settings: &Settings, db: &SharedDatabase, args: &RotateArgs) -> anyhow::Result<()> {
    let present = db.run(&args.run).await?.key;
    let present = present
        .with_context(|| format!("run {} has no key yet; use `run key create`", args.run))?;
    let own = own_path(settings, &args.run)?;
    let rotation = Rotation::plan(args, &own, &present)?;
    let (new, place) = (&rotation.new, || rotation.place());
    let endorsement = rotation.old.endorse(&args.run, new.public())?;
    adopt(settings, db, &args.run, new, Some(endorsement), place).await?;
    say(&format!(
        "The networks of run {} are signed by {} now, which {present} endorses.",
        args.run,
        new.public()
    ))?;
    if rotation.goes_on() {
        say(
            "That was the end of a rotation which had been interrupted. Give the command again for another key.",
        )?;
    }
    say_where_else(settings, args.secret.as_deref(), &own)
}

fn own_path(settings: &Settings, run: &RunName) -> anyhow::Result<PathBuf> {
    let path = settings.keys().path(run);
    path.context("there is no folder of keys")
}

fn read_or_make(path: &Path) -> anyhow::Result<SigningKey> {
    if let Some(key) = signing::read(path)? {
        return Ok(key);
    }
    let key = SigningKey::generate()?;
    signing::write(path, &key)?;
    Ok(key)
}

/// Makes a key the run's. The networks are signed first, so that no job is without a signature,
/// and what came in meanwhile afterwards. In between the key's file gets its `place`: until then the coordinator signs by the
/// present key.
async fn adopt(
    settings: &Settings,
    db: &SharedDatabase,
    run: &RunName,
    key: &SigningKey,
    endorsement: Option<Signature>,
    place: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let blobs = open_blobs(settings)?;
    sign_all(db, &blobs, run, key).await?;
    place()?;
    db.add_run_key(run, key.public().clone(), endorsement, command_line())
        .await?;
    sign_all(db, &blobs, run, key).await
}

/// Signs all networks of a run that the key has not signed.
async fn sign_all(
    db: &SharedDatabase,
    blobs: &SharedBlobs,
    run: &RunName,
    key: &SigningKey,
) -> anyhow::Result<()> {
    for network in db.networks_in_short(run).await? {
        let (hash, public): (ContentHash, &RunKey) = (network.hash, key.public());
        if db.signature(run, &hash, public).await?.is_some() {
            continue;
        }
        let bytes = blobs.get(BlobKind::Network, &hash).await?;
        anyhow::ensure!(
            ContentHash::of(&bytes) == hash,
            "the file of network {} is not what its name says, and is not signed",
            network.number
        );
        let signature = key.sign_network(run, &bytes)?;
        let signed = vec![(hash, signature)];
        db.add_signatures(run, public.clone(), signed, Timestamp::now())
            .await?;
    }
    Ok(())
}
