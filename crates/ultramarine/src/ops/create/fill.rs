//! Creation: filled arrays and ranges.

use crate::backend::{Exec, Operand, buffer::Buffer};
use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::shapeless::{filled_like, shapeless};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Jvp, Op, Rules, Vjp, Vmap, attributes,
    no_derivatives, select::where_,
};
use crate::placement::{self, follow};
use crate::shape::{self, Shape, Show, Strides};
use crate::{array::Array, arrays::Arrays, devices, dtype::Dtype, node::Value, scalar::Scalar};
use ultramarine_abi::schema::{NoAttrs, op};

/// An array with every element equal to `value`.
pub(crate) fn filled(shape: Shape, value: Scalar) -> Array {
    if value.dtype().is_storage() {
        return crate::ops::copy::storage::filled(shape, value);
    }
    Fill { value, spread: false }.of(shape)
}

impl Array {
    /// Returns a 0-d array of one value, in the dtype of the value (`f32` gives float32, `i32`
    /// int32, `bool` bool).
    pub fn scalar(value: impl Into<Scalar>) -> Array {
        filled(Shape::new(), value.into())
    }

    /// Returns an array of shape `shape` whose elements all are `value`, in the dtype of the value.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::full(&[2, 3], 7i32)?;
    /// assert_eq!((x.shape(), x.to_vec::<i32>()?), (&[2, 3][..], vec![7; 6]));
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn full(shape: &[usize], value: impl Into<Scalar>) -> Result<Array> {
        let value = value.into();
        shape::check("full", shape)?;
        Ok(filled(Shape::from_slice(shape), value))
    }

