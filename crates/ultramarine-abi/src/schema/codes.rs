//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.

use super::{code_module, dtype, families};
use ultramarine_dlpack::{DLDataType, type_code};

pub use super::attribute_structs::*;

code_module! {
    /// Operations that a backend may provide: values of `op` of
    /// [`BackendTable::prepare`](crate::BackendTable::prepare). The library composes all others of
    /// these. `docs/operations.md` has their dtypes, edge cases and accuracy.
    pub mod op: super::super::OpId {
        /// Copies the source and converts its elements to the output's dtype.
        ///
        /// ```text
        /// output[i] = convert(source[i])
        /// ```
        ///
        /// Inputs: source (s...). Output: output (s...). Attributes: [`super::NoAttrs`].
        COPY = 0 "copy",
        /// Sets every element of the output to a value.
        ///
        /// ```text
        /// output[i] = value
        /// ```
        ///
        /// Output: output (s...). Attributes: [`super::NoAttrs`].
        FILL = 1 "fill",
        /// Fills a line with numbers of equal distance.
        ///
        /// ```text
        /// output[i] = convert(start + i * step),   i = 0 ... n - 1
        /// ```
        ///
        /// Output: output (n). Attributes: [`super::NoAttrs`].
        ARANGE = 2 "arange",
        /// Applies a function of one argument to every element. The attribute `op` chooses the
        /// function.
        ///
        /// ```text
        /// output[i] = f(x[i])
        /// ```
        ///
        /// Inputs: x (s...). Output: output (s...). Attributes: [`super::UnaryAttrs`].
        UNARY = 3 "unary",
        /// Applies a function of two arguments of one dtype to every pair of elements. The
        /// attribute `op` chooses the function.
        ///
        /// ```text
        /// output[i] = f(x[i], y[i])
        /// ```
        ///
        /// Inputs: x (s...), y (s...). Output: output (s...). Attributes: [`super::BinaryAttrs`].
        BINARY = 4 "binary",
        /// Takes each element from x where the condition is true, else from y.
        ///
        /// ```text
        /// output[i] = condition[i] ? x[i] : y[i]
        /// ```
        ///
        /// Inputs: condition (s...), x (s...), y (s...). Output: output (s...). Attributes:
        /// [`super::NoAttrs`].
        SELECT = 5 "select",
        /// Combines the elements along a set of axes by a sum, product, minimum, maximum, all or
        /// any. Reduced axes stay, with size 1.
        ///
        /// ```text
        /// output[i] = f over all j of x[i + j],   j = 0 along the axes that are not in `axes`
        /// ```
        ///
        /// Inputs: x (s...). Output: output (s...), 1 along axes. Attributes:
        /// [`super::ReduceAttrs`].
        REDUCE = 6 "reduce",
        /// Finds the index of the smallest or largest element along an axis. The axis stays, with
        /// size 1.
        ///
        /// ```text
        /// output[i] = the first k for which x[i, k] is the extreme of x[i, :]
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., 1, ...). Attributes:
        /// [`super::ArgReduceAttrs`].
        ARG_REDUCE = 7 "arg_reduce",
        /// Running sum, product, minimum, maximum or logaddexp along an axis.
        ///
        /// ```text
        /// inclusive:             output[i] = f(x[0], ..., x[i])
        /// exclusive:             output[i] = f(x[0], ..., x[i - 1])
        /// reverse, inclusive:    output[i] = f(x[i], ..., x[n - 1])
        /// reverse, exclusive:    output[i] = f(x[i + 1], ..., x[n - 1])
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::ScanAttrs`].
        SCAN = 8 "scan",
        /// Products of matrices, one for each index of the batch dimensions.
        ///
        /// ```text
        /// output[..., i, j] = sum over l of a[..., i, l] * b[..., l, j],   l = 0 ... k - 1
        /// ```
        ///
        /// Inputs: a (..., m, k), b (..., k, n). Output: output (..., m, n). Attributes:
        /// [`super::PrecisionAttrs`].
        MATMUL = 9 "matmul",
        /// Copies one window of the source for each position of the index arrays. A window begins
        /// at the indices along the axes of `axes`, and at 0 along the others.
        ///
        /// ```text
        /// output[p, w] = source[w + start(p)]
        /// start(p)[axes[k]] = clamp(indices[k][p], 0, source size - window size along axes[k]),   else 0
        /// ```
        ///
        /// Inputs: source (s...), indices (p...), one or more. Output: output (p..., w...).
        /// Attributes: [`super::GatherAttrs`].
        GATHER = 10 "gather",
        /// The source, with windows combined into it: the reverse of GATHER.
        ///
        /// ```text
        /// output = source
        /// output[w + start(p)] = f(output[w + start(p)], updates[p, w])   for each p, w
        /// start(p)[axes[k]] = indices[k][p],   else 0
        /// ```
        ///
        /// Inputs: source (s...), indices (p...), one or more, updates (p..., w...). Output: output
        /// (s...). Attributes: [`super::ScatterAttrs`].
        SCATTER = 11 "scatter",
        /// Takes elements along an axis by an index for each of them.
        ///
        /// ```text
        /// output[..., i, ...] = source[..., clamp(indices[..., i, ...], 0, n - 1), ...]
        /// ```
        ///
        /// Inputs: source (..., n, ...), indices (..., m, ...). Output: output (..., m, ...).
        /// Attributes: [`super::AxisAttrs`].
        GATHER_AXIS = 12 "gather_axis",
        /// The source, with updates set or added along an axis by an index for each of them: the
        /// reverse of GATHER_AXIS.
        ///
        /// ```text
        /// output = source
        /// output[..., indices[..., i, ...], ...] = f(output[...], updates[..., i, ...])   for each i
        /// ```
        ///
        /// Inputs: source (..., n, ...), indices (..., m, ...), updates (..., m, ...). Output:
        /// output (..., n, ...). Attributes: [`super::ScatterAxisAttrs`].
        SCATTER_AXIS = 13 "scatter_axis",
        /// Sorts the elements along an axis in ascending order.
        ///
        /// ```text
        /// output[0] <= output[1] <= ... <= output[n - 1]
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::AxisAttrs`].
        SORT = 14 "sort",
        /// Gives the indices that sort the elements along an axis, in the order of SORT.
        ///
        /// ```text
        /// x[output[0]] <= x[output[1]] <= ... <= x[output[n - 1]]
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::AxisAttrs`].
        ARG_SORT = 15 "arg_sort",
        /// Pseudo-random bits from keys, by Threefry-2x32 with 20 rounds. Equal keys give equal
        /// bits on every backend.
        ///
        /// ```text
        /// W = ceil(n * itemsize / 4),   h = ceil(W / 2)
        /// (word[i], word[h + i]) = threefry2x32(key, (i, h + i))   for i < floor(W / 2)
        /// word[h - 1] = the first word of threefry2x32(key, (h - 1, 0))   if W is odd
        /// output = the first n * itemsize bytes of the words, least significant byte first
        /// ```
        ///
        /// Inputs: keys (..., 2). Output: output (..., n). Attributes: [`super::NoAttrs`].
        RANDOM_BITS = 16 "random_bits",
        /// Reorders the elements along an axis so that element k is the one that SORT puts there,
        /// none before it is larger, and none behind it is smaller.
        ///
        /// ```text
        /// output[i] <= output[k] for i < k,   output[k] = sort(x)[k],   output[k] <= output[i] for i > k
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::AxisAttrs`].
        PARTITION = 17 "partition",
        /// Gives indices that partition the elements along an axis, as PARTITION does.
        ///
        /// ```text
        /// x[output[i]] <= x[output[k]] for i < k,   x[output[k]] <= x[output[i]] for i > k
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::AxisAttrs`].
        ARG_PARTITION = 18 "arg_partition",
        /// Discrete Fourier transform along an axis, times a factor. The attribute `op` chooses the
        /// direction and the kind of numbers.
        ///
        /// ```text
        /// output[k] = scale * y_k,   y_k as the table of codes gives it
        /// ```
        ///
        /// Inputs: x (..., n, ...). Output: output (..., n, ...). Attributes: [`super::FftAttrs`].
        FFT = 19 "fft",
        /// Cross-correlation, or convolution with `flip`, over three spatial axes. Operations of
        /// one or two axes come with sizes of 1.
        ///
        /// ```text
        /// for each spatial axis:   u = o * stride - low + t * kernel_dilation,   the input index is u / input_dilation
        /// output[b, o, f] = sum over t, c of x[b, u / input_dilation, g * C + c] * weight[f, t, c]
        /// g = floor(f / (F / groups)),   C = c / groups;   t runs over the kernel's taps
        /// with flip:   weight[f, size - 1 - t, c]
        /// ```
        ///
        /// Inputs: x (n, d, h, w, c), weight (F, kd, kh, kw, c / groups). Output: output (n, od,
        /// oh, ow, F). Attributes: [`super::ConvolveAttrs`].
        CONVOLVE = 20 "convolve",
        /// Cholesky factors of Hermitian positive definite matrices: the lower L with `a = L L^H`,
        /// or with `upper` the U with `a = U^H U`.
        ///
        /// Inputs: a (..., n, n). Output: factor (..., n, n). Attributes: [`super::TriangleAttrs`].
        CHOLESKY = 21 "cholesky",
        /// LU factors of matrices, with partial pivoting: the rows of `a` in the order of `rows`
        /// are `L U`.
        ///
        /// ```text
        /// a[rows[i], :] = sum over l of L[i, l] * U[l, :],   k = min(m, n)
        /// ```
        ///
        /// Inputs: a (..., m, n). Outputs: factors (..., m, n), pivots (..., k), rows (..., m).
        /// Attributes: [`super::NoAttrs`].
        LU = 22 "lu",
        /// QR factors of matrices: `a = q r`, with orthonormal columns in q and an upper triangular
        /// r.
        ///
        /// Inputs: a (..., m, n). Outputs: q (..., m, k), r (..., k, n). Attributes:
        /// [`super::NoAttrs`].
        QR = 23 "qr",
        /// Singular value decomposition of matrices: `a = u diag(s) vt`. The outputs' shapes say
        /// whether u and vt are square or reduced.
        ///
        /// Inputs: a (..., m, n). Outputs: u (..., m, m) or (..., m, k), s (..., k), vt (..., n, n)
        /// or (..., k, n). Attributes: [`super::NoAttrs`].
        SVD = 24 "svd",
        /// Singular values of matrices: s of SVD, without the vectors.
        ///
        /// Inputs: a (..., m, n). Output: s (..., k). Attributes: [`super::NoAttrs`].
        SINGULAR_VALUES = 25 "singular_values",
        /// Eigenvalues and eigenvectors of Hermitian matrices: `a v = v diag(w)`.
        ///
        /// Inputs: a (..., n, n). Outputs: w (..., n), v (..., n, n). Attributes:
        /// [`super::TriangleAttrs`].
        EIGH = 26 "eigh",
        /// Eigenvalues of Hermitian matrices: w of EIGH, without the vectors.
        ///
        /// Inputs: a (..., n, n). Output: w (..., n). Attributes: [`super::TriangleAttrs`].
        EIGVALSH = 27 "eigvalsh",
        /// Eigenvalues and eigenvectors of square matrices: `a v = v diag(w)`.
        ///
        /// Inputs: a (..., n, n). Outputs: w (..., n), v (..., n, n). Attributes:
        /// [`super::NoAttrs`].
        EIG = 28 "eig",
        /// Eigenvalues of square matrices: w of EIG, without the vectors.
        ///
        /// Inputs: a (..., n, n). Output: w (..., n). Attributes: [`super::NoAttrs`].
        EIGVALS = 29 "eigvals",
        /// Solves `a x = b` for triangular matrices a.
        ///
        /// Inputs: a (..., n, n), b (..., n, k). Output: x (..., n, k). Attributes:
        /// [`super::TriangleAttrs`].
        SOLVE_TRIANGULAR = 30 "solve_triangular",
        /// Softmax over the axes of a mask: exponentials, divided by their sum.
        ///
        /// ```text
        /// m = max over `axes` of x
        /// output[i] = e^(x[i] - m) / sum over `axes` of e^(x - m)
        /// ```
        ///
        /// Inputs: x (s...). Output: output (s...). Attributes: [`super::AxesAttrs`].
        SOFTMAX = 31 "softmax",
        /// Logarithm of the sum of exponentials over the axes of a mask, without overflow on the
        /// way. Reduced axes stay, with size 1.
        ///
        /// ```text
        /// m = max over `axes` of x
        /// output = m + ln(sum over `axes` of e^(x - m))
        /// ```
        ///
        /// Inputs: x (s...). Output: output (s...), 1 along axes. Attributes: [`super::AxesAttrs`].
        LOGSUMEXP = 32 "logsumexp",
        /// Divides each row, along the last axis, by its root mean square, and multiplies by a
        /// weight.
        ///
        /// ```text
        /// output[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i],   the mean over the last axis
        /// ```
        ///
        /// Inputs: x (..., n), weight (..., n). Output: output (..., n). Attributes:
        /// [`super::NoAttrs`].
        RMS_NORM = 33 "rms_norm",
        /// Subtracts from each row, along the last axis, its mean, divides by its standard
        /// deviation, multiplies by a weight and adds a bias.
        ///
        /// ```text
        /// m = mean(x),   v = mean((x - m)^2),   both over the last axis
        /// output[i] = (x[i] - m) / sqrt(v + epsilon) * weight[i] + bias[i]
        /// ```
        ///
        /// Inputs: x (..., n), weight (..., n), bias (..., n). Output: output (..., n). Attributes:
        /// [`super::NoAttrs`].
        LAYER_NORM = 34 "layer_norm",
        /// Rotates pairs of elements of the last axis (rotary position embedding). Elements behind
        /// the pairs are copied.
        ///
        /// ```text
        /// (a, b) -> (a * cos - b * sin, a * sin + b * cos)
        /// traditional:   a = x[..., 2 i],   b = x[..., 2 i + 1]
        /// else:          a = x[..., i],     b = x[..., pairs + i]
        /// ```
        ///
        /// Inputs: x (..., n), cos (..., pairs), sin (..., pairs). Output: output (..., n).
        /// Attributes: [`super::RopeAttrs`].
        ROPE = 35 "rope",
        /// Finds where values belong in sorted rows: the number of elements of the row that come
        /// before each value.
        ///
        /// ```text
        /// right = 0:   output[b, v] = number of i with rows[b, i] <  values[b, v]
        /// right = 1:   output[b, v] = number of i with rows[b, i] <= values[b, v]
        /// ```
        ///
        /// Inputs: rows (b..., n), values (b..., v...). Output: output (b..., v...). Attributes:
        /// [`super::SearchAttrs`].
        SEARCHSORTED = 36 "searchsorted",
        /// Copies a window of the source. The window has the output's shape and begins at starts
        /// that a tensor holds.
        ///
        /// ```text
        /// output[w] = source[w + start]
        /// start[axes[k]] = clamp(starts[k], 0, source size - output size along axes[k]),   else 0
        /// ```
        ///
        /// Inputs: source (s...), starts (n_starts). Output: output (w...). Attributes:
        /// [`super::DynamicSliceAttrs`].
        DYNAMIC_SLICE = 37 "dynamic_slice",
        /// The source, with an update written over the window of the update's shape that begins at
        /// the starts.
        ///
        /// ```text
        /// output = source
        /// output[w + start] = update[w],   start as in DYNAMIC_SLICE
        /// ```
        ///
        /// Inputs: source (s...), starts (n_starts), update (w...). Output: output (s...).
        /// Attributes: [`super::DynamicSliceAttrs`].
        DYNAMIC_SLICE_UPDATE = 38 "dynamic_slice_update",
        /// Gradient of CONVOLVE with respect to its input x. Attributes and scalars are those of
        /// the convolution.
        ///
        /// ```text
        /// output[b, u, g * C + c] = sum over all (o, f, t) that meet x[b, u, g * C + c] of cotangent[b, o, f] * weight[f, t, c]
        /// ```
        ///
        /// Inputs: weight (F, kd, kh, kw, c / groups), cotangent (n, od, oh, ow, F). Output: output
        /// (n, d, h, w, c). Attributes: [`super::ConvolveAttrs`].
        CONVOLVE_INPUT = 39 "convolve_input",
        /// Gradient of CONVOLVE with respect to its weight. Attributes and scalars are those of the
        /// convolution.
        ///
        /// ```text
        /// output[f, t, c] = sum over all (b, o) of cotangent[b, o, f] * (the element of x that CONVOLVE multiplies by weight[f, t, c] there)
        /// ```
        ///
        /// Inputs: x (n, d, h, w, c), cotangent (n, od, oh, ow, F). Output: output (F, kd, kh, kw,
        /// c / groups). Attributes: [`super::ConvolveAttrs`].
        CONVOLVE_WEIGHT = 40 "convolve_weight",
        /// Scaled dot-product attention with grouped heads. Besides the result it gives the
        /// logarithm of each softmax's sum, which the gradient reads.
        ///
        /// ```text
        /// score[b, h, i, j] = scale * sum over d of queries[b, h, i, d] * keys[b, h / group, j, d] + mask[b, h, i, j]
        /// score = lowest finite number   where key j is masked, or score is below that number
        /// weight[b, h, i, j] = e^score[j] / (sum over j of e^score[j] + e^sinks[b, h])
        /// result[b, h, i, :] = sum over j of weight[j] * values[b, h / group, j, :]
        /// logsumexp[b, h, i] = ln(sum over j of e^score[j] + e^sinks[b, h])
        /// ```
        ///
        /// Inputs: queries (b, h, m, d), keys (b, h / group, n, d), values (b, h / group, n, e),
        /// mask (b, h, m, n), optional, sinks (b, h), optional, lengths (b), optional. Outputs:
        /// result (b, h, m, e), logsumexp (b, h, m). Attributes: [`super::AttentionAttrs`].
        ATTENTION = 41 "attention",
        /// Gradients of ATTENTION with respect to queries, keys and values.
        ///
        /// ```text
        /// weight[j] = e^(score[j] - logsumexp)
        /// dscore[j] = weight[j] * (sum over e of cotangent[e] * values[j, e] - delta),   0 where key j is masked
        /// dqueries = scale * sum over j of dscore[j] * keys[j]
        /// dkeys[j] = scale * sum over queries and heads of the group of dscore[j] * queries
        /// dvalues[j] = sum over queries and heads of the group of weight[j] * cotangent
        /// ```
        ///
        /// Inputs: queries (b, h, m, d), keys (b, h / group, n, d), values (b, h / group, n, e),
        /// cotangent (b, h, m, e), logsumexp (b, h, m), delta (b, h, m), mask (b, h, m, n),
        /// optional, lengths (b), optional. Outputs: dqueries (b, h, m, d), dkeys (b, h / group, n,
        /// d), dvalues (b, h / group, n, e). Attributes: [`super::AttentionAttrs`].
        ATTENTION_GRADIENT = 42 "attention_gradient",
        /// Cross entropy of rows of logits with class indices. Besides the losses it gives the
        /// logarithm of each softmax's sum, which the gradient reads.
        ///
        /// ```text
        /// logsumexp[r] = ln(sum over c of e^logits[r, c])
        /// loss[r] = logsumexp[r] - logits[r, targets[r]]
        /// ```
        ///
        /// Inputs: logits (r, c), targets (r). Outputs: loss (r), logsumexp (r). Attributes:
        /// [`super::NoAttrs`].
        CROSS_ENTROPY = 43 "cross_entropy",
        /// Gradient of CROSS_ENTROPY's losses with respect to the logits.
        ///
        /// ```text
        /// output[r, c] = cotangent[r] * (e^(logits[r, c] - logsumexp[r]) - (c == targets[r] ? 1 : 0))
        /// ```
        ///
        /// Inputs: logits (r, c), targets (r), logsumexp (r), cotangent (r). Output: output (r, c).
        /// Attributes: [`super::NoAttrs`].
        CROSS_ENTROPY_GRADIENT = 44 "cross_entropy_gradient",
        /// Converts packed numbers of 1 to 8 bits to floats.
        ///
        /// ```text
        /// q[r, i] = bits i * bits ... (i + 1) * bits - 1 of row r: bit p is bit p mod 32 of word floor(p / 32)
        /// output[r, i] = number(q[r, i]) * scale[r, i / group] * (global_scale / 2688) + bias[r, i / group]
        /// ```
        ///
        /// Inputs: words (r, k * bits / 32), scales (r, k / group), biases (r, k / group),
        /// optional, global_scale (1), optional. Output: output (r, k). Attributes:
        /// [`super::DequantizeAttrs`].
        DEQUANTIZE = 45 "dequantize",
        /// Products of matrices of floats with packed matrices. Index tensors may choose the
        /// factors of each product.
        ///
        /// ```text
        /// output[i] = x[lhs(i)] * W[rhs(i)],   i = 0 ... t - 1
        /// W[j] = dequantize(words[j]),   transposed with `transpose`
        /// lhs(i) = lhs_indices[i], or i without the input;   rhs(i) likewise
        /// ```
        ///
        /// Inputs: x (b, m, k), words (e, rows, columns * bits / 32), scales (e, rows, columns /
        /// group), biases (e, rows, columns / group), optional, global_scale (e), optional,
        /// lhs_indices (t), optional, rhs_indices (t), optional. Output: output (t, m, n).
        /// Attributes: [`super::QuantizedMatmulAttrs`].
        QUANTIZED_MATMUL = 46 "quantized_matmul",
        /// Products of matrices that index tensors choose.
        ///
        /// ```text
        /// output[i] = a[lhs(i)] * b[rhs(i)],   i = 0 ... t - 1
        /// lhs(i) = lhs_indices[i], or i without the input;   rhs(i) likewise
        /// ```
        ///
        /// Inputs: a (b, m, k), b (e, k, n), lhs_indices (t), optional, rhs_indices (t), optional.
        /// Output: output (t, m, n). Attributes: [`super::GatherMatmulAttrs`].
        GATHER_MATMUL = 47 "gather_matmul",
        /// Products over segments of the inner dimension: one matrix for each segment.
        ///
        /// ```text
        /// output[i] = a[:, start : end] * b[start : end, :],   start = clamp(segments[i, 0], 0, k), end = clamp(segments[i, 1], 0, k)
        /// ```
        ///
        /// Inputs: a (m, k), b (k, n), segments (s, 2). Output: output (s, m, n). Attributes:
        /// [`super::NoAttrs`].
        SEGMENTED_MATMUL = 48 "segmented_matmul",
        /// Gradients of RMS_NORM of rows, with respect to x and to the weight.
        ///
        /// ```text
        /// s = 1 / sqrt(mean(x^2) + epsilon),   y = s * x,   t = cotangent * weight,   means over a row
        /// dx[r, :] = s * (t - y * mean(t * y))
        /// dweight[j] = sum over r of cotangent[r, j] * y[r, j]
        /// ```
        ///
        /// Inputs: x (r, n), weight (n), cotangent (r, n). Outputs: dx (r, n), dweight (n).
        /// Attributes: [`super::NormGradientAttrs`].
        RMS_NORM_GRADIENT = 49 "rms_norm_gradient",
        /// Gradients of LAYER_NORM of rows, with respect to x, to the weight and to the bias.
        ///
        /// ```text
        /// s = 1 / sqrt(v + epsilon),   y = s * (x - m),   t = cotangent * weight,   m and v as in LAYER_NORM, means over a row
        /// dx[r, :] = s * (t - mean(t) - y * mean(t * y))
        /// dweight[j] = sum over r of cotangent[r, j] * y[r, j],   dbias[j] = sum over r of cotangent[r, j]
        /// ```
        ///
        /// Inputs: x (r, n), weight (n), cotangent (r, n). Outputs: dx (r, n), dweight (n), dbias
        /// (n). Attributes: [`super::NormGradientAttrs`].
        LAYER_NORM_GRADIENT = 50 "layer_norm_gradient",
    }
}

