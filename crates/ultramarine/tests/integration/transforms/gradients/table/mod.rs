//! The table: each differentiable function with operands where it is smooth.

mod einsum;
mod matrix;

use ultramarine::{
    Array, Convolution, ConvolveMode, Dtype, KeepDims, PadMode, Result, Update, addmm, concatenate,
    conv_general, conv_transpose1d, conv2d, convolve, index, meshgrid, stack, where_,
};

/// An operand: its shape and the interval that its elements are drawn from.
pub struct Operand {
    pub shape: &'static [usize],
    pub low: f64,
    pub high: f64,
    /// The elements are the middles of equal parts of the interval, in random order.
    pub distinct: bool,
}

type Function = fn(&[Array]) -> Result<Array>;

/// A function of float64 arrays.
pub struct Case {
    pub name: &'static str,
    pub operands: Vec<Operand>,
    pub f: Function,
}

fn case(name: &'static str, operands: &[(&'static [usize], f64, f64)], f: Function) -> Case {
    let operand = |&(shape, low, high)| Operand { shape, low, high, distinct: false };
    Case { name, operands: operands.iter().map(operand).collect(), f }
}

fn ints(values: &[i32], shape: &[usize]) -> Result<Array> {
    Array::from_slice(values, shape)
}

fn mask(values: &[bool]) -> Result<Array> {
    Array::from_slice(values, &[values.len()])
}

/// Schema names of ops without a derivative, or whose derivative is zero or of
/// complex numbers only (those have tests of their own).
pub const NOT_SMOOTH: &[&str] = &[
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "logical_not",
    "bitwise_invert",
    "isnan",
    "isinf",
    "isfinite",
    "conjugate",
    "real",
    "imag",
    "floor_divide",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "equal_nan",
    "all",
    "any",
];

macro_rules! unary {
    ($out:ident, $($name:ident $low:literal $high:literal;)*) => {$(
        $out.push(case(stringify!($name), &[(&[2, 3], $low, $high)], |x| x[0].$name()));
    )*};
}

macro_rules! binary {
    ($out:ident, $($name:ident $al:literal $ah:literal $bl:literal $bh:literal;)*) => {$(
        $out.push(case(
            stringify!($name),
            &[(&[2, 3], $al, $ah), (&[3], $bl, $bh)],
            |x| x[0].$name(&x[1]),
        ));
    )*};
}

pub fn cases() -> Vec<Case> {
    let mut out: Vec<Case> = Vec::with_capacity(128);
    unary! { out,
        abs 0.2 2.0; negative -2.0 2.0; square -2.0 2.0; sqrt 0.5 2.0; rsqrt 0.5 2.0;
        reciprocal 0.5 2.0; exp -1.0 1.0; expm1 -1.0 1.0; log 0.5 2.0; log2 0.5 2.0;
        log10 0.5 2.0; log1p -0.5 2.0; sin -2.0 2.0; cos -2.0 2.0; tan -1.0 1.0;
        arcsin -0.8 0.8; arccos -0.8 0.8; arctan -2.0 2.0; sinh -1.0 1.0; cosh -1.0 1.0;
        tanh -1.0 1.0; arcsinh -2.0 2.0; arccosh 1.3 3.0; arctanh -0.8 0.8; erf -1.0 1.0;
        erfinv -0.8 0.8; sigmoid -2.0 2.0; degrees -2.0 2.0; radians -2.0 2.0;
        transpose -1.0 1.0;
    }
    binary! { out,
        add -1.0 1.0 -1.0 1.0; subtract -1.0 1.0 -1.0 1.0; multiply -1.0 1.0 -1.0 1.0;
        divide -1.0 1.0 0.5 2.0; remainder 0.1 0.9 1.1 1.9; power 0.5 2.0 -1.5 1.5;
        maximum -1.0 1.0 -1.0 1.0; minimum -1.0 1.0 -1.0 1.0; logaddexp -1.0 1.0 -1.0 1.0;
        arctan2 0.5 1.0 0.5 1.0; outer -1.0 1.0 -1.0 1.0; inner -1.0 1.0 -1.0 1.0;
        kron -1.0 1.0 -1.0 1.0; xlogy -1.0 1.0 0.5 2.0;
    }
    out.extend(shapes());
    out.extend(reductions());
    out.extend(products());
    out.extend(convolutions());
    out.extend(indices());
    out.extend(einsum::cases());
    out.extend(matrix::cases());
    out
}

