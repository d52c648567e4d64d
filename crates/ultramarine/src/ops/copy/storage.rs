//! Dtypes that only store numbers: their conversion to and from float32, and the single check that rejects them in all
//! other operations.
//!
//! Backends do not know these dtypes. Copies treat their elements as bytes. Conversion runs here on the host, or as a
//! table lookup on the device if the device supports one.

use crate::dtype::{Dtype, Format, Packing, Storage};
use crate::error::{Error, Result, bail};
use crate::ops::copy::{Contiguous, Fresh};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Jvp, Op, Rules, Vjp, Vmap, attributes,
    create::fill, rules::batching, shape::view::View,
};
use crate::shape::{self, Shape};
use crate::{array::Array, backend::Exec, node::Value, pool, sync::lock};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::{Mutex, OnceLock};

/// Checks that an operation accepts these operands and this result, at least one of which has a storage dtype.
///
/// # Errors
/// [`Error::Type`] if the operation does not accept them.
#[cold]
pub(crate) fn admit(op: &Op, inputs: &[&Array], dtype: Dtype) -> Result<()> {
    let packed = inputs.iter().map(|a| a.dtype()).chain([dtype]).find(|d| d.is_packed());
    let allowed = match op.get::<View>() {
        Some(View::Reshape) => true,
        // The operation only moves bytes, so their layout does not matter.
        Some(_) => packed.is_none(),
        None => op.is_given() || op.is::<Recode>() || op.is::<Contiguous>() || op.is::<Fresh>(),
    };
    if allowed {
        return Ok(());
    }
    let stored = inputs.iter().map(|a| a.dtype()).find(|d| d.is_storage());
    let text = match (packed, stored) {
        (Some(packed), _) if op.is::<View>() => {
            let byte = packed.name().trim_end_matches("_packed");
            format!(
                "elements of {packed} share bytes, so they cannot be indexed: convert with astype({byte}) \
                 or astype(float32) first."
            )
        }
        (_, Some(stored)) => return Err(refusal(op.name(), stored)),
        (_, None) => {
            format!("{dtype} is a storage type: ask for float32 and convert with astype({dtype}).")
        }
    };
    Err(Error::type_(op.name(), text))
}

#[cold]
fn refusal(op: &str, stored: Dtype) -> Error {
    Error::type_(op, format!("{stored} is a storage type: convert with astype(float32) first."))
}

impl Array {
    /// Rejects a storage dtype for an operation that [`admit`] would not see: the operation converts its operand first,
    /// or returns some dtypes unchanged.
    ///
    /// # Errors
    /// [`Error::Type`] for a storage dtype.
    #[inline]
    pub(crate) fn computable(&self, op: &str) -> Result<()> {
        if self.dtype().is_storage() { Err(refusal(op, self.dtype())) } else { Ok(()) }
    }

    /// An operand in the promoted dtype, or unchanged if [`admit`] will reject it.
    #[inline]
    pub(crate) fn promoted(&self, dtype: Dtype) -> Cow<'_, Array> {
        match dtype.is_storage() || self.dtype() == dtype {
            true => Cow::Borrowed(self),
            false => Cow::Owned(self.astype(dtype)),
        }
    }
}

/// The array converted to `to`, where either of the dtypes is a storage dtype.
///
/// # Errors
/// [`Error::Value`] if the last axis has an odd number of elements for a dtype that stores pairs.
pub(crate) fn astype(a: &Array, to: Dtype) -> Result<Array> {
    let wide = match a.dtype().storage() {
        Some(storage) => decode(a, storage),
        // float64 is also rounded through float32, because ml_dtypes does so.
        None => a.astype(Dtype::Float32),
    };
    match to.storage() {
        Some(storage) => encode(&wide, to, storage),
        None => Ok(wide.astype(to)),
    }
}

fn recoded(a: &Array, shape: Shape, to: Dtype) -> Array {
    Array::of(Recode, &[a], shape, to)
}

fn decode(a: &Array, storage: &Storage) -> Array {
    let mut shape = Shape::from_slice(a.shape());
    if storage.packing == Packing::Pair {
        match shape.last_mut() {
            Some(last) => *last *= 2,
            None => shape.push(2),
        }
    }
    recoded(a, shape, Dtype::Float32)
}

/// `a` is float32.
fn encode(a: &Array, to: Dtype, storage: &Storage) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    if storage.packing == Packing::Pair {
        match shape.last_mut() {
            Some(last) if last.is_multiple_of(2) => *last /= 2,
            _ => {
                let shown = shape::Show(a.shape());
                bail!(
                    "astype",
                    "{to} holds two numbers in each element, so the last axis must be even; the \
                     shape is {shown}. Pad the last axis."
                );
            }
        }
    }
    Ok(match a.node().constant() {
        Some(value) => fill::filled(shape, value.cast(to)),
        None => recoded(a, shape, to),
    })
}

