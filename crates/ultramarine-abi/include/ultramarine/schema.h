/* The operations of the contract: ids, codes and attribute structs. docs/operations.md has their formulas, dtypes,
 * edge cases and accuracy. Generated from schema.toml by `cargo xtask generate`; do not edit. */
#ifndef ULTRAMARINE_SCHEMA_H
#define ULTRAMARINE_SCHEMA_H

#include <stdint.h>

/* Operations that a backend may provide: values of `op` of um_backend_table.prepare. The library composes all others of
 * these. Shapes name sizes; (s...) is any shape, (..., n) has any number of dimensions before n. */
/* Copies the source and converts its elements to the output's dtype. Inputs: source (s...). Output: output (s...).
 * Attributes: um_no_attrs. */
#define UM_OP_COPY 0u
/* Sets every element of the output to a value. Output: output (s...). Attributes: um_no_attrs. */
#define UM_OP_FILL 1u
/* Fills a line with numbers of equal distance. Output: output (n). Attributes: um_no_attrs. */
#define UM_OP_ARANGE 2u
/* Applies a function of one argument to every element. The attribute op chooses the function. Inputs: x (s...).
 * Output: output (s...). Attributes: um_unary_attrs. */
#define UM_OP_UNARY 3u
/* Applies a function of two arguments of one dtype to every pair of elements. The attribute op chooses the
 * function. Inputs: x (s...), y (s...). Output: output (s...). Attributes: um_binary_attrs. */
#define UM_OP_BINARY 4u
/* Takes each element from x where the condition is true, else from y. Inputs: condition (s...), x (s...), y
 * (s...). Output: output (s...). Attributes: um_no_attrs. */
#define UM_OP_SELECT 5u
/* Combines the elements along a set of axes by a sum, product, minimum, maximum, all or any. Reduced axes stay,
 * with size 1. Inputs: x (s...). Output: output (s...), 1 along axes. Attributes: um_reduce_attrs. */
#define UM_OP_REDUCE 6u
/* Finds the index of the smallest or largest element along an axis. The axis stays, with size 1. Inputs: x (...,
 * n, ...). Output: output (..., 1, ...). Attributes: um_arg_reduce_attrs. */
#define UM_OP_ARG_REDUCE 7u
/* Running sum, product, minimum, maximum or logaddexp along an axis. Inputs: x (..., n, ...). Output: output (...,
 * n, ...). Attributes: um_scan_attrs. */
#define UM_OP_SCAN 8u
/* Products of matrices, one for each index of the batch dimensions. Inputs: a (..., m, k), b (..., k, n). Output:
 * output (..., m, n). Attributes: um_precision_attrs. */
#define UM_OP_MATMUL 9u
/* Copies one window of the source for each position of the index arrays. A window begins at the indices along the
 * axes of axes, and at 0 along the others. Inputs: source (s...), indices (p...), one or more. Output: output
 * (p..., w...). Attributes: um_gather_attrs. */
#define UM_OP_GATHER 10u
/* The source, with windows combined into it: the reverse of GATHER. Inputs: source (s...), indices (p...), one or
 * more, updates (p..., w...). Output: output (s...). Attributes: um_scatter_attrs. */
#define UM_OP_SCATTER 11u
/* Takes elements along an axis by an index for each of them. Inputs: source (..., n, ...), indices (..., m, ...).
 * Output: output (..., m, ...). Attributes: um_axis_attrs. */
#define UM_OP_GATHER_AXIS 12u
/* The source, with updates set or added along an axis by an index for each of them: the reverse of GATHER_AXIS.
 * Inputs: source (..., n, ...), indices (..., m, ...), updates (..., m, ...). Output: output (..., n, ...).
 * Attributes: um_scatter_axis_attrs. */
#define UM_OP_SCATTER_AXIS 13u
/* Sorts the elements along an axis in ascending order. Inputs: x (..., n, ...). Output: output (..., n, ...).
 * Attributes: um_axis_attrs. */
#define UM_OP_SORT 14u
/* Gives the indices that sort the elements along an axis, in the order of SORT. Inputs: x (..., n, ...). Output:
 * output (..., n, ...). Attributes: um_axis_attrs. */
#define UM_OP_ARG_SORT 15u
/* Pseudo-random bits from keys, by Threefry-2x32 with 20 rounds. Equal keys give equal bits on every backend.
 * Inputs: keys (..., 2). Output: output (..., n). Attributes: um_no_attrs. */
