//! Positions and moves as they are sent to the device, in one array of 32-bit words.
//!
//! ```text
//! positions, moves, where counts begin, where moves begin
//! binary planes    [positions][planes][2]
//! counts           [positions][scalar planes], as counted
//! moves            [moves]: position << 16 | cell of the policy
//! ```

use std::ops::Range;

use rookery_backend_cpu::PolicyCells;
use rookery_common::encoding::InputEncoding;
use rookery_engine::{Batch, EvaluatorError};

/// Words before the planes.
pub(crate) const HEADER: usize = 4;

/// Words of this many positions and moves.
pub(crate) const fn words(input: InputEncoding, positions: usize, moves: usize) -> usize {
    HEADER + positions * (2 * input.binary_planes() + input.scalar_planes()) + moves
}

/// Legal moves of a range of positions.
pub(crate) fn moves_of(batch: &Batch, positions: &Range<usize>) -> usize {
    if positions.is_empty() {
        return 0;
    }
    let (first, last) = (
        batch.move_range(positions.start),
        batch.move_range(positions.end - 1),
    );
    last.end - first.start
}

/// Writes a range of a batch's positions, fewer than 65,536, into `words`.
///
/// # Errors
///
/// [`EvaluatorError`] for a policy index that the encoding does not have.
pub(crate) fn write(
    batch: &Batch,
    positions: Range<usize>,
    cells: &PolicyCells,
    words: &mut Vec<u32>,
) -> Result<(), EvaluatorError> {
    let input = batch.input();
    let (binary, scalars) = (input.binary_planes(), input.scalar_planes());
    let count = positions.len();
    let counts_at = HEADER + 2 * count * binary;
    let header = [
        count,
        moves_of(batch, &positions),
        counts_at,
        counts_at + count * scalars,
    ];
    words.clear();
    words.extend(header.map(|number| number as u32));
    let planes = &batch.binary()[positions.start * binary..positions.end * binary];
    words.extend(
        planes
            .iter()
            .flat_map(|plane| [*plane as u32, (*plane >> 32) as u32]),
    );
    let counts = &batch.scalars()[positions.start * scalars..positions.end * scalars];
    words.extend(counts.iter().map(|count| count.to_bits()));
    for (place, position) in positions.enumerate() {
        for index in batch.moves_of(position) {
            let cell = cells.of(*index).ok_or_else(|| {
                EvaluatorError(format!(
                    "position {position} has a move of policy index {index}"
                ))
            })?;
            words.push((place as u32) << 16 | cell as u32);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::encoding::PolicyEncoding;
    use rookery_common::network::NetworkSpec;

    use super::*;

    #[test]
    fn a_position_with_its_moves_takes_a_kilobyte() {
        let spec = NetworkSpec::resnet(1, 8);
        let cells = PolicyCells::new(&spec.policy);
        let batch = rookery_engine::dummy::random_batch(spec.input, spec.policy.encoding, 100, 1);
        let mut words = Vec::new();
        write(&batch, 10..100, &cells, &mut words).unwrap();
        let moves = moves_of(&batch, &(10..100));
        assert_eq!(words.len(), super::words(spec.input, 90, moves));
        assert_eq!(words[..2], [90, moves as u32]);
        assert!(4 * words.len() / 90 < 1050, "{}", 4 * words.len() / 90);
    }

    #[test]
    fn planes_counts_and_moves_stand_where_the_header_says() {
        let spec = NetworkSpec::resnet(1, 8);
        let cells = PolicyCells::new(&spec.policy);
        let mut batch = Batch::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
        let game = GameHistory::default();
        batch.push_indices(&game, [3]);
        batch.push_indices(&game, [1, 2]);
        let mut words = Vec::new();
        write(&batch, 0..2, &cells, &mut words).unwrap();
        let [_, _, counts, moves] = [0, 1, 2, 3].map(|place| words[place] as usize);
        // Pawns of the second rank, and the plane of ones.
        assert_eq!(words[HEADER..HEADER + 2], [0xff00, 0]);
        assert_eq!(f32::from_bits(words[counts + 7]), 1.0);
        let cell = |index: u16| cells.of(index).unwrap() as u32;
        assert_eq!(
            words[moves..],
            [cell(3), 1 << 16 | cell(1), 1 << 16 | cell(2)]
        );
        batch.push_indices(&game, [u16::MAX]);
        let error = write(&batch, 2..3, &cells, &mut words).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("position 2 has a move of policy index 65535")
        );
    }
}
