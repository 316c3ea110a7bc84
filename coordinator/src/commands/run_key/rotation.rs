//! The keys of a rotation and their files. It may be interrupted anywhere, and the same command goes on with it.
//!
//! ```text
//! 1. RUN.key (the ledger's)                        RUN.key.new (signs the networks meanwhile)
//! 2. RUN.key (the ledger's)   RUN.key.old (a copy) RUN.key.new
//! 3. RUN.key (the new one)    RUN.key.old (the ledger's)
//! 4. RUN.key (the ledger's)   RUN.key.old (the one before)
//! ```
//!
//! There is a `RUN.key` at every moment, and it is the ledger's until the new one has signed all networks.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::files::{folder_of, sync_folder};
use rookery_common::signing::{RunKey, SigningKey};

use super::{RotateArgs, read_or_make};
use crate::signing;

/// A rotation from one key to the next.
pub(super) struct Rotation {
    /// The ledger's.
    pub(super) old: SigningKey,
    /// The one that follows it.
    pub(super) new: SigningKey,
    stage: Stage,
}

/// Where the new key is.
enum Stage {
    /// In the file that the operator has named, where it stays.
    Named,
    /// In `RUN.key.new`, which is to take the place of this file.
    Beside(PathBuf),
    /// In its place, by a rotation that was interrupted.
    Placed,
}

impl Rotation {
    /// Finds the keys, or makes the new one. `own` is the coordinator's file, `present` the ledger's key.
    pub(super) fn plan(args: &RotateArgs, own: &Path, present: &RunKey) -> anyhow::Result<Self> {
        let path = args.old.as_deref().unwrap_or(own);
        let found = signing::read(path)?;
        if let Some(old) = found.filter(|key| key.public() == present) {
            let (file, stage) = match &args.secret {
                Some(file) => (file.clone(), Stage::Named),
                None => (next_name(own), Stage::Beside(own.to_owned())),
            };
            let new = read_or_make(&file)?;
            return Ok(Self { old, new, stage });
        }
        let interrupted = if args.old.is_none() && args.secret.is_none() {
            Self::interrupted(own, present)?
        } else {
            None
        };
        interrupted.map_or_else(|| Err(refusal(args, path, own, present)?), Ok)
    }

    /// A rotation that was interrupted when its key had left `RUN.key.new`, or was about to: the newest old key is still
    /// the ledger's.
    fn interrupted(own: &Path, present: &RunKey) -> anyhow::Result<Option<Self>> {
        let newest = kept_files(own).pop();
        let newest = newest.map(|file| signing::read(&file)).transpose()?;
        let Some(old) = newest.flatten().filter(|key| key.public() == present) else {
            return Ok(None);
        };
        if let Some(new) = signing::read(own)? {
            let stage = Stage::Placed;
            return Ok(Some(Self { old, new, stage }));
        }
        let new = signing::read(&next_name(own))?;
        let stage = Stage::Beside(own.to_owned());
        Ok(new.map(|new| Self { old, new, stage }))
    }

    /// Whether it was begun by an earlier command, whose key has its place.
    pub(super) const fn goes_on(&self) -> bool {
        matches!(self.stage, Stage::Placed)
    }

    /// Gives the new key the place of the one in it, which is kept beside it: a restored ledger wants that.
    pub(super) fn place(&self) -> anyhow::Result<()> {
        let Stage::Beside(own) = &self.stage else {
            return Ok(());
        };
        if let Some(key) = signing::read(own)? {
            keep(own, &key)?;
        }
        let (next, folder) = (next_name(own), folder_of(own));
        std::fs::rename(&next, own)
            .and_then(|()| sync_folder(folder))
            .with_context(|| format!("cannot rename {} to {}", next.display(), own.display()))
    }
}

/// Keeps a copy of a key beside its file, unless an interrupted rotation has made one. None is written over: it may be the
/// only copy of another key.
fn keep(own: &Path, key: &SigningKey) -> anyhow::Result<()> {
    let newest = kept_files(own).pop();
    let newest = newest.and_then(|file| signing::read(&file).ok().flatten());
    if newest.is_some_and(|kept| kept.public() == key.public()) {
        return Ok(());
    }
    let free = kept_names(own).find(|file| !file.exists());
    signing::write(&free.context("there is no free name")?, key)
}

/// Why the key in a file is not followed by another, and from where the run can be led on.
fn refusal(
    args: &RotateArgs,
    path: &Path,
    own: &Path,
    present: &RunKey,
) -> anyhow::Result<anyhow::Error> {
    let (run, shown) = (&args.run, path.display());
    let mut text = match signing::read(path)? {
        Some(key) => format!(
            "the key in {shown} is {}, and that of run {run} is {present}",
            key.public()
        ),
        None => format!("there is no key in {shown}, and that of run {run} is {present}"),
    };
    let files: Vec<PathBuf> = kept_files(own)
        .into_iter()
        .chain([own.to_owned()])
        .collect();
    let has_present =
        |file: &Path| matches!(signing::read(file), Ok(Some(key)) if key.public() == present);
    let step = files.windows(2).find(|pair| has_present(&pair[0]));
    if let Some([old, new]) = step {
        text += &format!(
            ", which is in {old}; lead the run from it to the next with `run key rotate {run} --old {old} --secret {new}`",
            old = old.display(),
            new = new.display()
        );
    }
    Ok(anyhow::Error::msg(text))
}

/// Where a new key waits until it takes its place.
fn next_name(own: &Path) -> PathBuf {
    own.with_extension("key.new")
}

/// The names of earlier keys, oldest first: `RUN.key.old`, `RUN.key.old.2` and so on.
fn kept_names(own: &Path) -> impl Iterator<Item = PathBuf> {
    let later = (2..).map(|number: u32| format!("key.old.{number}"));
    let names = std::iter::once("key.old".to_owned()).chain(later);
    names.map(|name| own.with_extension(name))
}

/// The files of earlier keys, oldest first.
fn kept_files(own: &Path) -> Vec<PathBuf> {
    kept_names(own).take_while(|file| file.exists()).collect()
}
