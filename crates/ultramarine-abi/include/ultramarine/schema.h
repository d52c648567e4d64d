/* The operations of the contract: ids, codes, attributes, number rules. Generated from schema.toml by
 * `cargo xtask generate`; do not edit. */
#ifndef ULTRAMARINE_SCHEMA_H
#define ULTRAMARINE_SCHEMA_H

#include <stdint.h>

/* Operations a full backend provides; everything else has a decomposition. */
#define UM_OP_COPY 0u /* Element copy between any strides, converting the dtype. NoAttrs. */
#define UM_OP_FILL 1u /* Fills the output with scalar 0. NoAttrs. */
#define UM_OP_ARANGE 2u /* scalar0 + i * scalar1 along a 1-d output (both float64 for floating outputs, else int64). NoAttrs. */
#define UM_OP_UNARY 3u /* UnaryAttrs. */
#define UM_OP_BINARY 4u /* Both inputs of one dtype, broadcast by strides. BinaryAttrs. */
#define UM_OP_SELECT 5u /* condition ? x : y. NoAttrs. */
#define UM_OP_REDUCE 6u /* The output keeps reduced axes with size 1. ReduceAttrs. */
#define UM_OP_ARG_REDUCE 7u /* Index (uint32) of the extreme along an axis, the first of equals; the output keeps the axis with size 1. ArgReduceAttrs. */
#define UM_OP_SCAN 8u /* Running reduction along an axis. ScanAttrs. */
#define UM_OP_MATMUL 9u /* (..., m, k) x (..., k, n) -> (..., m, n), equal batch dimensions (broadcast by strides). float16 and bfloat16 accumulate in float32. PrecisionAttrs. */
#define UM_OP_GATHER 10u /* Inputs: source, then n_indices index arrays of one shape and dtype. Output: index shape followed by a slice of source.ndim dimensions (1 along indexed axes). Negative indices count from the end; an index outside is clamped, never read past the buffer. GatherAttrs. */
#define UM_OP_SCATTER 11u /* Inputs: source, indices, updates (shaped as GATHER's output). The output is the source with the updates combined in; out-of-range indices are skipped. ScatterAttrs. */
#define UM_OP_GATHER_AXIS 12u /* out[.., i, ..] = source[.., index[.., i, ..], ..]. AxisAttrs. */
#define UM_OP_SCATTER_AXIS 13u /* Source, indices, updates; the converse of GATHER_AXIS. ScatterAxisAttrs. */
#define UM_OP_SORT 14u /* Ascending, stable, NaN last. AxisAttrs. */
#define UM_OP_ARG_SORT 15u /* Indices (uint32) that sort. AxisAttrs. */
#define UM_OP_RANDOM_BITS 16u /* Threefry-2x32 bits. Input: keys (..., 2) uint32; output (keys..., n) uint8, uint16 or uint32. NoAttrs. */
#define UM_OP_PARTITION 17u /* The elements along an axis in an order in which number k (scalar 0) is as SORT has it, none before it is larger and none behind it is smaller. AxisAttrs. */
#define UM_OP_ARG_PARTITION 18u /* Indices (uint32) that partition, as PARTITION. AxisAttrs. */
#define UM_OP_FFT 19u /* Discrete Fourier transforms along an axis, times scalar 0. The length n is the axis' size, for REAL the input's, for REAL_BACKWARD the output's. FftAttrs. */
#define UM_OP_CONVOLVE 20u /* Cross-correlation (or convolution, see flip) over three spatial axes: input (n, d, h, w, c), weight (o, kd, kh, kw, c / groups), output (n, od, oh, ow, o). Scalars, three each: strides, zeros before the first element (may be negative), kernel dilation, input dilation. What is read outside of the input, and between its dilated elements, is 0. Group g of the outputs reads group g of the channels. ConvolveAttrs. */
#define UM_OP_CHOLESKY 21u /* The triangular factor L of a = L L^H of matrices (..., n, n), or U of a = U^H U; zeros in the other triangle. Only the named triangle of a is read. Not positive definite: NaN. TriangleAttrs. */
#define UM_OP_LU 22u /* LU factors with partial pivoting of (..., m, n), L (unit diagonal) and U in one matrix; pivots (..., k), k = min(m, n): row i was swapped with the row that element i names; rows (..., m): row i of L U is the row of a that element i names. NoAttrs. */
#define UM_OP_QR 23u /* a = q r of (..., m, n): q (..., m, k) with orthonormal columns, r (..., k, n) upper triangular, k = min(m, n). NoAttrs. */
#define UM_OP_SVD 24u /* a = u diag(s) vt of (..., m, n): u (..., m, m) or (..., m, k), s (..., k) descending, vt (..., n, n) or (..., k, n), k = min(m, n), as the outputs' shapes say. NoAttrs. */
#define UM_OP_SINGULAR_VALUES 25u /* s of SVD. NoAttrs. */
#define UM_OP_EIGH 26u /* Eigenvalues w (..., n), ascending, and eigenvectors, the columns of v (..., n, n), of Hermitian matrices, of which one triangle is read. TriangleAttrs. */
#define UM_OP_EIGVALSH 27u /* w of EIGH. TriangleAttrs. */
#define UM_OP_EIG 28u /* Eigenvalues w (..., n) and eigenvectors, the columns of norm 1 of v (..., n, n), of square matrices, in any order. NoAttrs. */
#define UM_OP_EIGVALS 29u /* w of EIG. NoAttrs. */
#define UM_OP_SOLVE_TRIANGULAR 30u /* x of a x = b for triangular a (..., n, n), of which one triangle is read, and b and x (..., n, k); equal batch dimensions (broadcast by strides). TriangleAttrs. */
#define UM_OP_SOFTMAX 31u /* e^(x - m) over its sum over the axes of axes, m being the largest element over them. AxesAttrs. */
#define UM_OP_LOGSUMEXP 32u /* ln of the sum of e^x over the axes of axes, which keep size 1, without overflow on the way: infinity if there is one, -infinity of nothing else. AxesAttrs. */
#define UM_OP_RMS_NORM 33u /* x / sqrt(mean(x^2) + scalar 0) * weight, the mean being that of the last axis, of which there is at least one. NoAttrs. */
#define UM_OP_LAYER_NORM 34u /* (x - m) / sqrt(v + scalar 0) * weight + bias, m being the mean of the last axis, of which there is at least one, and v that of (x - m)^2. NoAttrs. */
#define UM_OP_ROPE 35u /* Turns pairs (a, b) of elements of the last axis into (a * cos - b * sin, a * sin + b * cos). cos and sin have the output's shape, but pairs as the last size; mostly by zero strides. RopeAttrs. */
#define UM_OP_SEARCHSORTED 36u /* How many elements of a row come before each value: rows (b..., n) in the order of SORT, values (b..., v...); the output has the values' shape. SearchAttrs. */
#define UM_OP_DYNAMIC_SLICE 37u /* The window of the source that begins at the starts and has the output's shape. A start below 0 counts as 0; one from which the window would leave the source counts as the last from which it does not. DynamicSliceAttrs. */
#define UM_OP_DYNAMIC_SLICE_UPDATE 38u /* The source with the update written over the window of its shape that begins at the starts, as in DYNAMIC_SLICE. Where the output is the source's memory, nothing but the window is written. DynamicSliceAttrs. */
#define UM_OP_CONVOLVE_INPUT 39u /* The gradient of CONVOLVE by its input: from the weight and a cotangent (n, od, oh, ow, o) of the output, that of the input, (n, d, h, w, c). Attributes and scalars are the convolution's. ConvolveAttrs. */
#define UM_OP_CONVOLVE_WEIGHT 40u /* The gradient of CONVOLVE by its weight: from the input and a cotangent (n, od, oh, ow, o) of the output, that of the weight, (o, kd, kh, kw, c / groups). Attributes and scalars are the convolution's. ConvolveAttrs. */
#define UM_OP_ATTENTION 41u /* Scaled dot-product attention. Queries (b, h, m, d), keys (b, h / group, n, d), values (b, h / group, n, e), mask (b, h, m, n), sinks (b, h), lengths (b); the outputs are the result (b, h, m, e) and the logarithms of the softmax's sums (b, h, m). Scores are scalar 0 times q k^T, plus the mask if it holds numbers. Masked ones (where a bool mask is false, behind the length, and, causal, behind the query) and any below it are the lowest finite number of their dtype. The result is the softmax of the scores over the keys, times the values; the softmax's sum has e^sink as one more term. AttentionAttrs. */
#define UM_OP_ATTENTION_GRADIENT 42u /* The gradients of ATTENTION by queries, keys and values, in their shapes, from a cotangent (b, h, m, e) of its result, the logarithms that it gave, and delta (b, h, m): the sum of result times cotangent over the last axis, less the cotangent of the logarithm. With w the softmax's weights and s the scores, the gradient by s is w (cotangent values^T - delta); by masked scores it is 0. Logarithms that are the lowest finite number belong to queries all of whose keys are masked, with equal weights. AttentionAttrs. */
#define UM_OP_CROSS_ENTROPY 43u /* Cross entropy of class indices. From logits (r, c) and targets (r), the losses (r) and the logarithms of the sums of e^logit (r): a loss is the logarithm less the target's logit. Negative targets count from the end; one outside is held to the axis. There is a class at least. NoAttrs. */
#define UM_OP_CROSS_ENTROPY_GRADIENT 44u /* The gradient of CROSS_ENTROPY by its logits, in their shape, from the logarithms that it gave and a cotangent (r) of its losses: the cotangent times e^(logit - logarithm), less the cotangent at the target. NoAttrs. */
#define UM_OP_DEQUANTIZE 45u /* Numbers of few bits as floats. Words (r, k bits / 32) hold the k elements of each row as a stream of bits, the lowest first: element i is bits i bits to (i + 1) bits. Scales and biases (r, k / group), global scale (1); the output is (r, k). DequantizeAttrs. */
#define UM_OP_QUANTIZED_MATMUL 46u /* Products with matrices of few bits. x (b, m, k), words (e, rows, columns bits / 32), scales and biases (e, rows, columns / group), as DEQUANTIZE's; global scales (e). A matrix is (k, n), or (n, k) with transpose. Output (t, m, n): item i is the product of matrix lhs_indices[i] of x and matrix rhs_indices[i] of the words; without indices of a factor, of its matrix i, and there are t of them. Indices (t): negative ones count from the end; one outside is held to the range. QuantizedMatmulAttrs. */
#define UM_OP_GATHER_MATMUL 47u /* Products of matrices that indices choose. a (b, m, k), b (e, k, n), output (t, m, n): item i is the product of matrix lhs_indices[i] of a and matrix rhs_indices[i] of b; without indices of a factor, of its matrix i, and there are t of them. Indices (t): negative ones count from the end; one outside is held to the range. GatherMatmulAttrs. */
#define UM_OP_SEGMENTED_MATMUL 48u /* Products over segments of the inner dimension. a (m, k), b (k, n), segments (s, 2), output (s, m, n): item i is the product of the columns of a and the rows of b from the first number of segment i up to the second, both held to 0 to k (negative ones to 0). A segment that ends before it starts is empty, and gives 0. NoAttrs. */
#define UM_OP_RMS_NORM_GRADIENT 49u /* The gradients of RMS_NORM of rows. From x (r, n), weight (n) and a cotangent (r, n) of the result, with y the normalised x, s the factor that made it and t the cotangent times the weight: the gradient by x, s (t - y mean(t y)), the means being those of a row, (r, n); and the gradient by the weight, the sum over the rows of the cotangent times y, (n). Scalar 0 is the norm's. NormGradientAttrs. */
#define UM_OP_LAYER_NORM_GRADIENT 50u /* The gradients of LAYER_NORM of rows, as RMS_NORM_GRADIENT's: the gradient by x is s (t - mean(t) - y mean(t y)), and the last output is that by the bias, the sum over the rows of the cotangent, (n). NormGradientAttrs. */
#define UM_OP_COUNT 51u

