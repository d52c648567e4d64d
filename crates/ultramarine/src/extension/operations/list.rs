//! The table of operations. A row lists the name, the number of operands, the attributes with their kinds and defaults,
//! and the call.

use super::Operation;
use super::values::{Kind, Spec, Values};
use crate::error::{Error, Result, ensure};
use crate::ops::matmul::{addmm, einsum::einsum};
use crate::ops::shape::axes::Reduced;
use crate::ops::shape::concatenate::{concatenate, stack};
use crate::ops::shape::{pad::PadMode, reshape::broadcast_arrays};
use crate::{array::Array, dtype::Dtype, ops::select::where_, scalar::Scalar};

const MANY: usize = usize::MAX;

/// The operations of all tables.
pub(super) fn operations() -> impl Iterator<Item = &'static Operation> {
    [UNARY, BINARY, REDUCE, ARG_REDUCE, SCAN, OTHERS].into_iter().flatten()
}

/// The attributes of a row.
macro_rules! specs {
    ([$($attribute:ident $kind:ident $(= $default:literal)?),*]) => {
        &[$(Spec {
            name: stringify!($attribute),
            kind: Kind::$kind,
            default: specs!(@default $($default)?),
        }),*]
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}

/// Operations that are methods of the same name on the first operand, with these arguments.
macro_rules! methods {
    ($table:ident: $operands:literal, $attributes:tt |$x:ident, $v:ident| $arguments:tt $($name:ident)*) => {
        static $table: &[Operation] = &[$(Operation {
            name: stringify!($name),
            operands: ($operands, $operands),
            attributes: specs!($attributes),
            run: |$x: &[Array], $v: &Values<'_>| -> Result<Vec<Array>> { one($x[0].$name $arguments) },
        }),*];
    };
}

/// The remaining rows. Operands are `x`, attributes `v`.
macro_rules! table {
    ($($name:literal $least:literal $(.. $most:expr)?, $attributes:tt |$x:ident, $v:ident| $call:expr;)*) => {
        static OTHERS: &[Operation] = &[$(Operation {
            name: $name,
            operands: ($least, table!(@most $least $($most)?)),
            attributes: specs!($attributes),
            run: |$x: &[Array], $v: &Values<'_>| -> Result<Vec<Array>> { one($call) },
        }),*];
    };
    (@most $least:literal) => { $least };
    (@most $least:literal $most:expr) => { $most };
}

/// Result of a row's call: one array or several, with or without errors.
trait Results {
    fn listed(self) -> Result<Vec<Array>>;
}

impl Results for Array {
    fn listed(self) -> Result<Vec<Array>> {
        Ok(vec![self])
    }
}

impl Results for Result<Array> {
    fn listed(self) -> Result<Vec<Array>> {
        Ok(vec![self?])
    }
}

impl Results for Result<(Array, Array)> {
    fn listed(self) -> Result<Vec<Array>> {
        self.map(|(a, b)| vec![a, b])
    }
}

impl Results for Result<Vec<Array>> {
    fn listed(self) -> Result<Vec<Array>> {
        self
    }
}

fn one(results: impl Results) -> Result<Vec<Array>> {
    results.listed()
}

/// Axes in the form that reductions take.
fn axes(v: &Values<'_>) -> Option<Vec<isize>> {
    v.integers("axis")
}

/// The dtype of created arrays, if none is given.
fn dtype(v: &Values<'_>) -> Dtype {
    v.dtype("dtype").unwrap_or(Dtype::Float32)
}

/// `full`: the first operand, broadcast and converted.
fn full(x: &[Array], v: &Values<'_>) -> Result<Array> {
    let value = match v.dtype("dtype") {
        Some(dtype) => x[0].try_astype(dtype)?,
        None => x[0].clone(),
    };
    value.broadcast_to(&v.sizes("shape")?)
}

fn like(x: &Array, v: &Values<'_>, value: i64) -> Array {
    let dtype = v.dtype("dtype").unwrap_or(x.dtype());
    x.try_astype(dtype).map_or_else(
        |error| Array::failed(error, x.shape().into(), dtype),
        |x| x.full_like(Scalar::from_i64(dtype, value)),
    )
}

fn arange(v: &Values<'_>) -> Result<Array> {
    let start = v.number("start").unwrap_or(0.0);
    let (start, stop) = match v.number("stop") {
        Some(stop) => (start, stop),
        None => (0.0, start),
    };
    Array::arange(start, stop, v.number("step").unwrap_or(1.0), dtype(v))
}

fn eye(v: &Values<'_>, make: fn(usize, usize, isize, Dtype) -> Result<Array>) -> Result<Array> {
    let n = v.size("n")?.unwrap_or(0);
    make(n, v.size("m")?.unwrap_or(n), v.integer_or("k", 0), dtype(v))
}

fn slice(x: &Array, v: &Values<'_>) -> Result<Array> {
    let step = v.integers("step").unwrap_or_else(|| vec![1; x.ndim()]);
    let (start, stop) = (v.integers("start"), v.integers("stop"));
    x.slice(&start.unwrap_or_default(), &stop.unwrap_or_default(), &step)
}

fn slice_update(x: &[Array], v: &Values<'_>) -> Result<Array> {
    let step = v.integers("step").unwrap_or_else(|| vec![1; x[0].ndim()]);
    let (start, stop) = (v.integers("start"), v.integers("stop"));
    x[0].slice_update(&x[1], &start.unwrap_or_default(), &stop.unwrap_or_default(), &step)
}

fn pad(x: &[Array], v: &Values<'_>) -> Result<Array> {
    let all = v.sizes("pad_width")?;
    let widths: Vec<(usize, usize)> = match all[..] {
        [both] => vec![(both, both); x[0].ndim()],
        _ => all.chunks(2).map(|w| (w[0], w.get(1).copied().unwrap_or(w[0]))).collect(),
    };
    ensure!(
        widths.len() == x[0].ndim(),
        "pad",
        "pad_width has {} numbers for {} dimensions. Pass one number, or two for each dimension.",
        all.len(),
        x[0].ndim()
    );
    let mode = PadMode::from_name(v.text("mode").unwrap_or("constant"))?;
    let value = match x.get(1) {
        Some(value) => value.clone(),
        None => x[0].beside(|| Array::scalar(Scalar::from_i64(x[0].dtype(), 0))),
    };
    x[0].pad(&widths, mode, &value)
}

fn split(x: &Array, v: &Values<'_>) -> Result<Vec<Array>> {
    let axis = v.integer_or("axis", 0);
    match v.integer("indices_or_sections") {
        Some(n) => match usize::try_from(n) {
            Ok(n) => x.split(n, axis),
            Err(_) => Err(Error::value(
                "split",
                format!("Cannot split into {n} sections. Pass a positive number."),
            )),
        },
        None => {
            let indices = v.integers("indices_or_sections").unwrap_or_default();
            x.split_at(&indices, axis)
        }
    }
}

fn tensordot(x: &[Array], v: &Values<'_>) -> Result<Array> {
    match (v.integers("left"), v.integers("right")) {
        (Some(left), Some(right)) => x[0].tensordot_axes(&x[1], &left, &right),
        (None, None) => x[0].tensordot(&x[1], v.integer_or("axes", 2)),
        _ => Err(Error::value(
            "tensordot",
            "Got only one of `left` and `right`. Pass both, or neither.",
        )),
    }
}

fn trace(x: &Array, v: &Values<'_>) -> Result<Array> {
    let (offset, a, b) =
        (v.integer_or("offset", 0), v.integer_or("axis1", 0), v.integer_or("axis2", 1));
    let sum = x.trace(offset, a, b)?;
    v.dtype("dtype").map_or(Ok(sum.clone()), |d| sum.try_astype(d))
}

/// A copy on the call's device if it names one, else on the operand's.
fn copy(x: &Array) -> Result<Array> {
    match crate::stream::scoped() {
        Some(stream) if stream.device != x.device() => x.copy_to(stream.device),
        _ => x.duplicate(),
    }
}

methods! {
    UNARY: 1, [] |x, _v| ()
    abs negative positive sign square sqrt rsqrt reciprocal exp expm1 log log2 log10 log1p sin cos
    tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf erfinv sigmoid floor ceil
    trunc degrees radians conjugate real imag isnan isinf isfinite isposinf isneginf logical_not
    bitwise_invert stop_gradient contiguous atleast_1d atleast_2d atleast_3d
}

methods! {
    BINARY: 2, [] |x, _v| (&x[1])
    add subtract multiply divide floor_divide remainder divmod power maximum minimum logaddexp
    arctan2 xlogy equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift matmul inner outer kron
}

methods! {
    REDUCE: 1, [axis Integers = "all", keepdims Flag = "0"]
    |x, v| (Reduced::new(axes(v).as_deref(), v.flag("keepdims", false)))
    sum prod mean max min any all median logsumexp
}

methods! {
    ARG_REDUCE: 1, [axis Integer = "flattened", keepdims Flag = "0"]
    |x, v| (Reduced::new(v.integer("axis"), v.flag("keepdims", false)))
    argmax argmin
}

methods! {
    SCAN: 1, [axis Integer = "flattened", reverse Flag = "0", inclusive Flag = "1"]
    |x, v| (v.integer("axis"), v.flag("reverse", false), v.flag("inclusive", true))
    cumsum cumprod cummax cummin logcumsumexp
}

table! {
    "round" 1, [decimals Integer = "0"] |x, v| x[0].round(v.integer_or("decimals", 0) as i32);
    "nan_to_num" 1, [nan Number = "0", posinf Number = "the largest", neginf Number = "the lowest"]
        |x, v| x[0].nan_to_num(v.number("nan").unwrap_or(0.0), v.number("posinf"), v.number("neginf"));

    "isclose" 2, [rtol Number = "1e-5", atol Number = "1e-8", equal_nan Flag = "0"]
        |x, v| x[0].isclose(&x[1], v.number("rtol").unwrap_or(1e-5), v.number("atol").unwrap_or(1e-8),
            v.flag("equal_nan", false));
    "allclose" 2, [rtol Number = "1e-5", atol Number = "1e-8", equal_nan Flag = "0"]
        |x, v| x[0].allclose(&x[1], v.number("rtol").unwrap_or(1e-5), v.number("atol").unwrap_or(1e-8),
            v.flag("equal_nan", false));
    "array_equal" 2, [equal_nan Flag = "0"] |x, v| x[0].array_equal(&x[1], v.flag("equal_nan", false));
    "where" 3, [] |x, _v| where_(&x[0], &x[1], &x[2]);
    "clip" 3, [] |x, _v| x[0].clip(Some(&x[1]), Some(&x[2]));

    "astype" 1, [dtype Dtype] |x, v| x[0].try_astype(dtype(v));
    "view" 1, [dtype Dtype] |x, v| x[0].view(dtype(v));
    "copy" 1, [] |x, _v| copy(&x[0]);

    "reshape" 1, [shape Integers] |x, v| x[0].reshape(&v.integers("shape").unwrap_or_default());
    "flatten" 1, [start_axis Integer = "0", end_axis Integer = "-1"]
        |x, v| x[0].flatten(v.integer_or("start_axis", 0), v.integer_or("end_axis", -1));
    "unflatten" 1, [axis Integer, shape Integers]
        |x, v| x[0].unflatten(v.integer_or("axis", 0), &v.integers("shape").unwrap_or_default());
    "transpose" 1, [axes Integers = "all, reversed"]
        |x, v| v.integers("axes").map_or_else(|| x[0].transpose(), |axes| x[0].transpose_axes(&axes));
    "moveaxis" 1, [source Integer, destination Integer]
        |x, v| x[0].moveaxis(v.integer_or("source", 0), v.integer_or("destination", 0));
    "swapaxes" 1, [axis1 Integer, axis2 Integer]
        |x, v| x[0].swapaxes(v.integer_or("axis1", 0), v.integer_or("axis2", 0));
    "expand_dims" 1, [axis Integers] |x, v| x[0].expand_dims(axes(v).unwrap_or_default());
    "squeeze" 1, [axis Integers = "all of size 1"] |x, v| x[0].squeeze(axes(v).as_deref());
    "broadcast_to" 1, [shape Integers] |x, v| x[0].broadcast_to(&v.sizes("shape")?);
    "broadcast_arrays" 1 .. MANY, [] |x, _v| broadcast_arrays(x);

    "var" 1, [axis Integers = "all", keepdims Flag = "0", ddof Integer = "0"]
        |x, v| x[0].var(Reduced::new(axes(v).as_deref(), v.flag("keepdims", false)), v.size("ddof")?.unwrap_or(0));
    "std" 1, [axis Integers = "all", keepdims Flag = "0", ddof Integer = "0"]
        |x, v| x[0].std(Reduced::new(axes(v).as_deref(), v.flag("keepdims", false)), v.size("ddof")?.unwrap_or(0));
    "softmax" 1, [axis Integers = "all", precise Flag = "0"]
        |x, v| x[0].softmax(axes(v).as_deref(), v.flag("precise", false));

    "sort" 1, [axis Integer = "-1"] |x, v| x[0].sort(Some(v.integer_or("axis", -1)));
    "argsort" 1, [axis Integer = "-1"] |x, v| x[0].argsort(Some(v.integer_or("axis", -1)));
    "partition" 1, [kth Integer, axis Integer = "-1"]
        |x, v| x[0].partition(v.integer_or("kth", 0), Some(v.integer_or("axis", -1)));
    "argpartition" 1, [kth Integer, axis Integer = "-1"]
        |x, v| x[0].argpartition(v.integer_or("kth", 0), Some(v.integer_or("axis", -1)));
    "topk" 1, [k Integer, axis Integer = "-1"]
        |x, v| x[0].topk(v.integer_or("k", 0), Some(v.integer_or("axis", -1)));

    "addmm" 3, [alpha Number = "1", beta Number = "1"]
        |x, v| addmm(&x[0], &x[1], &x[2], v.number("alpha").unwrap_or(1.0), v.number("beta").unwrap_or(1.0));
    "tensordot" 2, [axes Integer = "2", left Integers = "by axes", right Integers = "by axes"] |x, v| tensordot(x, v);
    "einsum" 1 .. MANY, [subscripts Text] |x, v| einsum(v.text("subscripts").unwrap_or(""), x);

    "concatenate" 1 .. MANY, [axis Integer = "0"] |x, v| concatenate(x, v.integer_or("axis", 0));
    "stack" 1 .. MANY, [axis Integer = "0"] |x, v| stack(x, v.integer_or("axis", 0));
    "split" 1, [indices_or_sections Integers, axis Integer = "0"] |x, v| split(&x[0], v);
    "repeat" 1, [repeats Integer, axis Integer = "flattened"]
        |x, v| x[0].repeat(v.size("repeats")?.unwrap_or(0), v.integer("axis"));
    "tile" 1, [reps Integers] |x, v| x[0].tile(&v.sizes("reps")?);
    "roll" 1, [shift Integers, axis Integers = "flattened"]
        |x, v| x[0].roll(&v.integers("shift").unwrap_or_default(), axes(v).as_deref());
    "pad" 1 .. 2, [pad_width Integers, mode Text = "constant"] |x, v| pad(x, v);
    "slice" 1, [start Integers, stop Integers, step Integers = "1"] |x, v| slice(&x[0], v);
    "slice_update" 2, [start Integers, stop Integers, step Integers = "1"] |x, v| slice_update(x, v);
    "flip" 1, [axis Integers = "all"] |x, v| x[0].flip(axes(v).as_deref());
    "take" 2, [axis Integer = "flattened"] |x, v| x[0].take(&x[1], v.integer("axis"));
    "take_along_axis" 2, [axis Integer = "-1"]
        |x, v| x[0].take_along_axis(&x[1], Some(v.integer_or("axis", -1)));
    "put_along_axis" 3, [axis Integer = "flattened"]
        |x, v| x[0].put_along_axis(&x[1], &x[2], v.integer("axis"));
    "diag" 1, [k Integer = "0"] |x, v| x[0].diag(v.integer_or("k", 0));
    "diagonal" 1, [offset Integer = "0", axis1 Integer = "0", axis2 Integer = "1"]
        |x, v| x[0].diagonal(v.integer_or("offset", 0), v.integer_or("axis1", 0), v.integer_or("axis2", 1));
    "trace" 1, [offset Integer = "0", axis1 Integer = "0", axis2 Integer = "1", dtype Dtype = "as it is"]
        |x, v| trace(&x[0], v);
    "tril" 1, [k Integer = "0"] |x, v| x[0].tril(v.integer_or("k", 0));
    "triu" 1, [k Integer = "0"] |x, v| x[0].triu(v.integer_or("k", 0));

    "full" 1, [shape Integers, dtype Dtype = "the operand's"] |x, v| full(x, v);
    "zeros" 0, [shape Integers, dtype Dtype = "float32"] |_x, v| Array::zeros(&v.sizes("shape")?, dtype(v));
    "ones" 0, [shape Integers, dtype Dtype = "float32"] |_x, v| Array::ones(&v.sizes("shape")?, dtype(v));
    "zeros_like" 1, [dtype Dtype = "the operand's"] |x, v| like(&x[0], v, 0);
    "ones_like" 1, [dtype Dtype = "the operand's"] |x, v| like(&x[0], v, 1);
    "arange" 0, [start Number = "0", stop Number = "start, from 0", step Number = "1", dtype Dtype = "float32"]
        |_x, v| arange(v);
    "linspace" 0, [start Number, stop Number, num Integer = "50", endpoint Flag = "1", dtype Dtype = "float32"]
        |_x, v| Array::linspace(v.number("start").unwrap_or(0.0), v.number("stop").unwrap_or(0.0),
            v.size("num")?.unwrap_or(50), v.flag("endpoint", true), dtype(v));
    "eye" 0, [n Integer, m Integer = "n", k Integer = "0", dtype Dtype = "float32"] |_x, v| eye(v, Array::eye);
    "tri" 0, [n Integer, m Integer = "n", k Integer = "0", dtype Dtype = "float32"] |_x, v| eye(v, Array::tri);
    "identity" 0, [n Integer, dtype Dtype = "float32"] |_x, v| Array::identity(v.size("n")?.unwrap_or(0), dtype(v));
}
