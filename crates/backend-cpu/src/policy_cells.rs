//! Which cell of a policy's output is which move.

use rookery_common::network::{PolicyHead, PolicySpec};
use rookery_engine::Batch;

/// The cell of each policy index: planes of logits lie square by square, `[64][planes]`.
#[derive(Debug)]
pub struct PolicyCells {
    cells: Vec<u16>,
    count: usize,
}

impl PolicyCells {
    /// The cells of a policy.
    pub fn new(policy: &PolicySpec) -> Self {
        let planes = policy.convolution_planes() as u16;
        let cell = |index: u16| match (policy.head, policy.output_of(index)) {
            // Outputs are numbered plane by plane, cells lie square by square.
            (PolicyHead::Convolution, output) => output % 64 * planes + output / 64,
            (PolicyHead::Dense { .. }, output) => output,
        };
        let size = policy.encoding.size() as u16;
        Self {
            cells: (0..size).map(cell).collect(),
            count: policy.outputs(),
        }
    }

    /// The cell of a policy index, if there is such an index.
    pub fn of(&self, index: u16) -> Option<i64> {
        self.cells
            .get(usize::from(index))
            .map(|cell| i64::from(*cell))
    }

    /// Writes the cells of all legal moves of a batch into `flat`, counted through the whole
    /// batch's output.
    ///
    /// # Errors
    ///
    /// The position and index of a move that the encoding does not have.
    pub fn of_batch(&self, batch: &Batch, flat: &mut Vec<i64>) -> Result<(), (usize, u16)> {
        flat.clear();
        for position in 0..batch.len() {
            let start = (position * self.count) as i64;
            for index in batch.moves_of(position) {
                flat.push(start + self.of(*index).ok_or((position, *index))?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rookery_common::encoding::PolicyEncoding;
    use rookery_common::network::PolicySpec;

    use super::*;

    #[test]
    fn no_two_moves_share_a_cell() {
        let dense = PolicyHead::Dense { channels: 32 };
        for (encoding, head) in [
            (PolicyEncoding::Lc01858, PolicyHead::Convolution),
            (PolicyEncoding::Az73, PolicyHead::Convolution),
            (PolicyEncoding::Flat1968, dense),
            (PolicyEncoding::Lc01858, dense),
        ] {
            let policy = PolicySpec { encoding, head };
            let cells = PolicyCells::new(&policy);
            let distinct: HashSet<_> = cells.cells.iter().collect();
            assert_eq!(distinct.len(), encoding.size());
            assert!(
                cells
                    .cells
                    .iter()
                    .all(|cell| usize::from(*cell) < policy.outputs())
            );
            assert_eq!(cells.of(encoding.size() as u16), None);
        }
    }
}
