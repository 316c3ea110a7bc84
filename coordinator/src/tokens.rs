//! Tokens: 256 random bits that a user keeps. The ledger knows only their SHA-256.
//!
//! A token needs no slow hash: unlike a password it cannot be guessed.

use rookery_common::ids::ContentHash;
use subtle::ConstantTimeEq as _;

/// How every token begins, so that secret scanners know it.
pub const PREFIX: &str = "rk_";

const TOKEN_BYTES: usize = 32;

/// A token as its user keeps it. It is never logged: `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What the ledger keeps of a token or an invitation. Compared in constant time.
#[derive(Debug, Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl std::hash::Hash for TokenHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Token {
    pub fn generate() -> Result<Self, getrandom::Error> {
        random_text::<TOKEN_BYTES>(PREFIX).map(Self)
    }

    /// A text that has a token's form.
    pub fn parse(text: &str) -> Option<Self> {
        well_formed::<TOKEN_BYTES>(PREFIX, text).map(Self)
    }

    /// The token's text, to be shown to its user once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the ledger keeps.
    pub fn hash(&self) -> TokenHash {
        TokenHash(*ContentHash::of(self.0.as_bytes()).as_bytes())
    }
}

const INVITATION_PREFIX: &str = "ri_";

const INVITATION_BYTES: usize = 16;

/// The code of an invitation: 128 random bits. The ledger knows only their SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationCode(String);

impl InvitationCode {
    pub fn generate() -> Result<Self, getrandom::Error> {
        random_text::<INVITATION_BYTES>(INVITATION_PREFIX).map(Self)
    }

    /// A text that has a code's form.
    pub fn parse(text: &str) -> Option<Self> {
        well_formed::<INVITATION_BYTES>(INVITATION_PREFIX, text.trim()).map(Self)
    }

    /// The code's text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the ledger keeps.
    pub fn hash(&self) -> TokenHash {
        TokenHash(*ContentHash::of(self.0.as_bytes()).as_bytes())
    }
}

/// The prefix and `BYTES` random bytes as hexadecimal digits.
fn random_text<const BYTES: usize>(prefix: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{prefix}{}", hex::encode(bytes)))
}

/// The text in lower case, if it is the prefix and the digits of `BYTES` bytes.
fn well_formed<const BYTES: usize>(prefix: &str, text: &str) -> Option<String> {
    let digits = text.strip_prefix(prefix)?;
    let form = digits.len() == 2 * BYTES && digits.bytes().all(|b| b.is_ascii_hexdigit());
    form.then(|| text.to_ascii_lowercase())
}

impl std::fmt::Debug for InvitationCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InvitationCode(hidden)")
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_round_trip_and_stay_hidden() {
        let (a, b) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(a, b);
        let again = Token::parse(a.reveal()).unwrap();
        assert_eq!(again.hash(), a.hash());
        assert!(!format!("{a:?}").contains(&a.reveal()[3..]));
    }

    #[test]
    fn invitations_round_trip_and_stay_hidden() {
        let code = InvitationCode::generate().unwrap();
        let typed = format!(" {}\n", code.reveal());
        assert_eq!(InvitationCode::parse(&typed).unwrap().hash(), code.hash());
        assert!(!format!("{code:?}").contains(&code.reveal()[3..]));
        let token = Token::generate().unwrap();
        assert_eq!(InvitationCode::parse(token.reveal()), None);
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in [
            "",
            "rk_",
            "rk_12",
            &format!("rk_{}", "g".repeat(64)),
            &"a".repeat(67),
        ] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }
}
