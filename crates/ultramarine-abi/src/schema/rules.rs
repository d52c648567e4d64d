//! Types of the table of operations, and the macros that its rows go through.

use super::{DTYPES, Family, OpId};

/// Grade of the conformance kit that needs the operation. Each grade includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Native for float32 in a backend of grade basic.
    Basic,
    /// Native for every dtype that a device of grade complete computes with.
    Complete,
    /// No grade asks for it.
    Extra,
}

/// Rule for the dtype of an operation's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The main dtype.
    Main,
    /// bool.
    Bool,
    /// uint32.
    Uint32,
    /// float32 for complex64, else the main dtype.
    Real,
    /// The dtype that sums accumulate in: float32 for float16 and bfloat16, else the main dtype.
    Accumulated,
    /// Any dtype of a mask; the caller chooses.
    Any(u32),
    /// Given in the code's row.
    Code,
}

/// Rule for the dtype of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDtype {
    /// The main dtype, the same for all inputs that say so.
    Main,
    /// Any dtype of a mask.
    Of(u32),
}

/// Rule for the dtype of a scalar of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// The main dtype.
    Main,
    /// float64 if the main dtype is floating or complex, else int64.
    Float64OrInt64,
    /// float64.
    Float64,
    /// int64.
    Int64,
}

/// Relation of the shapes of an operation's inputs and output. `docs/operations.md` describes each
/// in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeRule {
    /// There are no inputs; the output has any shape.
    Free,
    /// There are no inputs; the output has one dimension.
    Line,
    /// All tensors have the output's shape; inputs may have zero strides.
    Elementwise,
    /// The output has the input's rank, with size 1 along the axes of the mask `axes`.
    Reduced,
    /// The output has the input's rank, with size 1 along `axis`.
    AxisReduced,
    /// The output has the input's shape, of at least one dimension.
    Same,
    /// `(..., m, k)` and `(..., k, n)` give `(..., m, n)`; batch dimensions are equal.
    Matmul,
    /// The output has the index arrays' shape, followed by a window of the source's rank.
    Gather,
    /// The output has the source's shape; the updates are shaped as GATHER's output.
    Scatter,
    /// All ranks are equal; the indices have the output's shape, and the source has it except along
    /// `axis`.
    GatherAxis,
    /// All ranks are equal; the output has the source's shape, indices and updates have it except
    /// along `axis`.
    ScatterAxis,
    /// The output has the source's rank and at most its sizes.
    Slice,
    /// The output has the source's shape; the update has its rank and at most its sizes.
    SliceUpdate,
    /// The keys are `(..., 2)`, the output is `(..., n)`.
    Keys,
    /// The table of tensors in `docs/operations.md` gives the shapes.
    Own,
}

impl ShapeRule {
    /// Returns true for ops that write over parts of their first input, in its own memory if that
    /// is the output's.
    pub fn updates(self) -> bool {
        matches!(self, ShapeRule::Scatter | ShapeRule::ScatterAxis | ShapeRule::SliceUpdate)
    }
}

/// Range of the values that an op is tested with, so that results are neither all equal nor all
/// NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// No restriction.
    Any,
    /// -10 to 10.
    Small,
    /// -1 to 1, without the ends.
    Unit,
    /// Above 0, to 100.
    Positive,
    /// Above 1, to 100.
    AboveOne,
    /// 0.9 to 1.1, integers -1 to 2, so that products of many stay in range.
    NearOne,
    /// First operand 0 to 4 (integers -4 to 4), second -4 to 4 (integers 0 to 5).
    Power,
    /// Second operand 0 to the width of the dtype plus 2.
    Shift,
}

impl Domain {
    /// Returns the range of values of operand `index`, for floating or else integer dtypes of
    /// `bits` bits. Unsigned dtypes and bool take the part of it that they have.
    pub fn range(self, index: usize, floating: bool, bits: u32) -> (f64, f64) {
        match (self, floating) {
            (Domain::Any, true) => (-100.0, 100.0),
            (Domain::Any, false) => (-100.0, 120.0),
            (Domain::Small, _) => (-10.0, 10.0),
            (Domain::Unit, _) => (-0.999, 0.999),
            (Domain::Positive, _) => (1e-3, 100.0),
            (Domain::AboveOne, _) => (1.001, 100.0),
            (Domain::NearOne, true) => (0.9, 1.1),
            (Domain::NearOne, false) => (-1.0, 2.0),
            (Domain::Power, true) if index == 0 => (0.0, 4.0),
            (Domain::Power, true) => (-4.0, 4.0),
            (Domain::Power, false) if index == 0 => (-4.0, 4.0),
            (Domain::Power, false) => (0.0, 5.0),
            (Domain::Shift, _) if index == 0 => (-100.0, 120.0),
            (Domain::Shift, _) => (0.0, f64::from(bits) + 2.0),
        }
    }
}

