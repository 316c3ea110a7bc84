//! The style sheet, the scripts, the icon and the picture, built into the program.
//!
//! Their addresses hold a hash of all of them, so that browsers may keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use rookery_common::ids::ContentHash;

/// Name, media type and content.
const ASSETS: [(&str, &str, &[u8]); 14] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_bytes!("../../assets/style.css"),
    ),
    (
        "theme.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/theme.js"),
    ),
    (
        "zoom.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/zoom.js"),
    ),
    (
        "notify.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/notify.js"),
    ),
    (
        "live.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/live.js"),
    ),
    (
        "copy.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/copy.js"),
    ),
    (
        "board.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/board.js"),
    ),
    (
        "live-boards.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/live-boards.js"),
    ),
    (
        "viewer.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/viewer.js"),
    ),
    (
        "trust.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/trust.js"),
    ),
    (
        "operator-log.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/operator-log.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("../../assets/icon.svg"),
    ),
    (
        "picture.svg",
        "image/svg+xml",
        include_bytes!("../../assets/picture.svg"),
    ),
    // The same for link previews, which show no SVG.
    (
        "picture.png",
        "image/png",
        include_bytes!("../../assets/picture.png"),
    ),
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<&[u8]> = ASSETS.iter().map(|(_, _, content)| *content).collect();
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
    let Some((_, media, content)) = ASSETS.iter().find(|(asset, _, _)| *asset == name) else {
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
            (header::CONTENT_TYPE, *media),
            (header::CACHE_CONTROL, cache),
        ],
        *content,
    )
        .into_response()
}
