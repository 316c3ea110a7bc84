//! HTTP/1.1 on connections that the swarm opens and breaks as it likes.
//!
//! A client library would hide when it connects and retries; here both are what is measured.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// What the coordinator asks a client to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection was refused.
    Connect,
    /// The connection broke before the answer was whole.
    Broken,
    /// No answer in time.
    Timeout,
}

impl Failure {
    /// The name under which it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Broken => "broken",
            Self::Timeout => "timeout",
        }
    }
}

/// A request that can be sent again.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) token: HeaderValue,
    pub(crate) body: Bytes,
    pub(crate) content: &'static str,
}

impl Call {
    /// A JSON request.
    pub(crate) fn json(method: Method, path: &str, token: &HeaderValue, body: Bytes) -> Self {
        Self {
            method,
            path: format!("/api/v1{path}"),
            token: token.clone(),
            body,
            content: "application/json",
        }
    }

    /// A request with a file.
    pub(crate) fn file(method: Method, path: &str, token: &HeaderValue, body: Bytes) -> Self {
        let content = "application/octet-stream";
        Self {
            content,
            ..Self::json(method, path, token, body)
        }
    }

    fn request(&self, host: &HeaderValue) -> anyhow::Result<Request<Full<Bytes>>> {
        Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(HOST, host)
            .header(AUTHORIZATION, &self.token)
            .header(CONTENT_TYPE, HeaderValue::from_static(self.content))
            .body(Full::new(self.body.clone()))
            .context("the request is well-formed")
    }
}

/// The `Authorization` header of a token.
pub(crate) fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer {token}")).context("a token is a header's text")
}

/// A connection that is opened when it is needed and opened again after it broke.
pub(crate) struct Connection {
    address: SocketAddr,
    host: HeaderValue,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    /// A connection to be.
    pub(crate) fn new(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            address,
            host: HeaderValue::from_str(&address.to_string())?,
            sender: None,
        })
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn call(&mut self, call: &Call) -> Result<Reply, Failure> {
        let done = tokio::time::timeout(PATIENCE, self.exchange(call)).await;
        let reply = done.unwrap_or(Err(Failure::Timeout));
        if reply.is_err() {
            self.sender = None;
        }
        reply
    }

    async fn exchange(&mut self, call: &Call) -> Result<Reply, Failure> {
        let request = call.request(&self.host).map_err(|_| Failure::Broken)?;
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.open().await?,
        };
        sender.ready().await.map_err(|_| Failure::Broken)?;
        let answer = sender
            .send_request(request)
            .await
            .map_err(|_| Failure::Broken)?;
        let (head, body) = answer.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|_| Failure::Broken)?
            .to_bytes();
        self.sender = Some(sender);
        let seconds = head
            .headers
            .get(RETRY_AFTER)
            .and_then(|wait| wait.to_str().ok());
        Ok(Reply {
            status: head.status,
            body,
            retry_after: seconds
                .and_then(|s| s.parse().ok())
                .map(Duration::from_secs),
        })
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let stream = TcpStream::connect(self.address)
            .await
            .map_err(|_| Failure::Connect)?;
        // Without it, the kernel waits for more to send.
        stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|_| Failure::Broken)?;
        tokio::spawn(async move {
            // How a connection ends is seen by the request that it breaks.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Sends the head and half of the body on a connection of its own, and breaks it.
    pub(crate) async fn break_off(&self, call: &Call) -> Result<(), Failure> {
        let mut stream = TcpStream::connect(self.address)
            .await
            .map_err(|_| Failure::Connect)?;
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\ncontent-length: {}\r\n\r\n",
            call.method,
            call.path,
            self.address,
            call.token.to_str().map_err(|_| Failure::Broken)?,
            call.body.len()
        );
        let half = call.body.slice(..call.body.len() / 2);
        for part in [head.as_bytes(), &half] {
            stream.write_all(part).await.map_err(|_| Failure::Broken)?;
        }
        stream.shutdown().await.map_err(|_| Failure::Broken)
    }
}