/// A code of an op: one function of a family such as UNARY.
#[derive(Clone, Copy, Debug)]
pub struct CodeSchema {
    /// Name, as in the constants.
    pub name: &'static str,
    /// Value of the attribute `op`.
    pub code: u32,
    /// Mask of the main dtypes that it is defined for; bit `i` is dtype `i` of [`DTYPES`].
    pub dtypes: u32,
    /// Rule for the dtype of the output.
    pub output: Output,
    /// Tolerance of float32, float64 and complex64 results; see [`tolerance`].
    pub ulps: f64,
    /// True for sums and products of many elements: the error is relative to the sum of magnitudes.
    pub sums: bool,
    /// Range of test values.
    pub domain: Domain,
    /// Grade of the conformance kit that needs it.
    pub grade: Grade,
    /// Description of the result.
    pub doc: &'static str,
}

/// A field of an attribute struct.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema {
    /// Name.
    pub name: &'static str,
    /// `u32`, `u64` or `u8[n]`.
    pub kind: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Module of codes that its values are of.
    pub codes: Option<&'static str>,
    /// Description.
    pub doc: &'static str,
}

impl FieldSchema {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match self.kind {
            "u64" => 8,
            array => array
                .strip_prefix("u8[")
                .and_then(|n| n.strip_suffix(']')?.parse().ok())
                .unwrap_or(4),
        }
    }
}

/// An attribute struct. Its first field, not listed, is `size: u32`.
#[derive(Clone, Copy, Debug)]
pub struct AttributesSchema {
    /// Name of the Rust struct.
    pub name: &'static str,
    /// Name of the C struct.
    pub c_name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub align: usize,
    /// Fields after `size`.
    pub fields: &'static [FieldSchema],
}

/// An input of an op.
#[derive(Clone, Copy, Debug)]
pub struct InputSchema {
    /// Name.
    pub name: &'static str,
    /// Rule for its dtype.
    pub dtype: InputDtype,
    /// True if it stands for `n_indices` inputs, of one dtype and shape.
    pub many: bool,
    /// True if it is present only where the attribute of its name is 1.
    pub optional: bool,
}

/// An operation of the contract: a row of [`OPS`](super::OPS). `docs/operations.md` is made from
/// it.
#[derive(Clone, Copy, Debug)]
pub struct OpSchema {
    /// Name.
    pub name: &'static str,
    /// Id, which is also its index in [`super::OPS`].
    pub id: OpId,
    /// Family: the file or folder of its kernels in every layer.
    pub family: Family,
    /// Revision of its attributes.
    pub revision: u32,
    /// Grade of the conformance kit that needs it.
    pub grade: Grade,
    /// Relation of the shapes.
    pub shape: ShapeRule,
    /// Attribute struct.
    pub attributes: &'static AttributesSchema,
    /// Inputs.
    pub inputs: &'static [InputSchema],
    /// Rules for the dtypes of the scalars of a command.
    pub scalars: &'static [Scalar],
    /// Mask of main dtypes; a code may have fewer.
    pub dtypes: u32,
    /// Rule for the dtype of the first output.
    pub output: Output,
    /// Rules for the dtypes of the other outputs.
    pub more: &'static [Output],
    /// Tolerance of an op without codes; see [`tolerance`].
    pub ulps: f64,
    /// Meaning of [`CodeSchema::sums`], for an op without codes.
    pub sums: bool,
    /// End of the sentence "the bits of a result may depend on ...", besides the operands; empty
    /// for nothing.
    pub order: &'static str,
    /// Name of the module of its codes, if it has codes.
    pub code_table: Option<&'static str>,
    /// Its codes; empty for an op without codes.
    pub codes: &'static [CodeSchema],
    /// Its rules of accuracy, as text.
    pub numbers: &'static [&'static str],
    /// Description of the result.
    pub doc: &'static str,
}

impl OpSchema {
    /// Returns the row of a code, such as one function of UNARY.
    pub fn code(&self, code: u32) -> Option<&'static CodeSchema> {
        self.codes.iter().find(|c| c.code == code)
    }

    /// Returns the mask of main dtypes: those of `code` if the operation has codes.
    pub fn dtypes_of(&self, code: Option<&CodeSchema>) -> u32 {
        code.map_or(self.dtypes, |c| c.dtypes & self.dtypes)
    }

    /// Returns the mask of dtypes that the first output may have, for a main dtype given by its
    /// index.
    pub fn output_of(&self, code: Option<&CodeSchema>, main: usize) -> u32 {
        match (self.output, code) {
            (Output::Code, Some(code)) => code.output.of(main),
            (rule, _) => rule.of(main),
        }
    }
}

