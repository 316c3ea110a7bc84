//! Connections that break or stall: half a request counts for nothing and does no harm.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use anyhow::Context;
use rookery_tests::client::Client;
use rookery_tests::network;
use rookery_tests::on_all_stores;
use rookery_tests::params::tiny;
use rookery_tests::player::{Chunk, honest_chunk};
use rookery_tests::site::Site;
use rookery_tests::stores::Stores;

on_all_stores!(
    an_upload_that_is_cut_off_counts_nothing_and_can_be_repeated,
    an_answer_that_nobody_waits_for_is_found_later,
    uploads_that_stall_keep_nobody_waiting,
);

async fn site(stores: Stores) -> anyhow::Result<(Site, Client, Chunk)> {
    let site = Site::start_on(stores, &tiny()).await?;
    site.submit(&network::file("faults", 0)?).await?;
    let alice = site.client().register("alice").await?;
    let chunk = honest_chunk(&alice.job().await?.context("there is a job")?)?;
    Ok((site, alice, chunk))
}

/// Begins an upload and sends a part of the body.
fn begin_upload(
    site: &Site,
    client: &Client,
    chunk: &Chunk,
    bytes: usize,
) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(site.address())?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "PUT /api/v1/chunks/{} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
        chunk.hash,
        site.address(),
        client.token().context("a caller with a token")?,
        chunk.bytes.len()
    )?;
    stream.write_all(&chunk.bytes[..bytes])?;
    Ok(stream)
}

async fn an_upload_that_is_cut_off_counts_nothing_and_can_be_repeated(
    stores: Stores,
) -> anyhow::Result<()> {
    let (site, alice, chunk) = site(stores).await?;
    for bytes in [0, 1, chunk.bytes.len() / 2, chunk.bytes.len() - 1] {
        let stream = begin_upload(&site, &alice, &chunk, bytes)?;
        stream.shutdown(Shutdown::Both)?;
        assert_eq!(site.run().await?.chunks, 0, "after {bytes} bytes");
    }
    let receipt = alice
        .upload(&chunk)
        .await?
        .expect("the whole chunk is taken");
    assert!(!receipt.duplicate, "{receipt:?}");
    site.check_ledger()?;
    Ok(())
}

async fn an_answer_that_nobody_waits_for_is_found_later(stores: Stores) -> anyhow::Result<()> {
    let (site, alice, chunk) = site(stores).await?;
    // The whole request is sent, and the connection is gone before the answer.
    let stream = begin_upload(&site, &alice, &chunk, chunk.bytes.len())?;
    stream.shutdown(Shutdown::Both)?;
    let receipt = alice
        .upload(&chunk)
        .await?
        .expect("the chunk is taken or known");
    let run = site.run().await?;
    assert_eq!((run.chunks, run.games), (1, u64::from(receipt.games)));
    site.check_ledger()?;
    Ok(())
}

async fn uploads_that_stall_keep_nobody_waiting(stores: Stores) -> anyhow::Result<()> {
    let (site, alice, chunk) = site(stores).await?;
    let stalled: Vec<_> = (0..200)
        .map(|_| begin_upload(&site, &alice, &chunk, chunk.bytes.len() / 2))
        .collect::<anyhow::Result<_>>()?;
    let receipt = alice
        .upload(&chunk)
        .await?
        .expect("the whole chunk is taken");
    assert!(!receipt.duplicate, "{receipt:?}");
    alice.job().await?.context("there are more jobs")?;
    drop(stalled);
    site.check_ledger()?;
    Ok(())
}
