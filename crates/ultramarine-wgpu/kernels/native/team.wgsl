// Teams of TEAM neighbours in a workgroup. What a team adds or compares goes through `room`, an R for each invocation; a
// member alone needs none.

fn team_sum(x: R, local: u32) -> R {
  if (TEAM == 1u) { return x; }
  room[local] = x;
  workgroupBarrier();
  for (var half = TEAM / 2u; half > 0u; half = half / 2u) {
    if (local % TEAM < half) { room[local] += room[local + half]; }
    workgroupBarrier();
  }
  let total = room[local / TEAM * TEAM];
  workgroupBarrier();
  return total;
}

fn team_max(x: R, local: u32) -> R {
  if (TEAM == 1u) { return x; }
  room[local] = x;
  workgroupBarrier();
  for (var half = TEAM / 2u; half > 0u; half = half / 2u) {
    if (local % TEAM < half) { room[local] = larger(room[local], room[local + half]); }
    workgroupBarrier();
  }
  let top = room[local / TEAM * TEAM];
  workgroupBarrier();
  return top;
}

fn is_nan_r(x: R) -> bool { return !(x == x); }
fn is_infinite_r(x: R) -> bool { return x == infinity_r() || x == -infinity_r(); }
fn infinity_r() -> R { return R(inf32()); }

// NaN is larger than all.
fn larger(a: R, b: R) -> R { return select(a, b, b > a || is_nan_r(b)); }
