//! Views of arrays, and arrays joined from several.

pub(crate) mod axes;
pub(crate) mod concatenate;
pub(crate) mod pad;
pub(crate) mod reshape;
pub(crate) mod slice;
mod tile;
pub(crate) mod view;
