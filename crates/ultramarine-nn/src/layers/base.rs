//! Modules: trees of named parameters.

use super::param::{Param, State};
use super::weights;
use crate::Parameters;
use crate::layers::quantized::Quantizable;
use std::path::Path;
use ultramarine::{Array, Dtype, Result};
pub use ultramarine_nn_derive::Module;

/// A layer or a model: parameters and other modules, each named after its field.
///
/// `#[derive(Module)]` implements it for structs and enums. Names are paths of fields, such as `layers.0.weight`, the
/// same as in the Python package, so that each package reads the other's files. Fields can be [`Param`], [`State`],
/// [`Training`](crate::Training), other modules, and options, vectors, arrays, tuples, boxes and maps of these.
/// Numbers, bools and strings are ignored automatically, other fields by `#[module(skip)]`; `#[module(rename = "...")]`
/// gives a field another name.
///
/// ```
/// use ultramarine::{Array, Result};
/// use ultramarine_nn::{Layer, Linear, Module, Param};
///
/// #[derive(Module, Clone)]
/// struct Scaled {
///     inner: Linear,
///     #[module(rename = "gain")]
///     scale: Param,
///     size: usize,
/// }
///
/// impl Layer for Scaled {
///     fn forward(&self, x: &Array) -> Result<Array> {
///         &self.inner.forward(x)? * &self.scale
///     }
/// }
///
/// let scale = Param::from(Array::scalar(2.0f32));
/// let mut model = Scaled { inner: Linear::new(3, 2)?, scale, size: 3 };
/// let names: Vec<String> = model.parameters().into_keys().collect();
/// assert_eq!(names, ["gain", "inner.bias", "inner.weight"]);
/// model.freeze_where(|name| name.starts_with("inner."));
/// assert_eq!(model.trainable_parameters().len(), 1);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// A plain array cannot be a field, because it would not be a parameter:
///
/// ```compile_fail
/// #[derive(ultramarine_nn::Module)]
/// struct Wrong {
///     weight: ultramarine::Array,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    note = "a parameter is a `Param`, which `Param::from(array)` makes of an array",
    note = "a field that is neither module nor parameter is left out by `#[module(skip)]`"
)]
pub trait Module {
    /// Calls the visitor with the parameters and the other leaves, in the order of the fields. The
    /// derive macro writes this function.
    fn visit(&self, visitor: &mut Visitor<'_>);

    /// Visits as [`Module::visit`] does, and lets the visitor change the leaves.
    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>);

    /// Returns all parameters by name, frozen ones and [`State`] included.
    fn parameters(&self) -> Parameters {
        let mut found = Parameters::new();
        self.visit(&mut Visitor::new(&mut |name, leaf| {
            if let Some(array) = leaf.array() {
                found.insert(name.to_owned(), array);
            }
        }));
        found
    }

    /// Returns the parameters that are not frozen, by name. [`value_and_grad`](crate::value_and_grad) differentiates
    /// with respect to these.
    fn trainable_parameters(&self) -> Parameters {
        let mut found = Parameters::new();
        self.visit(&mut Visitor::new(&mut |name, leaf| {
            if let Some(array) = leaf.trainable() {
                found.insert(name.to_owned(), array);
            }
        }));
        found
    }

    /// Returns all parameters without their names, for evaluation: `eval(&model.arrays())`.
    fn arrays(&self) -> Vec<Array> {
        self.parameters().into_values().collect()
    }

    /// Returns the number of elements of all parameters.
    fn num_parameters(&self) -> usize {
        self.parameters().values().map(Array::size).sum()
    }

    /// Freezes all parameters: they get no gradients and are not updated. [`Module::freeze_where`] freezes some of
    /// them; [`Module::unfreeze`] is the inverse.
    fn freeze(&mut self) {
        set_frozen(self, true, &|_| true);
    }

    /// Makes all parameters trainable. [`State`] stays frozen.
    fn unfreeze(&mut self) {
        set_frozen(self, false, &|_| true);
    }

    /// Freezes the parameters for whose names `select` returns true. Other parameters do not change.
    fn freeze_where(&mut self, select: impl Fn(&str) -> bool)
    where
        Self: Sized,
    {
        set_frozen(self, true, &select);
    }

    /// Makes the parameters trainable for whose names `select` returns true. Other parameters do not change.
    fn unfreeze_where(&mut self, select: impl Fn(&str) -> bool)
    where
        Self: Sized,
    {
        set_frozen(self, false, &select);
    }

