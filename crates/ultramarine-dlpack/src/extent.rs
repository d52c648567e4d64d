//! The extent of a strided view: the elements and the bytes that it touches.

/// Returns the lowest and the highest element of a view, counted in elements from its first
/// element. The lowest is at most 0, and the highest is at least 0.
///
/// `axes` are the size and stride of each dimension, with the stride in elements. All sizes are
/// positive. Returns `None` if a sum overflows.
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
        // The stride of a dimension with a single element is not used, and may have any value.
        let last = size.checked_sub(1)?.checked_mul(stride)?;
        let end = if last < 0 { &mut low } else { &mut high };
        *end = end.checked_add(last)?;
    }
    Some((low, high))
}

/// Returns the first byte that a view touches and the byte after the last one, counted in bytes
/// from its first element.
///
/// `axes` are as for [`element_range`]. `bits` is the size of an element. Elements that do not fill
/// whole bytes are packed side by side, and the first one begins at a byte. Returns `None` if a
/// number overflows.
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
    // Shifts round down: the first bit to the byte that contains it, and the end to the next byte
    // boundary.
    let first = (i128::from(low) * bits) >> 3;
    let end = ((i128::from(high) + 1) * bits + 7) >> 3;
    Some((i64::try_from(first).ok()?, i64::try_from(end).ok()?))
}