code_module! {
    /// Functions of UNARY, the values of [`UnaryAttrs::op`]. The output has the input's dtype,
    /// except that predicates give bool, and [`REAL`](unary::REAL), [`IMAG`](unary::IMAG) and
    /// [`ABS`](unary::ABS) of complex64 give float32.
    pub mod unary: u32 {
        /// Absolute value |x|; the modulus of complex64, as float32. The lowest integer gives
        /// itself.
        ABS = 0 "abs",
        /// -x. The lowest integer gives itself; unsigned integers wrap.
        NEGATIVE = 1 "negative",
        /// -1 for x < 0, 1 for x > 0, 0 for zeros and NaN. Complex: x / |x|, and 0 for 0.
        SIGN = 2 "sign",
        /// x * x.
        SQUARE = 3 "square",
        /// Square root. NaN below 0; -0 for -0. Complex: the principal branch.
        SQRT = 4 "sqrt",
        /// 1 / sqrt(x). Infinity for a zero, with its sign; NaN below 0.
        RSQRT = 5 "rsqrt",
        /// 1 / x. Infinity for a zero, with its sign.
        RECIPROCAL = 6 "reciprocal",
        /// e^x.
        EXP = 7 "exp",
        /// e^x - 1, accurate near 0.
        EXPM1 = 8 "expm1",
        /// Natural logarithm. -infinity for zeros, NaN below 0. Complex: imaginary part in `[-pi,
        /// pi]`.
        LOG = 9 "log",
        /// Logarithm to base 2.
        LOG2 = 10 "log2",
        /// Logarithm to base 10.
        LOG10 = 11 "log10",
        /// ln(1 + x), accurate near 0. -infinity for -1, NaN below.
        LOG1P = 12 "log1p",
        /// Sine of x in radians. Accuracy is asked for up to |x| = 1e5.
        SIN = 13 "sin",
        /// Cosine of x in radians. Accuracy is asked for up to |x| = 1e5.
        COS = 14 "cos",
        /// Tangent of x in radians. Accuracy is asked for up to |x| = 1e5.
        TAN = 15 "tan",
        /// Inverse sine, in `[-pi/2, pi/2]`. NaN outside of `[-1, 1]`.
        ARCSIN = 16 "arcsin",
        /// Inverse cosine, in `[0, pi]`. NaN outside of `[-1, 1]`.
        ARCCOS = 17 "arccos",
        /// Inverse tangent, in `[-pi/2, pi/2]`.
        ARCTAN = 18 "arctan",
        /// Hyperbolic sine.
        SINH = 19 "sinh",
        /// Hyperbolic cosine.
        COSH = 20 "cosh",
        /// Hyperbolic tangent.
        TANH = 21 "tanh",
        /// Inverse hyperbolic sine.
        ARCSINH = 22 "arcsinh",
        /// Inverse hyperbolic cosine, at least 0. NaN below 1.
        ARCCOSH = 23 "arccosh",
        /// Inverse hyperbolic tangent. Infinity for 1 and -1, with their sign; NaN outside.
        ARCTANH = 24 "arctanh",
        /// Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
        ERF = 25 "erf",
        /// Inverse of erf. Infinity for 1 and -1, with their sign; NaN outside.
        ERFINV = 26 "erfinv",
        /// 1 / (1 + e^-x).
        SIGMOID = 27 "sigmoid",
        /// Largest integer not above x.
        FLOOR = 28 "floor",
        /// Smallest integer not below x.
        CEIL = 29 "ceil",
        /// Nearest integer, ties to even; of complex numbers each part.
        ROUND = 30 "round",
        /// Integer part of x: rounds towards zero.
        TRUNC = 31 "trunc",
        /// True if x is 0.
        LOGICAL_NOT = 32 "logical_not",
        /// Complement of all bits; of bool, logical not.
        BITWISE_INVERT = 33 "bitwise_invert",
        /// True if x, or a part of it, is NaN.
        ISNAN = 34 "isnan",
        /// True if x, or a part of it, is infinite.
        ISINF = 35 "isinf",
        /// True if x, with both parts, is neither infinite nor NaN.
        ISFINITE = 36 "isfinite",
        /// Complex conjugate; real numbers stay as they are.
        CONJUGATE = 37 "conjugate",
        /// Real part of complex64, as float32; real numbers stay as they are.
        REAL = 38 "real",
        /// Imaginary part of complex64, as float32; 0 for real numbers.
        IMAG = 39 "imag",
    }
}