    /// Returns an array of shape `shape` and element type `dtype` whose elements all are 0.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn zeros(shape: &[usize], dtype: Dtype) -> Result<Array> {
        Array::full(shape, Scalar::from_i64(dtype, 0))
    }

    /// Returns an array of shape `shape` and element type `dtype` whose elements all are 1.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn ones(shape: &[usize], dtype: Dtype) -> Result<Array> {
        Array::full(shape, Scalar::from_i64(dtype, 1))
    }

    /// Returns an array of this array's shape, dtype and device whose elements all are `value`,
    /// converted to the dtype.
    pub fn full_like(&self, value: impl Into<Scalar>) -> Array {
        let _home = follow(&[self]);
        filled_like(self, value.into().cast(self.dtype()))
    }

    /// Returns `value` in this array's shape, in the dtype of the value. [`Array::full_like`]
    /// converts the value to this array's dtype.
    pub fn filled_like(&self, value: impl Into<Scalar>) -> Array {
        filled_like(self, value.into())
    }

    /// `value` in its own dtype, for use as the other operand of a broadcasting function. It has this array's shape, so
    /// no broadcast node is needed. (It is 0-d in shapeless traces, in which shapes follow their operands.)
    pub fn constant_beside(&self, value: impl Into<Scalar>) -> Array {
        let shape = if shapeless() { Shape::new() } else { Shape::from_slice(self.shape()) };
        filled(shape, value.into())
    }

    /// Returns zeros in this array's shape, dtype and device. [`Array::full_like`] takes another
    /// value.
    pub fn zeros_like(&self) -> Array {
        self.full_like(0i32)
    }

    /// Returns ones in this array's shape, dtype and device. [`Array::full_like`] takes another
    /// value.
    pub fn ones_like(&self) -> Array {
        self.full_like(1i32)
    }

    /// Returns uninitialised memory on the current stream's device, of shape `shape` and element type `dtype`. The
    /// elements are unspecified (bool: false). Another library can write into the array through [`Array::to_dlpack`].
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large, [`Error::Memory`] when memory runs out.
    pub fn empty(shape: &[usize], dtype: Dtype) -> Result<Array> {
        shape::check("empty", shape)?;
        if dtype == Dtype::Bool {
            // A byte other than 0 or 1 would be an invalid bool.
            let zeros = Array::zeros(shape, dtype)?;
            zeros.eval()?;
            return Ok(zeros);
        }
        let device = devices::get(placement::place(&Op::GIVEN, &[])?.stream.device)?;
        let buffer = Buffer::new(dtype.bytes_of(shape::size(shape)), device)?;
        let value = Value { buffer, offset: 0, strides: shape::contiguous_strides(shape) };
        Ok(Array::given(value, Shape::from_slice(shape), dtype))
    }

    /// Returns uninitialised memory in this array's shape and dtype; see [`Array::empty`].
    ///
    /// # Errors
    /// As [`Array::empty`].
    pub fn empty_like(&self) -> Result<Array> {
        self.beside(|| Array::empty(self.shape(), self.dtype()))
    }

    /// Returns an `n` x `m` matrix with ones on the diagonal `k` and zeros elsewhere. Diagonal 0 is
    /// the main one; positive `k` lie above it, negative ones below.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::eye(2, 3, 1, Dtype::Int32)?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 0, 0, 0, 1]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn eye(n: usize, m: usize, k: isize, dtype: Dtype) -> Result<Array> {
        let (columns, diagonal) = plane("eye", n, m, k)?;
        Ok(columns.equal(&diagonal)?.astype(dtype))
    }

    /// Returns the `n` x `n` identity matrix.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn identity(n: usize, dtype: Dtype) -> Result<Array> {
        Array::eye(n, n, 0, dtype)
    }

    /// Returns an `n` x `m` matrix with ones on and below the diagonal `k` (see [`Array::eye`]) and
    /// zeros above it.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn tri(n: usize, m: usize, k: isize, dtype: Dtype) -> Result<Array> {
        let (columns, diagonal) = plane("tri", n, m, k)?;
        Ok(columns.less_equal(&diagonal)?.astype(dtype))
    }

    /// Returns the lower triangles of matrices `(..., m, n)`: elements above the diagonal `k` (see
    /// [`Array::eye`]) become 0.
    ///
    /// # Errors
    /// [`Error::Value`] with fewer than two dimensions.
    pub fn tril(&self, k: isize) -> Result<Array> {
        let _home = follow(&[self]);
        let mask = self.below("tril", k)?;
        where_(&mask, self, self.zeros_like())
    }

    /// Returns the upper triangles of matrices `(..., m, n)`: elements below the diagonal `k` (see
    /// [`Array::eye`]) become 0.
    ///
    /// # Errors
    /// [`Error::Value`] with fewer than two dimensions.
    pub fn triu(&self, k: isize) -> Result<Array> {
        let _home = follow(&[self]);
        let mask = self.below("triu", k.saturating_sub(1))?;
        where_(&mask, self.zeros_like(), self)
    }

    fn below(&self, op: &str, k: isize) -> Result<Array> {
        let [.., n, m] = self.shape() else {
            bail!(
                op,
                "array must be at least 2-D, but has shape {}. Reshape or expand it.",
                Show(self.shape())
            )
        };
        Array::tri(*n, *m, k, Dtype::Bool)
    }

    /// Returns `num` evenly spaced numbers from `start` to `stop`, of shape `(num)`. With
    /// `endpoint` the last one is `stop`; else the step is `(stop - start) / num`, and `stop` is
    /// left out. Numbers are computed in float32 (float64 for that dtype) and converted to `dtype`.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::linspace(0.0, 1.0, 5, true, Dtype::Float32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when there are too many.
    pub fn linspace(
        start: f64,
        stop: f64,
        num: usize,
        endpoint: bool,
        dtype: Dtype,
    ) -> Result<Array> {
        let float = if dtype == Dtype::Float64 { dtype } else { Dtype::Float32 };
        shape::check("linspace", &[num])?;
        let steps = if endpoint { num.saturating_sub(1) } else { num };
        let index =
            Array::of(Arange { start: 0.0, step: 1.0 }, &[], Shape::from_elem(num, 1), float);
        let t = index.divide(index.like(steps.max(1) as f64))?;
        let rest = t.like(1.0).subtract(&t)?;
        let a = rest.multiply(t.like(start))?.add(&t.multiply(t.like(stop))?)?;
        Ok(a.astype(dtype))
    }

    /// Returns the numbers `start`, `start + step`, ... before `stop`, as a 1-d array. With a
    /// negative `step` they go down to `stop`; if `stop` lies in the other direction, the array is
    /// empty. An infinite step towards `stop` gives `start` alone.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::arange(0.0, 1.0, 0.25, Dtype::Float32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75]);
    /// assert_eq!(Array::arange(3.0, 0.0, -1.0, Dtype::Int32)?.to_vec::<i32>()?, [3, 2, 1]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] if `step` is zero or NaN, if a bound is not finite, if there are too many
    /// elements, and for bool.
    pub fn arange(start: f64, stop: f64, step: f64, dtype: Dtype) -> Result<Array> {
        if dtype == Dtype::Bool {
            return Err(Error::Value(
                "[arange] bool not supported for arange. Pass an integer dtype.".into(),
            ));
        }
        if !start.is_finite() || !stop.is_finite() || step.is_nan() {
            bail!(
                "arange",
                "Cannot compute length from {start} to {stop} by {step}. Pass finite numbers."
            );
        }
        ensure!(step != 0.0, "arange", "step must be nonzero. Pass a positive or negative step.");
        let (n, step) = if step.is_infinite() {
            // Compute only 0 * step, because step * infinity must not become NaN.
            let towards = if step > 0.0 { start < stop } else { stop < start };
            (f64::from(u8::from(towards)), 1.0)
        } else {
            (((stop - start) / step).ceil().max(0.0), step)
        };
        ensure!(
            n <= i32::MAX as f64,
            "arange",
            "Maximum size exceeded: {n} elements, where {} are possible. Use a larger step, or concatenate parts.",
            i32::MAX
        );
        // Integers: the step is the difference of the first two numbers, each of them truncated.
        let (start, step) = if dtype.is_inexact() {
            (start, step)
        } else {
            (start.trunc(), (start + step).trunc() - start.trunc())
        };
        Array::try_of(Arange { start, step }, &[], Shape::from_elem(n as usize, 1), dtype)
    }
}

