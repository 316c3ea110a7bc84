//! Addresses of the web that operators give.

use std::fmt;
use std::net::Ipv6Addr;

use rookery_common::text::without_secrets;

/// Whether this is an address of the web, perhaps with a path, in one word.
pub(crate) fn is_web_address(text: &str) -> bool {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .filter(|host| !host.is_empty() && !host.starts_with('/'));
    host.is_some() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The address of a page or a file to which pages lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUrl(String);

impl PageUrl {
    /// Reads an address such as `https://example.org/rookery`.
    ///
    /// # Errors
    ///
    /// If a browser would not find a page under the text.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(
            is_web_address(text),
            "{:?} is no address of a page: write https://example.org/rookery",
            without_secrets(text)
        );
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address at which browsers and workers reach the coordinator, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteUrl(String);

impl SiteUrl {
    /// Reads an address such as `https://chess.example.org`.
    ///
    /// # Errors
    ///
    /// If the text is not a scheme and a host, perhaps with a port.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let host = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        anyhow::ensure!(
            host.is_some_and(is_host),
            "{text:?} is no address of a coordinator: write https://chess.example.org, without a path"
        );
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SiteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Longest name of a host, in bytes.
pub(crate) const NAME_BYTES: usize = 253;

/// Whether this is a name or an address, perhaps with a port, and nothing else.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port),
        _ => (text, "443"),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let bracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    is_port
        && match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => (1..=NAME_BYTES).contains(&host.len()) && host.bytes().all(fine),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_got_from_an_address_that_browsers_know() {
        for text in [
            "https://example.org/rookery?os=linux",
            "http://10.0.0.1:8000",
        ] {
            assert_eq!(PageUrl::read(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "example.org",
            "javascript:alert(1)",
            "https://",
            "https:///page",
            "https://example.org/a page",
        ] {
            let error = PageUrl::read(text).unwrap_err().to_string();
            assert!(error.contains("https://example.org/rookery"), "{error}");
        }
    }
}