code_module! {
    /// Functions of BINARY, the values of [`BinaryAttrs::op`]. Both operands have one dtype. The
    /// output has it, too, except that comparisons and logical codes give bool.
    pub mod binary: u32 {
        /// x + y; of bool, or.
        ADD = 0 "add",
        /// x - y.
        SUBTRACT = 1 "subtract",
        /// x * y; of bool, and. The error of a complex product is relative to |x| |y|.
        MULTIPLY = 2 "multiply",
        /// x / y. By zero: infinity with the sign of the quotient, NaN for 0 / 0.
        DIVIDE = 3 "divide",
        /// Integers: floor(x / y), and 0 if y is 0. Floats: the quotient rounded to the dtype, then
        /// rounded down; either neighbour is right if the exact quotient is within 2.5 units in the
        /// last place of an integer. Complex: x / y, not rounded down.
        FLOOR_DIVIDE = 4 "floor_divide",
        /// x - floor(x / y) * y: the result has the sign of y, a zero too. Integers: x if y is 0.
        /// Floats: NaN if y is 0 or x is infinite. The error is at most half a unit in the last
        /// place of the larger of |y| and the result.
        REMAINDER = 5 "remainder",
        /// x^y. Integers wrap, x^0 is 1, and every negative exponent gives 0. Floats: C's pow; NaN
        /// for x < 0 and a y that is no integer.
        POWER = 6 "power",
        /// The larger of x and y; NaN if one of them is NaN.
        MAXIMUM = 7 "maximum",
        /// The smaller of x and y; NaN if one of them is NaN.
        MINIMUM = 8 "minimum",
        /// ln(e^x + e^y), without overflow on the way. The larger operand if it is infinite. The
        /// error is relative to the largest of |x|, |y|, |result| and 1.
        LOGADDEXP = 9 "logaddexp",
        /// Angle of the point with ordinate x (the first operand) and abscissa y, in `[-pi, pi]`:
        /// C's atan2(x, y).
        ARCTAN2 = 10 "arctan2",
        /// True if x == y.
        EQUAL = 11 "equal",
        /// True if x != y, and if one of them is NaN.
        NOT_EQUAL = 12 "not_equal",
        /// True if x < y.
        LESS = 13 "less",
        /// True if x <= y.
        LESS_EQUAL = 14 "less_equal",
        /// True if x > y.
        GREATER = 15 "greater",
        /// True if x >= y.
        GREATER_EQUAL = 16 "greater_equal",
        /// True if neither x nor y is 0.
        LOGICAL_AND = 17 "logical_and",
        /// True unless both x and y are 0.
        LOGICAL_OR = 18 "logical_or",
        /// And of all bits; of bool, and.
        BITWISE_AND = 19 "bitwise_and",
        /// Or of all bits; of bool, or.
        BITWISE_OR = 20 "bitwise_or",
        /// Exclusive or of all bits; of bool, exclusive or.
        BITWISE_XOR = 21 "bitwise_xor",
        /// x shifted left by y bits. 0 if y is negative, or at least the width in bits.
        LEFT_SHIFT = 22 "left_shift",
        /// x shifted right by y bits: arithmetic for signed integers, logical for unsigned ones. If
        /// y is negative, or at least the width in bits: -1 for x < 0, else 0.
        RIGHT_SHIFT = 23 "right_shift",
        /// True if x == y, and if both are NaN (in either part).
        EQUAL_NAN = 24 "equal_nan",
    }
}

