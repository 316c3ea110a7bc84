//! Configuration files: what is wrong with one is told without its lines, which may hold secrets.

use serde::de::DeserializeOwned;

/// What is wrong with a configuration file, and in which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Reads a configuration file's text. The TOML parser's own message shows the line in question, and
/// with it a token or a database's password.
///
/// # Errors
///
/// [`ConfigError`] if it is not TOML, or not what `T` is made of.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let what = error.message();
        ConfigError(match error.span() {
            Some(span) => format!("line {}: {what}", line_at(text, span.start)),
            None => what.to_owned(),
        })
    })
}

/// The line of this byte, counted from 1.
fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn mistakes_are_told_with_their_line_and_without_its_text() {
        for (text, line) in [
            ("token = rk_secret", "line 1: "),
            ("a = \"1\"\ntoken = \"rk_secret\n", "line 2: "),
            ("a = \"1\"\n\ntoken = [\"rk_secret\"]\n", "line 3: "),
            ("token \"rk_secret\"", "line 1: "),
        ] {
            let error = from_toml::<BTreeMap<String, String>>(text).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(line), "{text:?}: {error}");
            assert!(!error.contains("secret"), "{text:?}: {error}");
        }
        let read: BTreeMap<String, String> = from_toml("a = \"1\"").unwrap();
        assert_eq!(read["a"], "1");
    }
}
