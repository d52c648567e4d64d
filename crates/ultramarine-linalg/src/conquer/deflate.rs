//! Deflation: finds values of the halves that are also values of the whole, up to rounding errors.

/// Magnitudes up to this count as zero: roots would be closer to poles than floating-point numbers can represent.
pub const LEAST: f64 = 1e-140;

/// A problem of rank one with the diagonal `d` and the vector `z`. It stands for `diag(d) + z z^T`, or for a diagonal
/// matrix whose row `centre`, where `d` is zero, is replaced by the row z.
pub struct Problem<'a> {
    pub d: &'a mut [f64],
    pub z: &'a mut [f64],
    pub centre: Option<usize>,
    /// Relative magnitude below which elements count as zero.
    pub unit: f64,
}

/// A rotation of the vectors `from` and `to`: `[to, from]` become `[c to + s from, c from - s to]`.
pub struct Rotation {
    pub from: usize,
    pub to: usize,
    pub c: f64,
    pub s: f64,
    /// Set if only right vectors are rotated.
    pub right_only: bool,
}

/// A problem after deflation: the values that remain for the secular equation, and the values that are known.
pub struct Deflated {
    /// Indices of the remaining values, which are ascending and distinct.
    pub kept: Vec<usize>,
    /// Indices of the values that are known.
    pub done: Vec<usize>,
    pub rotations: Vec<Rotation>,
}

impl Problem<'_> {
    pub fn deflate(self) -> Deflated {
        let Problem { d, z, centre, unit } = self;
        let most = |of: &[f64]| of.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
        // Magnitudes of a product with z, and of z itself.
        let (weight, size) = if centre.is_some() { (1.0, most(z)) } else { (norm, norm * norm) };
        let least = (unit * most(d).max(size)).max(LEAST);
        let mut order: Vec<usize> = (0..d.len()).collect();
        order.sort_by(|a, b| {
            let later = |i: usize| Some(i) != centre;
            d[*a].total_cmp(&d[*b]).then(later(*a).cmp(&later(*b)))
        });
        if let Some(centre) = centre
            && z[centre].abs() <= least
        {
            z[centre] = least;
        }
        let mut found = Deflated { kept: Vec::new(), done: Vec::new(), rotations: Vec::new() };
        for j in order {
            if Some(j) != centre && z[j].abs() * weight <= least {
                found.done.push(j);
                continue;
            }
            let Some(last) = found.kept.last_mut() else {
                found.kept.push(j);
                continue;
            };
            let p = *last;
            let both = z[j].hypot(z[p]);
            if Some(p) == centre {
                // Row j becomes `(s d, c d)` in the columns of both. Singular values have no sign.
                let both = both.copysign(z[p]);
                let (c, s) = (z[p] / both, z[j] / both);
                if (s * d[j]).abs() <= least {
                    (z[p], z[j]) = (both, 0.0);
                    d[j] *= c;
                    found.rotations.push(Rotation { from: j, to: p, c, s, right_only: true });
                    found.done.push(j);
                } else {
                    found.kept.push(j);
                }
                continue;
            }
            let (c, s) = (z[j] / both, z[p] / both);
            let apart = d[j] - d[p];
            if (apart * c * s).abs() <= least {
                (z[j], z[p]) = (both, 0.0);
                (d[j], d[p]) = (d[p] * s * s + d[j] * c * c, d[p] * c * c + d[j] * s * s);
                found.rotations.push(Rotation { from: p, to: j, c, s, right_only: false });
                found.done.push(p);
                *last = j;
            } else {
                found.kept.push(j);
            }
        }
        found
    }
}
