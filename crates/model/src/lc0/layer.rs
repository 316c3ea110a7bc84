//! Layers: arrays of numbers in one of Lc0's encodings.

use bytes::Bytes;
use half::{bf16, f16};

use super::error::{Lc0Error, Lc0Result};
use super::wire::weights::Layer;
use super::wire::weights::layer::Encoding;

/// The largest number of LINEAR16.
const STEPS: f64 = 65_535.0;

/// A layer with its name, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    name: &'a str,
    layer: &'a Layer,
    encoding: Encoding,
}

/// The layer, unless it is missing or empty. Without an encoding of its own it is LINEAR16: the
/// only one that files could name before layers could.
pub(super) fn optional<'a>(
    layer: Option<&'a Layer>,
    name: &'a str,
) -> Result<Option<Named<'a>>, Lc0Error> {
    let Some(layer) = layer.filter(|layer| !layer.params().is_empty()) else {
        return Ok(None);
    };
    let number = layer.encoding.unwrap_or(Encoding::Linear16.into());
    let encoding = Encoding::try_from(number)
        .ok()
        .filter(|encoding| *encoding != Encoding::UnknownEncoding)
        .ok_or_else(|| Lc0Error::NotSupported {
            what: "a layer's encoding",
            found: number.to_string(),
            supported: "LINEAR16 (1), FLOAT16 (2), BFLOAT16 (3) and FLOAT32 (4)",
        })?;
    Ok(Some(Named {
        name,
        layer,
        encoding,
    }))
}

/// The layer, which must be there.
pub(super) fn required<'a>(layer: Option<&'a Layer>, name: &'a str) -> Lc0Result<Named<'a>> {
    optional(layer, name)?.ok_or_else(|| Lc0Error::Missing(name.to_owned()))
}

impl Named<'_> {
    const fn width(&self) -> usize {
        match self.encoding {
            Encoding::Float32 => 4,
            _ => 2,
        }
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.layer.params().len() / self.width()
    }

    /// How many times `unit` numbers there are, at least once.
    pub(super) fn multiple_of(&self, unit: usize) -> Lc0Result<u32> {
        let numbers = self.len();
        let refuse = || Lc0Error::Shape {
            layer: self.name.to_owned(),
            numbers,
            unit,
        };
        if numbers == 0 || unit == 0 || !numbers.is_multiple_of(unit) {
            return Err(refuse());
        }
        u32::try_from(numbers / unit).map_err(|_| refuse())
    }

    /// The numbers: exactly `count`, all finite.
    pub(super) fn numbers(&self, count: usize) -> Lc0Result<Vec<f32>> {
        let params = self.layer.params();
        if params.len() != count * self.width() {
            return Err(Lc0Error::Length {
                layer: self.name.to_owned(),
                found: params.len(),
                expected: count * self.width(),
            });
        }
        let pairs = params.as_chunks::<2>().0.iter();
        let numbers: Vec<f32> = match self.encoding {
            Encoding::Float32 => {
                let fours = params.as_chunks::<4>().0.iter();
                fours.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            Encoding::Float16 => pairs.map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            Encoding::Bfloat16 => pairs.map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
            Encoding::Linear16 | Encoding::UnknownEncoding => {
                let (low, high) = (self.layer.min_val(), self.layer.max_val());
                let (low, high) = (f64::from(low), f64::from(high));
                let number = |step| (low + (high - low) * (f64::from(step) / STEPS)) as f32;
                pairs.map(|b| number(u16::from_le_bytes(*b))).collect()
            }
        };
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(numbers)
        } else {
            Err(self.holds("a number that is not finite"))
        }
    }

    /// The error that the layer holds something that it must not.
    pub(super) fn holds(&self, what: &'static str) -> Lc0Error {
        Lc0Error::Value {
            layer: self.name.to_owned(),
            what,
        }
    }
}

/// Numbers as LINEAR16, the only encoding that every version of Lc0 reads: an error of at most
/// `(max - min) / 131070`.
pub(super) fn linear16(numbers: &[f32]) -> Layer {
    let low = numbers.iter().copied().fold(f32::INFINITY, f32::min);
    let high = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (from, range) = (f64::from(low), f64::from(high) - f64::from(low));
    let step = |number: f32| {
        let share = (f64::from(number) - from) / range;
        // All numbers are equal where the range is 0.
        if range > 0.0 {
            (share * STEPS).round() as u16
        } else {
            0
        }
    };
    let params: Vec<u8> = numbers
        .iter()
        .flat_map(|number| step(*number).to_le_bytes())
        .collect();
    Layer {
        min_val: Some(low),
        max_val: Some(high),
        params: Some(Bytes::from(params)),
        encoding: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(layer: &Layer, count: usize) -> Lc0Result<Vec<f32>> {
        required(Some(layer), "x")?.numbers(count)
    }

    fn encoded(encoding: Encoding, bytes: &[u8]) -> Layer {
        Layer {
            params: Some(Bytes::copy_from_slice(bytes)),
            encoding: Some(encoding.into()),
            ..Layer::default()
        }
    }

    #[test]
    fn linear16_keeps_its_ends_and_errs_by_half_a_step() {
        let numbers = [-2.0, -1.999_99, 0.0, 0.123_456, 3.0];
        let layer = linear16(&numbers);
        let read = read(&layer, 5).unwrap();
        assert_eq!((read[0], read[4]), (-2.0, 3.0));
        for (a, b) in numbers.iter().zip(&read) {
            assert!((a - b).abs() <= 5.0 / 131_070.0, "{a} became {b}");
        }
        assert_eq!(linear16(&read).params, layer.params, "not stable");
        let same = linear16(&[0.7; 3]);
        assert_eq!(super::tests::read(&same, 3).unwrap(), [0.7; 3]);
    }

    #[test]
    fn every_encoding_is_read() {
        let float = encoded(Encoding::Float32, &1.5_f32.to_le_bytes());
        assert_eq!(read(&float, 1).unwrap(), [1.5]);
        let half = encoded(Encoding::Float16, &f16::from_f32(-0.25).to_le_bytes());
        assert_eq!(read(&half, 1).unwrap(), [-0.25]);
        let brain = encoded(Encoding::Bfloat16, &bf16::from_f32(96.0).to_le_bytes());
        assert_eq!(read(&brain, 1).unwrap(), [96.0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(
            required(None, "a").unwrap_err(),
            Lc0Error::Missing("a".into())
        );
        let half = encoded(Encoding::Float16, &f16::INFINITY.to_le_bytes());
        assert!(matches!(read(&half, 1), Err(Lc0Error::Value { .. })));
        assert!(matches!(read(&half, 2), Err(Lc0Error::Length { .. })));
        let mut layer = linear16(&[1.0, 2.0]);
        layer.max_val = Some(f32::NAN);
        assert!(matches!(read(&layer, 2), Err(Lc0Error::Value { .. })));
        let half_a_number = encoded(Encoding::Linear16, &[0]);
        let layer_of_none = required(Some(&half_a_number), "x").unwrap();
        assert!(matches!(
            layer_of_none.multiple_of(1),
            Err(Lc0Error::Shape { numbers: 0, .. })
        ));
        layer.encoding = Some(9);
        assert!(matches!(
            read(&layer, 2),
            Err(Lc0Error::NotSupported { .. })
        ));
    }
}
