//! Rates by address and contributor, behind proxies and not.

use rookery_common::ids::ContentHash;
use rookery_common::protocol::Problem;
use rookery_coordinator::limits::settings::LimitArgs;

use super::{Site, get, head};

/// A coordinator behind a proxy, with limits of which some are changed.
async fn limited(change: impl FnOnce(&mut LimitArgs)) -> Site {
    let mut limits = LimitArgs {
        trusted_proxies: Some(vec!["127.0.0.0/8".parse().unwrap()]),
        ..LimitArgs::default()
    };
    change(&mut limits);
    Site::start(limits).await
}

fn post(path: &str, token: &str, client: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The refusal of an answer, with its `Retry-After`.
fn refusal(answer: &str) -> (Problem, u64) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("retry-after: "));
    (
        serde_json::from_str(body).unwrap(),
        line.unwrap().parse().unwrap(),
    )
}

#[tokio::test]
async fn an_address_above_its_rate_limit_learns_when_to_retry() {
    // One request, then one in a thousand seconds.
    let site = limited(|limits| limits.address_rate = Some(0.001)).await;
    let ask = async |client: &str, path: &str| {
        let header = format!("X-Forwarded-For: {client}\r\n");
        site.ask(&get(path, &header)).await
    };
    assert_eq!(status(&ask("192.0.2.1", "/api/v1/runs").await), 200);
    let (problem, wait) = refusal(&ask("192.0.2.1", "/api/v1/runs").await);
    assert_eq!(problem.code.as_str(), "too-many-requests");
    assert!((1..=1000).contains(&wait), "{wait}");
    assert!(problem.request_id.is_some());
    // Pages count as well; the same IPv6 network is one address; others are served.
    assert_eq!(status(&ask("192.0.2.1", "/").await), 429);
    for (client, expected) in [
        ("2001:db8::1", 200),
        ("2001:db8::2", 429),
        ("192.0.2.2", 200),
    ] {
        assert_eq!(
            status(&ask(client, "/api/v1/runs").await),
            expected,
            "{client}"
        );
    }
    // What the client itself wrote before the proxy's entry changes nothing.
    let spoofed = "198.51.100.1, 192.0.2.1";
    assert_eq!(status(&ask(spoofed, "/api/v1/runs").await), 429);
    // Those who watch are always answered, and so is this machine.
    assert_eq!(status(&ask("192.0.2.1", "/readyz").await), 200);
    for _ in 0..10 {
        site.assert_serves().await;
    }
}

#[tokio::test]
async fn an_address_has_so_many_answers_at_once() {
    let site = limited(|limits| limits.address_answers = Some(2)).await;
    let events = get("/api/v1/events", "X-Forwarded-For: 192.0.2.1\r\n");
    let listen = async || {
        let mut stream = site.connect().await;
        let answer = head(&mut stream, &events).await;
        (stream, status(&answer))
    };
    let (first, second) = (listen().await, listen().await);
    assert_eq!((first.1, second.1), (200, 200));
    let ask = async |client: &str| {
        let header = format!("X-Forwarded-For: {client}\r\n");
        site.ask(&get("/api/v1/runs", &header)).await
    };
    let (problem, wait) = refusal(&ask("192.0.2.1").await);
    assert!(problem.detail.contains("at once"), "{problem}");
    assert_eq!(wait, 10);
    assert_eq!(status(&ask("192.0.2.2").await), 200);
    drop(first);
    while status(&ask("192.0.2.1").await) != 200 {}
}

#[tokio::test]
async fn without_a_trusted_proxy_the_header_means_nothing() {
    let limits = LimitArgs {
        address_rate: Some(0.001),
        ..LimitArgs::default()
    };
    let site = Site::start(limits).await;
    for _ in 0..10 {
        let answer = site
            .ask(&get("/api/v1/runs", "X-Forwarded-For: 192.0.2.1\r\n"))
            .await;
        assert_eq!(status(&answer), 200, "{answer}");
    }
}

