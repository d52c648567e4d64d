//! The loader as programs with arrays meet it; the runtime's tests have the rest.

mod auto;
mod indices;
mod probe;

use crate::support::bench;
