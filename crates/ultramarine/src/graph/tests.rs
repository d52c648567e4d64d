//! Checks with random attributes of every operation: the keys of operations differ if their
//! attributes differ.

use super::{
    attribute::Attribute,
    operation_key::{OperationKey, OperationWords},
    rules::Rules,
};
use crate::ops::{
    arg_reduce, conv, copy, create, elementwise, fft, index, linalg, matmul, nn, quantized, random,
    reduce, rules, rules::multi_output::MultiOutputRules, scan, select, shape, sort,
};
use crate::{dtype::Dtype, scalar::Scalar};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use ultramarine_abi::schema::reduce as reduce_code;
use ultramarine_test_support::Rng;

/// Random choices. They are recorded, because a sample is identified by the choices that made it.
pub(crate) struct Choices {
    rng: Rng,
    made: Vec<usize>,
}

impl Choices {
    /// Makes the choices of a seed.
    pub fn new(seed: u64) -> Choices {
        Choices { rng: Rng::new(seed), made: Vec::new() }
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let at = self.rng.below(items.len());
        self.made.push(at);
        items[at]
    }
}

/// Names of fields, with functions that return the fields' forms.
pub(crate) type Forms<'a> = &'a [(&'a str, fn() -> String)];

/// The form of a struct's fields.
pub(crate) fn form_of_fields(fields: Forms<'_>) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, form)| format!("{name}: {}", form())).collect();
    if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
}

/// The form of an enum's variants.
pub(crate) fn form_of_enum(variants: &[(&str, Forms<'_>)]) -> String {
    let one = |(name, fields): &(&str, Forms<'_>)| match fields {
        [] => format!("\"{name}\""),
        fields => format!("{{ {name}: {} }}", form_of_fields(fields)),
    };
    variants.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// Keys of random attributes, each with its type and the choices that made it.
type Samples = Vec<((&'static str, Vec<usize>), OperationKey)>;

/// Keys of a type's random attributes. Checks that equal choices give equal words, and different
/// choices different words.
fn samples<T: Attribute>(key: impl Fn(&T) -> OperationKey) -> Samples {
    let mut words = HashMap::new();
    let sample = |seed| {
        let mut choices = Choices::new(seed);
        let attributes = T::sample(&mut choices);
        let own = OperationWords::of(&attributes);
        assert!(*words.entry(choices.made.clone()).or_insert_with(|| own.clone()) == own);
        ((std::any::type_name::<T>(), choices.made), key(&attributes))
    };
    let all = (0..100).map(sample).collect();
    let distinct: HashSet<_> = words.values().collect();
    assert_eq!(distinct.len(), words.len(), "words of {}", std::any::type_name::<T>());
    all
}

/// Checks that keys are equal exactly if types and choices are equal, and that bytes and hashes
/// agree with that.
fn check(samples: &Samples) {
    let hash = |key: &OperationKey| {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    };
    let mut known = HashMap::new();
    let mut bytes = HashSet::new();
    let mut hashes = HashSet::new();
    for (made, key) in samples {
        let before = known.entry(made).or_insert(key);
        assert!(*before == key, "{made:?} has two keys");
        bytes.insert(key.serialised().expect("no opaque attribute"));
        hashes.insert(hash(key));
    }
    let keys: HashSet<_> = samples.iter().map(|(_, key)| key).collect();
    let count = known.len();
    assert_eq!((keys.len(), bytes.len(), hashes.len()), (count, count, count), "of different ones");
}

/// Checks the keys of a type's random attributes.
pub(crate) fn check_samples<T: Attribute>() {
    check(&samples(|of: &T| OperationKey::of("operation", 1, of)));
}

macro_rules! operations {
    ($($rules:ident { $($operation:ty),* $(,)? })*) => {
        /// Keys of all operations that can be made with random attributes.
        fn operations() -> Samples {
            [$($(samples(|of: &$operation| {
                let name = $rules::name(of);
                assert!(!name.is_empty(), "{of:?} without a name");
                OperationKey::of(name, $rules::version(of), of)
            })),*),*].concat()
        }
    };
}

operations! {
    Rules {
        arg_reduce::ArgReduce,
        conv::convolve::Convolve,
        copy::Contiguous,
        copy::Fresh,
        copy::cast::Cast,
        copy::identity::Identity,
        copy::storage::Recode,
        copy::transfer::Transfer,
        create::fill::Arange,
        create::fill::Fill,
        elementwise::binary::Binary,
        elementwise::unary::Unary,
        elementwise::xlogy::Xlogy,
        fft::Transform,
        index::dynamic_slice::DynamicSlice,
        index::dynamic_slice::DynamicSliceUpdate,
        index::gather::Gather,
        index::gather::GatherAxis,
        index::scatter::Scatter,
        index::scatter::ScatterAxis,
        index::update::Update,
        linalg::cholesky::Cholesky,
        linalg::eig::Eigvals,
        linalg::eigh::EigvalsH,
        linalg::svd::SingularValues,
        linalg::triangular::SolveTriangular,
        matmul::Matmul,
        nn::norm::LayerNorm,
        nn::rope::rotation::Rotation,
        nn::softmax::Softmax,
        random::RandomBits,
        reduce::Reduce,
        rules::multi_output::OutputOf,
        rules::shapeless::symbolic_shape::Shaped,
        rules::shapeless::share::Share,
        scan::Scan,
        select::Select,
        shape::concatenate::Concatenate,
        shape::view::View,
        sort::Sort,
        sort::search::SearchSorted,
    }
    MultiOutputRules {
        linalg::eig::Eig,
        linalg::eigh::Eigh,
        linalg::lu::Lu,
        linalg::pinv::PseudoInverse,
        linalg::qr::Qr,
        linalg::svd::Svd,
        matmul::gather::GatherMatmul,
        matmul::segmented::SegmentedMatmul,
        nn::attention::rules::Attention,
        nn::attention::rules::AttentionGradient,
        nn::cross_entropy::rules::CrossEntropy,
        nn::cross_entropy::rules::CrossEntropyGradient,
        nn::norm::gradient::NormGradient,
        quantized::rules::Dequantize,
        quantized::rules::QuantizedMatmul,
        quantized::straight_through::StraightThrough,
    }
}

#[test]
fn keys_are_equal_where_operations_are() {
    check(&operations());
}

#[test]
fn keys_have_the_names_of_types_and_fields() {
    for ((path, _), key) in operations() {
        let text = String::from_utf8_lossy(key.serialised().expect("no opaque attribute"));
        let name = path.rsplit("::").next().expect("a type's name");
        assert!(text.contains(name), "{name} is not in {text:?}");
    }
    let key = OperationKey::new(&reduce::Reduce { code: 1, axes: 300 });
    let name = reduce_code::NAMES[1];
    let expected = [
        &[5, name.len() as u8][..],
        name.as_bytes(),
        // Version 1, and a record of two fields.
        &[2, 1, 7, 6],
        b"Reduce",
        &[2, 4],
        b"code",
        &[2, 1, 4],
        b"axes",
        &[2, 0xac, 2],
    ];
    assert_eq!(key.serialised(), Some(&expected.concat()[..]));
}

#[test]
fn versions_are_different_operations() {
    let of = |version| OperationKey::of("operation", version, &select::Select);
    assert!(of(1) == of(1) && of(1) != of(2));
}

#[test]
fn fills_differ_by_the_bits_of_their_numbers() {
    let numbers = [0u64, 1 << 31, 0x7fc0_0000, 0x7fc0_0001, 0xffc0_0000, 0x7f80_0001];
    let fill =
        |bits| create::fill::Fill { value: Scalar::from_bits(Dtype::Float32, bits), spread: false };
    let keys: HashSet<_> = numbers.iter().map(|bits| OperationKey::new(&fill(*bits))).collect();
    assert_eq!(keys.len(), numbers.len());
    assert!(keys.contains(&OperationKey::new(&fill(0x7fc0_0000))), "a NaN equals itself");
}