/// A constant of a storage dtype.
pub(crate) fn filled(shape: Shape, value: crate::Scalar) -> Array {
    let dtype = value.dtype();
    if dtype.is_packed() {
        let wide = fill::filled(shape.clone(), value.cast(Dtype::Float32));
        return recoded(&wide, shape, dtype);
    }
    let byte = crate::Scalar::from_bits(Dtype::Uint8, value.bits());
    Array::of(View::Bitcast, &[&fill::filled(shape.clone(), byte)], shape, dtype)
}

attributes! {
    /// Conversion from a storage dtype to float32, or the reverse. Derivatives are those of
    /// float32: they flow through as they are.
    #[derive(Clone, Debug)]
    pub(crate) struct Recode;
}

/// Rejects derivatives of pairs: pairs change the shape, so no derivative would have the shape of its operand.
fn no_pairs(what: &str, a: Dtype, b: Dtype) -> Result<()> {
    let pair = [a, b].into_iter().find(|d| is_pair(*d));
    pair.map_or(Ok(()), |d| {
        Err(Error::value(
            what,
            format!(
                "{d} has no derivative, because each element holds two numbers. Use float4_e2m1fn."
            ),
        ))
    })
}

fn is_pair(dtype: Dtype) -> bool {
    dtype.storage().is_some_and(|s| s.packing == Packing::Pair)
}

impl Rules for Recode {
    fn name(&self) -> &'static str {
        "astype"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, dtype)], (shape, to))) = node.of() else { return false };
        // A pair is two numbers along the last axis. For an array without axes, mapped or not, the pair is along a new
        // axis.
        let fits = |storage: &Storage, narrow: &[usize], wide: &[usize]| match storage.packing {
            Packing::Pair => {
                let last = narrow.last().and_then(|last| last.checked_mul(2));
                wide.split_last().is_some_and(|(n, rest)| {
                    (*n == 2 && rest == narrow)
                        || (Some(*n) == last && rest == &narrow[..narrow.len() - 1])
                })
            }
            Packing::Byte | Packing::Packed => narrow == wide,
        };
        match (dtype.storage(), to.storage()) {
            (Some(storage), None) => to == Dtype::Float32 && fits(storage, from, shape),
            (None, Some(storage)) => dtype == Dtype::Float32 && fits(storage, shape, from),
            _ => false,
        }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        if !exec.device.is_host() {
            return Err(exec.refuse(self.name()));
        }
        let (input, (from, dtype)) = (call.operand(0), call.descs[0]);
        let copy = exec.contiguous(&input)?;
        let source = copy.as_ref().unwrap_or(input.value);
        let value = exec.alloc(call.shape, call.dtype)?;
        // SAFETY: both values are row-major in host memory, so they have the bytes that their sizes imply. An evaluated
        // value does not change, and the new one is not shared yet. (The system allocated it by mmap, so its bytes are
        // initialised, although with unknown values.)
        let (source, target) = unsafe {
            let bytes = dtype.bytes_of(shape::size(from));
            let target = call.dtype.bytes_of(shape::size(call.shape));
            (slice(source.data(), bytes), slice_mut(value.data(), target))
        };
        match (dtype.storage(), call.dtype.storage()) {
            (Some(storage), None) => decode_all(dtype, storage, source, target),
            (None, Some(storage)) => encode_all(storage, source, target),
            _ => return Err(Error::runtime(self.name(), "neither side is float32.")),
        }
        exec.ran_here();
        Ok(value)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        let x = &d.inputs[0];
        if let Some(storage) = x.dtype().storage()
            && storage.packing != Packing::Packed
        {
            candidates.add(looked_up(x, storage, d.shape));
        }
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        no_pairs("vjp", v.primals[0].dtype(), v.output.dtype())?;
        Ok(smallvec![Some(v.cotangent.clone())])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        no_pairs("jvp", j.primals[0].dtype(), j.output.dtype())?;
        Ok(j.tangents[0].clone())
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let x = &v.inputs[0];
        if is_pair(x.dtype()) || is_pair(v.dtype) {
            // The last axis changes its size, so it must not be the mapped one.
            let x = batching::batched(x, v.axes[0], v.size)?;
            let shape = batching::batched_shape(v);
            return Ok((Array::try_of(Recode, &[&x], shape, v.dtype)?, Some(0)));
        }
        let shape = Shape::from_slice(x.shape());
        Ok((Array::try_of(Recode, &[x], shape, v.dtype)?, v.axes[0]))
    }
}

