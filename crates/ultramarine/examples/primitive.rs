//! An operation of a program's own, without Python and without a library: NumPy's `interp`, linear interpolation in a
//! table of points.
//!
//! ```sh
//! cargo run --release -p ultramarine --example primitive
//! ```
//!
//! The kernel looks each number up by bisection. `compose` says the same with ordinary operations, by comparing it with
//! all points: slow, but derivatives, batching and other devices follow from it. The derivative by `x` has a rule of its
//! own, since it is another look into the table; those by the table are left to `compose`.

#![allow(clippy::print_stdout)] // It tells its results.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use ultramarine::extension::{
    self, Array as Operand, CpuCall, Dtype, Error, Number, Place, Primitive, TensorType, Vjp, Vmap,
    apply_one, call_one, match_dtype, parallel, where_,
};
use ultramarine::{
    Array, Device, Result, new_stream,
    transforms::{grad, vmap},
    with_stream,
};

/// What is looked up between two points of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    /// The straight line's height.
    Value,
    /// Its slope.
    Slope,
}

/// `interp(x, xp, fp)`: at each `x` the piecewise linear function through the points `(xp, fp)`, whose `xp` rise. Outside
/// of them the first and the last piece go on, or, clamped, the function is constant. Its fields are, with its name, the
/// operation's identity.
#[derive(Clone, Copy, Debug)]
struct Interp {
    look: Look,
    clamped: bool,
}

type Answer<T> = extension::Result<T>;

impl Primitive for Interp {
    fn name(&self) -> &str {
        "interp"
    }

    fn infer(&self, inputs: &[TensorType]) -> Answer<Vec<TensorType>> {
        let [x, xp, fp] = inputs else {
            return Err(Error::value(format!(
                "[interp] takes x, xp and fp, got {}.",
                inputs.len()
            )));
        };
        if xp.ndim() != 1 || xp.shape != fp.shape || xp.size() < 2 {
            return Err(Error::value(format!(
                "[interp] xp and fp are 2 points or more, got {xp} and {fp}."
            )));
        }
        match (x.dtype, xp.dtype, fp.dtype) {
            (Dtype::Float32 | Dtype::Float64, b, c) if b == x.dtype && c == x.dtype => {
                Ok(vec![x.clone()])
            }
            (a, b, c) => Err(Error::value(format!(
                "[interp] takes float32 or float64, got {a}, {b} and {c}."
            ))),
        }
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Answer<()> {
        match_dtype!(call.input_dtype(0)?, T in [f32, f64] => self.look_up::<T>(call))
    }

    /// Operands have types that `infer` was content with. Their operations run where they are.
    fn compose(&self, inputs: &[Operand]) -> Answer<Vec<Operand>> {
        let [x, xp, fp] = inputs else { return Err(Error::missing()) };
        let number = |n: usize| Operand::scalar(n as i32);
        // The piece that x is in: as many points as are not above it, less one.
        let below = xp.less_equal(&x.expand_dims(&[-1])?)?.astype(Dtype::Int32)?.sum([-1])?;
        let next = below.maximum(&number(1)?)?.minimum(&number(xp.shape()[0] - 1)?)?;
        let piece = next.subtract(&number(1)?)?;
        let (x0, y0) = (xp.take(&piece, 0)?, fp.take(&piece, 0)?);
        let (x1, y1) = (xp.take(&next, 0)?, fp.take(&next, 0)?);
        let slope = ((&y1 - &y0)? / (&x1 - &x0))?;
        let found = match (self.look, self.clamped) {
            (Look::Slope, false) => slope,
            (Look::Slope, true) => {
                let outside = x.less(&x0)?.logical_or(&x.greater(&x1)?)?;
                where_(&outside, &x.scalar_like(0.0)?, &slope)?
            }
            (Look::Value, false) => (&y0 + &slope * (x - &x0))?,
            (Look::Value, true) => {
                let inside = x.maximum(&x0)?.minimum(&x1)?;
                (&y0 + &slope * (&inside - &x0))?
            }
        };
        Ok(vec![found])
    }

    /// The derivative by x alone has a rule; that it has none by the table sends the whole to `compose`.
    fn vjp(&self, of: &Vjp<'_>) -> Answer<Vec<Option<Operand>>> {
        let ([x, xp, fp], Some(cotangent)) = (of.inputs, &of.cotangents[0]) else {
            return Ok(vec![None; of.inputs.len()]);
        };
        if self.look == Look::Slope || of.wanted[1..].contains(&true) {
            return Err(Error::missing());
        }
        let slope = Interp { look: Look::Slope, ..*self };
        let slope = apply_one(slope, &[x, xp, fp], Place::Default)?;
        Ok(vec![Some((cotangent * slope)?), None, None])
    }

    /// A batch of x is an x with an axis more. Tables of their own for each are left to `compose`.
    fn vmap(&self, of: &Vmap<'_>) -> Answer<Vec<(Operand, Option<usize>)>> {
        let (&[axis, None, None], [x, xp, fp]) = (of.axes, of.inputs) else {
            return Err(Error::missing());
        };
        Ok(vec![(apply_one(*self, &[x, xp, fp], Place::Default)?, axis)])
    }
}

impl Interp {
    /// The kernel: operands may have any strides, and the host's threads share the work.
    fn look_up<T: Real>(&self, call: &mut CpuCall<'_>) -> Answer<()> {
        let (x, xp, fp) = (call.input::<T>(0)?, call.input::<T>(1)?, call.input::<T>(2)?);
        let points: Vec<(f64, f64)> = xp.iter().map(T::wide).zip(fp.iter().map(T::wide)).collect();
        let x: Cow<'_, [T]> = match x.as_slice() {
            Some(numbers) => numbers.into(),
            None => x.iter().collect(),
        };
        let mut output = call.output::<T>(0)?;
        // Outputs that the host allocates are row-major.
        let Some(results) = output.as_mut_slice() else { return Err(Error::missing()) };
        let pieces: Vec<_> =
            x.chunks(PIECE).zip(results.chunks_mut(PIECE)).map(Mutex::new).collect();
        parallel(pieces.len(), 1, |range| {
            for piece in &pieces[range] {
                let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
                let (from, to) = &mut *piece;
                for (x, to) in from.iter().zip(to.iter_mut()) {
                    *to = T::narrow(self.at(x.wide(), &points));
                }
            }
        })
    }

