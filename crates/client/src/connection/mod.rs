//! Connections to one coordinator, and the requests that go over them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Method, RequestBuilder, Response, Url, header};
use rookery_common::protocol::upload_time;

use crate::address::Server;
use crate::answer;
use crate::body::Body;
use crate::error::{self, ApiError};
use crate::network::Network;
use crate::proxy::{self, Proxies, ProxyError};
use crate::redirect::{self, Lookup, PublicResolver};
use crate::token::Token;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an answer may stay silent. Counted from the beginning of the request, so it is not for
/// uploads.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Total timeout of an answer, as a multiple of the silence timeout; not for files.
const TRICKLE: u32 = 5;

/// A coordinator, and how it is asked; cheap to clone. Without state but its token and connection pools.
#[derive(Debug, Clone)]
pub struct Connection {
    http: reqwest::Client,
    /// For uploads, whose time depends on their size.
    uploads: reqwest::Client,
    /// For files at the coordinator itself.
    files: reqwest::Client,
    /// For files that the coordinator sends elsewhere for, by where it is itself. What else it is asked is never sent
    /// on: elsewhere the token does not go along.
    elsewhere: Arc<Mutex<BTreeMap<Network, reqwest::Client>>>,
    options: Arc<Options>,
    server: Server,
    token: Option<Token>,
}

/// A connection that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The environment names a proxy that cannot be used.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// TLS cannot be set up: in practice, the system has no certificates of authorities.
    #[error(
        "RK-0113: cannot set up TLS ({0}): install the system's certificates (Debian and Ubuntu: ca-certificates), or \
         name a file of certificates in SSL_CERT_FILE"
    )]
    Tls(#[from] reqwest::Error),
}

/// How clients of this connection are made.
#[derive(Clone)]
struct Options {
    program: String,
    read_timeout: Duration,
    proxies: &'static Proxies,
    lookup: Lookup,
    /// Where the coordinator counts as being, whatever its address.
    assumed: Option<Network>,
    /// Whose certificates are trusted.
    authorities: Authorities,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authorities {
    /// Those of the system. A client cannot be made if it has none.
    System,
    /// None: enough for a coordinator, and for storage, at addresses of http.
    None,
}

impl Options {
    fn new(program: &str) -> Result<Self, ProxyError> {
        Ok(Self {
            program: program.to_owned(),
            read_timeout: READ_TIMEOUT,
            proxies: Proxies::of_environment()?,
            lookup: redirect::system_lookup(),
            assumed: None,
            authorities: Authorities::System,
        })
    }

    /// Without certificates on the system, a coordinator that needs none can be reached all the same.
    fn for_server(self, server: &Server) -> Self {
        if server.is_encrypted() || self.client().build().is_ok() {
            return self;
        }
        Self {
            authorities: Authorities::None,
            ..self
        }
    }

    fn client(&self) -> ClientBuilder {
        let proxies = self.proxies;
        let proxy = move |url: &Url| proxies.proxy_for(url).map(|proxy| proxy.url().clone());
        // A proxy that obeys RFC 9110 does not compress then; `Body` undoes what others do.
        let identity = (
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        let client = match self.authorities {
            Authorities::System => ClientBuilder::new(),
            Authorities::None => ClientBuilder::new().tls_certs_only([]),
        };
        client
            .user_agent(&self.program)
            .default_headers(HeaderMap::from_iter([identity]))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::none())
            .no_proxy()
            .proxy(reqwest::Proxy::custom(proxy))
    }

    /// For where a coordinator in `from` sends downloads on to.
    fn client_elsewhere(&self, from: Network) -> reqwest::Result<reqwest::Client> {
        let resolver = PublicResolver {
            from,
            proxies: self.proxies,
            lookup: Arc::clone(&self.lookup),
        };
        self.client()
            .read_timeout(self.read_timeout)
            .dns_resolver(resolver)
            .build()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection to this coordinator, without a token yet. `program` is who asks, for example `rookery-worker/0.1.0`.
    ///
    /// # Errors
    ///
    /// If the environment names a proxy that cannot be used, or the coordinator needs TLS and the system has no
    /// certificates.
    pub fn new(server: Server, program: &str) -> Result<Self, SetupError> {
        Ok(Self::with_options(server, Options::new(program)?)?)
    }

    fn with_options(server: Server, options: Options) -> reqwest::Result<Self> {
        let options = options.for_server(&server);
        let read = options.read_timeout;
        Ok(Self {
            http: options
                .client()
                .read_timeout(read)
                .timeout(TRICKLE * read)
                .build()?,
            uploads: options.client().build()?,
            files: options.client().read_timeout(read).build()?,
            elsewhere: Arc::default(),
            options: Arc::new(options),
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

    /// Asks for a file from byte `offset` on. It may come from another host, which does not get the token, and which
    /// is in the contributor's own network only if the coordinator is there.
    ///
    /// # Errors
    ///
    /// [`ApiError`].
    pub async fn download(
        &self,
        path: &str,
        query: &[(&str, String)],
        offset: u64,
    ) -> error::Result<Body> {
        let ranged = |request: RequestBuilder| match offset {
            0 => request,
            _ => request.header(header::RANGE, format!("bytes={offset}-")),
        };
        let first = ranged(self.request_by(&self.files, Method::GET, path, query));
        let mut response = first.send().await?;
        let from = self.network_of(&response);
        for hop in 0.. {
            let Some(next) = redirect::target(&response) else {
                break;
            };
            let objection = if hop == redirect::HOPS {
                Some("the download was sent on more than three times".to_owned())
            } else {
                redirect::objection(response.url(), &next, from, self.options.proxies)
            };
            if let Some(detail) = objection {
                let (status, retry_after) =
                    (response.status().as_u16(), answer::retry_after(&response));
                return Err(ApiError::Unexpected {
                    status,
                    detail,
                    retry_after,
                });
            }
            response = ranged(self.elsewhere(from)?.get(next)).send().await?;
        }
        Body::new(answer::check(response).await?)
    }

    /// Where the coordinator is that gave this answer. A proxy hides it, unless the address itself tells.
    fn network_of(&self, response: &Response) -> Network {
        let url = response.url();
        let host = url.host_str().and_then(proxy::address);
        let peer = match self.options.proxies.proxy_for(url) {
            Some(_) => None,
            None => response.remote_addr().map(|peer| peer.ip()),
        };
        let seen = peer.or(host).map_or(Network::Public, Network::of);
        self.options.assumed.unwrap_or(seen)
    }

    /// The client for redirects of a coordinator in `from`.
    fn elsewhere(&self, from: Network) -> reqwest::Result<reqwest::Client> {
        let mut clients = self.elsewhere.lock();
        if let Some(client) = clients.get(&from) {
            return Ok(client.clone());
        }
        let client = self.options.client_elsewhere(from)?;
        clients.insert(from, client.clone());
        Ok(client)
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
