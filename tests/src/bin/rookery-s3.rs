//! An S3 server over a folder, as a process of its own: a test can kill it at any moment, or give it trouble.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use rookery_tests::s3_fault::S3Fault;
use rookery_tests::s3_server::serve;
use tokio::net::TcpListener;

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
    /// A file that says how requests are treated: "None" (also without the file), "Failing", "Hanging",
    /// "Cutting", "Short" or "Garbling", in quotes.
    #[arg(long, value_name = "FILE")]
    fault: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let listener = TcpListener::bind(cli.listen)
        .await
        .with_context(|| format!("cannot listen at {}", cli.listen))?;
    match serve(listener, &cli.dir, move || S3Fault::read(&cli.fault)).await? {}
}
