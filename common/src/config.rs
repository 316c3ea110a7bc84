//! Configuration files: errors do not show their lines, which may hold secrets.
//!
//! Behind the feature `command-line`.

use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;

/// What stands in the file that was named, or else in the usual one if it is there.
///
/// # Errors
///
/// If the file cannot be read, is not TOML, or not what `T` is made of.
pub fn load<T: DeserializeOwned + Default>(
    named: Option<&Path>,
    usual: Option<&Path>,
) -> anyhow::Result<T> {
    match (named, usual) {
        (Some(path), _) => read(path),
        (None, Some(path)) if path.is_file() => read(path),
        (None, _) => Ok(T::default()),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "RK-0002: cannot read the configuration file {}",
            path.display()
        )
    })?;
    from_toml(&text).with_context(|| {
        format!(
            "RK-0001: the configuration file {} is not valid",
            path.display()
        )
    })
}

/// What is wrong with a configuration file, and in which line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ConfigError(String);

/// The TOML parser's own message shows the line in question, and with it a token or a database's
/// password.
fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let what = without_types(error.message());
        ConfigError(match error.span() {
            Some(span) => format!("line {}: {what}", line_at(text, span.start)),
            None => what,
        })
    })
}

/// What was expected, in words where serde names a type of Rust.
fn without_types(message: &str) -> String {
    let Some((before, expected)) = message.split_once("expected ") else {
        return message.to_owned();
    };
    let expected = match expected.trim_end() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number, which may be negative",
        "f32" | "f64" => "a number",
        other => other,
    };
    format!("{before}expected {expected}")
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
    fn what_was_expected_is_said_in_words() {
        for (text, expected) in [
            ("a = \"two\"", "expected a whole number"),
            ("a = -2", "expected a whole number"),
            ("a = [1]", "expected a whole number"),
        ] {
            let error = from_toml::<BTreeMap<String, usize>>(text).unwrap_err();
            assert!(error.to_string().ends_with(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn errors_name_the_line_and_do_not_quote_it() {
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

    #[test]
    fn a_file_that_was_named_has_to_be_there_and_the_usual_one_may_be_missing() {
        type Entries = BTreeMap<String, String>;
        let missing = Path::new("/nowhere/rookery.toml");
        let error = load::<Entries>(Some(missing), None).unwrap_err();
        assert!(
            error.to_string().contains("/nowhere/rookery.toml"),
            "{error}"
        );
        assert_eq!(
            load::<Entries>(None, Some(missing)).unwrap(),
            Entries::new()
        );
        assert_eq!(load::<Entries>(None, None).unwrap(), Entries::new());
    }
}
