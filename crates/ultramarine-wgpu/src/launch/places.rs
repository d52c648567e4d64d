//! Generates code that finds the elements of tensors which are walked together. There is a separate form for each number
//! of axes: it needs neither loops nor divisions by variables, and drivers load values that all invocations share
//! together.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use ultramarine_abi::helper::Result;

/// Maximum number of axes for which there is a special form. With more axes, a kernel walks a list.
pub const AXES: usize = 4;

/// A value for each number of axes up to [`AXES`], and another for more axes. Each is made when it
/// is first needed.
pub struct Forms<T>([OnceLock<Result<Arc<T>>>; AXES + 1]);

impl<T> Default for Forms<T> {
    fn default() -> Self {
        Self(Default::default())
    }
}

impl<T> Forms<T> {
    /// The form for the given number of axes.
    pub fn get(
        &self,
        axes: usize,
        make: impl FnOnce(Option<usize>) -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        let axes = Some(axes.max(1)).filter(|n| *n <= AXES);
        self.0[axes.unwrap_or(0)].get_or_init(|| make(axes)).clone()
    }
}

/// A value that is the same for all elements. Each invocation computes it once, before its
/// elements.
pub struct Once {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: &'static str,
    /// An expression for it.
    pub value: String,
}

impl Once {
    /// A value of type u32.
    pub fn index(name: impl Into<String>, value: String) -> Self {
        Self { name: name.into(), kind: "u32", value }
    }

    /// The declarations of the values.
    pub fn lets(all: &[Self]) -> String {
        all.iter().map(|once| format!("let {} = {};\n", once.name, once.value)).collect()
    }
}

/// Generates the code that computes the offsets `at0`, `at1` ... of tensors for element `i`. Returns the shared values,
/// and the lines that come before the offsets are used. `table` is the location of a layout that has room for `most`
/// tensors. Unless the code is for any number of axes, the layout also contains its divisors.
pub fn places(
    table: &str,
    (tensors, most): (usize, usize),
    axes: Option<usize>,
) -> (Vec<Once>, String) {
    let width = most + 1;
    let mut each = String::new();
    let mut once = vec![Once::index("table", table.to_owned())];
    let word = |at: usize| format!("word(table + {at}u)");
    for k in 0..tensors {
        once.push(Once::index(format!("origin{k}"), word(k + 1)));
    }
    let Some(axes) = axes else {
        for k in 0..tensors {
            _ = writeln!(each, "var at{k} = origin{k};");
        }
        _ = write!(
            each,
            "var axes = word(table);\nvar w = table + {width}u;\nvar rest = i;\n\
             loop {{\nif (axes == 0u) {{ break; }}\naxes -= 1u;\nvar index = rest;\n\
             if (axes != 0u) {{\nlet size = word(w);\nrest = rest / size;\nindex -= rest * size;\n}}\n"
        );
        for k in 0..tensors {
            _ = writeln!(each, "at{k} += index * word(w + {}u);", k + 1);
        }
        _ = writeln!(each, "w += {width}u;\n}}");
        return (once, each);
    };
    let mut sums: Vec<String> = (0..tensors).map(|k| format!("origin{k}")).collect();
    let mut rest = "i".to_owned();
    for axis in 0..axes {
        let at = width * (axis + 1);
        let mut index = rest.clone();
        if axis + 1 < axes {
            let divisor = width * (axes + 1) + 2 * axis;
            once.push(Once::index(format!("size{axis}"), word(at)));
            once.push(Once::index(format!("factor{axis}"), word(divisor)));
            once.push(Once::index(format!("shift{axis}"), word(divisor + 1)));
            _ = writeln!(each, "let rest{axis} = divide({rest}, factor{axis}, shift{axis});");
            _ = writeln!(each, "let index{axis} = {rest} - rest{axis} * size{axis};");
            (index, rest) = (format!("index{axis}"), format!("rest{axis}"));
        }
        for (k, sum) in sums.iter_mut().enumerate() {
            once.push(Once::index(format!("step{k}_{axis}"), word(at + k + 1)));
            _ = write!(sum, " + {index} * step{k}_{axis}");
        }
    }
    for (k, sum) in sums.iter().enumerate() {
        _ = writeln!(each, "let at{k} = {sum};");
    }
    (once, each)
}