/* `X(NAME, family)` for each operation. */
#define UM_EACH_OP(X) \
  X(COPY, copy) \
  X(FILL, create) \
  X(ARANGE, create) \
  X(UNARY, elementwise) \
  X(BINARY, elementwise) \
  X(SELECT, select) \
  X(REDUCE, reduce) \
  X(ARG_REDUCE, arg_reduce) \
  X(SCAN, scan) \
  X(MATMUL, matmul) \
  X(GATHER, index) \
  X(SCATTER, index) \
  X(GATHER_AXIS, index) \
  X(SCATTER_AXIS, index) \
  X(SORT, sort) \
  X(ARG_SORT, sort) \
  X(RANDOM_BITS, random) \
  X(PARTITION, sort) \
  X(ARG_PARTITION, sort) \
  X(FFT, fft) \
  X(CONVOLVE, conv) \
  X(CHOLESKY, linalg) \
  X(LU, linalg) \
  X(QR, linalg) \
  X(SVD, linalg) \
  X(SINGULAR_VALUES, linalg) \
  X(EIGH, linalg) \
  X(EIGVALSH, linalg) \
  X(EIG, linalg) \
  X(EIGVALS, linalg) \
  X(SOLVE_TRIANGULAR, linalg) \
  X(SOFTMAX, nn) \
  X(LOGSUMEXP, nn) \
  X(RMS_NORM, nn) \
  X(LAYER_NORM, nn) \
  X(ROPE, nn) \
  X(SEARCHSORTED, sort) \
  X(DYNAMIC_SLICE, index) \
  X(DYNAMIC_SLICE_UPDATE, index) \
  X(CONVOLVE_INPUT, conv) \
  X(CONVOLVE_WEIGHT, conv) \
  X(ATTENTION, nn) \
  X(ATTENTION_GRADIENT, nn) \
  X(CROSS_ENTROPY, nn) \
  X(CROSS_ENTROPY_GRADIENT, nn) \
  X(DEQUANTIZE, quantized) \
  X(QUANTIZED_MATMUL, quantized) \
  X(GATHER_MATMUL, matmul) \
  X(SEGMENTED_MATMUL, matmul) \
  X(RMS_NORM_GRADIENT, nn) \
  X(LAYER_NORM_GRADIENT, nn)

