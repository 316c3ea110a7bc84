//! Where a download may be sent on to: a bucket, wherever it is, and never into the contributor's
//! own machine.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::redirect::Policy;

use crate::address::Server;

/// Most redirects of one download.
const HOPS: usize = 3;

/// How downloads from this coordinator are sent on.
pub(crate) fn policy(server: &Server) -> Policy {
    let near = is_near(&server.api("", &[]));
    Policy::custom(
        move |attempt| match objection(attempt.previous(), attempt.url(), near) {
            Some(why) => attempt.error(why),
            None => attempt.follow(),
        },
    )
}

/// Why a download that came by these addresses is not to go on to the next one. `near` says whether
/// the coordinator itself is on this machine.
fn objection(previous: &[Url], next: &Url, near: bool) -> Option<&'static str> {
    if previous.len() > HOPS {
        return Some("the download was sent on more than three times");
    }
    let was_secret = previous.last().is_some_and(|last| last.scheme() == "https");
    if was_secret && next.scheme() != "https" {
        return Some("the download was sent from https to an address without");
    }
    if is_near(next) && !near {
        return Some("the download was sent to an address of this machine");
    }
    None
}

/// Whether an address means this machine, or what its provider alone offers there.
fn is_near(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return true;
    };
    let name = host.trim_end_matches('.');
    let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() else {
        return name == "localhost" || name.ends_with(".localhost");
    };
    let ip = ip.to_canonical();
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    ip.is_loopback() || ip.is_unspecified() || is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on(from: &str, to: &str) -> bool {
        let from: Url = from.parse().unwrap();
        objection(
            std::slice::from_ref(&from),
            &to.parse().unwrap(),
            is_near(&from),
        )
        .is_none()
    }

    #[test]
    fn buckets_are_followed_and_this_machine_is_not() {
        let coordinator = "https://rookery.example.org/api/v1/networks/0";
        for bucket in [
            "https://bucket.example.com/0?signature=1",
            "https://10.0.0.2:9000/0",
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
            "https://169.254.169.254/latest",
            "https://0.0.0.0/",
        ] {
            assert!(!goes_on(coordinator, inside), "{inside}");
        }
        let own = "http://localhost:8080/api/v1/networks/0";
        assert!(goes_on(own, "http://127.0.0.1:9000/bucket/0"));
        assert!(goes_on("http://192.168.1.2/", "http://192.168.1.3:9000/"));
        assert!(!goes_on("http://192.168.1.2/", "http://127.0.0.1:9000/"));
    }

    #[test]
    fn a_download_is_sent_on_three_times() {
        let url: Url = "https://rookery.example.org/".parse().unwrap();
        assert!(objection(&vec![url.clone(); 3], &url, false).is_none());
        assert!(objection(&vec![url.clone(); 4], &url, false).is_some());
    }
}
