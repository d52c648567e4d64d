//! Pooling.

use super::base::{Layer, Module};
use super::convolution::PerAxis;
use ultramarine::shape::Show;
use ultramarine::{Array, Dtype, Error, PadMode, Result, Scalar, iinfo};

/// Windows up to this size are combined element by element.
const DIRECT: usize = 8;
/// Windows that have at least this size and do not overlap become an axis, which is reduced.
const REDUCED: usize = 4;

/// The reduction of a window.
#[derive(Module, Clone, Copy, Debug, PartialEq, Eq)]
enum Pooling {
    Max,
    Sum,
}

impl Pooling {
    fn combine(self, a: &Array, b: &Array) -> Result<Array> {
        match self {
            Pooling::Max => a.maximum(b),
            Pooling::Sum => a.add(b),
        }
    }

    fn reduce(self, x: &Array, axis: usize) -> Result<Array> {
        let axes = Some(&[axis as isize][..]);
        match self {
            Pooling::Max => x.max(axes),
            Pooling::Sum => x.sum(axes),
        }
    }

    /// Pools windows of `size` along an axis.
    fn along(self, x: &Array, axis: usize, size: usize, stride: usize) -> Result<Array> {
        let length = x.shape()[axis];
        let count = (length + stride).saturating_sub(size) / stride;
        if count == 0 {
            return cut(x, axis, 0, 0, 1);
        }
        if size == stride && size >= REDUCED {
            let mut shape = x.shape().to_vec();
            shape.splice(axis..axis + 1, [count, size]);
            return self.reduce(&cut(x, axis, 0, count * size, 1)?.reshape(&shape)?, axis + 1);
        }
        if size <= DIRECT {
            let span = (count - 1) * stride + 1;
            let mut y = cut(x, axis, 0, span, stride)?;
            for start in 1..size {
                y = self.combine(&cut(x, axis, start, start + span, stride)?, &y)?;
            }
            return Ok(y);
        }
        // Compute windows of sizes that are powers of two, each from two windows of the previous size, and combine
        // those whose sizes add up to the window's.
        let positions = length - size + 1;
        let (mut covered, mut power, mut windows) = (0, 1, x.clone());
        let mut y: Option<Array> = None;
        loop {
            if size & power != 0 {
                let part = cut(&windows, axis, covered, covered + positions, 1)?;
                y = Some(match y {
                    Some(y) => self.combine(&part, &y)?,
                    None => part,
                });
                covered += power;
            }
            if covered == size {
                break;
            }
            let n = windows.shape()[axis];
            windows = self.combine(
                &cut(&windows, axis, power, n, 1)?,
                &cut(&windows, axis, 0, n - power, 1)?,
            )?;
            power *= 2;
        }
        let y = y.unwrap_or(windows);
        if stride == 1 { Ok(y) } else { cut(&y, axis, 0, positions, stride) }
    }
}

/// Elements of an axis.
fn cut(x: &Array, axis: usize, start: usize, stop: usize, step: usize) -> Result<Array> {
    let mut starts = vec![0; x.ndim()];
    let mut stops: Vec<isize> = x.shape().iter().map(|n| *n as isize).collect();
    let mut steps = vec![1; x.ndim()];
    (starts[axis], stops[axis], steps[axis]) = (start as isize, stop as isize, step as isize);
    x.slice(&starts, &stops, &steps)
}

/// Windows along the spatial axes.
#[derive(Module, Clone, Copy, Debug)]
struct Windows<const N: usize> {
    size: PerAxis<N>,
    stride: PerAxis<N>,
    padding: PerAxis<N>,
}

impl<const N: usize> Windows<N> {
    fn new(size: PerAxis<N>) -> Windows<N> {
        Windows { size, stride: size, padding: 0.into() }
    }

