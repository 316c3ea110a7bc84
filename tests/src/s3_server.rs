//! An S3 server over a folder, in the test's own process or in that of `rookery-s3`.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpStream};

use crate::s3::{KEY, SECRET};
use crate::s3_fault::{S3Fault, failure};

/// Between two looks whether requests still hang.
const LOOK: Duration = Duration::from_millis(10);

/// Serves each folder in `folder` as a bucket. `fault` says for each request how it is treated.
///
/// # Errors
///
/// If the folder cannot be served, or no more connections can be accepted.
pub async fn serve<F>(listener: TcpListener, folder: &Path, fault: F) -> anyhow::Result<Infallible>
where
    F: Fn() -> anyhow::Result<S3Fault> + Clone + Send + 'static,
{
    let files = s3s_fs::FileSystem::new(folder)
        .map_err(|error| anyhow!("{}: {error:?}", folder.display()))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service = service.build();
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve_connection(socket, service.clone(), fault.clone()));
    }
}

async fn serve_connection<F>(socket: TcpStream, s3: S3Service, fault: F)
where
    F: Fn() -> anyhow::Result<S3Fault> + Clone + Send + 'static,
{
    let answer = service_fn(move |request: Request<Incoming>| {
        let (s3, fault) = (s3.clone(), fault.clone());
        async move {
            let request = request.map(Body::from);
            Ok::<_, Infallible>(match in_turn(fault).await {
                Ok(fault) => fault.answer(&s3, request).await,
                Err(_) => failure(),
            })
        }
    });
    let server = Builder::new(TokioExecutor::new());
    // A client may go away.
    let _ = server.serve_connection(TokioIo::new(socket), answer).await;
}

/// How a request is treated that may have to wait for that.
async fn in_turn(fault: impl Fn() -> anyhow::Result<S3Fault>) -> anyhow::Result<S3Fault> {
    loop {
        match fault()? {
            S3Fault::Hanging => tokio::time::sleep(LOOK).await,
            other => return Ok(other),
        }
    }
}