code_module! {
    /// Functions of REDUCE and SCAN, the values of [`ReduceAttrs::op`] and [`ScanAttrs::op`].
    /// [`ALL`](reduce::ALL) and [`ANY`](reduce::ANY) are for REDUCE alone,
    /// [`LOGADDEXP`](reduce::LOGADDEXP) is for SCAN alone. Sums and products of float16 and
    /// bfloat16 accumulate in float32; integers wrap.
    pub mod reduce: u32 {
        /// Sum, in the input's dtype.
        SUM = 0 "sum",
        /// Product, in the input's dtype. The error is at most that of a sum of n terms of the
        /// product's magnitude.
        PROD = 1 "prod",
        /// Smallest element; NaN if there is one.
        MIN = 2 "min",
        /// Largest element; NaN if there is one.
        MAX = 3 "max",
        /// True if no element is 0.
        ALL = 4 "all",
        /// True if an element is not 0.
        ANY = 5 "any",
        /// ln of the sum of e^x. Of SCAN alone.
        LOGADDEXP = 6 "logaddexp",
    }
}

code_module! {
    /// Functions of ARG_REDUCE, the values of [`ArgReduceAttrs::op`].
    pub mod arg_reduce: u32 {
        /// Index of the first smallest element, or of the first NaN.
        ARGMIN = 0 "argmin",
        /// Index of the first largest element, or of the first NaN.
        ARGMAX = 1 "argmax",
    }
}

