//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.

use super::{code_module, dtype, families};
use ultramarine_dlpack::{DLDataType, type_code};

pub use super::attribute_structs::*;

code_module! {
    /// Operations that backends provide; everything else is composed of them.
    pub mod op: super::super::OpId {
        /// Element copy between any strides, converting the dtype. [`super::NoAttrs`].
        COPY = 0 "copy",
        /// Fills the output with scalar 0. [`super::NoAttrs`].
        FILL = 1 "fill",
        /// `scalar0 + i * scalar1` along a 1-d output (both float64 for floating outputs, else
        /// int64). [`super::NoAttrs`].
        ARANGE = 2 "arange",
        /// [`super::UnaryAttrs`].
        UNARY = 3 "unary",
        /// Both inputs of one dtype, broadcast by strides. [`super::BinaryAttrs`].
        BINARY = 4 "binary",
        /// `condition ? x : y`. [`super::NoAttrs`].
        SELECT = 5 "select",
        /// The output keeps reduced axes with size 1. [`super::ReduceAttrs`].
        REDUCE = 6 "reduce",
        /// Index (uint32) of the extreme along an axis, the first of equals; the output keeps the
        /// axis with size 1. [`super::ArgReduceAttrs`].
        ARG_REDUCE = 7 "arg_reduce",
        /// Running reduction along an axis. [`super::ScanAttrs`].
        SCAN = 8 "scan",
        /// `(..., m, k) x (..., k, n) -> (..., m, n)`, equal batch dimensions (broadcast by
        /// strides). float16 and bfloat16 accumulate in float32. [`super::PrecisionAttrs`].
        MATMUL = 9 "matmul",
        /// Inputs: source, then `n_indices` index arrays of one shape and dtype. Output: index
        /// shape followed by a slice of `source.ndim` dimensions (1 along indexed axes). Negative
        /// indices count from the end; an index outside is clamped, never read past the buffer.
        /// [`super::GatherAttrs`].
        GATHER = 10 "gather",
        /// Inputs: source, indices, updates (shaped as GATHER's output). The output is the source
        /// with the updates combined in; out-of-range indices are skipped. [`super::ScatterAttrs`].
        SCATTER = 11 "scatter",
        /// `out[.., i, ..] = source[.., index[.., i, ..], ..]`. [`super::AxisAttrs`].
        GATHER_AXIS = 12 "gather_axis",
        /// Source, indices, updates; the converse of GATHER_AXIS. [`super::ScatterAxisAttrs`].
        SCATTER_AXIS = 13 "scatter_axis",
        /// Ascending, stable, NaN last. [`super::AxisAttrs`].
        SORT = 14 "sort",
        /// Indices (uint32) that sort. [`super::AxisAttrs`].
        ARG_SORT = 15 "arg_sort",
        /// Threefry-2x32 bits. Input: keys (..., 2) uint32; output (keys..., n) uint8, uint16 or
        /// uint32. [`super::NoAttrs`].
        RANDOM_BITS = 16 "random_bits",
        /// The elements along an axis in an order in which number k (scalar 0) is as SORT has it,
        /// none before it is larger and none behind it is smaller. [`super::AxisAttrs`].
        PARTITION = 17 "partition",
        /// Indices (uint32) that partition, as PARTITION. [`super::AxisAttrs`].
        ARG_PARTITION = 18 "arg_partition",
        /// Discrete Fourier transforms along an axis, times scalar 0. The length n is the axis'
        /// size, for REAL the input's, for REAL_BACKWARD the output's. [`super::FftAttrs`].
        FFT = 19 "fft",
        /// Cross-correlation (or convolution, see `flip`) over three spatial axes: input `(n, d, h,
        /// w, c)`, weight `(o, kd, kh, kw, c / groups)`, output `(n, od, oh, ow, o)`. Scalars,
        /// three each: strides, zeros before the first element (may be negative), kernel dilation,
        /// input dilation. What is read outside of the input, and between its dilated elements, is
        /// 0. Group g of the outputs reads group g of the channels. [`super::ConvolveAttrs`].
        CONVOLVE = 20 "convolve",
        /// The triangular factor L of `a = L L^H` of matrices `(..., n, n)`, or U of `a = U^H U`;
        /// zeros in the other triangle. Only the named triangle of `a` is read. Not positive
        /// definite: NaN. [`super::TriangleAttrs`].
        CHOLESKY = 21 "cholesky",
        /// LU factors with partial pivoting of `(..., m, n)`, L (unit diagonal) and U in one
        /// matrix; pivots `(..., k)`, k = min(m, n): row i was swapped with the row that element i
        /// names; rows `(..., m)`: row i of L U is the row of `a` that element i names.
        /// [`super::NoAttrs`].
        LU = 22 "lu",
        /// `a = q r` of `(..., m, n)`: q `(..., m, k)` with orthonormal columns, r `(..., k, n)`
        /// upper triangular, k = min(m, n). [`super::NoAttrs`].
        QR = 23 "qr",
        /// `a = u diag(s) vt` of `(..., m, n)`: u `(..., m, m)` or `(..., m, k)`, s `(..., k)`
        /// descending, vt `(..., n, n)` or `(..., k, n)`, k = min(m, n), as the outputs' shapes
        /// say. [`super::NoAttrs`].
        SVD = 24 "svd",
        /// s of SVD. [`super::NoAttrs`].
        SINGULAR_VALUES = 25 "singular_values",
        /// Eigenvalues w `(..., n)`, ascending, and eigenvectors, the columns of v `(..., n, n)`,
        /// of Hermitian matrices, of which one triangle is read. [`super::TriangleAttrs`].
        EIGH = 26 "eigh",
        /// w of EIGH. [`super::TriangleAttrs`].
        EIGVALSH = 27 "eigvalsh",
        /// Eigenvalues w `(..., n)` and eigenvectors, the columns of norm 1 of v `(..., n, n)`, of
        /// square matrices, in any order. [`super::NoAttrs`].
        EIG = 28 "eig",
        /// w of EIG. [`super::NoAttrs`].
        EIGVALS = 29 "eigvals",
        /// x of `a x = b` for triangular `a` `(..., n, n)`, of which one triangle is read, and b
        /// and x `(..., n, k)`; equal batch dimensions (broadcast by strides).
        /// [`super::TriangleAttrs`].
        SOLVE_TRIANGULAR = 30 "solve_triangular",
        /// `e^(x - m)` over its sum over the axes of `axes`, m being the largest element over them.
        /// [`super::AxesAttrs`].
        SOFTMAX = 31 "softmax",
        /// `ln` of the sum of `e^x` over the axes of `axes`, which keep size 1, without overflow on
        /// the way: infinity if there is one, -infinity of nothing else. [`super::AxesAttrs`].
        LOGSUMEXP = 32 "logsumexp",
        /// `x / sqrt(mean(x^2) + scalar 0) * weight`, the mean being that of the last axis, of
        /// which there is at least one. [`super::NoAttrs`].
        RMS_NORM = 33 "rms_norm",
        /// `(x - m) / sqrt(v + scalar 0) * weight + bias`, m being the mean of the last axis, of
        /// which there is at least one, and v that of `(x - m)^2`. [`super::NoAttrs`].
        LAYER_NORM = 34 "layer_norm",
        /// Turns pairs (a, b) of elements of the last axis into `(a * cos - b * sin, a * sin + b *
        /// cos)`. cos and sin have the output's shape, but `pairs` as the last size; mostly by zero
        /// strides. [`super::RopeAttrs`].
        ROPE = 35 "rope",
        /// How many elements of a row come before each value: rows `(b..., n)` in the order of
        /// SORT, values `(b..., v...)`; the output has the values' shape. [`super::SearchAttrs`].
        SEARCHSORTED = 36 "searchsorted",
        /// The window of the source that begins at the starts and has the output's shape. A start
        /// below 0 counts as 0; one from which the window would leave the source counts as the last
        /// from which it does not. [`super::DynamicSliceAttrs`].
        DYNAMIC_SLICE = 37 "dynamic_slice",
        /// The source with the update written over the window of its shape that begins at the
        /// starts, as in DYNAMIC_SLICE. Where the output is the source's memory, nothing but the
        /// window is written. [`super::DynamicSliceAttrs`].
        DYNAMIC_SLICE_UPDATE = 38 "dynamic_slice_update",
        /// The gradient of CONVOLVE by its input: from the weight and a cotangent `(n, od, oh, ow,
        /// o)` of the output, that of the input, `(n, d, h, w, c)`. Attributes and scalars are the
        /// convolution's. [`super::ConvolveAttrs`].
        CONVOLVE_INPUT = 39 "convolve_input",
        /// The gradient of CONVOLVE by its weight: from the input and a cotangent `(n, od, oh, ow,
        /// o)` of the output, that of the weight, `(o, kd, kh, kw, c / groups)`. Attributes and
        /// scalars are the convolution's. [`super::ConvolveAttrs`].
        CONVOLVE_WEIGHT = 40 "convolve_weight",
        /// Scaled dot-product attention. Queries `(b, h, m, d)`, keys `(b, h / group, n, d)`,
        /// values `(b, h / group, n, e)`, mask `(b, h, m, n)`, sinks `(b, h)`, lengths `(b)`; the
        /// outputs are the result `(b, h, m, e)` and the logarithms of the softmax's sums `(b, h,
        /// m)`. Scores are scalar 0 times `q k^T`, plus the mask if it holds numbers. Masked ones
        /// (where a bool mask is false, behind the length, and, `causal`, behind the query) and any
        /// below it are the lowest finite number of their dtype. The result is the softmax of the
        /// scores over the keys, times the values; the softmax's sum has `e^sink` as one more term.
        /// [`super::AttentionAttrs`].
        ATTENTION = 41 "attention",
        /// The gradients of ATTENTION by queries, keys and values, in their shapes, from a
        /// cotangent `(b, h, m, e)` of its result, the logarithms that it gave, and delta `(b, h,
        /// m)`: the sum of result times cotangent over the last axis, less the cotangent of the
        /// logarithm. With w the softmax's weights and s the scores, the gradient by s is `w
        /// (cotangent values^T - delta)`; by masked scores it is 0. Logarithms that are the lowest
        /// finite number belong to queries all of whose keys are masked, with equal weights.
        /// [`super::AttentionAttrs`].
        ATTENTION_GRADIENT = 42 "attention_gradient",
        /// Cross entropy of class indices. From logits `(r, c)` and targets `(r)`, the losses `(r)`
        /// and the logarithms of the sums of `e^logit` `(r)`: a loss is the logarithm less the
        /// target's logit. Negative targets count from the end; one outside is held to the axis.
        /// There is a class at least. [`super::NoAttrs`].
        CROSS_ENTROPY = 43 "cross_entropy",
        /// The gradient of CROSS_ENTROPY by its logits, in their shape, from the logarithms that it
        /// gave and a cotangent `(r)` of its losses: the cotangent times `e^(logit - logarithm)`,
        /// less the cotangent at the target. [`super::NoAttrs`].
        CROSS_ENTROPY_GRADIENT = 44 "cross_entropy_gradient",
        /// Numbers of few bits as floats. Words `(r, k bits / 32)` hold the k elements of each row
        /// as a stream of bits, the lowest first: element i is bits `i bits` to `(i + 1) bits`.
        /// Scales and biases `(r, k / group)`, global scale `(1)`; the output is `(r, k)`.
        /// [`super::DequantizeAttrs`].
        DEQUANTIZE = 45 "dequantize",
        /// Products with matrices of few bits. x `(b, m, k)`, words `(e, rows, columns bits / 32)`,
        /// scales and biases `(e, rows, columns / group)`, as DEQUANTIZE's; global scales `(e)`. A
        /// matrix is `(k, n)`, or `(n, k)` with `transpose`. Output `(t, m, n)`: item i is the
        /// product of matrix `lhs_indices[i]` of x and matrix `rhs_indices[i]` of the words;
        /// without indices of a factor, of its matrix i, and there are t of them. Indices `(t)`:
        /// negative ones count from the end; one outside is held to the range.
        /// [`super::QuantizedMatmulAttrs`].
        QUANTIZED_MATMUL = 46 "quantized_matmul",
        /// Products of matrices that indices choose. a `(b, m, k)`, b `(e, k, n)`, output `(t, m,
        /// n)`: item i is the product of matrix `lhs_indices[i]` of a and matrix `rhs_indices[i]`
        /// of b; without indices of a factor, of its matrix i, and there are t of them. Indices
        /// `(t)`: negative ones count from the end; one outside is held to the range.
        /// [`super::GatherMatmulAttrs`].
        GATHER_MATMUL = 47 "gather_matmul",
        /// Products over segments of the inner dimension. a `(m, k)`, b `(k, n)`, segments `(s,
        /// 2)`, output `(s, m, n)`: item i is the product of the columns of a and the rows of b
        /// from the first number of segment i up to the second, both held to 0 to k (negative ones
        /// to 0). A segment that ends before it starts is empty, and gives 0. [`super::NoAttrs`].
        SEGMENTED_MATMUL = 48 "segmented_matmul",
        /// The gradients of RMS_NORM of rows. From x `(r, n)`, weight `(n)` and a cotangent `(r,
        /// n)` of the result, with y the normalised x, s the factor that made it and t the
        /// cotangent times the weight: the gradient by x, `s (t - y mean(t y))`, the means being
        /// those of a row, `(r, n)`; and the gradient by the weight, the sum over the rows of the
        /// cotangent times y, `(n)`. Scalar 0 is the norm's. [`super::NormGradientAttrs`].
        RMS_NORM_GRADIENT = 49 "rms_norm_gradient",
        /// The gradients of LAYER_NORM of rows, as RMS_NORM_GRADIENT's: the gradient by x is `s (t
        /// - mean(t) - y mean(t y))`, and the last output is that by the bias, the sum over the
        /// rows of the cotangent, `(n)`. [`super::NormGradientAttrs`].
        LAYER_NORM_GRADIENT = 50 "layer_norm_gradient",
    }
}