/* Codes of op. The output has the input's dtype but for the predicates (bool) and REAL, IMAG, ABS of complex (float32). */
#define UM_UNARY_ABS 0u /* |x| */
#define UM_UNARY_NEGATIVE 1u /* -x; wraps for integers. */
#define UM_UNARY_SIGN 2u /* -1, 0 or 1, of NaN 0; x/|x| for complex. */
#define UM_UNARY_SQUARE 3u /* x*x */
#define UM_UNARY_SQRT 4u /* Square root. */
#define UM_UNARY_RSQRT 5u /* 1/sqrt(x) */
#define UM_UNARY_RECIPROCAL 6u /* 1/x */
#define UM_UNARY_EXP 7u /* e^x */
#define UM_UNARY_EXPM1 8u /* e^x - 1 */
#define UM_UNARY_LOG 9u /* ln x */
#define UM_UNARY_LOG2 10u /* log2 x */
#define UM_UNARY_LOG10 11u /* log10 x */
#define UM_UNARY_LOG1P 12u /* ln(1 + x) */
#define UM_UNARY_SIN 13u /* Sine of radians. */
#define UM_UNARY_COS 14u /* Cosine. */
#define UM_UNARY_TAN 15u /* Tangent. */
#define UM_UNARY_ARCSIN 16u /* Inverse sine. */
#define UM_UNARY_ARCCOS 17u /* Inverse cosine. */
#define UM_UNARY_ARCTAN 18u /* Inverse tangent. */
#define UM_UNARY_SINH 19u /* Hyperbolic sine. */
#define UM_UNARY_COSH 20u /* Hyperbolic cosine. */
#define UM_UNARY_TANH 21u /* Hyperbolic tangent. */
#define UM_UNARY_ARCSINH 22u /* Inverse hyperbolic sine. */
#define UM_UNARY_ARCCOSH 23u /* Inverse hyperbolic cosine. */
#define UM_UNARY_ARCTANH 24u /* Inverse hyperbolic tangent. */
#define UM_UNARY_ERF 25u /* Error function. */
#define UM_UNARY_ERFINV 26u /* Inverse error function. */
#define UM_UNARY_SIGMOID 27u /* 1/(1 + e^-x) */
#define UM_UNARY_FLOOR 28u /* Largest integer not above. */
#define UM_UNARY_CEIL 29u /* Smallest integer not below. */
#define UM_UNARY_ROUND 30u /* Nearest integer, ties to even. */
#define UM_UNARY_TRUNC 31u /* Towards zero. */
#define UM_UNARY_LOGICAL_NOT 32u /* Logical not: bool to bool. */
#define UM_UNARY_BITWISE_INVERT 33u /* Complement of integers; logical not of bool. */
#define UM_UNARY_ISNAN 34u /* Is NaN (either part): bool. */
#define UM_UNARY_ISINF 35u /* Is infinite (either part): bool. */
#define UM_UNARY_ISFINITE 36u /* Is finite (both parts): bool. */
#define UM_UNARY_CONJUGATE 37u /* Complex conjugate. */
#define UM_UNARY_REAL 38u /* Real part of complex64: float32. */
#define UM_UNARY_IMAG 39u /* Imaginary part of complex64: float32. */
#define UM_UNARY_COUNT 40u

