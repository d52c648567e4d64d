//! The cases of every op: tensors, and the expected results.

mod arg_reduce;
mod complex_special;
mod conv;
mod copy;
mod create;
mod elementwise;
mod fft;
mod grouped;
mod index;
mod lanes;
mod linalg;
mod matmul;
mod nn;
mod quantized;
mod random;
mod reduce;
mod scan;
mod select;
mod sort;

use crate::compare::Expected;
use crate::device::words;
use crate::dtype::{DType, Num};
use crate::rules;
use crate::run::Request;
use crate::tensor::{Array, Layout, Placed};
use ultramarine_abi::precision;
use ultramarine_abi::schema::{Family, NoAttrs, OpId, OpSchema};

/// Checks the outputs for the given inputs. Returns the largest error in units of the last place,
/// or a description of what is wrong.
pub type Check = Box<dyn Fn(&[Array], &[Array]) -> Result<f64, String>>;

/// Returns the cases of an operation for each dtype, from the module of its family; `None` if the
/// module has none.
pub fn of(op: &OpSchema, scope: &Scope) -> Option<Vec<OpUnderTest>> {
    match op.family {
        Family::Copy => Some(copy::copy(scope)),
        Family::Create => create::of(op.id, scope),
        Family::Elementwise => elementwise::of(op.id, scope),
        Family::Select => Some(select::select(scope)),
        Family::Reduce => Some(reduce::reduce(scope)),
        Family::ArgReduce => Some(arg_reduce::arg_reduce(scope)),
        Family::Scan => Some(scan::scan(scope)),
        Family::Sort => sort::of(op.id, scope),
        Family::Index => index::of(op.id, scope),
        Family::Matmul => matmul::of(op.id, scope),
        Family::Conv => Some(conv::of(op.id, scope)),
        Family::Fft => Some(fft::fft(scope)),
        Family::Linalg => Some(linalg::decomposition(op.id, scope)),
        Family::Random => Some(random::random_bits(scope)),
        Family::Nn => nn::of(op.id, scope),
        Family::Quantized => quantized::of(op.id, scope),
    }
}

/// A case: one request with its operands, and the expected result. [`crate::run`] runs it,
/// [`crate::compare`] compares.
pub struct Case {
    /// The shapes and layouts of the case.
    pub what: String,
    pub request: Request,
    pub expected: Vec<Expected>,
    /// A check that replaces `expected` if results are not unique.
    pub check: Option<Check>,
    /// Values of the inputs. They are shown with a wrong element.
    pub operands: Vec<Array>,
    /// True if the request counts for grades: it has contiguous inputs, or at least strided ones.
    pub plain: bool,
    /// True if another run has to give bitwise identical results on devices that claim this for all
    /// operations.
    pub repeats: bool,
}

/// An operation under test for one dtype, with its [`Case`]s: an operation of the contract, or one
/// of its codes.
pub struct OpUnderTest {
    pub family: OpId,
    /// The code's name, or another text that distinguishes the op in its family.
    pub code: String,
    pub dtype: DType,
    /// Grade that needs it.
    pub need: &'static str,
    pub cases: Vec<Case>,
}

impl OpUnderTest {
    /// An op of a family, or one with a code.
    pub fn new(
        scope: &Scope,
        family: OpId,
        code: Option<u32>,
        dtype: DType,
        cases: Vec<Case>,
    ) -> Self {
        let name = code.and_then(|c| rules::code_row(family, c)).map_or("", |row| row.name);
        let need = rules::need(family, code, dtype, scope.arithmetic);
        OpUnderTest { family, code: name.to_owned(), dtype, need, cases }
    }

    /// Makes an op of float32 with a precision. A device may refuse it.
    pub fn in_precision(family: OpId, name: &str, cases: Vec<Case>) -> Self {
        OpUnderTest { family, code: name.to_owned(), dtype: DType::F32, need: "optional", cases }
    }
}

/// Precisions that products and convolutions of float32 may have, with names and epsilons.
pub const PRECISIONS: [(&str, u32, f64); 2] =
    [("high", precision::HIGH, 1.0 / 1024.0), ("medium", precision::MEDIUM, 1.0 / 128.0)];

/// The properties of a device that decide which cases are made.
#[derive(Clone, Copy)]
pub struct Scope {
    /// All layouts for each op.
    pub full: bool,
    pub storage: u32,
    pub arithmetic: u32,
    /// Subnormal numbers are kept.
    pub subnormals: bool,
    /// Epsilon of float32 products, if it is not float32's.
    pub product_epsilon: f64,
}

impl Scope {
    /// Stored dtypes for which an op is defined.
    pub fn dtypes(&self, family: OpId, code: Option<u32>) -> Vec<DType> {
        let mut all: Vec<DType> = DType::all().filter(|d| d.in_mask(self.storage)).collect();
        all.retain(|d| rules::is_defined(family, code, *d));
        all
    }