code_module! {
    /// Codes of [`UnaryAttrs::op`]. The output has the input's dtype but for the predicates (bool)
    /// and [`REAL`](unary::REAL), [`IMAG`](unary::IMAG), [`ABS`](unary::ABS) of complex (float32).
    pub mod unary: u32 {
        /// |x|
        ABS = 0 "abs",
        /// -x; wraps for integers.
        NEGATIVE = 1 "negative",
        /// -1, 0 or 1, of NaN 0; x/|x| for complex.
        SIGN = 2 "sign",
        /// x*x
        SQUARE = 3 "square",
        /// Square root.
        SQRT = 4 "sqrt",
        /// 1/sqrt(x)
        RSQRT = 5 "rsqrt",
        /// 1/x
        RECIPROCAL = 6 "reciprocal",
        /// e^x
        EXP = 7 "exp",
        /// e^x - 1
        EXPM1 = 8 "expm1",
        /// ln x
        LOG = 9 "log",
        /// log2 x
        LOG2 = 10 "log2",
        /// log10 x
        LOG10 = 11 "log10",
        /// ln(1 + x)
        LOG1P = 12 "log1p",
        /// Sine of radians.
        SIN = 13 "sin",
        /// Cosine.
        COS = 14 "cos",
        /// Tangent.
        TAN = 15 "tan",
        /// Inverse sine.
        ARCSIN = 16 "arcsin",
        /// Inverse cosine.
        ARCCOS = 17 "arccos",
        /// Inverse tangent.
        ARCTAN = 18 "arctan",
        /// Hyperbolic sine.
        SINH = 19 "sinh",
        /// Hyperbolic cosine.
        COSH = 20 "cosh",
        /// Hyperbolic tangent.
        TANH = 21 "tanh",
        /// Inverse hyperbolic sine.
        ARCSINH = 22 "arcsinh",
        /// Inverse hyperbolic cosine.
        ARCCOSH = 23 "arccosh",
        /// Inverse hyperbolic tangent.
        ARCTANH = 24 "arctanh",
        /// Error function.
        ERF = 25 "erf",
        /// Inverse error function.
        ERFINV = 26 "erfinv",
        /// 1/(1 + e^-x)
        SIGMOID = 27 "sigmoid",
        /// Largest integer not above.
        FLOOR = 28 "floor",
        /// Smallest integer not below.
        CEIL = 29 "ceil",
        /// Nearest integer, ties to even.
        ROUND = 30 "round",
        /// Towards zero.
        TRUNC = 31 "trunc",
        /// Logical not: bool to bool.
        LOGICAL_NOT = 32 "logical_not",
        /// Complement of integers; logical not of bool.
        BITWISE_INVERT = 33 "bitwise_invert",
        /// Is NaN (either part): bool.
        ISNAN = 34 "isnan",
        /// Is infinite (either part): bool.
        ISINF = 35 "isinf",
        /// Is finite (both parts): bool.
        ISFINITE = 36 "isfinite",
        /// Complex conjugate.
        CONJUGATE = 37 "conjugate",
        /// Real part of complex64: float32.
        REAL = 38 "real",
        /// Imaginary part of complex64: float32.
        IMAG = 39 "imag",
    }
}

