//! Operations, a file or folder for each family: dtypes, shapes, errors, values, derivatives and batching.

mod conv;
mod copy;
mod create;
mod elementwise;
mod fft;
mod halves;
mod index;
mod kernel_source;
mod limits;
mod linalg;
mod linear_rules;
mod matmul;
mod messages;
mod nn;
mod printing;
mod random;
mod reduce;
mod scan;
mod select;
mod shape;
mod sort;
