//! The identity of an operation. Evaluation and compiled functions distinguish operations by it.

use super::attribute_json::{Json, from_float};
use super::{attribute::Attribute, op::Op, rules::Rules};
use crate::dtype::Dtype;
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

/// Name, version and attributes of an operation. Operations with equal keys give the same results
/// for the same operands, shape, dtype and device.
///
/// The encoding is self-describing: each value begins with its kind, and each field with its name.
/// Therefore different attributes have different bytes, and the bytes mean the same in every
/// process and on every machine.
#[derive(Clone)]
pub(crate) struct OperationKey {
    bytes: SmallVec<[u8; 64]>,
    /// Values behind the opaque entries of `bytes`, in their order.
    opaque: SmallVec<[Arc<dyn Opaque>; 1]>,
    /// If present, values are appended to it instead of to `bytes`.
    words: Option<Words>,
}

/// An attribute without a serialised form, such as a function. It is valid in this process only.
pub(crate) trait Opaque: Any + Send + Sync {
    /// Returns true if the values are equal, for operations whose other attributes are equal. By
    /// default, an object equals only itself.
    fn same(&self, other: &dyn Opaque) -> bool {
        std::ptr::addr_eq(self, other)
    }

    /// Returns a number that no other value of the type has at any time in this process, or `None`
    /// if there is no such number.
    fn number(&self) -> Option<u64> {
        None
    }
}

impl OperationKey {
    /// The key of an operation.
    pub fn new(rules: &dyn Rules) -> OperationKey {
        OperationKey::of(rules.name(), rules.version(), rules)
    }

    /// The key of an operation of this name and version.
    pub fn of(name: &str, version: u32, attributes: &(impl Attribute + ?Sized)) -> OperationKey {
        let mut key = OperationKey::empty();
        name.encode(&mut key);
        version.encode(&mut key);
        attributes.encode(&mut key);
        key
    }

    fn empty() -> OperationKey {
        OperationKey { bytes: SmallVec::new(), opaque: SmallVec::new(), words: None }
    }

    /// Returns the name of the attributes' type, and the attributes as JSON, which
    /// [`Attribute::decode`] reads. `None` if an attribute is opaque.
    pub fn json(attributes: &(impl Attribute + ?Sized)) -> Option<(String, Json)> {
        let mut key = OperationKey::empty();
        attributes.encode(&mut key);
        Encoded(key.serialised()?).record()
    }

    /// Appends a trait object with its type, because the field's type does not determine it.
    pub fn object(&mut self, name: &'static str, version: u32, value: &dyn Attribute) {
        if let Some(words) = &mut self.words {
            words.name(name);
            words.push(version.into());
            words.named = true;
        }
        value.encode(self);
    }

    /// Returns the bytes that identify the operation in any process; `None` if an attribute is
    /// opaque.
    pub fn serialised(&self) -> Option<&[u8]> {
        self.opaque.is_empty().then_some(&self.bytes)
    }

    /// Appends a bool.
    pub fn bool(&mut self, value: bool) {
        if let Some(words) = &mut self.words {
            return words.push(value.into());
        }
        self.kind(if value { Kind::True } else { Kind::False });
    }

    /// Appends an unsigned integer.
    pub fn unsigned(&mut self, value: u64) {
        if let Some(words) = &mut self.words {
            return words.push(value);
        }
        self.kind(Kind::Unsigned);
        self.varint(value);
    }

