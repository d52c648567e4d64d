//! The extent of a strided view: the elements and the bytes that it touches.

/// Returns the lowest and the highest element of a view, in elements from its first one: at most 0, and at least 0.
///
/// `axes` are size and stride of each dimension, the stride in elements; no size is 0 or less. Returns `None` if a sum
/// overflows.
///
/// ```
/// # use ultramarine_dlpack::element_range;
/// assert_eq!(element_range([(3, 4), (2, -1)]), Some((-1, 8)));
/// assert_eq!(element_range([(3, i64::MAX)]), None);
/// ```
#[inline]
pub fn element_range(axes: impl IntoIterator<Item = (i64, i64)>) -> Option<(i64, i64)> {
    let (mut low, mut high) = (0i64, 0i64);
    for (size, stride) in axes {
        // The stride of a single element leads nowhere, and may be anything.
        let last = size.checked_sub(1)?.checked_mul(stride)?;
        let end = if last < 0 { &mut low } else { &mut high };
        *end = end.checked_add(last)?;
    }
    Some((low, high))
}

/// Returns the first byte and the one past the last byte that a view touches, in bytes from its first element.
///
/// `axes` are as for [`element_range`]. `bits` is the size of an element; elements that do not fill whole bytes lie side
/// by side, and the first one begins with a byte. Returns `None` if a number overflows.
///
/// ```
/// # use ultramarine_dlpack::byte_range;
/// assert_eq!(byte_range([(3, 4), (2, -1)], 32), Some((-4, 36)));
/// assert_eq!(byte_range([(5, 1)], 4), Some((0, 3)));
/// ```
#[inline]
pub fn byte_range(axes: impl IntoIterator<Item = (i64, i64)>, bits: usize) -> Option<(i64, i64)> {
    let (low, high) = element_range(axes)?;
    let bits = i128::try_from(bits).ok().filter(|bits| *bits <= i128::from(u32::MAX))?;
    // Shifts round down: the first bit to its byte, the last one to the next byte.
    let first = (i128::from(low) * bits) >> 3;
    let end = ((i128::from(high) + 1) * bits + 7) >> 3;
    Some((i64::try_from(first).ok()?, i64::try_from(end).ok()?))
}
