//! Network files that are not evaluated: the right shape, and zeros.

use rookery_common::network::file::SPEC_KEY;
use rookery_common::network::{NetworkSpec, tensors};
use serde_json::{Map, Value, json};

/// The file of a small network, of which only creator and training step tell it from others.
///
/// # Errors
///
/// If its specification cannot be written.
pub fn file(creator: &str, training_step: u64) -> anyhow::Result<Vec<u8>> {
    let mut spec = NetworkSpec::from_shape("2x16")?;
    spec.creator = creator.to_owned();
    spec.training_step = training_step;
    let mut header = Map::new();
    let spec_text = serde_json::to_string(&spec)?;
    header.insert("__metadata__".to_owned(), json!({ SPEC_KEY: spec_text }));
    let mut offset = 0;
    for tensor in tensors(&spec) {
        let end = offset + 4 * tensor.elements();
        let entry = json!({ "dtype": "F32", "shape": tensor.shape, "data_offsets": [offset, end] });
        header.insert(tensor.name, entry);
        offset = end;
    }
    let header = serde_json::to_vec(&Value::Object(header))?;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.resize(bytes.len() + offset as usize, 0);
    Ok(bytes)
}
