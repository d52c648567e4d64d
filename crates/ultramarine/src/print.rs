//! Printing, as MLX prints: `array([1, 2.5, 3], dtype=float32)`.

use crate::{array::Array, dtype::Dtype, error::Result, node::Value, scalar::Scalar};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicI32, Ordering};

/// Entries shown at each end of a longer dimension.
const EDGE: usize = 3;

/// The form in which numbers are shown: by [`format`](fn@format) for one array, by
/// [`set_print_options`] for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Decimals; negative: six significant digits.
    pub precision: i32,
}

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions { precision: -1 }
    }
}

static PRECISION: AtomicI32 = AtomicI32::new(-1);

/// Returns the options that `Display` uses.
pub fn print_options() -> PrintOptions {
    PrintOptions { precision: PRECISION.load(Ordering::Relaxed) }
}

/// Sets the options that `Display` uses, for the whole process.
///
/// ```
/// use ultramarine::{Array, print::{PrintOptions, format, set_print_options}};
/// let x = Array::from_slice(&[1.0f32 / 3.0], &[1])?;
/// assert_eq!(format(&x, PrintOptions { precision: 2 })?, "array([0.33], dtype=float32)");
/// set_print_options(PrintOptions { precision: 2 });
/// assert_eq!(x.to_string(), "array([0.33], dtype=float32)");
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn set_print_options(options: PrintOptions) {
    PRECISION.store(options.precision, Ordering::Relaxed);
}

/// Returns the array as text, as `Display` does, with options of its own. Evaluates the array.
///
/// # Errors
/// As [`Array::eval`].
pub fn format(array: &Array, options: PrintOptions) -> Result<String> {
    let dtype = array.dtype();
    // Numbers that have no byte of their own.
    let array = if dtype.bits() < 8 || dtype == Dtype::Float4E2m1fnX2 {
        array.try_astype(Dtype::Float32)?
    } else {
        array.clone()
    };
    let value = array.on_host()?;
    let mut out = String::from("array(");
    write_axis(&mut out, &array, &value, 0, 0, options);
    let _ = write!(out, ", dtype={dtype})");
    Ok(out)
}

fn write_axis(
    out: &mut String,
    array: &Array,
    value: &Value,
    axis: usize,
    offset: isize,
    options: PrintOptions,
) {
    let shape = array.shape();
    if axis == shape.len() {
        return write_element(out, array.dtype(), value, offset, options);
    }
    out.push('[');
    let n = shape[axis];
    let separator = if axis + 1 == shape.len() {
        ", ".to_string()
    } else {
        format!(",\n{}", " ".repeat("array(".len() + axis + 1))
    };
    let mut i = 0;
    while i < n {
        if i > 0 {
            out.push_str(&separator);
        }
        if n > 2 * EDGE && i == EDGE {
            out.push_str("...");
            i = n - EDGE;
            continue;
        }
        let offset = offset + i as isize * value.strides[axis];
        write_axis(out, array, value, axis + 1, offset, options);
        i += 1;
    }
    out.push(']');
}

fn write_element(
    out: &mut String,
    dtype: Dtype,
    value: &Value,
    offset: isize,
    options: PrintOptions,
) {
    let size = dtype.size();
    let mut bits = [0u8; 8];
    // SAFETY: `offset` is an index within the shape times the strides, so the element
    // lies in the value's buffer, which is host memory.
    unsafe {
        let from = value.data().offset(offset * size as isize);
        std::ptr::copy_nonoverlapping(from, bits.as_mut_ptr(), size);
    }
    write_scalar(out, Scalar::from_bits(dtype, u64::from_le_bytes(bits)), options);
}

/// A number as arrays print it.
pub(crate) fn write_scalar(out: &mut String, v: Scalar, options: PrintOptions) {
    let _ = match v.dtype() {
        Dtype::Bool => write!(out, "{}", if v.bits() != 0 { "True" } else { "False" }),
        Dtype::Uint64 => write!(out, "{}", v.bits()),
        Dtype::Complex64 => {
            let (re, im) = v.to_complex();
            write_float(out, re, options);
            if im >= 0.0 || im.is_nan() {
                out.push('+');
            }
            write_float(out, im, options);
            write!(out, "j")
        }
        d if d.is_floating() || d.is_storage() => {
            write_float(out, v.to_f64(), options);
            Ok(())
        }
        _ => write!(out, "{}", v.to_i64()),
    };
}

/// C's `%.6g`, or `%.{precision}f`.
fn write_float(out: &mut String, v: f64, options: PrintOptions) {
    let _ = if v.is_nan() {
        write!(out, "{}", if v.is_sign_negative() { "-nan" } else { "nan" })
    } else if v.is_infinite() {
        write!(out, "{}", if v > 0.0 { "inf" } else { "-inf" })
    } else if options.precision >= 0 {
        write!(out, "{v:.*}", options.precision as usize)
    } else {
        general(out, v)
    };
}

fn general(out: &mut String, v: f64) -> fmt::Result {
    const DIGITS: i32 = 6;
    // Rounded to six digits first, since that decides the exponent.
    let scientific = format!("{v:.*e}", DIGITS as usize - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return write!(out, "{v}") };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |s: &str| -> String {
        if s.contains('.') {
            s.trim_end_matches('0').trim_end_matches('.').into()
        } else {
            s.into()
        }
    };
    if (-4..DIGITS).contains(&exponent) {
        write!(out, "{}", strip(&format!("{v:.*}", (DIGITS - 1 - exponent) as usize)))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{}e{sign}{:02}", strip(mantissa), exponent.abs())
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format(self, print_options()) {
            Ok(text) => f.write_str(&text),
            // Printing must not lose the reason why there is nothing to print.
            Err(error) => write!(f, "array(<{error}>, dtype={})", self.dtype()),
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
