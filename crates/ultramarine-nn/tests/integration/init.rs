//! Initialisers draw the numbers that Python's draw.

use crate::support::Described;
use ultramarine::{Array, Dtype, Result, random};
use ultramarine_nn::init::*;

#[test]
fn initialisers_are_those_of_python() -> Result<()> {
    let text = std::fs::read_to_string(crate::support::path("init.txt")).expect("a table");
    let mut lines = text.lines();
    let mut case = |name: &str, initialiser: &dyn Fn(&Array) -> Result<Array>| -> Result<()> {
        let line = lines.next().and_then(|line| line.strip_prefix("case ")).expect("a case");
        let (found, described) = line.rsplit_at_words(3);
        assert_eq!(found, name);
        let described = Described::parse(&described);
        random::seed(7)?;
        let array = initialiser(&Array::zeros(&described.shape, Dtype::Float32)?)?;
        assert_eq!(array.dtype(), Dtype::Float32, "{name}");
        described.check(name, &array, 1e-5);
        Ok(())
    };
    case("constant(0.5)", &constant(0.5))?;
    case("normal(1, 2)", &normal(1.0, 2.0))?;
    case("uniform(-1, 3)", &uniform(-1.0, 3.0))?;
    case("identity", &identity())?;
    case("glorot_normal", &glorot_normal(1.0))?;
    case("glorot_uniform(2)", &glorot_uniform(2.0))?;
    case("he_normal", &he_normal(Fan::In, 1.0))?;
    case("he_uniform(out)", &he_uniform(Fan::Out, 0.5))?;
    case("sparse(0.4)", &sparse(0.4, 1.0, 0.5))?;
    case("orthogonal(2)", &orthogonal(2.0))?;
    assert_eq!(lines.next(), None);
    Ok(())
}

trait SplitAtWords {
    fn rsplit_at_words(&self, n: usize) -> (String, Vec<&str>);
}

impl SplitAtWords for str {
    /// The text before the last `n` words, and those.
    fn rsplit_at_words(&self, n: usize) -> (String, Vec<&str>) {
        let words: Vec<&str> = self.split(' ').collect();
        let (before, last) = words.split_at(words.len() - n);
        (before.join(" "), last.to_vec())
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() -> Result<()> {
    let a = Array::zeros(&[3], Dtype::Float32)?;
    for (initialiser, text) in [
        (
            &identity() as &dyn Fn(&Array) -> Result<Array>,
            "[identity] The array has shape (3,). Pass a square matrix.",
        ),
        (&he_normal(Fan::In, 1.0), "[he_normal] The array has shape (3,). Pass at least two axes."),
        (&orthogonal(1.0), "[orthogonal] The array has shape (3,). Pass a matrix."),
    ] {
        assert_eq!(initialiser(&a).expect_err("an error").to_string(), text);
    }
    let half = normal(0.0, 1.0)(&Array::zeros(&[3], Dtype::Float16)?)?;
    assert_eq!(half.dtype(), Dtype::Float16);
    Ok(())
}
