//! Checkpoints: where a trainer goes on after it was stopped, however it was stopped.
//!
//! ```text
//! checkpoints/00000012.net     weights, averages, optimiser (rookery-backend-torch's format)
//! checkpoints/00000012.json    the state of the run, and the SHA-256 of the file above
//! ```
//!
//! Both are written whole, the JSON last: it is what makes a checkpoint. Loading takes the newest
//! one that is complete and can be gone on from; the one before is kept for the case that the disk damaged it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::files::{remove_partial, write_whole};
use rookery_common::ids::ContentHash;
use rookery_train::TrainError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Checkpoints that are kept.
const KEPT: usize = 2;

/// What the JSON file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Record<S> {
    learner: ContentHash,
    state: S,
}

/// A folder of numbered checkpoints.
#[derive(Debug)]
pub struct CheckpointFolder {
    folder: PathBuf,
    next: u64,
}

/// A checkpoint that was opened.
#[derive(Debug)]
pub struct Loaded<S, L> {
    /// The state of the run.
    pub state: S,
    /// What its learner's file holds.
    pub learner: L,
}

impl CheckpointFolder {
    /// Opens the folder, creating it if it is missing. What crashes have left of files that were being written goes:
    /// each is as large as a checkpoint.
    ///
    /// # Errors
    ///
    /// If it cannot be created or read.
    pub fn open(folder: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        remove_partial(&folder)
            .with_context(|| format!("cannot clear the folder {}", folder.display()))?;
        let mut opened = Self { folder, next: 0 };
        opened.next = opened.numbers()?.last().map_or(0, |last| last + 1);
        Ok(opened)
    }

    fn path(&self, number: u64, ending: &str) -> PathBuf {
        self.folder.join(format!("{number:08}.{ending}"))
    }

