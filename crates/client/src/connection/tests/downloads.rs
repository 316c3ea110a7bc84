//! Downloads that are sent on. All servers are on 127.0.0.1; a lookup of the test's own says where names are.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A listener that answers with a file, and how many connections it had.
async fn bucket() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut call, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(call.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            assert!(!head.contains("authorization"), "{head}");
            assert!(head.contains("range: bytes=2-"), "{head}");
            let answer = b"HTTP/1.1 206 X\r\nconnection: close\r\ncontent-length: 4\r\n\r\nfile";
            call.write_all(answer).await.unwrap();
        }
    });
    (port, seen)
}

/// What becomes of a download that a coordinator in `from` sends on to `host`, which resolves so, and how many
/// connections came there.
async fn sent_on(from: Network, host: &str, resolves: &[&str]) -> (Result<Vec<u8>>, usize) {
    let (port, seen) = bucket().await;
    let location = format!("text/plain\r\nlocation: http://{host}:{port}/file");
    let coordinator = answered(307, &location, "").await;
    let addresses: Vec<IpAddr> = resolves.iter().map(|ip| ip.parse().unwrap()).collect();
    let options = Options {
        lookup: Arc::new(move |_| {
            let addresses = addresses.clone();
            Box::pin(async move { Ok(addresses) })
        }),
        assumed: Some(from),
        ..Options::new("test").unwrap()
    };
    let connection = Connection::with_options(coordinator.server().clone(), options).unwrap();
    let connection = connection.with_token(Token::parse("rk_1").unwrap());
    let file = match connection.download("networks/1/file", &[], 2).await {
        Ok(body) => answer::collect(body, 100).await,
        Err(error) => Err(error),
    };
    (file, seen.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_not_followed() {
    for (from, host, resolves) in [
        (Network::Public, "bucket.test", &["127.0.0.1"][..]),
        (
            Network::Public,
            "bucket.test",
            &["::ffff:127.0.0.1", "10.0.0.1"],
        ),
        (Network::Private, "bucket.test", &["127.0.0.1"]),
        (Network::Public, "127.0.0.1", &[]),
        (Network::Public, "localhost", &["127.0.0.1"]),
    ] {
        let (file, seen) = sent_on(from, host, resolves).await;
        let error = file.unwrap_err().to_string();
        assert!(
            error.contains("this machine's own network"),
            "{host}: {error}"
        );
        assert!(error.contains(host), "{error}");
        assert_eq!(seen, 0, "{host} {resolves:?}");
    }
}

#[tokio::test]
async fn a_coordinator_on_this_machine_has_its_store_there() {
    for host in ["127.0.0.1", "bucket.test"] {
        let (file, seen) = sent_on(Network::Machine, host, &["127.0.0.1"]).await;
        assert_eq!(
            (file.unwrap().as_slice(), seen),
            (&b"file"[..], 1),
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_download_is_sent_on_three_times() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = format!(
        "HTTP/1.1 302 X\r\nconnection: close\r\nlocation: {server}/next\r\ncontent-length: 0\r\n\r\n"
    );
    tokio::spawn(async move {
        while let Ok((mut call, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            call.read_u8().await.unwrap();
            call.write_all(answer.as_bytes()).await.unwrap();
            // Until the client has closed the connection.
            let _ = tokio::io::copy(&mut call, &mut tokio::io::sink()).await;
        }
    });
    let connection = connection(&server, READ_TIMEOUT);
    let error = connection
        .download("networks/1/file", &[], 0)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("more than three times"),
        "{error}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn where_the_coordinator_is_counts_from_its_connection() {
    let coordinator = answered(200, "text/plain", "").await;
    let request = coordinator.request(Method::GET, "runs", &[]);
    let response = request.send().await.unwrap();
    assert_eq!(coordinator.network_of(&response), Network::Machine);
}