/* Codes of op. Both operands have one dtype; the output has it too, but for comparisons and logical ops (bool). */
#define UM_BINARY_ADD 0u /* x + y; integers wrap; bool: or. */
#define UM_BINARY_SUBTRACT 1u /* x - y; integers wrap. */
#define UM_BINARY_MULTIPLY 2u /* x * y; integers wrap; bool: and. */
#define UM_BINARY_DIVIDE 3u /* x / y; floating and complex only. */
#define UM_BINARY_FLOOR_DIVIDE 4u /* Integers: floor(x / y), by zero 0. Floats: the quotient rounded to the dtype, then rounded down. Complex: x / y. */
#define UM_BINARY_REMAINDER 5u /* Sign of the divisor (Python's %), a zero too; integers by zero: the dividend. */
#define UM_BINARY_POWER 6u /* x ** y; integers by squaring, 0 for every negative exponent. */
#define UM_BINARY_MAXIMUM 7u /* Larger; NaN if either is NaN. Complex: by real part, then imaginary. */
#define UM_BINARY_MINIMUM 8u /* Smaller; NaN if either is NaN. */
#define UM_BINARY_LOGADDEXP 9u /* ln(e^x + e^y) */
#define UM_BINARY_ARCTAN2 10u /* Angle of (y, x): arctan2(a, b) with a the ordinate. */
#define UM_BINARY_EQUAL 11u /* x == y: bool. */
#define UM_BINARY_NOT_EQUAL 12u /* x != y: bool. */
#define UM_BINARY_LESS 13u /* x < y: bool. */
#define UM_BINARY_LESS_EQUAL 14u /* x <= y: bool. */
#define UM_BINARY_GREATER 15u /* x > y: bool. */
#define UM_BINARY_GREATER_EQUAL 16u /* x >= y: bool. */
#define UM_BINARY_LOGICAL_AND 17u /* Logical and of bools. */
#define UM_BINARY_LOGICAL_OR 18u /* Logical or of bools. */
#define UM_BINARY_BITWISE_AND 19u /* Bitwise and; bool: and. */
#define UM_BINARY_BITWISE_OR 20u /* Bitwise or; bool: or. */
#define UM_BINARY_BITWISE_XOR 21u /* Bitwise xor; bool: xor. */
#define UM_BINARY_LEFT_SHIFT 22u /* x << y; a shift by the width or more gives 0. */
#define UM_BINARY_RIGHT_SHIFT 23u /* x >> y, arithmetic for signed; a shift by the width or more gives 0 or -1. */
#define UM_BINARY_EQUAL_NAN 24u /* x == y, or both NaN (in either part): bool. */
#define UM_BINARY_COUNT 25u

