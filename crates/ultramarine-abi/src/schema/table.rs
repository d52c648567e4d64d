//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.

use super::rules::*;
use super::*;

/// Sets of dtypes as masks: bit `i` is dtype `i` of [`DTYPES`].
pub mod dtypes {
    /// float32, float64.
    pub const ACCUMULATED: u32 = 1 << 10 | 1 << 11;
    /// float32, float64.
    pub const ANGLES: u32 = 1 << 10 | 1 << 11;
    /// bool.
    pub const BOOL: u32 = 1 << 0;
    /// complex64.
    pub const COMPLEX: u32 = 1 << 13;
    /// int32.
    pub const COUNTS: u32 = 1 << 7;
    /// float16, float32, float64, bfloat16.
    pub const FLOAT: u32 = 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
    /// uint8, uint16, uint32, uint64, int8, int16, int32, int64.
    pub const INT: u32 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;
    /// uint32.
    pub const KEY: u32 = 1 << 3;
    /// uint32.
    pub const PACKED: u32 = 1 << 3;
    /// uint8, float16, float32, float64, bfloat16.
    pub const SCALES: u32 = 1 << 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
    /// int8, int16, int32, int64.
    pub const SIGNED: u32 = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8;
    /// float32.
    pub const SINGLE: u32 = 1 << 10;
    /// float32, float64, complex64.
    pub const SOLVED: u32 = 1 << 10 | 1 << 11 | 1 << 13;
    /// uint8, uint16, uint32, uint64.
    pub const UNSIGNED: u32 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4;
    /// uint8, uint16, uint32.
    pub const WORDS: u32 = 1 << 1 | 1 << 2 | 1 << 3;
    /// All of them.
    pub const ALL: u32 = (1 << 14) - 1;
}

code_rows! { UNARY_CODES
    "abs" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Basic "Absolute value |x|; the modulus of complex64, as float32. The lowest integer gives itself.";
    "negative" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "-x. The lowest integer gives itself; unsigned integers wrap.";
    "sign" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "-1 for x < 0, 1 for x > 0, 0 for zeros and NaN. Complex: x / |x|, and 0 for 0.";
    "square" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x * x.";
    "sqrt" 4 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Positive Basic "Square root. NaN below 0; -0 for -0. Complex: the principal branch.";
    "rsqrt" 5 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "1 / sqrt(x). Infinity for a zero, with its sign; NaN below 0.";
    "reciprocal" 6 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Any Basic "1 / x. Infinity for a zero, with its sign.";
    "exp" 7 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "e^x.";
    "expm1" 8 [dtypes::FLOAT] [Output::Main] 4.0 false Small Basic "e^x - 1, accurate near 0.";
    "log" 9 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "Natural logarithm. -infinity for zeros, NaN below 0. Complex: imaginary part in `[-pi, pi]`.";
    "log2" 10 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "Logarithm to base 2.";
    "log10" 11 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "Logarithm to base 10.";
    "log1p" 12 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "ln(1 + x), accurate near 0. -infinity for -1, NaN below.";
    "sin" 13 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "Sine of x in radians. Accuracy is asked for up to |x| = 1e5.";
    "cos" 14 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "Cosine of x in radians. Accuracy is asked for up to |x| = 1e5.";
    "tan" 15 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Tangent of x in radians. Accuracy is asked for up to |x| = 1e5.";
    "arcsin" 16 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse sine, in `[-pi/2, pi/2]`. NaN outside of `[-1, 1]`.";
    "arccos" 17 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse cosine, in `[0, pi]`. NaN outside of `[-1, 1]`.";
    "arctan" 18 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Inverse tangent, in `[-pi/2, pi/2]`.";
    "sinh" 19 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic sine.";
    "cosh" 20 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic cosine.";
    "tanh" 21 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic tangent.";
    "arcsinh" 22 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Inverse hyperbolic sine.";
    "arccosh" 23 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false AboveOne Basic "Inverse hyperbolic cosine, at least 0. NaN below 1.";
    "arctanh" 24 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse hyperbolic tangent. Infinity for 1 and -1, with their sign; NaN outside.";
    "erf" 25 [dtypes::FLOAT] [Output::Main] 16.0 false Small Basic "Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.";
    "erfinv" 26 [dtypes::FLOAT] [Output::Main] 32.0 false Unit Complete "Inverse of erf. Infinity for 1 and -1, with their sign; NaN outside.";
    "sigmoid" 27 [dtypes::FLOAT] [Output::Main] 8.0 false Small Basic "1 / (1 + e^-x).";
    "floor" 28 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Largest integer not above x.";
    "ceil" 29 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Smallest integer not below x.";
    "round" 30 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Nearest integer, ties to even; of complex numbers each part.";
    "trunc" 31 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Integer part of x: rounds towards zero.";
    "logical_not" 32 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x is 0.";
    "bitwise_invert" 33 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Complement of all bits; of bool, logical not.";
    "isnan" 34 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x, or a part of it, is NaN.";
    "isinf" 35 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x, or a part of it, is infinite.";
    "isfinite" 36 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x, with both parts, is neither infinite nor NaN.";
    "conjugate" 37 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Complete "Complex conjugate; real numbers stay as they are.";
    "real" 38 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Complete "Real part of complex64, as float32; real numbers stay as they are.";
    "imag" 39 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Complete "Imaginary part of complex64, as float32; 0 for real numbers.";
}

