//! Tokens in a file that only its owner can read.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use rookery_common::files;
use serde::{Deserialize, Serialize};

use crate::api::{Server, Token};

/// A registration at one coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// The contributor's name that goes with it.
    pub name: String,
    /// The token.
    pub token: Token,
}

/// The tokens of a file, by coordinator: none is ever sent to another than its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(BTreeMap<String, StoredToken>);

impl Tokens {
    /// Reads the file; without one there are no tokens.
    ///
    /// # Errors
    ///
    /// If the file is there but cannot be read or understood.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = files::if_found(std::fs::read_to_string(path))
            .with_context(|| format!("RK-0003: cannot read the token file {}", path.display()))?;
        let Some(text) = text else {
            return Ok(Self::default());
        };
        // The parser's message would show the line, and with it the secret.
        toml::from_str(&text).map_err(|_| {
            anyhow::anyhow!(
                "RK-0406: the token file {} is damaged; put a copy of it there if you have one, else move it away and \
                 register under another name (--name)",
                path.display()
            )
        })
    }

    /// The token for this coordinator.
    pub fn of(&self, server: &Server) -> Option<&StoredToken> {
        self.0.get(&server.to_string())
    }

    /// The address of a coordinator for which there is a token of this name.
    pub fn address_of(&self, name: &str) -> Option<&str> {
        let mut tokens = self.0.iter();
        let (address, _) = tokens.find(|(_, stored)| stored.name == name)?;
        Some(address)
    }

    /// Adds a token and stores all of them durably where only this user can read them.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add(&mut self, server: &Server, new: StoredToken, path: &Path) -> anyhow::Result<()> {
        self.0.insert(server.to_string(), new);
        write_private(path, &toml::to_string(self)?)
    }
}

/// Writes a file that only this user can read, whole or not at all, and the folders above it that
/// are missing.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| files::write_private(path, text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_stored_for_its_owner_only_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/tokens.toml");
        let server: Server = "http://localhost:8080".parse().unwrap();
        let mut tokens = Tokens::load(&path).unwrap();
        assert_eq!(tokens.of(&server), None);
        let token = Token::parse(" rk_abc123\n").unwrap();
        let stored = StoredToken {
            name: "ann".into(),
            token,
        };
        tokens.add(&server, stored.clone(), &path).unwrap();
        let tokens = Tokens::load(&path).unwrap();
        assert_eq!(tokens.of(&server), Some(&stored));
        assert_eq!(tokens.of(&"http://localhost:8081".parse().unwrap()), None);
        assert_eq!(tokens.address_of("ann"), Some("http://localhost:8080"));
        assert_eq!(tokens.address_of("bob"), None);
        assert!(!format!("{tokens:?}").contains("abc123"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_token_file_is_named_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::fs::write(&path, "[x]\nname = \"n\"\ntoken = \"sec ret\"").unwrap();
        let error = format!("{:#}", Tokens::load(&path).unwrap_err());
        assert!(
            error.contains("tokens.toml") && !error.contains("sec"),
            "{error}"
        );
        assert!(error.contains("--name"), "{error}");
    }
}
