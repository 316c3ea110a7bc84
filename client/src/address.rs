//! The coordinator's address.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use rookery_common::protocol::API_PREFIX;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A coordinator's address, for example `https://rookery.example.org`; written without a final slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server(Url);

/// A text that is no address of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write for example https://rookery.example.org")]
pub struct ServerError(String);

impl Server {
    /// The address of an API call.
    pub(crate) fn api(&self, path: &str, query: &[(&str, String)]) -> Url {
        let mut url = self.0.clone();
        let base = self.0.path().trim_end_matches('/');
        url.set_path(&format!("{base}{API_PREFIX}/{path}"));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// What to do where a coordinator answers, but not at this address.
    pub fn correction(&self) -> String {
        format!(
            "{self} does not seem to be the coordinator's address; give --server what stands before \
             the first path, for example https://chess.example.org"
        )
    }

    /// The address of a page.
    pub fn page(&self, path: &str) -> String {
        format!("{self}/{path}")
    }
}

impl FromStr for Server {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let refuse = |reason: &str| {
            let shown: String = text.chars().take(120).collect();
            ServerError(format!(
                "{shown:?} is not a coordinator's address ({reason})"
            ))
        };
        let mut url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(refuse("it must begin with http:// or https://"));
        }
        // A password would stand in every log, and in the header where the token belongs.
        let extra = [url.password(), url.query(), url.fragment()];
        if !url.username().is_empty() || extra.iter().any(Option::is_some) {
            let reason = "the coordinator's address must hold neither a user's name or password before @, nor ? or #";
            return Err(ServerError(reason.to_owned()));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Serialize for Server {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
        assert_eq!(server.to_string(), "http://localhost:8080/rook");
        assert_eq!(
            server.page("runs/main"),
            "http://localhost:8080/rook/runs/main"
        );
        let api = |query: &[(&str, String)]| server.api("jobs", query).to_string();
        assert_eq!(api(&[]), "http://localhost:8080/rook/api/v1/jobs");
        assert_eq!(
            api(&[("run", "main".to_owned()), ("name", "a&b".to_owned())]),
            "http://localhost:8080/rook/api/v1/jobs?run=main&name=a%26b"
        );
        let root: Server = "https://chess.example.org".parse().unwrap();
        assert_eq!(root.to_string(), "https://chess.example.org");
        assert_eq!(
            root.api("jobs", &[]).as_str(),
            "https://chess.example.org/api/v1/jobs"
        );
    }

    #[test]
    fn other_texts_are_refused_with_an_example() {
        for text in [
            "",
            "localhost",
            "localhost:8080",
            "ftp://x",
            "http://",
            "http://x/?a=b",
            "http://x/#a",
            "http://ann@x",
            "http://ann:secret@x",
        ] {
            let error = text.parse::<Server>().unwrap_err().to_string();
            assert!(error.contains("https://rookery.example.org"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
