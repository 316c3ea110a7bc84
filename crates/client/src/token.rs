//! The token: a secret that is never printed.

use std::fmt;

use rookery_common::ids::ContentHash;
use serde::{Deserialize, Serialize};

/// A coordinator's token. Its text is only given to the HTTP client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Token(String);

/// A text that is not a token. It is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "RK-0111: the token is empty or holds what no token has, a second line perhaps; give only the word that begins with rk_"
)]
pub struct TokenError;

impl TryFrom<String> for Token {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, TokenError> {
        Self::parse(&text)
    }
}

impl Token {
    /// A token from its text, if it can stand in a header.
    ///
    /// # Errors
    ///
    /// If it is empty or holds anything but visible ASCII.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError);
        }
        Ok(Self(text.to_owned()))
    }

    /// Tells this token from others without telling anything of it.
    pub fn fingerprint(&self) -> String {
        ContentHash::of(self.0.as_bytes()).to_string()[..16].to_owned()
    }

    /// The text, for the `Authorization` header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_token_is_refused_and_no_token_is_shown() {
        let token = Token::parse(" rk_abc123\n").unwrap();
        assert_eq!(token.reveal(), "rk_abc123");
        assert!(!format!("{token:?}").contains("abc123"));
        for text in ["", " ", "rk_a rk_b", "rk_a\nrk_b", "rk_ä"] {
            let error = Token::parse(text).unwrap_err().to_string();
            assert!(!error.contains("rk_a"), "{error}");
        }
    }
}
