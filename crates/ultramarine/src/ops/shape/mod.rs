//! Views of arrays, and arrays put together from others.

pub(crate) mod axes;
pub(crate) mod concatenate;
pub(crate) mod pad;
pub(crate) mod reshape;
pub(crate) mod slice;
mod tile;
pub(crate) mod view;