    /// Returns the layouts for the `n`-th op of a family: contiguous, and one of the others in
    /// turn. If `full`, all layouts.
    pub fn layouts(&self, n: usize) -> Vec<Layout> {
        let mut all = vec![Layout::Contiguous];
        if self.full {
            all.push(Layout::Offset);
            all.extend(Layout::STRIDED);
        } else {
            let others = [
                Layout::Transposed,
                Layout::Negative,
                Layout::Broadcast,
                Layout::Gaps,
                Layout::Offset,
            ];
            all.push(others[n % others.len()]);
        }
        all
    }

    /// Like [`Scope::layouts`], for matrix operands: the other layouts include transposed ones.
    pub fn matrix_layouts(&self, n: usize) -> Vec<Layout> {
        let mut all = self.layouts(n / 2);
        if self.full {
            all.push(Layout::Swapped);
        } else if n.is_multiple_of(2) {
            all[1] = Layout::Swapped;
        }
        all
    }

    /// Returns the epsilon of products of a dtype if the device shortens the mantissa; otherwise 0.
    pub fn reduced(&self, dtype: DType) -> f64 {
        if dtype == DType::F32 { self.product_epsilon } else { 0.0 }
    }
}

/// The shapes of elementwise cases under a layout: enough elements for `n` values.
pub fn shapes(layout: Layout, n: usize) -> Vec<Vec<i64>> {
    let n = n as i64;
    match layout {
        Layout::Contiguous => vec![vec![n], vec![]],
        Layout::Offset => vec![vec![1, n, 1]],
        Layout::Broadcast => vec![vec![2, (n + 2) / 3, 3]],
        _ => vec![vec![3, (n + 11) / 12, 4]],
    }
}

/// Name of a case: its shape and layout.
fn case_name(shape: &[i64], layout: Layout) -> String {
    format!("{shape:?} {}", layout.name())
}

/// Layouts and shapes of an elementwise op, the `n`-th of its family, for `count` values.
pub fn placements(scope: &Scope, n: usize, count: usize, wide: bool) -> Vec<(Layout, Vec<i64>)> {
    let mut all = Vec::new();
    for layout in scope.layouts(n) {
        all.extend(shapes(layout, count).into_iter().map(|shape| (layout, shape)));
    }
    if wide {
        all.extend(wide_shapes());
    }
    all
}

/// Elements of a case that is large enough for a backend to share among threads.
const MANY: i64 = 120_000;

/// Layouts and shapes of float32 tensors beyond the small ones: many elements, many axes.
/// One op of a family is enough for them.
fn wide_shapes() -> Vec<(Layout, Vec<i64>)> {
    vec![
        (Layout::Contiguous, vec![MANY]),
        (Layout::Transposed, vec![300, 400]),
        (Layout::Gaps, vec![MANY / 3, 3]),
        (Layout::Negative, vec![2, 3, 1, 2, 3, 2]),
        (Layout::Transposed, vec![2, 1, 3, 2, 2, 1, 3, 2]),
        (Layout::Broadcast, vec![1000, 120]),
    ]
}

/// A case; `expected` gets the operands.
pub fn case(
    what: String,
    (op, attributes): (OpId, Vec<u64>),
    inputs: Vec<(Array, Layout)>,
    (dtype, shape): (DType, Vec<i64>),
    expected: impl FnOnce(&[Array]) -> Vec<Expected>,
) -> Case {
    let mut operands = Vec::new();
    let mut placed = Vec::new();
    let mut plain = true;
    for (mut array, layout) in inputs {
        placed.push(Placed::new(&mut array, layout));
        plain &= layout.class() == ultramarine_abi::layout::CONTIGUOUS;
        operands.push(array);
    }
    let expected = expected(&operands);
    let output = Placed::output(dtype, &shape, Layout::Contiguous);
    Case {
        what,
        request: Request {
            op,
            attributes,
            inputs: placed,
            output,
            more: Vec::new(),
            scalars: Vec::new(),
            donated: None,
        },
        expected,
        check: None,
        operands,
        plain,
        repeats: true,
    }
}

/// Makes the same case with the output in the memory of its first input.
pub fn in_place(case: &Case) -> Case {
    Case {
        what: format!("{} in place", case.what),
        request: Request {
            donated: Some(0),
            output: case.request.inputs[0].clone(),
            ..case.request.clone()
        },
        expected: case.expected.clone(),
        check: None,
        operands: case.operands.clone(),
        plain: case.plain,
        repeats: case.repeats,
    }
}

/// The attributes of ops without.
pub fn none() -> Vec<u64> {
    words(&NoAttrs::new())
}

/// Numbers as values.
pub fn numbers(values: &[i64]) -> Vec<Num> {
    values.iter().map(|v| Num::Int((*v).into())).collect()
}
