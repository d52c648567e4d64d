//! Signatures: the arguments that a trace accepts.

use crate::shape::{Shape, Show};
use crate::{array::Array, dtype::Dtype};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Arrays as keyword arguments, by name: those of
/// [`Function::call_keywords`](super::Function::call_keywords).
pub type Keywords = BTreeMap<String, Array>;

/// The arguments that a trace of a [`Function`](super::Function) accepts: their number, names,
/// shapes and dtypes. `Display` formats it as in error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Shape and dtype of each positional argument.
    pub positional: Vec<(Shape, Dtype)>,
    /// Shape and dtype of each keyword argument.
    pub keywords: BTreeMap<String, (Shape, Dtype)>,
    /// If set, arguments may have other sizes, with the same number of dimensions.
    pub shapeless: bool,
}

impl Signature {
    /// The signature of these arguments.
    pub(super) fn of(positional: &[Array], keywords: &Keywords, shapeless: bool) -> Signature {
        let of = |a: &Array| (Shape::from_slice(a.shape()), a.dtype());
        Signature {
            positional: positional.iter().map(of).collect(),
            keywords: keywords.iter().map(|(name, a)| (name.clone(), of(a))).collect(),
            shapeless,
        }
    }

    /// Types of all arguments: positional ones, and keyword arguments in the order of their names.
    pub(super) fn types(&self) -> Vec<(Shape, Dtype)> {
        self.positional.iter().chain(self.keywords.values()).cloned().collect()
    }

    /// Returns true if a trace with this signature accepts arguments with the signature `given`.
    pub(super) fn takes(&self, given: &Signature) -> bool {
        let fits = |((shape, dtype), (of, given)): (&(Shape, Dtype), &(Shape, Dtype))| {
            dtype == given && if self.shapeless { shape.len() == of.len() } else { shape == of }
        };
        self.positional.len() == given.positional.len()
            && self.positional.iter().zip(&given.positional).all(fits)
            && self.keywords.keys().eq(given.keywords.keys())
            && self.keywords.values().zip(given.keywords.values()).all(fits)
    }
}

/// Prints one argument per line.
impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (positional, keywords) = (self.positional.len(), self.keywords.len());
        write!(f, "{positional} positional inputs and {keywords} keyword inputs:")?;
        for (i, (shape, dtype)) in self.positional.iter().enumerate() {
            write!(f, "\n   {}: {} {dtype}", i + 1, Show(shape))?;
        }
        for (name, (shape, dtype)) in &self.keywords {
            write!(f, "\n   {name:?}: {} {dtype}", Show(shape))?;
        }
        Ok(())
    }
}
