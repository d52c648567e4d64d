//! The OpenCL backend, built from C with its own Makefile. Skipped, and reported as such, where there is no OpenCL.

mod arrays;
mod dlpack;
mod source_kernels;
mod table;
