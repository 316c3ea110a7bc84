//! What operators set of limits: as flags, as variables and in the file under `[limits]`.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde::Deserialize;

use super::address::ProxyHeader;

/// Rates other than 0. What slower ones are worth takes longer than clocks can count.
const RATES: RangeInclusive<f64> = 1e-6..=1e9;

/// Settings with these names, each of the file where `own` does not say it.
macro_rules! or {
    ($own:ident, $file:ident: $($name:ident)+ $(; ..$rest:expr)?) => {
        Self { $($name: $own.$name.or_else(|| $file.$name.clone()),)+ $(..$rest)? }
    };
}

pub(crate) use or;

/// Limits as they are written; what is not has its default, and 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args)]
#[command(next_help_heading = "Limits")]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitArgs {
    /// Take the client's address from the header of these reverse proxies: addresses or networks such
    /// as 10.0.0.0/8, separated by commas. [default: none]
    #[arg(long, env = "ROOKERY_TRUSTED_PROXIES", value_name = "NETWORKS", value_delimiter = ',', value_parser = parse_net)]
    #[serde(deserialize_with = "nets")]
    pub trusted_proxies: Option<Vec<IpNet>>,
    /// The header in which those proxies send the client's address. [default: x-forwarded-for]
    #[arg(long, env = "ROOKERY_PROXY_HEADER", value_name = "HEADER")]
    pub proxy_header: Option<ProxyHeader>,
    /// Rate limit: requests a second of one address. Bursts may be twenty times as large. This machine
    /// has no rate limits. 0 is no limit, here and below. [default: 500]
    #[arg(long, env = "ROOKERY_ADDRESS_RATE", value_name = "N", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub address_rate: Option<f64>,
    /// Rate limit: requests a second of one contributor, from any address. Bursts may be twenty times
    /// as large. [default: 500]
    #[arg(long, env = "ROOKERY_CONTRIBUTOR_RATE", value_name = "N", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub contributor_rate: Option<f64>,
    /// Rate limit: MiB of chunks that one contributor uploads in an hour. A 64th of them may be refused,
    /// or held by a quarantine. [default: 16384]
    #[arg(long, env = "ROOKERY_UPLOAD_MIB", value_name = "MIB", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub upload_mib: Option<f64>,
    /// Rate limit: MiB of chunks that one contributor uploads in a day. A 64th of them may be refused,
    /// or held by a quarantine. [default: 131072]
    #[arg(long, env = "ROOKERY_DAILY_UPLOAD_MIB", value_name = "MIB", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub daily_upload_mib: Option<f64>,
    /// Rate limit: jobs that one contributor takes in a day without sending games. Each job whose games
    /// come allows two more. [default: 4096]
    #[arg(long, env = "ROOKERY_UNRETURNED_LEASES", value_name = "N", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub unreturned_leases: Option<f64>,
    /// Leases that one contributor holds at once. Not limited from this machine. [default: 4096]
    #[arg(long, env = "ROOKERY_CONTRIBUTOR_LEASES", value_name = "N")]
    pub contributor_leases: Option<u32>,
    /// Leases that one worker, by its name, holds at once. Not limited from this machine.
    /// [default: 64]
    #[arg(long, env = "ROOKERY_WORKER_LEASES", value_name = "N")]
    pub worker_leases: Option<u32>,
    /// Rate limit: registrations an hour from one address; an IPv6 /56 counts as one. A /24 of IPv4 or
    /// a /48 of IPv6 may have four times as many. [default: 60]
    #[arg(long, env = "ROOKERY_REGISTRATIONS", value_name = "N", value_parser = rate)]
    #[serde(deserialize_with = "rate_of_file")]
    pub registrations: Option<f64>,
    /// Connections at once, at most half of the open files that the system allows. Further ones wait,
    /// and the longest idle ones are closed for them. [default: 32768]
    #[arg(long, env = "ROOKERY_CONNECTIONS", value_name = "N")]
    pub connections: Option<u32>,
    /// Connections at once from one address. Further ones are closed. This machine and trusted proxies
    /// are not limited. [default: 4096]
    #[arg(long, env = "ROOKERY_ADDRESS_CONNECTIONS", value_name = "N")]
    pub address_connections: Option<u32>,
    /// Concurrency limit: requests of one address that are being answered. A request counts until the
    /// client has taken the answer. Further ones get 429 with Retry-After. [default: 1024]
    #[arg(long, env = "ROOKERY_ADDRESS_ANSWERS", value_name = "N")]
    pub address_answers: Option<u32>,
    /// Listeners to live events at once. [default: 4096]
    #[arg(long, env = "ROOKERY_LISTENERS", value_name = "N")]
    pub listeners: Option<u32>,
    /// Listeners to live events at once from one address. Not limited from this machine. [default: 64]
    #[arg(long, env = "ROOKERY_ADDRESS_LISTENERS", value_name = "N")]
    pub address_listeners: Option<u32>,
    /// MiB of memory for uploads that are being received; one address has an eighth. Further uploads get
    /// 503 with Retry-After. JSON bodies have a sixteenth as much of their own. [default: 2048]
    #[arg(long, env = "ROOKERY_BODY_MIB", value_name = "MIB")]
    pub body_mib: Option<u32>,
    /// Idle timeout: close a connection that sends no whole request for this many seconds.
    /// [default: 75]
    #[arg(long, env = "ROOKERY_IDLE_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(deserialize_with = "seconds_of_file")]
    pub idle_seconds: Option<u32>,
    /// Stall timeout: refuse a request whose body pauses for this many seconds. Cut off a client that
    /// takes less than 16 KiB of an answer in that time. [default: 30]
    #[arg(long, env = "ROOKERY_STALL_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(deserialize_with = "seconds_of_file")]
    pub stall_seconds: Option<u32>,
}