    fn at(&self, x: f64, points: &[(f64, f64)]) -> f64 {
        let next = points.partition_point(|p| p.0 <= x).clamp(1, points.len() - 1);
        let ((x0, y0), (x1, y1)) = (points[next - 1], points[next]);
        let slope = (y1 - y0) / (x1 - x0);
        match self.look {
            Look::Slope if self.clamped && (x < x0 || x > x1) => 0.0,
            Look::Slope => slope,
            Look::Value if self.clamped => y0 + slope * (x.clamp(x0, x1) - x0),
            Look::Value => y0 + slope * (x - x0),
        }
    }
}

/// Numbers that a thread looks up at a time.
const PIECE: usize = 4096;

/// A number that is computed with in double precision.
trait Real: Number {
    fn wide(self) -> f64;
    fn narrow(wide: f64) -> Self;
}

impl Real for f32 {
    fn wide(self) -> f64 {
        self.into()
    }

    fn narrow(wide: f64) -> Self {
        wide as f32
    }
}

impl Real for f64 {
    fn wide(self) -> f64 {
        self
    }

    fn narrow(wide: f64) -> Self {
        wide
    }
}

/// The function for users. Operands of other dtypes become float32, or float64 if one is that.
pub fn interp(x: &Array, xp: &Array, fp: &Array, clamped: bool) -> Result<Array> {
    let wide = [x, xp, fp].iter().any(|a| a.dtype() == ultramarine::Dtype::Float64);
    let dtype = if wide { ultramarine::Dtype::Float64 } else { ultramarine::Dtype::Float32 };
    call_one(Interp { look: Look::Value, clamped }, &[x, xp, fp].map(|a| a.astype(dtype)))
}

/// Looks numbers up in a table of sines; it asserts what it tells.
pub fn main() -> Result<()> {
    // A table of sin, and numbers between its points.
    let xp: Vec<f32> = (0..=8).map(|i| i as f32 * 0.5).collect();
    let fp: Vec<f32> = xp.iter().map(|x| x.sin()).collect();
    let x = [0.25f32, 1.1, 3.9, -1.0, 5.0];
    let (xs, xps, fps) = (
        Array::from_slice(&x, &[5])?,
        Array::from_slice(&xp, &[9])?,
        Array::from_slice(&fp, &[9])?,
    );

    let values = interp(&xs, &xps, &fps, true)?.to_vec::<f32>()?;
    for (x, value) in x.iter().zip(&values) {
        println!("interp({x:5.2}) = {value:7.4}   sin = {:7.4}", x.sin());
    }
    let middle = 0.5 * (fp[0] + fp[1]);
    assert!(
        (values[0] - middle).abs() < 1e-6 && values[3] == fp[0] && values[4] == fp[8],
        "{values:?}"
    );

    // The slope by the rule; by the table through `compose`: each value draws on the two points beside it.
    let slopes = grad(|x: &Array| interp(x, &xps, &fps, true)?.sum(None))(&xs)?;
    let first = (fp[1] - fp[0]) / 0.5;
    let slopes = slopes.to_vec::<f32>()?;
    assert!((slopes[0] - first).abs() < 1e-5 && slopes[3] == 0.0, "{slopes:?}");
    let weights =
        grad(|fp: &Array| interp(&xs, &xps, fp, true)?.sum(None))(&fps)?.to_vec::<f32>()?;
    println!("by the table: {weights:.2?}");
    assert!((weights.iter().sum::<f32>() - 5.0).abs() < 1e-5 && weights[0] == 1.5, "{weights:?}");

    // A batch of tables, which has no rule, against one after the other; on a stream of its own.
    let stream = new_stream(Device::CPU)?;
    let tables =
        Array::from_slice(&[fp.clone(), fp.iter().map(|y| y * y).collect()].concat(), &[2, 9])?;
    let batch = with_stream(stream, || -> Result<Array> {
        let each = |a: &[Array]| Ok(vec![interp(&xs, &xps, &a[0], false)?]);
        Ok(vmap(each, &[&tables], 0, 0)?.remove(0))
    })?;
    assert_eq!((batch.shape(), batch.stream()), (&[2, 5][..], stream));
    let squares = fp.iter().map(|y| y * y).collect::<Vec<_>>();
    let one = interp(&xs, &xps, &Array::from_slice(&squares, &[9])?, false)?.to_vec::<f32>()?;
    let near = batch.to_vec::<f32>()?[5..].iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near, "{batch:?}, not {one:?}");

    // A batch of numbers stays one look into one table.
    let grid = Array::from_slice(&x.map(|x| x * 0.5), &[5])?;
    let both = ultramarine::stack(&[xs, grid], 1)?;
    let found = vmap(|a| Ok(vec![interp(&a[0], &xps, &fps, true)?]), &[both], 1, 0)?.remove(0);
    assert_eq!(found.shape(), [2, 5]);

    // What does not fit is said at the call.
    match interp(&Array::scalar(1.0f32), &xps, &tables, true) {
        Err(error) => println!("{error}"),
        Ok(_) => panic!("a table of two rows"),
    }
    Ok(())
}
