//! The operations that files of functions can contain, by name.
//!
//! The names of operations and of attributes are part of the format: docs/function-format.md lists them, and a test
//! compares that list with this table. A type or field that is renamed keeps its name in files.

use crate::dtype::Dtype;
use crate::extension;
use crate::graph::attribute_json::{Json, Malformed};
use crate::graph::operation_key::OperationKey;
use crate::ops::rules::multi_output::{ForeignIdentity, MultiOutput, MultiOutputRules, Results};
use crate::ops::{
    Attribute, Op, Rules, arg_reduce, attributes, conv, copy, create, elementwise, fft, index,
    linalg, matmul, nn, quantized, random, reduce, rules, scan, select, shape, sort,
};
use smallvec::SmallVec;

/// An operation of the format.
pub(super) struct Operation {
    /// The name in files.
    pub name: &'static str,
    /// The name of the Rust type of the attributes.
    type_name: &'static str,
    /// Makes the operation from attributes, for operands of these dtypes and results of these types.
    pub read: fn(&Json, &[Dtype], Results) -> Result<Op, Malformed>,
    /// Describes the form of its attributes.
    #[cfg(test)]
    pub form: fn() -> String,
    /// Checks that attributes generated from a seed are read as they were written.
    #[cfg(test)]
    pub check: fn(u64),
}

/// Operations of one result, and operations whose node has all results.
macro_rules! operations {
    (
        single { $($single:literal $single_type:ty;)* }
        several { $($several:literal $several_type:ty;)* }
    ) => {
        /// All operations.
        pub(super) static OPERATIONS: &[Operation] = &[
            $(Operation {
                name: $single,
                type_name: stringify!($single_type),
                read: |attributes, _, _| Ok(single(<$single_type>::decode(attributes)?)),
                #[cfg(test)]
                form: <$single_type>::form,
                #[cfg(test)]
                check: super::tests::is_read_as_written::<$single_type>,
            },)*
            $(Operation {
                name: $several,
                type_name: stringify!($several_type),
                read: |attributes, _, results| {
                    Ok(several(<$several_type>::decode(attributes)?, results))
                },
                #[cfg(test)]
                form: <$several_type>::form,
                #[cfg(test)]
                check: super::tests::is_read_as_written::<$several_type>,
            },)*
        ];
    };
}

fn single(rules: impl Rules + Clone) -> Op {
    Op::new(rules)
}

fn several(rules: impl MultiOutputRules + 'static, results: Results) -> Op {
    MultiOutput::new(rules, results, SmallVec::new()).into()
}

operations! {
    single {
        "arange" create::fill::Arange;
        "arg_reduce" arg_reduce::ArgReduce;
        "astype" copy::cast::Cast;
        "binary" elementwise::binary::Binary;
        "cholesky" linalg::cholesky::Cholesky;
        "concatenate" shape::concatenate::Concatenate;
        "contiguous" copy::Contiguous;
        "convolve" conv::convolve::Convolve;
        "copy" copy::Fresh;
        "dynamic_slice" index::dynamic_slice::DynamicSlice;
        "dynamic_slice_update" index::dynamic_slice::DynamicSliceUpdate;
        "eigvals" linalg::eig::Eigvals;
        "eigvalsh" linalg::eigh::EigvalsH;
        "fft" fft::Transform;
        "full" create::fill::Fill;
        "gather" index::gather::Gather;
        "gather_axis" index::gather::GatherAxis;
        "identity" copy::identity::Identity;
        "matmul" matmul::Matmul;
        "norm" nn::norm::LayerNorm;
        "number_of_elements" rules::shapeless::share::Share;
        "random_bits" random::RandomBits;
        "recode" copy::storage::Recode;
        "reduce" reduce::Reduce;
        "rotation" nn::rope::rotation::Rotation;
        "scan" scan::Scan;
        "scatter" index::scatter::Scatter;
        "scatter_axis" index::scatter::ScatterAxis;
        "searchsorted" sort::search::SearchSorted;
        "select" select::Select;
        "singular_values" linalg::svd::SingularValues;
        "softmax" nn::softmax::Softmax;
        "solve_triangular" linalg::triangular::SolveTriangular;
        "sort" sort::Sort;
        "symbolic_view" rules::shapeless::symbolic_shape::Shaped;
        "unary" elementwise::unary::Unary;
        "update" index::update::Update;
        "view" shape::view::View;
        "xlogy" elementwise::xlogy::Xlogy;
    }
    several {
        "attention" nn::attention::rules::Attention;
        "attention_gradient" nn::attention::rules::AttentionGradient;
        "cross_entropy" nn::cross_entropy::rules::CrossEntropy;
        "cross_entropy_gradient" nn::cross_entropy::rules::CrossEntropyGradient;
        "dequantize" quantized::rules::Dequantize;
        "eig" linalg::eig::Eig;
        "eigh" linalg::eigh::Eigh;
        "gather_matmul" matmul::gather::GatherMatmul;
        "lu" linalg::lu::Lu;
        "norm_gradient" nn::norm::gradient::NormGradient;
        "pinv" linalg::pinv::PseudoInverse;
        "qr" linalg::qr::Qr;
        "quantized_matmul" quantized::rules::QuantizedMatmul;
        "segmented_matmul" matmul::segmented::SegmentedMatmul;
        "straight_through" quantized::straight_through::StraightThrough;
        "svd" linalg::svd::Svd;
    }
}

attributes! {
    /// A user's primitive.
    #[derive(Debug)]
    pub(super) struct Foreign {
        name: String,
        version: u32,
        outputs: u32,
        /// Its attributes, in its own binary form.
        attributes: Vec<u8>,
        /// The package that provides it.
        package: String,
    }
}

/// Users' primitives, which their packages restore.
pub(super) static FOREIGN: Operation = Operation {
    name: "foreign",
    type_name: "Foreign",
    read: |attributes, dtypes, results| {
        let Foreign { name, version, outputs, attributes, package } = Foreign::decode(attributes)?;
        let identity = ForeignIdentity { name, version, outputs, attributes: attributes.into() };
        let op = extension::restored(&identity, &package, dtypes.into(), results);
        op.map(Op::from).map_err(|e| Malformed(e.to_string()))
    },
    #[cfg(test)]
    form: Foreign::form,
    #[cfg(test)]
    check: super::tests::is_read_as_written::<Foreign>,
};

/// The operation of a name.
pub(super) fn named(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().chain([&FOREIGN]).find(|o| o.name == name)
}

/// The name of an operation in files, and its attributes; `None` if files cannot contain it.
pub(super) fn written(op: &Op) -> Option<(&'static str, Json)> {
    if let Some(identity) = foreign(op) {
        let ForeignIdentity { name, version, outputs, attributes } = identity;
        let package = extension::package(&name)?;
        let foreign = Foreign { name, version, outputs, attributes: attributes.to_vec(), package };
        return Some((FOREIGN.name, OperationKey::json(&foreign)?.1));
    }
    let (of, attributes) = OperationKey::json(op.rules()?)?;
    let is = |o: &&Operation| o.type_name.rsplit("::").next() == Some(of.as_str());
    Some((OPERATIONS.iter().find(is)?.name, attributes))
}

/// The identity of a user's primitive.
pub(super) fn foreign(op: &Op) -> Option<ForeignIdentity> {
    op.get::<MultiOutput>()?.rules().foreign()
}

/// The version of an operation's attributes.
pub(super) fn version(op: &Op) -> u32 {
    op.rules().map_or(1, |rules| rules.version())
}