    fn pool(&self, op: &str, x: &Array, pooling: Pooling, padding: &Array) -> Result<Array> {
        let wrong = |text: String| Err(Error::value(op, text));
        let (sizes, strides) = (self.size.0, self.stride.0);
        if sizes.iter().chain(&strides).any(|n| *n == 0) {
            return wrong(format!(
                "The kernel size is {} and the stride {}. Pass positive numbers.",
                Show(&sizes),
                Show(&strides)
            ));
        }
        if x.ndim() != N + 2 {
            return wrong(format!(
                "The input has shape {}. Pass {} axes, the first for the batch, the last for channels.",
                Show(x.shape()),
                N + 2
            ));
        }
        let mut x = x.clone();
        if self.padding.0.iter().any(|p| *p > 0) {
            let spatial = self.padding.0.iter().map(|p| (*p, *p));
            let widths: Vec<_> = [(0, 0)].into_iter().chain(spatial).chain([(0, 0)]).collect();
            x = x.pad(&widths, PadMode::Constant, padding)?;
        }
        for axis in 0..N {
            let (length, size) = (x.shape()[axis + 1], sizes[axis]);
            if length + strides[axis] < size {
                return wrong(format!(
                    "Windows of {size} do not fit {length} padded elements. Reduce the kernel size or pad the input."
                ));
            }
        }
        for axis in (0..N).rev() {
            if (sizes[axis], strides[axis]) != (1, 1) {
                x = pooling.along(&x, axis + 1, sizes[axis], strides[axis])?;
            }
        }
        Ok(x)
    }
}

/// The smallest number of a dtype. It pads windows, and no maximum selects it.
fn least(dtype: Dtype) -> Scalar {
    match iinfo(dtype) {
        _ if dtype == Dtype::Bool => Scalar::from(false),
        Some(info) => Scalar::from_i64(dtype, i64::try_from(info.min).unwrap_or(i64::MIN)),
        None => Scalar::from_f64(dtype, f64::NEG_INFINITY),
    }
}

fn max_pool<const N: usize>(op: &str, x: &Array, windows: &Windows<N>) -> Result<Array> {
    windows.pool(op, x, Pooling::Max, &Array::scalar(least(x.dtype())))
}

fn avg_pool<const N: usize>(op: &str, x: &Array, windows: &Windows<N>) -> Result<Array> {
    let dtype = x.dtype();
    let wide = match dtype {
        Dtype::Float32 | Dtype::Float64 => x.clone(),
        _ => x.astype(Dtype::Float32),
    };
    let zero = Array::scalar(Scalar::from_f64(wide.dtype(), 0.0));
    let sums = windows.pool(op, &wide, Pooling::Sum, &zero)?;
    let y = (&sums * (1.0 / windows.size.0.iter().product::<usize>() as f64))?;
    Ok(if matches!(dtype, Dtype::Float16 | Dtype::Bfloat16) { y.astype(dtype) } else { y })
}

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Clone, Copy, Debug)]
        pub struct $name {
            windows: Windows<$n>,
        }

        impl $name {
            /// Makes a layer whose windows do not overlap, because the stride equals their size. `kernel_size` is one
            /// number for all axes, or one for each.
            pub fn new(kernel_size: impl Into<PerAxis<$n>>) -> $name {
                $name { windows: Windows::new(kernel_size.into()) }
            }

            /// Sets the distance between windows.
            #[must_use]
            pub fn stride(mut self, stride: impl Into<PerAxis<$n>>) -> $name {
                self.windows.stride = stride.into();
                self
            }

            /// Sets the number of elements that are added on both sides of each axis. A maximum never selects them, and
            /// means count them as zeros.
            #[must_use]
            pub fn padding(mut self, padding: impl Into<PerAxis<$n>>) -> $name {
                self.windows.padding = padding.into();
                self
            }
        }

        impl Layer for $name {
            fn forward(&self, x: &Array) -> Result<Array> {
                $function(stringify!($name), x, &self.windows)
            }
        }
    )*};
}

pools! {
    /// The largest element of each window of `(batch, length, channels)`. See [`MaxPool2d`] for an
    /// example.
    MaxPool1d 1 max_pool;
    /// The largest element of each window of `(batch, height, width, channels)`.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// use ultramarine_nn::{Layer, MaxPool2d};
    /// let x = Array::arange(0.0, 16.0, 1.0, Dtype::Float32)?.reshape(&[1, 4, 4, 1])?;
    /// assert_eq!(MaxPool2d::new(2).forward(&x)?.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    MaxPool2d 2 max_pool;
    /// The largest element of each window of `(batch, depth, height, width, channels)`. See
    /// [`MaxPool2d`] for an example.
    MaxPool3d 3 max_pool;
    /// The mean of each window of `(batch, length, channels)`. Integers give float32.
    AvgPool1d 1 avg_pool;
    /// The mean of each window of `(batch, height, width, channels)`. Integers give float32.
    AvgPool2d 2 avg_pool;
    /// The mean of each window of `(batch, depth, height, width, channels)`. Integers give float32.
    AvgPool3d 3 avg_pool;
}