/// A row with the number of each column, and a column with, for each row, the number of the column in which the `k`-th
/// diagonal meets the row.
fn plane(op: &str, n: usize, m: usize, k: isize) -> Result<(Array, Array)> {
    shape::check(op, &[n, m])?;
    // All diagonals outside the matrix give the same result.
    let k = k.clamp(-(n as isize), m as isize) as f64;
    let range = |start: f64, shape: Shape| {
        let flat = Shape::from_elem(shape::size(&shape), 1);
        Array::of(Arange { start, step: 1.0 }, &[], flat, Dtype::Int64).reshape(&shape)
    };
    let columns = range(0.0, Shape::from_slice(&[1, m]))?.broadcast_to(&[n, m])?;
    Ok((columns, range(k, Shape::from_slice(&[n, 1]))?.broadcast_to(&[n, m])?))
}

/// Returns the coordinate matrices of 1-d arrays of sizes `n0`, `n1`, ... (arrays of other ranks
/// are flattened). With `indexing` "ij", array `i` varies along axis `i`, and each result has the
/// shape `(n0, n1, ...)`. With "xy" the first two axes are exchanged. `sparse` leaves the other
/// axes at size 1.
///
/// ```
/// use ultramarine::{Array, meshgrid};
/// let (x, y) = (Array::from_slice(&[1, 2, 3], &[3])?, Array::from_slice(&[4, 5], &[2])?);
/// let grid = meshgrid(&[&x, &y], false, "ij")?;
/// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 2, 2, 3, 3]);
/// assert_eq!(grid[1].to_vec::<i32>()?, [4, 5, 4, 5, 4, 5]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] for another `indexing` than "xy" and "ij".
pub fn meshgrid(arrays: impl Arrays, sparse: bool, indexing: &str) -> Result<Vec<Array>> {
    ensure!(
        matches!(indexing, "xy" | "ij"),
        "meshgrid",
        "Invalid indexing value '{indexing}'. Use 'xy' or 'ij'."
    );
    let arrays = arrays.borrowed();
    let n = arrays.len();
    let place = |i: usize| if indexing == "xy" && n > 1 && i < 2 { 1 - i } else { i };
    let grids: Vec<Array> = arrays
        .into_iter()
        .enumerate()
        .map(|(i, a)| {
            let mut shape = Shape::from_elem(1, n);
            shape[place(i)] = a.size();
            a.reshape(&shape)
        })
        .collect::<Result<_>>()?;
    if sparse { Ok(grids) } else { crate::ops::shape::reshape::broadcast_arrays(&grids) }
}

/// One element in memory, broadcast to `shape`, for kernels that take an operand which the graph does not have.
pub(crate) fn broadcast_constant(exec: &Exec, scalar: Scalar, shape: &[usize]) -> Result<Value> {
    let mut value = exec.alloc(&[], scalar.dtype())?;
    let out = Operand { value: &value, shape: &[], dtype: scalar.dtype() };
    exec.run(op::FILL, &NoAttrs::new(), &[], &[out], &[scalar])?;
    value.strides = Strides::from_elem(0, shape.len());
    Ok(value)
}

attributes! {
    /// Sets every element to `value`. The node itself is never fused, because fused programs take the value as a
    /// constant.
    #[derive(Clone, Debug)]
    pub(crate) struct Fill {
        pub value: Scalar,
        /// All elements share one element of memory: a view that stands for a constant whose memory is never visible.
        pub spread: bool,
    }
}

impl Fill {
    /// Makes the array; its dtype must not be a storage dtype.
    pub fn of(self, shape: Shape) -> Array {
        let dtype = self.value.dtype();
        Array::of(self, &[], shape, dtype)
    }
}

impl Rules for Fill {
    fn name(&self) -> &'static str {
        "full"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([], (_, dtype))) = node.of() else { return false };
        dtype == self.value.dtype() && !dtype.is_storage()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        if self.spread && shape::size(call.shape) > 1 {
            return broadcast_constant(exec, self.value, call.shape);
        }
        call.run(exec, op::FILL, &NoAttrs::new(), &[self.value])
    }

    no_derivatives!();

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((self.clone().of(Shape::from_slice(v.shape)), None))
    }

    fn constant(&self) -> Option<Scalar> {
        Some(self.value)
    }
}

attributes! {
    /// `start + i * step`.
    #[derive(Clone, Debug)]
    pub(crate) struct Arange {
        start: f64,
        step: f64,
    }
}

impl Rules for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.follows(op::ARANGE, None, &[]) && node.outputs[0].0.len() == 1
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let scalar = |v: f64| {
            if call.dtype.is_inexact() {
                Scalar::from_f64(Dtype::Float64, v)
            } else {
                Scalar::from_f64(Dtype::Int64, v)
            }
        };
        let scalars = [scalar(self.start), scalar(self.step)];
        call.run(exec, op::ARANGE, &NoAttrs::new(), &scalars)
    }

    no_derivatives!();

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::candidates(self.start, self.step, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((Array::of(self.clone(), &[], Shape::from_slice(v.shape), v.dtype), None))
    }
}
