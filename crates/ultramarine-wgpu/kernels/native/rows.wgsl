// Rows, each shared by a team. Element j of a row belongs to member j % TEAM, so that a team's loads lie together.
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

// Turns in which a team sees a whole row.
fn turns() -> u32 {
  if (HELD != 0u) { return HELD; }
  return (word(2u) + TEAM - 1u) / TEAM;
}

fn keep(turn: u32, x: R) {
  if (HELD != 0u) { held[turn] = x; }
}

// An element that was kept, or else is read again.
fn kept(turn: u32, j: u32) -> R {
  if (HELD != 0u) { return held[turn]; }
  return R(load_a(place(0u, j)));
}

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
