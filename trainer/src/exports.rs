//! Networks in the formats of other programs: made here, offered to the coordinator.

use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::networks::{ExportFormat, NetworkName};
use rookery_model::error::Result;
use rookery_model::{Weights, lc0, onnx};

use crate::api::{CallError, Client};

/// The bytes of a network's file in a format.
///
/// # Errors
///
/// If the format has no such network, or a number is not finite.
pub fn make(format: ExportFormat, weights: &Weights) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Lc0 => lc0::to_bytes(weights),
        ExportFormat::Onnx => onnx::to_bytes(weights),
    }
}

/// Tries of a call, under a minute in all: the next candidate's [`catch_up`] makes what is missing.
const TRIES: u32 = 6;
/// How many of a run's newest networks are looked at for exports that failed.
const LOOKED_AT: u32 = 10;

/// Whether the format has networks of this specification.
fn has(format: ExportFormat, spec: &NetworkSpec) -> bool {
    match format {
        ExportFormat::Lc0 => lc0::holds(spec),
        ExportFormat::Onnx => true,
    }
}

/// Hands a submitted network in again in every format that has such networks. An export is not
/// worth stopping for: one that is refused or fails too often is logged.
///
/// # Errors
///
/// [`CallError::Stopped`] if the user stops meanwhile.
pub async fn offer(client: &Client, network: ContentHash, weights: &Weights) -> anyhow::Result<()> {
    let formats = ExportFormat::ALL.into_iter();
    let formats = formats.filter(|format| has(*format, weights.spec()));
    let client = client.clone().with_tries(TRIES);
    offer_in(&client, network, weights, &formats.collect::<Vec<_>>()).await
}

async fn offer_in(
    client: &Client,
    network: ContentHash,
    weights: &Weights,
    formats: &[ExportFormat],
) -> anyhow::Result<()> {
    for format in formats {
        let name = format.name();
        let file = match make(*format, weights) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(
                    "network {} could not be exported as {name}: {error}",
                    network.short()
                );
                continue;
            }
        };
        match client.submit_export(network, *format, file).await {
            Ok(_) => tracing::debug!("submitted network {} for {name}", network.short()),
            Err(CallError::Stopped) => return Err(CallError::Stopped.into()),
            Err(error) => {
                tracing::warn!(
                    "the {name} export of network {} could not be submitted: {error}",
                    network.short()
                );
            }
        }
    }
    Ok(())
}

/// Makes the exports that are missing of the networks just before this one, whoever brought them in: what failed when they
/// were submitted may succeed now. It is not worth stopping for either.
///
/// # Errors
///
/// [`CallError::Stopped`] if the user stops meanwhile.
pub async fn catch_up(client: &Client, newest: NetworkNumber) -> anyhow::Result<()> {
    let client = client.clone().with_tries(TRIES);
    for number in (newest.0.saturating_sub(LOOKED_AT)..newest.0).rev() {
        if let Err(error) = complete(&client, NetworkNumber(number)).await {
            if matches!(error.downcast_ref(), Some(CallError::Stopped)) {
                return Err(error);
            }
            tracing::warn!("exports of network {number} could not be completed: {error:#}");
        }
    }
    Ok(())
}

/// Makes what is missing of one network.
async fn complete(client: &Client, number: NetworkNumber) -> anyhow::Result<()> {
    let info = client.network(NetworkName::Number(number)).await?;
    let there = |format: ExportFormat| info.exports.iter().any(|export| export.format == format);
    let missing = ExportFormat::ALL.into_iter();
    let missing: Vec<_> = missing
        .filter(|format| !there(*format) && has(*format, &info.spec))
        .collect();
    if missing.is_empty() || info.spec.program().is_some() {
        return Ok(());
    }
    tracing::info!("making the files of network {number} for other programs that are missing");
    let (_, weights) = Weights::from_bytes(&client.network_file(info.hash).await?)?;
    offer_in(client, info.hash, &weights, &missing).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rookery_cli::Shutdown;
    use rookery_client::testing::{Answer, Server};
    use rookery_common::protocol::ProblemCode;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn exports_that_always_fail_hold_nothing_up() {
        let (requests, shutdown) = (Arc::new(AtomicU32::new(0)), Shutdown::default());
        let (count, stop) = (Arc::clone(&requests), shutdown.clone());
        let server = Server::start(move |_| {
            if count.fetch_add(1, Ordering::SeqCst) > 10 * TRIES {
                stop.request();
            }
            Answer::problem(ProblemCode::Unavailable)
        });
        let server = server.await;
        let client = Client::new(&server.url, None, "main".parse().unwrap(), shutdown).unwrap();
        let (client, weights) = (client.impatient(), testing::network());
        offer(&client, ContentHash::of(b"network"), &weights)
            .await
            .unwrap();
        let formats = ExportFormat::ALL.len() as u32;
        assert_eq!(requests.load(Ordering::SeqCst), formats * TRIES);
    }
}
