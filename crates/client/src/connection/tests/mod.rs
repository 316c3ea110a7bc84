//! Tests of calls against small servers.

mod compressed;
mod downloads;
mod proxied;

use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::ChunkReceipt;
use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::{Problem, ProblemCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;
use crate::answer::{ask, send};
use crate::error::{ApiError, Result};
use crate::testing::{Answer, Server};

/// A connection on which answers may be silent for so long.
fn connection(server: &str, patience: Duration) -> Connection {
    let options = Options {
        read_timeout: patience,
        ..Options::new("test").unwrap()
    };
    Connection::with_options(server.parse().unwrap(), options).unwrap()
}

async fn runs(connection: &Connection) -> Result<Vec<RunInfo>> {
    ask(connection.request(Method::GET, "runs", &[])).await
}

#[tokio::test]
async fn an_upload_may_take_longer_than_an_answer_may_be_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (uploading, began) = oneshot::channel();
    let (let_go, gone) = oneshot::channel();
    let hash = ContentHash::of(b"chunk");
    let receipt = ChunkReceipt {
        hash,
        sequence: 1,
        games: 1,
        positions: 1,
        duplicate: false,
    };
    let body = serde_json::to_string(&receipt).unwrap();
    tokio::spawn(async move {
        let (mut upload, _) = listener.accept().await.unwrap();
        upload.read_u8().await.unwrap();
        uploading.send(()).unwrap();
        let _silent = listener.accept().await.unwrap();
        gone.await.unwrap();
        let answer = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", body.len());
        let answer = answer + &body;
        upload.write_all(answer.as_bytes()).await.unwrap();
        tokio::io::copy(&mut upload, &mut tokio::io::sink())
            .await
            .unwrap();
    });
    let connection = connection(&server, Duration::from_millis(50));
    let upload = connection.upload("chunks", &[], Bytes::from_static(b"chunk"));
    let sending = tokio::spawn(ask::<ChunkReceipt>(upload));
    began.await.unwrap();
    // This call began later and is over before the upload is answered.
    let silent = runs(&connection).await.unwrap_err();
    assert!(matches!(silent, ApiError::Unanswered(_)), "{silent}");
    let_go.send(()).unwrap();
    assert_eq!(sending.await.unwrap().unwrap(), receipt);
}

#[tokio::test]
async fn an_answer_that_trickles_in_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        let head =
            b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n";
        stream.write_all(head).await.unwrap();
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let connection = connection(&server, Duration::from_millis(200));
    let error = runs(&connection).await.unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
}

/// What becomes of a call that is answered so, with JSON or what is called so.
async fn failure(status: u16, body: &str) -> ApiError {
    failure_of(status, "application/json", body).await
}

/// What becomes of a call that is answered so.
async fn failure_of(status: u16, kind: &str, body: &str) -> ApiError {
    let connection = answered(status, kind, body).await;
    runs(&connection).await.unwrap_err()
}

/// A connection on which one call is answered so.
async fn answered(status: u16, kind: &str, body: &str) -> Connection {
    answered_with(status, kind, body.as_bytes()).await
}

/// A connection on which one call is answered so; `kind` may hold further headers.
async fn answered_with(status: u16, kind: &str, body: &[u8]) -> Connection {
    let mut answer = Answer::new(status, body).with("content-type", kind);
    if !kind.contains("retry-after") {
        answer = answer.with("retry-after", "7");
    }
    let server = Server::answering(vec![answer]).await;
    connection(&server.url, READ_TIMEOUT)
}

#[tokio::test]
async fn only_a_coordinator_can_refuse() {
    for status in [400, 401, 403, 404, 405, 408, 413, 425, 426, 429, 502] {
        for body in ["<html>blocked</html>", "{}", ""] {
            let error = failure(status, body).await;
            assert_eq!(error.remedy(), Remedy::Retry, "{status} {body}");
            assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
            let text = error.to_string();
            assert!(text.contains("did not come from a coordinator"), "{text}");
            assert!(text.contains(body), "{text}");
        }
    }
    let problem = Problem::new(ProblemCode::NotFound, "gone");
    let body = serde_json::to_string(&problem).unwrap();
    assert_eq!(failure(404, &body).await.remedy(), Remedy::Drop);
}

#[tokio::test]
async fn a_captive_portals_success_is_not_taken_for_a_newer_coordinators() {
    for (kind, body) in [
        ("text/html; charset=utf-8", "<html>please log in</html>"),
        ("application/json", "\r\n <!doctype html>"),
        ("text/plain", "please log in"),
    ] {
        let error = failure_of(200, kind, body).await;
        assert_eq!(error.remedy(), Remedy::Retry, "{kind} {body}");
        let text = error.to_string();
        assert!(text.contains("did not come from a coordinator"), "{text}");
    }
    let portal = answered(200, "text/html", "<html>please log in</html>").await;
    let unread = send(portal.request(Method::DELETE, "jobs/1", &[])).await;
    assert_eq!(unread.unwrap_err().remedy(), Remedy::Retry);
    let newer = failure(200, "{\"runs\": []}").await.to_string();
    assert!(newer.contains("this version understands"), "{newer}");
}

#[tokio::test]
async fn what_is_wrong_with_an_answer_steers_no_terminal_and_fills_no_log() {
    let status = format!("\\u001b[2J\\nforged line {}", "x".repeat(100_000));
    let body = format!("[{{\"name\": \"main\", \"status\": \"{status}\"}}]");
    let text = failure(200, &body).await.to_string();
    assert!(text.contains("this version understands"), "{text}");
    assert!(text.contains("[2Jforged line xxx"), "{text}");
    assert!(!text.contains(['\u{1b}', '\n']) && text.len() < 600);
}

#[tokio::test]
async fn a_call_is_not_sent_on_to_another_address() {
    let headers = "text/html\r\nlocation: https://chess.example.org/rook/api/v1/runs";
    for status in [301, 302, 307, 308] {
        let error = failure_of(status, headers, "<html>moved</html>").await;
        assert_eq!(error.remedy(), Remedy::Retry, "{status}");
        let text = error.to_string();
        assert!(
            text.contains("leads to https://chess.example.org/rook; if the coordinator is there"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_date_says_as_well_when_to_come_again() {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (later, seconds) in [
        ("Sun, 06 Nov 1994 08:49:41 GMT", Some(4)),
        // A date that has passed.
        ("Sun, 06 Nov 1994 08:49:30 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
        ("soon", None),
    ] {
        let headers = format!("text/html\r\ndate: {date}\r\nretry-after: {later}");
        let error = failure_of(503, &headers, "busy").await;
        assert_eq!(
            error.retry_after(),
            seconds.map(Duration::from_secs),
            "{later}"
        );
    }
}