/* Codes of op and op (sum, prod, min, max, logaddexp). Sums of float16 and bfloat16 accumulate in float32; integers wrap. */
#define UM_REDUCE_SUM 0u /* Sum. */
#define UM_REDUCE_PROD 1u /* Product. */
#define UM_REDUCE_MIN 2u /* Smallest; NaN if any is NaN. */
#define UM_REDUCE_MAX 3u /* Largest; NaN if any is NaN. */
#define UM_REDUCE_ALL 4u /* All non-zero: bool. */
#define UM_REDUCE_ANY 5u /* Any non-zero: bool. */
#define UM_REDUCE_LOGADDEXP 6u /* ln of the sum of e^x; scans only. */
#define UM_REDUCE_COUNT 7u

/* Codes of op. */
#define UM_ARG_REDUCE_ARGMIN 0u /* Index of the smallest; the first NaN wins. */
#define UM_ARG_REDUCE_ARGMAX 1u /* Index of the largest; the first NaN wins. */
#define UM_ARG_REDUCE_COUNT 2u

/* Codes of op: how an update combines with what is there. */
#define UM_SCATTER_SET 0u /* Replaces (the last of equal indices wins). */
#define UM_SCATTER_SUM 1u /* Adds. */
#define UM_SCATTER_PROD 2u /* Multiplies. */
#define UM_SCATTER_MIN 3u /* Keeps the smaller. */
#define UM_SCATTER_MAX 4u /* Keeps the larger. */
#define UM_SCATTER_COUNT 5u

