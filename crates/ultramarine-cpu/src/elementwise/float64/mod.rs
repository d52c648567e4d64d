//! float64 functions, branch-free, so that loops over them vectorise.
//!
//! Argument reductions and last steps keep two numbers where one would lose bits (`double`). Results are within one
//! unit in the last place, or two for inverse hyperbolic functions, erf and its inverse, sigmoid, arctan2 and logaddexp
//! (`tests/units/elementwise/float64.rs` has the bounds). Special values follow the C standard. The polynomials were
//! fitted for this project by Remez's algorithm in 240-bit arithmetic. Each comment gives the interval and the largest
//! error, relative to the function that uses the polynomial.

mod double;
mod erf;
mod exp;
mod hyperbolic;
mod log;
mod pow;
mod trig;

pub use erf::{erf, erfinv};
pub(crate) use exp::exp;
pub(super) use exp::expm1;
pub use exp::sigmoid;
pub use hyperbolic::{arccosh, arcsinh, arctanh};
pub(super) use hyperbolic::{cosh, sinh, tanh};
pub use log::logaddexp;
pub(super) use log::{log, log1p, log2, log10};
pub(super) use pow::power;
pub(super) use trig::{arccos, arcsin, arctan, arctan2, cos, is_large, sin, tan};