#[tokio::test]
async fn registrations_have_a_stricter_limit() {
    let site = limited(|limits| limits.registrations = Some(3.0)).await;
    let register = async |client: &str, name: &str| {
        let body = format!("{{\"name\": \"{name}\"}}");
        site.ask(&post("/api/v1/users", "", client, &body)).await
    };
    for name in ["u1", "u2", "u3"] {
        assert_eq!(status(&register("192.0.2.1", name).await), 201);
    }
    let (problem, wait) = refusal(&register("192.0.2.1", "u4").await);
    assert!(problem.detail.contains("registrations"), "{problem}");
    assert!((60..=1200).contains(&wait), "{wait}");
    assert_eq!(status(&register("192.0.2.2", "u4").await), 201);
}

#[tokio::test]
async fn a_contributor_is_limited_whatever_the_address() {
    let site = limited(|limits| limits.contributor_rate = Some(0.001)).await;
    let ask = async |token: &str, client: u32| {
        let body = r#"{"protocol": 2, "version": "1", "worker": "w", "backend": "uniform"}"#;
        let client = format!("192.0.2.{client}");
        status(&site.ask(&post("/api/v1/jobs", token, &client, body)).await)
    };
    let answers = [
        ask(&site.app.alice, 1).await,
        ask(&site.app.alice, 2).await,
        ask(&site.app.bob, 2).await,
    ];
    assert_eq!(answers, [204, 429, 204]);
}

#[tokio::test]
async fn a_worker_with_too_many_leases_learns_when_to_retry() {
    let site = limited(|limits| limits.worker_leases = Some(1)).await;
    site.app.submit(0).await;
    let ask = async |worker: &str| {
        let body = format!(
            r#"{{"protocol": 2, "version": "1", "worker": "{worker}", "backend": "uniform"}}"#
        );
        let request = post("/api/v1/jobs", &site.app.alice, "192.0.2.1", &body);
        site.ask(&request).await
    };
    assert_eq!(status(&ask("a").await), 200);
    let (problem, wait) = refusal(&ask("a").await);
    assert_eq!(problem.code.as_str(), "too-many-leases");
    assert!(problem.detail.contains("DELETE /jobs"), "{problem}");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(status(&ask("b").await), 200);
}

#[tokio::test]
async fn refused_chunks_have_a_quota_of_their_own() {
    // One MiB of refused chunks an hour, of which each counts as a quarter at least.
    let site = limited(|limits| limits.upload_mib = Some(64.0)).await;
    let upload = async |token: &str, bytes: &str| {
        let path = format!("/api/v1/chunks/{}", ContentHash::of(bytes.as_bytes()));
        let request = post(&path, token, "192.0.2.1", bytes);
        site.ask(&request.replacen("POST", "PUT", 1)).await
    };
    let (alice, bob) = (&site.app.alice, &site.app.bob);
    for number in 0..5 {
        let refused = upload(alice, &format!("no chunk {number}")).await;
        assert!(refused.contains("chunk-refused"), "{number}: {refused}");
    }
    let (problem, wait) = refusal(&upload(alice, "no chunk either").await);
    assert!(problem.detail.contains("refused"), "{problem}");
    assert!((60..=900).contains(&wait), "{wait}");
    assert!(upload(bob, "no chunk").await.contains("chunk-refused"));
}

#[tokio::test]
async fn uploads_have_a_quota() {
    // One MiB an hour: the first upload passes, whatever it is, and has to be paid for.
    let site = limited(|limits| limits.upload_mib = Some(1.0)).await;
    let upload = async || {
        let path = format!("/api/v1/chunks/{}", "0".repeat(64));
        let request = post(&path, &site.app.alice, "192.0.2.1", &"x".repeat(1 << 20));
        site.ask(&request.replacen("POST", "PUT", 1)).await
    };
    assert!(upload().await.contains("hash-mismatch"));
    let (problem, wait) = refusal(&upload().await);
    assert_eq!(problem.status, 429);
    assert!((3000..=3600).contains(&wait), "{wait}");
}