    /// Sets training mode, which is the mode of new modules: [`Dropout`](crate::Dropout) drops elements, and
    /// [`BatchNorm`](crate::BatchNorm) uses the batch's statistics.
    fn train(&mut self) {
        set_training(self, true);
    }

    /// Sets evaluation mode, the opposite of [`Module::train`]. It does not evaluate arrays.
    fn eval(&mut self) {
        set_training(self, false);
    }

    /// Replaces parameters. Parameters that are not in `arrays` do not change.
    ///
    /// # Errors
    /// [`Error::Value`](ultramarine::Error::Value) that names the arrays that are not parameters or have another shape.
    /// After an error, nothing is changed.
    fn update(&mut self, arrays: &Parameters) -> Result<()> {
        weights::check(&self.parameters(), arrays, "update", None, false)?;
        weights::assign(self, arrays);
        Ok(())
    }

    /// Replaces all parameters.
    ///
    /// # Errors
    /// As [`Module::update`], and if parameters are missing from `arrays`.
    fn update_all(&mut self, arrays: &Parameters) -> Result<()> {
        weights::check(&self.parameters(), arrays, "update_all", None, true)?;
        weights::assign(self, arrays);
        Ok(())
    }

    /// Replaces the parameters by those of a file, `.safetensors` or `.npz`.
    ///
    /// # Errors
    /// Errors of reading; [`Error::Value`](ultramarine::Error::Value) that names the file and the weights that are not
    /// parameters, are missing, or have another shape. After an error, nothing is changed.
    fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        let path = path.as_ref();
        let arrays = weights::read("load_weights", path)?;
        weights::check(&self.parameters(), &arrays, "load_weights", Some(path), true)?;
        weights::assign(self, &arrays);
        Ok(())
    }

    /// As [`Module::load_weights`], but loads only the parameters that are in the file. Weights that are not parameters
    /// are ignored, and parameters that the file lacks do not change.
    ///
    /// # Errors
    /// Errors of reading; [`Error::Value`](ultramarine::Error::Value) that names the weights of another shape.
    fn load_known_weights(&mut self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        let path = path.as_ref();
        let mut arrays = weights::read("load_known_weights", path)?;
        let present = self.parameters();
        arrays.retain(|name, _| present.contains_key(name));
        weights::check(&present, &arrays, "load_known_weights", Some(path), false)?;
        weights::assign(self, &arrays);
        Ok(())
    }

    /// Writes all parameters to a file, `.safetensors` or `.npz`.
    ///
    /// # Errors
    /// [`Error::Value`](ultramarine::Error::Value) for another extension; errors of writing.
    fn save_weights(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        weights::write("save_weights", path.as_ref(), &self.parameters())
    }

    /// Casts the parameters of real floats to another dtype, such as float16. Other parameters do not change.
    fn set_dtype(&mut self, dtype: Dtype) {
        self.visit_mut(&mut VisitorMut::new(&mut |_, leaf| {
            let array = leaf.array();
            if let Some(array) = array.filter(|a| a.dtype().is_floating()) {
                leaf.set(array.astype(dtype));
            }
        }));
    }
}

/// A function of one array, with or without parameters. [`Sequential`](crate::Sequential) chains
/// layers. A layer with other arguments has a method `forward` of its own instead of this trait.
pub trait Layer {
    /// Computes the layer.
    ///
    /// # Errors
    /// Errors of its operations, for shapes and dtypes that do not fit.
    fn forward(&self, x: &Array) -> Result<Array>;
}

/// A leaf of a module, as [`Module::visit`] passes it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Leaf<'a> {
    /// A parameter.
    Param(&'a Param),
    /// Numbers that calls change, such as running statistics.
    State(&'a State),
    /// The mode of a part that behaves differently in training: true in training mode.
    Mode(bool),
}

impl Leaf<'_> {
    /// Returns the array of a parameter or a state; `None` for a mode.
    pub fn array(self) -> Option<Array> {
        match self {
            Leaf::Param(param) => Some(Array::clone(param)),
            Leaf::State(state) => Some(state.get()),
            Leaf::Mode(_) => None,
        }
    }

    /// Returns the array of a parameter that is not frozen; `None` for every other leaf.
    pub fn trainable(self) -> Option<Array> {
        match self {
            Leaf::Param(param) if !param.is_frozen() => Some(Array::clone(param)),
            _ => None,
        }
    }
}

