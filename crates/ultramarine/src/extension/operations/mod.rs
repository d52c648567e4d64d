//! Ordinary operations for extensions, named as in `mlx.core`. `list.rs` has their table; the documentation is
//! generated from it too.

mod list;
mod values;

use super::boundary::{guard, list as slice, read_all, text};
use super::handles::{arrays, hand_out};
use super::types::enter;
use crate::array::Array;
use crate::error::{Error, Result, bail};
use core::ffi::{c_char, c_void};
use std::fmt::Write;
use ultramarine_abi::extension::{ArrayHandle, Attribute, PlaceCode};
use ultramarine_abi::{self as abi, Status};
use values::{Spec, Values};

/// An operation of the table.
struct Operation {
    name: &'static str,
    /// Smallest and largest number of operands.
    operands: (usize, usize),
    attributes: &'static [Spec],
    run: fn(&[Array], &Values<'_>) -> Result<Vec<Array>>,
}

impl Operation {
    fn named(name: &str) -> Result<&'static Operation> {
        // A linear search is enough, because the table is short.
        list::operations().find(|o| o.name == name).ok_or_else(|| {
            let text = format!("There is no operation of this name{}. See the list of operations in docs/write-an-operation.md.", alike(name));
            Error::value(name, text)
        })
    }

    /// Text for the number of operands.
    fn count(&self) -> String {
        match self.operands {
            (a, b) if a == b => a.to_string(),
            (a, usize::MAX) => format!("{a} or more"),
            (a, b) => format!("{a} to {b}"),
        }
    }

    fn run(&self, inputs: &[Array], attributes: &[Attribute]) -> Result<Vec<Array>> {
        let (fewest, most) = self.operands;
        if inputs.len() < fewest || inputs.len() > most {
            bail!(
                self.name,
                "Expected {} operands, got {}. Pass as many as the operation has.",
                self.count(),
                inputs.len()
            );
        }
        (self.run)(inputs, &Values::new(self, attributes)?)
    }
}

/// Names with the same beginning, as a hint in errors.
fn alike(name: &str) -> String {
    let start: String = name.chars().take(3).collect();
    let found = list::operations().map(|o| o.name).filter(|n| n.starts_with(&start));
    let found: Vec<_> = found.take(4).collect();
    if found.is_empty() { String::new() } else { format!("; there are {}", found.join(", ")) }
}

/// The table of operations that extensions may call, as Markdown: names, numbers of operands, attributes with
/// their kinds and defaults.
///
/// ```
/// assert!(ultramarine::extension::operations().contains("| `matmul` | 2 |"));
/// ```
pub fn operations() -> String {
    let mut page = String::from("| operation | operands | attributes |\n| --- | --- | --- |\n");
    for operation in list::operations() {
        let attributes: Vec<_> = operation.attributes.iter().map(Spec::markdown).collect();
        let (name, count, all) = (operation.name, operation.count(), attributes.join(", "));
        let _ = writeln!(page, "| `{name}` | {count} | {all} |");
    }
    page
}

/// Calls an operation of the table.
///
/// # Errors
/// As the operation; [`Error::Value`] for an unknown name, or a wrong number of operands.
#[cfg(test)]
fn call(name: &str, inputs: &[Array], attributes: &[Attribute]) -> Result<Vec<Array>> {
    Operation::named(name)?.run(inputs, attributes)
}

#[allow(clippy::too_many_arguments, reason = "the contract's")]
pub(super) unsafe extern "C" fn operation(
    _: *mut c_void,
    name: *const c_char,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    attributes: *const Attribute,
    n_attributes: u32,
    place: *const PlaceCode,
    results: *mut *mut ArrayHandle,
    n_results: u32,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "operation";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let operation = Operation::named(text(NAME, "the name", name)?)?;
            let name = operation.name;
            let inputs = arrays(name, inputs, n_inputs)?;
            let attributes = read_all(name, attributes, n_attributes, 0)?;
            // Check the room for results before any result is made.
            slice(name, "the results", results.cast_const(), n_results as u64)?;
            let _scope = enter(name, place)?;
            let found = operation.run(&inputs, &attributes)?;
            if found.len() != n_results as usize {
                bail!(
                    name,
                    "The operation has {} results, not {n_results}. Pass room for each.",
                    found.len()
                );
            }
            Ok(hand_out(name, found, results)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different() {
        let mut names: Vec<_> = list::operations().map(|o| o.name).collect();
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|w| w[0] == w[1]), None);
    }

    #[test]
    fn one_needs_its_operands() {
        let x = Array::scalar(2.0f32);
        let y = call("multiply", &[x.clone(), x.clone()], &[]).unwrap();
        assert_eq!(y[0].item::<f32>().unwrap(), 4.0);
        let error = call("multiply", &[x], &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "[multiply] Expected 2 operands, got 1. Pass as many as the operation has."
        );
        let error = call("multiplication", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("There is no operation of this name"), "{error}");
        assert!(error.contains("multiply"), "{error}");
    }
}
