//! Attributes: the properties, other than operands, that define an operation.

use super::attribute_json::{Fields, Json, Malformed, list, to_float};
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

    /// Decodes JSON that [`OperationKey::json`] made. By default it fails, because attributes that
    /// are valid in this process only cannot be in a file.
    fn decode(value: &Json) -> Result<Self, Malformed>
    where
        Self: Sized,
    {
        Err(Malformed::wanted("an attribute that files can hold", value))
    }

    /// The form of the values for [`Attribute::decode`], for the table of operations in
    /// docs/function-format.md.
    #[cfg(test)]
    fn form() -> String
    where
        Self: Sized,
    {
        unreachable!("an attribute that is in no file")
    }

    /// A random value that depends only on the choices. Different choices make different values.
    #[cfg(test)]
    fn sample(_: &mut Choices) -> Self
    where
        Self: Sized,
    {
        unreachable!("an attribute that only its owner makes")
    }
}

/// Defines a struct or enum of attributes. The fields are named, compared, hashed and serialised as
/// parts of an [`OperationKey`].
///
/// Positional fields get names too, which only the key uses:
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

        $crate::graph::attribute::attributes!(@struct $name 0 $field $type;);
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

        $crate::graph::attribute::attributes!(@struct $name $($field $field $type;)*);
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

            fn decode(
                value: &$crate::graph::attribute_json::Json,
            ) -> Result<Self, $crate::graph::attribute_json::Malformed> {
                use $crate::graph::attribute_json::{Fields, Malformed};
                let (variant, fields) = Fields::variant(value)?;
                match variant {
                    $(stringify!($variant) => {
                        let _fields = fields.named(&[
                            $($(stringify!($field)),*)? $($(stringify!($part)),*)?
                        ])?;
                        Ok($name::$variant
                            $({ $($field: _fields.get(
                                stringify!($field),
                                <$type as $crate::graph::attribute::Attribute>::decode,
                            )?),* })?
                            $(($(_fields.get(
                                stringify!($part),
                                <$part_type as $crate::graph::attribute::Attribute>::decode,
                            )?),*))?
                        )
                    })*
                    _ => Err(Malformed::wanted(concat!("a ", stringify!($name)), value)),
                }
            }

            #[cfg(test)]
            fn form() -> String {
                let variants: &[(&str, $crate::graph::tests::Forms<'_>)] = &[$((
                    stringify!($variant),
                    &[
                        $($((stringify!($field), <$type as $crate::graph::attribute::Attribute>::form)),*)?
                        $($((stringify!($part), <$part_type as $crate::graph::attribute::Attribute>::form)),*)?
                    ],
                )),*];
                $crate::graph::tests::form_of_enum(variants)
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
    (@struct $name:ident $($at:tt $field:ident $type:ty;)*) => {
        impl $crate::graph::attribute::Attribute for $name {
            fn encode(&self, key: &mut $crate::graph::operation_key::OperationKey) {
                key.record(stringify!($name), &[$((stringify!($field), &self.$at)),*]);
            }

            fn decode(
                value: &$crate::graph::attribute_json::Json,
            ) -> Result<Self, $crate::graph::attribute_json::Malformed> {
                let _fields = $crate::graph::attribute_json::Fields::of(
                    value,
                    &[$(stringify!($field)),*],
                )?;
                Ok($name { $($at: _fields.get(
                    stringify!($field),
                    $crate::graph::attribute::Attribute::decode,
                )?),* })
            }

            #[cfg(test)]
            fn form() -> String {
                let fields: $crate::graph::tests::Forms<'_> = &[
                    $((stringify!($field), <$type as $crate::graph::attribute::Attribute>::form)),*
                ];
                $crate::graph::tests::form_of_fields(fields)
            }

            #[cfg(test)]
            fn sample(_choices: &mut $crate::graph::tests::Choices) -> Self {
                $name { $($at: $crate::graph::attribute::Attribute::sample(_choices)),* }
            }
        }
    };
}
pub(crate) use attributes;

