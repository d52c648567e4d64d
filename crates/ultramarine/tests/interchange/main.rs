//! Tensors in host memory, in and out: fabricated ones, whose deleters are counted, against
//! arrays.

mod cases;
mod export;
mod foreign;
mod import;
mod lazy;
mod life;
mod refused;
mod strides;
