//! Downloading a network's file, from where an earlier attempt ended.

use std::path::Path;

use reqwest::{StatusCode, header};
use rookery_client::Body;
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_common::protocol::jobs::NetworkRef;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

use super::download::Progress;
use super::{NetworkError, at};
use crate::api::{ApiError, Client};

/// Brings `partial` to the network's full size, durably, and tells `progress`. Its content is not checked here.
pub(super) async fn fetch(
    client: &Client,
    network: &NetworkRef,
    partial: &Path,
    progress: &Progress,
) -> Result<(), NetworkError> {
    let NetworkRef { hash, bytes, .. } = *network;
    if !(1..=MAX_FILE_BYTES).contains(&bytes) {
        return Err(NetworkError::Size { hash, bytes });
    }
    let mut have = length_of(partial).await.min(bytes);
    if have < bytes {
        let response = request(client, network, have, partial).await?;
        if !continues_at(&response, have) {
            check_whole(&response, bytes)?;
            have = 0;
        }
        have = receive(response, network, have, partial, progress).await?;
    }
    if have < bytes {
        Err(NetworkError::Short { hash, have, bytes })
    } else {
        Ok(())
    }
}

async fn length_of(path: &Path) -> u64 {
    tokio::fs::metadata(path).await.map_or(0, |data| data.len())
}

/// Asks for the rest. Where the coordinator cannot give it, what is here is of no use.
async fn request(
    client: &Client,
    network: &NetworkRef,
    have: u64,
    partial: &Path,
) -> Result<Body, NetworkError> {
    let answer = client.network_file(network.hash, have).await;
    let unusable = |status| matches!(status, 412 | 416);
    match answer {
        Err(ApiError::Problem { problem, .. }) if have > 0 && unusable(problem.status) => {}
        Err(ApiError::Unexpected { status, .. }) if have > 0 && unusable(status) => {}
        other => return Ok(other?),
    }
    tokio::fs::remove_file(partial)
        .await
        .map_err(at("remove", partial))?;
    Ok(client.network_file(network.hash, 0).await?)
}

/// Whether the answer is the rest from byte `have` on, and not the whole file.
fn continues_at(response: &Body, have: u64) -> bool {
    let range = response
        .headers()
        .get(header::CONTENT_RANGE)
        .and_then(|value| value.to_str().ok());
    response.status() == StatusCode::PARTIAL_CONTENT
        && range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}

/// Checks that an answer seems to be the whole file of this size, before anything of it takes the
/// place of what is here.
fn check_whole(response: &Body, bytes: u64) -> Result<(), ApiError> {
    let what = match response.content_length() {
        _ if response.status() != StatusCode::OK => "neither the network nor its rest".to_owned(),
        Some(length) if length != bytes => format!("{length} bytes instead of {bytes}"),
        _ => return Ok(()),
    };
    Err(ApiError::stranger(response.status().as_u16(), &what, None))
}

/// Appends the answer's body from byte `have` on; gives the file's length.
async fn receive(
    mut response: Body,
    network: &NetworkRef,
    mut have: u64,
    partial: &Path,
    progress: &Progress,
) -> Result<u64, NetworkError> {
    let running = progress.begin(network, have);
    let mut file = open_at(partial, have).await?;
    let ended = loop {
        match response.chunk().await {
            Ok(Some(part)) => {
                have += part.len() as u64;
                if have > network.bytes {
                    drop(file);
                    tokio::fs::remove_file(partial)
                        .await
                        .map_err(at("remove", partial))?;
                    return Err(NetworkError::Long {
                        hash: network.hash,
                        bytes: network.bytes,
                    });
                }
                file.write_all(&part).await.map_err(at("write", partial))?;
                running.have(have);
            }
            Ok(None) => break Ok(have),
            Err(error) => break Err(error),
        }
    };
    file.flush().await.map_err(at("write", partial))?;
    file.sync_all().await.map_err(at("write", partial))?;
    let have = ended?;
    if have == network.bytes {
        running.complete();
    }
    Ok(have)
}

async fn open_at(path: &Path, length: u64) -> Result<File, NetworkError> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .append(true)
        .open(path)
        .await
        .map_err(at("open", path))?;
    file.set_len(length).await.map_err(at("shorten", path))?;
    Ok(file)
}
