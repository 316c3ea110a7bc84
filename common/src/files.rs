//! Files that a crash never leaves half written, and names of files and folders that a power cut does not lose.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the names end under which files are written before they get their own.
const PARTIAL: &str = "partial";

/// What came of reading, looking up or removing something; none if it was not there.
///
/// # Errors
///
/// Any other error of the system.
pub fn if_found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file under another name, syncs it, renames it into place and syncs the folder. A device or a pipe is written
/// to as it is: under its name there must be no file instead.
///
/// # Errors
///
/// What the system says; the old file is then still there, whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    replace(path, bytes, options.write(true).create(true).truncate(true))
}

/// Writes a file as [`write_whole`] does, so that only this user can read it.
///
/// # Errors
///
/// What the system says; the old file is then still there, whole.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    replace(path, bytes, &options)
}

/// Whether a command may write a file: its folder is there, and there is no such file yet, or it is to be replaced. Asked
/// before the work that the file is to hold is done. What is no file counts as well: a disk has more to lose.
///
/// # Errors
///
/// If it is a folder, its folder is missing, or there is such a file and `force` is not given.
pub fn check_output(path: &Path, force: bool) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            format!("{} is a folder; name a file", path.display()),
        ));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "RK-0012: {} cannot be written: there is no folder {}; create it, or name another file",
                path.display(),
                folder.display()
            ),
        ));
    }
    if force || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "RK-0007: {} is there already; name another file, or give --force to replace it",
            path.display()
        ),
    ))
}

/// Makes new names in a folder durable.
///
/// # Errors
///
/// If the folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows cannot open a folder; its file system keeps renames in order by itself.
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// The folder that a file is in, or would be.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Creates a folder, and those above it that are missing; all of them are durable then.
///
/// # Errors
///
/// If one of them cannot be created or synced.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder_of(folder);
    create_folder(above)?;
    match std::fs::create_dir(folder) {
        // Another process may have been first.
        Err(_) if folder.is_dir() => {}
        created => created?,
    }
    sync_folder(above)
}

/// Removes what crashes have left of files that were being written in a folder. No other process may write there.
///
/// # Errors
///
/// If the folder cannot be read or a file not be removed.
pub fn remove_partial(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == PARTIAL) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Gives a file that was written under another name in the same folder its own name, durably: syncs it, renames it and syncs
/// the folder. For what is too large for [`write_whole`].
///
/// # Errors
///
/// What the system says; the old file is then still there, whole.
pub fn finish(partial: &Path, path: &Path) -> io::Result<()> {
    // Windows syncs only files that are open for writing.
    OpenOptions::new().write(true).open(partial)?.sync_all()?;
    std::fs::rename(partial, path)?;
    sync_folder(folder_of(path))
}

/// Replaces a file by a new one, which is opened with `options`.
fn replace(path: &Path, bytes: &[u8], options: &OpenOptions) -> io::Result<()> {
    if is_special(path) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let partial = partial_name(path);
    let attempt = || {
        let mut file = options.open(&partial)?;
        file.write_all(bytes)?;
        drop(file);
        finish(&partial, path)
    };
    attempt().inspect_err(|_| {
        // What is left of it is of no use; that it cannot be removed adds nothing to the error.
        drop(std::fs::remove_file(&partial));
    })
}

/// Whether there is something of this name that is neither a file nor a folder.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

/// A name beside `path` that no other process uses.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{PARTIAL}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn devices_and_sockets_are_not_replaced_by_files() {
        use std::os::unix::fs::FileTypeExt as _;
        let dir = tempfile::tempdir().unwrap();
        let null = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        write_whole(&null, b"x").unwrap();
        assert!(
            std::fs::metadata(&null)
                .unwrap()
                .file_type()
                .is_char_device()
        );
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        write_whole(&socket, b"x").unwrap_err();
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    }

    #[test]
    fn only_what_is_not_there_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(if_found(std::fs::read(&path)).unwrap(), None);
        assert!(if_found(std::fs::read(dir.path())).is_err());
        write_whole(&path, b"x").unwrap();
        assert_eq!(if_found(std::fs::read(&path)).unwrap(), Some(b"x".to_vec()));
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let missing = dir.path().join("missing/a");
        assert!(write_whole(&missing, b"x").is_err());
    }

    #[test]
    fn a_finished_file_takes_the_place_of_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let (partial, path) = (dir.path().join("a.part"), dir.path().join("a"));
        std::fs::write(&path, b"old").unwrap();
        assert!(finish(&partial, &path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        std::fs::write(&partial, b"new").unwrap();
        finish(&partial, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(!partial.exists());
    }

    #[test]
    fn an_output_is_refused_where_it_cannot_be_written_or_would_replace_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let check = |path: &Path| {
            [false, true].map(|force| check_output(path, force).map_err(|error| error.kind()))
        };
        assert_eq!(check(&file), [Ok(()), Ok(())]);
        assert_eq!(check(Path::new("no-such-file")), [Ok(()), Ok(())]);
        write_whole(&file, b"x").unwrap();
        assert_eq!(check(&file), [Err(io::ErrorKind::AlreadyExists), Ok(())]);
        assert_eq!(check(dir.path()), [Err(io::ErrorKind::IsADirectory); 2]);
        let missing = dir.path().join("missing/a");
        assert_eq!(check(&missing), [Err(io::ErrorKind::NotFound); 2]);
        assert_eq!(check(&file.join("a")), [Err(io::ErrorKind::NotFound); 2]);
    }

    #[test]
    fn what_a_crash_left_of_a_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.net");
        write_whole(&path, b"whole").unwrap();
        std::fs::write(partial_name(&path), b"wh").unwrap();
        remove_partial(dir.path()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_for_its_owner_only_even_where_an_open_one_was() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_whole(&path, b"old").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn folders_are_created_with_those_above_them_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b/c");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert!(inner.is_dir());
        let file = inner.join("file");
        std::fs::write(&file, b"").unwrap();
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
