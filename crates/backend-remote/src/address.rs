//! Addresses of remote devices.

use std::fmt;
use std::str::FromStr;

/// Where a device is served: `remote://HOST:PORT`.
///
/// # Examples
///
/// ```
/// use rookery_backend_remote::RemoteAddress;
///
/// let address: RemoteAddress = "remote://gpu.lan:7750".parse()?;
/// assert_eq!(address.host_and_port(), "gpu.lan:7750");
/// assert!("remote://gpu.lan".parse::<RemoteAddress>().is_err());
/// # Ok::<(), rookery_backend_remote::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress(String);

/// A text that is not the address of a remote device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "RK-0311: {0:?} is no remote device; write remote://HOST:PORT, for example remote://192.168.1.20:7750"
)]
pub struct ParseAddressError(String);

impl RemoteAddress {
    /// How addresses of remote devices begin.
    pub const SCHEME: &str = "remote://";

    /// Host and port, as sockets take them.
    pub fn host_and_port(&self) -> &str {
        &self.0
    }
}

impl FromStr for RemoteAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseAddressError(text.chars().take(80).collect());
        let rest = text.strip_prefix(Self::SCHEME).ok_or_else(refuse)?;
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
            Ok(Self(rest.to_owned()))
        } else {
            Err(refuse())
        }
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::SCHEME, self.0)
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
        ] {
            assert_eq!(text.parse::<RemoteAddress>().unwrap().to_string(), text);
        }
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
            "remote://gpu:7750/x",
            "http://gpu:7750",
        ] {
            let error = text.parse::<RemoteAddress>().unwrap_err().to_string();
            assert!(error.contains("remote://HOST:PORT"), "{error}");
        }
    }
}