code_module! {
    /// Codes of [`BinaryAttrs::op`]. Both operands have one dtype; the output has it too, but for
    /// comparisons and logical ops (bool).
    pub mod binary: u32 {
        /// x + y; integers wrap; bool: or.
        ADD = 0 "add",
        /// x - y; integers wrap.
        SUBTRACT = 1 "subtract",
        /// x * y; integers wrap; bool: and.
        MULTIPLY = 2 "multiply",
        /// x / y; floating and complex only.
        DIVIDE = 3 "divide",
        /// Integers: floor(x / y), by zero 0. Floats: the quotient rounded to the dtype, then
        /// rounded down. Complex: x / y.
        FLOOR_DIVIDE = 4 "floor_divide",
        /// Sign of the divisor (Python's %), a zero too; integers by zero: the dividend.
        REMAINDER = 5 "remainder",
        /// x ** y; integers by squaring, 0 for every negative exponent.
        POWER = 6 "power",
        /// Larger; NaN if either is NaN. Complex: by real part, then imaginary.
        MAXIMUM = 7 "maximum",
        /// Smaller; NaN if either is NaN.
        MINIMUM = 8 "minimum",
        /// ln(e^x + e^y)
        LOGADDEXP = 9 "logaddexp",
        /// Angle of (y, x): `arctan2(a, b)` with a the ordinate.
        ARCTAN2 = 10 "arctan2",
        /// x == y: bool.
        EQUAL = 11 "equal",
        /// x != y: bool.
        NOT_EQUAL = 12 "not_equal",
        /// x < y: bool.
        LESS = 13 "less",
        /// x <= y: bool.
        LESS_EQUAL = 14 "less_equal",
        /// x > y: bool.
        GREATER = 15 "greater",
        /// x >= y: bool.
        GREATER_EQUAL = 16 "greater_equal",
        /// Logical and of bools.
        LOGICAL_AND = 17 "logical_and",
        /// Logical or of bools.
        LOGICAL_OR = 18 "logical_or",
        /// Bitwise and; bool: and.
        BITWISE_AND = 19 "bitwise_and",
        /// Bitwise or; bool: or.
        BITWISE_OR = 20 "bitwise_or",
        /// Bitwise xor; bool: xor.
        BITWISE_XOR = 21 "bitwise_xor",
        /// x << y; a shift by the width or more gives 0.
        LEFT_SHIFT = 22 "left_shift",
        /// x >> y, arithmetic for signed; a shift by the width or more gives 0 or -1.
        RIGHT_SHIFT = 23 "right_shift",
        /// x == y, or both NaN (in either part): bool.
        EQUAL_NAN = 24 "equal_nan",
    }
}

