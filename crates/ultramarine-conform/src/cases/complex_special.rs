//! Special values of functions of complex numbers: infinities, NaN and signed zeros.

use super::{Case, case};
use crate::compare::Expected;
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::tensor::{Array, Layout};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LN_10, PI};
use ultramarine_abi::schema::{UnaryAttrs, op, unary};

const TABLE: &str = include_str!("complex_special.txt");

/// The table's positive finite numbers.
const FINITE: [f64; 2] = [1.0, 2.5];

/// One part of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    value: f64,
    /// True if either sign of the result is right.
    any_sign: bool,
}

impl Part {
    fn scaled(self, by: f64) -> Part {
        Part { value: self.value * by, ..self }
    }

    fn is(self, got: f64) -> bool {
        if self.value.is_nan() || got.is_nan() {
            return self.value.is_nan() && got.is_nan();
        }
        let near = self.value == got || {
            let (a, b) = (self.value.abs(), got.abs());
            a == b || (a - b).abs() <= 4.0 * DType::F32.epsilon() * a
        };
        near && (self.any_sign || self.value.is_sign_negative() == got.is_sign_negative())
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", if self.any_sign { "±" } else { "" }, self.value)
    }
}

/// An operand, and the result's parts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    z: (f64, f64),
    re: Part,
    im: Part,
}

impl Row {
    fn conjugated(self) -> Row {
        Row { z: (self.z.0, -self.z.1), im: self.im.scaled(-1.0), ..self }
    }

    /// The row for the negative operand; `sign` is that of the result.
    fn negated(self, sign: f64) -> Row {
        let z = (-self.z.0, -self.z.1);
        Row { z, re: self.re.scaled(sign), im: self.im.scaled(sign) }
    }

    /// Returns the row of z -> f(iz), derived from that of f.
    fn turned(self) -> Row {
        Row { z: (self.z.1, -self.z.0), ..self }
    }

    /// Returns the row of z -> -i f(iz), derived from that of f.
    fn turned_back(self) -> Row {
        Row { re: self.im, im: self.re.scaled(-1.0), ..self.turned() }
    }
}

/// Returns the rows of a function; none if the function has no special values.
fn rows(code: u32) -> Vec<Row> {
    let of = |name: &str| section(name).into_iter();
    match code {
        unary::SIN => of("sinh").map(Row::turned_back).collect(),
        unary::TAN => of("tanh").map(Row::turned_back).collect(),
        unary::ARCSIN => of("arcsinh").map(Row::turned_back).collect(),
        unary::ARCTAN => of("arctanh").map(Row::turned_back).collect(),
        unary::COS => of("cosh").map(Row::turned).collect(),
        unary::LOG2 => of("log").map(|row| logarithm(row, LN_2)).collect(),
        unary::LOG10 => of("log").map(|row| logarithm(row, LN_10)).collect(),
        _ => section(unary::NAMES.get(code as usize).copied().unwrap_or("")),
    }
}

/// Returns the row of a logarithm, derived from that of the natural logarithm.
fn logarithm(row: Row, base: f64) -> Row {
    Row { re: row.re.scaled(1.0 / base), im: row.im.scaled(1.0 / base), ..row }
}

/// A section of the table, with all rows that follow from its symmetry.
fn section(name: &str) -> Vec<Row> {
    let mut all = Vec::new();
    let mut symmetry = None;
    for line in TABLE.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            symmetry = head.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        } else if let Some(symmetry) = symmetry {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [x, y, re, im] = columns[..] else { panic!("not a row: {line}") };
            for x in operands(x) {
                for y in operands(y) {
                    let row = Row { z: (x, y), re: part(re, y), im: part(im, y) };
                    all.extend(with_symmetry(row, symmetry));
                }
            }
        }
    }
    all
}

fn with_symmetry(row: Row, symmetry: &str) -> Vec<Row> {
    let both = |row: Row| [row, row.conjugated()];
    match symmetry {
        "asymmetric" => vec![row],
        "conjugate" => both(row).to_vec(),
        "odd" => [both(row), both(row.negated(-1.0))].concat(),
        "even" => [both(row), both(row.negated(1.0))].concat(),
        other => panic!("no symmetry: {other}"),
    }
}

