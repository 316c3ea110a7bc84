//! The network that comes with Rookery, in the form in which the board plays it.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use rookery_common::ids::ContentHash;
use rookery_model::{ModelError, included, onnx};
use serde_json::json;

/// The value of its option.
pub(super) const NAME: &str = included::NAME;

/// What the page offers.
struct Included {
    name: String,
    bytes: Bytes,
    /// What the board's `NetworkFile` says, as JSON.
    file: String,
}

/// None if the network cannot be exported, of which the log tells.
static INCLUDED: LazyLock<Option<Included>> = LazyLock::new(|| match export() {
    Ok(included) => Some(included),
    Err(error) => {
        tracing::error!("The network that comes with Rookery cannot be offered: {error}");
        None
    }
});

fn export() -> Result<Included, ModelError> {
    let weights = included::weights()?;
    let bytes = onnx::to_bytes(&weights)?;
    let (hash, spec) = (ContentHash::of(&bytes), weights.spec());
    let name = format!("{NAME}-{}.onnx", hash.short());
    let file = json!({
        "address": format!("/assets/included/{name}"),
        "sha256": hash.to_string(),
        "bytes": bytes.len(),
        "input": spec.input,
        "policy": spec.policy.encoding,
    });
    Ok(Included {
        name,
        bytes: bytes.into(),
        file: file.to_string(),
    })
}

/// Where its file is and how it is played, as JSON.
pub(super) fn file() -> Option<&'static str> {
    INCLUDED.as_ref().map(|included| included.file.as_str())
}

/// `GET /assets/included/{name}`
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    match INCLUDED.as_ref().filter(|included| included.name == name) {
        Some(included) => (
            [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ],
            included.bytes.clone(),
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
