//! Keys and values of earlier positions.

use ultramarine::{Array, Result, Update, concatenate, index};

/// Positions by which a cache grows: a step of generation writes in place, most of the time.
const STEP: usize = 256;

/// Keys and values of one layer, at all positions so far.
#[derive(Default)]
pub struct Cache {
    length: usize,
    /// Both `(batch, heads, capacity, size)`.
    stores: Option<[Array; 2]>,
}

impl Cache {
    /// Number of positions.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Appends keys and values, both `(batch, heads, positions, size)`; returns those of all positions.
    pub fn append(&mut self, keys: &Array, values: &Array) -> Result<(Array, Array)> {
        let (start, end) = (self.length, self.length + keys.shape()[2]);
        // The old stores are given away here, so that they are written in place.
        let [old_keys, old_values] = self.stores.take().map_or([None, None], |s| s.map(Some));
        let stores = [written(old_keys, keys, start)?, written(old_values, values, start)?];
        let [all_keys, all_values] =
            [&stores[0], &stores[1]].map(|s| s.index(index![.., .., ..end]));
        self.stores = Some(stores);
        self.length = end;
        Ok((all_keys?, all_values?))
    }

    /// The arrays of an evaluation.
    pub fn arrays(&self) -> &[Array] {
        self.stores.as_ref().map_or(&[], |s| &s[..])
    }
}

/// A store with new positions from `start` on, larger if it has to be.
fn written(store: Option<Array>, new: &Array, start: usize) -> Result<Array> {
    let end = start + new.shape()[2];
    let capacity = store.as_ref().map_or(0, |s| s.shape()[2]);
    let mut shape = new.shape().to_vec();
    let store = match store {
        Some(store) if end <= capacity => store,
        store => {
            shape[2] = (end - capacity).next_multiple_of(STEP);
            let room = Array::zeros(&shape, new.dtype())?;
            match store {
                Some(store) => concatenate(&[store, room], 2)?,
                None => room,
            }
        }
    };
    store.index_update(index![.., .., start..end], new, Update::Set)
}
