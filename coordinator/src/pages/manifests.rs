//! The manifests of datasets, each read once and again when it changes.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Context as _;
use rookery_common::ids::{ContentHash, RunName};
use serde::Deserialize;

/// Datasets that are shown, those whose folders have the last names.
const DATASETS: usize = 100;
/// The file in a dataset's folder that says what is in it.
const MANIFEST: &str = "manifest.json";
/// A manifest may not be larger: each of a run's networks takes some hundred bytes of it.
const MANIFEST_BYTES: u64 = 64 << 20;

/// What is told of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Manifest {
    pub(super) run: RunName,
    pub(super) licence: String,
    pub(super) made_at: String,
    pub(super) games: u64,
    pub(super) positions: u64,
    pub(super) files: Vec<DatasetFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct DatasetFile {
    pub(super) name: String,
    pub(super) sha256: ContentHash,
    pub(super) bytes: u64,
}

/// Manifests that were read, by their paths and when they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Manifests(Arc<Mutex<HashMap<PathBuf, (SystemTime, Manifest)>>>);

impl Manifests {
    /// The datasets of a run in a folder of datasets, with the names of their folders, the newest first. One that cannot
    /// be read is left out, and the log says why.
    pub(super) fn of_run(&self, folder: &Path, run: &RunName) -> Vec<(String, Manifest)> {
        let names = match names(folder) {
            Ok(names) => names,
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "The datasets cannot be listed.");
                return Vec::new();
            }
        };
        let mut found: Vec<(String, Manifest)> = names
            .into_iter()
            .filter_map(|name| {
                let manifest = self.read_or_warn(&folder.join(&name).join(MANIFEST))?;
                Some((name, manifest))
            })
            .filter(|(_, manifest)| manifest.run == *run)
            .collect();
        found.sort_by(|(_, a), (_, b)| b.made_at.cmp(&a.made_at));
        found
    }

    fn read_or_warn(&self, path: &Path) -> Option<Manifest> {
        self.read(path)
            .inspect_err(|error| {
                tracing::warn!(error = format!("{error:#}"), "A dataset is not shown.");
            })
            .ok()
    }

    fn read(&self, path: &Path) -> anyhow::Result<Manifest> {
        let said = || format!("cannot read {}", path.display());
        let file = fs::metadata(path).with_context(said)?;
        anyhow::ensure!(
            file.len() <= MANIFEST_BYTES,
            "{} is too large",
            path.display()
        );
        let written = file.modified().with_context(said)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, manifest)) = known.get(path)
            && *at == written
        {
            return Ok(manifest.clone());
        }
        let text = fs::read(path).with_context(said)?;
        let manifest: Manifest = serde_json::from_slice(&text).with_context(said)?;
        if known.len() >= 10 * DATASETS {
            known.clear();
        }
        known.insert(path.to_owned(), (written, manifest.clone()));
        Ok(manifest)
    }
}

/// The names of the folders in a folder that hold a manifest, the last ones if there are many. An export that is still
/// being written has none yet.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.path().join(MANIFEST).is_file()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names.split_off(names.len().saturating_sub(DATASETS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_of_a_run_are_found_the_newest_first_and_read_again_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, run: &str, made_at: &str, games: u64| {
            let manifest = serde_json::json!({
                "format": "rookery-dataset-1", "run": run, "licence": "CC0-1.0", "made_at": made_at,
                "games": games, "positions": 8, "files": [], "columns": [["chunk", "its number"]],
            });
            fs::create_dir_all(folder.path().join(name)).unwrap();
            let path = folder.path().join(name).join(MANIFEST);
            fs::write(&path, manifest.to_string()).unwrap();
            path
        };
        write("a", "main", "2030-01-02T00:00:00Z", 1);
        write("b", "main", "2030-01-01T00:00:00Z", 2);
        write("c", "other", "2030-01-03T00:00:00Z", 3);
        fs::create_dir(folder.path().join("unfinished")).unwrap();
        fs::create_dir(folder.path().join("damaged")).unwrap();
        fs::write(folder.path().join("damaged").join(MANIFEST), "{").unwrap();
        let (manifests, run) = (Manifests::default(), "main".parse().unwrap());
        let games = || -> Vec<u64> {
            let found = manifests.of_run(folder.path(), &run).into_iter();
            found.map(|(_, manifest)| manifest.games).collect()
        };
        assert_eq!(games(), [1, 2]);
        let path = write("a", "main", "2030-01-02T00:00:00Z", 5);
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(later).unwrap();
        assert_eq!(games(), [5, 2]);
        assert!(
            manifests
                .of_run(&folder.path().join("none"), &run)
                .is_empty()
        );
    }
}
