//! Kernels that move elements: rectangles between strided memory and tiles, transposed blocks, stores past
//! the caches. COPY itself is a program without steps, prepared by `fused`; its conversions are
//! `elementwise/cast.rs`.

pub mod strided;
pub mod transpose;
