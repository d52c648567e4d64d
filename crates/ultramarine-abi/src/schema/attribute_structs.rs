//! Generated from `schema.toml` by `cargo xtask generate`; do not edit.

use super::attrs;

attrs! {
    /// For ops without attributes.
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
        /// A [`reduce`](super::reduce) code.
        op: u32,
        /// Bit `i`: axis `i` is reduced.
        axes: u64,
    }
    /// Attributes of ARG_REDUCE.
    ArgReduceAttrs {
        /// An [`arg_reduce`](super::arg_reduce) code.
        op: u32,
        /// The axis.
        axis: u32,
    }
    /// Attributes of SCAN.
    ScanAttrs {
        /// A [`reduce`](super::reduce) code.
        op: u32,
        /// The axis.
        axis: u32,
        /// 1: from the end.
        reverse: u32,
        /// 1: an element includes itself.
        inclusive: u32,
    }
    /// Attributes of GATHER.
    GatherAttrs {
        /// Index arrays.
        n_indices: u32,
        /// Dimensions of each index array.
        index_ndim: u32,
        /// The source axis that each index array addresses; ascending or not, all different.
        axes: [u8; 32],
    }
    /// Attributes of SCATTER.
    ScatterAttrs {
        /// A [`scatter`](super::scatter) code.
        op: u32,
        /// Index arrays.
        n_indices: u32,
        /// Dimensions of each index array.
        index_ndim: u32,
        /// The axis that each index array addresses.
        axes: [u8; 32],
    }
    /// Attributes of GATHER_AXIS, SORT and ARG_SORT.
    AxisAttrs {
        /// The axis.
        axis: u32,
    }
    /// Attributes of SCATTER_AXIS.
    ScatterAxisAttrs {
        /// A [`scatter`](super::scatter) code; SET or SUM.
        op: u32,
        /// The axis.
        axis: u32,
    }
    /// Attributes of FFT.
    FftAttrs {
        /// A [`fft`](super::fft) code.
        op: u32,
        /// The axis.
        axis: u32,
    }
    /// Attributes of CONVOLVE and its gradients.
    ConvolveAttrs {
        /// 1: the kernel is reversed along its spatial axes.
        flip: u32,
        /// How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11
        /// significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all
        /// but 0.
        precision: u32,
    }
    /// Attributes of MATMUL.
    PrecisionAttrs {
        /// How far factors of float32 may be rounded. 0: not at all; 1: to TensorFloat-32, of 11
        /// significant bits; 2: to bfloat16, of 8. A device may be more exact, and may refuse all
        /// but 0.
        precision: u32,
    }
    /// Attributes of SOFTMAX and LOGSUMEXP.
    AxesAttrs {
        /// 0.
        reserved: u32,
        /// Bit `i`: the sum goes over axis `i`.
        axes: u64,
    }
    /// Attributes of the operations that read or make a triangle of a matrix.
    TriangleAttrs {
        /// 1: the upper triangle, else the lower one.
        upper: u32,
    }
    /// Attributes of ROPE.
    RopeAttrs {
        /// Pairs that are turned, at least one; what is behind them in the last axis is copied.
        pairs: u32,
        /// 1: pairs are neighbours, 2 i and 2 i + 1, else i and pairs + i.
        traditional: u32,
        /// 1: by the opposite angles: of -sin.
        inverse: u32,
    }
    /// Attributes of SEARCHSORTED.
    SearchAttrs {
        /// 1: values go behind the elements that equal them, else before them.
        right: u32,
    }
    /// Attributes of DYNAMIC_SLICE and DYNAMIC_SLICE_UPDATE.
    DynamicSliceAttrs {
        /// Elements of the starts.
        n_starts: u32,
        /// The axis that each start is about, all different; along others the window begins at 0.
        axes: [u8; 32],
    }
    /// Attributes of ATTENTION and its gradient.
    AttentionAttrs {
        /// 1: there is a mask.
        mask: u32,
        /// 1: there are sinks. Of the gradient, 0.
        sinks: u32,
        /// 1: there are lengths.
        lengths: u32,
        /// 1: query i sees the keys up to i + keys (or the length) - queries.
        causal: u32,
        /// Size of a query and of a key.
        head_size: u32,
        /// Size of a value.
        value_size: u32,
        /// Query heads that a key head serves.
        group: u32,
        /// 1: equal commands give equal bits. 0: those of the gradient may differ in their last
        /// bits, even where a device is DETERMINISTIC.
        deterministic: u32,
    }
    /// Attributes of DEQUANTIZE.
    DequantizeAttrs {
        /// A [`quantization`](super::quantization) code.
        mode: u32,
        /// Bits of an element.
        bits: u32,
        /// Elements of a row that share a scale.
        group: u32,
        /// 1: there are biases; of AFFINE always.
        biases: u32,
        /// 1: there is a global scale; of NVFP4 alone.
        global_scale: u32,
    }
    /// Attributes of QUANTIZED_MATMUL.
    QuantizedMatmulAttrs {
        /// A [`quantization`](super::quantization) code.
        mode: u32,
        /// Bits of an element.
        bits: u32,
        /// Elements of a row that share a scale.
        group: u32,
        /// 1: rows of words are columns of the second factor.
        transpose: u32,
        /// 1: there are biases; of AFFINE always.
        biases: u32,
        /// 1: there are global scales; of NVFP4 alone.
        global_scale: u32,
        /// 1: there are indices of the first factor's matrices.
        lhs_indices: u32,
        /// 1: there are indices of the second factor's matrices.
        rhs_indices: u32,
    }
    /// Attributes of GATHER_MATMUL.
    GatherMatmulAttrs {
        /// 1: there are indices of the first factor's matrices.
        lhs_indices: u32,
        /// 1: there are indices of the second factor's matrices.
        rhs_indices: u32,
    }
    /// Attributes of the norms' gradients.
    NormGradientAttrs {
        /// 1: the gradients by weight and bias are wanted too, else those outputs may be left as
        /// they are.
        parameters: u32,
    }
}
