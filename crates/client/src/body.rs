//! Bodies of answers, part by part, decompressed where a proxy compressed them unasked.

use std::fmt::Display;
use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use reqwest::{Response, StatusCode};
use rookery_common::text::printable;

use crate::error::{ApiError, Result};

/// Compressed bytes that are decompressed at once: at most 4 MiB come out.
const STEP: usize = 4 << 10;
/// Most characters of a header that are shown.
const SHOWN: usize = 60;

/// An answer whose body is read part by part.
#[derive(Debug)]
pub struct Body {
    response: Response,
    encoding: Encoding,
}

#[derive(Debug)]
enum Encoding {
    Identity,
    Gzip {
        decoder: Box<MultiGzDecoder<Vec<u8>>>,
        /// What has come and was not decompressed yet.
        waiting: Bytes,
    },
}

impl Body {
    /// The answer's body.
    ///
    /// # Errors
    ///
    /// If it is compressed by a method other than gzip. Requests ask for none.
    pub fn new(response: Response) -> Result<Self> {
        let headers = response.headers().get_all(CONTENT_ENCODING);
        let named = headers
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        let named = named.collect::<Vec<_>>().join(", ").to_ascii_lowercase();
        let encoding = match named.trim() {
            "" | "identity" => Encoding::Identity,
            "gzip" | "x-gzip" => Encoding::Gzip {
                decoder: Box::new(MultiGzDecoder::new(Vec::new())),
                waiting: Bytes::new(),
            },
            other => {
                let what = format!(
                    "RK-0105: it is compressed (Content-Encoding: {}), though the request had Accept-Encoding: identity",
                    printable(other, SHOWN)
                );
                return Err(ApiError::stranger(response.status().as_u16(), &what, None));
            }
        };
        Ok(Self { response, encoding })
    }

    /// The answer's status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The answer's headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The number of bytes in the body, if the answer tells it.
    pub fn content_length(&self) -> Option<u64> {
        match self.encoding {
            Encoding::Identity => self.response.content_length(),
            Encoding::Gzip { .. } => None,
        }
    }

    /// The next part; none at the end.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or what came is not what its header says.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let status = self.response.status().as_u16();
        let Encoding::Gzip { decoder, waiting } = &mut self.encoding else {
            return Ok(self.response.chunk().await?);
        };
        let damaged = |error: &dyn Display| {
            let what =
                format!("its Content-Encoding is gzip, and it cannot be decompressed ({error})");
            ApiError::stranger(status, &what, None)
        };
        loop {
            if waiting.is_empty() {
                let Some(part) = self.response.chunk().await? else {
                    decoder.try_finish().map_err(|error| damaged(&error))?;
                    return Ok(take(decoder.get_mut()));
                };
                *waiting = part;
            }
            let step = &waiting[..waiting.len().min(STEP)];
            let used = decoder.write(step).map_err(|error| damaged(&error))?;
            waiting.advance(used);
            if let Some(part) = take(decoder.get_mut()) {
                return Ok(Some(part));
            }
            if used == 0 && !waiting.is_empty() {
                return Err(damaged(&"more follows its end"));
            }
        }
    }
}

/// What was decompressed, if anything was.
fn take(out: &mut Vec<u8>) -> Option<Bytes> {
    (!out.is_empty()).then(|| Bytes::from(std::mem::take(out)))
}
