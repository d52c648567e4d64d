// A choice among `n`: from the end if it is negative, and held to them.
fn chosen(index: i32, n: u32) -> u32 {
  let back = 0u - bitcast<u32>(index);
  if (index < 0i) { return select(n - back, 0u, back > n); }
  return min(bitcast<u32>(index), n - 1u);
}