code_rows! { BINARY_CODES
    "add" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x + y; of bool, or.";
    "subtract" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x - y.";
    "multiply" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x * y; of bool, and. The error of a complex product is relative to |x| |y|.";
    "divide" 3 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Any Basic "x / y. By zero: infinity with the sign of the quotient, NaN for 0 / 0.";
    "floor_divide" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Integers: floor(x / y), and 0 if y is 0. Floats: the quotient rounded to the dtype, then rounded down; either neighbour is right if the exact quotient is within 2.5 units in the last place of an integer. Complex: x / y, not rounded down.";
    "remainder" 5 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "x - floor(x / y) * y: the result has the sign of y, a zero too. Integers: x if y is 0. Floats: NaN if y is 0 or x is infinite. The error is at most half a unit in the last place of the larger of |y| and the result.";
    "power" 6 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 false Power Basic "x^y. Integers wrap, x^0 is 1, and every negative exponent gives 0. Floats: C's pow; NaN for x < 0 and a y that is no integer.";
    "maximum" 7 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "The larger of x and y; NaN if one of them is NaN.";
    "minimum" 8 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "The smaller of x and y; NaN if one of them is NaN.";
    "logaddexp" 9 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 false Small Basic "ln(e^x + e^y), without overflow on the way. The larger operand if it is infinite. The error is relative to the largest of |x|, |y|, |result| and 1.";
    "arctan2" 10 [dtypes::FLOAT] [Output::Main] 6.0 false Small Basic "Angle of the point with ordinate x (the first operand) and abscissa y, in `[-pi, pi]`: C's atan2(x, y).";
    "equal" 11 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x == y.";
    "not_equal" 12 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x != y, and if one of them is NaN.";
    "less" 13 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x < y.";
    "less_equal" 14 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x <= y.";
    "greater" 15 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x > y.";
    "greater_equal" 16 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x >= y.";
    "logical_and" 17 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if neither x nor y is 0.";
    "logical_or" 18 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True unless both x and y are 0.";
    "bitwise_and" 19 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "And of all bits; of bool, and.";
    "bitwise_or" 20 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Or of all bits; of bool, or.";
    "bitwise_xor" 21 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Exclusive or of all bits; of bool, exclusive or.";
    "left_shift" 22 [dtypes::INT] [Output::Main] 0.0 false Shift Complete "x shifted left by y bits. 0 if y is negative, or at least the width in bits.";
    "right_shift" 23 [dtypes::INT] [Output::Main] 0.0 false Shift Complete "x shifted right by y bits: arithmetic for signed integers, logical for unsigned ones. If y is negative, or at least the width in bits: -1 for x < 0, else 0.";
    "equal_nan" 24 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if x == y, and if both are NaN (in either part).";
}

code_rows! { REDUCE_CODES
    "sum" 0 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Sum, in the input's dtype.";
    "prod" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Product, in the input's dtype. The error is at most that of a sum of n terms of the product's magnitude.";
    "min" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Smallest element; NaN if there is one.";
    "max" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Largest element; NaN if there is one.";
    "all" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if no element is 0.";
    "any" 5 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "True if an element is not 0.";
}

code_rows! { ARG_REDUCE_CODES
    "argmin" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Uint32] 0.0 false Any Basic "Index of the first smallest element, or of the first NaN.";
    "argmax" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Uint32] 0.0 false Any Basic "Index of the first largest element, or of the first NaN.";
}