/* Codes of mode: what words, scales and biases mean. */
#define UM_QUANTIZATION_AFFINE 0u /* Integers q from 0 to 2^bits - 1: scale q + bias. Scales and biases are of the main dtype. 1, 2, 3, 4, 5, 6 or 8 bits, groups of 32, 64 or 128. */
#define UM_QUANTIZATION_MXFP4 1u /* E2M1 (sign, 2 bits of exponent, 1 of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6) times 2^(scale - 127), of uint8; a scale of 255 is infinite. 4 bits, groups of 32. */
#define UM_QUANTIZATION_MXFP8 2u /* E4M3 (sign, 4 bits of exponent, 3 of mantissa, to 448; 0x7f and 0xff are NaN) times 2^(scale - 127), as MXFP4's. 8 bits, groups of 32. */
#define UM_QUANTIZATION_NVFP4 3u /* E2M1 times the scale, an E4M3 of uint8, and times the global scale / 2688 if there is one. 4 bits, groups of 16. */
#define UM_QUANTIZATION_COUNT 4u

/* Codes of op. */
#define UM_FFT_FORWARD 0u /* y_k = sum over j of x_j e^(-2 pi i j k / n). */
#define UM_FFT_BACKWARD 1u /* y_k = sum over j of x_j e^(2 pi i j k / n). */
#define UM_FFT_REAL 2u /* The first n / 2 + 1 (rounded down) elements of the forward transform of real numbers. */
#define UM_FFT_REAL_BACKWARD 3u /* The backward transform, of n real numbers, of its first n / 2 + 1 elements; the imaginary parts of element 0 and, for an even n, of the last are ignored. */
#define UM_FFT_COUNT 4u