code_module! {
    /// Functions of SCATTER and SCATTER_AXIS, the values of [`ScatterAttrs::op`] and
    /// [`ScatterAxisAttrs::op`]: they combine an update with the element that it meets.
    pub mod scatter: u32 {
        /// Replaces the element. Of several updates of one element, the last in row-major order
        /// stays.
        SET = 0 "set",
        /// Adds to the element.
        SUM = 1 "sum",
        /// Multiplies the element.
        PROD = 2 "prod",
        /// Keeps the smaller one; NaN if one is NaN.
        MIN = 3 "min",
        /// Keeps the larger one; NaN if one is NaN.
        MAX = 4 "max",
    }
}

code_module! {
    /// Formats of packed numbers, the values of [`DequantizeAttrs::mode`] and
    /// [`QuantizedMatmulAttrs::mode`]: the meaning of words, scales and biases.
    pub mod quantization: u32 {
        /// Unsigned integers q of 1, 2, 3, 4, 5, 6 or 8 bits: scale * q + bias. Scales and biases
        /// have the op's dtype. Groups of 32, 64 or 128.
        AFFINE = 0 "affine",
        /// E2M1 numbers of 4 bits (1 sign bit, 2 of exponent, 1 of mantissa; magnitudes 0, 0.5, 1,
        /// 1.5, 2, 3, 4, 6), times 2^(scale - 127). Scales are uint8; 255 means infinity. Groups of
        /// 32.
        MXFP4 = 1 "mxfp4",
        /// E4M3 numbers of 8 bits (1 sign bit, 4 of exponent with bias 7, 3 of mantissa; up to 448;
        /// 0x7f and 0xff are NaN), with the scales of MXFP4. Groups of 32.
        MXFP8 = 2 "mxfp8",
        /// E2M1 numbers of 4 bits, times an E4M3 scale stored as uint8, and times the global scale
        /// / 2688 if there is one. Groups of 16.
        NVFP4 = 3 "nvfp4",
    }
}

code_module! {
    /// Transforms of FFT, the values of [`FftAttrs::op`].
    pub mod fft: u32 {
        /// y_k = sum over j of x_j e^(-2 pi i j k / n).
        FORWARD = 0 "forward",
        /// y_k = sum over j of x_j e^(2 pi i j k / n).
        BACKWARD = 1 "backward",
        /// The first floor(n / 2) + 1 elements of the forward transform of n real numbers.
        REAL = 2 "real",
        /// The backward transform that gives n real numbers, from its first floor(n / 2) + 1
        /// elements. The imaginary part of element 0 is ignored, and for an even n that of the
        /// last.
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
