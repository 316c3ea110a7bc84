//! Signatures of a run's networks, in minisign's format (<https://jedisct1.github.io/minisign/>):
//! Ed25519 over the file's BLAKE2b-512. `minisign -V` checks them as well.
//!
//! A run's key may be followed by another, which the one before endorses by a signature
//! ([`RunKeyInfo`]): who trusts one key of a run can follow it to the newest ([`successor`]).

use std::fmt;
use std::str::FromStr;

use minisign_verify::{PublicKey, Signature as Checked};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

use crate::ids::{ContentHash, RunName};

/// Longest text of a signature; minisign's own have some 300 characters.
const SIGNATURE_CHARS: usize = 2048;

/// A run's public key, as minisign writes it: base64 of algorithm, key number and Ed25519 key.
#[derive(Clone, PartialEq, Eq, Hash, ToSchema)]
#[schema(value_type = String, min_length = 56, max_length = 56, examples("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"))]
pub struct RunKey(String);

/// A signature as minisign writes it: four lines with two comments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Signature(pub String);

/// One key of a run's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunKeyInfo {
    /// The key.
    pub key: RunKey,
    /// The signature of [`endorsement`] by the key before; none for the first.
    #[serde(default)]
    pub endorsement: Option<Signature>,
    /// When it was added, RFC 3339.
    pub since: String,
}

/// Why a key or a signature is not good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// A text that is no public key.
    #[error("{0:?} is no public key of minisign's: it has 56 characters and begins with RW")]
    Key(String),
    /// A text that is no secret key without a password.
    #[error("this is no secret key of minisign's, or one with a password: {0}")]
    Secret(String),
    /// A text that is not a signature.
    #[error("this is no signature of minisign's")]
    Form,
    /// The signature was made with another key, or for other bytes.
    #[error("the signature is not one by the key {0} for these bytes")]
    Wrong(RunKey),
    /// The run's history does not lead from the trusted key to the present one.
    #[error("the run's keys do not lead from {trusted} to a later one: {reason}")]
    History {
        /// The key that is trusted.
        trusted: RunKey,
        /// What is missing.
        reason: &'static str,
    },
    /// The system gave no random numbers.
    #[error("no signature could be made: {0}")]
    System(String),
}

impl RunKey {
    /// The key as base64.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that `signature` is this key's for `bytes`.
    ///
    /// # Errors
    ///
    /// [`SigningError`] if it is not.
    pub fn verify(&self, bytes: &[u8], signature: &Signature) -> Result<(), SigningError> {
        if signature.0.len() > SIGNATURE_CHARS {
            return Err(SigningError::Form);
        }
        let key = PublicKey::from_base64(&self.0).map_err(|_| SigningError::Key(self.0.clone()))?;
        let signature = Checked::decode(&signature.0).map_err(|_| SigningError::Form)?;
        key.verify(bytes, &signature, false)
            .map_err(|_| SigningError::Wrong(self.clone()))
    }
}

impl FromStr for RunKey {
    type Err = SigningError;

