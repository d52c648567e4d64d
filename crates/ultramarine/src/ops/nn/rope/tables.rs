//! The cosines and sines of rope's angles. All layers of a model share them.
//!
//! A model asks for the tables of the same positions in every layer, for queries and for keys. A thread keeps the last
//! few tables that it made, so that later calls use the nodes of the first call. Each table is then built and evaluated
//! once.

use super::Rope;
use crate::array::Array;
use crate::dtype::Dtype;
use crate::error::Result;
use crate::graph::placement::Place;
use crate::graph::tracing::Tracing;
use crate::ops::rules::builders::{bin, like, times, un, with_axis};
use crate::ops::rules::shapeless::shapeless;
use crate::scalar::Scalar;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use ultramarine_abi::schema::{binary, unary};

/// Number of tables that a thread keeps. Models have local and global layers, and may run beside a draft model.
const KEPT: usize = 4;
/// Larger tables are not kept. Counted in elements.
const LARGEST: usize = 1 << 20;

/// The requested angles.
pub(super) struct Angles<'a> {
    pub how: Rope,
    pub pairs: usize,
    /// Number of positions: the size of the axis before the last.
    pub positions: usize,
    /// Number of axes of the rotated array.
    pub ndim: usize,
    pub offset: &'a Array,
    pub freqs: Option<&'a Array>,
    pub dtype: Dtype,
}

/// Tables and the request that they were made for.
struct Kept {
    key: Key,
    cos: Array,
    sin: Array,
}

#[derive(PartialEq)]
struct Key {
    numbers: [u64; 3],
    sizes: [usize; 2],
    dtype: Dtype,
    offset: Scalar,
    freqs: Option<Identity>,
    place: Place,
}

/// An array that equals only itself, not arrays with the same elements.
struct Identity(Array);

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        Arc::ptr_eq(self.0.node(), other.0.node())
    }
}

thread_local! {
    static TABLES: RefCell<VecDeque<Kept>> = const { RefCell::new(VecDeque::new()) };
}

impl Angles<'_> {
    /// Returns cosines and sines.
    pub fn tables(&self) -> Result<(Array, Array)> {
        let pairs = Array::arange(0.0, self.pairs as f64, 1.0, self.dtype)?;
        let Some(key) = self.key(&pairs) else { return self.make(&pairs) };
        let found = TABLES.with_borrow(|all| {
            let found = all.iter().find(|kept| kept.key == key && kept.is_usable());
            found.map(|kept| (kept.cos.clone(), kept.sin.clone()))
        });
        if let Some(tables) = found {
            return Ok(tables);
        }
        let (cos, sin) = self.make(&pairs)?;
        let kept = Kept { key, cos: cos.clone(), sin: sin.clone() };
        let old = TABLES.with_borrow_mut(|all| {
            all.push_front(kept);
            if all.len() > KEPT { all.pop_back() } else { None }
        });
        // Drop outside of the borrow: the old tables may be foreign memory, whose deleter may call this function.
        drop(old);
        Ok((cos, sin))
    }

    /// The key of tables that may be kept; `None` in traces, which have graphs of their own.
    fn key(&self, made: &Array) -> Option<Key> {
        let (offset, place) = (self.offset.node().constant()?, made.node().place);
        let freqs = self.freqs.map(|freqs| Identity(freqs.clone()));
        let exported = |a: &Array| a.node().value().is_some_and(|v| v.buffer.was_exported());
        let own = self.offset.size() == 1
            && self.pairs * self.positions <= LARGEST
            && !self.freqs.is_some_and(exported)
            && !Tracing::active()
            && !shapeless();
        let base = self.how.base.map_or(0, f64::to_bits);
        let numbers = [base, u64::from(self.how.base.is_some()), self.how.scale.to_bits()];
        let sizes = [self.pairs, self.positions];
        own.then_some(Key { numbers, sizes, dtype: self.dtype, offset, freqs, place })
    }

    fn make(&self, line: &Array) -> Result<(Array, Array)> {
        let mut first = self.offset.astype(self.dtype);
        if self.offset.size() == 1 {
            first = first.reshape::<usize>(&[])?;
        } else {
            while first.ndim() < self.ndim - 1 {
                first = with_axis(&first, first.ndim())?;
            }
        }
        let positions = Array::arange(0.0, self.positions as f64, 1.0, self.dtype)?;
        let positions = bin(binary::ADD, &positions, &first)?;
        let positions = times(&positions, &like(&positions, self.how.scale))?;
        let steps = match self.freqs {
            Some(freqs) => un(unary::RECIPROCAL, &freqs.astype(self.dtype)),
            None => {
                let step = -self.how.base.unwrap_or(1.0).ln() / self.pairs as f64;
                un(unary::EXP, &times(line, &like(line, step))?)
            }
        };
        let angles = times(&with_axis(&positions, positions.ndim())?, &steps)?;
        Ok((un(unary::COS, &angles), un(unary::SIN, &angles)))
    }
}

impl Kept {
    /// True if evaluation has not failed.
    fn is_usable(&self) -> bool {
        let fails = |a: &Array| matches!(a.node().outcome(), Some(Err(_)));
        !fails(&self.cos) && !fails(&self.sin)
    }
}
