//! Tables that the Python package wrote, and the arrays that it wrote them for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use ultramarine::{Array, Dtype, Result};
use ultramarine_nn::Parameters;
use ultramarine_test_support::{Tolerance, assert_close};

/// The path of a file beside the tables.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name)
}

/// Shape and projections of an array, as the table has them.
#[derive(Clone, Debug)]
pub struct Described {
    pub shape: Vec<usize>,
    pub sums: [f64; 2],
}

impl Described {
    /// From the last words of a line.
    pub fn parse(words: &[&str]) -> Described {
        let [shape, a, b] = words else { panic!("three words, not {words:?}") };
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{word} is no number"));
        Described { shape: sizes(shape), sums: [number(a), number(b)] }
    }

    /// Compares an array with it.
    #[track_caller]
    pub fn check(&self, what: &str, array: &Array, bound: f64) {
        assert_eq!(array.shape(), self.shape, "{what}");
        let values = values(array);
        let sum = |weight: &dyn Fn(f64) -> f64| {
            values.iter().enumerate().map(|(i, v)| v * weight(i as f64)).sum::<f64>()
        };
        let sums = [sum(&|i| (1.0 + 0.3 * i).sin()), sum(&|i| (2.0 + 0.7 * i).cos())];
        // Sums of many numbers near 0 are as exact as the numbers.
        let size = values.iter().map(|v| v.abs()).sum::<f64>();
        assert_close(what, &sums, &self.sums, Tolerance::absolute(bound * (1.0 + size)));
    }
}

/// `2x3`, or `-` for none.
pub fn sizes(word: &str) -> Vec<usize> {
    match word {
        "-" => Vec::new(),
        _ => word.split('x').map(|n| n.parse().expect("sizes")).collect(),
    }
}

/// The numbers of an array.
pub fn values(array: &Array) -> Vec<f64> {
    array.astype(Dtype::Float64).to_vec::<f64>().expect("values")
}

/// A table: the lines of each case, as words.
pub struct Table {
    cases: RefCell<BTreeMap<String, Vec<Vec<String>>>>,
}

impl Table {
    pub fn read(name: &str) -> Table {
        let text = std::fs::read_to_string(path(name)).expect("a table");
        let mut cases: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        let mut current = String::new();
        for line in text.lines() {
            match line.strip_prefix("case ") {
                Some(case) => {
                    current = case.to_owned();
                    assert!(cases.insert(current.clone(), Vec::new()).is_none(), "{case} twice");
                }
                None => {
                    let words = line.split(' ').map(str::to_owned).collect();
                    cases.get_mut(&current).expect("a case").push(words);
                }
            }
        }
        Table { cases: cases.into() }
    }

    /// Takes the lines of a case out of the table.
    #[track_caller]
    pub fn take(&self, case: &str) -> Lines {
        let found = self.cases.borrow_mut().remove(case);
        Lines(found.unwrap_or_else(|| panic!("the table has no case {case}")))
    }

    /// Checks that each case was taken.
    #[track_caller]
    pub fn finish(self) {
        let left: Vec<String> = self.cases.into_inner().into_keys().collect();
        assert!(left.is_empty(), "cases without a test: {left:?}");
    }
}

/// The lines of a case.
pub struct Lines(Vec<Vec<String>>);

impl Lines {
    /// The words of the lines that begin with one, without it.
    pub fn of<'a>(&'a self, first: &'a str) -> impl Iterator<Item = Vec<&'a str>> + 'a {
        let lines = self.0.iter().filter(move |line| line[0] == first);
        lines.map(|line| line[1..].iter().map(String::as_str).collect())
    }

    /// Descriptions by name, of the lines that begin with a word.
    pub fn described(&self, first: &str) -> BTreeMap<String, Described> {
        let last = |words: Vec<&str>| {
            let (name, rest) = words.split_first().expect("a name");
            ((*name).to_owned(), Described::parse(&rest[rest.len() - 3..]))
        };
        self.of(first).map(last).collect()
    }

    /// The description of the only line that begins with a word.
    pub fn only(&self, first: &str) -> Described {
        Described::parse(&self.of(first).next().expect("a line"))
    }

    /// The inputs that the case has, in a dtype of floats.
    pub fn inputs(&self, dtype: Dtype) -> Vec<Array> {
        let input = |(number, words): (usize, Vec<&str>)| {
            argument(number, &sizes(words[1]), words[0], dtype)
        };
        self.of("input").enumerate().map(input).collect()
    }
}

/// Elements of the parameter of a number, by name.
pub fn formula(number: usize, shape: &[usize]) -> Vec<f64> {
    let start = 1.3 * (number as f64 + 1.0);
    let size: usize = shape.iter().product();
    (0..size).map(|i| f64::from((0.5 * (start + 0.7 * i as f64).sin()) as f32)).collect()
}

pub fn argument(number: usize, shape: &[usize], kind: &str, dtype: Dtype) -> Array {
    let size: usize = shape.iter().product();
    let numbers = 0..size;
    if kind == "int" {
        let ints: Vec<i32> = numbers.map(|i| ((7 * i + 3 + number) % 5) as i32).collect();
        return Array::from_slice(&ints, shape).expect("integers");
    }
    let float = |i: usize| {
        let v = (0.5 + 0.9 * i as f64 + number as f64).cos() as f32;
        if kind == "positive" { v.abs() * 0.9 + 0.05 } else { v }
    };
    let floats: Vec<f64> = numbers.map(|i| f64::from(float(i))).collect();
    Array::from_slice(&floats, shape).expect("floats").astype(dtype)
}

/// A scalar of a result, for gradients.
pub fn total(y: &Array) -> Result<Array> {
    let weights: Vec<f64> = (0..y.size()).map(|i| (0.2 + 1.1 * i as f64).cos()).collect();
    let weights = Array::from_slice(&weights, y.shape())?.astype(y.dtype());
    y.multiply(&weights)?.sum(None)
}

/// Numbers of the formula for each parameter, in a dtype of floats.
pub fn formula_values(parameters: &Parameters, dtype: Dtype) -> Result<Parameters> {
    let value = |(number, (name, array)): (usize, (&String, &Array))| {
        let up = if name.ends_with("running_var") { 1.5 } else { 0.0 };
        let values: Vec<f64> = formula(number, array.shape()).into_iter().map(|v| v + up).collect();
        Ok((name.clone(), Array::from_slice(&values, array.shape())?.astype(dtype)))
    };
    parameters.iter().enumerate().map(value).collect()
}