    /// Reads the key alone, or a `.pub` file of minisign's with its comment.
    fn from_str(text: &str) -> Result<Self, SigningError> {
        let line = text.trim().lines().last().unwrap_or_default().trim();
        match PublicKey::from_base64(line) {
            Ok(_) => Ok(Self(line.to_owned())),
            Err(_) => Err(SigningError::Key(line.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RunKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// What a run's key signs to say that another follows it.
pub fn endorsement(run: &RunName, next: &RunKey) -> String {
    format!("rookery: the networks of run {run} are signed by {next} from now on")
}

/// The newest of a run's keys, oldest first in `history`, if the one that is trusted vouches for
/// it.
///
/// # Errors
///
/// [`SigningError::History`] if the trusted key is not among them, or an endorsement is missing or
/// not valid.
pub fn successor(
    trusted: &RunKey,
    run: &RunName,
    history: &[RunKeyInfo],
) -> Result<RunKey, SigningError> {
    let refuse = |reason| SigningError::History {
        trusted: trusted.clone(),
        reason,
    };
    let place = history.iter().position(|info| info.key == *trusted);
    let place = place.ok_or_else(|| refuse("it is none of them"))?;
    let mut current = trusted;
    for next in &history[place + 1..] {
        let endorsed = next.endorsement.as_ref();
        let signature = endorsed.ok_or_else(|| refuse("a key is not endorsed"))?;
        current
            .verify(endorsement(run, &next.key).as_bytes(), signature)
            .map_err(|_| refuse("an endorsement is not valid"))?;
        current = &next.key;
    }
    Ok(current.clone())
}

/// A run's secret key. It is never logged: `Debug` hides it.
pub struct SigningKey {
    secret: minisign::SecretKey,
    public: RunKey,
}

impl SigningKey {
    /// A new random key.
    ///
    /// # Errors
    ///
    /// [`SigningError::System`] if the system gives no random numbers.
    pub fn generate() -> Result<Self, SigningError> {
        let pair =
            minisign::KeyPair::generate_unencrypted_keypair().map_err(|error| system(&error))?;
        Ok(Self {
            secret: pair.sk,
            public: RunKey(pair.pk.to_base64()),
        })
    }

    /// Reads a secret key as [`Self::reveal`] writes it.
    ///
    /// # Errors
    ///
    /// [`SigningError::Secret`] if the text is not a secret key; it is not shown.
    pub fn from_text(text: &str) -> Result<Self, SigningError> {
        let refuse = |error: minisign::PError| SigningError::Secret(error.to_string());
        let secret = minisign::SecretKeyBox::from_string(text)
            .and_then(minisign::SecretKeyBox::into_unencrypted_secret_key)
            .map_err(refuse)?;
        let public = minisign::PublicKey::from_secret_key(&secret).map_err(refuse)?;
        Ok(Self {
            secret,
            public: RunKey(public.to_base64()),
        })
    }

    /// The key as minisign writes it, to be kept where only its owner can read it.
    ///
    /// # Errors
    ///
    /// [`SigningError::System`] if it cannot be written.
    pub fn reveal(&self) -> Result<String, SigningError> {
        let text = self.secret.to_box(Some("rookery run key, secret"));
        text.map(minisign::SecretKeyBox::into_string)
            .map_err(|error| system(&error))
    }

    /// The key that goes with it.
    pub const fn public(&self) -> &RunKey {
        &self.public
    }

    /// Signs a network's file.
    ///
    /// # Errors
    ///
    /// [`SigningError::System`] if the system gives no random numbers.
    pub fn sign_network(&self, run: &RunName, bytes: &[u8]) -> Result<Signature, SigningError> {
        let hash = ContentHash::of(bytes);
        self.sign(bytes, &format!("rookery network run:{run} sha256:{hash}"))
    }

    /// Says that `next` follows this key.
    ///
    /// # Errors
    ///
    /// [`SigningError::System`] if the system gives no random numbers.
    pub fn endorse(&self, run: &RunName, next: &RunKey) -> Result<Signature, SigningError> {
        let text = endorsement(run, next);
        self.sign(text.as_bytes(), "rookery endorsement")
    }

    fn sign(&self, bytes: &[u8], comment: &str) -> Result<Signature, SigningError> {
        let by = format!("signature by the rookery run key {}", self.public);
        let signature = minisign::sign(None, &self.secret, bytes, Some(comment), Some(&by));
        Ok(Signature(
            signature.map_err(|error| system(&error))?.into_string(),
        ))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(secret of {})", self.public)
    }
}

fn system(error: &minisign::PError) -> SigningError {
    SigningError::System(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunName {
        "main".parse().unwrap()
    }

    fn info(key: &SigningKey, by: Option<&SigningKey>) -> RunKeyInfo {
        RunKeyInfo {
            key: key.public().clone(),
            endorsement: by.map(|by| by.endorse(&run(), key.public()).unwrap()),
            since: String::new(),
        }
    }

    #[test]
    fn only_the_keys_own_signature_of_the_same_bytes_is_good() {
        let (key, other) = (
            SigningKey::generate().unwrap(),
            SigningKey::generate().unwrap(),
        );
        let signature = key.sign_network(&run(), b"network").unwrap();
        key.public().verify(b"network", &signature).unwrap();
        let wrong = SigningError::Wrong(key.public().clone());
        assert_eq!(key.public().verify(b"netw0rk", &signature), Err(wrong));
        assert!(other.public().verify(b"network", &signature).is_err());
        // The comment that says for which run it is cannot be changed either.
        let moved = Signature(signature.0.replace("run:main", "run:mine"));
        assert!(key.public().verify(b"network", &moved).is_err());
        for text in [
            "",
            "x",
            &"y".repeat(5000),
            &signature.0[..signature.0.len() / 2],
        ] {
            let refused = key.public().verify(b"network", &Signature(text.into()));
            assert_eq!(refused, Err(SigningError::Form), "{text}");
        }
    }

    #[test]
    fn keys_round_trip_and_secrets_stay_hidden() {
        let key = SigningKey::generate().unwrap();
        let text = key.reveal().unwrap();
        let again = SigningKey::from_text(&text).unwrap();
        assert_eq!(again.public(), key.public());
        let secret = text.lines().nth(1).unwrap();
        assert!(!format!("{key:?}").contains(&secret[..20]));
        let bad = SigningKey::from_text(&text.replace(secret, "AAAA")).unwrap_err();
        assert!(!bad.to_string().contains(secret));
        let file = format!("untrusted comment: minisign public key\n{}\n", key.public());
        assert_eq!(&file.parse::<RunKey>().unwrap(), key.public());
        for text in ["", "RWQ", "rk_1234"] {
            assert!(text.parse::<RunKey>().is_err());
        }
    }

    #[test]
    fn minisigns_own_key_and_signature_are_read() {
        // From the minisign-verify crate's documentation.
        let key: RunKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
            .parse()
            .unwrap();
        let signature = Signature(
            "untrusted comment: signature from minisign secret key\n\
             RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
             trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
             wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n"
                .to_owned(),
        );
        key.verify(b"test", &signature).unwrap();
        assert!(key.verify(b"tesT", &signature).is_err());
    }

    #[test]
    fn trust_follows_endorsements_and_nothing_else() {
        let keys: Vec<_> = (0..3).map(|_| SigningKey::generate().unwrap()).collect();
        let public = |place: usize| keys[place].public().clone();
        let history = vec![
            info(&keys[0], None),
            info(&keys[1], Some(&keys[0])),
            info(&keys[2], Some(&keys[1])),
        ];
        for place in 0..3 {
            assert_eq!(successor(&public(place), &run(), &history), Ok(public(2)));
        }
        let stranger = SigningKey::generate().unwrap();
        assert!(successor(stranger.public(), &run(), &history).is_err());
        assert!(successor(&public(0), &"other".parse().unwrap(), &history).is_err());
        let mut usurped = history.clone();
        usurped.push(info(&stranger, Some(&stranger)));
        assert!(successor(&public(2), &run(), &usurped).is_err());
        let mut skipped = history;
        skipped.remove(1);
        assert!(successor(&public(0), &run(), &skipped).is_err());
    }
}