code_rows! { SCAN_CODES
    "sum" 0 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Sum, in the input's dtype.";
    "prod" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Product, in the input's dtype. The error is at most that of a sum of n terms of the product's magnitude.";
    "min" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Smallest element; NaN if there is one.";
    "max" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Largest element; NaN if there is one.";
    "logaddexp" 6 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 true Small Basic "ln of the sum of e^x. Of SCAN alone.";
}

code_rows! { SCATTER_CODES
    "set" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Replaces the element. Of several updates of one element, the last in row-major order stays.";
    "sum" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Adds to the element.";
    "prod" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Multiplies the element.";
    "min" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Keeps the smaller one; NaN if one is NaN.";
    "max" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Keeps the larger one; NaN if one is NaN.";
}

code_rows! { SCATTER_AXIS_CODES
    "set" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Replaces the element. Of several updates of one element, the last in row-major order stays.";
    "sum" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Adds to the element.";
}

code_rows! { FFT_CODES
    "forward" 0 [dtypes::COMPLEX] [Output::Main] 0.0 true Any Extra "y_k = sum over j of x_j e^(-2 pi i j k / n).";
    "backward" 1 [dtypes::COMPLEX] [Output::Main] 0.0 true Any Extra "y_k = sum over j of x_j e^(2 pi i j k / n).";
    "real" 2 [dtypes::SINGLE] [Output::Any(dtypes::COMPLEX)] 0.0 true Any Extra "The first floor(n / 2) + 1 elements of the forward transform of n real numbers.";
    "real_backward" 3 [dtypes::COMPLEX] [Output::Real] 0.0 true Any Extra "The backward transform that gives n real numbers, from its first floor(n / 2) + 1 elements. The imaginary part of element 0 is ignored, and for an even n that of the last.";
}