/// Values of one kind: their encoding and decoding, their form in a file, and the values that
/// samples are chosen from.
macro_rules! values {
    ($($type:ty: $form:literal, $value:ident, $key:ident => $encode:expr, $decode:expr, [$($sample:expr),*];)*) => {
        $(impl Attribute for $type {
            fn encode(&self, $key: &mut OperationKey) {
                let $value = self;
                $encode
            }

            fn decode(value: &Json) -> Result<$type, Malformed> {
                let decode: fn(&Json) -> Option<$type> = $decode;
                decode(value).ok_or_else(|| Malformed::wanted($form, value))
            }

            #[cfg(test)]
            fn form() -> String {
                $form.into()
            }

            #[cfg(test)]
            fn sample(choices: &mut Choices) -> $type {
                choices.pick(&[$($sample),*])
            }
        })*
    };
}

// The integers 0 and 1 come first, because they are valid codes in every family.
values! {
    bool: "bool", v, key => key.bool(*v), Json::as_bool, [false, true];
    u8: "u8", v, key => key.unsigned((*v).into()), |v| v.as_u64()?.try_into().ok(), [0, 1];
    u32: "u32", v, key => key.unsigned((*v).into()), |v| v.as_u64()?.try_into().ok(), [0, 1];
    u64: "u64", v, key => key.unsigned(*v), Json::as_u64, [0, 1, 128, u64::MAX];
    usize: "u64", v, key => key.unsigned(*v as u64), |v| v.as_u64()?.try_into().ok(), [0, 1, 300, usize::MAX];
    i32: "i32", v, key => key.signed((*v).into()), |v| v.as_i64()?.try_into().ok(), [0, 1, -1, i32::MIN];
    i64: "i64", v, key => key.signed(*v), Json::as_i64, [0, 1, -1, i64::MIN];
    isize: "i64", v, key => key.signed(*v as i64), |v| v.as_i64()?.try_into().ok(), [0, 1, -1, isize::MAX];
    f64: "f64", v, key => key.float(*v), |v| to_float(v).ok(), [0.0, -0.0, 1.5, f64::NAN, -f64::NAN];
    Dtype: "dtype", v, key => key.dtype(*v), |v| Dtype::from_name(v.as_str()?), [Dtype::Bool, Dtype::Float32, Dtype::Float64];
    Device: "device", v, key => key.text(&v.to_string()), |v| v.as_str()?.parse().ok(), [Device::CPU, Device::gpu(0), Device::gpu(1)];
}

impl Attribute for &'static str {
    fn encode(&self, key: &mut OperationKey) {
        key.text(self);
    }

    #[cfg(test)]
    fn sample(choices: &mut Choices) -> &'static str {
        choices.pick(&["a", "b", "ab"])
    }
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

    fn decode(value: &Json) -> Result<String, Malformed> {
        value.as_str().map(str::to_owned).ok_or_else(|| Malformed::wanted("a text", value))
    }

    #[cfg(test)]
    fn form() -> String {
        "text".into()
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

    fn decode(value: &Json) -> Result<Scalar, Malformed> {
        let fields = Fields::of(value, &["dtype", "bits"])?;
        let (dtype, bits) = (fields.get("dtype", Dtype::decode)?, fields.get("bits", u64::decode)?);
        let scalar = Scalar::from_bits(dtype, bits);
        match scalar.bits() == bits {
            true => Ok(scalar),
            false => Err(Malformed(format!("{bits} are more bits than {dtype} has"))),
        }
    }

    #[cfg(test)]
    fn form() -> String {
        "scalar".into()
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

    fn decode(value: &Json) -> Result<Option<T>, Malformed> {
        match list(value)? {
            [] => Ok(None),
            [one] => Ok(Some(T::decode(one)?)),
            _ => Err(Malformed::wanted("at most one value", value)),
        }
    }

    #[cfg(test)]
    fn form() -> String {
        format!("[{}?]", T::form())
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

    fn decode(value: &Json) -> Result<[T; N], Malformed> {
        let all = Vec::decode(value)?;
        all.try_into().map_err(|_| Malformed::wanted(format!("{N} values"), value))
    }

    #[cfg(test)]
    fn form() -> String {
        format!("[{}; {N}]", T::form())
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

    fn decode(value: &Json) -> Result<Vec<T>, Malformed> {
        list(value)?.iter().map(T::decode).collect()
    }

    #[cfg(test)]
    fn form() -> String {
        format!("[{}]", T::form())
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

    fn decode(value: &Json) -> Result<SmallVec<A>, Malformed> {
        list(value)?.iter().map(A::Item::decode).collect()
    }

    #[cfg(test)]
    fn form() -> String {
        format!("[{}]", A::Item::form())
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