#define UM_OP_RANDOM_BITS 16u
/* Reorders the elements along an axis so that element k is the one that SORT puts there, none before it is larger,
 * and none behind it is smaller. Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: um_axis_attrs. */
#define UM_OP_PARTITION 17u
/* Gives indices that partition the elements along an axis, as PARTITION does. Inputs: x (..., n, ...). Output:
 * output (..., n, ...). Attributes: um_axis_attrs. */
#define UM_OP_ARG_PARTITION 18u
/* Discrete Fourier transform along an axis, times a factor. The attribute op chooses the direction and the kind of
 * numbers. Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: um_fft_attrs. */
#define UM_OP_FFT 19u
/* Cross-correlation, or convolution with flip, over three spatial axes. Operations of one or two axes come with
 * sizes of 1. Inputs: x (n, d, h, w, c), weight (F, kd, kh, kw, c / groups). Output: output (n, od, oh, ow, F).
 * Attributes: um_convolve_attrs. */
#define UM_OP_CONVOLVE 20u
/* Cholesky factors of Hermitian positive definite matrices: the lower L with a = L L^H, or with upper the U with a
 * = U^H U. Inputs: a (..., n, n). Output: factor (..., n, n). Attributes: um_triangle_attrs. */
#define UM_OP_CHOLESKY 21u
/* LU factors of matrices, with partial pivoting: the rows of a in the order of rows are L U. Inputs: a (..., m,
 * n). Outputs: factors (..., m, n), pivots (..., k), rows (..., m). Attributes: um_no_attrs. */
#define UM_OP_LU 22u
/* QR factors of matrices: a = q r, with orthonormal columns in q and an upper triangular r. Inputs: a (..., m, n).
 * Outputs: q (..., m, k), r (..., k, n). Attributes: um_no_attrs. */
#define UM_OP_QR 23u
/* Singular value decomposition of matrices: a = u diag(s) vt. The outputs' shapes say whether u and vt are square
 * or reduced. Inputs: a (..., m, n). Outputs: u (..., m, m) or (..., m, k), s (..., k), vt (..., n, n) or (..., k,
 * n). Attributes: um_no_attrs. */
#define UM_OP_SVD 24u
/* Singular values of matrices: s of SVD, without the vectors. Inputs: a (..., m, n). Output: s (..., k).
 * Attributes: um_no_attrs. */
#define UM_OP_SINGULAR_VALUES 25u
/* Eigenvalues and eigenvectors of Hermitian matrices: a v = v diag(w). Inputs: a (..., n, n). Outputs: w (..., n),
 * v (..., n, n). Attributes: um_triangle_attrs. */
#define UM_OP_EIGH 26u
/* Eigenvalues of Hermitian matrices: w of EIGH, without the vectors. Inputs: a (..., n, n). Output: w (..., n).
 * Attributes: um_triangle_attrs. */
#define UM_OP_EIGVALSH 27u
/* Eigenvalues and eigenvectors of square matrices: a v = v diag(w). Inputs: a (..., n, n). Outputs: w (..., n), v
 * (..., n, n). Attributes: um_no_attrs. */
#define UM_OP_EIG 28u
/* Eigenvalues of square matrices: w of EIG, without the vectors. Inputs: a (..., n, n). Output: w (..., n).
 * Attributes: um_no_attrs. */
#define UM_OP_EIGVALS 29u
/* Solves a x = b for triangular matrices a. Inputs: a (..., n, n), b (..., n, k). Output: x (..., n, k).
 * Attributes: um_triangle_attrs. */
#define UM_OP_SOLVE_TRIANGULAR 30u
/* Softmax over the axes of a mask: exponentials, divided by their sum. Inputs: x (s...). Output: output (s...).
 * Attributes: um_axes_attrs. */
#define UM_OP_SOFTMAX 31u
/* Logarithm of the sum of exponentials over the axes of a mask, without overflow on the way. Reduced axes stay,
 * with size 1. Inputs: x (s...). Output: output (s...), 1 along axes. Attributes: um_axes_attrs. */
#define UM_OP_LOGSUMEXP 32u
/* Divides each row, along the last axis, by its root mean square, and multiplies by a weight. Inputs: x (..., n),
 * weight (..., n). Output: output (..., n). Attributes: um_no_attrs. */