fn shapes() -> Vec<Case> {
    const X: (&[usize], f64, f64) = (&[2, 3], -1.0, 1.0);
    vec![
        case("reshape", &[X], |x| x[0].reshape(&[3usize, 2])),
        case("reshape of a transpose", &[X], |x| x[0].transpose()?.reshape(&[6usize])),
        case("broadcast_to", &[(&[3, 1], -1.0, 1.0)], |x| x[0].broadcast_to(&[2, 3, 4])),
        case("swapaxes", &[(&[2, 3, 2], -1.0, 1.0)], |x| x[0].swapaxes(0, 2)),
        case("expand_dims and squeeze", &[X], |x| x[0].expand_dims([1])?.square()?.squeeze(1)),
        case("slice", &[(&[5, 4], -1.0, 1.0)], |x| x[0].slice(&[1, 0], &[5, 4], &[2, 3])),
        case("slice backwards", &[(&[5, 2], -1.0, 1.0)], |x| x[0].flip(0)),
        case("diagonal", &[(&[3, 4], -1.0, 1.0)], |x| x[0].diagonal(1, 0, 1)),
        case("diag", &[(&[3], -1.0, 1.0)], |x| x[0].diag(1)),
        case("as_strided", &[(&[7], -1.0, 1.0)], |x| x[0].as_strided(&[3, 2], &[2, 1], 1)),
        case("concatenate", &[X, (&[1, 3], -1.0, 1.0)], |x| concatenate(x, 0)),
        case("stack", &[X, X], |x| stack(x, 1)),
        case("split", &[(&[4, 2], -1.0, 1.0)], |x| {
            let parts = x[0].split(2, 0)?;
            parts[0].multiply(&parts[1])
        }),
        case("slice_update", &[(&[4, 3], -1.0, 1.0), (&[2, 3], -1.0, 1.0)], |x| {
            x[0].slice_update(&x[1], &[0, 0], &[4, 3], &[2, 1])
        }),
        case("slice_at", &[(&[4, 3], -1.0, 1.0)], |x| {
            x[0].slice_at(&ints(&[1, 1], &[2])?, [1, 0], &[2, 2])
        }),
        case("slice_update_at", &[(&[4, 3], -1.0, 1.0), (&[2, 2], -1.0, 1.0)], |x| {
            x[0].slice_update_at(&x[1], &ints(&[1], &[1])?, [0])
        }),
        case("pad", &[X, (&[], -1.0, 1.0)], |x| {
            x[0].pad(&[(1, 0), (0, 2)], PadMode::Constant, &x[1])
        }),
        case("pad with the edge", &[X, (&[], -1.0, 1.0)], |x| {
            x[0].pad(&[(1, 0), (0, 2)], PadMode::Edge, &x[1])
        }),
        case("repeat", &[X], |x| x[0].repeat(2, Some(1))),
        case("tile", &[X], |x| x[0].tile(&[2, 1])),
        case("roll", &[X], |x| x[0].roll(&[1], [1])),
        case("tril", &[(&[3, 3], -1.0, 1.0)], |x| x[0].tril(0)),
        case("diff", &[X], |x| x[0].diff(2, 1)),
        case("meshgrid", &[(&[2], -1.0, 1.0), (&[3], -1.0, 1.0)], |x| {
            let grids = meshgrid(x, false, "xy")?;
            grids[0].multiply(&grids[1])
        }),
        case("where", &[(&[2, 3], -1.0, 1.0), (&[3], -1.0, 1.0)], |x| {
            where_(&mask(&[true, false, true])?, &x[0], &x[1])
        }),
        case("clip", &[X, (&[], -0.6, -0.5), (&[], 0.5, 0.6)], |x| {
            x[0].clip(Some(&x[1]), Some(&x[2]))
        }),
        case("contiguous", &[X], |x| Ok(x[0].transpose()?.contiguous())),
        case("astype", &[X], |x| Ok(x[0].astype(Dtype::Float64).astype(Dtype::Float64))),
    ]
}

