//! Positions and evaluations as bytes.

use std::ops::Range;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_engine::{Batch, Evaluations, Wdl};

use crate::MAX_POSITIONS;
use crate::error::ConnectionError;
use crate::frame::{Fields, MAX_REQUEST};

/// Largest number that a scalar plane may have: those of chess count moves.
const MAX_SCALAR: f32 = 1e5;
/// Room for what stands before the positions in a frame.
const HEAD_BYTES: usize = 64;

/// The bytes of one position but for its moves.
const fn position_bytes(input: InputEncoding) -> usize {
    2 + 8 * input.binary_planes() + 4 * input.scalar_planes()
}

/// The largest part of a batch, from `start` on, that one frame holds; at least one position.
pub(crate) fn part_from(batch: &Batch, start: usize) -> Range<usize> {
    let bytes = |index: usize| position_bytes(batch.input()) + 2 * batch.moves_of(index).len();
    let (mut end, mut size) = (start, HEAD_BYTES);
    while end < batch.len() && end - start < MAX_POSITIONS {
        size += bytes(end);
        if size > MAX_REQUEST && end > start {
            break;
        }
        end += 1;
    }
    start..end
}

/// The bytes of all frames of a batch, and those of their answers.
pub fn frame_bytes(batch: &Batch) -> [usize; 2] {
    // Length and kind of the frame, the batch's number, the network's in a request, and the count of positions.
    const HEADS: [usize; 2] = [4 + 1 + 4 + 4 + 2, 4 + 1 + 4 + 2];
    let (mut start, mut frames) = (0, 0);
    while start < batch.len() {
        start = part_from(batch, start).end;
        frames += 1;
    }
    let (positions, moves) = (batch.len(), batch.moves().len());
    let up = positions * position_bytes(batch.input()) + 2 * moves;
    [
        HEADS[0] * frames + up,
        HEADS[1] * frames + 12 * positions + 4 * moves,
    ]
}

/// Appends some positions of a batch.
pub(crate) fn write_positions(batch: &Batch, part: Range<usize>, out: &mut Vec<u8>) {
    let (planes, scalars) = (batch.input().binary_planes(), batch.input().scalar_planes());
    out.reserve(HEAD_BYTES + part.len() * position_bytes(batch.input()));
    out.extend_from_slice(&(part.len() as u16).to_le_bytes());
    for index in part.clone() {
        let count = batch.moves_of(index).len() as u16;
        out.extend_from_slice(&count.to_le_bytes());
    }
    for word in &batch.binary()[part.start * planes..part.end * planes] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for scalar in &batch.scalars()[part.start * scalars..part.end * scalars] {
        out.extend_from_slice(&scalar.to_le_bytes());
    }
    let moves = part.flat_map(|index| batch.moves_of(index));
    moves.for_each(|index| out.extend_from_slice(&index.to_le_bytes()));
}

/// Reads positions for a network of these encodings. Whatever is read can be evaluated.
pub(crate) fn read_positions(
    bytes: &[u8],
    input: InputEncoding,
    policy: PolicyEncoding,
) -> Result<Batch, ConnectionError> {
    let mut fields = Fields::new(bytes);
    let positions = usize::from(fields.u16()?);
    if !(1..=MAX_POSITIONS).contains(&positions) {
        let what = format!("a batch of {positions} positions, allowed is 1 to {MAX_POSITIONS}");
        return Err(ConnectionError::protocol(what));
    }
    let counts = fields.bytes(2 * positions)?.as_chunks().0;
    let binary = fields.bytes(8 * positions * input.binary_planes())?;
    let scalars = fields.bytes(4 * positions * input.scalar_planes())?;
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let numbers = bytes.as_chunks().0.iter();
        numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let words = binary.as_chunks().0.iter();
    let binary: Vec<u64> = words.map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let scalars = numbers(scalars);
    let is_count = |scalar: &f32| (-MAX_SCALAR..=MAX_SCALAR).contains(scalar);
    if let Some(wrong) = scalars.iter().find(|scalar| !is_count(scalar)) {
        let what = format!("a scalar plane of {wrong}");
        return Err(ConnectionError::protocol(what));
    }
    let mut batch = Batch::new(input, policy);
    let mut moves = Vec::new();
    for (index, count) in counts.iter().enumerate() {
        let count = usize::from(u16::from_le_bytes(*count));
        if count > policy.size() {
            let what = format!(
                "a position of {count} moves, more than {} has",
                policy.name()
            );
            return Err(ConnectionError::protocol(what));
        }
        let words = fields.bytes(2 * count)?.as_chunks().0.iter();
        moves.clear();
        moves.extend(words.map(|bytes| u16::from_le_bytes(*bytes)));
        if let Some(wrong) = moves.iter().find(|m| usize::from(**m) >= policy.size()) {
            let what = format!(
                "a move of policy index {wrong}, which {} lacks",
                policy.name()
            );
            return Err(ConnectionError::protocol(what));
        }
        let (planes, numbers) = (input.binary_planes(), input.scalar_planes());
        batch.push_encoded(
            &binary[index * planes..(index + 1) * planes],
            &scalars[index * numbers..(index + 1) * numbers],
            &moves,
        );
    }
    fields.end()?;
    Ok(batch)
}