code_module! {
    /// Codes of [`ReduceAttrs::op`] and [`ScanAttrs::op`] (sum, prod, min, max, logaddexp). Sums of
    /// float16 and bfloat16 accumulate in float32; integers wrap.
    pub mod reduce: u32 {
        /// Sum.
        SUM = 0 "sum",
        /// Product.
        PROD = 1 "prod",
        /// Smallest; NaN if any is NaN.
        MIN = 2 "min",
        /// Largest; NaN if any is NaN.
        MAX = 3 "max",
        /// All non-zero: bool.
        ALL = 4 "all",
        /// Any non-zero: bool.
        ANY = 5 "any",
        /// ln of the sum of e^x; scans only.
        LOGADDEXP = 6 "logaddexp",
    }
}

code_module! {
    /// Codes of [`ArgReduceAttrs::op`].
    pub mod arg_reduce: u32 {
        /// Index of the smallest; the first NaN wins.
        ARGMIN = 0 "argmin",
        /// Index of the largest; the first NaN wins.
        ARGMAX = 1 "argmax",
    }
}

code_module! {
    /// Codes of [`ScatterAttrs::op`]: how an update combines with what is there.
    pub mod scatter: u32 {
        /// Replaces (the last of equal indices wins).
        SET = 0 "set",
        /// Adds.
        SUM = 1 "sum",
        /// Multiplies.
        PROD = 2 "prod",
        /// Keeps the smaller.
        MIN = 3 "min",
        /// Keeps the larger.
        MAX = 4 "max",
    }
}

