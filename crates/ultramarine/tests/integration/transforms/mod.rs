//! Transforms of functions: derivatives, batching, compilation, rules of the user's own.

mod compile;
mod custom_function;
mod gradients;
mod traces;