/// Appends evaluations, which are those of some positions of a larger batch.
pub(crate) fn write_evaluations(values: &[Wdl], logits: &[f32], out: &mut Vec<u8>) {
    out.reserve(HEAD_BYTES + 12 * values.len() + 4 * logits.len());
    out.extend_from_slice(&(values.len() as u16).to_le_bytes());
    for value in values {
        for number in [value.win, value.draw, value.loss] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    for logit in logits {
        out.extend_from_slice(&logit.to_le_bytes());
    }
}

/// Reads the evaluations of positions with these numbers of moves.
pub(crate) fn read_evaluations(
    bytes: &[u8],
    positions: usize,
    moves: usize,
) -> Result<Evaluations, ConnectionError> {
    let mut fields = Fields::new(bytes);
    let count = usize::from(fields.u16()?);
    if count != positions || bytes.len() != 2 + 12 * positions + 4 * moves {
        let what = format!("evaluations of {count} positions where {positions} were asked for");
        return Err(ConnectionError::protocol(what));
    }
    let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let values = fields.bytes(12 * positions)?.as_chunks::<12>().0.iter();
    let values = values.map(|bytes| {
        let numbers = bytes.as_chunks().0;
        Wdl {
            win: number(&numbers[0]),
            draw: number(&numbers[1]),
            loss: number(&numbers[2]),
        }
    });
    let values: Vec<Wdl> = values.collect();
    let logits: Vec<f32> = fields.rest().as_chunks().0.iter().map(number).collect();
    if !logits.iter().copied().all(f32::is_finite) {
        return Err(ConnectionError::protocol("evaluations that are not finite"));
    }
    if let Some(wrong) = values.iter().find(|value| !value.is_distribution()) {
        let what = format!("a value of {wrong:?}, which is no distribution of results");
        return Err(ConnectionError::protocol(what));
    }
    Ok(Evaluations { logits, values })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rookery_engine::dummy::random_batch;

    use super::*;
    use crate::message::{Reply, Request};

    fn assert_same(one: &Batch, other: &Batch) {
        assert_eq!(one.binary(), other.binary());
        assert_eq!(one.scalars(), other.scalars());
        assert_eq!((one.moves(), one.ends()), (other.moves(), other.ends()));
    }

    #[test]
    fn positions_of_every_encoding_arrive_unchanged() {
        for input in InputEncoding::ALL {
            for policy in PolicyEncoding::ALL {
                let batch = random_batch(input, policy, 20, 5);
                let mut bytes = Vec::new();
                write_positions(&batch, 0..20, &mut bytes);
                assert_same(&read_positions(&bytes, input, policy).unwrap(), &batch);
            }
        }
    }

    #[test]
    fn parts_of_a_batch_are_the_batch() {
        let (input, policy) = (InputEncoding::Lc0112, PolicyEncoding::Lc01858);
        let batch = random_batch(input, policy, 2 * MAX_POSITIONS + 3, 1);
        let mut joined = Batch::new(input, policy);
        let (mut start, mut parts) = (0, 0);
        while start < batch.len() {
            let part = part_from(&batch, start);
            let mut bytes = Vec::new();
            write_positions(&batch, part.clone(), &mut bytes);
            assert!(bytes.len() < MAX_REQUEST - 9);
            let read = read_positions(&bytes, input, policy).unwrap();
            (0..read.len()).for_each(|index| joined.push_from(&read, index));
            (start, parts) = (part.end, parts + 1);
        }
        assert_same(&joined, &batch);
        assert_eq!(parts, 3);
    }

    #[test]
    fn frames_have_the_bytes_that_they_are_said_to_have() {
        for input in InputEncoding::ALL {
            for size in [1, 64, MAX_POSITIONS + 3] {
                let batch = random_batch(input, PolicyEncoding::Lc01858, size, 5);
                let (mut start, mut found) = (0, [0; 2]);
                while start < batch.len() {
                    let part = part_from(&batch, start);
                    start = part.end;
                    let moves: usize = part.clone().map(|one| batch.moves_of(one).len()).sum();
                    let (mut positions, mut evaluations) = (Vec::new(), Vec::new());
                    let value = Wdl::from_q(0.0);
                    write_evaluations(
                        &vec![value; part.len()],
                        &vec![0.0; moves],
                        &mut evaluations,
                    );
                    write_positions(&batch, part, &mut positions);
                    let request = Request::Evaluate {
                        id: 1,
                        network: 2,
                        positions: &positions,
                    };
                    let reply = Reply::Evaluations {
                        id: 1,
                        evaluations: &evaluations,
                    };
                    found[0] += request.to_frame().len();
                    found[1] += reply.to_frame().len();
                }
                assert_eq!(frame_bytes(&batch), found, "{input:?} {size}");
            }
        }
    }

    #[test]
    fn positions_with_every_index_are_split_by_their_bytes() {
        let (input, policy) = (InputEncoding::Classic19, PolicyEncoding::Az73);
        let mut batch = Batch::new(input, policy);
        let game = rookery_common::chess::GameHistory::default();
        for _ in 0..400 {
            batch.push_indices(&game, 0..policy.size() as u16);
        }
        let part = part_from(&batch, 0);
        assert!(!part.is_empty() && part.end < 400, "{part:?}");
        let mut bytes = Vec::new();
        write_positions(&batch, part, &mut bytes);
        assert!(bytes.len() < MAX_REQUEST - 9);
        // Their logits fit an answer.
        assert!(2 * bytes.len() < crate::frame::MAX_REPLY);
    }

    #[test]
    fn what_a_network_cannot_compute_is_refused() {
        let (input, policy) = (InputEncoding::Classic19, PolicyEncoding::Lc01858);
        let batch = random_batch(input, policy, 2, 1);
        let mut good = Vec::new();
        write_positions(&batch, 0..2, &mut good);
        let refused = |bytes: &[u8]| {
            read_positions(bytes, input, policy)
                .unwrap_err()
                .to_string()
        };
        let last = good.len() - 2;
        let mut wrong = good.clone();
        wrong[last..].copy_from_slice(&1858_u16.to_le_bytes());
        assert!(refused(&wrong).contains("index 1858"));
        let scalars = 2 + 2 * 2 + 2 * 8 * input.binary_planes();
        for number in [f32::NAN, f32::INFINITY, 2e5] {
            let mut wrong = good.clone();
            wrong[scalars..scalars + 4].copy_from_slice(&number.to_le_bytes());
            assert!(refused(&wrong).contains("scalar plane"), "{number}");
        }
        for positions in [0_u16, 1, 3, 1025, u16::MAX] {
            let mut wrong = good.clone();
            wrong[..2].copy_from_slice(&positions.to_le_bytes());
            refused(&wrong);
        }
        let mut wrong = good;
        wrong[2..4].copy_from_slice(&u16::MAX.to_le_bytes());
        refused(&wrong);
    }

    /// A search that reckons with such values is wrong, or never ends.
    #[test]
    fn values_that_are_no_probabilities_are_refused() {
        let read = |win, draw, loss| {
            let mut bytes = Vec::new();
            write_evaluations(&[Wdl { win, draw, loss }], &[0.0], &mut bytes);
            read_evaluations(&bytes, 1, 1)
        };
        assert!(read(0.2, 0.5, 0.3).is_ok());
        // Of 16 bits.
        assert!(read(0.201, 0.502, 0.3).is_ok());
        for (win, draw, loss) in [
            (0.5, f32::NAN, 0.2),
            (1e38, 0.0, -1e38),
            (3.0, 0.0, -2.0),
            (0.2, 0.2, 0.2),
            (0.0, 0.0, 0.0),
            (f32::INFINITY, 0.0, 0.0),
        ] {
            let refused = read(win, draw, loss).unwrap_err().to_string();
            assert!(refused.contains("no distribution"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..4000), positions in 1_u16..4) {
            let mut bytes = bytes;
            if bytes.len() > 2 {
                bytes[..2].copy_from_slice(&positions.to_le_bytes());
            }
            for input in InputEncoding::ALL {
                let read = read_positions(&bytes, input, PolicyEncoding::Lc01858);
                if let Ok(batch) = read {
                    let mut again = Vec::new();
                    write_positions(&batch, 0..batch.len(), &mut again);
                    prop_assert_eq!(again, bytes.clone());
                }
            }
            if let Ok(evaluations) = read_evaluations(&bytes, usize::from(positions), 5) {
                prop_assert_eq!(evaluations.logits.len(), 5);
            }
        }

        #[test]
        fn evaluations_arrive_bit_for_bit(qs in vec(-1_f32..=1.0, 0..20), logits in vec(-1e30_f32..1e30, 0..60)) {
            let values: Vec<Wdl> = qs.into_iter().map(Wdl::from_score).collect();
            let mut bytes = Vec::new();
            write_evaluations(&values, &logits, &mut bytes);
            let read = read_evaluations(&bytes, values.len(), logits.len()).unwrap();
            prop_assert_eq!((&read.values, &read.logits), (&values, &logits));
            prop_assert!(read_evaluations(&bytes, values.len() + 1, logits.len()).is_err());
            prop_assert!(read_evaluations(&bytes, values.len(), logits.len() + 1).is_err());
        }
    }
}
