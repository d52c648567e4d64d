// Teams of TEAM neighbours in a workgroup. What a team adds or compares goes through `room`, an R for each invocation, and
// `parts`, PARTS for each team; a member alone needs none. A call's barriers part it from the next one's, too.

fn team_sum(x: R, local: u32) -> R {
  if (TEAM == 1u) { return x; }
  let lane = local % TEAM;
  let first = local / TEAM * PARTS;
  room[local] = x;
  workgroupBarrier();
  if (lane < PARTS) {
    var part = room[local];
    for (var k = 1u; k < TEAM / PARTS; k++) { part += room[local + k * PARTS]; }
    parts[first + lane] = part;
  }
  workgroupBarrier();
  var total = parts[first];
  for (var k = 1u; k < PARTS; k++) { total += parts[first + k]; }
  return total;
}

fn team_max(x: R, local: u32) -> R {
  if (TEAM == 1u) { return x; }
  let lane = local % TEAM;
  let first = local / TEAM * PARTS;
  room[local] = x;
  workgroupBarrier();
  if (lane < PARTS) {
    var part = room[local];
    for (var k = 1u; k < TEAM / PARTS; k++) { part = larger(part, room[local + k * PARTS]); }
    parts[first + lane] = part;
  }
  workgroupBarrier();
  var top = parts[first];
  for (var k = 1u; k < PARTS; k++) { top = larger(top, parts[first + k]); }
  return top;
}

fn is_nan_r(x: R) -> bool { return !(x == x); }
fn is_infinite_r(x: R) -> bool { return x == infinity_r() || x == -infinity_r(); }
fn infinity_r() -> R { return R(inf32()); }

// NaN is larger than all.
fn larger(a: R, b: R) -> R { return select(a, b, b > a || is_nan_r(b)); }
