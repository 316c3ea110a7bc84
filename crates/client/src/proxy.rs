//! HTTP proxies: which one the environment names for an address, and which hosts do without.
//!
//! The variables are those of curl: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, also in lower case. The
//! client library ignores `*`, ports and `[IPv6]` in `NO_PROXY` for hosts that are IP addresses, which would send
//! tokens to the proxy.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::LazyLock;

use ipnet::IpNet;
use reqwest::Url;
use rookery_common::text::without_secrets;

/// The proxies and the exceptions from them.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exceptions: Vec<Exception>,
}

/// A proxy, and the variable that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    url: Url,
    variable: &'static str,
}

/// A variable that names no usable proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "RK-0110: {variable} is no proxy that can be used ({reason}): write for example http://proxy.example.org:3128"
)]
pub struct ProxyError {
    variable: &'static str,
    reason: String,
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exception {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    Network(IpNet),
    /// A name and its subdomains.
    Domain(String),
}

static ENVIRONMENT: LazyLock<Result<Proxies, ProxyError>> =
    LazyLock::new(|| Proxies::from_variables(|name| std::env::var(name).ok()));

impl Proxies {
    /// What the environment of this process says.
    ///
    /// # Errors
    ///
    /// If a variable names a proxy that cannot be used.
    pub(crate) fn of_environment() -> Result<&'static Self, ProxyError> {
        ENVIRONMENT.as_ref().map_err(Clone::clone)
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let first = |names: [&'static str; 2]| {
            let mut values = names.iter().map(|name| (*name, variable(name)));
            values.find_map(|(name, value)| Some((name, value.filter(|v| !v.trim().is_empty())?)))
        };
        let exceptions = first(["NO_PROXY", "no_proxy"]).map_or_else(Vec::new, |(_, list)| {
            let entries = list.split([',', ' ', '\t']).map(str::trim);
            entries.filter_map(Exception::parse).collect()
        });
        let without = Self {
            exceptions,
            ..Self::default()
        };
        let all_go_without =
            |exception: &Exception| exception.hosts == Hosts::All && exception.port.is_none();
        if without.exceptions.iter().any(all_go_without) {
            return Ok(without);
        }
        // A CGI program gets a request's header `Proxy` as HTTP_PROXY.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let http = first(["HTTP_PROXY", "http_proxy"])
            .filter(|(name, _)| !is_cgi || *name == "http_proxy");
        let https = first(["HTTPS_PROXY", "https_proxy"]);
        let all = first(["ALL_PROXY", "all_proxy"]);
        let parse = |(name, value): (&'static str, String)| Proxy::parse(name, value.trim());
        Ok(Self {
            http: http.or_else(|| all.clone()).map(parse).transpose()?,
            https: https.or(all).map(parse).transpose()?,
            ..without
        })
    }

    /// The proxy for requests to this address.
    pub(crate) fn proxy_for(&self, url: &Url) -> Option<&Proxy> {
        let proxy = match url.scheme() {
            "http" => self.http.as_ref(),
            _ => self.https.as_ref(),
        }?;
        let is_exception = self
            .exceptions
            .iter()
            .any(|exception| exception.covers(url));
        (!is_exception).then_some(proxy)
    }

    /// Whether this is the name of a proxy's host.
    pub(crate) fn have_host(&self, name: &str) -> bool {
        let proxies = [&self.http, &self.https].into_iter().flatten();
        proxies
            .filter_map(|proxy| proxy.url.host_str())
            .any(|host| host.eq_ignore_ascii_case(name))
    }
}

impl Proxy {
    fn parse(variable: &'static str, value: &str) -> Result<Self, ProxyError> {
        let refuse = |reason: String| ProxyError { variable, reason };
        let whole = if value.contains("://") {
            value.to_owned()
        } else {
            format!("http://{value}")
        };
        let url = Url::parse(&whole)
            .map_err(|error| refuse(format!("{:?}: {error}", without_secrets(value))))?;
        match url.scheme() {
            "http" | "https" => Ok(Self { url, variable }),
            other => Err(refuse(format!("{other} proxies are not supported"))),
        }
    }

    /// The address with user and password, for the client library only.
    pub(crate) const fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for Proxy {
    /// Without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, variable } = self;
        let (scheme, host) = (url.scheme(), url.host_str().unwrap_or_default());
        write!(f, "the proxy {scheme}://{host}")?;
        if let Some(port) = url.port() {
            write!(f, ":{port}")?;
        }
        write!(f, " of {variable}")
    }
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        let exception = |hosts, port| Some(Self { hosts, port });
        let bracketed = entry
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'));
        let (host, port) = match (bracketed, entry.rsplit_once(':')) {
            (Some((host, after)), _) => (host, after.strip_prefix(':')),
            (None, _) if network(entry).is_some() => (entry, None),
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (entry, None),
        };
        let port = match port.map(str::parse) {
            None => None,
            Some(port) => Some(port.ok()?),
        };
        if let Some(network) = network(host) {
            return exception(Hosts::Network(network), port);
        }
        match host.trim_start_matches("*.").trim_matches('.') {
            "" => None,
            "*" => exception(Hosts::All, port),
            name => exception(Hosts::Domain(name.to_ascii_lowercase()), port),
        }
    }

