//! Dense symmetric matrices and their Cholesky factors: as much as Newton's method needs.

/// A symmetric matrix, stored row by row in full.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Symmetric {
    size: usize,
    cells: Vec<f64>,
}

impl Symmetric {
    /// Takes the mean of cells that rounding has made different.
    fn symmetrize(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                let (one, other) = (row * self.size + column, column * self.size + row);
                let mean = f64::midpoint(self.cells[one], self.cells[other]);
                (self.cells[one], self.cells[other]) = (mean, mean);
            }
        }
    }

    /// All zeros.
    pub(super) fn zeros(size: usize) -> Self {
        Self {
            size,
            cells: vec![0.0; size * size],
        }
    }

    /// The cell in `row` and `column`.
    pub(super) fn get(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.size + column]
    }

    /// Adds to a cell on the diagonal, or to a cell and its mirror image.
    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.cells[row * self.size + column] += value;
        if row != column {
            self.cells[column * self.size + row] += value;
        }
    }

    /// The factor `L` of `L L^T`; none if the matrix is not positive definite.
    pub(super) fn cholesky(&self) -> Option<Cholesky> {
        let size = self.size;
        let mut cells = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let known = dot(
                    &cells[row * size..row * size + column],
                    &cells[column * size..column * size + column],
                );
                let rest = self.get(row, column) - known;
                cells[row * size + column] = if column < row {
                    rest / cells[column * size + column]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(Cholesky { size, cells })
    }
}

/// A lower triangle `L`, the root of a positive definite matrix `L L^T`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cholesky {
    size: usize,
    cells: Vec<f64>,
}

impl Cholesky {
    /// Solves `L L^T x = b`.
    pub(super) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for row in 0..self.size {
            let known = dot(self.row(row, row), &x[..row]);
            x[row] = (x[row] - known) / self.diagonal(row);
        }
        for row in (0..self.size).rev() {
            x[row] /= self.diagonal(row);
            let value = x[row];
            for (cell, factor) in x[..row].iter_mut().zip(self.row(row, row)) {
                *cell -= factor * value;
            }
        }
        x
    }

    /// The inverse of `L L^T`.
    pub(super) fn inverse(&self) -> Symmetric {
        let mut inverse = Symmetric::zeros(self.size);
        for column in 0..self.size {
            let mut unit = vec![0.0; self.size];
            unit[column] = 1.0;
            inverse.cells[column * self.size..(column + 1) * self.size]
                .copy_from_slice(&self.solve(&unit));
        }
        inverse.symmetrize();
        inverse
    }

    /// The first `length` cells of a row.
    fn row(&self, row: usize, length: usize) -> &[f64] {
        &self.cells[row * self.size..row * self.size + length]
    }

    fn diagonal(&self, row: usize) -> f64 {
        self.cells[row * self.size + row]
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[[4, 2, 0.6], [2, 3, 0.4], [0.6, 0.4, 2]]`.
    fn example() -> Symmetric {
        let mut matrix = Symmetric::zeros(3);
        let cells = [
            (0, 0, 4.0),
            (1, 0, 2.0),
            (1, 1, 3.0),
            (2, 0, 0.6),
            (2, 1, 0.4),
            (2, 2, 2.0),
        ];
        for (row, column, value) in cells {
            matrix.add(row, column, value);
        }
        matrix
    }

    #[test]
    fn solving_inverts_multiplication() {
        let matrix = example();
        let x = matrix.cholesky().unwrap().solve(&[1.0, -2.0, 3.0]);
        for (row, expected) in [1.0, -2.0, 3.0].into_iter().enumerate() {
            let got: f64 = (0..3)
                .map(|column| matrix.get(row, column) * x[column])
                .sum();
            assert!((got - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_inverse_times_the_matrix_is_one() {
        let matrix = example();
        let inverse = matrix.cholesky().unwrap().inverse();
        for row in 0..3 {
            for column in 0..3 {
                let got: f64 = (0..3)
                    .map(|k| matrix.get(row, k) * inverse.get(k, column))
                    .sum();
                let expected = if row == column { 1.0 } else { 0.0 };
                assert!((got - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_has_no_root() {
        let mut matrix = Symmetric::zeros(2);
        matrix.add(0, 1, 1.0);
        assert_eq!(matrix.cholesky(), None);
    }
}
