//! Which part of the Internet an IP address belongs to, as far as a download's redirects depend on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Part of the Internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Network {
    /// Anybody's.
    Public,
    /// A home's or a company's own: RFC 1918, unique local, CGNAT.
    Private,
    /// The same cable: link-local, with the metadata services of cloud providers.
    LinkLocal,
    /// This machine: loopback and unspecified.
    Machine,
    /// No single host: multicast, broadcast, reserved.
    Nowhere,
}

impl Network {
    /// Where an address is. An IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4) counts as itself.
    pub(crate) fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => embedded(ip).map_or_else(|| Self::of_v6(ip), Self::of_v4),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        match ip.octets() {
            [127 | 0, ..] => Self::Machine,
            [169, 254, ..] => Self::LinkLocal,
            // The second line: IETF protocol assignments and benchmarks, which stay inside one network.
            [10, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [100, 64..=127, ..]
            | [192, 0, 0, _]
            | [198, 18..=19, ..] => Self::Private,
            [224..=255, ..] => Self::Nowhere,
            _ => Self::Public,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        match ip.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Self::Machine,
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            // Unique local, site-local, and NAT64 of a network's own.
            [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Self::Private,
            // Multicast; Teredo, whose IPv4 address is masked.
            [0xff00..=0xffff, ..] | [0x2001, 0, ..] => Self::Nowhere,
            _ => Self::Public,
        }
    }

    /// Whether a coordinator that is here may send downloads there. One on this machine may have its store in the
    /// network of its containers.
    pub(crate) fn may_lead_to(self, there: Self) -> bool {
        match there {
            Self::Public => true,
            Self::Private => matches!(self, Self::Private | Self::Machine),
            Self::LinkLocal | Self::Machine => self == there,
            Self::Nowhere => false,
        }
    }
}

/// The IPv4 address that an IPv6 address leads to.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_where_they_lead() {
        use Network::{LinkLocal, Machine, Nowhere, Private, Public};
        for (text, network) in [
            ("127.8.8.8", Machine),
            ("0.0.0.0", Machine),
            ("::", Machine),
            ("::1", Machine),
            ("::ffff:127.0.0.1", Machine),
            ("::127.0.0.1", Machine),
            ("::ffff:0:127.0.0.1", Machine),
            ("64:ff9b::7f00:1", Machine),
            ("2002:7f00:1::", Machine),
            ("169.254.169.254", LinkLocal),
            ("fe80::1", LinkLocal),
            ("::ffff:169.254.1.1", LinkLocal),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("fd00::1", Private),
            ("64:ff9b::a00:1", Private),
            ("64:ff9b:1::1", Private),
            ("224.0.0.1", Nowhere),
            ("255.255.255.255", Nowhere),
            ("ff02::1", Nowhere),
            ("2001::1", Nowhere),
            ("172.32.0.1", Public),
            ("100.128.0.1", Public),
            ("192.0.2.1", Public),
            ("64:ff9b::808:808", Public),
            ("2001:db8::1", Public),
        ] {
            assert_eq!(Network::of(text.parse().unwrap()), network, "{text}");
        }
    }

    #[test]
    fn nobody_outside_leads_inside() {
        use Network::{LinkLocal, Machine, Nowhere, Private, Public};
        let reached = |from: Network| {
            let all = [Public, Private, LinkLocal, Machine, Nowhere];
            all.into_iter()
                .filter(|there| from.may_lead_to(*there))
                .collect::<Vec<_>>()
        };
        assert_eq!(reached(Public), [Public]);
        assert_eq!(reached(Private), [Public, Private]);
        assert_eq!(reached(LinkLocal), [Public, LinkLocal]);
        assert_eq!(reached(Machine), [Public, Private, Machine]);
    }
}
