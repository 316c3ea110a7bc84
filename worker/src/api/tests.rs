//! Tests of the client against small servers.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;

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
    let patience = Duration::from_millis(50);
    let client = Client::with_read_timeout(server.parse().unwrap(), patience).unwrap();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.upload(hash, b"chunk".to_vec()).await }
    });
    began.await.unwrap();
    // This call began later and is over before the upload is answered.
    let silent = client.runs().await.unwrap_err();
    assert!(matches!(silent, ApiError::Unreachable(_)), "{silent}");
    let_go.send(()).unwrap();
    assert_eq!(sending.await.unwrap().unwrap(), receipt);
}
