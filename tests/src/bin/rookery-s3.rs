//! An S3 server over a folder, as a process of its own: a test can kill it at any moment, or give it trouble.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rookery_tests::s3::{KEY, SECRET};
use rookery_tests::s3_fault::{S3Fault, failure};
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpStream};

/// Serves the folders in a folder as S3 buckets, for tests of object stores.
#[derive(Debug, Parser)]
#[command(name = "rookery-s3", version)]
struct Cli {
    /// Listen at this address.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The folder; each folder in it is a bucket.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// A file that says how requests are treated: "None" (also without the file), "Failing", "Slow",
    /// "Cutting", "Short" or "Garbling", in quotes.
    #[arg(long, value_name = "FILE")]
    fault: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let files = s3s_fs::FileSystem::new(&cli.dir)
        .map_err(|error| anyhow::anyhow!("{}: {error:?}", cli.dir.display()))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service = service.build();
    let fault = Arc::new(cli.fault);
    let listener = TcpListener::bind(cli.listen)
        .await
        .with_context(|| format!("cannot listen at {}", cli.listen))?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(serve(socket, service.clone(), fault.clone()));
    }
}

async fn serve(socket: TcpStream, s3: S3Service, fault: Arc<PathBuf>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let (s3, fault) = (s3.clone(), fault.clone());
        async move {
            let request = request.map(Body::from);
            Ok::<_, Infallible>(match S3Fault::read(&fault) {
                Ok(fault) => fault.answer(&s3, request).await,
                Err(_) => failure(),
            })
        }
    });
    let server = Builder::new(TokioExecutor::new());
    // A client may go away.
    let _ = server.serve_connection(TokioIo::new(socket), answer).await;
}
