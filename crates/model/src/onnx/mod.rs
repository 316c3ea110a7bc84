//! Networks as ONNX models (<https://onnx.ai>), for other programs to run.
//!
//! A model has Lc0's names: input `/input/planes`, outputs `/output/policy` and `/output/wdl` or
//! `/output/value`. Its planes are those of `rookery_common::encoding` with counts undivided, its
//! policy are logits in the order of the policy encoding, its value is ready for use. Weights
//! have 32 bits and their normalisations are folded. `docs/formats.md` says more.

mod builder;
mod network;
mod wire;

#[cfg(test)]
mod tests;

use prost::Message as _;
use rookery_common::network::NetworkFileError;
use rookery_common::network::file::SPEC_KEY;

use self::wire::{ModelProto, OperatorSetIdProto, StringStringEntryProto};
use crate::error::Result;
use crate::weights::Weights;

/// Version 17 of the operators, as Lc0 writes it; runtimes of 2022 and later know them.
const OPERATORS: i64 = 17;

/// The version of the file's format that came with these operators.
const FORMAT: i64 = 8;

/// The bytes of a network's ONNX model; the same network always gives the same bytes.
///
/// # Errors
///
/// [`ModelError::NotComputable`](crate::ModelError::NotComputable) for numbers that are not finite once
/// their normalisation is folded.
pub fn to_bytes(weights: &Weights) -> Result<Vec<u8>> {
    let spec = serde_json::to_string(weights.spec())
        .map_err(|error| NetworkFileError::SpecSyntax(error.to_string()))?;
    let model = ModelProto {
        ir_version: Some(FORMAT),
        producer_name: Some("rookery".to_owned()),
        producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        graph: Some(network::graph(weights)?),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(OPERATORS),
        }],
        metadata_props: vec![StringStringEntryProto {
            key: Some(SPEC_KEY.to_owned()),
            value: Some(spec),
        }],
    };
    Ok(model.encode_to_vec())
}
