//! The identity of an operation, by which evaluation and compiled functions tell operations apart.

use super::{attribute::Attribute, rules::Rules};
use smallvec::SmallVec;
use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Kinds of encoded values: the first byte of each.
#[derive(Clone, Copy)]
enum Kind {
    False,
    True,
    Unsigned,
    Signed,
    Float,
    Text,
    List,
    Record,
    Opaque,
}

/// Name, version and attributes of an operation. Operations of equal keys give the same results for the same
/// operands, shape, dtype and device.
///
/// The encoding describes itself: each value begins with its kind, and each field with its name. So different attributes
/// have different bytes, and the bytes mean the same in every process and on every machine.
#[derive(Clone)]
pub(crate) struct OperationKey {
    bytes: SmallVec<[u8; 64]>,
    /// Values behind the opaque entries of `bytes`, in their order.
    opaque: SmallVec<[Arc<dyn Opaque>; 1]>,
}

/// An attribute without a serialised form, such as a function: it means something in this process only.
pub(crate) trait Opaque: Any + Send + Sync {
    /// Compares values whose other attributes are equal. By default every object is one of its own.
    fn same(&self, other: &dyn Opaque) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl OperationKey {
    /// The key of an operation.
    pub fn new(rules: &dyn Rules) -> OperationKey {
        OperationKey::of(rules.name(), rules.version(), rules)
    }

    /// The key of an operation of this name and version.
    pub fn of(name: &str, version: u32, attributes: &(impl Attribute + ?Sized)) -> OperationKey {
        let mut key = OperationKey { bytes: SmallVec::new(), opaque: SmallVec::new() };
        name.encode(&mut key);
        version.encode(&mut key);
        attributes.encode(&mut key);
        key
    }

    /// The bytes that identify the operation in any process; `None` if an attribute is opaque.
    pub fn serialised(&self) -> Option<&[u8]> {
        self.opaque.is_empty().then_some(&self.bytes)
    }

    /// Appends a bool.
    pub fn bool(&mut self, value: bool) {
        self.kind(if value { Kind::True } else { Kind::False });
    }

    /// Appends an unsigned integer.
    pub fn unsigned(&mut self, value: u64) {
        self.kind(Kind::Unsigned);
        self.varint(value);
    }

    /// Appends a signed integer.
    pub fn signed(&mut self, value: i64) {
        self.kind(Kind::Signed);
        // Zigzag: small numbers are short, whatever their sign.
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// Appends a float by its bits: NaNs equal themselves, and -0.0 is not 0.0.
    pub fn float(&mut self, value: f64) {
        self.kind(Kind::Float);
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// Appends text.
    pub fn text(&mut self, value: &str) {
        self.kind(Kind::Text);
        self.name(value);
    }

    /// Appends values whose number may differ.
    pub fn list<'a, T: Attribute + 'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
    ) {
        let values = values.into_iter();
        self.kind(Kind::List);
        self.varint(values.len() as u64);
        values.for_each(|value| value.encode(self));
    }

    /// Appends a type with its fields.
    pub fn record(&mut self, name: &str, fields: &[(&str, &dyn Attribute)]) {
        self.kind(Kind::Record);
        self.name(name);
        self.varint(fields.len() as u64);
        for (name, value) in fields {
            self.name(name);
            value.encode(self);
        }
    }

    /// Appends a value that keys compare by [`Opaque::same`], and keep alive.
    pub fn opaque(&mut self, value: Arc<dyn Opaque>) {
        self.kind(Kind::Opaque);
        self.opaque.push(value);
    }

    fn kind(&mut self, kind: Kind) {
        self.bytes.push(kind as u8);
    }

    fn name(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// LEB128: seven bits a byte, the lowest first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

impl PartialEq for OperationKey {
    fn eq(&self, other: &OperationKey) -> bool {
        // Equal bytes have as many opaque entries.
        self.bytes == other.bytes
            && self.opaque.iter().zip(&other.opaque).all(|(a, b)| a.same(&**b))
    }
}

impl Eq for OperationKey {}

impl Hash for OperationKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}
