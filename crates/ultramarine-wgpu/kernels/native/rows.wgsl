// Rows, each shared by a team. Where members hold their elements, a member has 4 neighbours for each of its vectors, else
// element j of a row belongs to member j % TEAM: either way a team's loads lie together.
//
// Words: groups or invocations, rows, elements of a row, two for a number, for each of four tensors the step between a
// row's elements or, in rows of several axes, in the first of them where their layout is; the layout of the rows.

// The places of a row's elements in tensor `t`.
fn place(t: u32, j: u32) -> u32 {
  if (WALKED) { return row_begin[t] + places_along(j)[t]; }
  return row_begin[t] + j * row_step[t];
}

fn find_row(row: u32) {
  row_begin = row_places(row);
  row_step = vec4<u32>(word(5u), word(6u), word(7u), word(8u));
}

// The first element of a member's vector.
fn first_of(v: u32, lane: u32) -> u32 { return 4u * (v * TEAM + lane); }

// Loads all that a member holds.
fn hold_row(lane: u32, live: bool) {
  for (var v = 0u; v < HELD; v++) { held[v] = take_a(first_of(v, lane), live); }
}

// Elements from number `j` on, with `other` in place of those behind the row.
fn inside(x: vec4<R>, j: u32, other: R) -> vec4<R> {
  let n = word(2u);
  return vec4<R>(
    select(other, x.x, j < n), select(other, x.y, j + 1u < n), select(other, x.z, j + 2u < n),
    select(other, x.w, j + 3u < n));
}

fn sum_of_four(x: vec4<R>) -> R { return (x.x + x.y) + (x.z + x.w); }

// Turns in which a team sees a whole row.
fn turns() -> u32 { return (word(2u) + TEAM - 1u) / TEAM; }

// A sum of a member's own, in blocks of 32 elements, which keeps errors small.
fn add(turn: u32, x: R) {
  own_part += x;
  if (turn % 32u == 31u) {
    own_sum += own_part;
    own_part = R();
  }
}

// The sum, which begins anew.
fn added() -> R {
  let sum = own_sum + own_part;
  own_sum = R();
  own_part = R();
  return sum;
}
