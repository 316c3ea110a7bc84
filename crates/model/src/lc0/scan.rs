//! A look at a file's protobuf before it is decoded: a decoded block takes hundreds of times the
//! bytes of an empty one, so blocks are counted first.

use bytes::{Buf as _, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::error::{Lc0Error, Lc0Result};

/// What a file consists of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Residual blocks.
    pub(super) blocks: u32,
    /// Encoder layers of an attention body.
    pub(super) encoders: u32,
    /// The number of a field of the weights that no residual network has.
    pub(super) foreign: Option<u32>,
}

/// `Net.weights`.
const WEIGHTS: u32 = 10;
/// `Weights.residual`.
const RESIDUAL: u32 = 2;
/// `Weights.encoder`.
const ENCODER: u32 = 27;

/// Whether a field of `Weights` belongs to residual networks: input, tower, heads, and the layers of
/// the moves-left head.
const fn is_residual(tag: u32) -> bool {
    matches!(tag, 1..=16 | 31 | 32)
}

/// Counts the parts of a `Net`.
pub(super) fn scan(net: &Bytes) -> Lc0Result<Contents> {
    let mut contents = Contents::default();
    each_field(net.clone(), &mut |tag, weights| match tag {
        WEIGHTS => each_field(weights, &mut |tag, _| {
            contents.count(tag);
            Ok(())
        }),
        _ => Ok(()),
    })?;
    Ok(contents)
}

impl Contents {
    fn count(&mut self, tag: u32) {
        if !is_residual(tag) {
            self.foreign.get_or_insert(tag);
        }
        match tag {
            RESIDUAL => self.blocks += 1,
            ENCODER => self.encoders += 1,
            _ => {}
        }
    }
}

/// Calls `visit` with the number and content of each length-delimited field of a message.
fn each_field(
    mut message: Bytes,
    visit: &mut impl FnMut(u32, Bytes) -> Lc0Result<()>,
) -> Lc0Result<()> {
    let broken = |error: DecodeError| Lc0Error::Schema(error.to_string());
    while message.has_remaining() {
        let (tag, wire) = decode_key(&mut message).map_err(broken)?;
        if wire != WireType::LengthDelimited {
            let context = DecodeContext::default();
            skip_field(wire, tag, &mut message, context).map_err(broken)?;
            continue;
        }
        let length = decode_varint(&mut message).map_err(broken)?;
        match usize::try_from(length) {
            Ok(length) if length <= message.len() => visit(tag, message.split_to(length))?,
            _ => {
                let reason = "a field is longer than its message";
                return Err(Lc0Error::Schema(reason.to_owned()));
            }
        }
    }
    Ok(())
}
