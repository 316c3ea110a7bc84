//! Addresses of remote devices.

use std::fmt;
use std::str::FromStr;

/// Where a device is served: `remote://HOST:PORT`, or `remotes://HOST:PORT` by TLS.
///
/// # Examples
///
/// ```
/// use rookery_backend_remote::RemoteAddress;
///
/// let address: RemoteAddress = "remote://gpu.lan:7750".parse()?;
/// assert_eq!(address.host_and_port(), "gpu.lan:7750");
/// assert!("remotes://gpu.lan:7750".parse::<RemoteAddress>()?.is_encrypted());
/// assert!("remote://gpu.lan".parse::<RemoteAddress>().is_err());
/// # Ok::<(), rookery_backend_remote::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    host_and_port: String,
    is_encrypted: bool,
}

/// A text that is not the address of a remote device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "RK-0311: {0:?} is no remote device; write remote://HOST:PORT, for example remote://192.168.1.20:7750, or with TLS \
     remotes://HOST:PORT"
)]
pub struct ParseAddressError(String);

impl RemoteAddress {
    /// In plain, for networks that are trusted.
    const PLAIN: &str = "remote://";
    /// By TLS.
    const ENCRYPTED: &str = "remotes://";

    /// Whether a text is meant as the address of a remote device, right or wrong.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(Self::PLAIN) || text.starts_with(Self::ENCRYPTED)
    }

    /// Whether TLS is spoken there.
    pub const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Host and port, as sockets take them.
    pub fn host_and_port(&self) -> &str {
        &self.host_and_port
    }

    /// The host, as certificates have it: without a port, and an address of IPv6 without brackets.
    pub(crate) fn host(&self) -> &str {
        let host = self.host_and_port.rsplit_once(':');
        let host = host.map_or(self.host_and_port.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl FromStr for RemoteAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseAddressError(text.chars().take(80).collect());
        let plain = text.strip_prefix(Self::PLAIN);
        let rest = plain.or_else(|| text.strip_prefix(Self::ENCRYPTED));
        let rest = rest.ok_or_else(refuse)?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(refuse)?;
        let port_is_valid = port.parse::<u16>().is_ok_and(|port| port > 0);
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host_is_valid = match inner {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                !host.is_empty() && host.chars().all(allowed)
            }
        };
        if port_is_valid && host_is_valid {
            Ok(Self {
                host_and_port: rest.to_owned(),
                is_encrypted: plain.is_none(),
            })
        } else {
            Err(refuse())
        }
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted {
            Self::ENCRYPTED
        } else {
            Self::PLAIN
        };
        write!(f, "{scheme}{}", self.host_and_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "remote://127.0.0.1:7750",
            "remote://gpu:1",
            "remote://[::1]:65535",
            "remotes://gpu.lan:7750",
        ] {
            let address = text.parse::<RemoteAddress>().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.is_encrypted(), text.starts_with("remotes:"));
            assert!(RemoteAddress::is_meant_by(text));
        }
        let host = |text: &str| text.parse::<RemoteAddress>().unwrap().host().to_owned();
        assert_eq!(host("remotes://gpu.lan:7750"), "gpu.lan");
        assert_eq!(host("remotes://[::1]:7750"), "::1");
        for text in [
            "",
            "remote://",
            "remote://gpu",
            "remote://gpu:0",
            "remote://gpu:65536",
            "remote://:7750",
            "remote://a b:7750",
            "remote://user@gpu:7750",
            "remote://::1:7750",
            "remotes://gpu",
            "remotess://gpu:7750",
            "remote://gpu:7750/x",
            "http://gpu:7750",
        ] {
            let error = text.parse::<RemoteAddress>().unwrap_err().to_string();
            assert!(error.contains("remote://HOST:PORT"), "{error}");
        }
    }
}
