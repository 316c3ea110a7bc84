//! Where a download may be sent on to: a bucket, wherever it is, and never into the contributor's own network or
//! machine, unless the coordinator itself is there.
//!
//! Literal addresses are judged by [`objection`], names by [`PublicResolver`] when they are resolved: the connection
//! is made to the addresses that were judged, so that a name which resolves differently each time gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Response, Url, header};
use rookery_common::text::printable;

use crate::network::Network;
use crate::proxy::{Proxies, address};

/// Most redirects of one download.
pub(crate) const HOPS: usize = 3;
/// Most characters of an address that are shown.
const SHOWN: usize = 120;

/// Where an answer sends its request on to.
pub(crate) fn target(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    response.url().join(location).ok()
}

/// Why a download of a coordinator in `from` must not go from this address to the next one.
pub(crate) fn objection(
    last: &Url,
    next: &Url,
    from: Network,
    proxies: &Proxies,
) -> Option<String> {
    if !matches!(next.scheme(), "http" | "https") {
        return Some("the download was sent to an address that is not http".to_owned());
    }
    if last.scheme() == "https" && next.scheme() != "https" {
        return Some("the download was sent from https to an address without".to_owned());
    }
    let host = next.host_str().unwrap_or_default();
    let network = match address(host) {
        Some(ip) => Network::of(ip),
        None if is_local_name(host) => Network::Machine,
        None if proxies.have_host(host) => Network::Private,
        None => return None,
    };
    (!from.may_lead_to(network)).then(|| refusal(host))
}

/// Names that mean this machine without being resolved.
fn is_local_name(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name.is_empty() || name == "localhost" || name.ends_with(".localhost")
}

fn refusal(host: &str) -> String {
    format!(
        "RK-0106: the download was sent to {}, which is in this machine's own network, and the coordinator is not there",
        printable(host, SHOWN)
    )
}

/// How names are looked up.
pub(crate) type Lookup = Arc<dyn Fn(String) -> Lookups + Send + Sync>;
type Lookups = std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;

/// Asks the system.
pub(crate) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Resolves names for redirects of a coordinator in `from`, and gives only addresses that these may lead to.
pub(crate) struct PublicResolver {
    pub(crate) from: Network,
    pub(crate) proxies: &'static Proxies,
    pub(crate) lookup: Lookup,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        // The user chose the proxies, wherever they are; `objection` refuses redirects to them.
        let is_proxy = self.proxies.have_host(&name);
        let (from, found) = (self.from, (self.lookup)(name.clone()));
        Box::pin(async move {
            let allowed = |ip: &IpAddr| is_proxy || from.may_lead_to(Network::of(*ip));
            let mut found = found.await?;
            found.retain(allowed);
            if found.is_empty() {
                return Err(refusal(&name).into());
            }
            let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as reqwest::dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on(from: &str, to: &str) -> bool {
        let from: Url = from.parse().unwrap();
        let network = match from.host_str().unwrap() {
            "localhost" => Network::Machine,
            host => address(host).map_or(Network::Public, Network::of),
        };
        objection(&from, &to.parse().unwrap(), network, &Proxies::default()).is_none()
    }

    #[test]
    fn buckets_are_followed_and_the_contributors_network_is_not() {
        let coordinator = "https://rookery.example.org/api/v1/networks/0";
        for bucket in [
            "https://bucket.example.com/0?signature=1",
            "https://192.0.2.2:9000/0",
            "https://[2001:db8::1]/0",
        ] {
            assert!(goes_on(coordinator, bucket), "{bucket}");
        }
        for inside in [
            "http://bucket.example.com/0",
            "https://localhost/0",
            "https://a.localhost./0",
            "https://127.0.0.1:8080/0",
            "https://2130706433/0",
            "https://[::1]/0",
            "https://[::ffff:127.0.0.1]/0",
            "https://[64:ff9b::127.0.0.1]/0",
            "https://169.254.169.254/latest",
            "https://0.0.0.0/",
            "https://10.0.0.2:9000/0",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://[fd00::1]/",
            "ftp://bucket.example.com/0",
        ] {
            assert!(!goes_on(coordinator, inside), "{inside}");
        }
        let own = "http://localhost:8080/api/v1/networks/0";
        assert!(goes_on(own, "http://127.0.0.1:9000/bucket/0"));
        assert!(goes_on(own, "http://172.17.0.2:9000/bucket/0"));
        assert!(goes_on("http://192.168.1.2/", "http://192.168.1.3:9000/"));
        assert!(!goes_on("http://192.168.1.2/", "http://127.0.0.1:9000/"));
    }
}
