//! Clients that send too much, or come too often.

use rookery_coordinator::limits::settings::LimitArgs;
use rookery_tests::programs::PATIENCE;
use tokio::io::AsyncWriteExt as _;

use super::{Site, brisk, get, head, rest, send_until_closed};

fn request(site: &Site, line: &str, headers: &str) -> String {
    let token = &site.app.alice;
    format!("{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{headers}\r\n")
}

/// Little memory for bodies, and time to wait for it.
fn narrow() -> LimitArgs {
    LimitArgs {
        body_mib: Some(1),
        stall_seconds: Some(60),
        ..brisk()
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn heads_have_a_size() {
    let site = Site::start(brisk()).await;
    let many = "X-Header: 1\r\n".repeat(100_000);
    let huge = format!("X-Header: {}\r\n", "x".repeat(1 << 20));
    for headers in [many, huge] {
        let stream = site.connect().await;
        let (mut read, mut write) = stream.into_split();
        // The connection may be closed before everything is sent.
        let sending = tokio::spawn(async move {
            let _ = write.write_all(get("/", &headers).as_bytes()).await;
            write
        });
        let answer = rest(&mut read).await;
        drop(sending.await.unwrap());
        assert!(answer.is_empty() || status(&answer) == "431", "{answer}");
    }
    let address = site
        .ask(&get(&format!("/{}", "a".repeat(1 << 20)), ""))
        .await;
    assert!(["", "414", "431"].contains(&status(&address)), "{address}");
    site.assert_serves().await;
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_not_waited_for() {
    let site = Site::start(brisk()).await;
    let path = format!("PUT /api/v1/chunks/{}", "0".repeat(64));
    for (line, length) in [
        (path.as_str(), "10995116277760"),
        (path.as_str(), "16777217"),
        ("POST /api/v1/jobs", "262145"),
    ] {
        let headers = format!("Content-Length: {length}\r\nContent-Type: application/json\r\n");
        let answer = site.ask(&request(&site, line, &headers)).await;
        assert!(answer.contains("too-large"), "{length}: {answer}");
    }
    let nonsense = site
        .ask(&request(&site, &path, "Content-Length: -1\r\n"))
        .await;
    assert_eq!(status(&nonsense), "400", "{nonsense}");
    site.assert_serves().await;
}

#[tokio::test]
async fn a_body_without_an_end_is_cut_off() {
    let site = Site::start(brisk()).await;
    let part = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    for line in [
        format!("PUT /api/v1/chunks/{}", "0".repeat(64)),
        "POST /api/v1/jobs".to_owned(),
    ] {
        let mut stream = site.connect().await;
        let headers = "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n";
        let begin = request(&site, &line, headers);
        stream.write_all(begin.as_bytes()).await.unwrap();
        let answer = send_until_closed(stream, part.as_bytes()).await;
        // The answer may be lost with what was still being sent.
        assert!(
            answer.is_empty() || answer.contains("too-large"),
            "{answer}"
        );
    }
    site.assert_serves().await;
}

#[tokio::test]
async fn bodies_share_their_memory_and_give_it_back() {
    let site = Site::start(narrow()).await;
    let path = format!("PUT /api/v1/chunks/{}", "0".repeat(64));
    let large = request(
        &site,
        &path,
        "Content-Length: 2000000\r\nConnection: close\r\n",
    );
    let small = request(
        &site,
        &path,
        "Content-Length: 1000\r\nConnection: close\r\n",
    );
    let body = "x".repeat(2_000_000);
    let answer = site.ask(&(large + &body)).await;
    assert_eq!(status(&answer), "503", "{answer}");
    assert!(answer.to_lowercase().contains("retry-after"), "{answer}");
    for _ in 0..20 {
        let answer = site.ask(&format!("{small}{}", &body[..1000])).await;
        assert!(answer.contains("hash-mismatch"), "{answer}");
    }
}

#[tokio::test]
async fn registrations_that_do_not_end_leave_room_for_uploads() {
    let site = Site::start(narrow()).await;
    let begun = "POST /api/v1/users HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
        Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = site.connect().await;
        // It is told to go on once there is room for it.
        let answer = head(&mut stream, begun).await;
        assert_eq!(status(&answer), "100", "{answer}");
        held.push(stream);
    }
    let path = format!("PUT /api/v1/chunks/{}", "0".repeat(64));
    let headers = "Content-Length: 1000\r\nConnection: close\r\n";
    let upload = request(&site, &path, headers) + &"x".repeat(1000);
    let answer = site.ask(&upload).await;
    assert!(answer.contains("hash-mismatch"), "{answer}");
}

#[tokio::test]
async fn uploads_that_hardly_begin_leave_room_for_others() {
    let site = Site::start(narrow()).await;
    let path = format!("PUT /api/v1/chunks/{}", "0".repeat(64));
    let headers = "Content-Length: 900000\r\nConnection: close\r\n";
    let upload = request(&site, &path, headers);
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = site.connect().await;
        stream.write_all(upload.as_bytes()).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        held.push(stream);
    }
    let answer = site.ask(&(upload + &"x".repeat(900_000))).await;
    assert!(answer.contains("hash-mismatch"), "{answer}");
}

/// They would be closed by themselves after an hour.
#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let limits = LimitArgs {
        connections: Some(3),
        idle_seconds: Some(3600),
        ..LimitArgs::default()
    };
    let site = Site::start(limits).await;
    let mut silent = Vec::new();
    let mut kept = Vec::new();
    let mut half = Vec::new();
    for _ in 0..3 {
        silent.push(site.connect().await);
    }
    for _ in 0..3 {
        let mut stream = site.connect().await;
        let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(head(&mut stream, request).await.starts_with("HTTP/1.1 200"));
        kept.push(stream);
    }
    for _ in 0..3 {
        let mut stream = site.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        half.push(stream);
    }
    let served = tokio::time::timeout(PATIENCE, site.assert_serves());
    served.await.expect("nobody went");
}

#[tokio::test]
async fn listeners_have_their_number_and_leave_their_place() {
    let limits = LimitArgs {
        listeners: Some(5),
        ..LimitArgs::default()
    };
    let site = Site::start(limits).await;
    let mut listening = Vec::new();
    for _ in 0..5 {
        let mut stream = site.connect().await;
        let answer = head(&mut stream, &get("/api/v1/events", "")).await;
        assert_eq!(status(&answer), "200");
        listening.push(stream);
    }
    for _ in 0..50 {
        let answer = site.ask(&get("/api/v1/events", "")).await;
        assert_eq!(status(&answer), "429", "{answer}");
        assert!(
            answer.to_lowercase().contains("retry-after: 30"),
            "{answer}"
        );
    }
    site.assert_serves().await;
    listening.pop();
    loop {
        let mut stream = site.connect().await;
        let answer = head(&mut stream, &get("/api/v1/events", "")).await;
        if status(&answer) == "200" {
            break;
        }
    }
}
