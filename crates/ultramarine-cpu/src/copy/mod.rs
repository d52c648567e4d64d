//! Kernels that move elements: rectangles between strided memory and tiles, transposed blocks, and stores that bypass
//! the caches. COPY itself is a program without steps, prepared by `fused`; its conversions are in
//! `elementwise/cast.rs`.

pub mod strided;
pub mod transpose;
