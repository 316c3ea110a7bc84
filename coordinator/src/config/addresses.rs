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

/// A system that people play on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// Its name in settings.
    const fn key(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::MacOs => "macos",
            Self::Windows => "windows",
        }
    }
}

/// Where volunteers get the worker: for each system, and for those without an address of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerSources {
    systems: Vec<(System, PageUrl)>,
    any: Option<PageUrl>,
}

impl WorkerSources {
    /// Reads addresses with blanks between them, each for all systems or for one: `linux=https://example.org/rookery.tar.gz`.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let mut sources = Self::default();
        for word in text.split_whitespace() {
            let all = [System::Linux, System::MacOs, System::Windows];
            let of_system = all.into_iter().find_map(|system| {
                let address = word.strip_prefix(system.key())?.strip_prefix('=')?;
                Some((system, address))
            });
            match of_system {
                Some((system, address)) => sources.systems.push((system, PageUrl::read(address)?)),
                None => sources.any = Some(PageUrl::read(word)?),
            }
        }
        Ok(sources)
    }

    pub const fn is_empty(&self) -> bool {
        self.systems.is_empty() && self.any.is_none()
    }

    /// The address for one system alone.
    pub(crate) fn of(&self, system: System) -> Option<&PageUrl> {
        let mut systems = self.systems.iter();
        systems.find(|(of, _)| *of == system).map(|(_, url)| url)
    }

    /// The address for systems without one of their own.
    pub(crate) const fn any(&self) -> Option<&PageUrl> {
        self.any.as_ref()
    }
}

/// The address at which browsers and workers reach the coordinator, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteUrl(String);

impl SiteUrl {
    /// Reads an address such as `https://chess.example.org`.
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
