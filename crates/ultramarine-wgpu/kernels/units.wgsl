// Units without instructions for them. An invocation has half a row of sums, and all of that row on the left of a product; what
// is right is read from shared memory when it is multiplied.

fn left_unit(unit: vec2<u32>) -> UnitA {
  let row = lane / 2u;
  return UnitA(four_of_row(unit, row, 0u), four_of_row(unit, row, 4u), four_of_row(unit, row, 8u), four_of_row(unit, row, 12u));
}

fn four_of_row(a: vec2<u32>, row: u32, k: u32) -> vec4<f32> {
  return vec4<f32>(unit_element(a, row, k), unit_element(a, row, k + 1u),
    unit_element(a, row, k + 2u), unit_element(a, row, k + 3u));
}

fn multiply_units(a: UnitA, b: vec2<u32>, sums: Sums) -> Sums {
  return multiply_four(a.w, b, 12u, multiply_four(a.z, b, 8u, multiply_four(a.y, b, 4u, multiply_four(a.x, b, 0u, sums))));
}

fn multiply_four(a: vec4<f32>, b: vec2<u32>, k: u32, sums: Sums) -> Sums {
  var all = sums;
  let column = lane % 2u * 8u;
  for (var e = 0u; e < 4u; e++) {
    all.x = fma(vec4<f32>(a[e]), four_of_row(b, k + e, column), all.x);
    all.y = fma(vec4<f32>(a[e]), four_of_row(b, k + e, column + 4u), all.y);
  }
  return all;
}

fn keep_unit(sums: Sums, at: u32) {
  let first = at + lane / 2u * MEET + lane % 2u * 8u;
  for (var e = 0u; e < 4u; e++) {
    meet[first + e] = sums.x[e];
    meet[first + 4u + e] = sums.y[e];
  }
}
