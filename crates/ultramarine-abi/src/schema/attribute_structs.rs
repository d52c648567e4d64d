//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.

use super::attrs;

attrs! {
    /// Attributes of operations that have none.
    NoAttrs {
    }
    /// Attributes of UNARY.
    UnaryAttrs {
        /// A [`unary`](super::unary) code.
        op: u32,
    }
    /// Attributes of BINARY.
    BinaryAttrs {
        /// A [`binary`](super::binary) code.
        op: u32,
    }
    /// Attributes of REDUCE.
    ReduceAttrs {
        /// A [`reduce`](super::reduce) code, not LOGADDEXP.
        op: u32,
        /// Mask of the reduced axes: bit `i` (of value 2^i) stands for axis `i`, counted from 0. 0
        /// reduces no axis. Bits of the rank and above are 0.
        axes: u64,
    }
    /// Attributes of ARG_REDUCE.
    ArgReduceAttrs {
        /// An [`arg_reduce`](super::arg_reduce) code.
        op: u32,
        /// Axis of the search, from 0 to the rank - 1.
        axis: u32,
    }
    /// Attributes of SCAN.
    ScanAttrs {
        /// A [`reduce`](super::reduce) code, not ALL or ANY.
        op: u32,
        /// Axis of the scan, from 0 to the rank - 1.
        axis: u32,
        /// 1: the scan runs from the last element to the first. 0: from the first to the last.
        reverse: u32,
        /// 1: an output element includes the input element of its place. 0: it ends before it.
        inclusive: u32,
    }
    /// Attributes of GATHER.
    GatherAttrs {
        /// Number of index arrays, at least 1 and at most the source's rank.
        n_indices: u32,
        /// Rank of every index array; may be 0.
        index_ndim: u32,
        /// Element `k` is the source axis that index array `k` addresses. The first `n_indices`
        /// elements count; they differ from each other, in any order. The rest is 0.
        axes: [u8; 32],
    }
    /// Attributes of SCATTER.
    ScatterAttrs {
        /// A [`scatter`](super::scatter) code.
        op: u32,
        /// Number of index arrays, at least 1 and at most the source's rank.
        n_indices: u32,
        /// Rank of every index array; may be 0.
        index_ndim: u32,
        /// Element `k` is the source axis that index array `k` addresses. The first `n_indices`
        /// elements count; they differ from each other, in any order. The rest is 0.
        axes: [u8; 32],
    }
    /// Attributes of GATHER_AXIS, SORT, ARG_SORT, PARTITION and ARG_PARTITION.
    AxisAttrs {
        /// Axis of the operation, from 0 to the rank - 1.
        axis: u32,
    }
    /// Attributes of SCATTER_AXIS.
    ScatterAxisAttrs {
        /// A [`scatter`](super::scatter) code: SET or SUM.
        op: u32,
        /// Axis that the indices address, from 0 to the rank - 1.
        axis: u32,
    }
    /// Attributes of FFT.
    FftAttrs {
        /// An [`fft`](super::fft) code.
        op: u32,
        /// Axis of the transform, from 0 to the rank - 1.
        axis: u32,
    }
    /// Attributes of CONVOLVE, CONVOLVE_INPUT and CONVOLVE_WEIGHT.
    ConvolveAttrs {
        /// 1: the kernel is reversed along its three spatial axes (convolution). 0: it is not
        /// (cross-correlation).
        flip: u32,
        /// Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as
        /// they are, UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits),
        /// UM_PRECISION_MEDIUM (2) to bfloat16 (8). Other dtypes ignore it. A device may be more
        /// exact. It may refuse 1 and 2 with UM_UNSUPPORTED; the host then asks with 0.
        precision: u32,
    }
    /// Attributes of MATMUL.
    PrecisionAttrs {
        /// Precision of the factors of float32 products: UM_PRECISION_HIGHEST (0) leaves them as
        /// they are, UM_PRECISION_HIGH (1) allows rounding to TensorFloat-32 (11 significant bits),
        /// UM_PRECISION_MEDIUM (2) to bfloat16 (8). Other dtypes ignore it. A device may be more
        /// exact. It may refuse 1 and 2 with UM_UNSUPPORTED; the host then asks with 0.
        precision: u32,
    }
    /// Attributes of SOFTMAX and LOGSUMEXP.
    AxesAttrs {
        /// 0.
        reserved: u32,
        /// Mask of the axes of the sum: bit `i` (of value 2^i) stands for axis `i`, counted from 0.
        /// Bits of the rank and above are 0.
        axes: u64,
    }
    /// Attributes of CHOLESKY, EIGH, EIGVALSH and SOLVE_TRIANGULAR.
    TriangleAttrs {
        /// 1: the upper triangle of the matrix counts. 0: the lower one.
        upper: u32,
    }
    /// Attributes of ROPE.
    RopeAttrs {
        /// Number of rotated pairs, at least 1. `2 * pairs` is at most the size of the last axis;
        /// elements behind are copied.
        pairs: u32,
        /// 1: pair `i` is elements `2 i` and `2 i + 1`. 0: elements `i` and `pairs + i`.
        traditional: u32,
        /// 1: rotates by the opposite angles, with -sin in place of sin.
        inverse: u32,
    }
    /// Attributes of SEARCHSORTED.
    SearchAttrs {
        /// 1: counts the elements that are not larger than the value (insertion behind equal
        /// elements). 0: those that are smaller (insertion before them).
        right: u32,
    }
    /// Attributes of DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE.
    DynamicSliceAttrs {
        /// Number of elements of the starts, at most the source's rank.
        n_starts: u32,
        /// Element `k` is the axis that start `k` belongs to. The first `n_starts` elements count
        /// and differ from each other; the rest is 0. Along other axes the window begins at 0.
        axes: [u8; 32],
    }
    /// Attributes of ATTENTION and ATTENTION_GRADIENT.
    AttentionAttrs {
        /// 1: the input `mask` is present.
        mask: u32,
        /// 1: the input `sinks` is present. 0 for ATTENTION_GRADIENT.
        sinks: u32,
        /// 1: the input `lengths` is present.
        lengths: u32,
        /// 1: query `i` of m attends to key `j` only if `j <= i + L - m`, where L is the batch's
        /// length, or n without lengths.
        causal: u32,
        /// Size d of a query and of a key.
        head_size: u32,
        /// Size e of a value.
        value_size: u32,
        /// Number of query heads that share a key head, at least 1.
        group: u32,
        /// 1: equal commands give bitwise identical results. 0: gradients may differ in their last
        /// bits, even on a device with UM_DEVICE_DETERMINISTIC.
        deterministic: u32,
    }
    /// Attributes of DEQUANTIZE.
    DequantizeAttrs {
        /// A [`quantization`](super::quantization) code.
        mode: u32,
        /// Bits of an element; see the mode.
        bits: u32,
        /// Number of consecutive elements of a row that share a scale; see the mode.
        group: u32,
        /// 1: the input `biases` is present. 1 for AFFINE, 0 for the other modes.
        biases: u32,
        /// 1: the input `global_scale` is present. 0 for every mode but NVFP4.
        global_scale: u32,
    }
    /// Attributes of QUANTIZED_MATMUL.
    QuantizedMatmulAttrs {
        /// A [`quantization`](super::quantization) code.
        mode: u32,
        /// Bits of an element; see the mode.
        bits: u32,
        /// Number of consecutive elements of a row that share a scale; see the mode.
        group: u32,
        /// 1: a row of the packed matrix is a column of the second factor. 0: it is a row of it.
        transpose: u32,
        /// 1: the input `biases` is present. 1 for AFFINE, 0 for the other modes.
        biases: u32,
        /// 1: the input `global_scale` is present. 0 for every mode but NVFP4.
        global_scale: u32,
        /// 1: the input `lhs_indices` is present.
        lhs_indices: u32,
        /// 1: the input `rhs_indices` is present.
        rhs_indices: u32,
    }
    /// Attributes of GATHER_MATMUL.
    GatherMatmulAttrs {
        /// 1: the input `lhs_indices` is present.
        lhs_indices: u32,
        /// 1: the input `rhs_indices` is present.
        rhs_indices: u32,
    }
    /// Attributes of RMS_NORM_GRADIENT and LAYER_NORM_GRADIENT.
    NormGradientAttrs {
        /// 1: all outputs are computed. 0: only the gradient with respect to x; the other outputs
        /// may be left unwritten.
        parameters: u32,
    }
}