fn reductions() -> Vec<Case> {
    const X: (&[usize], f64, f64) = (&[2, 3, 2], 0.3, 1.5);
    vec![
        case("sum", &[X], |x| x[0].sum([0, 2])),
        case("sum of all", &[X], |x| x[0].sum(None)),
        case("prod", &[X], |x| x[0].prod(KeepDims(1))),
        case("prod with a zero", &[X], |x| {
            let zero = Array::from_slice(&[1.0f64, 0.0, 1.0], &[3, 1])?;
            x[0].multiply(&zero)?.prod(1)
        }),
        case("min", &[X], |x| x[0].min(1)),
        case("max", &[X], |x| x[0].max(KeepDims([0, 1]))),
        case("mean", &[X], |x| x[0].mean(1)),
        case("var", &[X], |x| x[0].var(1, 1)),
        case("std", &[X], |x| x[0].std(KeepDims(1), 0)),
        case("median", &[(&[5, 2], -1.0, 1.0)], |x| x[0].median(0)),
        case("logsumexp", &[X], |x| x[0].logsumexp(1)),
        case("softmax", &[X], |x| x[0].softmax(1, false)),
        case("cumsum", &[X], |x| x[0].cumsum(Some(1), false, true)),
        case("cumsum from the end, exclusive", &[X], |x| x[0].cumsum(Some(1), true, false)),
        case("cumprod", &[X], |x| x[0].cumprod(Some(1), false, true)),
        case("cummax", &[X], |x| x[0].cummax(Some(1), false, true)),
        case("cummin", &[X], |x| x[0].cummin(Some(1), true, true)),
        case("logcumsumexp", &[X], |x| x[0].logcumsumexp(Some(1), false, true)),
        case("sort", &[X], |x| x[0].sort(Some(1))),
        case("partition", &[X], |x| x[0].partition(1, Some(1))),
        case("topk", &[X], |x| x[0].topk(2, Some(1))),
    ]
}

fn convolutions() -> Vec<Case> {
    vec![
        case("conv2d", &[(&[1, 4, 3, 2], -1.0, 1.0), (&[2, 2, 3, 2], -1.0, 1.0)], |x| {
            conv2d(&x[0], &x[1], Convolution::default().stride([1, 2]).padding(1).dilation([2, 1]))
        }),
        case("conv_general", &[(&[2, 4, 4], -1.0, 1.0), (&[4, 2, 2], -1.0, 1.0)], |x| {
            let how = Convolution::default().stride(2).padding_low(-1).padding_high(3);
            let how = how.dilation(3).input_dilation(2).groups(2).flip(true);
            conv_general(&x[0], &x[1], how)
        }),
        case("depthwise", &[(&[1, 4, 3], -1.0, 1.0), (&[3, 3, 1], -1.0, 1.0)], |x| {
            let how = Convolution::default().padding_low(2).padding_high(-1).groups(3);
            conv_general(&x[0], &x[1], how)
        }),
        case("conv_transpose1d", &[(&[1, 3, 2], -1.0, 1.0), (&[2, 2, 2], -1.0, 1.0)], |x| {
            conv_transpose1d(
                &x[0],
                &x[1],
                Convolution::default().stride(2).padding(1).dilation(2).output_padding(1),
            )
        }),
        case("conv3d", &[(&[1, 2, 2, 3, 1], -1.0, 1.0), (&[1, 2, 1, 2, 1], -1.0, 1.0)], |x| {
            conv_general(&x[0], &x[1], ())
        }),
        case("convolve", &[(&[4], -1.0, 1.0), (&[3], -1.0, 1.0)], |x| {
            convolve(&x[0], &x[1], ConvolveMode::Same)
        }),
    ]
}