    /// Appends a signed integer.
    pub fn signed(&mut self, value: i64) {
        if let Some(words) = &mut self.words {
            return words.push(value as u64);
        }
        self.kind(Kind::Signed);
        // Zigzag encoding keeps numbers of small magnitude short, also negative ones.
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// Appends a float by its bits: NaNs equal themselves, and -0.0 is not 0.0.
    pub fn float(&mut self, value: f64) {
        if let Some(words) = &mut self.words {
            return words.push(value.to_bits());
        }
        self.kind(Kind::Float);
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// Appends a dtype.
    pub fn dtype(&mut self, value: Dtype) {
        match &mut self.words {
            Some(words) => words.push(value as u64),
            None => self.text(value.name()),
        }
    }

    /// Appends text.
    pub fn text(&mut self, value: &str) {
        if let Some(words) = &mut self.words {
            return words.text(value);
        }
        self.kind(Kind::Text);
        self.name(value);
    }

    /// Appends a list of values of variable length.
    pub fn list<'a, T: Attribute + 'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
    ) {
        let values = values.into_iter();
        match &mut self.words {
            Some(words) => words.push(values.len() as u64),
            None => {
                self.kind(Kind::List);
                self.varint(values.len() as u64);
            }
        }
        values.for_each(|value| value.encode(self));
    }

    /// Appends a variant of an enum with its fields.
    pub fn variant(&mut self, name: &'static str, fields: &[(&str, &dyn Attribute)]) {
        if let Some(words) = &mut self.words {
            words.name(name);
        }
        self.record(name, fields);
    }

    /// Appends a type with its fields.
    pub fn record(&mut self, name: &'static str, fields: &[(&str, &dyn Attribute)]) {
        if let Some(words) = &mut self.words {
            // The type is named only if the field that holds the record does not determine it.
            if std::mem::take(&mut words.named) {
                words.name(name);
            }
            return fields.iter().for_each(|(_, value)| value.encode(self));
        }
        self.kind(Kind::Record);
        self.name(name);
        self.varint(fields.len() as u64);
        for (name, value) in fields {
            self.name(name);
            value.encode(self);
        }
    }

    /// Appends a value that keys compare by [`Opaque::same`]. The key keeps the value alive.
    pub fn opaque(&mut self, value: Arc<dyn Opaque>) {
        if let Some(words) = &mut self.words {
            match value.number() {
                Some(number) => words.push(number),
                None => words.opaque = true,
            }
            return;
        }
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

    /// Appends an integer in LEB128: seven bits per byte, the lowest bits first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// Encoded values that have not been read yet.
struct Encoded<'a>(&'a [u8]);

impl Encoded<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, len: usize) -> Option<&[u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    fn name(&mut self) -> Option<String> {
        let len = self.varint()? as usize;
        String::from_utf8(self.bytes(len)?.to_vec()).ok()
    }

    fn value(&mut self) -> Option<Json> {
        let kind = self.byte()?;
        let is = |other: Kind| kind == other as u8;
        if is(Kind::False) || is(Kind::True) {
            return Some(is(Kind::True).into());
        }
        if is(Kind::Unsigned) {
            return Some(self.varint()?.into());
        }
        if is(Kind::Signed) {
            let zigzag = self.varint()?;
            return Some(((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)).into());
        }
        if is(Kind::Float) {
            let bits = self.bytes(8)?.try_into().ok()?;
            return Some(from_float(f64::from_bits(u64::from_le_bytes(bits))));
        }
        if is(Kind::Text) {
            return Some(self.name()?.into());
        }
        if is(Kind::List) {
            let len = self.varint()?;
            return (0..len).map(|_| self.value()).collect::<Option<Vec<Json>>>().map(Json::from);
        }
        if is(Kind::Record) { Some(self.fields()?.1) } else { None }
    }

    /// Reads a struct or a variant, and returns it with the name of its type.
    fn record(&mut self) -> Option<(String, Json)> {
        let kind = self.byte()?;
        if kind == Kind::Record as u8 { self.fields() } else { None }
    }

    fn fields(&mut self) -> Option<(String, Json)> {
        let (name, len) = (self.name()?, self.varint()?);
        let fields = (0..len).map(|_| Some((self.name()?, self.value()?)));
        let fields: serde_json::Map<String, Json> = fields.collect::<Option<_>>()?;
        let (of, variant) = name.split_once("::").map_or((&*name, None), |(a, b)| (a, Some(b)));
        let value = match variant {
            None => fields.into(),
            Some(variant) if fields.is_empty() => variant.into(),
            Some(variant) => [(variant, Json::from(fields))].into_iter().collect(),
        };
        Some((of.to_owned(), value))
    }
}

/// Operations and their attributes as a list of words, which cost less to make than keys. In this
/// process, equal words mean equal operations, unless an attribute is opaque.
#[derive(Clone, Default)]
struct Words {
    list: Vec<u64>,
    opaque: bool,
    /// True if the type of the next record has to be named.
    named: bool,
}

impl Words {
    #[inline]
    fn push(&mut self, word: u64) {
        self.list.push(word);
    }

    /// Appends the address of a string literal of the program.
    fn name(&mut self, name: &'static str) {
        self.list.extend([name.as_ptr().addr() as u64, name.len() as u64]);
    }

    fn text(&mut self, text: &str) {
        self.push(text.len() as u64);
        self.list.extend(text.as_bytes().chunks(8).map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        }));
    }
}

/// A list of words. Operations and the caller's own numbers can be appended.
pub(crate) struct OperationWords(OperationKey);

impl OperationWords {
    /// Makes a list that begins with the words of `list`.
    pub fn new(list: Vec<u64>) -> OperationWords {
        let words = Some(Words { list, ..Words::default() });
        OperationWords(OperationKey { bytes: SmallVec::new(), opaque: SmallVec::new(), words })
    }

    /// Appends a word.
    #[inline]
    pub fn push(&mut self, word: u64) {
        if let Some(words) = &mut self.0.words {
            words.push(word);
        }
    }

    /// Appends an operation with its attributes. Returns false if an attribute is opaque, because
    /// other operations may then have the same words.
    #[inline]
    pub fn operation(&mut self, op: &Op) -> bool {
        self.push(op.kind());
        if let Some(rules) = op.rules() {
            rules.encode(&mut self.0);
        }
        !self.0.words.as_ref().is_some_and(|words| words.opaque)
    }

    /// The words of attributes.
    #[cfg(test)]
    pub fn of(attributes: &dyn Attribute) -> Vec<u64> {
        let mut words = OperationWords::new(Vec::new());
        attributes.encode(&mut words.0);
        words.into_list()
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.words.as_ref().map_or(0, |words| words.list.len())
    }

    /// The list.
    pub fn into_list(self) -> Vec<u64> {
        self.0.words.map(|words| words.list).unwrap_or_default()
    }
}

impl PartialEq for OperationKey {
    fn eq(&self, other: &OperationKey) -> bool {
        // If the bytes are equal, both keys have the same number of opaque entries.
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
