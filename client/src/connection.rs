//! Connections to one coordinator, and the requests that go over them.

use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, header};
use rookery_common::protocol::upload_time;

use crate::address::Server;
use crate::redirect;
use crate::token::Token;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an answer may stay silent. Counted from the beginning of the request, so it is not for
/// uploads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// So many times as long as an answer may stay silent it may take in all, files excepted.
const TRICKLE: u32 = 5;

/// A coordinator, and how it is asked; cheap to clone. Without state but its token and connection pools.
#[derive(Debug, Clone)]
pub struct Connection {
    http: reqwest::Client,
    /// For uploads, whose time depends on their size.
    uploads: reqwest::Client,
    /// For files, which may be somewhere else. What else a coordinator is asked is never sent on: elsewhere the token
    /// does not go along.
    files: reqwest::Client,
    server: Server,
    token: Option<Token>,
}

impl Connection {
    /// A connection to this coordinator, without a token yet. `program` is who asks, for example `rookery-worker/0.1.0`.
    ///
    /// # Errors
    ///
    /// If the system's TLS or resolver cannot be set up.
    pub fn new(server: Server, program: &str) -> reqwest::Result<Self> {
        Self::with_read_timeout(server, program, READ_TIMEOUT)
    }

    fn with_read_timeout(server: Server, program: &str, read: Duration) -> reqwest::Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                .user_agent(program)
                .connect_timeout(CONNECT_TIMEOUT)
        };
        Ok(Self {
            http: builder()
                .redirect(Policy::none())
                .read_timeout(read)
                .timeout(TRICKLE * read)
                .build()?,
            uploads: builder().redirect(Policy::none()).build()?,
            files: builder()
                .redirect(redirect::policy(&server))
                .read_timeout(read)
                .build()?,
            server,
            token: None,
        })
    }

    /// The same connection with a token.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// The coordinator's address.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// A call of the API.
    pub fn request(&self, method: Method, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        self.request_by(&self.http, method, path, query)
    }

    /// A call that sends a file, with as much time as the file's size needs.
    pub fn upload(&self, path: &str, query: &[(&str, String)], file: Bytes) -> RequestBuilder {
        self.request_by(&self.uploads, Method::PUT, path, query)
            .timeout(upload_time(file.len()))
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(file)
    }

    /// A call that is answered with a file. It may come from another host, which does not get the token.
    pub fn download(&self, path: &str, query: &[(&str, String)]) -> RequestBuilder {
        self.request_by(&self.files, Method::GET, path, query)
    }

    fn request_by(
        &self,
        http: &reqwest::Client,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let request = http.request(method, self.server.api(path, query));
        match &self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }
}

#[cfg(test)]
mod tests;
