//! The secret that clients and server share. It proves itself without crossing the wire.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Fewest characters of a token: shorter ones can be guessed from a recorded proof.
const FEWEST_CHARACTERS: usize = 16;
/// Most characters of a token.
const MOST_CHARACTERS: usize = 1024;

/// A token of a device, at least 16 characters.
#[derive(Clone)]
pub struct DeviceToken(Hmac<Sha256>);

/// A token of a length that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the device token has {0} characters, allowed is 16 to 1024; `openssl rand -hex 32` makes a good one"
)]
pub struct TokenError(usize);

impl DeviceToken {
    /// The token of a text, without the space around it.
    ///
    /// # Errors
    ///
    /// [`TokenError`] if it is too short to be a secret, or too long.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let characters = text.chars().count();
        if !(FEWEST_CHARACTERS..=MOST_CHARACTERS).contains(&characters) {
            return Err(TokenError(characters));
        }
        let mac = Hmac::new_from_slice(text.as_bytes());
        mac.map(Self).map_err(|_| TokenError(characters))
    }

    /// What proves to who has sent the nonce that this side knows the token.
    pub(crate) fn proof(&self, nonce: &[u8; 32]) -> [u8; 32] {
        self.0
            .clone()
            .chain_update(nonce)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Whether this is the proof for the nonce. Takes the same time for every wrong one.
    pub(crate) fn accepts(&self, nonce: &[u8; 32], proof: &[u8; 32]) -> bool {
        let mac = self.0.clone().chain_update(nonce);
        mac.verify_slice(proof).is_ok()
    }
}

impl fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_makes_the_proof() {
        let token = DeviceToken::parse(" correct horse battery\n").unwrap();
        let same = DeviceToken::parse("correct horse battery").unwrap();
        let other = DeviceToken::parse("correct horse batterz").unwrap();
        let nonce = [7; 32];
        assert!(token.accepts(&nonce, &same.proof(&nonce)));
        assert!(!token.accepts(&nonce, &other.proof(&nonce)));
        assert!(!token.accepts(&[8; 32], &same.proof(&nonce)), "replayed");
        assert!(!token.accepts(&nonce, &[0; 32]));
    }

    #[test]
    fn tokens_that_can_be_guessed_are_refused() {
        let error = DeviceToken::parse("  short  ").unwrap_err().to_string();
        assert!(error.contains("5 characters"), "{error}");
        DeviceToken::parse(&"x".repeat(1025)).unwrap_err();
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = DeviceToken::parse("correct horse battery").unwrap();
        assert_eq!(format!("{token:?}"), "DeviceToken");
    }
}
