//! Tests of the client against a small server.

use rookery_client::testing::{Answer, Server};
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::NetworkStatus;

use super::*;

fn client(server: &Server, shutdown: &Shutdown) -> Client {
    let (run, token) = ("main".parse().unwrap(), Token::parse("secret ").unwrap());
    let client = Client::new(&server.url, Some(token), run, shutdown.clone()).unwrap();
    client.impatient()
}

fn row(bytes: &[u8]) -> ChunkRow {
    ChunkRow {
        sequence: 1,
        hash: ContentHash::of(bytes),
        kind: WorkKind::SelfPlay,
        network: NetworkNumber(0),
        bytes: bytes.len() as u64,
        games: 1,
        positions: 1,
        accepted_at: String::new(),
        held: false,
    }
}

#[tokio::test]
async fn the_store_that_a_coordinator_sends_it_to_gets_no_token() {
    let store = Server::answering(vec![Answer::new(200, "chunk")]).await;
    let location = format!("{}/bucket/chunk?signature=1", store.url);
    let elsewhere = Answer::new(307, "").with("location", location);
    let coordinator = Server::answering(vec![elsewhere]).await;
    let client = client(&coordinator, &Shutdown::default());
    assert_eq!(client.chunk(&row(b"chunk")).await.unwrap(), b"chunk");
    let asked = &coordinator.requests()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer secret"));
    let seen = &store.requests()[0];
    assert_eq!(seen.line, "GET /bucket/chunk?signature=1");
    assert_eq!(seen.header("authorization"), None);
}

#[tokio::test]
async fn it_tries_again_until_the_whole_file_has_come() {
    let damaged = Answer::new(200, "chuNk");
    let away = Answer::problem(ProblemCode::Unavailable);
    let proxy = Answer::new(502, "<html>bad gateway");
    let good = Answer::new(200, "chunk");
    let server = Server::answering(vec![damaged, away, proxy, good]).await;
    let client = client(&server, &Shutdown::default());
    assert_eq!(client.chunk(&row(b"chunk")).await.unwrap(), b"chunk");
    let log = server.requests();
    assert_eq!(log.len(), 4);
    let expected = format!("GET /api/v1/chunks/{}?run=main", ContentHash::of(b"chunk"));
    assert_eq!(log[3].line, expected);
    assert_eq!(log[3].header("authorization"), Some("Bearer secret"));
}

#[tokio::test]
async fn a_lost_chunk_is_given_up_and_a_store_that_is_away_is_not() {
    let damaged = Answer::new(200, "chuNk");
    let elsewhere = Answer::new(404, "<Error><Code>NoSuchKey</Code></Error>");
    for lost in [Answer::problem(ProblemCode::Internal), damaged, elsewhere] {
        let server = Server::answering(vec![lost]).await;
        let client = client(&server, &Shutdown::default());
        let error = client.chunk(&row(b"chunk")).await.unwrap_err();
        assert!(
            matches!(error, CallError::RetriesExhausted { .. }),
            "{error}"
        );
        assert_eq!(server.requests().len(), CHUNK_TRIES as usize);
    }
    let away = Answer::problem(ProblemCode::Unavailable);
    let mut answers = vec![away; 2 * CHUNK_TRIES as usize];
    answers.push(Answer::new(200, "chunk"));
    let server = Server::answering(answers).await;
    let client = client(&server, &Shutdown::default());
    assert_eq!(client.chunk(&row(b"chunk")).await.unwrap(), b"chunk");
}

#[tokio::test]
async fn an_anchor_is_submitted_with_its_elo_if_it_has_one() {
    let receipt = NetworkReceipt {
        hash: ContentHash::of(&[1]),
        number: NetworkNumber(1),
        status: NetworkStatus::Anchor,
        gate: None,
        duplicate: false,
    };
    let server = Server::answering(vec![Answer::json(&receipt)]).await;
    let (client, name) = (
        client(&server, &Shutdown::default()),
        "maia-1100".parse().unwrap(),
    );
    for elo in [None, Some(1100.0), Some(-12.5)] {
        let elo = elo.map(|elo| AnchorElo::new(elo).unwrap());
        let sent = client.submit_anchor(vec![1], &name, elo).await;
        assert_eq!(sent.unwrap(), receipt);
    }
    let asked = server.requests();
    let queries: Vec<_> = asked
        .iter()
        .map(|request| request.line.split_once('?').unwrap().1)
        .collect();
    let plain = "run=main&anchor=maia-1100";
    let with = |elo: &str| format!("{plain}&elo={elo}");
    assert_eq!(queries, [plain, &with("1100"), &with("-12.5")]);
}

