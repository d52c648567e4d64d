//! Attributes: what defines an operation beside its operands.

use super::operation_key::OperationKey;
#[cfg(test)]
use super::tests::Choices;
use crate::{device::Device, dtype::Dtype, scalar::Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// An attribute, or a struct or enum of them, which [`attributes!`](attributes) defines.
pub(crate) trait Attribute {
    /// Appends the value to a key. Different values of a type are encoded differently.
    fn encode(&self, key: &mut OperationKey);

    /// A random value, which depends on the choices alone: other choices make another value.
    #[cfg(test)]
    fn sample(_: &mut Choices) -> Self
    where
        Self: Sized,
    {
        unreachable!("an attribute that only its owner makes")
    }
}

/// Defines a struct or enum of attributes, whose fields are thereby named, compared, hashed and serialised as parts of
/// an [`OperationKey`].
///
/// Positional fields are given names as well, which only the key has:
/// `attributes! { enum Order { Given, By(axis: usize), All { reverse: bool } } }`.
macro_rules! attributes {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident;
    ) => {
        $(#[$meta])*
        $vis struct $name;

        $crate::graph::attribute::attributes!(@struct $name);
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($field_vis:vis $field:ident: $type:ty);
    ) => {
        $(#[$meta])*
        $vis struct $name($field_vis $type);

        $crate::graph::attribute::attributes!(@struct $name 0 $field);
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }

        $crate::graph::attribute::attributes!(@struct $name $($field $field)*);
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident
                $({ $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? })?
                $(($($part:ident: $part_type:ty),*))?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $(
                $(#[$variant_meta])*
                $variant $({ $($(#[$field_meta])* $field: $type),* })? $(($($part_type),*))?
            ),*
        }

        impl $crate::graph::attribute::Attribute for $name {
            fn encode(&self, key: &mut $crate::graph::operation_key::OperationKey) {
                match self {
                    $($name::$variant $({ $($field),* })? $(($($part),*))? => key.variant(
                        concat!(stringify!($name), "::", stringify!($variant)),
                        &[
                            $($((stringify!($field), $field)),*)?
                            $($((stringify!($part), $part)),*)?
                        ],
                    ),)*
                }
            }

            #[cfg(test)]
            fn sample(choices: &mut $crate::graph::tests::Choices) -> Self {
                use $crate::graph::tests::Choices;
                let variants = [
                    $((|_choices| $name::$variant
                        $({ $($field: <$type as $crate::graph::attribute::Attribute>::sample(_choices)),* })?
                        $(($(<$part_type as $crate::graph::attribute::Attribute>::sample(_choices)),*))?
                    ) as fn(&mut Choices) -> $name),*
                ];
                choices.pick(&variants)(choices)
            }
        }
    };
    (@struct $name:ident $($at:tt $field:ident)*) => {
        impl $crate::graph::attribute::Attribute for $name {
            fn encode(&self, key: &mut $crate::graph::operation_key::OperationKey) {
                key.record(stringify!($name), &[$((stringify!($field), &self.$at)),*]);
            }

            #[cfg(test)]
            fn sample(_choices: &mut $crate::graph::tests::Choices) -> Self {
                $name { $($at: $crate::graph::attribute::Attribute::sample(_choices)),* }
            }
        }
    };
}
pub(crate) use attributes;

/// Values of one kind: how they are encoded, and what samples are chosen from.
macro_rules! values {
    ($($type:ty: $value:ident, $key:ident => $encode:expr, [$($sample:expr),*];)*) => {
        $(impl Attribute for $type {
            fn encode(&self, $key: &mut OperationKey) {
                let $value = self;
                $encode
            }

            #[cfg(test)]
            fn sample(choices: &mut Choices) -> $type {
                choices.pick(&[$($sample),*])
            }
        })*
    };
}

// Of integers 0 and 1 come first, which are codes of every family.
values! {
    bool: v, key => key.bool(*v), [false, true];
    u8: v, key => key.unsigned((*v).into()), [0, 1];
    u32: v, key => key.unsigned((*v).into()), [0, 1];
    u64: v, key => key.unsigned(*v), [0, 1, 128, u64::MAX];
    usize: v, key => key.unsigned(*v as u64), [0, 1, 300, usize::MAX];
    i32: v, key => key.signed((*v).into()), [0, 1, -1, i32::MIN];
    i64: v, key => key.signed(*v), [0, 1, -1, i64::MIN];
    isize: v, key => key.signed(*v as i64), [0, 1, -1, isize::MAX];
    f64: v, key => key.float(*v), [0.0, -0.0, 1.5, f64::NAN, -f64::NAN];
    &'static str: v, key => key.text(v), ["a", "b", "ab"];
    Dtype: v, key => key.dtype(*v), [Dtype::Bool, Dtype::Float32, Dtype::Float64];
    Device: v, key => key.text(&v.to_string()), [Device::CPU, Device::gpu(0), Device::gpu(1)];
}

impl Attribute for str {
    fn encode(&self, key: &mut OperationKey) {
        key.text(self);
    }
}

impl Attribute for String {
    fn encode(&self, key: &mut OperationKey) {
        key.text(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> String {
        <&str>::sample(choices).to_owned()
    }
}

impl Attribute for Scalar {
    fn encode(&self, key: &mut OperationKey) {
        key.record("Scalar", &[("dtype", &self.dtype()), ("bits", &self.bits())]);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> Scalar {
        Scalar::from_bits(Dtype::sample(choices), u32::sample(choices).into())
    }
}

impl<T: Attribute> Attribute for Option<T> {
    fn encode(&self, key: &mut OperationKey) {
        key.list(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> Option<T> {
        bool::sample(choices).then(|| T::sample(choices))
    }
}

impl<T: Attribute, const N: usize> Attribute for [T; N] {
    fn encode(&self, key: &mut OperationKey) {
        key.list(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> [T; N] {
        std::array::from_fn(|_| T::sample(choices))
    }
}

impl<T: Attribute> Attribute for Vec<T> {
    fn encode(&self, key: &mut OperationKey) {
        key.list(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> Vec<T> {
        (0..choices.pick(&[0, 1, 2])).map(|_| T::sample(choices)).collect()
    }
}

impl<A: smallvec::Array<Item: Attribute>> Attribute for SmallVec<A> {
    fn encode(&self, key: &mut OperationKey) {
        key.list(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> SmallVec<A> {
        Vec::sample(choices).into()
    }
}

impl<T: Attribute> Attribute for Arc<[T]> {
    fn encode(&self, key: &mut OperationKey) {
        key.list(&**self);
    }
}

impl<T: Attribute> Attribute for Arc<T> {
    fn encode(&self, key: &mut OperationKey) {
        (**self).encode(key);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> Arc<T> {
        Arc::new(T::sample(choices))
    }
}

impl<A: Attribute, B: Attribute> Attribute for (A, B) {
    fn encode(&self, key: &mut OperationKey) {
        key.record("", &[("0", &self.0), ("1", &self.1)]);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> (A, B) {
        (A::sample(choices), B::sample(choices))
    }
}