/* For ops without attributes. */
typedef struct um_no_attrs {
  uint32_t size;
} um_no_attrs;

/* Attributes of UNARY. */
typedef struct um_unary_attrs {
  uint32_t size;
  uint32_t op; /* A unary code. */
} um_unary_attrs;

/* Attributes of BINARY. */
typedef struct um_binary_attrs {
  uint32_t size;
  uint32_t op; /* A binary code. */
} um_binary_attrs;

/* Attributes of REDUCE. */
typedef struct um_reduce_attrs {
  uint32_t size;
  uint32_t op; /* A reduce code. */
  uint64_t axes; /* Bit i: axis i is reduced. */
} um_reduce_attrs;

/* Attributes of ARG_REDUCE. */
typedef struct um_arg_reduce_attrs {
  uint32_t size;
  uint32_t op; /* An arg_reduce code. */
  uint32_t axis; /* The axis. */
} um_arg_reduce_attrs;

/* Attributes of SCAN. */
typedef struct um_scan_attrs {
  uint32_t size;
  uint32_t op; /* A reduce code. */
  uint32_t axis; /* The axis. */
  uint32_t reverse; /* 1: from the end. */
  uint32_t inclusive; /* 1: an element includes itself. */
} um_scan_attrs;

/* Attributes of GATHER. */
typedef struct um_gather_attrs {
  uint32_t size;
  uint32_t n_indices; /* Index arrays. */
  uint32_t index_ndim; /* Dimensions of each index array. */
  uint8_t axes[32]; /* The source axis that each index array addresses; ascending or not, all different. */
} um_gather_attrs;

/* Attributes of SCATTER. */
typedef struct um_scatter_attrs {
  uint32_t size;
  uint32_t op; /* A scatter code. */
  uint32_t n_indices; /* Index arrays. */
  uint32_t index_ndim; /* Dimensions of each index array. */
  uint8_t axes[32]; /* The axis that each index array addresses. */
} um_scatter_attrs;

/* Attributes of GATHER_AXIS, SORT and ARG_SORT. */
typedef struct um_axis_attrs {
  uint32_t size;
  uint32_t axis; /* The axis. */
} um_axis_attrs;

/* Attributes of SCATTER_AXIS. */
typedef struct um_scatter_axis_attrs {
  uint32_t size;
  uint32_t op; /* A scatter code; SET or SUM. */
  uint32_t axis; /* The axis. */
} um_scatter_axis_attrs;

/* Attributes of FFT. */
typedef struct um_fft_attrs {
  uint32_t size;
  uint32_t op; /* A fft code. */
  uint32_t axis; /* The axis. */
} um_fft_attrs;

/* Attributes of CONVOLVE and its gradients. */
typedef struct um_convolve_attrs {
  uint32_t size;
  uint32_t flip; /* 1: the kernel is reversed along its spatial axes. */
  uint32_t precision; /* How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11 significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all but 0. */
} um_convolve_attrs;

/* Attributes of MATMUL. */
typedef struct um_precision_attrs {
  uint32_t size;
  uint32_t precision; /* How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11 significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all but 0. */
} um_precision_attrs;

/* Attributes of SOFTMAX and LOGSUMEXP. */
typedef struct um_axes_attrs {
  uint32_t size;
  uint32_t reserved; /* 0. */
  uint64_t axes; /* Bit i: the sum goes over axis i. */
} um_axes_attrs;

/* Attributes of the operations that read or make a triangle of a matrix. */
typedef struct um_triangle_attrs {
  uint32_t size;
  uint32_t upper; /* 1: the upper triangle, else the lower one. */
} um_triangle_attrs;

/* Attributes of ROPE. */
typedef struct um_rope_attrs {
  uint32_t size;
  uint32_t pairs; /* Pairs that are turned, at least one; what is behind them in the last axis is copied. */
  uint32_t traditional; /* 1: pairs are neighbours, 2 i and 2 i + 1, else i and pairs + i. */
  uint32_t inverse; /* 1: by the opposite angles: of -sin. */
} um_rope_attrs;

