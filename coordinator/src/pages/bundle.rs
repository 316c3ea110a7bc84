//! The board of the page "Play", built from `coordinator/web` and embedded by `build.rs`.
//!
//! Names hold a hash of the content, so that browsers may keep the files for ever. They are embedded compressed, by
//! brotli and by gzip, and are sent as they are.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::assets::media_type;
use super::play::{CONTENT_SECURITY_POLICY, ISOLATION};

struct File {
    name: &'static str,
    brotli: &'static [u8],
    gzip: &'static [u8],
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/bundle.rs"));

/// The addresses of what the page loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) script: String,
    pub(super) style: String,
    /// Licences of what the bundle is made of.
    pub(super) licenses: String,
}

/// What the page loads; none if the coordinator was built without the board.
pub(super) fn entry() -> Option<Entry> {
    let address = |start: &str, ending: &str| {
        let mut names = FILES.iter().map(|file| file.name);
        let name = names.find(|name| name.starts_with(start) && name.ends_with(ending))?;
        Some(format!("/assets/board/{name}"))
    };
    Some(Entry {
        script: address("play-", ".js")?,
        style: address("", ".css")?,
        licenses: address("licenses", ".txt")?,
    })
}

/// `GET /assets/board/{name}`
pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.map(|value| value.to_str().unwrap_or_default());
    let (encoding, content) = match accepted {
        Some(list) if accepts(list, "br") => ("br", file.brotli),
        Some(list) if !accepts(list, "gzip") => return StatusCode::NOT_ACCEPTABLE.into_response(),
        _ => ("gzip", file.gzip),
    };
    (
        [
            (header::CONTENT_TYPE, media_type(file.name)),
            (header::CONTENT_ENCODING, encoding),
            (header::VARY, "accept-encoding"),
            (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            // A web worker has the policies of its own script.
            (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        ],
        ISOLATION,
        content,
    )
        .into_response()
}

/// Whether an `Accept-Encoding` names an encoding and does not rule it out (RFC 9110, section 12.5.3).
fn accepts(list: &str, encoding: &str) -> bool {
    list.split(',').any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        let is_named = name.trim().eq_ignore_ascii_case(encoding) || name.trim() == "*";
        is_named && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_read_with_their_weights() {
        assert!(accepts("gzip, deflate, br, zstd", "br"));
        assert!(accepts("GZIP;q=0.5", "gzip"));
        assert!(accepts("*", "br"));
        for list in ["", "gzip", "br;q=0", "br; q=0.000, gzip", "brotli"] {
            assert!(!accepts(list, "br"), "{list}");
        }
    }

    #[test]
    fn a_visitor_never_fetches_more_than_six_megabytes() {
        let bytes: usize = FILES.iter().map(|file| file.brotli.len()).sum();
        assert!(bytes < 6_000_000, "{bytes} bytes by brotli");
    }

    #[tokio::test]
    async fn files_are_sent_compressed_and_may_be_kept() {
        let unknown = serve(Path("none.js".to_owned()), HeaderMap::new()).await;
        assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
        for file in FILES {
            for (accepted, expected) in [
                (Some("gzip, br"), "br"),
                (Some("gzip"), "gzip"),
                (None, "gzip"),
            ] {
                let mut headers = HeaderMap::new();
                headers
                    .extend(accepted.map(|list| (header::ACCEPT_ENCODING, list.parse().unwrap())));
                let answer = serve(Path(file.name.to_owned()), headers).await;
                assert_eq!(answer.status(), StatusCode::OK, "{}", file.name);
                assert_eq!(answer.headers()[header::CONTENT_ENCODING], expected);
                assert!(
                    answer.headers()[header::CACHE_CONTROL]
                        .to_str()
                        .unwrap()
                        .contains("immutable")
                );
            }
            let mut plain = HeaderMap::new();
            plain.insert(header::ACCEPT_ENCODING, "identity".parse().unwrap());
            let refused = serve(Path(file.name.to_owned()), plain).await;
            assert_eq!(refused.status(), StatusCode::NOT_ACCEPTABLE);
        }
        assert_eq!(entry().is_some(), !FILES.is_empty());
    }
}