code_module! {
    /// Codes of [`DequantizeAttrs::mode`] and [`QuantizedMatmulAttrs::mode`]: what words, scales
    /// and biases mean.
    pub mod quantization: u32 {
        /// Integers q from 0 to 2^bits - 1: scale q + bias. Scales and biases are of the main
        /// dtype. 1, 2, 3, 4, 5, 6 or 8 bits, groups of 32, 64 or 128.
        AFFINE = 0 "affine",
        /// E2M1 (sign, 2 bits of exponent, 1 of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6) times
        /// 2^(scale - 127), of uint8; a scale of 255 is infinite. 4 bits, groups of 32.
        MXFP4 = 1 "mxfp4",
        /// E4M3 (sign, 4 bits of exponent, 3 of mantissa, to 448; 0x7f and 0xff are NaN) times
        /// 2^(scale - 127), as MXFP4's. 8 bits, groups of 32.
        MXFP8 = 2 "mxfp8",
        /// E2M1 times the scale, an E4M3 of uint8, and times the global scale / 2688 if there is
        /// one. 4 bits, groups of 16.
        NVFP4 = 3 "nvfp4",
    }
}

code_module! {
    /// Codes of [`FftAttrs::op`].
    pub mod fft: u32 {
        /// y_k = sum over j of x_j e^(-2 pi i j k / n).
        FORWARD = 0 "forward",
        /// y_k = sum over j of x_j e^(2 pi i j k / n).
        BACKWARD = 1 "backward",
        /// The first n / 2 + 1 (rounded down) elements of the forward transform of real numbers.
        REAL = 2 "real",
        /// The backward transform, of n real numbers, of its first n / 2 + 1 elements; the
        /// imaginary parts of element 0 and, for an even n, of the last are ignored.
        REAL_BACKWARD = 3 "real_backward",
    }
}

