//! Secrets that files hold: tokens and passwords, which are not written on command lines.

use std::io;
use std::path::{Path, PathBuf};

/// A file that gives no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error("RK-0003: cannot read the token file {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// Nothing is in it.
    #[error("RK-0004: the token file {} is empty", .0.display())]
    Empty(PathBuf),
}

/// What a file holds that was named for a token or another secret, without the space around it.
///
/// # Errors
///
/// [`SecretError`] if it cannot be read or is empty.
pub fn read_secret(path: &Path) -> Result<String, SecretError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| SecretError::Read(path.to_owned(), error))?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(SecretError::Empty(path.to_owned()));
    }
    Ok(secret.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_no_space_around_it_and_is_not_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(matches!(read_secret(&path), Err(SecretError::Read(..))));
        std::fs::write(&path, " \n").unwrap();
        let error = read_secret(&path).unwrap_err().to_string();
        assert!(
            error.contains("RK-0004") && error.contains("token"),
            "{error}"
        );
        std::fs::write(&path, " correct horse\n").unwrap();
        assert_eq!(read_secret(&path).unwrap(), "correct horse");
    }
}
