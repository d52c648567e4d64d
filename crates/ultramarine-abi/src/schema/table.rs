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
    "abs" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Basic "|x|";
    "negative" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "-x; wraps for integers.";
    "sign" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "-1, 0 or 1, of NaN 0; x/|x| for complex.";
    "square" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x*x";
    "sqrt" 4 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Positive Basic "Square root.";
    "rsqrt" 5 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "1/sqrt(x)";
    "reciprocal" 6 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Any Basic "1/x";
    "exp" 7 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "e^x";
    "expm1" 8 [dtypes::FLOAT] [Output::Main] 4.0 false Small Basic "e^x - 1";
    "log" 9 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "ln x";
    "log2" 10 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "log2 x";
    "log10" 11 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "log10 x";
    "log1p" 12 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Positive Basic "ln(1 + x)";
    "sin" 13 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "Sine of radians.";
    "cos" 14 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 4.0 false Small Basic "Cosine.";
    "tan" 15 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Tangent.";
    "arcsin" 16 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse sine.";
    "arccos" 17 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse cosine.";
    "arctan" 18 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Inverse tangent.";
    "sinh" 19 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic sine.";
    "cosh" 20 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic cosine.";
    "tanh" 21 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Hyperbolic tangent.";
    "arcsinh" 22 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Small Basic "Inverse hyperbolic sine.";
    "arccosh" 23 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false AboveOne Basic "Inverse hyperbolic cosine.";
    "arctanh" 24 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 5.0 false Unit Basic "Inverse hyperbolic tangent.";
    "erf" 25 [dtypes::FLOAT] [Output::Main] 16.0 false Small Basic "Error function.";
    "erfinv" 26 [dtypes::FLOAT] [Output::Main] 32.0 false Unit Complete "Inverse error function.";
    "sigmoid" 27 [dtypes::FLOAT] [Output::Main] 8.0 false Small Basic "1/(1 + e^-x)";
    "floor" 28 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Largest integer not above.";
    "ceil" 29 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Smallest integer not below.";
    "round" 30 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Nearest integer, ties to even.";
    "trunc" 31 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Towards zero.";
    "logical_not" 32 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Logical not: bool to bool.";
    "bitwise_invert" 33 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Complement of integers; logical not of bool.";
    "isnan" 34 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Is NaN (either part): bool.";
    "isinf" 35 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Is infinite (either part): bool.";
    "isfinite" 36 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Is finite (both parts): bool.";
    "conjugate" 37 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Complete "Complex conjugate.";
    "real" 38 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Complete "Real part of complex64: float32.";
    "imag" 39 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Real] 0.0 false Any Complete "Imaginary part of complex64: float32.";
}

code_rows! { BINARY_CODES
    "add" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x + y; integers wrap; bool: or.";
    "subtract" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x - y; integers wrap.";
    "multiply" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "x * y; integers wrap; bool: and.";
    "divide" 3 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 3.0 false Any Basic "x / y; floating and complex only.";
    "floor_divide" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Integers: floor(x / y), by zero 0. Floats: the quotient rounded to the dtype, then rounded down. Complex: x / y.";
    "remainder" 5 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT] [Output::Main] 0.0 false Any Basic "Sign of the divisor (Python's %), a zero too; integers by zero: the dividend.";
    "power" 6 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 false Power Basic "x ** y; integers by squaring, 0 for every negative exponent.";
    "maximum" 7 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Larger; NaN if either is NaN. Complex: by real part, then imaginary.";
    "minimum" 8 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Smaller; NaN if either is NaN.";
    "logaddexp" 9 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 false Small Basic "ln(e^x + e^y)";
    "arctan2" 10 [dtypes::FLOAT] [Output::Main] 6.0 false Small Basic "Angle of (y, x): `arctan2(a, b)` with a the ordinate.";
    "equal" 11 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x == y: bool.";
    "not_equal" 12 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x != y: bool.";
    "less" 13 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x < y: bool.";
    "less_equal" 14 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x <= y: bool.";
    "greater" 15 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x > y: bool.";
    "greater_equal" 16 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x >= y: bool.";
    "logical_and" 17 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Logical and of bools.";
    "logical_or" 18 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Logical or of bools.";
    "bitwise_and" 19 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Bitwise and; bool: and.";
    "bitwise_or" 20 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Bitwise or; bool: or.";
    "bitwise_xor" 21 [dtypes::BOOL | dtypes::INT] [Output::Main] 0.0 false Any Complete "Bitwise xor; bool: xor.";
    "left_shift" 22 [dtypes::INT] [Output::Main] 0.0 false Shift Complete "x << y; a shift by the width or more gives 0.";
    "right_shift" 23 [dtypes::INT] [Output::Main] 0.0 false Shift Complete "x >> y, arithmetic for signed; a shift by the width or more gives 0 or -1.";
    "equal_nan" 24 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "x == y, or both NaN (in either part): bool.";
}

