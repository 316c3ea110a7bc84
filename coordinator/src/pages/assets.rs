//! The style sheet, the scripts, the icon and the picture, built into the program.
//!
//! Their addresses hold a hash of all of them, so that browsers may keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use rookery_common::ids::ContentHash;

macro_rules! assets {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_bytes!(concat!("../../assets/", $name)) as &[u8])),+]
    };
}

/// Name and content.
const ASSETS: [(&str, &[u8]); 14] = assets![
    "style.css",
    "theme.js",
    "zoom.js",
    "notify.js",
    "live.js",
    "copy.js",
    "board.js",
    "live-boards.js",
    "viewer.js",
    "trust.js",
    "operator-log.js",
    "icon.svg",
    "picture.svg",
    // The same for link previews, which show no SVG.
    "picture.png",
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<&[u8]> = ASSETS.iter().map(|(_, content)| *content).collect();
    ContentHash::of(&all.concat()).short()
});

/// The address of an asset.
pub(super) fn path(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

/// Leads to the icon from where browsers look for one that no page has told of it.
pub(super) async fn icon() -> Redirect {
    Redirect::permanent(&path("icon.svg"))
}

/// What search engines need not fetch: pages say all that the API says.
pub(super) async fn robots() -> &'static str {
    "User-agent: *\nDisallow: /api/\n"
}

/// Serves an asset under any version: a page that was loaded before an update gets the new one.
pub(super) async fn serve(Path((version, name)): Path<(String, String)>) -> Response {
    let Some((_, content)) = ASSETS.iter().find(|(asset, _)| *asset == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let current = version == *VERSION;
    let cache = if current {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    (
        [
            (header::CONTENT_TYPE, media_type(&name)),
            (header::CACHE_CONTROL, cache),
        ],
        *content,
    )
        .into_response()
}

/// By the ending of a file's name.
pub(super) fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}