/* Attributes of SEARCHSORTED. */
typedef struct um_search_attrs {
  uint32_t size;
  uint32_t right; /* 1: values go behind the elements that equal them, else before them. */
} um_search_attrs;

/* Attributes of DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE. */
typedef struct um_dynamic_slice_attrs {
  uint32_t size;
  uint32_t n_starts; /* Elements of the starts. */
  uint8_t axes[32]; /* The axis that each start is about, all different; along others the window begins at 0. */
} um_dynamic_slice_attrs;

/* Attributes of ATTENTION and its gradient. */
typedef struct um_attention_attrs {
  uint32_t size;
  uint32_t mask; /* 1: there is a mask. */
  uint32_t sinks; /* 1: there are sinks. Of the gradient, 0. */
  uint32_t lengths; /* 1: there are lengths. */
  uint32_t causal; /* 1: query i sees the keys up to i + keys (or the length) - queries. */
  uint32_t head_size; /* Size of a query and of a key. */
  uint32_t value_size; /* Size of a value. */
  uint32_t group; /* Query heads that a key head serves. */
  uint32_t deterministic; /* 1: equal commands give equal bits. 0: those of the gradient may differ in their last bits, even where a device is DETERMINISTIC. */
} um_attention_attrs;

/* Attributes of DEQUANTIZE. */
typedef struct um_dequantize_attrs {
  uint32_t size;
  uint32_t mode; /* A quantization code. */
  uint32_t bits; /* Bits of an element. */
  uint32_t group; /* Elements of a row that share a scale. */
  uint32_t biases; /* 1: there are biases; of AFFINE always. */
  uint32_t global_scale; /* 1: there is a global scale; of NVFP4 alone. */
} um_dequantize_attrs;

/* Attributes of QUANTIZED_MATMUL. */
typedef struct um_quantized_matmul_attrs {
  uint32_t size;
  uint32_t mode; /* A quantization code. */
  uint32_t bits; /* Bits of an element. */
  uint32_t group; /* Elements of a row that share a scale. */
  uint32_t transpose; /* 1: rows of words are columns of the second factor. */
  uint32_t biases; /* 1: there are biases; of AFFINE always. */
  uint32_t global_scale; /* 1: there are global scales; of NVFP4 alone. */
  uint32_t lhs_indices; /* 1: there are indices of the first factor's matrices. */
  uint32_t rhs_indices; /* 1: there are indices of the second factor's matrices. */
} um_quantized_matmul_attrs;

/* Attributes of GATHER_MATMUL. */
typedef struct um_gather_matmul_attrs {
  uint32_t size;
  uint32_t lhs_indices; /* 1: there are indices of the first factor's matrices. */
  uint32_t rhs_indices; /* 1: there are indices of the second factor's matrices. */
} um_gather_matmul_attrs;

/* Attributes of the norms' gradients. */
typedef struct um_norm_gradient_attrs {
  uint32_t size;
  uint32_t parameters; /* 1: the gradients by weight and bias are wanted too, else those outputs may be left as they are. */
} um_norm_gradient_attrs;

/* Dtypes, in the order of the device masks' bits. */
#define UM_DTYPE_BOOL 0u
#define UM_DTYPE_UINT8 1u
#define UM_DTYPE_UINT16 2u
#define UM_DTYPE_UINT32 3u
#define UM_DTYPE_UINT64 4u
#define UM_DTYPE_INT8 5u
#define UM_DTYPE_INT16 6u
#define UM_DTYPE_INT32 7u
#define UM_DTYPE_INT64 8u
#define UM_DTYPE_FLOAT16 9u
#define UM_DTYPE_FLOAT32 10u
#define UM_DTYPE_FLOAT64 11u
#define UM_DTYPE_BFLOAT16 12u
#define UM_DTYPE_COMPLEX64 13u
#define UM_DTYPE_COUNT 14u

#endif
