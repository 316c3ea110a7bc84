//! Errors as people read them.

use std::error::Error;

/// An error and its causes in one line, the outermost first, without those that the text before repeats
/// already.
pub fn explain<'a>(causes: impl IntoIterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut text = String::new();
    for cause in causes.into_iter().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_not_said_again() {
        let said = |causes: &[&str]| {
            let causes: Vec<Box<dyn Error>> = causes.iter().map(|text| (*text).into()).collect();
            explain(causes.iter().map(AsRef::as_ref))
        };
        assert_eq!(said(&["no ledger", "disk full"]), "no ledger: disk full");
        assert_eq!(
            said(&["cannot open x: not found", "not found", "not found"]),
            "cannot open x: not found"
        );
        assert_eq!(said(&[]), "");
    }
}