#define UM_OP_RMS_NORM 33u
/* Subtracts from each row, along the last axis, its mean, divides by its standard deviation, multiplies by a
 * weight and adds a bias. Inputs: x (..., n), weight (..., n), bias (..., n). Output: output (..., n). Attributes:
 * um_no_attrs. */
#define UM_OP_LAYER_NORM 34u
/* Rotates pairs of elements of the last axis (rotary position embedding). Elements behind the pairs are copied.
 * Inputs: x (..., n), cos (..., pairs), sin (..., pairs). Output: output (..., n). Attributes: um_rope_attrs. */
#define UM_OP_ROPE 35u
/* Finds where values belong in sorted rows: the number of elements of the row that come before each value. Inputs:
 * rows (b..., n), values (b..., v...). Output: output (b..., v...). Attributes: um_search_attrs. */
#define UM_OP_SEARCHSORTED 36u
/* Copies a window of the source. The window has the output's shape and begins at starts that a tensor holds.
 * Inputs: source (s...), starts (n_starts). Output: output (w...). Attributes: um_dynamic_slice_attrs. */
#define UM_OP_DYNAMIC_SLICE 37u
/* The source, with an update written over the window of the update's shape that begins at the starts. Inputs:
 * source (s...), starts (n_starts), update (w...). Output: output (s...). Attributes: um_dynamic_slice_attrs. */
#define UM_OP_DYNAMIC_SLICE_UPDATE 38u
/* Gradient of CONVOLVE with respect to its input x. Attributes and scalars are those of the convolution. Inputs:
 * weight (F, kd, kh, kw, c / groups), cotangent (n, od, oh, ow, F). Output: output (n, d, h, w, c). Attributes:
 * um_convolve_attrs. */
#define UM_OP_CONVOLVE_INPUT 39u
/* Gradient of CONVOLVE with respect to its weight. Attributes and scalars are those of the convolution. Inputs: x
 * (n, d, h, w, c), cotangent (n, od, oh, ow, F). Output: output (F, kd, kh, kw, c / groups). Attributes:
 * um_convolve_attrs. */
#define UM_OP_CONVOLVE_WEIGHT 40u
/* Scaled dot-product attention with grouped heads. Besides the result it gives the logarithm of each softmax's
 * sum, which the gradient reads. Inputs: queries (b, h, m, d), keys (b, h / group, n, d), values (b, h / group, n,
 * e), mask (b, h, m, n), optional, sinks (b, h), optional, lengths (b), optional. Outputs: result (b, h, m, e),
 * logsumexp (b, h, m). Attributes: um_attention_attrs. */
#define UM_OP_ATTENTION 41u
/* Gradients of ATTENTION with respect to queries, keys and values. Inputs: queries (b, h, m, d), keys (b, h /
 * group, n, d), values (b, h / group, n, e), cotangent (b, h, m, e), logsumexp (b, h, m), delta (b, h, m), mask
 * (b, h, m, n), optional, lengths (b), optional. Outputs: dqueries (b, h, m, d), dkeys (b, h / group, n, d),
 * dvalues (b, h / group, n, e). Attributes: um_attention_attrs. */
#define UM_OP_ATTENTION_GRADIENT 42u
/* Cross entropy of rows of logits with class indices. Besides the losses it gives the logarithm of each softmax's
 * sum, which the gradient reads. Inputs: logits (r, c), targets (r). Outputs: loss (r), logsumexp (r). Attributes:
 * um_no_attrs. */
#define UM_OP_CROSS_ENTROPY 43u
/* Gradient of CROSS_ENTROPY's losses with respect to the logits. Inputs: logits (r, c), targets (r), logsumexp
 * (r), cotangent (r). Output: output (r, c). Attributes: um_no_attrs. */
#define UM_OP_CROSS_ENTROPY_GRADIENT 44u
/* Converts packed numbers of 1 to 8 bits to floats. Inputs: words (r, k * bits / 32), scales (r, k / group),
 * biases (r, k / group), optional, global_scale (1), optional. Output: output (r, k). Attributes:
 * um_dequantize_attrs. */
#define UM_OP_DEQUANTIZE 45u
/* Products of matrices of floats with packed matrices. Index tensors may choose the factors of each product.
 * Inputs: x (b, m, k), words (e, rows, columns * bits / 32), scales (e, rows, columns / group), biases (e, rows,
 * columns / group), optional, global_scale (e), optional, lhs_indices (t), optional, rhs_indices (t), optional.
 * Output: output (t, m, n). Attributes: um_quantized_matmul_attrs. */
