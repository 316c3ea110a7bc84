//! The coordinator's address.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use rookery_common::protocol::API_PREFIX;
use rookery_common::text::without_secrets;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::network::Network;
use crate::proxy;

/// A coordinator's address, for example `https://rookery.example.org`; written without a final slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server(Url);

/// A text that is no address of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write for example https://rookery.example.org")]
pub struct ServerError(String);

impl Server {
    /// Whether it is spoken to by TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

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
            "RK-0109: {self} does not seem to be the coordinator's address; give --server what stands before \
             the first path, for example https://chess.example.org"
        )
    }

    /// Whether the address names this machine or one in the same private network.
    fn is_near(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        match proxy::address(host) {
            Some(ip) => Network::of(ip) != Network::Public,
            None => {
                !host.contains('.')
                    || [".localhost", ".local", ".lan", ".internal", ".home.arpa"]
                        .iter()
                        .any(|end| host.ends_with(end))
            }
        }
    }

    /// The address of a page.
    pub fn page(&self, path: &str) -> String {
        format!("{self}/{path}")
    }
}

impl FromStr for Server {
    type Err = ServerError;

    /// Reads an address. The address of one of the coordinator's pages or API calls leads to the coordinator.
    fn from_str(text: &str) -> Result<Self, ServerError> {
        let refuse = |reason: &str| {
            let shown: String = without_secrets(text).chars().take(120).collect();
            ServerError(format!(
                "RK-0108: {shown:?} is not a coordinator's address ({reason})"
            ))
        };
        let begins = |scheme: &str| {
            text.get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if !SCHEMES.into_iter().any(begins) {
            let needed = "it must begin with http:// or https://";
            let bare = !text.contains("://") && !text.contains('@');
            let meant = bare.then(|| candidates(text).ok()).flatten();
            return Err(match meant.as_deref() {
                Some([.., likely]) => refuse(&format!("{needed}, perhaps {likely}")),
                _ => refuse(needed),
            });
        }
        let mut url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
        cut_page(&mut url);
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

/// How addresses begin.
const SCHEMES: [&str; 2] = ["http://", "https://"];

/// Cuts off what leads from the coordinator to one of its pages.
fn cut_page(url: &mut Url) {
    let path = url.path().to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    let is_page = |at: usize| {
        let next = parts.get(at + 1).copied().unwrap_or_default();
        match parts[at] {
            "runs" => true,
            "trust" => next.is_empty(),
            "api" => next == "v1",
            "matches" | "games" => next.starts_with(|first: char| first.is_ascii_digit()),
            _ => false,
        }
    };
    if let Some(page) = (0..parts.len()).find(|at| is_page(*at)) {
        url.set_path(&parts[..page].join("/"));
        url.set_query(None);
        url.set_fragment(None);
    }
}

/// The addresses that somebody may mean who types this, the likeliest first: `https://` may be left out, and inside
/// a network of one's own it may be `http://`.
///
/// # Errors
///
/// If it is no address in whatever way it is completed.
pub fn candidates(text: &str) -> Result<Vec<Server>, ServerError> {
    let text = text.trim();
    if text.contains("://") {
        return Ok(vec![text.parse()?]);
    }
    let refuse = |_| {
        ServerError(format!(
            "RK-0108: {:?} is not a coordinator's address",
            without_secrets(text)
        ))
    };
    let mut meant = vec![
        format!("https://{text}")
            .parse::<Server>()
            .map_err(refuse)?,
    ];
    let plain = format!("http://{text}").parse::<Server>().map_err(refuse)?;
    if plain.is_near() {
        meant.push(plain);
    }
    Ok(meant)
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
            "ann:secret@x",
            "https:/ann:secret@x",
            "https://ann:se cret@x y",
            "https://ann:secret@:x",
            "https://x/?token=secret",
        ] {
            let error = text.parse::<Server>().unwrap_err().to_string();
            assert!(error.contains("https://rookery.example.org"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_address_without_its_beginning_is_named_with_it() {
        for (text, meant) in [
            ("localhost:8080", "perhaps http://localhost:8080)"),
            ("chess.example.org", "perhaps https://chess.example.org)"),
            ("ftp://x", "begin with http:// or https://)"),
        ] {
            let error = text.parse::<Server>().unwrap_err().to_string();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn the_address_of_a_page_leads_to_its_coordinator() {
        for page in [
            "https://chess.example.org/rook/runs/main/join",
            "https://chess.example.org/rook/runs",
            "https://chess.example.org/rook/runs/main/games?kind=match#top",
            "https://chess.example.org/rook/games/12",
            "https://chess.example.org/rook/trust",
            "https://chess.example.org/rook/api/v1/runs/main",
            "https://chess.example.org/rook/",
        ] {
            let server: Server = page.parse().unwrap();
            assert_eq!(
                server.to_string(),
                "https://chess.example.org/rook",
                "{page}"
            );
        }
        let other: Server = "https://example.org/games/chess".parse().unwrap();
        assert_eq!(other.to_string(), "https://example.org/games/chess");
    }

    #[test]
    fn what_was_left_out_is_completed() {
        let meant = |text: &str| {
            let meant = candidates(text).unwrap();
            meant.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let https = "https://rookery.example.org";
        assert_eq!(meant(" rookery.example.org/runs/main/join "), [https]);
        assert_eq!(
            meant("http://rookery.example.org"),
            ["http://rookery.example.org"]
        );
        for near in [
            "127.0.0.1:28080",
            "localhost:8080",
            "192.168.1.7",
            "chess.local",
            "[::1]:8080",
        ] {
            assert_eq!(
                meant(near),
                [format!("https://{near}"), format!("http://{near}")]
            );
        }
        for text in ["", "a b", "ann:secret@x", "ftp://x"] {
            let error = candidates(text).unwrap_err().to_string();
            assert!(error.contains("https://rookery.example.org"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
