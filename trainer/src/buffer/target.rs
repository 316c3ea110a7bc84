//! A policy target as bytes: weights of the legal moves, most of which are often 0.
//!
//! ```text
//! legal moves (1 byte) | a bit for each, set where the weight is not 0 | those weights (LEB128)
//! ```

use rookery_common::chunk::PlyRecord;

/// Bits of a byte of LEB128 that belong to the number.
const LOW: u16 = 0x7f;
/// The bit that says that another byte follows.
const MORE: u8 = 0x80;

/// Adds a ply's target as 16-bit weights: as they are where they fit, else in proportion.
pub fn write(ply: &PlyRecord, into: &mut Vec<u8>) {
    match &ply.target {
        Some(target) => write_weights(target.iter().copied(), into),
        None => {
            let highest = ply.visits.iter().copied().max().unwrap_or(0);
            let most = u32::from(u16::MAX);
            let scale = f64::from(most) / f64::from(highest.max(most));
            let weight = |visits: &u32| (f64::from(*visits) * scale).round() as u16;
            write_weights(ply.visits.iter().map(weight), into);
        }
    }
}

fn write_weights(weights: impl ExactSizeIterator<Item = u16>, into: &mut Vec<u8>) {
    let (begin, legal) = (into.len() + 1, weights.len());
    into.push(legal as u8);
    into.resize(begin + legal.div_ceil(8), 0);
    for (place, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0) {
        into[begin + place / 8] |= 1 << (place % 8);
        let mut rest = weight;
        while rest > LOW {
            into.push((rest & LOW) as u8 | MORE);
            rest >>= 7;
        }
        into.push(rest as u8);
    }
}

/// The weights that [`write()`] has written, one for each legal move; none of no bytes.
pub fn read(bytes: &[u8]) -> Vec<u16> {
    let Some((legal, rest)) = bytes.split_first() else {
        return Vec::new();
    };
    let legal = usize::from(*legal);
    let Some((bits, mut rest)) = rest.split_at_checked(legal.div_ceil(8)) else {
        return Vec::new();
    };
    (0..legal)
        .map(|place| match bits[place / 8] >> (place % 8) & 1 {
            0 => 0,
            _ => next(&mut rest),
        })
        .collect()
}

fn next(rest: &mut &[u8]) -> u16 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, tail)) = rest.split_first() {
        *rest = tail;
        number |= u32::from(*byte & !MORE) << shift;
        shift += 7;
        if *byte & MORE == 0 || shift > 14 {
            break;
        }
    }
    number as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_come_back_as_they_were() {
        let weights = [0, 1, 127, 128, 0, 0, 300, 16_383, 16_384, u16::MAX, 0];
        let mut bytes = Vec::new();
        write_weights(weights.into_iter(), &mut bytes);
        assert_eq!(read(&bytes), weights);
        // Three bytes of list and bits; one, one, two, two, two, three and three of weights.
        assert_eq!(bytes.len(), 3 + 14);
        assert!(read(&[]).is_empty());
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).len() <= weights.len());
        }
    }

    #[test]
    fn no_move_and_every_move_fit() {
        for legal in [0, 1, 8, 218] {
            let weights: Vec<u16> = (0..legal).collect();
            let mut bytes = Vec::new();
            write_weights(weights.iter().copied(), &mut bytes);
            assert_eq!(read(&bytes), weights);
        }
    }
}
