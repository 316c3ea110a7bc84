//! Who is at the other end: the connection's address, or what a trusted proxy says of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, header};
use ipnet::IpNet;
use rookery_common::ids::ContentHash;
use serde::{Deserialize, Serialize};

/// The address of a request's connection; put into its extensions where it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// The address that a request comes from, as far as it can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// Where proxies write the address of their client. The other header may come from anyone, so
/// that only one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyHeader {
    /// `X-Forwarded-For`
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239)
    Forwarded,
}

/// Clients whose address a proxy on this machine hides.
const HIDDEN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Proxies whose word is taken.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// Their networks.
    pub trusted: Vec<IpNet>,
    /// What they write.
    pub header: ProxyHeader,
}

impl Proxies {
    /// Whether this is a proxy.
    pub fn trust(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&address))
    }

    /// The client of a request: the connection's other end, or, seen from there, the first address
    /// that is not a proxy. What stands before it in the header anyone can have written.
    ///
    /// Clients whose address a proxy hides (`for=unknown`) count as that proxy, or together as [`HIDDEN`] where the proxy
    /// is this machine, which has no limits.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let mut client = peer.to_canonical();
        if !self.trust(client) {
            return ClientAddress(client);
        }
        let hops = match self.header {
            ProxyHeader::XForwardedFor => x_forwarded_for(headers),
            ProxyHeader::Forwarded => forwarded(headers),
        };
        for hop in hops.into_iter().rev() {
            // What cannot be read was not written by a proxy that is known here, or hides the client.
            let Some(hop) = hop else {
                if client.is_loopback() {
                    client = HIDDEN;
                }
                break;
            };
            client = hop.to_canonical();
            if !self.trust(client) {
                break;
            }
        }
        ClientAddress(client)
    }
}

fn texts(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

fn x_forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    texts(headers, "x-forwarded-for")
        .iter()
        .flat_map(|line| line.split(','))
        .map(|hop| parse(hop.trim()))
        .collect()
}

fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    texts(headers, header::FORWARDED.as_str())
        .iter()
        .flat_map(|line| line.split(','))
        .map(|hop| {
            hop.split(';').find_map(|pair| {
                let (name, value) = pair.split_once('=')?;
                let node = name.trim().eq_ignore_ascii_case("for");
                node.then(|| parse(value.trim().trim_matches('"')))?
            })
        })
        .collect()
}

/// An address, with or without port and brackets.
fn parse(text: &str) -> Option<IpAddr> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, _) = rest.split_once(']')?;
        return address.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    text.parse().ok().or_else(|| {
        let (address, _) = text.rsplit_once(':')?;
        address.parse().ok()
    })
}

/// What limits count as one: an IPv4 address, or the 56 bits of an IPv6 network that one customer may
/// get (RFC 6177). None is this machine itself, which is not limited.
pub fn limited_as(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(IpAddr::V4(address)),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Some(IpAddr::V6(Ipv6Addr::new(a, b, c, d & 0xff00, 0, 0, 0, 0)))
        }
    }
}

/// The addresses around one that a single owner may well have: 24 bits of IPv4, 48 of IPv6; none is this
/// machine itself.
pub fn around(address: IpAddr) -> Option<IpNet> {
    let address = limited_as(address)?;
    let bits = if address.is_ipv4() { 24 } else { 48 };
    IpNet::new(address, bits).ok().map(|net| net.trunc())
}

/// The hash of the addresses [around] one: who comes from the same may be the same person. Those of
/// private networks and of this machine say nothing.
pub fn hashed_block(address: IpAddr) -> Option<i64> {
    let private = match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let shared = first == 100 && second & 0xc0 == 64;
            address.is_private() || address.is_link_local() || address.is_unspecified() || shared
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    };
    let block = around(address).filter(|_| !private)?;
    let hash = ContentHash::of(block.to_string().as_bytes());
    let (start, _) = hash.as_bytes().split_first_chunk()?;
    Some(i64::from_le_bytes(*start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], header: ProxyHeader, peer: &str, lines: &[&str]) -> String {
        let trusted = trusted.iter().map(|net| net.parse().unwrap()).collect();
        let proxies = Proxies { trusted, header };
        let name = match header {
            ProxyHeader::XForwardedFor => "x-forwarded-for",
            ProxyHeader::Forwarded => "forwarded",
        };
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(name, line.parse().unwrap());
        }
        proxies
            .client(peer.parse().unwrap(), &headers)
            .0
            .to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_only_what_they_saw() {
        let x = |trusted, peer, lines| client(trusted, ProxyHeader::XForwardedFor, peer, lines);
        assert_eq!(x(&[], "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        let net: &[&str] = &["10.0.0.0/8", "::1/128"];
        assert_eq!(x(net, "10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(x(net, "::ffff:10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
        // The client wrote the first address, the outer proxy the second, the inner one the third.
        let lines = &["203.0.113.9, 198.51.100.7", "10.9.9.9"][..];
        assert_eq!(x(net, "10.1.2.3", lines), "198.51.100.7");
        assert_eq!(x(net, "10.1.2.3", &["2001:db8::5"]), "2001:db8::5");
        assert_eq!(x(net, "::1", &["[2001:db8::5]:443"]), "2001:db8::5");
        for nonsense in [&["nonsense"][..], &[""], &[]] {
            assert_eq!(x(net, "10.1.2.3", nonsense), "10.1.2.3");
        }
        assert_eq!(
            x(net, "10.1.2.3", &["203.0.113.9, x, 10.4.4.4"]),
            "10.4.4.4"
        );
    }

    #[test]
    fn the_standard_header_is_read_where_it_is_chosen() {
        let net: &[&str] = &["127.0.0.1/32"];
        let line = "for=203.0.113.9, proto=https;For=\"[2001:db8::5]:1234\"";
        let f = |header| client(net, header, "127.0.0.1", &[line]);
        assert_eq!(f(ProxyHeader::Forwarded), "2001:db8::5");
        let hidden = &["for=203.0.113.9, for=_hidden"];
        let answer = client(net, ProxyHeader::Forwarded, "127.0.0.1", hidden);
        assert_eq!(answer, "0.0.0.0", "not this machine, which has no limits");
        assert!(limited_as(HIDDEN).is_some() && hashed_block(HIDDEN).is_none());
        let own = client(net, ProxyHeader::Forwarded, "127.0.0.1", &[]);
        assert_eq!(own, "127.0.0.1");
    }

    #[test]
    fn blocks_of_private_networks_say_nothing() {
        let block = |text: &str| hashed_block(text.parse().unwrap());
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.1.1",
            "100.64.3.4",
            "fd00::1",
            "fe80::1",
        ] {
            assert_eq!(block(text), None, "{text}");
        }
        assert!(block("192.0.2.1").is_some());
        assert_eq!(block("192.0.2.1"), block("::ffff:192.0.2.200"));
        assert_ne!(block("192.0.2.1"), block("192.0.3.1"));
        assert_eq!(block("2001:db8:7:1::1"), block("2001:db8:7:ffff::2"));
        assert_ne!(block("2001:db8:7::1"), block("2001:db8:8::1"));
    }

    #[test]
    fn a_customer_counts_once_and_this_machine_never() {
        let key = |text: &str| limited_as(text.parse().unwrap());
        assert_eq!(key("127.0.0.1"), None);
        assert_eq!(key("::1"), None);
        assert_eq!(key("::ffff:127.0.0.1"), None);
        assert_eq!(key("2001:db8::1"), key("2001:db8:0:ff:ffff::1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:100::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }
}
