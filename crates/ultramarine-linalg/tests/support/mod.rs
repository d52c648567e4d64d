//! Matrices of complex float64, whose products are the tests' reference.

use ultramarine_linalg::{Number, Real, c64};
use ultramarine_test_support::Rng;

/// A dense matrix, in column-major order.
pub struct Dense {
    pub m: usize,
    pub n: usize,
    data: Vec<c64>,
}

impl Dense {
    pub const ZERO: c64 = c64::new(0.0, 0.0);
    pub const ONE: c64 = c64::new(1.0, 0.0);

    pub fn new(m: usize, n: usize, mut f: impl FnMut(usize, usize) -> c64) -> Dense {
        let data = (0..n).flat_map(|j| (0..m).map(move |i| (i, j))).map(|(i, j)| f(i, j)).collect();
        Dense { m, n, data }
    }

    pub fn of<T: Number>(m: usize, n: usize, a: &[T]) -> Dense {
        Dense::new(m, n, |i, j| {
            let [re, im] = a[i + j * m].parts();
            c64::new(re, im)
        })
    }

    pub fn reals<R: Real>(a: &[R]) -> Vec<f64> {
        a.iter().map(|v| v.to_f64()).collect()
    }

    /// Rounded to another type.
    pub fn to<T: Number>(&self) -> Vec<T> {
        self.data.iter().map(|v| T::of_parts([v.re, v.im])).collect()
    }

    pub fn at(&self, i: usize, j: usize) -> c64 {
        self.data[i + j * self.m]
    }

    pub fn adjoint(&self) -> Dense {
        Dense::new(self.n, self.m, |i, j| self.at(j, i).conj())
    }

    /// The Hermitian matrix of the same lower triangle.
    pub fn hermitian(&self) -> Dense {
        Dense::new(self.n, self.n, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => self.at(j, i).conj(),
            std::cmp::Ordering::Equal => c64::new(self.at(i, i).re, 0.0),
            std::cmp::Ordering::Greater => self.at(i, j),
        })
    }

    pub fn times(&self, by: &Dense) -> Dense {
        assert_eq!(self.n, by.m);
        let mut out = Dense::new(self.m, by.n, |_, _| Dense::ZERO);
        for j in 0..by.n {
            for k in 0..self.n {
                let factor = by.at(k, j);
                for i in 0..self.m {
                    out.data[i + j * self.m] += self.at(i, k) * factor;
                }
            }
        }
        out
    }

    pub fn largest(&self) -> f64 {
        self.data.iter().map(|v| v.norm()).fold(0.0, f64::max)
    }

    /// Frobenius'.
    pub fn norm(&self) -> f64 {
        self.data.iter().map(|v| v.norm_sqr()).sum::<f64>().sqrt()
    }

    #[track_caller]
    pub fn near(&self, other: &Dense, error: f64, what: &str) {
        assert_eq!((self.m, self.n), (other.m, other.n), "{what}");
        for (i, (a, b)) in self.data.iter().zip(&other.data).enumerate() {
            // False for NaN, too.
            let near = (a - b).norm() <= error;
            assert!(near, "{what}: element {i} is {a}, expected {b} within {error:e}");
        }
    }

    /// The columns are.
    #[track_caller]
    pub fn orthonormal(&self, error: f64, what: &str) {
        let identity =
            Dense::new(self.n, self.n, |i, j| if i == j { Dense::ONE } else { Dense::ZERO });
        self.adjoint().times(self).near(&identity, error, what);
    }
}

/// Rows and columns: empty, tiny, within one block and beyond, tall and wide.
pub fn sizes() -> Vec<(usize, usize)> {
    let square = [0, 1, 2, 3, 17, 64, 130].map(|n| (n, n));
    let tall = [(1, 0), (2, 1), (3, 2), (17, 3), (40, 17), (130, 64), (130, 20)];
    square.into_iter().chain(tall).chain(tall.map(|(m, n)| (n, m))).collect()
}

/// Random, of rank 1 and 2, zero, and diagonal matrices.
pub fn kinds(m: usize, n: usize, complex: bool) -> Vec<(&'static str, Dense)> {
    let mut rng = Rng::new(((m as u64) << 20) ^ n as u64);
    let mut random = || rng.uniform(-1.0, 1.0);
    let mut number = || c64::new(random(), if complex { random() } else { 0.0 });
    let full = Dense::new(m, n, |_, _| number());
    let mut low = |rank: usize| {
        let (left, right) =
            (Dense::new(m, rank, |_, _| number()), Dense::new(rank, n, |_, _| number()));
        left.times(&right)
    };
    let (one, two) = (low(1), low(2));
    // Beyond float32's rounding errors by some hundred times.
    let near = Dense::new(m, n, |i, j| two.at(i, j) + full.at(i, j) * 3e-5);
    vec![
        ("random", full),
        ("rank 1", one),
        ("rank 2", two),
        ("nearly rank 2", near),
        ("zero", Dense::new(m, n, |_, _| Dense::ZERO)),
        ("ones", Dense::new(m, n, |_, _| Dense::ONE)),
        (
            "diagonal",
            Dense::new(m, n, |i, j| if i == j { Dense::ONE * (i % 5) as f64 } else { Dense::ZERO }),
        ),
    ]
}