/// Names of the constants of each module above.
pub const NAMES: &[(&str, &[&str])] = &[
    ("op", op::NAMES),
    ("unary", unary::NAMES),
    ("binary", binary::NAMES),
    ("reduce", reduce::NAMES),
    ("arg_reduce", arg_reduce::NAMES),
    ("scatter", scatter::NAMES),
    ("quantization", quantization::NAMES),
    ("fft", fft::NAMES),
];

families! {
    Copy "copy",
    Create "create",
    Elementwise "elementwise",
    Select "select",
    Reduce "reduce",
    ArgReduce "arg_reduce",
    Scan "scan",
    Matmul "matmul",
    Index "index",
    Sort "sort",
    Random "random",
    Fft "fft",
    Conv "conv",
    Linalg "linalg",
    Nn "nn",
    Quantized "quantized",
}

/// Dtypes of the contract, in the order of the device masks' bits.
pub const DTYPES: [(&str, DLDataType); 14] = [
    ("bool", dtype(type_code::BOOL, 8)),
    ("uint8", dtype(type_code::UINT, 8)),
    ("uint16", dtype(type_code::UINT, 16)),
    ("uint32", dtype(type_code::UINT, 32)),
    ("uint64", dtype(type_code::UINT, 64)),
    ("int8", dtype(type_code::INT, 8)),
    ("int16", dtype(type_code::INT, 16)),
    ("int32", dtype(type_code::INT, 32)),
    ("int64", dtype(type_code::INT, 64)),
    ("float16", dtype(type_code::FLOAT, 16)),
    ("float32", dtype(type_code::FLOAT, 32)),
    ("float64", dtype(type_code::FLOAT, 64)),
    ("bfloat16", dtype(type_code::BFLOAT, 16)),
    ("complex64", dtype(type_code::COMPLEX, 64)),
];