attribute_rows! {
    NoAttrs "um_no_attrs" {
    }
    UnaryAttrs "um_unary_attrs" {
        op "u32" [Some("unary")] "A unary code.";
    }
    BinaryAttrs "um_binary_attrs" {
        op "u32" [Some("binary")] "A binary code.";
    }
    ReduceAttrs "um_reduce_attrs" {
        op "u32" [Some("reduce")] "A reduce code, not LOGADDEXP.";
        axes "u64" [None] "Mask of the reduced axes: bit i (of value 2^i) stands for axis i, counted from 0. 0 reduces no axis. Bits of the rank and above are 0.";
    }
    ArgReduceAttrs "um_arg_reduce_attrs" {
        op "u32" [Some("arg_reduce")] "An arg_reduce code.";
        axis "u32" [None] "Axis of the search, from 0 to the rank - 1.";
    }
    ScanAttrs "um_scan_attrs" {
        op "u32" [Some("reduce")] "A reduce code, not ALL or ANY.";
        axis "u32" [None] "Axis of the scan, from 0 to the rank - 1.";
        reverse "u32" [None] "1: the scan runs from the last element to the first. 0: from the first to the last.";
        inclusive "u32" [None] "1: an output element includes the input element of its place. 0: it ends before it.";
    }
    GatherAttrs "um_gather_attrs" {
        n_indices "u32" [None] "Number of index arrays, at least 1 and at most the source's rank.";
        index_ndim "u32" [None] "Rank of every index array; may be 0.";
        axes "u8[32]" [None] "Element k is the source axis that index array k addresses. The first n_indices elements count; they differ from each other, in any order. The rest is 0.";
    }
    ScatterAttrs "um_scatter_attrs" {
        op "u32" [Some("scatter")] "A scatter code.";
        n_indices "u32" [None] "Number of index arrays, at least 1 and at most the source's rank.";
        index_ndim "u32" [None] "Rank of every index array; may be 0.";
        axes "u8[32]" [None] "Element k is the source axis that index array k addresses. The first n_indices elements count; they differ from each other, in any order. The rest is 0.";
    }
    AxisAttrs "um_axis_attrs" {
        axis "u32" [None] "Axis of the operation, from 0 to the rank - 1.";
    }
    ScatterAxisAttrs "um_scatter_axis_attrs" {
        op "u32" [Some("scatter")] "A scatter code: SET or SUM.";
        axis "u32" [None] "Axis that the indices address, from 0 to the rank - 1.";
    }
    FftAttrs "um_fft_attrs" {
        op "u32" [Some("fft")] "An fft code.";
        axis "u32" [None] "Axis of the transform, from 0 to the rank - 1.";
    }
    ConvolveAttrs "um_convolve_attrs" {
        flip "u32" [None] "1: the kernel is reversed along its three spatial axes (convolution). 0: it is not (cross-correlation).";
        precision "u32" [None] "Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as they are, UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits), UM_PRECISION_MEDIUM (2) to bfloat16 (8). Other dtypes ignore it. A device may be more exact. It may refuse 1 and 2 with UM_UNSUPPORTED; the host then asks with 0.";
    }
    PrecisionAttrs "um_precision_attrs" {
        precision "u32" [None] "Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as they are, UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits), UM_PRECISION_MEDIUM (2) to bfloat16 (8). Other dtypes ignore it. A device may be more exact. It may refuse 1 and 2 with UM_UNSUPPORTED; the host then asks with 0.";
    }
    AxesAttrs "um_axes_attrs" {
        reserved "u32" [None] "0.";
        axes "u64" [None] "Mask of the axes of the sum: bit i (of value 2^i) stands for axis i, counted from 0. Bits of the rank and above are 0.";
    }
    TriangleAttrs "um_triangle_attrs" {
        upper "u32" [None] "1: the upper triangle of the matrix counts. 0: the lower one.";
    }
    RopeAttrs "um_rope_attrs" {
        pairs "u32" [None] "Number of rotated pairs, at least 1. 2 * pairs is at most the size of the last axis; elements behind are copied.";
        traditional "u32" [None] "1: pair i is elements 2 i and 2 i + 1. 0: elements i and pairs + i.";
        inverse "u32" [None] "1: rotates by the opposite angles, with -sin in place of sin.";
    }
    SearchAttrs "um_search_attrs" {
        right "u32" [None] "1: counts the elements that are not larger than the value (insertion behind equal elements). 0: those that are smaller (insertion before them).";
    }
    DynamicSliceAttrs "um_dynamic_slice_attrs" {
        n_starts "u32" [None] "Number of elements of the starts, at most the source's rank.";
        axes "u8[32]" [None] "Element k is the axis that start k belongs to. The first n_starts elements count and differ from each other; the rest is 0. Along other axes the window begins at 0.";
    }
    AttentionAttrs "um_attention_attrs" {
        mask "u32" [None] "1: the input mask is present.";
        sinks "u32" [None] "1: the input sinks is present. 0 for ATTENTION_GRADIENT.";
        lengths "u32" [None] "1: the input lengths is present.";
        causal "u32" [None] "1: query i of m attends to key j only if j <= i + L - m, where L is the batch's length, or n without lengths.";
        head_size "u32" [None] "Size d of a query and of a key.";
        value_size "u32" [None] "Size e of a value.";
        group "u32" [None] "Number of query heads that share a key head, at least 1.";
        deterministic "u32" [None] "1: equal commands give bitwise identical results. 0: gradients may differ in their last bits, even on a device with UM_DEVICE_DETERMINISTIC.";
    }
    DequantizeAttrs "um_dequantize_attrs" {
        mode "u32" [Some("quantization")] "A quantization code.";
        bits "u32" [None] "Bits of an element; see the mode.";
        group "u32" [None] "Number of consecutive elements of a row that share a scale; see the mode.";
        biases "u32" [None] "1: the input biases is present. 1 for AFFINE, 0 for the other modes.";
        global_scale "u32" [None] "1: the input global_scale is present. 0 for every mode but NVFP4.";
    }
    QuantizedMatmulAttrs "um_quantized_matmul_attrs" {
        mode "u32" [Some("quantization")] "A quantization code.";
        bits "u32" [None] "Bits of an element; see the mode.";
        group "u32" [None] "Number of consecutive elements of a row that share a scale; see the mode.";
        transpose "u32" [None] "1: a row of the packed matrix is a column of the second factor. 0: it is a row of it.";
        biases "u32" [None] "1: the input biases is present. 1 for AFFINE, 0 for the other modes.";
        global_scale "u32" [None] "1: the input global_scale is present. 0 for every mode but NVFP4.";
        lhs_indices "u32" [None] "1: the input lhs_indices is present.";
        rhs_indices "u32" [None] "1: the input rhs_indices is present.";
    }
    GatherMatmulAttrs "um_gather_matmul_attrs" {
        lhs_indices "u32" [None] "1: the input lhs_indices is present.";
        rhs_indices "u32" [None] "1: the input rhs_indices is present.";
    }
    NormGradientAttrs "um_norm_gradient_attrs" {
        parameters "u32" [None] "1: all outputs are computed. 0: only the gradient with respect to x; the other outputs may be left unwritten.";
    }
}

