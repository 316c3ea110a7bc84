//! A small HTTP server for tests: a function from requests to answers, one request a connection.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Method and address, for example `GET /api/v1/runs/main`.
    pub(crate) line: String,
    /// The `authorization` header.
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// What goes back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) header: Option<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            header: None,
            body,
        }
    }

    pub(crate) fn json(value: &impl serde::Serialize) -> Self {
        Self::bytes(serde_json::to_vec(value).unwrap())
    }

    pub(crate) fn problem(code: rookery_common::protocol::ProblemCode) -> Self {
        let problem = rookery_common::protocol::Problem::new(code, "in a test");
        Self {
            status: code.status(),
            ..Self::json(&problem)
        }
    }
}

/// A running server; it ends when dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(handler: impl Fn(Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let handler = Arc::new(handler);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let handler = Arc::clone(&handler);
                tokio::spawn(async move { serve(stream, &*handler).await });
            }
        });
        Self { url, task }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, handler: &(impl Fn(Request) -> Answer + ?Sized)) {
    if let Some(request) = read(&mut stream).await {
        let answer = handler(request);
        let header = answer
            .header
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "HTTP/1.1 {} Test\r\nconnection: close\r\ncontent-length: {}\r\n{}\r\n",
            answer.status,
            answer.body.len(),
            header.unwrap_or_default()
        );
        // A client that has gone needs no answer.
        let _ = stream
            .write_all(&[head.as_bytes(), &answer.body].concat())
            .await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut authorization) = (String::new(), 0, None);
    reader.read_line(&mut line).await.ok()?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(Request {
        line,
        authorization,
        body,
    })
}
