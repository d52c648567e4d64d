//! How kernels with shared memory read a matrix: 4 elements at once, along k or across it.

use crate::shader::vector::FOUR;

/// How a kernel with shared memory reads a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// True for along k; false for across it, which is along rows of the first matrix and columns
    /// of the second.
    pub along_k: bool,
    /// True if one load reads 4 elements.
    pub vector: bool,
}

/// A matrix of a product: sizes and strides in elements.
pub struct Matrix<'a> {
    /// Size and stride across k.
    pub outer: (i64, i64),
    /// Size and stride along k.
    pub inner: (i64, i64),
    /// Offset of the first element.
    pub offset: i64,
    /// Strides of the batch.
    pub batch: &'a [i64],
}

impl Reading {
    /// How a matrix is read.
    pub fn of(matrix: &Matrix<'_>) -> Self {
        Self { along_k: Self::along_k(matrix), vector: Self::lies_in(matrix, FOUR) }
    }

    fn along_k(matrix: &Matrix<'_>) -> bool {
        let step = |(size, stride): (i64, i64)| if size == 1 { i64::MAX } else { stride.abs() };
        step(matrix.inner) <= step(matrix.outer)
    }

    /// True if a matrix can be read in vectors of `width` elements.
    pub fn lies_in(matrix: &Matrix<'_>, width: i64) -> bool {
        let (along, other) = match Self::along_k(matrix) {
            true => (matrix.inner, matrix.outer),
            false => (matrix.outer, matrix.inner),
        };
        let whole = |n: i64| n % width == 0;
        along.1 == 1
            && whole(along.0)
            && (other.0 == 1 || whole(other.1))
            && whole(matrix.offset)
            && matrix.batch.iter().all(|stride| whole(*stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_need_multiples_of_4() {
        let reading = |outer, inner, offset, batch: &[i64]| {
            Reading::of(&Matrix { outer, inner, offset, batch })
        };
        let along = Reading { along_k: true, vector: true };
        assert_eq!(reading((5, 8), (8, 1), 4, &[40]), along);
        assert_eq!(reading((8, 1), (5, 8), 0, &[]), Reading { along_k: false, vector: true });
        let scalar = Reading { along_k: true, vector: false };
        assert_eq!(reading((5, 8), (7, 1), 0, &[]), scalar);
        assert_eq!(reading((5, 9), (8, 1), 0, &[]), scalar);
        assert_eq!(reading((5, 8), (8, 1), 2, &[]), scalar);
        assert_eq!(reading((5, 8), (8, 1), 0, &[2]), scalar);
        assert_eq!(reading((5, 8), (8, -1), 0, &[]), scalar);
        // With a single row, the matrix is read along the row, whatever its stride is.
        assert_eq!(reading((1, 1), (8, 1), 0, &[]), along);
        assert_eq!(reading((8, 1), (1, 1), 0, &[]), Reading { along_k: false, vector: true });
    }
}