impl LimitArgs {
    /// These, and where they say nothing, the file's.
    #[must_use]
    pub fn or(self, file: &Self) -> Self {
        or!(self, file:
            trusted_proxies proxy_header address_rate contributor_rate upload_mib daily_upload_mib
            unreturned_leases contributor_leases worker_leases registrations connections
            address_connections address_answers listeners address_listeners body_mib idle_seconds
            stall_seconds)
    }
}

/// A network, or an address alone.
fn parse_net(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = || {
        text.parse()
            .ok()
            .map(|address: std::net::IpAddr| address.into())
    };
    text.parse()
        .ok()
        .or_else(address)
        .ok_or_else(|| format!("{text:?} is neither an address nor a network such as 10.0.0.0/8"))
}

fn nets<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<IpNet>>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let nets: Result<_, String> = texts.iter().map(|text| parse_net(text)).collect();
    nets.map(Some).map_err(serde::de::Error::custom)
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    check_rate(rate)
}

fn check_rate(rate: f64) -> Result<f64, String> {
    if rate == 0.0 || RATES.contains(&rate) {
        Ok(rate)
    } else {
        Err(format!(
            "allowed is 0, or {} to {}",
            RATES.start(),
            RATES.end()
        ))
    }
}

fn rate_of_file<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let rate = Option::<f64>::deserialize(from)?.map(check_rate);
    rate.transpose().map_err(serde::de::Error::custom)
}

fn seconds_of_file<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(Option::<NonZeroU32>::deserialize(from)?.map(NonZeroU32::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_bad_networks_are_named() {
        let file: LimitArgs =
            toml::from_str("trusted-proxies = [\"10.0.0.1\", \"fd00::/8\"]\naddress-rate = 3.0")
                .unwrap();
        assert_eq!(file.trusted_proxies.as_ref().unwrap().len(), 2);
        let flags = LimitArgs {
            address_rate: Some(0.0),
            ..LimitArgs::default()
        };
        let merged = flags.or(&file);
        assert_eq!(merged.address_rate, Some(0.0));
        assert_eq!(merged.trusted_proxies, file.trusted_proxies);
        let bad = toml::from_str::<LimitArgs>("trusted-proxies = [\"everyone\"]");
        assert!(bad.unwrap_err().to_string().contains("everyone"));
    }

    #[test]
    fn the_file_is_held_to_what_flags_may_say() {
        let file = |text: &str| toml::from_str::<LimitArgs>(text);
        for text in [
            "address-rate = -1.0",
            "contributor-rate = nan",
            "upload-mib = inf",
            "registrations = 1e-300",
            "idle-seconds = 0",
            "stall-seconds = 0",
        ] {
            assert!(file(text).is_err(), "{text}");
        }
        let refused = rate("1e-300").unwrap_err();
        assert_eq!(refused, "allowed is 0, or 0.000001 to 1000000000");
        assert!(rate("nan").is_err());
        let slow = file("registrations = 1e-6\nupload-mib = 0\nidle-seconds = 1").unwrap();
        assert_eq!(
            (slow.registrations, slow.upload_mib),
            (Some(1e-6), Some(0.0))
        );
        assert_eq!(slow.idle_seconds, Some(1));
    }
}
