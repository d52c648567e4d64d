//! Numbers of few bits, and what is computed with them.

pub(crate) mod fp8;