impl Output {
    /// Returns the mask of dtypes that the rule allows, for a main dtype given by its index.
    pub fn of(self, main: usize) -> u32 {
        match self {
            Output::Main | Output::Code => 1 << main,
            Output::Bool => super::dtypes::BOOL,
            Output::Uint32 => super::dtypes::KEY,
            Output::Real if super::dtypes::COMPLEX >> main & 1 == 1 => 1 << index_of("float32"),
            Output::Accumulated if [index_of("float16"), index_of("bfloat16")].contains(&main) => {
                1 << index_of("float32")
            }
            Output::Real | Output::Accumulated => 1 << main,
            Output::Any(mask) => mask,
        }
    }
}

/// Place of a dtype by name; of the first where there is none of that name.
fn index_of(name: &str) -> usize {
    DTYPES.iter().position(|(n, _)| *n == name).unwrap_or(0)
}

/// Returns the tolerance of a code or op with `ulps`, in units in the last place of the output's
/// dtype, which is given by its index.
///
/// It is 0 for integers and bools, and 1 for float16 and bfloat16, which are rounded from float32.
/// For complex64 it is `8 * ulps + 4` units of the modulus, since its functions are made of several
/// real ones and may be contracted.
pub fn tolerance(ulps: f64, dtype: usize) -> f64 {
    match DTYPES.get(dtype).map(|(name, _)| *name) {
        Some("float32" | "float64") => ulps,
        Some("float16" | "bfloat16") if ulps > 0.0 => 1.0,
        Some("complex64") => 8.0 * ulps + 4.0,
        _ => 0.0,
    }
}

/// `pub static NAME: &[CodeSchema]` from rows.
macro_rules! code_rows {
    ($table:ident $($name:literal $code:literal [$dtypes:expr] [$output:expr] $ulps:literal $sums:literal
        $domain:ident $grade:ident $doc:literal;)*) => {
        #[doc = concat!("Rows of [`OPS`]: ", stringify!($table), ".")]
        pub static $table: &[CodeSchema] = &[$(CodeSchema {
            name: $name,
            code: $code,
            dtypes: $dtypes,
            output: $output,
            ulps: $ulps,
            sums: $sums,
            domain: Domain::$domain,
            grade: Grade::$grade,
            doc: $doc,
        }),*];
    };
}

/// The attribute structs: one static in the module `attributes` for each, and the list.
macro_rules! attribute_rows {
    ($($name:ident $c_name:literal { $($field:ident $kind:literal [$codes:expr] $doc:literal;)* })*) => {
        /// Descriptions of the attribute structs, under the structs' names.
        #[allow(non_upper_case_globals, reason = "named as the structs are")]
        pub mod attributes {
            use super::{AttributesSchema, FieldSchema};
            $(
                #[doc = concat!("Of [`super::", stringify!($name), "`].")]
                pub static $name: AttributesSchema = AttributesSchema {
                    name: stringify!($name),
                    c_name: $c_name,
                    size: size_of::<super::$name>(),
                    align: align_of::<super::$name>(),
                    fields: &[$(FieldSchema {
                        name: stringify!($field),
                        kind: $kind,
                        offset: core::mem::offset_of!(super::$name, $field),
                        codes: $codes,
                        doc: $doc,
                    }),*],
                };
            )*
        }
        /// Descriptions of all attribute structs.
        pub static ATTRIBUTES: &[&AttributesSchema] = &[$(&attributes::$name),*];
    };
}

/// The table of operations.
macro_rules! op_rows {
    ($($name:literal $id:literal $family:ident $revision:literal $grade:ident $shape:ident $attributes:ident {
        inputs: $($input:literal [$dtype:expr] $many:literal $optional:literal),*;
        scalars: [$($scalar:expr),*];
        dtypes: [$dtypes:expr];
        output: [$output:expr];
        more: [$($more:expr),*];
        ulps: $ulps:literal, sums: $sums:literal, order: $order:literal;
        codes: $table:expr, $codes:expr;
        numbers: [$($numbers:literal),*];
        doc: $doc:literal;
    })*) => {
        /// All operations; an op's place is its id.
        pub static OPS: &[OpSchema] = &[$(OpSchema {
            name: $name,
            id: $id,
            family: Family::$family,
            revision: $revision,
            grade: Grade::$grade,
            shape: ShapeRule::$shape,
            attributes: &attributes::$attributes,
            inputs: &[$(InputSchema {
                name: $input,
                dtype: $dtype,
                many: $many,
                optional: $optional,
            }),*],
            scalars: &[$($scalar),*],
            dtypes: $dtypes,
            output: $output,
            more: &[$($more),*],
            ulps: $ulps,
            sums: $sums,
            order: $order,
            code_table: $table,
            codes: $codes,
            numbers: &[$($numbers),*],
            doc: $doc,
        }),*];
    };
}

pub(super) use {attribute_rows, code_rows, op_rows};
