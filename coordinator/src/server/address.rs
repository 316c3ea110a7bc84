//! The address at which the visitor reaches the coordinator, for the commands that pages show and for links of games.
//!
//! It is what the operator says, else what the request says of itself. A cache in front of several
//! readers may show one what another's request said, which `--site-url` prevents.

use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::Encrypted;
use crate::config::{SiteUrl, is_host};

/// What stands in commands where the request does not tell.
const UNKNOWN: &str = "URL";

/// The address, without a slash at its end, as `--server` takes it. It is safe in a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.known().unwrap_or(UNKNOWN))
    }
}

impl Address {
    /// The address, if the operator or the request tells it.
    pub fn known(&self) -> Option<&str> {
        self.0.as_deref()
    }

    fn of(parts: &Parts) -> Self {
        if let Some(site) = parts.extensions.get::<SiteUrl>() {
            return Self(Some(site.to_string()));
        }
        // HTTP/2 has no header for it.
        let host = match parts.uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => first(&parts.headers, header::HOST.as_str()),
        };
        let encrypted = parts.extensions.get::<Encrypted>().is_some();
        let scheme = if encrypted || is_forwarded_https(&parts.headers) {
            "https"
        } else {
            "http"
        };
        let host = host.filter(|host| is_host(host));
        Self(host.map(|host| format!("{scheme}://{host}")))
    }
}

/// The first entry of a header that may be a list: the one of the outermost proxy.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?;
    value.split(',').next().map(str::trim)
}

/// Whether a proxy says that it was asked by HTTPS.
fn is_forwarded_https(headers: &HeaderMap) -> bool {
    let standard = first(headers, header::FORWARDED.as_str()).into_iter();
    let mut parts = standard.flat_map(|entry| entry.split(';'));
    let usual = first(headers, "x-forwarded-proto");
    usual.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
        || parts.any(|part| part.trim().eq_ignore_ascii_case("proto=https"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NAME_BYTES;
    use axum::http::Request;

    fn address(uri: &str, headers: &[(&str, &str)]) -> String {
        let request = headers
            .iter()
            .fold(Request::get(uri), |request, (name, value)| {
                request.header(*name, *value)
            });
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Address::of(&parts).to_string()
    }

    #[test]
    fn the_address_is_the_one_that_was_asked() {
        let host = |host| address("/runs/main/join", &[("host", host)]);
        assert_eq!(host("rookery.example.org"), "http://rookery.example.org");
        assert_eq!(host("127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(host("[2001:db8::5]:8080"), "http://[2001:db8::5]:8080");
        assert_eq!(host("[::1]"), "http://[::1]");
        let second = address("https://rookery.example.org/", &[]);
        assert_eq!(
            second, "http://rookery.example.org",
            "the claim is no proof"
        );
        assert_eq!(address("/", &[]), UNKNOWN);
    }

    #[test]
    fn proxies_tell_that_they_were_asked_by_https() {
        let behind = |name, value| address("/", &[("host", "a.example"), (name, value)]);
        for (name, value) in [
            ("x-forwarded-proto", "https"),
            ("x-forwarded-proto", "HTTPS, http"),
            ("forwarded", "for=203.0.113.9;proto=https, for=10.0.0.1"),
        ] {
            assert_eq!(behind(name, value), "https://a.example", "{value}");
        }
        for (name, value) in [
            ("x-forwarded-proto", "http"),
            ("x-forwarded-proto", "javascript"),
            ("forwarded", "for=203.0.113.9"),
        ] {
            assert_eq!(behind(name, value), "http://a.example", "{value}");
        }
    }

    #[test]
    fn what_the_operator_says_is_not_what_a_request_says() {
        let site = SiteUrl::read("https://chess.example.org").unwrap();
        let request = Request::get("/").header("host", "evil.example");
        let request = request.extension(site).body(()).unwrap();
        let address = Address::of(&request.into_parts().0).to_string();
        assert_eq!(address, "https://chess.example.org");
        for bad in [
            "chess.example.org",
            "https://a.example/",
            "https://a b",
            "ftp://a.example",
        ] {
            assert!(SiteUrl::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_but_a_host_gets_into_a_command() {
        for host in [
            "",
            ":80",
            "a b",
            "a;reboot",
            "$(reboot)",
            "`reboot`",
            "<script>",
            "user@a.example",
            "a.example/x",
            "a.example:",
            "a.example:+80",
            "a.example:99999",
            "[::1",
            "[x]",
            "::1",
            &*"a".repeat(NAME_BYTES + 1),
        ] {
            assert_eq!(address("/", &[("host", host)]), UNKNOWN, "{host}");
        }
    }
}
