//! The coordinator's address.

use std::fmt;
use std::str::FromStr;

use rookery_common::protocol::API_PREFIX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A coordinator's address, for example `https://rookery.example.org`, without a final slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server(String);

/// A text that is no address of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a coordinator's address ({reason}); write for example https://rookery.example.org"
)]
pub struct ServerError {
    text: String,
    reason: String,
}

impl Server {
    /// The address of an API call.
    pub fn api(&self, path: &str) -> String {
        format!("{}{API_PREFIX}/{path}", self.0)
    }

    /// What to do where a coordinator answers, but not at this address.
    pub(crate) fn correction(&self) -> String {
        format!(
            "{self} does not seem to be the coordinator's address; give --server what stands before \
             the first path, for example https://chess.example.org"
        )
    }

    /// The address of a page.
    pub fn page(&self, path: &str) -> String {
        format!("{}/{path}", self.0)
    }
}

impl FromStr for Server {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let refuse = |reason: String| ServerError {
            text: text.chars().take(120).collect(),
            reason,
        };
        let url = reqwest::Url::parse(text).map_err(|error| refuse(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(refuse("it must begin with http:// or https://".into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // It would stand in every log, and in the header where the token belongs.
            return Err(refuse(
                "it must not hold a user's name or password before @".into(),
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it must not hold ? or #".into()));
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Server {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Server {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_without_final_slash() {
        let server: Server = "http://localhost:8080/rook/".parse().unwrap();
        assert_eq!(server.api("jobs"), "http://localhost:8080/rook/api/v1/jobs");
        assert_eq!(
            server.page("runs/main"),
            "http://localhost:8080/rook/runs/main"
        );
    }

    #[test]
    fn other_texts_are_refused_with_an_example() {
        for text in [
            "",
            "localhost:8080",
            "ftp://x",
            "http://",
            "http://x/?a=b",
            "http://ann@x",
            "http://ann:pass@x",
        ] {
            let error = text.parse::<Server>().unwrap_err().to_string();
            assert!(error.contains("https://rookery.example.org"), "{error}");
        }
    }
}
