//! Roots of the secular equation `1 + sum(w[j] / (p[j] - x)) = 0`. There is one root after each pole.

/// Number of terms that are summed at a time.
const LANES: usize = 8;
/// Largest number of steps for a root; five are typical.
const STEPS: usize = 250;
/// Number of steps after which every second step halves the interval.
const PATIENCE: usize = 12;

/// The secular equation of a [merge](super::merge): its poles and weights.
pub struct Secular<'a> {
    /// The poles, or their square roots; distinct and ascending.
    pub poles: &'a [f64],
    /// The weights; positive.
    pub weights: &'a [f64],
    /// Set if `poles` holds square roots. The poles and the roots of the equation are then their squares.
    pub squared: bool,
}

/// A root of the equation (or its square root), as a pole and the distance from it. Their sum would lose digits of the
/// distance.
#[derive(Clone, Copy, Default)]
pub struct Root {
    origin: f64,
    from: f64,
}

impl Root {
    pub fn value(self) -> f64 {
        self.origin + self.from
    }
}

/// The sums of the terms of some poles, and of these terms' derivatives.
#[derive(Clone, Copy, Default)]
struct Sums {
    value: f64,
    slope: f64,
}

impl Secular<'_> {
    /// The distance from pole `i` to pole `j`.
    #[inline(always)]
    pub fn between(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.poles[i], self.poles[j]);
        if self.squared { (b - a) * (b + a) } else { b - a }
    }

    /// The distance from a root (or its square) to pole `j`.
    #[inline(always)]
    pub fn pole_from_root(&self, root: Root, j: usize) -> f64 {
        self.gap(j, root.origin, root.from)
    }

    #[inline(always)]
    fn gap(&self, j: usize, origin: f64, from: f64) -> f64 {
        let gap = (self.poles[j] - origin) - from;
        if self.squared { gap * ((self.poles[j] + origin) + from) } else { gap }
    }

    fn sums(&self, first: usize, end: usize, origin: f64, from: f64) -> Sums {
        let (mut values, mut slopes) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |l: usize, j: usize| {
            let inverse = 1.0 / self.gap(j, origin, from);
            let term = self.weights[j] * inverse;
            values[l] += term;
            slopes[l] += term * inverse;
        };
        let whole = first + (end - first) / LANES * LANES;
        for j in (first..whole).step_by(LANES) {
            (0..LANES).for_each(|l| add(l, j + l));
        }
        (whole..end).for_each(|j| add(j - whole, j));
        Sums { value: values.into_iter().sum(), slope: slopes.into_iter().sum() }
    }

    /// The root after pole `i`.
    pub fn root(&self, i: usize) -> Root {
        let k = self.poles.len();
        let last = i + 1 == k;
        let low = self.poles[i];
        // The root is less than `width` above the pole.
        let width = match last {
            false => self.poles[i + 1] - low,
            true => {
                let more: f64 = self.weights.iter().sum();
                if self.squared { more / (low + (low * low + more).sqrt()) } else { more }
            }
        };
        let half = width / 2.0;
        let value = |origin, from| {
            1.0 + self.sums(0, i + 1, origin, from).value + self.sums(i + 1, k, origin, from).value
        };
        // Distances are exact if they are measured from the nearer pole.
        let (origin, mut at, mut interval) = if last {
            (low, half, [0.0, 2.0 * width])
        } else if value(low, half) >= 0.0 {
            (low, half, [0.0, half])
        } else {
            (self.poles[i + 1], half - width, [half - width, 0.0])
        };
        for step in 0..STEPS {
            let (left, right) = (self.sums(0, i + 1, origin, at), self.sums(i + 1, k, origin, at));
            let f = 1.0 + left.value + right.value;
            let noise = f64::EPSILON * (1.0 + left.value.abs() + right.value.abs());
            if f.abs() <= noise {
                break;
            }
            interval[(f > 0.0) as usize] = at;
            let gap = |j: usize| self.gap(j, origin, at);
            let by = if last {
                one_pole(f, left.slope, gap(i))
            } else {
                two_poles(f, left.slope, right.slope, gap(i), gap(i + 1))
            };
            let next = at + if self.squared { self.root_step(origin + at, by) } else { by };
            let within = next > interval[0] && next < interval[1];
            let next =
                if within && (step < PATIENCE || step % 2 == 0) { next } else { middle(interval) };
            let moved = (next - at).abs();
            at = next;
            if moved <= 2.0 * f64::EPSILON * at.abs() {
                break;
            }
        }
        Root { origin, from: at }
    }

    /// The change of the square root of `x` when x changes by `by`.
    fn root_step(&self, root: f64, by: f64) -> f64 {
        by / (root + (root * root + by).max(0.0).sqrt())
    }
}

/// The step to the root of `c + a / (gap - x)`, a function with the same value and slope.
fn one_pole(f: f64, slope: f64, gap: f64) -> f64 {
    gap * f / (f - gap * slope)
}

/// The step to the root of `c + a / (left - x) + b / (right - x)`, where the terms of the poles on each side have the
/// same slopes (Li, Solving secular equations stably and efficiently, 1993: the middle way).
fn two_poles(f: f64, left_slope: f64, right_slope: f64, left: f64, right: f64) -> f64 {
    let c = f - left * left_slope - right * right_slope;
    let a = (left + right) * f - left * right * (left_slope + right_slope);
    let b = left * right * f;
    let root = (a * a - 4.0 * b * c).max(0.0).sqrt();
    if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
}

/// A point well inside an interval. The interval does not cross zero, which is a pole.
fn middle([low, high]: [f64; 2]) -> f64 {
    match (low == 0.0, high == 0.0) {
        (true, _) => high / 64.0,
        (_, true) => low / 64.0,
        // If the ends differ much in magnitude, take the middle of the exponents.
        _ if low.signum() == high.signum() && (low / high).abs().log2().abs() > 2.0 => {
            low.signum() * (low.abs().sqrt() * high.abs().sqrt())
        }
        _ => low + (high - low) / 2.0,
    }
}
