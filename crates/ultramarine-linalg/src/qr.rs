//! QR factors by Householder reflections, one after the other. faer's QR leaves out columns that are nearly
//! combinations of the columns before them, but small columns of an exact product can be such columns too.

use crate::{Number, work::power_of_two};

pub(crate) fn qr<T: Number>(a: &mut [T], m: usize, n: usize, q: &mut [T]) -> Result<(), String> {
    let k = m.min(n);
    let (a, q) = (&mut a[..m * n], &mut q[..m * k]);
    let mut taus = vec![T::default(); k];
    for (j, tau) in taus.iter_mut().enumerate() {
        let (done, rest) = a.split_at_mut((j + 1) * m);
        let v = &mut done[j * m + j..];
        let (head, made) = reflection(v);
        *tau = made;
        v[0] = T::ONE;
        rest.chunks_exact_mut(m).for_each(|column| reflect(v, tau.conjugate(), &mut column[j..]));
        // Store the diagonal in the place of Q's column until V is no longer needed.
        q[j * m] = head;
    }
    let diagonal: Vec<T> = (0..k).map(|j| q[j * m]).collect();
    q.fill(T::default());
    (0..k).for_each(|j| q[j + j * m] = T::ONE);
    for j in (0..k).rev() {
        let v = &a[j * m + j..(j + 1) * m];
        q[j * m..].chunks_exact_mut(m).for_each(|column| reflect(v, taus[j], &mut column[j..]));
    }
    for (j, column) in a.chunks_exact_mut(m.max(1)).enumerate() {
        column.iter_mut().skip(j + 1).for_each(|v| *v = T::default());
        if j < k {
            column[j] = diagonal[j];
        }
    }
    Ok(())
}

/// Replaces a column, except its first element, by v of the reflection `I - tau v v^H`, whose adjoint maps the column
/// to a multiple of the first unit vector. Returns that multiple, which is real, and tau.
fn reflection<T: Number>(column: &mut [T]) -> (T, T) {
    let most = column.iter().map(|v| v.magnitude()).fold(0.0, f64::max);
    let scale = if most.is_finite() { power_of_two(most, 1e100) } else { 1.0 };
    let square = |v: &T| v.parts().iter().map(|p| (p * scale) * (p * scale)).sum::<f64>();
    let rest: f64 = column[1..].iter().map(square).sum();
    let [re, im] = column[0].parts().map(|p| p * scale);
    if rest == 0.0 && im == 0.0 {
        return (column[0], T::default());
    }
    let beta = -(re * re + im * im + rest).sqrt().copysign(re);
    let (x, y) = (re - beta, im);
    let size = x * x + y * y;
    let inverse = [x / size, -y / size];
    for v in &mut column[1..] {
        let [re, im] = v.parts().map(|p| p * scale);
        let [a, b] = inverse;
        *v = T::of_parts([re * a - im * b, re * b + im * a]);
    }
    (T::of_parts([beta / scale, 0.0]), T::of_parts([(beta - re) / beta, -im / beta]))
}

/// `column -= tau v v^H column`.
fn reflect<T: Number>(v: &[T], tau: T, column: &mut [T]) {
    let mut dot = T::default();
    for (v, c) in v.iter().zip(&*column) {
        dot -= -(v.conjugate() * *c);
    }
    let by = tau * dot;
    column.iter_mut().zip(v).for_each(|(c, v)| *c -= *v * by);
}
