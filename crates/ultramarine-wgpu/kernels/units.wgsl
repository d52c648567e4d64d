// Units without instructions for them. An invocation has half a row of sums, and all of that row on the left of a product; what
// is right is read from shared memory when it is multiplied.

fn left_unit(unit: vec2<u32>) -> UnitA {
  let row = lane / 2u;
  return UnitA(four_of_row(unit, row, 0u), four_of_row(unit, row, 4u), four_of_row(unit, row, 8u), four_of_row(unit, row, 12u));
}

fn four_of_row(unit: vec2<u32>, row: u32, column: u32) -> vec4<f32> {
  return vec4<f32>(unit_element(unit, row, column), unit_element(unit, row, column + 1u),
    unit_element(unit, row, column + 2u), unit_element(unit, row, column + 3u));
}

// A loop that compilers do not unroll: they take their time over many of these.
fn multiply_units(a: UnitA, b: vec2<u32>, sums: Sums) -> Sums {
  var rest = a;
  var all = sums;
  let column = lane % 2u * 8u;
  for (var k = 0u; k < 16u + im.zero; k++) {
    let x = vec4<f32>(rest.x.x);
    all.x = fma(x, four_of_row(b, k, column), all.x);
    all.y = fma(x, four_of_row(b, k, column + 4u), all.y);
    rest.x = vec4<f32>(rest.x.yzw, rest.y.x);
    rest.y = vec4<f32>(rest.y.yzw, rest.z.x);
    rest.z = vec4<f32>(rest.z.yzw, rest.w.x);
    rest.w = vec4<f32>(rest.w.yzw, 0.0);
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