#define UM_OP_QUANTIZED_MATMUL 46u
/* Products of matrices that index tensors choose. Inputs: a (b, m, k), b (e, k, n), lhs_indices (t), optional,
 * rhs_indices (t), optional. Output: output (t, m, n). Attributes: um_gather_matmul_attrs. */
#define UM_OP_GATHER_MATMUL 47u
/* Products over segments of the inner dimension: one matrix for each segment. Inputs: a (m, k), b (k, n), segments
 * (s, 2). Output: output (s, m, n). Attributes: um_no_attrs. */
#define UM_OP_SEGMENTED_MATMUL 48u
/* Gradients of RMS_NORM of rows, with respect to x and to the weight. Inputs: x (r, n), weight (n), cotangent (r,
 * n). Outputs: dx (r, n), dweight (n). Attributes: um_norm_gradient_attrs. */
#define UM_OP_RMS_NORM_GRADIENT 49u
/* Gradients of LAYER_NORM of rows, with respect to x, to the weight and to the bias. Inputs: x (r, n), weight (n),
 * cotangent (r, n). Outputs: dx (r, n), dweight (n), dbias (n). Attributes: um_norm_gradient_attrs. */
#define UM_OP_LAYER_NORM_GRADIENT 50u
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

/* Functions of UNARY: values of um_unary_attrs.op. The output has the input's dtype, except that predicates give
 * bool, and REAL, IMAG and ABS of complex64 give float32. */
/* Absolute value |x|; the modulus of complex64, as float32. The lowest integer gives itself. */
#define UM_UNARY_ABS 0u
#define UM_UNARY_NEGATIVE 1u /* -x. The lowest integer gives itself; unsigned integers wrap. */
#define UM_UNARY_SIGN 2u /* -1 for x < 0, 1 for x > 0, 0 for zeros and NaN. Complex: x / |x|, and 0 for 0. */
#define UM_UNARY_SQUARE 3u /* x * x. */
#define UM_UNARY_SQRT 4u /* Square root. NaN below 0; -0 for -0. Complex: the principal branch. */
#define UM_UNARY_RSQRT 5u /* 1 / sqrt(x). Infinity for a zero, with its sign; NaN below 0. */
#define UM_UNARY_RECIPROCAL 6u /* 1 / x. Infinity for a zero, with its sign. */
#define UM_UNARY_EXP 7u /* e^x. */
#define UM_UNARY_EXPM1 8u /* e^x - 1, accurate near 0. */
/* Natural logarithm. -infinity for zeros, NaN below 0. Complex: imaginary part in [-pi, pi]. */
#define UM_UNARY_LOG 9u
#define UM_UNARY_LOG2 10u /* Logarithm to base 2. */
#define UM_UNARY_LOG10 11u /* Logarithm to base 10. */
#define UM_UNARY_LOG1P 12u /* ln(1 + x), accurate near 0. -infinity for -1, NaN below. */
#define UM_UNARY_SIN 13u /* Sine of x in radians. Accuracy is asked for up to |x| = 1e5. */
#define UM_UNARY_COS 14u /* Cosine of x in radians. Accuracy is asked for up to |x| = 1e5. */
#define UM_UNARY_TAN 15u /* Tangent of x in radians. Accuracy is asked for up to |x| = 1e5. */
#define UM_UNARY_ARCSIN 16u /* Inverse sine, in [-pi/2, pi/2]. NaN outside of [-1, 1]. */
#define UM_UNARY_ARCCOS 17u /* Inverse cosine, in [0, pi]. NaN outside of [-1, 1]. */
#define UM_UNARY_ARCTAN 18u /* Inverse tangent, in [-pi/2, pi/2]. */
#define UM_UNARY_SINH 19u /* Hyperbolic sine. */
#define UM_UNARY_COSH 20u /* Hyperbolic cosine. */
#define UM_UNARY_TANH 21u /* Hyperbolic tangent. */
#define UM_UNARY_ARCSINH 22u /* Inverse hyperbolic sine. */
#define UM_UNARY_ARCCOSH 23u /* Inverse hyperbolic cosine, at least 0. NaN below 1. */
#define UM_UNARY_ARCTANH 24u /* Inverse hyperbolic tangent. Infinity for 1 and -1, with their sign; NaN outside. */
#define UM_UNARY_ERF 25u /* Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x. */
#define UM_UNARY_ERFINV 26u /* Inverse of erf. Infinity for 1 and -1, with their sign; NaN outside. */
#define UM_UNARY_SIGMOID 27u /* 1 / (1 + e^-x). */
#define UM_UNARY_FLOOR 28u /* Largest integer not above x. */
#define UM_UNARY_CEIL 29u /* Smallest integer not below x. */
#define UM_UNARY_ROUND 30u /* Nearest integer, ties to even; of complex numbers each part. */
#define UM_UNARY_TRUNC 31u /* Integer part of x: rounds towards zero. */
#define UM_UNARY_LOGICAL_NOT 32u /* True if x is 0. */
#define UM_UNARY_BITWISE_INVERT 33u /* Complement of all bits; of bool, logical not. */
#define UM_UNARY_ISNAN 34u /* True if x, or a part of it, is NaN. */
#define UM_UNARY_ISINF 35u /* True if x, or a part of it, is infinite. */
#define UM_UNARY_ISFINITE 36u /* True if x, with both parts, is neither infinite nor NaN. */
#define UM_UNARY_CONJUGATE 37u /* Complex conjugate; real numbers stay as they are. */
#define UM_UNARY_REAL 38u /* Real part of complex64, as float32; real numbers stay as they are. */
#define UM_UNARY_IMAG 39u /* Imaginary part of complex64, as float32; 0 for real numbers. */
#define UM_UNARY_COUNT 40u