op_rows! {
    "copy" 0 Copy 1 Basic Elementwise NoAttrs {
        inputs: "source" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Any(dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX)];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Conversions are correctly rounded."];
        doc: "Copies the source and converts its elements to the output's dtype.";
    }
    "fill" 1 Create 1 Basic Free NoAttrs {
        inputs: ;
        scalars: [Scalar::Main];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["The value is stored bit by bit."];
        doc: "Sets every element of the output to a value.";
    }
    "arange" 2 Create 1 Complete Line NoAttrs {
        inputs: ;
        scalars: [Scalar::Float64OrInt64, Scalar::Float64OrInt64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 2.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Computed in float64 or int64 without contraction, then converted as by COPY. A device without float64 may use float32 for outputs of float32 and narrower.", "The tolerance counts units in the last place of the largest of |start|, |i * step| and |output[i]|."];
        doc: "Fills a line with numbers of equal distance.";
    }
    "unary" 3 Elementwise 1 Basic Elementwise UnaryAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: Some("unary"), &UNARY_CODES;
        numbers: [];
        doc: "Applies a function of one argument to every element. The attribute `op` chooses the function.";
    }
    "binary" 4 Elementwise 1 Basic Elementwise BinaryAttrs {
        inputs: "x" [InputDtype::Main] false false, "y" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: Some("binary"), &BINARY_CODES;
        numbers: [];
        doc: "Applies a function of two arguments of one dtype to every pair of elements. The attribute `op` chooses the function.";
    }
    "select" 5 Select 1 Complete Elementwise NoAttrs {
        inputs: "condition" [InputDtype::Of(dtypes::BOOL)] false false, "x" [InputDtype::Main] false false, "y" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Takes each element from x where the condition is true, else from y.";
    }
    "reduce" 6 Reduce 1 Basic Reduced ReduceAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("reduce"), &REDUCE_CODES;
        numbers: ["SUM and PROD follow the rule of sums above. MIN, MAX, ALL and ANY are exact."];
        doc: "Combines the elements along a set of axes by a sum, product, minimum, maximum, all or any. Reduced axes stay, with size 1.";
    }
    "arg_reduce" 7 ArgReduce 1 Complete AxisReduced ArgReduceAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: Some("arg_reduce"), &ARG_REDUCE_CODES;
        numbers: ["Indices are exact."];
        doc: "Finds the index of the smallest or largest element along an axis. The axis stays, with size 1.";
    }
    "scan" 8 Scan 1 Complete Same ScanAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("reduce"), &SCAN_CODES;
        numbers: ["Each element follows the rule of sums above. For float16 and bfloat16 the running value may be rounded to the dtype at each element.", "The imaginary part of a complex LOGADDEXP depends on the order of adding: multiples of 2 pi are free."];
        doc: "Running sum, product, minimum, maximum or logaddexp along an axis.";
    }
    "matmul" 9 Matmul 1 Basic Matmul PrecisionAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["A sum of k + 1 terms, with or without contraction. float16 and bfloat16 accumulate in float32.", "float32 with a lower precision: 2^-10 (HIGH) or 2^-7 (MEDIUM) times the sum of magnitudes more. The same 2^-10 holds for every precision on a device with `UM_DEVICE_REDUCED_PRECISION`."];
        doc: "Products of matrices, one for each index of the batch dimensions.";
    }
    "gather" 10 Index 1 Complete Gather GatherAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] true false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Copies one window of the source for each position of the index arrays. A window begins at the indices along the axes of `axes`, and at 0 along the others.";
    }
    "scatter" 11 Index 1 Complete Scatter ScatterAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] true false, "updates" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the updates of one element";
        codes: Some("scatter"), &SCATTER_CODES;
        numbers: ["SUM and PROD take the updates of an element in any order. Each step may round to the dtype."];
        doc: "The source, with windows combined into it: the reverse of GATHER.";
    }
    "gather_axis" 12 Index 1 Complete GatherAxis AxisAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Takes elements along an axis by an index for each of them.";
    }
    "scatter_axis" 13 Index 1 Complete ScatterAxis ScatterAxisAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] false false, "updates" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the updates of one element";
        codes: Some("scatter"), &SCATTER_AXIS_CODES;
        numbers: ["SUM takes the updates of an element in any order. Each step may round to the dtype."];
        doc: "The source, with updates set or added along an axis by an index for each of them: the reverse of GATHER_AXIS.";
    }
    "sort" 14 Sort 1 Complete Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Sorts the elements along an axis in ascending order.";
    }
    "arg_sort" 15 Sort 1 Complete Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Indices are exact."];
        doc: "Gives the indices that sort the elements along an axis, in the order of SORT.";
    }
    "random_bits" 16 Random 1 Complete Keys NoAttrs {
        inputs: "keys" [InputDtype::Of(dtypes::KEY)] false false;
        scalars: [];
        dtypes: [dtypes::WORDS];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Bits are exact. Test vector: key (0, 0) and counter (0, 0) give 0x6b200159 and 0x99ba4efe."];
        doc: "Pseudo-random bits from keys, by Threefry-2x32 with 20 rounds. Equal keys give equal bits on every backend.";
    }
    "partition" 17 Sort 1 Extra Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Int64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the elements on both sides";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Reorders the elements along an axis so that element k is the one that SORT puts there, none before it is larger, and none behind it is smaller.";
    }
    "arg_partition" 18 Sort 1 Extra Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Int64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the elements on both sides";
        codes: None, &[];
        numbers: ["Indices are exact."];
        doc: "Gives indices that partition the elements along an axis, as PARTITION does.";
    }
    "fft" 19 Fft 1 Extra Own FftAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::SINGLE | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("fft"), &FFT_CODES;
        numbers: ["The error is at most 4 log2(n) eps |scale| S + eps |output[k]|. S is the sum of the magnitudes of the n transformed elements, eps is 2^-23."];
        doc: "Discrete Fourier transform along an axis, times a factor. The attribute `op` chooses the direction and the kind of numbers.";
    }
    "convolve" 20 Conv 1 Extra Own ConvolveAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm of a library";
        codes: None, &[];
        numbers: ["A sum of as many terms as the formula has for an element, plus 1; precisions as MATMUL's. float16 and bfloat16 accumulate in float32."];
        doc: "Cross-correlation, or convolution with `flip`, over three spatial axes. Operations of one or two axes come with sizes of 1.";
    }
    "cholesky" 21 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||L L^H - a|| <= 16 n eps ||a||`, in Frobenius norms."];
        doc: "Cholesky factors of Hermitian positive definite matrices: the lower L with `a = L L^H`, or with `upper` the U with `a = U^H U`.";
    }
    "lu" 22 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Uint32, Output::Uint32];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||L U - a[rows]|| <= 16 max(m, n) eps ||a||`, in Frobenius norms."];
        doc: "LU factors of matrices, with partial pivoting: the rows of `a` in the order of `rows` are `L U`.";
    }
    "qr" 23 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||q r - a|| <= 16 max(m, n) eps ||a||` and `||q^H q - 1|| <= 16 max(m, n) eps sqrt(k)`, in Frobenius norms."];
        doc: "QR factors of matrices: `a = q r`, with orthonormal columns in q and an upper triangular r.";
    }
    "svd" 24 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Real, Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||u diag(s) vt - a|| <= 16 max(m, n) eps ||a||`, in Frobenius norms; u and vt are orthonormal as q of QR."];
        doc: "Singular value decomposition of matrices: `a = u diag(s) vt`. The outputs' shapes say whether u and vt are square or reduced.";
    }
    "singular_values" 25 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["The sums of their squares and fourth powers are the traces of `a^H a` and its square, as exactly as SVD's products."];
        doc: "Singular values of matrices: s of SVD, without the vectors.";
    }
    "eigh" 26 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||a v - v diag(w)|| <= 16 n eps ||a||` in Frobenius norms; v is orthonormal as q of QR."];
        doc: "Eigenvalues and eigenvectors of Hermitian matrices: `a v = v diag(w)`.";
    }
    "eigvalsh" 27 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["The sums of the eigenvalues and of their squares are the traces of a and its square, as exactly as EIGH's products."];
        doc: "Eigenvalues of Hermitian matrices: w of EIGH, without the vectors.";
    }
    "eig" 28 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Any(dtypes::COMPLEX)];
        more: [Output::Any(dtypes::COMPLEX)];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||a v - v diag(w)|| <= 16 n eps ||a||` in Frobenius norms, eps being float32's."];
        doc: "Eigenvalues and eigenvectors of square matrices: `a v = v diag(w)`.";
    }
    "eigvals" 29 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Any(dtypes::COMPLEX)];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["The sums of the eigenvalues and of their squares are the traces of a and its square, as exactly as EIG's products."];
        doc: "Eigenvalues of square matrices: w of EIG, without the vectors.";
    }
    "solve_triangular" 30 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and rotations, and the algorithm of a library";
        codes: None, &[];
        numbers: ["`||a x - b|| <= 16 max(n, k) eps ||a|| ||x||`, in Frobenius norms."];
        doc: "Solves `a x = b` for triangular matrices a.";
    }
    "softmax" 31 Nn 1 Extra Same AxesAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The sum follows the rule of sums. Results of float16 and bfloat16 are computed in float32 and rounded once."];
        doc: "Softmax over the axes of a mask: exponentials, divided by their sum.";
    }
    "logsumexp" 32 Nn 1 Extra Reduced AxesAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The sum follows the rule of sums. The error of the logarithm is the relative error of the sum, plus the rounding of m and of the result."];
        doc: "Logarithm of the sum of exponentials over the axes of a mask, without overflow on the way. Reduced axes stay, with size 1.";
    }
    "rms_norm" 33 Nn 1 Extra Elementwise NoAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The sum of squares follows the rule of sums. float16 and bfloat16 are computed in float32 and rounded once."];
        doc: "Divides each row, along the last axis, by its root mean square, and multiplies by a weight.";
    }
    "layer_norm" 34 Nn 1 Extra Elementwise NoAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false, "bias" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Both sums follow the rule of sums. The error is relative to the larger of the product and the bias. The variance is taken of the differences: `mean(x^2) - m^2` loses digits."];
        doc: "Subtracts from each row, along the last axis, its mean, divides by its standard deviation, multiplies by a weight and adds a bias.";
    }
    "rope" 35 Nn 1 Extra Own RopeAttrs {
        inputs: "x" [InputDtype::Main] false false, "cos" [InputDtype::Of(dtypes::ANGLES)] false false, "sin" [InputDtype::Of(dtypes::ANGLES)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Each product, and then the sum or difference, is rounded in the dtype of cos. Nothing is contracted, so results are bitwise identical on every backend."];
        doc: "Rotates pairs of elements of the last axis (rotary position embedding). Elements behind the pairs are copied.";
    }
    "searchsorted" 36 Sort 1 Extra Own SearchAttrs {
        inputs: "rows" [InputDtype::Main] false false, "values" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Indices are exact."];
        doc: "Finds where values belong in sorted rows: the number of elements of the row that come before each value.";
    }
    "dynamic_slice" 37 Index 1 Extra Slice DynamicSliceAttrs {
        inputs: "source" [InputDtype::Main] false false, "starts" [InputDtype::Of(dtypes::INT)] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "Copies a window of the source. The window has the output's shape and begins at starts that a tensor holds.";
    }
    "dynamic_slice_update" 38 Index 1 Extra SliceUpdate DynamicSliceAttrs {
        inputs: "source" [InputDtype::Main] false false, "starts" [InputDtype::Of(dtypes::INT)] false false, "update" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Elements keep their bits."];
        doc: "The source, with an update written over the window of the update's shape that begins at the starts.";
    }
    "convolve_input" 39 Conv 1 Extra Own ConvolveAttrs {
        inputs: "weight" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm of a library";
        codes: None, &[];
        numbers: ["As CONVOLVE's."];
        doc: "Gradient of CONVOLVE with respect to its input x. Attributes and scalars are those of the convolution.";
    }
    "convolve_weight" 40 Conv 1 Extra Own ConvolveAttrs {
        inputs: "x" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm of a library";
        codes: None, &[];
        numbers: ["As CONVOLVE's."];
        doc: "Gradient of CONVOLVE with respect to its weight. Attributes and scalars are those of the convolution.";
    }
    "attention" 41 Nn 1 Extra Own AttentionAttrs {
        inputs: "queries" [InputDtype::Main] false false, "keys" [InputDtype::Main] false false, "values" [InputDtype::Main] false false, "mask" [InputDtype::Of(dtypes::BOOL | dtypes::FLOAT)] false true, "sinks" [InputDtype::Main] false true, "lengths" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Accumulated];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["For float16 and bfloat16 scores, softmax and sums are float32, in any order; weights may be rounded to the dtype before they meet the values.", "Weights may be off by 64 + 8 * (the largest sum of magnitudes in a score) epsilons of the accumulating dtype."];
        doc: "Scaled dot-product attention with grouped heads. Besides the result it gives the logarithm of each softmax's sum, which the gradient reads.";
    }
    "attention_gradient" 42 Nn 1 Extra Own AttentionAttrs {
        inputs: "queries" [InputDtype::Main] false false, "keys" [InputDtype::Main] false false, "values" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false, "logsumexp" [InputDtype::Of(dtypes::ACCUMULATED)] false false, "delta" [InputDtype::Of(dtypes::ACCUMULATED)] false false, "mask" [InputDtype::Of(dtypes::BOOL | dtypes::FLOAT)] false true, "lengths" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Main, Output::Main];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As ATTENTION's."];
        doc: "Gradients of ATTENTION with respect to queries, keys and values.";
    }
    "cross_entropy" 43 Nn 1 Extra Own NoAttrs {
        inputs: "logits" [InputDtype::Main] false false, "targets" [InputDtype::Of(dtypes::COUNTS)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Accumulated];
        more: [Output::Accumulated];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The sum follows the rule of sums. float16 and bfloat16 are widened as they are read; results stay float32."];
        doc: "Cross entropy of rows of logits with class indices. Besides the losses it gives the logarithm of each softmax's sum, which the gradient reads.";
    }
    "cross_entropy_gradient" 44 Nn 1 Extra Own NoAttrs {
        inputs: "logits" [InputDtype::Main] false false, "targets" [InputDtype::Of(dtypes::COUNTS)] false false, "logsumexp" [InputDtype::Of(dtypes::ACCUMULATED)] false false, "cotangent" [InputDtype::Of(dtypes::ACCUMULATED)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Computed in float32 (float64 for float64) and rounded once."];
        doc: "Gradient of CROSS_ENTROPY's losses with respect to the logits.";
    }
    "dequantize" 45 Quantized 1 Extra Own DequantizeAttrs {
        inputs: "words" [InputDtype::Of(dtypes::PACKED)] false false, "scales" [InputDtype::Of(dtypes::SCALES)] false false, "biases" [InputDtype::Main] false true, "global_scale" [InputDtype::Of(dtypes::SINGLE)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Computed in float32 (float64 for float64) and rounded once. The product may be rounded to the dtype before the bias is added.", "The global scale over 2688, and its product with a scale, may be rounded to float32."];
        doc: "Converts packed numbers of 1 to 8 bits to floats.";
    }
    "quantized_matmul" 46 Quantized 1 Extra Own QuantizedMatmulAttrs {
        inputs: "x" [InputDtype::Main] false false, "words" [InputDtype::Of(dtypes::PACKED)] false false, "scales" [InputDtype::Of(dtypes::SCALES)] false false, "biases" [InputDtype::Main] false true, "global_scale" [InputDtype::Of(dtypes::SINGLE)] false true, "lhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true, "rhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order. float16 and bfloat16 accumulate in float32.", "Dequantized elements may be rounded to the dtype before they meet x. Scale and bias may be applied to the sums of a group instead. Global scales are as DEQUANTIZE's."];
        doc: "Products of matrices of floats with packed matrices. Index tensors may choose the factors of each product.";
    }
    "gather_matmul" 47 Matmul 1 Extra Own GatherMatmulAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false, "lhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true, "rhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As MATMUL's, in the highest precision."];
        doc: "Products of matrices that index tensors choose.";
    }
    "segmented_matmul" 48 Matmul 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false, "segments" [InputDtype::Of(dtypes::COUNTS)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As MATMUL's, in the highest precision."];
        doc: "Products over segments of the inner dimension: one matrix for each segment.";
    }
    "rms_norm_gradient" 49 Nn 1 Extra Own NormGradientAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums follow the rule of sums. float16 and bfloat16 are widened as they are read, and each result is rounded once."];
        doc: "Gradients of RMS_NORM of rows, with respect to x and to the weight.";
    }
    "layer_norm_gradient" 50 Nn 1 Extra Own NormGradientAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Main, Output::Main];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As RMS_NORM_GRADIENT's."];
        doc: "Gradients of LAYER_NORM of rows, with respect to x, to the weight and to the bias.";
    }
}
