//! Columns of numbers as bytes, arranged so that zstd finds little surprise in them.

/// A column that ended early or holds a number out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadColumn;

/// Appends `n` as a little-endian base-128 varint.
fn put_varint(column: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        column.push(n as u8 | 0x80);
        n >>= 7;
    }
    column.push(n as u8);
}

fn take_varint(column: &mut &[u8]) -> Result<u32, BadColumn> {
    let mut n = 0_u32;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = column.split_first().ok_or(BadColumn)?;
        *column = rest;
        let part = u32::from(byte & 0x7f);
        if shift == 28 && part > 0x0f {
            return Err(BadColumn);
        }
        n |= part << shift;
        if byte & 0x80 == 0 {
            // A number has one form: longer ones would be room for anything.
            return if *byte == 0 && shift > 0 {
                Err(BadColumn)
            } else {
                Ok(n)
            };
        }
    }
    Err(BadColumn)
}

/// Appends one ply's counts, one for each legal move.
pub(super) fn put_counts(column: &mut Vec<u8>, counts: impl IntoIterator<Item = u32>) {
    counts.into_iter().for_each(|n| put_varint(column, n));
}

/// Takes one ply's counts, one for each of its `moves` legal moves, of which there are 218 at most.
pub(super) fn take_counts<T>(column: &mut &[u8], moves: usize) -> Result<Vec<T>, BadColumn>
where
    T: From<u8> + TryFrom<u32>,
{
    // Most plies have small counts only: then every byte is one.
    if let Some((small, rest)) = column.split_at_checked(moves)
        && small.iter().fold(0, |all, byte| all | byte) < 0x80
    {
        *column = rest;
        return Ok(small.iter().map(|byte| T::from(*byte)).collect());
    }
    let mut counts = Vec::with_capacity(moves);
    for _ in 0..moves {
        counts.push(T::try_from(take_varint(column)?).map_err(|_| BadColumn)?);
    }
    Ok(counts)
}

/// Appends a signed number, small ones in one byte (zigzag).
pub(super) fn put_signed(column: &mut Vec<u8>, n: i32) {
    put_varint(column, ((n << 1) ^ (n >> 31)) as u32);
}

/// Takes a signed number.
pub(super) fn take_signed(column: &mut &[u8]) -> Result<i32, BadColumn> {
    let n = take_varint(column)?;
    Ok((n >> 1) as i32 ^ -((n & 1) as i32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(take_varint(&mut &[0x81, 0x01][..]), Ok(129));
        assert_eq!(take_varint(&mut &[0x81, 0x00][..]), Err(BadColumn));
        assert_eq!(take_varint(&mut &[0x80, 0x80, 0x00][..]), Err(BadColumn));
    }

    proptest! {
        #[test]
        fn numbers_round_trip(numbers: Vec<u32>, signed: Vec<i32>) {
            let mut column = Vec::new();
            put_counts(&mut column, numbers.iter().copied());
            signed.iter().for_each(|n| put_signed(&mut column, *n));
            let mut rest = column.as_slice();
            prop_assert_eq!(take_counts(&mut rest, numbers.len()), Ok(numbers));
            for n in signed {
                prop_assert_eq!(take_signed(&mut rest), Ok(n));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_numbers_or_an_error(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            let _ = take_counts::<u16>(&mut rest, 5);
            prop_assert!(rest.len() <= bytes.len());
        }
    }
}