/* Functions of BINARY: values of um_binary_attrs.op. Both operands have one dtype. The output has it, too, except
 * that comparisons and logical codes give bool. */
#define UM_BINARY_ADD 0u /* x + y; of bool, or. */
#define UM_BINARY_SUBTRACT 1u /* x - y. */
#define UM_BINARY_MULTIPLY 2u /* x * y; of bool, and. The error of a complex product is relative to |x| |y|. */
#define UM_BINARY_DIVIDE 3u /* x / y. By zero: infinity with the sign of the quotient, NaN for 0 / 0. */
/* Integers: floor(x / y), and 0 if y is 0. Floats: the quotient rounded to the dtype, then rounded down; either
 * neighbour is right if the exact quotient is within 2.5 units in the last place of an integer. Complex: x / y,
 * not rounded down. */
#define UM_BINARY_FLOOR_DIVIDE 4u
/* x - floor(x / y) * y: the result has the sign of y, a zero too. Integers: x if y is 0. Floats: NaN if y is 0 or
 * x is infinite. The error is at most half a unit in the last place of the larger of |y| and the result. */
#define UM_BINARY_REMAINDER 5u
/* x^y. Integers wrap, x^0 is 1, and every negative exponent gives 0. Floats: C's pow; NaN for x < 0 and a y that
 * is no integer. */
#define UM_BINARY_POWER 6u
#define UM_BINARY_MAXIMUM 7u /* The larger of x and y; NaN if one of them is NaN. */
#define UM_BINARY_MINIMUM 8u /* The smaller of x and y; NaN if one of them is NaN. */
/* ln(e^x + e^y), without overflow on the way. The larger operand if it is infinite. The error is relative to the
 * largest of |x|, |y|, |result| and 1. */
#define UM_BINARY_LOGADDEXP 9u
/* Angle of the point with ordinate x (the first operand) and abscissa y, in [-pi, pi]: C's atan2(x, y). */
#define UM_BINARY_ARCTAN2 10u
#define UM_BINARY_EQUAL 11u /* True if x == y. */
#define UM_BINARY_NOT_EQUAL 12u /* True if x != y, and if one of them is NaN. */
#define UM_BINARY_LESS 13u /* True if x < y. */
#define UM_BINARY_LESS_EQUAL 14u /* True if x <= y. */
#define UM_BINARY_GREATER 15u /* True if x > y. */
#define UM_BINARY_GREATER_EQUAL 16u /* True if x >= y. */
#define UM_BINARY_LOGICAL_AND 17u /* True if neither x nor y is 0. */
#define UM_BINARY_LOGICAL_OR 18u /* True unless both x and y are 0. */
#define UM_BINARY_BITWISE_AND 19u /* And of all bits; of bool, and. */
#define UM_BINARY_BITWISE_OR 20u /* Or of all bits; of bool, or. */
#define UM_BINARY_BITWISE_XOR 21u /* Exclusive or of all bits; of bool, exclusive or. */
#define UM_BINARY_LEFT_SHIFT 22u /* x shifted left by y bits. 0 if y is negative, or at least the width in bits. */
/* x shifted right by y bits: arithmetic for signed integers, logical for unsigned ones. If y is negative, or at
 * least the width in bits: -1 for x < 0, else 0. */
