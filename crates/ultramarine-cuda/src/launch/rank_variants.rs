//! Kernels that walk tensors by [`Axes`], one for each number of axes and width of indices.

use super::walk::{Axes, ROOMS};
use crate::program::{Kernel, Lazy, Programs, Source, variants};
use ultramarine_abi::helper::Result;

/// A kernel for each of [`ROOMS`], with indices of 32 and of 64 bits, compiled when needed.
pub struct ByRoom([[Lazy; 2]; ROOMS.len()]);

impl ByRoom {
    /// `entry(room, index)` gives the parameters and the body of the kernel, which are CUDA C, for
    /// walks of so many axes and that type of index.
    pub fn new(
        name: &str,
        texts: &'static [&'static str],
        entry: impl Fn(usize, &str) -> (String, String),
    ) -> Self {
        let make = |room: usize, index: &str| {
            let (parameters, body) = entry(room, index);
            let tail = variants::entry(&parameters, &body);
            Lazy::new(Source::new(format!("{name} {room} {index}"), texts, tail))
        };
        Self(ROOMS.map(|room| [true, false].map(|small| make(room, variants::index(small)))))
    }

    /// The kernel for these axes.
    pub fn get<const K: usize>(&self, programs: &Programs, axes: &Axes<K>) -> Result<Kernel> {
        let place = ROOMS.iter().position(|room| *room >= axes.count).unwrap_or(ROOMS.len() - 1);
        self.0[place][usize::from(!axes.is_small())].get(programs)
    }
}
