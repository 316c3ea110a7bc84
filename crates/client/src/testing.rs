//! A small HTTP server for tests of whatever asks a coordinator: a function from requests to answers, one request a
//! connection.

#![expect(clippy::unwrap_used, reason = "for tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rookery_common::protocol::{API_PREFIX, Problem, ProblemCode};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and address, for example `GET /api/v1/runs/main`.
    pub line: String,
    /// The headers; names are in lower case.
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Method and address without the API's prefix, for example `GET runs/main`.
    pub fn call(&self) -> String {
        self.line.replacen(&format!("{API_PREFIX}/"), "", 1)
    }
}

/// What goes back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// What `content-length` says, if it is there.
    pub length: Option<usize>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer without a type of its content.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            status,
            headers: Vec::new(),
            length: Some(body.len()),
            body,
        }
    }

    /// A good answer in JSON.
    ///
    /// # Panics
    ///
    /// If the value is nothing that JSON knows.
    pub fn json(value: &impl serde::Serialize) -> Self {
        Self::new(200, serde_json::to_vec(value).unwrap()).with("content-type", "application/json")
    }

    /// A coordinator's answer that tells of a problem.
    pub fn problem(code: ProblemCode) -> Self {
        Self {
            status: code.status(),
            ..Self::json(&Problem::new(code, "in a test"))
        }
    }

    /// The same answer with another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn to_bytes(&self) -> Vec<u8> {
        let length = self
            .length
            .map(|length| ("content-length", length.to_string()));
        let mut head = format!("HTTP/1.1 {} Test\r\nconnection: close\r\n", self.status);
        for (name, value) in self.headers.iter().chain(&length) {
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// A running server; it ends with the test's runtime.
#[derive(Debug)]
pub struct Server {
    /// Its address, for example `http://127.0.0.1:2000`.
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request as the function says.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let shared = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = shared.clone();
                tokio::spawn(serve(stream, log, answer));
            }
        });
        Self { url, requests }
    }

    /// Gives these answers one after the other, the last one for ever.
    pub async fn answering(answers: Vec<Answer>) -> Self {
        let count = AtomicUsize::new(0);
        Self::start(move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            answers[number.min(answers.len() - 1)].clone()
        })
        .await
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }
}

async fn serve(
    stream: TcpStream,
    log: Arc<Mutex<Vec<Request>>>,
    answer: Arc<impl Fn(&Request) -> Answer>,
) {
    let mut stream = BufReader::new(stream);
    if let Some(request) = read(&mut stream).await {
        log.lock().push(request.clone());
        // A client that has gone needs no answer.
        drop(stream.write_all(&answer(&request).to_bytes()).await);
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    // What speaks TLS is no request.
    let first = *stream.fill_buf().await.ok()?.first()?;
    if !first.is_ascii_uppercase() {
        return None;
    }
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Request {
        line,
        headers,
        body: Vec::new(),
    };
    let length = request.header("content-length");
    let length = length.map_or(Some(0), |length| length.parse().ok())?;
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}