#define UM_BINARY_RIGHT_SHIFT 23u
#define UM_BINARY_EQUAL_NAN 24u /* True if x == y, and if both are NaN (in either part). */
#define UM_BINARY_COUNT 25u

/* Functions of REDUCE and SCAN: values of um_reduce_attrs.op and um_scan_attrs.op. ALL and ANY are for REDUCE
 * alone, LOGADDEXP is for SCAN alone. Sums and products of float16 and bfloat16 accumulate in float32; integers
 * wrap. */
#define UM_REDUCE_SUM 0u /* Sum, in the input's dtype. */
/* Product, in the input's dtype. The error is at most that of a sum of n terms of the product's magnitude. */
#define UM_REDUCE_PROD 1u
#define UM_REDUCE_MIN 2u /* Smallest element; NaN if there is one. */
#define UM_REDUCE_MAX 3u /* Largest element; NaN if there is one. */
#define UM_REDUCE_ALL 4u /* True if no element is 0. */
#define UM_REDUCE_ANY 5u /* True if an element is not 0. */
#define UM_REDUCE_LOGADDEXP 6u /* ln of the sum of e^x. Of SCAN alone. */
#define UM_REDUCE_COUNT 7u

/* Functions of ARG_REDUCE: values of um_arg_reduce_attrs.op. */
#define UM_ARG_REDUCE_ARGMIN 0u /* Index of the first smallest element, or of the first NaN. */
#define UM_ARG_REDUCE_ARGMAX 1u /* Index of the first largest element, or of the first NaN. */
#define UM_ARG_REDUCE_COUNT 2u

/* Functions of SCATTER and SCATTER_AXIS: values of um_scatter_attrs.op and um_scatter_axis_attrs.op. They combine
 * an update with the element that it meets. */
/* Replaces the element. Of several updates of one element, the last in row-major order stays. */
#define UM_SCATTER_SET 0u
#define UM_SCATTER_SUM 1u /* Adds to the element. */
#define UM_SCATTER_PROD 2u /* Multiplies the element. */
#define UM_SCATTER_MIN 3u /* Keeps the smaller one; NaN if one is NaN. */
#define UM_SCATTER_MAX 4u /* Keeps the larger one; NaN if one is NaN. */
#define UM_SCATTER_COUNT 5u

/* Formats of packed numbers: values of um_dequantize_attrs.mode and um_quantized_matmul_attrs.mode. */
/* Unsigned integers q of 1, 2, 3, 4, 5, 6 or 8 bits: scale * q + bias. Scales and biases have the op's dtype.
 * Groups of 32, 64 or 128. */
#define UM_QUANTIZATION_AFFINE 0u
/* E2M1 numbers of 4 bits (1 sign bit, 2 of exponent, 1 of mantissa; magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6), times
 * 2^(scale - 127). Scales are uint8; 255 means infinity. Groups of 32. */
#define UM_QUANTIZATION_MXFP4 1u
/* E4M3 numbers of 8 bits (1 sign bit, 4 of exponent with bias 7, 3 of mantissa; up to 448; 0x7f and 0xff are NaN),
 * with the scales of MXFP4. Groups of 32. */
#define UM_QUANTIZATION_MXFP8 2u
/* E2M1 numbers of 4 bits, times an E4M3 scale stored as uint8, and times the global scale / 2688 if there is one.
 * Groups of 16. */
#define UM_QUANTIZATION_NVFP4 3u
#define UM_QUANTIZATION_COUNT 4u

/* Transforms of FFT: values of um_fft_attrs.op. */
#define UM_FFT_FORWARD 0u /* y_k = sum over j of x_j e^(-2 pi i j k / n). */
#define UM_FFT_BACKWARD 1u /* y_k = sum over j of x_j e^(2 pi i j k / n). */
#define UM_FFT_REAL 2u /* The first floor(n / 2) + 1 elements of the forward transform of n real numbers. */
/* The backward transform that gives n real numbers, from its first floor(n / 2) + 1 elements. The imaginary part
 * of element 0 is ignored, and for an even n that of the last. */