/// # Safety
/// As [`std::slice::from_raw_parts`], except that an empty slice may be NULL.
unsafe fn slice<'a>(data: *const u8, bytes: usize) -> &'a [u8] {
    // SAFETY: the caller guarantees it.
    if bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, bytes) } }
}

/// # Safety
/// As [`std::slice::from_raw_parts_mut`], except that an empty slice may be NULL.
unsafe fn slice_mut<'a>(data: *mut u8, bytes: usize) -> &'a mut [u8] {
    // SAFETY: the caller guarantees it.
    if bytes == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(data, bytes) } }
}

/// The number for each of the 256 codes of a byte.
fn table(dtype: Dtype, format: Format) -> &'static [f32; 256] {
    static TABLES: [OnceLock<[f32; 256]>; Dtype::STORAGE.len()] =
        [const { OnceLock::new() }; Dtype::STORAGE.len()];
    let table = &TABLES[dtype as usize - Dtype::ALL.len()];
    table.get_or_init(|| std::array::from_fn(|code| format.decode(code as u32)))
}

/// Converts `x` to numbers by a table lookup on its device.
fn looked_up(x: &Array, storage: &Storage, shape: &[usize]) -> Result<Array> {
    let numbers = table(x.dtype(), storage.format);
    let index = x.view(Dtype::Uint8)?.astype(Dtype::Int32);
    if storage.packing == Packing::Byte {
        return Array::from_slice(numbers, &[256])?.take(&index, Some(0));
    }
    let (low, high) = (|code: usize| numbers[code & 15], |code: usize| numbers[code >> 4]);
    let pairs: Vec<f32> = (0..256).flat_map(|code| [low(code), high(code)]).collect();
    Array::from_slice(&pairs, &[256, 2])?.take(&index, Some(0))?.reshape(shape)
}

/// Numbers that a thread converts at a time. The count fills whole bytes in every packing.
const PART: usize = 1 << 14;

/// Calls `f` with parts of both sides on several threads. Each part holds [`PART`] numbers, the last part fewer.
fn in_parts(
    source: &[u8],
    target: &mut [u8],
    [from, to]: [usize; 2],
    f: impl Fn(&[u8], &mut [u8]) + Sync,
) {
    let parts: Vec<_> = source
        .chunks(PART / 8 * from)
        .zip(target.chunks_mut(PART / 8 * to))
        .map(|(source, target)| Mutex::new((source, target)))
        .collect();
    pool::parallel_for(parts.len(), &|i| {
        let (source, target) = &mut *lock(&parts[i]);
        f(source, target);
    });
}

/// Number of bits that a number takes in memory.
fn width(storage: &Storage) -> usize {
    match storage.packing {
        Packing::Byte => 8,
        Packing::Packed | Packing::Pair => storage.format.bits() as usize,
    }
}

fn decode_all(dtype: Dtype, storage: &Storage, source: &[u8], target: &mut [u8]) {
    let (numbers, width) = (table(dtype, storage.format), width(storage));
    in_parts(source, target, [width, 32], |source, target| {
        let target = target.as_chunks_mut::<4>().0;
        if width == 8 {
            for (code, number) in source.iter().zip(target) {
                *number = numbers[*code as usize].to_ne_bytes();
            }
            return;
        }
        for (i, number) in target.iter_mut().enumerate() {
            let (byte, shift) = (i * width / 8, i * width % 8);
            let next = source.get(byte + 1).copied().unwrap_or(0);
            let code = u16::from_le_bytes([source[byte], next]) >> shift;
            *number = numbers[code as usize & ((1 << width) - 1)].to_ne_bytes();
        }
    });
}

fn encode_all(storage: &Storage, source: &[u8], target: &mut [u8]) {
    let (format, width) = (storage.format, width(storage));
    in_parts(source, target, [32, width], |source, target| {
        let numbers = source.as_chunks::<4>().0.iter().map(|n| f32::from_ne_bytes(*n));
        if width == 8 {
            for (number, code) in numbers.zip(target) {
                *code = format.encode(number) as u8;
            }
            return;
        }
        target.fill(0);
        for (i, number) in numbers.enumerate() {
            let (byte, shift) = (i * width / 8, i * width % 8);
            let [low, high] = ((format.encode(number) as u16) << shift).to_le_bytes();
            target[byte] |= low;
            if high != 0 {
                target[byte + 1] |= high;
            }
        }
    });
}
