//! An S3 server in the test's process, over a folder, that can be told to fail.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rookery_coordinator::blobs::{Downloads, ObjectBlobs};
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;

/// The bucket that there is.
const BUCKET: &str = "rookery";
const KEY: &str = "test-key";
const SECRET: &str = "test-secret";

/// How the server treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum S3Fault {
    /// They are served.
    None,
    /// It answers 500.
    Failing,
    /// It never answers.
    Hanging,
    /// It sends half of what was asked for, then cuts the connection.
    Cutting,
}

/// The server; it ends with the test's runtime.
pub(crate) struct S3 {
    address: SocketAddr,
    fault: Arc<AtomicU8>,
    folder: tempfile::TempDir,
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fault = Arc::new(AtomicU8::new(S3Fault::None as u8));
        tokio::spawn(serve(listener, service.build(), fault.clone()));
        Self {
            address,
            fault,
            folder,
        }
    }

    /// The address of a store of blobs in its bucket.
    pub(crate) fn url() -> String {
        format!("s3://{BUCKET}/some/prefix")
    }

    /// The settings for it, as variables of the environment.
    pub(crate) fn settings(&self) -> [(String, String); 6] {
        let settings = [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_TIMEOUT", "1 second".to_owned()),
        ];
        settings.map(|(name, value)| (name.to_owned(), value))
    }

    /// That store.
    pub(crate) fn blobs(&self, downloads: Downloads) -> ObjectBlobs {
        ObjectBlobs::open(&Self::url(), self.settings(), downloads).unwrap()
    }

    /// Where the objects of that store lie.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join(BUCKET).join("some/prefix")
    }

    /// How it treats requests from now on.
    pub(crate) fn set_fault(&self, fault: S3Fault) {
        self.fault.store(fault as u8, Ordering::Relaxed);
    }
}

async fn serve(listener: TcpListener, s3: S3Service, fault: Arc<AtomicU8>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (s3, fault) = (s3.clone(), fault.clone());
        let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (s3, fault) = (s3.clone(), fault.load(Ordering::Relaxed));
            async move { Ok::<_, Infallible>(answer(s3, fault, request.map(Body::from)).await) }
        });
        tokio::spawn(async move {
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // A client may go away.
            let _ = server.serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(s3: S3Service, fault: u8, request: hyper::Request<Body>) -> Response<Body> {
    let failure = || {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    };
    if fault == S3Fault::Failing as u8 {
        return failure();
    }
    if fault == S3Fault::Hanging as u8 {
        std::future::pending::<()>().await;
    }
    let cut = fault == S3Fault::Cutting as u8 && request.method() == Method::GET;
    let Ok(response) = s3.call(request).await else {
        return failure();
    };
    if !cut {
        return response;
    }
    let (parts, body) = response.into_parts();
    let whole = body.collect().await.unwrap().to_bytes();
    let half = whole.slice(..whole.len() / 2);
    let parts_sent = futures_util::stream::iter([
        Ok::<Bytes, std::io::Error>(half),
        Err(std::io::Error::other("cut")),
    ]);
    let body = http_body_util::StreamBody::new(parts_sent.map_ok(hyper::body::Frame::data));
    Response::from_parts(parts, Body::http_body(body))
}
