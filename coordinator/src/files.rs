//! Names of files and folders that a power cut does not lose.

use std::fs;
use std::io;
use std::path::Path;

/// Makes new names in a folder durable.
///
/// # Errors
///
/// If the folder cannot be opened or synced.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows cannot open a folder; its file system keeps renames in order by itself.
    if cfg!(unix) {
        fs::File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// The folder that a file is in, or would be.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Creates a folder, and those above it that are missing; all of them are durable then.
///
/// # Errors
///
/// If one of them cannot be created or synced.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    create_folder(above)?;
    match fs::create_dir(folder) {
        // Another process may have been first.
        Err(_) if folder.is_dir() => {}
        created => created?,
    }
    sync_folder(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_created_with_those_above_them_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b/c");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert!(inner.is_dir());
        let file = inner.join("file");
        fs::write(&file, b"").unwrap();
        assert!(create_folder(&file).is_err());
        assert!(create_folder(&file.join("d")).is_err());
        sync_folder(&inner).unwrap();
        assert_eq!(sync_folder(&inner.join("none")).is_err(), cfg!(unix));
    }

    #[test]
    fn a_bare_name_is_in_the_folder_of_the_process() {
        assert_eq!(folder_of(Path::new("run.key")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/run.key")), Path::new("a"));
        create_folder(folder_of(Path::new("run.key"))).unwrap();
    }
}