fn products() -> Vec<Case> {
    vec![
        case("matmul", &[(&[2, 3], -1.0, 1.0), (&[3, 2], -1.0, 1.0)], |x| x[0].matmul(&x[1])),
        case(
            "matmul, batched and broadcast",
            &[(&[2, 1, 2, 3], -1.0, 1.0), (&[2, 3, 2], -1.0, 1.0)],
            |x| x[0].matmul(&x[1]),
        ),
        case("matrix times vector", &[(&[2, 3], -1.0, 1.0), (&[3], -1.0, 1.0)], |x| {
            x[0].matmul(&x[1])
        }),
        case("vector times matrix", &[(&[2], -1.0, 1.0), (&[2, 3], -1.0, 1.0)], |x| {
            x[0].matmul(&x[1])
        }),
        case("matmul of a transpose", &[(&[3, 2], -1.0, 1.0), (&[3, 2], -1.0, 1.0)], |x| {
            x[0].transpose()?.matmul(&x[1])
        }),
        case("addmm", &[(&[2], -1.0, 1.0), (&[3, 2], -1.0, 1.0), (&[2, 2], -1.0, 1.0)], |x| {
            addmm(&x[0], &x[1], &x[2], 0.5, 2.0)
        }),
        case("tensordot", &[(&[2, 3], -1.0, 1.0), (&[3, 2], -1.0, 1.0)], |x| {
            x[0].tensordot(&x[1], 1)
        }),
        case("vecdot", &[(&[2, 3], -1.0, 1.0), (&[2, 3], -1.0, 1.0)], |x| x[0].vecdot(&x[1], -1)),
    ]
}

fn indices() -> Vec<Case> {
    vec![
        case("take", &[(&[4, 3], -1.0, 1.0)], |x| {
            x[0].take(&ints(&[1, 3, 1, -1], &[2, 2])?, Some(0))
        }),
        case("take of the last axis", &[(&[2, 3], -1.0, 1.0)], |x| {
            x[0].take(&ints(&[2, 0], &[2])?, Some(1))
        }),
        case("take_along_axis", &[(&[3, 2], -1.0, 1.0)], |x| {
            x[0].take_along_axis(&ints(&[0, 2, 2, 1], &[2, 2])?, Some(0))
        }),
        case("put_along_axis", &[(&[3, 2], -1.0, 1.0), (&[2, 2], -1.0, 1.0)], |x| {
            x[0].put_along_axis(&ints(&[0, 2, 1, 1], &[2, 2])?, &x[1], Some(0))
        }),
        case("index", &[(&[4, 3], -1.0, 1.0)], |x| {
            x[0].index(&index![&ints(&[0, 2, 2], &[3])?, &ints(&[2, 1, 1], &[3])?])
        }),
        case("index_update", &[(&[4, 3], -1.0, 1.0), (&[2, 3], -1.0, 1.0)], |x| {
            x[0].index_update(&index![&ints(&[2, 0], &[2])?], &x[1], Update::Set)
        }),
        case("index_update, add", &[(&[4, 3], -1.0, 1.0), (&[3, 3], -1.0, 1.0)], |x| {
            x[0].index_update(&index![&ints(&[2, 2, 0], &[3])?], &x[1], Update::Add)
        }),
        case("index_update, multiply", &[(&[4, 3], -1.0, 1.0), (&[2, 3], 0.5, 1.5)], |x| {
            x[0].index_update(&index![&ints(&[2, 0], &[2])?], &x[1], Update::Multiply)
        }),
        case("index_update, maximum", &[(&[4, 3], -1.0, 1.0), (&[2, 3], -1.0, 1.0)], |x| {
            x[0].index_update(&index![&ints(&[2, 0], &[2])?], &x[1], Update::Maximum)
        }),
    ]
}
