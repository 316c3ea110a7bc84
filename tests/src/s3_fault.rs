//! How an S3 server treats its callers: well, or as stores do that have trouble.

use std::io::ErrorKind;
use std::path::Path;

use futures_util::TryStreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use s3s::Body;
use s3s::service::S3Service;
use serde::{Deserialize, Serialize};

/// How a server treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum S3Fault {
    /// They are served.
    None,
    /// It answers 500.
    Failing,
    /// They wait until there is another fault, or none.
    Hanging,
    /// It sends half of what is read, then cuts the connection.
    Cutting,
    /// It sends half of what is read as if that were all.
    Short,
    /// It sends half of what is read, and zeros for the rest.
    Garbling,
}

impl S3Fault {
    /// The fault that a file names; without the file there is none.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or holds something else.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        match std::fs::read(file) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::None),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts it into a file, whole at any moment.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(self, file: &Path) -> anyhow::Result<()> {
        let partial = file.with_extension("partial");
        std::fs::write(&partial, serde_json::to_vec(&self)?)?;
        Ok(std::fs::rename(&partial, file)?)
    }

    /// The answer of a server with this fault.
    pub async fn answer(self, s3: &S3Service, request: Request<Body>) -> Response<Body> {
        if self == Self::Failing {
            return failure();
        }
        let is_read = request.method() == Method::GET;
        match s3.call(request).await {
            Ok(response) if is_read => self.spoil(response).await,
            Ok(response) => response,
            Err(_) => failure(),
        }
    }

    /// What this fault makes of something that is read.
    async fn spoil(self, response: Response<Body>) -> Response<Body> {
        if matches!(self, Self::None | Self::Failing | Self::Hanging) {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(whole) = body.collect().await else {
            return failure();
        };
        let whole = whole.to_bytes();
        let half = whole.slice(..whole.len() / 2);
        let body = match self {
            Self::Cutting => cut(half),
            Self::Garbling => {
                let mut bytes = half.to_vec();
                bytes.resize(whole.len(), 0);
                Body::from(bytes)
            }
            _ => {
                let length = HeaderValue::from(half.len());
                parts.headers.insert(CONTENT_LENGTH, length);
                Body::from(half)
            }
        };
        Response::from_parts(parts, body)
    }
}

/// A body that breaks off after these bytes.
fn cut(bytes: Bytes) -> Body {
    let parts = [Ok(bytes), Err(std::io::Error::other("cut"))];
    let stream = futures_util::stream::iter(parts);
    Body::http_body(StreamBody::new(stream.map_ok(Frame::data)))
}

/// The answer where something went wrong.
pub(crate) fn failure() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}