#[tokio::test]
async fn a_refusal_for_good_is_not_tried_again() {
    for (code, remedy) in [
        (ProblemCode::Unauthorized, Remedy::Stop),
        (ProblemCode::NetworkRefused, Remedy::Drop),
    ] {
        let server = Server::answering(vec![Answer::problem(code)]).await;
        let error = client(&server, &Shutdown::default())
            .submit(vec![1])
            .await
            .unwrap_err();
        assert_eq!(error.remedy(), remedy);
        assert!(matches!(&error, CallError::Api(error) if error.code() == Some(code)));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_file_larger_than_the_ledger_says_is_refused_at_once() {
    let server = Server::answering(vec![Answer::new(200, vec![0; 1000])]).await;
    let mut row = row(&[0; 1000]);
    row.bytes = 999;
    let error = client(&server, &Shutdown::default())
        .chunk(&row)
        .await
        .unwrap_err();
    assert_eq!(error.remedy(), Remedy::Stop);
    assert!(error.to_string().contains("999 bytes"), "{error}");
}

#[tokio::test]
async fn a_newer_coordinators_answer_is_shown_to_the_operator() {
    let newer = Answer::new(200, "{}").with("content-type", "application/json");
    let server = Server::answering(vec![newer]).await;
    let error = client(&server, &Shutdown::default()).run().await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("this version understands"), "{text}");
}

#[tokio::test]
async fn a_page_that_comes_with_success_may_go_away() {
    let page = Answer::new(200, "<html>back in five minutes</html>")
        .with("content-type", "text/html; charset=utf-8");
    // The page is longer than the chunk.
    let good = Answer::new(200, "chunk");
    let server = Server::answering(vec![page.clone(), good]).await;
    let chunk = client(&server, &Shutdown::default())
        .chunk(&row(b"chunk"))
        .await;
    assert_eq!(chunk.unwrap(), b"chunk");
    assert_eq!(server.requests().len(), 2);
    let text = Answer::new(200, "please log in");
    let refused = Answer::problem(ProblemCode::NotFound);
    let server = Server::answering(vec![page, text, refused]).await;
    let run = client(&server, &Shutdown::default()).run().await;
    let error = run.unwrap_err();
    assert!(error.is_missing(), "{error}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_proxy_that_refuses_may_go_away() {
    let page = |status| Answer::new(status, "<html>").with("retry-after", "0");
    let mut answers: Vec<Answer> = [400, 401, 403, 404, 405, 408, 413, 425, 429]
        .map(page)
        .into();
    let pages = answers.len();
    answers.push(Answer::new(200, "chunk"));
    let server = Server::answering(answers).await;
    let client = client(&server, &Shutdown::default());
    assert_eq!(client.chunk(&row(b"chunk")).await.unwrap(), b"chunk");
    assert_eq!(server.requests().len(), pages + 1);
}

#[tokio::test]
async fn a_code_that_is_not_known_is_handled_by_its_status() {
    let unknown = |status| Answer {
        status,
        ..Answer::problem(ProblemCode::Unknown)
    };
    let server = Server::answering(vec![unknown(425), unknown(422)]).await;
    let error = client(&server, &Shutdown::default()).run().await;
    assert_eq!(error.unwrap_err().remedy(), Remedy::Drop);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn stopping_ends_the_attempts() {
    let away = Answer::problem(ProblemCode::Unavailable).with("retry-after", "3000");
    let shutdown = Shutdown::default();
    let stop = shutdown.clone();
    let server = Server::start(move |_| {
        stop.request();
        away.clone()
    })
    .await;
    let error = client(&server, &shutdown).run().await.unwrap_err();
    assert!(matches!(error, CallError::Stopped), "{error}");
}