#define UM_FFT_REAL_BACKWARD 3u
#define UM_FFT_COUNT 4u

/* Attributes of operations that have none. */
typedef struct um_no_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
} um_no_attrs;

/* Attributes of UNARY. */
typedef struct um_unary_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A unary code. */
} um_unary_attrs;

/* Attributes of BINARY. */
typedef struct um_binary_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A binary code. */
} um_binary_attrs;

/* Attributes of REDUCE. */
typedef struct um_reduce_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A reduce code, not LOGADDEXP. */
  /* Mask of the reduced axes: bit i (of value 2^i) stands for axis i, counted from 0. 0 reduces no axis. Bits of
   * the rank and above are 0. */
  uint64_t axes;
} um_reduce_attrs;

/* Attributes of ARG_REDUCE. */
typedef struct um_arg_reduce_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* An arg_reduce code. */
  uint32_t axis; /* Axis of the search, from 0 to the rank - 1. */
} um_arg_reduce_attrs;

/* Attributes of SCAN. */
typedef struct um_scan_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A reduce code, not ALL or ANY. */
  uint32_t axis; /* Axis of the scan, from 0 to the rank - 1. */
  uint32_t reverse; /* 1: the scan runs from the last element to the first. 0: from the first to the last. */
  uint32_t inclusive; /* 1: an output element includes the input element of its place. 0: it ends before it. */
} um_scan_attrs;

/* Attributes of GATHER. */
typedef struct um_gather_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t n_indices; /* Number of index arrays, at least 1 and at most the source's rank. */
  uint32_t index_ndim; /* Rank of every index array; may be 0. */
  /* Element k is the source axis that index array k addresses. The first n_indices elements count; they differ
   * from each other, in any order. The rest is 0. */
  uint8_t axes[32];
} um_gather_attrs;

/* Attributes of SCATTER. */
typedef struct um_scatter_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A scatter code. */
  uint32_t n_indices; /* Number of index arrays, at least 1 and at most the source's rank. */
  uint32_t index_ndim; /* Rank of every index array; may be 0. */
  /* Element k is the source axis that index array k addresses. The first n_indices elements count; they differ
   * from each other, in any order. The rest is 0. */
  uint8_t axes[32];
} um_scatter_attrs;

/* Attributes of GATHER_AXIS, SORT, ARG_SORT, PARTITION and ARG_PARTITION. */
typedef struct um_axis_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t axis; /* Axis of the operation, from 0 to the rank - 1. */
} um_axis_attrs;

/* Attributes of SCATTER_AXIS. */
typedef struct um_scatter_axis_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* A scatter code: SET or SUM. */
  uint32_t axis; /* Axis that the indices address, from 0 to the rank - 1. */
} um_scatter_axis_attrs;

/* Attributes of FFT. */
typedef struct um_fft_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t op; /* An fft code. */
  uint32_t axis; /* Axis of the transform, from 0 to the rank - 1. */
} um_fft_attrs;

/* Attributes of CONVOLVE, CONVOLVE_INPUT and CONVOLVE_WEIGHT. */
typedef struct um_convolve_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  /* 1: the kernel is reversed along its three spatial axes (convolution). 0: it is not (cross-correlation). */
  uint32_t flip;
  /* Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as they are,
   * UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits), UM_PRECISION_MEDIUM (2) to
   * bfloat16 (8). Other dtypes ignore it. A device may be more exact. It may refuse 1 and 2 with UM_UNSUPPORTED;
   * the host then asks with 0. */
  uint32_t precision;
} um_convolve_attrs;

/* Attributes of MATMUL. */
typedef struct um_precision_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  /* Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as they are,
   * UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits), UM_PRECISION_MEDIUM (2) to
   * bfloat16 (8). Other dtypes ignore it. A device may be more exact. It may refuse 1 and 2 with UM_UNSUPPORTED;
   * the host then asks with 0. */
  uint32_t precision;
} um_precision_attrs;

