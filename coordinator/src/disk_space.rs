//! Free space on the disks of ledger and files: a metric, and alerts before one is full.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a disk may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Free bytes that are enough on every disk; on one of less than 20 GiB a tenth of it is.
const ENOUGH: u64 = 2 << 30;

/// The disks that are measured.
#[derive(Debug)]
pub struct Disks {
    disks: Vec<Disk>,
    measure: fn(&Path) -> Option<Space>,
}

#[derive(Debug)]
struct Disk {
    /// The dependency that lies on it.
    name: &'static str,
    folder: PathBuf,
    /// What is wrong, while it is nearly full.
    problem: Option<String>,
}

/// Bytes of a disk.
#[derive(Debug, Clone, Copy)]
struct Space {
    free: u64,
    size: u64,
}

impl Disks {
    /// The disks of these folders, each with the name of its first folder.
    pub fn watch(folders: impl IntoIterator<Item = (&'static str, PathBuf)>) -> Self {
        let mut disks: Vec<Disk> = Vec::new();
        for (name, folder) in folders {
            let folder = folder.canonicalize().unwrap_or(folder);
            let is_its = |disk: &Disk| {
                let devices = (device(&disk.folder), device(&folder));
                matches!(devices, (Some(one), Some(other)) if one == other)
            };
            if !disks.iter().any(is_its) {
                disks.push(Disk {
                    name,
                    folder,
                    problem: None,
                });
            }
        }
        Self { disks, measure }
    }

    /// Measures the disks. Gives back those that are nearly full, with what is wrong; a disk that does not answer is as it
    /// was.
    pub async fn look_around(&mut self) -> BTreeMap<String, String> {
        let measure = self.measure;
        for disk in &mut self.disks {
            let folder = disk.folder.clone();
            let space = tokio::task::spawn_blocking(move || measure(&folder));
            if let Ok(Ok(Some(space))) = tokio::time::timeout(PATIENCE, space).await {
                let name = disk.name;
                metrics::gauge!("rookery_disk_free_bytes", "disk" => name).set(space.free as f64);
                metrics::gauge!("rookery_disk_size_bytes", "disk" => name).set(space.size as f64);
                disk.note(space);
            }
        }
        let nearly_full = |disk: &Disk| Some((disk.name.to_owned(), disk.problem.clone()?));
        self.disks.iter().filter_map(nearly_full).collect()
    }
}

impl Disk {
    /// Takes note of the space; the log has what is news. A disk that was nearly full is so until a quarter more than enough
    /// is free: else an alert would end and begin again with every file.
    fn note(&mut self, space: Space) {
        let enough = (space.size / 10).min(ENOUGH);
        let enough = match self.problem {
            Some(_) => enough + enough / 4,
            None => enough,
        };
        let folder = self.folder.display();
        let problem = (space.free < enough).then(|| {
            format!(
                "The disk of the {} is nearly full: {:.1} of {:.1} GB are free in {folder}",
                self.name,
                space.free as f64 / 1e9,
                space.size as f64 / 1e9
            )
        });
        match (&self.problem, &problem) {
            (None, Some(_)) => tracing::warn!(
                %folder,
                free_bytes = space.free,
                "RK-0243: A disk is nearly full."
            ),
            (Some(_), None) => tracing::info!(
                %folder,
                free_bytes = space.free,
                "A disk has room again."
            ),
            _ => {}
        }
        self.problem = problem;
    }
}

/// The space of a folder's disk.
#[cfg(unix)]
fn measure(folder: &Path) -> Option<Space> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(Space {
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
        size: disk.f_blocks.saturating_mul(disk.f_frsize),
    })
}

/// The disk on which a folder lies.
#[cfg(unix)]
fn device(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Some(folder.metadata().ok()?.dev())
}

#[cfg(not(unix))]
const fn measure(_: &Path) -> Option<Space> {
    None
}

#[cfg(not(unix))]
const fn device(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_disk_is_nearly_full_until_clearly_more_is_free() {
        let mut disk = Disk {
            name: "database",
            folder: PathBuf::from("/data"),
            problem: None,
        };
        let mut is_nearly_full = |free, size| {
            disk.note(Space { free, size });
            disk.problem.is_some()
        };
        assert!(!is_nearly_full(2 * GIB, 100 * GIB));
        assert!(is_nearly_full(2 * GIB - 1, 100 * GIB));
        assert!(is_nearly_full(2 * GIB, 100 * GIB), "hardly more is free");
        assert!(!is_nearly_full(5 * GIB / 2, 100 * GIB));
        assert!(!is_nearly_full(GIB, 10 * GIB), "a tenth of a small disk");
        assert!(is_nearly_full(GIB - 1, 10 * GIB));
        assert!(!is_nearly_full(0, 0), "a file system without a size");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_nearly_full_is_said_until_the_disk_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = dir.path().join("blobs");
        std::fs::create_dir(&blobs).unwrap();
        let mut disks = Disks::watch([("database", dir.path().to_owned()), ("store", blobs)]);
        disks.measure = |_| {
            Some(Space {
                free: GIB,
                size: 40 * GIB,
            })
        };
        let problems = disks.look_around().await;
        let names: Vec<&str> = problems.keys().map(String::as_str).collect();
        assert_eq!(names, ["database"], "both are on one disk");
        let begin = "The disk of the database is nearly full: 1.1 of 42.9 GB are free in /";
        assert!(problems["database"].starts_with(begin), "{problems:?}");
        disks.measure = |_| None;
        assert_eq!(disks.look_around().await, problems);
        disks.measure = |_| {
            Some(Space {
                free: 40 * GIB,
                size: 40 * GIB,
            })
        };
        assert_eq!(disks.look_around().await, BTreeMap::new());
    }

    #[cfg(unix)]
    #[test]
    fn the_system_tells_the_space_of_a_folder_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let space = measure(dir.path()).unwrap();
        assert!(space.size > 0 && space.free <= space.size, "{space:?}");
        assert!(measure(&dir.path().join("missing")).is_none());
    }
}