    fn covers(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else {
            return false;
        };
        if self.port.is_some() && self.port != url.port_or_known_default() {
            return false;
        }
        let ip = address(host);
        match &self.hosts {
            Hosts::All => true,
            Hosts::Network(network) => ip.is_some_and(|ip| network.contains(&ip)),
            Hosts::Domain(name) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let before = host.strip_suffix(name.as_str());
                ip.is_none()
                    && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
        }
    }
}

/// The IP address that a URL's host is, if it is one.
pub(crate) fn address(host: &str) -> Option<IpAddr> {
    let ip: IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
    Some(ip.to_canonical())
}

/// An address or a network in CIDR notation.
fn network(text: &str) -> Option<IpNet> {
    let network = IpNet::from_str(text).ok();
    network.or_else(|| address(text).map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, ProxyError> {
        Proxies::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn goes_without(no_proxy: &str, url: &str) -> bool {
        let variables = [("ALL_PROXY", "proxy:3128"), ("no_proxy", no_proxy)];
        let proxies = proxies(&variables).unwrap();
        proxies.proxy_for(&url.parse().unwrap()).is_none()
    }

    #[test]
    fn exceptions_hold_for_names_addresses_networks_and_ports() {
        for (entries, url) in [
            ("*", "http://192.0.2.1/"),
            ("*", "https://rookery.example.org/"),
            ("x, *", "http://[2001:db8::1]/"),
            ("192.0.2.1", "http://192.0.2.1:8080/"),
            ("10.0.0.0/8,192.0.2.0/24", "https://192.0.2.7/"),
            ("192.0.2.0/24", "http://[::ffff:192.0.2.7]/"),
            ("192.0.2.1:8080", "http://192.0.2.1:8080/"),
            ("::1", "http://[::1]:8080/"),
            ("[::1]", "http://[::1]:8080/"),
            ("[::1]:8080", "http://[::1]:8080/"),
            ("2001:db8::/32", "https://[2001:db8::5]/"),
            ("example.org", "https://rookery.example.org/"),
            (".Example.org", "https://rookery.example.ORG./"),
            (".example.org", "https://example.org/"),
            ("*.example.org", "https://rookery.example.org/"),
            ("example.org:443", "https://rookery.example.org/"),
            ("a.test b.test", "http://b.test/"),
        ] {
            assert!(goes_without(entries, url), "{entries} {url}");
        }
        for (entries, url) in [
            ("", "http://192.0.2.1/"),
            ("192.0.2.1:8080", "http://192.0.2.1/"),
            ("192.0.2.0/25", "http://192.0.2.200/"),
            ("2.1", "http://192.0.2.1/"),
            ("ample.org", "https://example.org/"),
            ("example.org:80", "https://example.org/"),
            ("example.org", "https://example.org.evil.test/"),
        ] {
            assert!(!goes_without(entries, url), "{entries} {url}");
        }
    }

    #[test]
    fn each_scheme_has_its_proxy_and_empty_variables_do_not_count() {
        let variables = [
            ("HTTPS_PROXY", ""),
            ("https_proxy", "http://secure.test:1"),
            ("all_proxy", "all.test"),
            ("NO_PROXY", ""),
            ("no_proxy", "near.test"),
        ];
        let proxies = proxies(&variables).unwrap();
        let shown = |url: &str| {
            let proxy = proxies.proxy_for(&url.parse().unwrap());
            proxy.map(ToString::to_string)
        };
        assert_eq!(
            shown("https://x.test/").as_deref(),
            Some("the proxy http://secure.test:1 of https_proxy")
        );
        assert_eq!(
            shown("http://x.test/").as_deref(),
            Some("the proxy http://all.test of all_proxy")
        );
        assert_eq!(shown("http://near.test/"), None);
        assert!(proxies.have_host("ALL.test") && !proxies.have_host("x.test"));
    }

    #[test]
    fn a_proxys_password_is_never_shown() {
        let proxies = proxies(&[("HTTP_PROXY", "ann:SECRET@proxy.test:3128")]).unwrap();
        let proxy = proxies
            .proxy_for(&"http://x.test".parse().unwrap())
            .unwrap();
        assert_eq!(
            proxy.to_string(),
            "the proxy http://proxy.test:3128 of HTTP_PROXY"
        );
        assert_eq!(proxy.url().password(), Some("SECRET"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_and_not_passed_over() {
        for value in [
            "socks5h://ann:SECRET@proxy.test",
            "http://ann:SECRET@:x",
            "http://ann:SECRET@pr oxy",
        ] {
            let error = proxies(&[("ALL_PROXY", value)]).unwrap_err().to_string();
            assert!(
                error.contains("ALL_PROXY is no proxy that can be used"),
                "{error}"
            );
            assert!(!error.contains("SECRET"), "{error}");
        }
        assert!(proxies(&[("ALL_PROXY", "socks5://x"), ("NO_PROXY", "*")]).is_ok());
    }
}