/* Attributes of SOFTMAX and LOGSUMEXP. */
typedef struct um_axes_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t reserved; /* 0. */
  /* Mask of the axes of the sum: bit i (of value 2^i) stands for axis i, counted from 0. Bits of the rank and
   * above are 0. */
  uint64_t axes;
} um_axes_attrs;

/* Attributes of CHOLESKY, EIGH, EIGVALSH and SOLVE_TRIANGULAR. */
typedef struct um_triangle_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t upper; /* 1: the upper triangle of the matrix counts. 0: the lower one. */
} um_triangle_attrs;

/* Attributes of ROPE. */
typedef struct um_rope_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  /* Number of rotated pairs, at least 1. 2 * pairs is at most the size of the last axis; elements behind are
   * copied. */
  uint32_t pairs;
  uint32_t traditional; /* 1: pair i is elements 2 i and 2 i + 1. 0: elements i and pairs + i. */
  uint32_t inverse; /* 1: rotates by the opposite angles, with -sin in place of sin. */
} um_rope_attrs;

/* Attributes of SEARCHSORTED. */
typedef struct um_search_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  /* 1: counts the elements that are not larger than the value (insertion behind equal elements). 0: those that are
   * smaller (insertion before them). */
  uint32_t right;
} um_search_attrs;

/* Attributes of DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE. */
typedef struct um_dynamic_slice_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t n_starts; /* Number of elements of the starts, at most the source's rank. */
  /* Element k is the axis that start k belongs to. The first n_starts elements count and differ from each other;
   * the rest is 0. Along other axes the window begins at 0. */
  uint8_t axes[32];
} um_dynamic_slice_attrs;

/* Attributes of ATTENTION and ATTENTION_GRADIENT. */
typedef struct um_attention_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t mask; /* 1: the input mask is present. */
  uint32_t sinks; /* 1: the input sinks is present. 0 for ATTENTION_GRADIENT. */
  uint32_t lengths; /* 1: the input lengths is present. */
  /* 1: query i of m attends to key j only if j <= i + L - m, where L is the batch's length, or n without lengths. */
  uint32_t causal;
  uint32_t head_size; /* Size d of a query and of a key. */
  uint32_t value_size; /* Size e of a value. */
  uint32_t group; /* Number of query heads that share a key head, at least 1. */
  /* 1: equal commands give bitwise identical results. 0: gradients may differ in their last bits, even on a device
   * with UM_DEVICE_DETERMINISTIC. */
  uint32_t deterministic;
} um_attention_attrs;

/* Attributes of DEQUANTIZE. */
typedef struct um_dequantize_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t mode; /* A quantization code. */
  uint32_t bits; /* Bits of an element; see the mode. */
  uint32_t group; /* Number of consecutive elements of a row that share a scale; see the mode. */
  uint32_t biases; /* 1: the input biases is present. 1 for AFFINE, 0 for the other modes. */
  uint32_t global_scale; /* 1: the input global_scale is present. 0 for every mode but NVFP4. */
} um_dequantize_attrs;

/* Attributes of QUANTIZED_MATMUL. */
typedef struct um_quantized_matmul_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t mode; /* A quantization code. */
  uint32_t bits; /* Bits of an element; see the mode. */
  uint32_t group; /* Number of consecutive elements of a row that share a scale; see the mode. */
  uint32_t transpose; /* 1: a row of the packed matrix is a column of the second factor. 0: it is a row of it. */
  uint32_t biases; /* 1: the input biases is present. 1 for AFFINE, 0 for the other modes. */
  uint32_t global_scale; /* 1: the input global_scale is present. 0 for every mode but NVFP4. */
  uint32_t lhs_indices; /* 1: the input lhs_indices is present. */
  uint32_t rhs_indices; /* 1: the input rhs_indices is present. */
} um_quantized_matmul_attrs;

/* Attributes of GATHER_MATMUL. */
typedef struct um_gather_matmul_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  uint32_t lhs_indices; /* 1: the input lhs_indices is present. */
  uint32_t rhs_indices; /* 1: the input rhs_indices is present. */
} um_gather_matmul_attrs;

/* Attributes of RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT. */
typedef struct um_norm_gradient_attrs {
  uint32_t size; /* of the struct as its writer knows it, in bytes */
  /* 1: all outputs are computed. 0: only the gradient with respect to x; the other outputs may be left unwritten. */
  uint32_t parameters;
} um_norm_gradient_attrs;

/* Dtypes: numbers of the bits in the masks of um_device_info. */
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