/// A leaf of a module that can be changed, as [`Module::visit_mut`] passes it.
#[non_exhaustive]
pub enum LeafMut<'a> {
    /// A parameter.
    Param(&'a mut Param),
    /// Numbers that calls change.
    State(&'a State),
    /// A part that behaves differently in training.
    Mode(&'a mut dyn Mode),
    /// A layer that has a quantized variant.
    Quantizable(&'a mut dyn Quantizable),
}

impl LeafMut<'_> {
    /// The array of a parameter or a state.
    fn array(&self) -> Option<Array> {
        match self {
            LeafMut::Param(param) => Some(Array::clone(param)),
            LeafMut::State(state) => Some(state.get()),
            _ => None,
        }
    }

    /// Replaces the array of a parameter or a state.
    pub(crate) fn set(self, array: Array) {
        match self {
            LeafMut::Param(param) => param.set(array),
            LeafMut::State(state) => state.set(array),
            _ => {}
        }
    }
}

/// A part that behaves differently in training and in evaluation. [`Module::train`] and [`Module::eval`] set its mode.
pub trait Mode {
    /// Sets training mode (true) or evaluation mode.
    fn set_training(&mut self, training: bool);
}

/// The names of the fields on the path to the visited one.
#[derive(Default)]
struct Names(String);

impl Names {
    /// Enters a field; returns the previous length of the path, for leaving the field.
    fn enter(&mut self, name: &str) -> usize {
        let before = self.0.len();
        if before > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        before
    }

    fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }
}

macro_rules! visitors {
    ($($(#[$doc:meta])* $visitor:ident $leaf:ident $visit:ident [$($reference:tt)+];)*) => {$(
        $(#[$doc])*
        pub struct $visitor<'v> {
            names: Names,
            found: &'v mut dyn FnMut(&str, $leaf<'_>),
        }

        impl<'v> $visitor<'v> {
            /// Makes a visitor that calls `found` with the path and the leaf of each parameter, state and mode.
            pub fn new(found: &'v mut dyn FnMut(&str, $leaf<'_>)) -> Self {
                $visitor { names: Names::default(), found }
            }

            /// Visits the leaves of a field; `name` becomes a part of their paths.
            pub fn field<M: Module + ?Sized>(&mut self, name: &str, module: $($reference)+ M) {
                self.within(name, |visitor| module.$visit(visitor));
            }

            /// Calls `visit` for a part under a name. The derive macro uses it.
            #[doc(hidden)]
            pub fn within(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
                let before = self.names.enter(name);
                visit(self);
                self.names.leave(before);
            }

            /// Passes a leaf to the visitor's function, with the path of the current field.
            pub fn leaf(&mut self, leaf: $leaf<'_>) {
                (self.found)(&self.names.0, leaf);
            }
        }
    )*};
}

visitors! {
    /// A walk over the leaves of a module; see [`Module::visit`].
    ///
    /// ```
    /// use ultramarine_nn::{Leaf, Linear, Module, Visitor, sequential};
    /// let model = sequential![Linear::new(2, 3)?, Linear::new(3, 1)?];
    /// let mut names = Vec::new();
    /// model.visit(&mut Visitor::new(&mut |name, leaf| {
    ///     if let Leaf::Param(_) = leaf {
    ///         names.push(name.to_owned());
    ///     }
    /// }));
    /// assert_eq!(names[0], "layers.0.weight");
    /// assert_eq!(names.len(), 4);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    Visitor Leaf visit [&];
    /// A walk over the leaves of a module that may change them; see [`Module::visit_mut`].
    VisitorMut LeafMut visit_mut [&mut];
}

fn set_frozen<M: Module + ?Sized>(module: &mut M, frozen: bool, select: &dyn Fn(&str) -> bool) {
    module.visit_mut(&mut VisitorMut::new(&mut |name, leaf| {
        if let LeafMut::Param(param) = leaf
            && select(name)
        {
            param.set_frozen(frozen);
        }
    }));
}

fn set_training<M: Module + ?Sized>(module: &mut M, training: bool) {
    module.visit_mut(&mut VisitorMut::new(&mut |_, leaf| {
        if let LeafMut::Mode(mode) = leaf {
            mode.set_training(training);
        }
    }));
}
