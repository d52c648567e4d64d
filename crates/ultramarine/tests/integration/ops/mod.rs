//! Operations, a file for each family: dtypes, shapes, errors, values, derivatives and batching.

mod assemble;
mod convolution;
mod elementwise;
mod fft;
mod indexing;
mod kernel_source;
mod limits;
mod linalg;
mod matmul;
mod printing;
mod random;
mod reduce;
mod shape;
mod storage;
mod xlogy;
