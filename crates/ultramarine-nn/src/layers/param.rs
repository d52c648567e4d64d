//! The leaves of modules.

use super::base::{Leaf, LeafMut, Mode, Module, Visitor, VisitorMut};
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use ultramarine::{Array, Given, Operand, Result};

/// A parameter: an array that is trained, unless it is frozen.
///
/// It can be used wherever a reference to an array is expected.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::Param;
/// let weight = Param::from(Array::from_slice(&[1.0f32, 2.0], &[2])?);
/// assert_eq!((weight.shape(), weight.is_frozen()), (&[2][..], false));
/// assert_eq!(weight.square()?.to_vec::<f32>()?, [1.0, 4.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone)]
pub struct Param {
    array: Array,
    frozen: bool,
}

impl Param {
    /// Makes a parameter that is not trained.
    pub fn frozen(array: Array) -> Param {
        Param { array, frozen: true }
    }

    /// Replaces the array. Its shape is not compared with that of the old array; [`Module::update`] does compare it.
    pub fn set(&mut self, array: Array) {
        self.array = array;
    }

    /// Returns true if the parameter is not trained.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Freezes the parameter (true), or makes it trainable.
    pub fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }
}

impl From<Array> for Param {
    fn from(array: Array) -> Param {
        Param { array, frozen: false }
    }
}

impl From<Param> for Array {
    fn from(param: Param) -> Array {
        param.array
    }
}

impl Deref for Param {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}

impl Operand for Param {
    fn given(&self) -> Result<Given<'_>> {
        self.array.given()
    }
}

impl AsRef<Array> for Param {
    fn as_ref(&self) -> &Array {
        &self.array
    }
}

/// Prints dtype and shape only, because the values may not be evaluated.
impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frozen = if self.frozen { ", frozen" } else { "" };
        write!(f, "Param({} {:?}{frozen})", self.dtype(), self.shape())
    }
}

impl Module for Param {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.leaf(Leaf::Param(self));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.leaf(LeafMut::Param(self));
    }
}

/// An array that a layer's calls change, such as running statistics. In files it is a parameter; it is never trained.
///
/// ```
/// use ultramarine::Array;
/// use ultramarine_nn::State;
/// let count = State::from(Array::scalar(0.0f32));
/// count.set((&count.get() + 1.0)?);
/// assert_eq!(count.get().item::<f32>()?, 1.0);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub struct State(Mutex<Array>);

impl State {
    /// Returns the present array.
    pub fn get(&self) -> Array {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the array. A layer may do so during a call, from any thread.
    pub fn set(&self, array: Array) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = array;
    }
}

impl From<Array> for State {
    fn from(array: Array) -> State {
        State(Mutex::new(array))
    }
}

impl Clone for State {
    fn clone(&self) -> State {
        State::from(self.get())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = self.get();
        write!(f, "State({} {:?})", array.dtype(), array.shape())
    }
}

impl Module for State {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.leaf(Leaf::State(self));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.leaf(LeafMut::State(self));
    }
}

/// The mode of a layer, as a field of layers whose behaviour depends on it. It is true in training mode, the mode of
/// new layers.
///
/// ```
/// use ultramarine_nn::{Module, Training};
/// #[derive(Module, Default)]
/// struct Noise {
///     training: Training,
/// }
/// let mut noise = Noise::default();
/// assert!(*noise.training);
/// noise.eval();
/// assert!(!*noise.training);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Training(bool);

impl Default for Training {
    fn default() -> Training {
        Training(true)
    }
}

impl Deref for Training {
    type Target = bool;

    fn deref(&self) -> &bool {
        &self.0
    }
}

impl Mode for Training {
    fn set_training(&mut self, training: bool) {
        self.0 = training;
    }
}

impl Module for Training {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.leaf(Leaf::Mode(self.0));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.leaf(LeafMut::Mode(self));
    }
}
