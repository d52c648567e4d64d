//! The comparison of numbers.

/// How far a number may be from the expected one: `absolute + relative * |expected|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// The part that does not depend on the expected number.
    pub absolute: f64,
    /// The part that grows with it.
    pub relative: f64,
}

impl Tolerance {
    /// The same bound at every size.
    pub fn absolute(absolute: f64) -> Tolerance {
        Tolerance { absolute, relative: 0.0 }
    }

    /// `bound * (1 + |expected|)`: for numbers around 1 and around 0 alike.
    pub fn mixed(bound: f64) -> Tolerance {
        Tolerance { absolute: bound, relative: bound }
    }

    fn allows(self, got: f64, expected: f64) -> bool {
        // Infinities are equal or wrong, and NaN stands for NaN alone.
        got == expected
            || (got.is_nan() && expected.is_nan())
            || (expected.is_finite()
                && (got - expected).abs() <= self.absolute + self.relative * expected.abs())
    }
}

/// Compares numbers one by one. NaN equals NaN, and an infinity equals itself alone. Complex numbers are
/// compared as their parts.
///
/// # Errors
/// The first number that is too far off, how many are, and the bound.
pub fn compare(got: &[f64], expected: &[f64], tolerance: Tolerance) -> Result<(), String> {
    if got.len() != expected.len() {
        return Err(format!("{} numbers, expected {}", got.len(), expected.len()));
    }
    let mut wrong = (0..got.len()).filter(|&i| !tolerance.allows(got[i], expected[i]));
    let Some(first) = wrong.next() else { return Ok(()) };
    let others = wrong.count();
    let (g, e, Tolerance { absolute, relative }) = (got[first], expected[first], tolerance);
    Err(format!(
        "element {first} is {g:e}, expected {e:e} within {absolute:e} + {relative:e} * |expected| \
         (off by {:e}; {others} more of {} are wrong)",
        (g - e).abs(),
        got.len()
    ))
}

/// Panics with `what` where [`compare`] gives an error.
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], expected: &[f64], tolerance: Tolerance) {
    if let Err(message) = compare(got, expected, tolerance) {
        panic!("{what}: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::{Tolerance, compare};
    const INFINITY: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    #[test]
    fn bounds_are_kept() {
        let close = |got, expected, tolerance| compare(&[got], &[expected], tolerance).is_ok();
        assert!(close(1.5, 1.0, Tolerance::absolute(0.5)));
        assert!(!close(1.6, 1.0, Tolerance::absolute(0.5)));
        assert!(close(109.0, 100.0, Tolerance::mixed(0.1)));
        assert!(!close(111.0, 100.0, Tolerance::mixed(0.1)));
        assert!(!close(NAN, 1.0, Tolerance::absolute(INFINITY)));
    }

    #[test]
    fn special_numbers_equal_themselves_alone() {
        let exact = Tolerance::absolute(0.0);
        assert!(compare(&[NAN, INFINITY, -0.0], &[NAN, INFINITY, 0.0], exact).is_ok());
        for (got, expected) in [(NAN, INFINITY), (INFINITY, -INFINITY), (1e300, INFINITY)] {
            assert!(compare(&[got], &[expected], Tolerance::mixed(1e9)).is_err());
            assert!(compare(&[expected], &[got], Tolerance::absolute(1.0)).is_err());
        }
    }

    #[test]
    fn lengths_count() {
        assert!(compare(&[1.0], &[], Tolerance::mixed(1.0)).is_err());
        assert!(compare(&[], &[], Tolerance::mixed(0.0)).is_ok());
    }
}