fn operands(text: &str) -> Vec<f64> {
    let of = |word: &str| match word {
        "f" => FINITE.to_vec(),
        "-f" => FINITE.map(|x| -x).to_vec(),
        number => vec![number.parse().unwrap_or_else(|_| panic!("no operand: {number}"))],
    };
    text.split(',').flat_map(of).collect()
}

/// A part of a result, `y` being the operand's imaginary part.
fn part(text: &str, y: f64) -> Part {
    let (any_sign, text) = match text.strip_prefix('?') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let signs = [("cos", y.cos()), ("sin2", (2.0 * y).sin()), ("sin", y.sin())];
    let signed = signs.iter().find_map(|(word, like)| Some((text.strip_suffix(word)?, *like)));
    let (text, like) = signed.unwrap_or((text, f64::NAN));
    let value = match text {
        "pi" => PI,
        "pi/2" => FRAC_PI_2,
        "pi/4" => FRAC_PI_4,
        "3pi/4" => 3.0 * FRAC_PI_4,
        number => number.parse().unwrap_or_else(|_| panic!("no result: {number}")),
    };
    Part { value: if like.is_nan() { value } else { value.copysign(like) }, any_sign }
}

/// The case of a unary code of complex64; `None` if it has no special values.
pub fn case_of(code: u32) -> Option<Case> {
    let rows = rows(code);
    if rows.is_empty() {
        return None;
    }
    let values: Vec<Num> = rows.iter().map(|row| Num::Complex(row.z.0, row.z.1)).collect();
    let shape = vec![values.len() as i64];
    let mut made = case(
        "special values".into(),
        (op::UNARY, words(&UnaryAttrs::new(code))),
        vec![(Array::cycle(DType::C64, &shape, &values), Layout::Contiguous)],
        (DType::C64, shape),
        |_| vec![Expected::ANY; values.len()],
    );
    made.check = Some(Box::new(move |_, outputs| judged(&rows, &outputs[0])));
    Some(made)
}

fn judged(rows: &[Row], output: &Array) -> Result<f64, String> {
    for (row, got) in rows.iter().zip(&output.values) {
        let z = got.complex();
        ensure!(
            row.re.is(z.re) && row.im.is(z.im),
            "of {} it is {got}, expected {} and {}i",
            Num::Complex(row.z.0, row.z.1),
            row.re,
            row.im
        );
    }
    Ok(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    const INF: f64 = f64::INFINITY;

    fn found(code: u32, z: (f64, f64)) -> Vec<Row> {
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        rows(code).into_iter().filter(|r| same(r.z.0, z.0) && same(r.z.1, z.1)).collect()
    }

    #[test]
    fn rows_agree_where_symmetries_give_an_operand_twice() {
        for code in 0..unary::NAMES.len() as u32 {
            for row in rows(code) {
                for other in found(code, row.z) {
                    let agree = |a: Part, b: Part| a.any_sign || b.any_sign || a.is(b.value);
                    assert!(
                        agree(row.re, other.re) && agree(row.im, other.im),
                        "{row:?} {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn functions_of_turned_operands() {
        // sin(-inf i): -i sinh(inf).
        let row = found(unary::SIN, (0.0, -INF))[0];
        assert_eq!((row.re.value, row.im.value), (0.0, -INF));
        let row = found(unary::TANH, (-INF, 2.5))[0];
        assert_eq!((row.re.value, row.im.value.to_bits()), (-1.0, (-0.0f64).to_bits()));
        assert!(found(unary::NEGATIVE, (0.0, 0.0)).is_empty());
    }

    #[test]
    fn a_zero_of_the_wrong_sign_is_wrong() {
        let zero = Part { value: -0.0, any_sign: false };
        assert!(!zero.is(0.0) && zero.is(-0.0) && !zero.is(f64::NAN));
        assert!(Part { any_sign: true, ..zero }.is(0.0));
    }
}