code_rows! { REDUCE_CODES
    "sum" 0 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Sum.";
    "prod" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Product.";
    "min" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Smallest; NaN if any is NaN.";
    "max" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Largest; NaN if any is NaN.";
    "all" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "All non-zero: bool.";
    "any" 5 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Bool] 0.0 false Any Basic "Any non-zero: bool.";
}

code_rows! { ARG_REDUCE_CODES
    "argmin" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Uint32] 0.0 false Any Basic "Index of the smallest; the first NaN wins.";
    "argmax" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Uint32] 0.0 false Any Basic "Index of the largest; the first NaN wins.";
}

code_rows! { SCAN_CODES
    "sum" 0 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Sum.";
    "prod" 1 [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Product.";
    "min" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Smallest; NaN if any is NaN.";
    "max" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Largest; NaN if any is NaN.";
    "logaddexp" 6 [dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 16.0 true Small Basic "ln of the sum of e^x; scans only.";
}

code_rows! { SCATTER_CODES
    "set" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Replaces (the last of equal indices wins).";
    "sum" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Adds.";
    "prod" 2 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true NearOne Basic "Multiplies.";
    "min" 3 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Keeps the smaller.";
    "max" 4 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Keeps the larger.";
}

code_rows! { SCATTER_AXIS_CODES
    "set" 0 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 false Any Basic "Replaces (the last of equal indices wins).";
    "sum" 1 [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX] [Output::Main] 0.0 true Any Basic "Adds.";
}

code_rows! { FFT_CODES
    "forward" 0 [dtypes::COMPLEX] [Output::Main] 0.0 true Any Extra "y_k = sum over j of x_j e^(-2 pi i j k / n).";
    "backward" 1 [dtypes::COMPLEX] [Output::Main] 0.0 true Any Extra "y_k = sum over j of x_j e^(2 pi i j k / n).";
    "real" 2 [dtypes::SINGLE] [Output::Any(dtypes::COMPLEX)] 0.0 true Any Extra "The first n / 2 + 1 (rounded down) elements of the forward transform of real numbers.";
    "real_backward" 3 [dtypes::COMPLEX] [Output::Real] 0.0 true Any Extra "The backward transform, of n real numbers, of its first n / 2 + 1 elements; the imaginary parts of element 0 and, for an even n, of the last are ignored.";
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
        op "u32" [Some("reduce")] "A reduce code.";
        axes "u64" [None] "Bit i: axis i is reduced.";
    }
    ArgReduceAttrs "um_arg_reduce_attrs" {
        op "u32" [Some("arg_reduce")] "An arg_reduce code.";
        axis "u32" [None] "The axis.";
    }
    ScanAttrs "um_scan_attrs" {
        op "u32" [Some("reduce")] "A reduce code.";
        axis "u32" [None] "The axis.";
        reverse "u32" [None] "1: from the end.";
        inclusive "u32" [None] "1: an element includes itself.";
    }
    GatherAttrs "um_gather_attrs" {
        n_indices "u32" [None] "Index arrays.";
        index_ndim "u32" [None] "Dimensions of each index array.";
        axes "u8[32]" [None] "The source axis that each index array addresses; ascending or not, all different.";
    }
    ScatterAttrs "um_scatter_attrs" {
        op "u32" [Some("scatter")] "A scatter code.";
        n_indices "u32" [None] "Index arrays.";
        index_ndim "u32" [None] "Dimensions of each index array.";
        axes "u8[32]" [None] "The axis that each index array addresses.";
    }
    AxisAttrs "um_axis_attrs" {
        axis "u32" [None] "The axis.";
    }
    ScatterAxisAttrs "um_scatter_axis_attrs" {
        op "u32" [Some("scatter")] "A scatter code; SET or SUM.";
        axis "u32" [None] "The axis.";
    }
    FftAttrs "um_fft_attrs" {
        op "u32" [Some("fft")] "A fft code.";
        axis "u32" [None] "The axis.";
    }
    ConvolveAttrs "um_convolve_attrs" {
        flip "u32" [None] "1: the kernel is reversed along its spatial axes.";
        precision "u32" [None] "How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11 significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all but 0.";
    }
    PrecisionAttrs "um_precision_attrs" {
        precision "u32" [None] "How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11 significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all but 0.";
    }
    AxesAttrs "um_axes_attrs" {
        reserved "u32" [None] "0.";
        axes "u64" [None] "Bit i: the sum goes over axis i.";
    }
    TriangleAttrs "um_triangle_attrs" {
        upper "u32" [None] "1: the upper triangle, else the lower one.";
    }
    RopeAttrs "um_rope_attrs" {
        pairs "u32" [None] "Pairs that are turned, at least one; what is behind them in the last axis is copied.";
        traditional "u32" [None] "1: pairs are neighbours, 2 i and 2 i + 1, else i and pairs + i.";
        inverse "u32" [None] "1: by the opposite angles: of -sin.";
    }
    SearchAttrs "um_search_attrs" {
        right "u32" [None] "1: values go behind the elements that equal them, else before them.";
    }
    DynamicSliceAttrs "um_dynamic_slice_attrs" {
        n_starts "u32" [None] "Elements of the starts.";
        axes "u8[32]" [None] "The axis that each start is about, all different; along others the window begins at 0.";
    }
    AttentionAttrs "um_attention_attrs" {
        mask "u32" [None] "1: there is a mask.";
        sinks "u32" [None] "1: there are sinks. Of the gradient, 0.";
        lengths "u32" [None] "1: there are lengths.";
        causal "u32" [None] "1: query i sees the keys up to i + keys (or the length) - queries.";
        head_size "u32" [None] "Size of a query and of a key.";
        value_size "u32" [None] "Size of a value.";
        group "u32" [None] "Query heads that a key head serves.";
        deterministic "u32" [None] "1: equal commands give equal bits. 0: those of the gradient may differ in their last bits, even where a device is DETERMINISTIC.";
    }
    DequantizeAttrs "um_dequantize_attrs" {
        mode "u32" [Some("quantization")] "A quantization code.";
        bits "u32" [None] "Bits of an element.";
        group "u32" [None] "Elements of a row that share a scale.";
        biases "u32" [None] "1: there are biases; of AFFINE always.";
        global_scale "u32" [None] "1: there is a global scale; of NVFP4 alone.";
    }
    QuantizedMatmulAttrs "um_quantized_matmul_attrs" {
        mode "u32" [Some("quantization")] "A quantization code.";
        bits "u32" [None] "Bits of an element.";
        group "u32" [None] "Elements of a row that share a scale.";
        transpose "u32" [None] "1: rows of words are columns of the second factor.";
        biases "u32" [None] "1: there are biases; of AFFINE always.";
        global_scale "u32" [None] "1: there are global scales; of NVFP4 alone.";
        lhs_indices "u32" [None] "1: there are indices of the first factor's matrices.";
        rhs_indices "u32" [None] "1: there are indices of the second factor's matrices.";
    }
    GatherMatmulAttrs "um_gather_matmul_attrs" {
        lhs_indices "u32" [None] "1: there are indices of the first factor's matrices.";
        rhs_indices "u32" [None] "1: there are indices of the second factor's matrices.";
    }
    NormGradientAttrs "um_norm_gradient_attrs" {
        parameters "u32" [None] "1: the gradients by weight and bias are wanted too, else those outputs may be left as they are.";
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
        numbers: ["Conversions follow the rule of rounding above."];
        doc: "Element copy between any strides, converting the dtype.";
    }
    "fill" 1 Create 1 Basic Free NoAttrs {
        inputs: ;
        scalars: [Scalar::Main];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "Fills the output with scalar 0.";
    }
    "arange" 2 Create 1 Complete Line NoAttrs {
        inputs: ;
        scalars: [Scalar::Float64OrInt64, Scalar::Float64OrInt64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 2.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Computed in float64 or int64 without contraction, then converted as COPY does; a device without float64 may use float32 for outputs of float32 and below (`ulps` then counts in units of the largest element)."];
        doc: "`scalar0 + i * scalar1` along a 1-d output (both float64 for floating outputs, else int64).";
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
        doc: "";
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
        doc: "Both inputs of one dtype, broadcast by strides.";
    }
    "select" 5 Select 1 Complete Elementwise NoAttrs {
        inputs: "condition" [InputDtype::Of(dtypes::BOOL)] false false, "x" [InputDtype::Main] false false, "y" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "`condition ? x : y`.";
    }
    "reduce" 6 Reduce 1 Basic Reduced ReduceAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("reduce"), &REDUCE_CODES;
        numbers: ["Sums and products may be taken in any order; the tolerance is relative to the sum (product) of the absolute values."];
        doc: "The output keeps reduced axes with size 1.";
    }
    "arg_reduce" 7 ArgReduce 1 Complete AxisReduced ArgReduceAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: Some("arg_reduce"), &ARG_REDUCE_CODES;
        numbers: [];
        doc: "Index (uint32) of the extreme along an axis, the first of equals; the output keeps the axis with size 1.";
    }
    "scan" 8 Scan 1 Complete Same ScanAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("reduce"), &SCAN_CODES;
        numbers: ["Any order of adding, as in REDUCE. An exclusive scan begins with the neutral element: 0, 1, the largest value (infinity), the smallest, -infinity for logaddexp.", "The imaginary part of a complex logaddexp is what the order of adding makes it: it may be off by multiples of 2 pi."];
        doc: "Running reduction along an axis.";
    }
    "matmul" 9 Matmul 1 Basic Matmul PrecisionAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order, with or without contraction; a device may say that it shortens the mantissa (REDUCED_PRECISION)."];
        doc: "`(..., m, k) x (..., k, n) -> (..., m, n)`, equal batch dimensions (broadcast by strides). float16 and bfloat16 accumulate in float32.";
    }
    "gather" 10 Index 1 Complete Gather GatherAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] true false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "Inputs: source, then `n_indices` index arrays of one shape and dtype. Output: index shape followed by a slice of `source.ndim` dimensions (1 along indexed axes). Negative indices count from the end; an index outside is clamped, never read past the buffer.";
    }
    "scatter" 11 Index 1 Complete Scatter ScatterAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] true false, "updates" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order in which the updates of one place come";
        codes: Some("scatter"), &SCATTER_CODES;
        numbers: ["Sums and products of updates to one element may be taken in any order."];
        doc: "Inputs: source, indices, updates (shaped as GATHER's output). The output is the source with the updates combined in; out-of-range indices are skipped.";
    }
    "gather_axis" 12 Index 1 Complete GatherAxis AxisAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "`out[.., i, ..] = source[.., index[.., i, ..], ..]`.";
    }
    "scatter_axis" 13 Index 1 Complete ScatterAxis ScatterAxisAttrs {
        inputs: "source" [InputDtype::Main] false false, "indices" [InputDtype::Of(dtypes::INT)] false false, "updates" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order in which the updates of one place come";
        codes: Some("scatter"), &SCATTER_AXIS_CODES;
        numbers: [];
        doc: "Source, indices, updates; the converse of GATHER_AXIS.";
    }
    "sort" 14 Sort 1 Complete Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "Ascending, stable, NaN last.";
    }
    "arg_sort" 15 Sort 1 Complete Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "Indices (uint32) that sort.";
    }
    "random_bits" 16 Random 1 Complete Keys NoAttrs {
        inputs: "keys" [InputDtype::Of(dtypes::KEY)] false false;
        scalars: [];
        dtypes: [dtypes::WORDS];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["The outputs of a key are the bytes of W words (rounded up), least significant byte first. With h = ceil(W / 2): for i < floor(W / 2) the block of counters (i, i + h) gives the words i and i + h; if W is odd, word h - 1 is the first word of the block of counters (h - 1, 0). The same bits on every backend."];
        doc: "Threefry-2x32 bits. Input: keys (..., 2) uint32; output (keys..., n) uint8, uint16 or uint32.";
    }
    "partition" 17 Sort 1 Extra Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Int64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the elements on either side";
        codes: None, &[];
        numbers: [];
        doc: "The elements along an axis in an order in which number k (scalar 0) is as SORT has it, none before it is larger and none behind it is smaller.";
    }
    "arg_partition" 18 Sort 1 Extra Same AxisAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Int64];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "the order of the elements on either side";
        codes: None, &[];
        numbers: [];
        doc: "Indices (uint32) that partition, as PARTITION.";
    }
    "fft" 19 Fft 1 Extra Own FftAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::SINGLE | dtypes::COMPLEX];
        output: [Output::Code];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: Some("fft"), &FFT_CODES;
        numbers: ["The error is relative to the sum of the absolute values of the transformed elements: a few units in the last place times log2 n."];
        doc: "Discrete Fourier transforms along an axis, times scalar 0. The length n is the axis' size, for REAL the input's, for REAL_BACKWARD the output's.";
    }
    "convolve" 20 Conv 1 Extra Own ConvolveAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["Sums in any order, as MATMUL's; float16 and bfloat16 accumulate in float32."];
        doc: "Cross-correlation (or convolution, see `flip`) over three spatial axes: input `(n, d, h, w, c)`, weight `(o, kd, kh, kw, c / groups)`, output `(n, od, oh, ow, o)`. Scalars, three each: strides, zeros before the first element (may be negative), kernel dilation, input dilation. What is read outside of the input, and between its dilated elements, is 0. Group g of the outputs reads group g of the channels.";
    }
    "cholesky" 21 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "The triangular factor L of `a = L L^H` of matrices `(..., n, n)`, or U of `a = U^H U`; zeros in the other triangle. Only the named triangle of `a` is read. Not positive definite: NaN.";
    }
    "lu" 22 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Uint32, Output::Uint32];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "LU factors with partial pivoting of `(..., m, n)`, L (unit diagonal) and U in one matrix; pivots `(..., k)`, k = min(m, n): row i was swapped with the row that element i names; rows `(..., m)`: row i of L U is the row of `a` that element i names.";
    }
    "qr" 23 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "`a = q r` of `(..., m, n)`: q `(..., m, k)` with orthonormal columns, r `(..., k, n)` upper triangular, k = min(m, n).";
    }
    "svd" 24 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [Output::Real, Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "`a = u diag(s) vt` of `(..., m, n)`: u `(..., m, m)` or `(..., m, k)`, s `(..., k)` descending, vt `(..., n, n)` or `(..., k, n)`, k = min(m, n), as the outputs' shapes say.";
    }
    "singular_values" 25 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: [];
        doc: "s of SVD.";
    }
    "eigh" 26 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "Eigenvalues w `(..., n)`, ascending, and eigenvectors, the columns of v `(..., n, n)`, of Hermitian matrices, of which one triangle is read.";
    }
    "eigvalsh" 27 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Real];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: [];
        doc: "w of EIGH.";
    }
    "eig" 28 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Any(dtypes::COMPLEX)];
        more: [Output::Any(dtypes::COMPLEX)];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is measured backwards: what the factors multiply to, relative to the norm of the matrix."];
        doc: "Eigenvalues w `(..., n)` and eigenvectors, the columns of norm 1 of v `(..., n, n)`, of square matrices, in any order.";
    }
    "eigvals" 29 Linalg 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Any(dtypes::COMPLEX)];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: [];
        doc: "w of EIG.";
    }
    "solve_triangular" 30 Linalg 1 Extra Own TriangleAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::SOLVED];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of sums and of rotations, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["The error is that of a x, relative to the norms of a and x."];
        doc: "x of `a x = b` for triangular `a` `(..., n, n)`, of which one triangle is read, and b and x `(..., n, k)`; equal batch dimensions (broadcast by strides).";
    }
    "softmax" 31 Nn 1 Extra Same AxesAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order, as REDUCE's. Where the largest element is infinite (or NaN), the quotients of what that gives: NaN for all of NaN, and for all if there are only negative infinities."];
        doc: "`e^(x - m)` over its sum over the axes of `axes`, m being the largest element over them.";
    }
    "logsumexp" 32 Nn 1 Extra Reduced AxesAttrs {
        inputs: "x" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order, as REDUCE's; the error of the logarithm is that of the sum relative to it."];
        doc: "`ln` of the sum of `e^x` over the axes of `axes`, which keep size 1, without overflow on the way: infinity if there is one, -infinity of nothing else.";
    }
    "rms_norm" 33 Nn 1 Extra Elementwise NoAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The sum of the squares in any order, as REDUCE's. The weight has the output's shape by zero strides, mostly."];
        doc: "`x / sqrt(mean(x^2) + scalar 0) * weight`, the mean being that of the last axis, of which there is at least one.";
    }
    "layer_norm" 34 Nn 1 Extra Elementwise NoAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false, "bias" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 8.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order, as REDUCE's; the error is relative to the larger of the product and the bias. Weight and bias have the output's shape by zero strides, mostly."];
        doc: "`(x - m) / sqrt(v + scalar 0) * weight + bias`, m being the mean of the last axis, of which there is at least one, and v that of `(x - m)^2`.";
    }
    "rope" 35 Nn 1 Extra Own RopeAttrs {
        inputs: "x" [InputDtype::Main] false false, "cos" [InputDtype::Of(dtypes::ANGLES)] false false, "sin" [InputDtype::Of(dtypes::ANGLES)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["cos and sin are float64 for float64, else float32. Every product, and then the sum or difference, is rounded in that dtype: nothing is contracted."];
        doc: "Turns pairs (a, b) of elements of the last axis into `(a * cos - b * sin, a * sin + b * cos)`. cos and sin have the output's shape, but `pairs` as the last size; mostly by zero strides.";
    }
    "searchsorted" 36 Sort 1 Extra Own SearchAttrs {
        inputs: "rows" [InputDtype::Main] false false, "values" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT];
        output: [Output::Uint32];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["The zeros are equal, and so are NaNs, which come behind all other numbers. In a row that is not in order any place is right."];
        doc: "How many elements of a row come before each value: rows `(b..., n)` in the order of SORT, values `(b..., v...)`; the output has the values' shape.";
    }
    "dynamic_slice" 37 Index 1 Extra Slice DynamicSliceAttrs {
        inputs: "source" [InputDtype::Main] false false, "starts" [InputDtype::Of(dtypes::INT)] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "The window of the source that begins at the starts and has the output's shape. A start below 0 counts as 0; one from which the window would leave the source counts as the last from which it does not.";
    }
    "dynamic_slice_update" 38 Index 1 Extra SliceUpdate DynamicSliceAttrs {
        inputs: "source" [InputDtype::Main] false false, "starts" [InputDtype::Of(dtypes::INT)] false false, "update" [InputDtype::Main] false false;
        scalars: [];
        dtypes: [dtypes::BOOL | dtypes::INT | dtypes::FLOAT | dtypes::COMPLEX];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: [];
        doc: "The source with the update written over the window of its shape that begins at the starts, as in DYNAMIC_SLICE. Where the output is the source's memory, nothing but the window is written.";
    }
    "convolve_input" 39 Conv 1 Extra Own ConvolveAttrs {
        inputs: "weight" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["Sums in any order, as MATMUL's; float16 and bfloat16 accumulate in float32."];
        doc: "The gradient of CONVOLVE by its input: from the weight and a cotangent `(n, od, oh, ow, o)` of the output, that of the input, `(n, d, h, w, c)`. Attributes and scalars are the convolution's.";
    }
    "convolve_weight" 40 Conv 1 Extra Own ConvolveAttrs {
        inputs: "x" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64, Scalar::Int64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum, and the algorithm that a library chooses";
        codes: None, &[];
        numbers: ["Sums in any order, as MATMUL's; float16 and bfloat16 accumulate in float32."];
        doc: "The gradient of CONVOLVE by its weight: from the input and a cotangent `(n, od, oh, ow, o)` of the output, that of the weight, `(o, kd, kh, kw, c / groups)`. Attributes and scalars are the convolution's.";
    }
    "attention" 41 Nn 1 Extra Own AttentionAttrs {
        inputs: "queries" [InputDtype::Main] false false, "keys" [InputDtype::Main] false false, "values" [InputDtype::Main] false false, "mask" [InputDtype::Of(dtypes::BOOL | dtypes::FLOAT)] false true, "sinks" [InputDtype::Main] false true, "lengths" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Accumulated];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["The scores, softmax and sums of float16 and bfloat16 are in float32, in any order; the weights may be rounded to the dtype before they meet the values. Keys and values behind the length need not be read."];
        doc: "Scaled dot-product attention. Queries `(b, h, m, d)`, keys `(b, h / group, n, d)`, values `(b, h / group, n, e)`, mask `(b, h, m, n)`, sinks `(b, h)`, lengths `(b)`; the outputs are the result `(b, h, m, e)` and the logarithms of the softmax's sums `(b, h, m)`. Scores are scalar 0 times `q k^T`, plus the mask if it holds numbers. Masked ones (where a bool mask is false, behind the length, and, `causal`, behind the query) and any below it are the lowest finite number of their dtype. The result is the softmax of the scores over the keys, times the values; the softmax's sum has `e^sink` as one more term.";
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
        doc: "The gradients of ATTENTION by queries, keys and values, in their shapes, from a cotangent `(b, h, m, e)` of its result, the logarithms that it gave, and delta `(b, h, m)`: the sum of result times cotangent over the last axis, less the cotangent of the logarithm. With w the softmax's weights and s the scores, the gradient by s is `w (cotangent values^T - delta)`; by masked scores it is 0. Logarithms that are the lowest finite number belong to queries all of whose keys are masked, with equal weights.";
    }
    "cross_entropy" 43 Nn 1 Extra Own NoAttrs {
        inputs: "logits" [InputDtype::Main] false false, "targets" [InputDtype::Of(dtypes::COUNTS)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Accumulated];
        more: [Output::Accumulated];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["float16 and bfloat16 are widened as they are read; sums in any order. Infinite and NaN logits give what the formula gives."];
        doc: "Cross entropy of class indices. From logits `(r, c)` and targets `(r)`, the losses `(r)` and the logarithms of the sums of `e^logit` `(r)`: a loss is the logarithm less the target's logit. Negative targets count from the end; one outside is held to the axis. There is a class at least.";
    }
    "cross_entropy_gradient" 44 Nn 1 Extra Own NoAttrs {
        inputs: "logits" [InputDtype::Main] false false, "targets" [InputDtype::Of(dtypes::COUNTS)] false false, "logsumexp" [InputDtype::Of(dtypes::ACCUMULATED)] false false, "cotangent" [InputDtype::Of(dtypes::ACCUMULATED)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As CROSS_ENTROPY's."];
        doc: "The gradient of CROSS_ENTROPY by its logits, in their shape, from the logarithms that it gave and a cotangent `(r)` of its losses: the cotangent times `e^(logit - logarithm)`, less the cotangent at the target.";
    }
    "dequantize" 45 Quantized 1 Extra Own DequantizeAttrs {
        inputs: "words" [InputDtype::Of(dtypes::PACKED)] false false, "scales" [InputDtype::Of(dtypes::SCALES)] false false, "biases" [InputDtype::Main] false true, "global_scale" [InputDtype::Of(dtypes::SINGLE)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: false, order: "";
        codes: None, &[];
        numbers: ["Computed in float32 (float64 for float64) and rounded once; what is multiplied by the scale may be rounded to the dtype before the bias is added. The global scale over 2688, and its product with a scale, may be rounded to float32."];
        doc: "Numbers of few bits as floats. Words `(r, k bits / 32)` hold the k elements of each row as a stream of bits, the lowest first: element i is bits `i bits` to `(i + 1) bits`. Scales and biases `(r, k / group)`, global scale `(1)`; the output is `(r, k)`.";
    }
    "quantized_matmul" 46 Quantized 1 Extra Own QuantizedMatmulAttrs {
        inputs: "x" [InputDtype::Main] false false, "words" [InputDtype::Of(dtypes::PACKED)] false false, "scales" [InputDtype::Of(dtypes::SCALES)] false false, "biases" [InputDtype::Main] false true, "global_scale" [InputDtype::Of(dtypes::SINGLE)] false true, "lhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true, "rhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["float16 and bfloat16 accumulate in float32, in any order. Elements may be rounded to the dtype before they meet x; scale and bias may be applied to the sums of a group. Global scales are as DEQUANTIZE's."];
        doc: "Products with matrices of few bits. x `(b, m, k)`, words `(e, rows, columns bits / 32)`, scales and biases `(e, rows, columns / group)`, as DEQUANTIZE's; global scales `(e)`. A matrix is `(k, n)`, or `(n, k)` with `transpose`. Output `(t, m, n)`: item i is the product of matrix `lhs_indices[i]` of x and matrix `rhs_indices[i]` of the words; without indices of a factor, of its matrix i, and there are t of them. Indices `(t)`: negative ones count from the end; one outside is held to the range.";
    }
    "gather_matmul" 47 Matmul 1 Extra Own GatherMatmulAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false, "lhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true, "rhs_indices" [InputDtype::Of(dtypes::COUNTS)] false true;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As MATMUL's."];
        doc: "Products of matrices that indices choose. a `(b, m, k)`, b `(e, k, n)`, output `(t, m, n)`: item i is the product of matrix `lhs_indices[i]` of a and matrix `rhs_indices[i]` of b; without indices of a factor, of its matrix i, and there are t of them. Indices `(t)`: negative ones count from the end; one outside is held to the range.";
    }
    "segmented_matmul" 48 Matmul 1 Extra Own NoAttrs {
        inputs: "a" [InputDtype::Main] false false, "b" [InputDtype::Main] false false, "segments" [InputDtype::Of(dtypes::COUNTS)] false false;
        scalars: [];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [];
        ulps: 0.0, sums: true, order: "the order of a sum";
        codes: None, &[];
        numbers: ["As MATMUL's. What is outside of a segment has no influence, also where it is not finite."];
        doc: "Products over segments of the inner dimension. a `(m, k)`, b `(k, n)`, segments `(s, 2)`, output `(s, m, n)`: item i is the product of the columns of a and the rows of b from the first number of segment i up to the second, both held to 0 to k (negative ones to 0). A segment that ends before it starts is empty, and gives 0.";
    }
    "rms_norm_gradient" 49 Nn 1 Extra Own NormGradientAttrs {
        inputs: "x" [InputDtype::Main] false false, "weight" [InputDtype::Main] false false, "cotangent" [InputDtype::Main] false false;
        scalars: [Scalar::Float64];
        dtypes: [dtypes::FLOAT];
        output: [Output::Main];
        more: [Output::Main];
        ulps: 0.0, sums: false, order: "the order of a sum";
        codes: None, &[];
        numbers: ["Sums in any order, as REDUCE's; float16 and bfloat16 are widened as they are read, and each result is rounded once."];
        doc: "The gradients of RMS_NORM of rows. From x `(r, n)`, weight `(n)` and a cotangent `(r, n)` of the result, with y the normalised x, s the factor that made it and t the cotangent times the weight: the gradient by x, `s (t - y mean(t y))`, the means being those of a row, `(r, n)`; and the gradient by the weight, the sum over the rows of the cotangent times y, `(n)`. Scalar 0 is the norm's.";
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
        doc: "The gradients of LAYER_NORM of rows, as RMS_NORM_GRADIENT's: the gradient by x is `s (t - mean(t) - y mean(t y))`, and the last output is that by the bias, the sum over the rows of the cotangent, `(n)`.";
    }
}