    /// The numbers of all checkpoints, complete or not, in order.
    fn numbers(&self) -> anyhow::Result<Vec<u64>> {
        let cannot = || format!("cannot read the folder {}", self.folder.display());
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The numbers of those checkpoints whose JSON was written, in order.
    fn written(&self) -> anyhow::Result<Vec<u64>> {
        let mut numbers = self.numbers()?;
        numbers.retain(|number| self.path(*number, "json").exists());
        Ok(numbers)
    }

    /// Writes a checkpoint; `save` writes the learner's file, whole.
    ///
    /// # Errors
    ///
    /// If a file cannot be written; earlier checkpoints are still there.
    pub fn save<S: Serialize>(
        &mut self,
        state: &S,
        save: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let learner = self.path(self.next, "net");
        save(&learner).context("RK-0715: cannot write a checkpoint")?;
        let record = Record {
            learner: hash_of(&learner)?,
            state,
        };
        let path = self.path(self.next, "json");
        write_whole(&path, &serde_json::to_vec_pretty(&record)?)
            .with_context(|| format!("RK-0715: cannot write the checkpoint {}", path.display()))?;
        self.next += 1;
        self.remove_old()
    }

    fn remove_old(&self) -> anyhow::Result<()> {
        // What a crash has left without its JSON does not take the place of one that is complete.
        let written = self.written()?;
        let Some(first_kept) = written.len().checked_sub(KEPT) else {
            return Ok(());
        };
        let old = self.numbers()?.into_iter();
        for number in old.take_while(|number| *number < written[first_kept]) {
            for ending in ["json", "net"] {
                let path = self.path(number, ending);
                if path.exists() {
                    std::fs::remove_file(&path)
                        .with_context(|| format!("cannot remove {}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// The newest checkpoint that is complete and whose learner's file `open` can use, if there is one.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, there are checkpoints but none can be used, or `open` fails for another reason
    /// than [`TrainError::Checkpoint`].
    pub fn load<S: DeserializeOwned, L>(
        &self,
        open: impl Fn(&S, &Path) -> anyhow::Result<L>,
    ) -> anyhow::Result<Option<Loaded<S, L>>> {
        let mut refused = None;
        for number in self.written()?.into_iter().rev() {
            let error = match self.read(number) {
                Ok((state, path)) => match open(&state, &path) {
                    Ok(learner) => return Ok(Some(Loaded { state, learner })),
                    Err(error) if is_unusable(&error) => error,
                    Err(error) => return Err(error),
                },
                Err(error) => error,
            };
            tracing::warn!("RK-0714: checkpoint {number} is skipped: {error:#}");
            refused = Some(error);
        }
        match refused {
            Some(error) => Err(error).context(format!(
                "RK-0704: no checkpoint in {} can be used; to begin anew, remove that folder",
                self.folder.display()
            )),
            None => Ok(None),
        }
    }

    /// The state of a checkpoint that is complete, and its learner's file.
    fn read<S: DeserializeOwned>(&self, number: u64) -> anyhow::Result<(S, PathBuf)> {
        let path = self.path(number, "json");
        let text =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record: Record<S> = serde_json::from_slice(&text)
            .with_context(|| format!("{} is not complete", path.display()))?;
        let learner = self.path(number, "net");
        anyhow::ensure!(
            hash_of(&learner)? == record.learner,
            "{} is damaged",
            learner.display()
        );
        Ok((record.state, learner))
    }
}

fn is_unusable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(TrainError::Checkpoint(_)))
}

fn hash_of(path: &Path) -> anyhow::Result<ContentHash> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(ContentHash::of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(folder: &mut CheckpointFolder, state: u32) {
        let learner = format!("weights of {state}");
        folder
            .save(&state, |path| Ok(std::fs::write(path, learner)?))
            .unwrap();
    }

    fn load(folder: &Path) -> anyhow::Result<Option<Loaded<u32, Vec<u8>>>> {
        let folder = CheckpointFolder::open(folder.to_owned()).unwrap();
        folder.load(|_, path| Ok(std::fs::read(path)?))
    }

    #[test]
    fn the_newest_checkpoint_is_loaded_and_old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        assert!(load(dir.path()).unwrap().is_none());
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        (1..=5).for_each(|state| save(&mut folder, state));
        let loaded = load(dir.path()).unwrap().unwrap();
        assert_eq!(loaded.state, 5);
        assert_eq!(loaded.learner, b"weights of 5");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2 * KEPT);
    }

    /// Whichever file is cut, and wherever, the checkpoint before is loaded.
    #[test]
    fn a_checkpoint_cut_at_any_byte_falls_back_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 1);
        save(&mut folder, 2);
        for name in ["00000001.net", "00000001.json"] {
            let path = dir.path().join(name);
            let whole = std::fs::read(&path).unwrap();
            for cut in 0..whole.len() {
                std::fs::write(&path, &whole[..cut]).unwrap();
                assert_eq!(
                    load(dir.path()).unwrap().unwrap().state,
                    1,
                    "{name} cut at {cut}"
                );
            }
            std::fs::write(&path, whole).unwrap();
            assert_eq!(load(dir.path()).unwrap().unwrap().state, 2);
        }
    }

    #[test]
    fn a_checkpoint_that_cannot_be_written_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 1);
        let full = |path: &Path| -> anyhow::Result<()> {
            std::fs::write(path, b"half of")?;
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
        };
        let error = format!("{:#}", folder.save(&2, full).unwrap_err());
        assert!(error.contains("cannot write a checkpoint"), "{error}");
        assert_eq!(load(dir.path()).unwrap().unwrap().state, 1);
        save(&mut folder, 3);
        assert_eq!(load(dir.path()).unwrap().unwrap().state, 3);
    }

    #[test]
    fn what_a_crash_has_left_of_a_checkpoint_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 1);
        save(&mut folder, 2);
        std::fs::write(dir.path().join("00000002.net"), b"no JSON").unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 3);
        std::fs::write(dir.path().join("00000003.net"), b"damaged").unwrap();
        assert_eq!(load(dir.path()).unwrap().unwrap().state, 2);
        save(&mut folder, 4);
        save(&mut folder, 5);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2 * KEPT);
    }

    #[test]
    fn what_a_crash_has_left_of_a_file_does_not_fill_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("00000007.net.4711.partial");
        std::fs::write(&left, b"half of").unwrap();
        assert!(load(dir.path()).unwrap().is_none());
        assert!(!left.exists());
    }

    #[test]
    fn a_checkpoint_that_cannot_be_gone_on_from_falls_back_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 1);
        save(&mut folder, 2);
        let refuse = |unusable: fn() -> anyhow::Error| {
            let open = |state: &u32, _: &Path| if *state == 2 { Err(unusable()) } else { Ok(()) };
            folder.load(open).map(|loaded| loaded.unwrap().state)
        };
        let broken = || TrainError::Checkpoint("not finite".to_owned()).into();
        assert_eq!(refuse(broken).unwrap(), 1);
        // The one before would be refused as well.
        let other = || anyhow::anyhow!("belongs to another run");
        assert!(refuse(other).is_err());
    }

    #[test]
    fn damage_everywhere_is_an_error_and_not_a_fresh_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = CheckpointFolder::open(dir.path().to_owned()).unwrap();
        save(&mut folder, 1);
        std::fs::write(dir.path().join("00000000.net"), b"x").unwrap();
        let error = format!("{:#}", load(dir.path()).unwrap_err());
        assert!(
            error.contains("damaged") && error.contains("remove that folder"),
            "{error}"
        );
    }
}
