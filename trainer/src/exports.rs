//! Networks in the formats of other programs: made here, offered to the coordinator.

use rookery_common::ids::ContentHash;
use rookery_common::protocol::networks::ExportFormat;
use rookery_nn::error::Result;
use rookery_nn::lc0::Lc0Error;
use rookery_nn::{NnError, Weights, lc0, onnx};

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

/// Hands a submitted network in again in every format that has such networks. An export is not
/// worth stopping for: one that is refused is logged.
///
/// # Errors
///
/// [`CallError::Stopped`] if the user stops meanwhile.
pub async fn offer(client: &Client, network: ContentHash, weights: &Weights) -> anyhow::Result<()> {
    for format in ExportFormat::ALL {
        let name = format.name();
        let file = match make(format, weights) {
            Ok(file) => file,
            Err(NnError::Lc0(Lc0Error::NotInLc0 { .. })) => continue,
            Err(error) => {
                tracing::warn!("no {name} file of network {}: {error}", network.short());
                continue;
            }
        };
        match client.submit_export(network, format, file).await {
            Ok(_) => tracing::debug!("submitted network {} for {name}", network.short()),
            Err(CallError::Stopped) => return Err(CallError::Stopped.into()),
            Err(error) => {
                tracing::warn!("the {name} file of network {}: {error}", network.short());
            }
        }
    }
    Ok(())
}
