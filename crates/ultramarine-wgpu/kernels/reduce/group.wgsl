// REDUCE and ARG_REDUCE by workgroups of 256 with shared memory. The lanes of a segment take 4 neighbouring elements each
// and go on behind those of the others; a workgroup has segments of several outputs, unless lanes are 256. Lanes or outputs
// come first in the numbers of invocations, whichever lie together in memory, so that loads of 4 or 16 bytes lie side by
// side. What is added to what depends on shapes alone.
//
// Limits: bytes. An invocation has 8 loads of 4 elements under way, 128 bytes of float32; 65536 invocations or more fill the
// latency of 4.8 TB/s, with 16 additions in registers and one of float64 for each half of those turns.

struct Lane { lane: u32, lanes: u32, apart: u32, item: u32, here: bool }

fn lane_of(g: u32, local: u32) -> Lane {
  let lanes = word(6u);
  let each = 256u / lanes;
  let first = word(7u) != 0u;
  let slot = select(local % each, local / lanes, first);
  let lane = select(local / each, local % lanes, first);
  let item = g * each + slot;
  let here = item < word(1u) * word(4u);
  return Lane(lane, lanes, select(each, 1u, first), select(0u, item, here), here);
}

// The number of reduced axes, and the step along the innermost one.
fn steps_of() -> vec2<u32> {
  let axes = word(5u);
  return vec2<u32>(word(axes), word(axes + 3u));
}

// 4 elements of a reduction, or as many as there is room for.
fn take(base: u32, steps: vec2<u32>, r: u32, room: u32) -> Q {
  let stride = steps.y;
  if (steps.x == 1u) { return pick_a(base + r * stride, stride, room); }
  let at = reduced_at(r);
  if (at.y >= min(room, 4u)) { return pick_a(base + at.x, stride, room); }
  var v = pick_a(base + at.x, 0u, 1u);
  if (room > 1u) { v.y = load_a(base + reduced_at(r + 1u).x); }
  if (room > 2u) { v.z = load_a(base + reduced_at(r + 2u).x); }
  if (room > 3u) { v.w = load_a(base + reduced_at(r + 3u).x); }
  return v;
}

// Likewise from a buffer of vectors, along which there is one axis.
fn take_vector(base: u32, steps: vec2<u32>, r: u32, room: u32) -> Q { return pick_a(base + r, 1u, room); }

fn step_four(sum: N, v: Q) -> N {
  let two = step_narrow(step_narrow(sum, read_value(v.x)), read_value(v.y));
  return step_narrow(step_narrow(two, read_value(v.z)), read_value(v.w));
}

fn step_some(sum: N, v: Q, room: u32) -> N {
  var some = step_narrow(sum, read_value(v.x));
  if (room > 1u) { some = step_narrow(some, read_value(v.y)); }
  if (room > 2u) { some = step_narrow(some, read_value(v.z)); }
  if (room > 3u) { some = step_narrow(some, read_value(v.w)); }
  return some;
}

fn step_turns(v0: Q, v1: Q, v2: Q, v3: Q) -> N {
  return step_four(step_four(step_four(step_four(neutral(), v0), v1), v2), v3);
}

// The elements of a lane in four turns, of which so many elements are left. All loads come before the first sum.
fn step_tensor(base: u32, steps: vec2<u32>, r: u32, left: u32, turn: u32) -> N {
  var sum = neutral();
  if (left >= 3u * turn + 4u) {
    let v0 = TAKE(base, steps, r, 4u);
    let v1 = TAKE(base, steps, r + turn, 4u);
    let v2 = TAKE(base, steps, r + 2u * turn, 4u);
    let v3 = TAKE(base, steps, r + 3u * turn, 4u);
    return step_turns(v0, v1, v2, v3);
  }
  var passed = 0u;
  loop {
    let room = left - passed;
    sum = step_some(sum, TAKE(base, steps, r + passed, room), room);
    if (room <= turn) { break; }
    passed += turn;
  }
  return sum;
}

// Adds eight turns while there are as many, in the same order: all loads come before the first sum. Returns where the rest
// begins.
fn fold_tensor(base: u32, steps: vec2<u32>, r: u32, end: u32, turn: u32, total: ptr<function, W>, lost: ptr<function, W>) -> u32 {
  var at = r;
  loop {
    if (at >= end || end - at < 7u * turn + 4u) { break; }
    let v0 = TAKE(base, steps, at, 4u);
    let v1 = TAKE(base, steps, at + turn, 4u);
    let v2 = TAKE(base, steps, at + 2u * turn, 4u);
    let v3 = TAKE(base, steps, at + 3u * turn, 4u);
    let v4 = TAKE(base, steps, at + 4u * turn, 4u);
    let v5 = TAKE(base, steps, at + 5u * turn, 4u);
    let v6 = TAKE(base, steps, at + 6u * turn, 4u);
    let v7 = TAKE(base, steps, at + 7u * turn, 4u);
    fold_block(total, lost, widen(step_turns(v0, v1, v2, v3)));
    fold_block(total, lost, widen(step_turns(v4, v5, v6, v7)));
    if (end - at <= 8u * turn) { return end; }
    at += 8u * turn;
  }
  return at;
}

fn fold_values(base: u32, steps: vec2<u32>, r: u32, end: u32, turn: u32, total: ptr<function, W>, lost: ptr<function, W>) -> u32 {
  return r;
}

// Likewise of values, which long functions may make: they are called at one place.
fn step_values(base: u32, steps: vec2<u32>, r: u32, left: u32, turn: u32) -> N {
  var sum = neutral();
  for (var u = 0u; u < 4u; u++) {
    let first = u * turn;
    if (first >= left) { break; }
    let at = reduced_at(r + first);
    for (var c = 0u; c < min(left - first, 4u); c++) {
      var place = at.x + c * steps.y;
      if (c >= at.y) { place = reduced_at(r + first + c).x; }
      sum = step_narrow(sum, read_value(load_a(base + place)));
    }
  }
  return sum;
}

fn fold_group(g: u32, local: u32) {
  let at = lane_of(g, local);
  let outputs = word(1u);
  let segment = at.item / outputs;
  let place = locate2(8u, at.item - segment * outputs);
  let first = segment * word(3u);
  let end = first + min(word(3u), word(2u) - first);
  let turn = 4u * at.lanes;
  let steps = steps_of();
  var total = widen(neutral());
  var lost = W();
  var r = FOLD(place.x, steps, first + min(4u * at.lane, end - first), end, turn, &total, &lost);
  loop {
    if (r >= end) { break; }
    let sum = STEP(place.x, steps, r, end - r, turn);
    fold_block(&total, &lost, widen(sum));
    if (end - r <= 4u * turn) { break; }
    r += 4u * turn;
  }
  meet[local] = fold_close(total, lost);
  meet_lanes(local, at.lane, at.lanes, at.apart);
  if (at.here && at.lane == 0u) {
    if (word(4u) == 1u) {
      store_out(place.y, finish(meet[local]));
    } else {
      partial[at.item] = meet[local];
    }
  }
}

// Adds the totals of lanes, whose numbers are so far apart, to that of lane 0.
fn meet_lanes(local: u32, lane: u32, lanes: u32, apart: u32) {
  var half = lanes / 2u;
  loop {
    workgroupBarrier();
    if (half == 0u) { break; }
    if (lane < half) {
      var total = meet[local];
      var lost = W();
      fold_block(&total, &lost, meet[local + half * apart]);
      meet[local] = fold_close(total, lost);
    }
    half = half / 2u;
  }
}

// The many segments of an output, which is the workgroup's number.
fn fold_merge_group(o: u32, local: u32) {
  let outputs = word(1u);
  let segments = word(4u);
  var total = widen(neutral());
  var lost = W();
  for (var s = local; s < segments; s += 256u) { fold_block(&total, &lost, partial[s * outputs + o]); }
  meet[local] = fold_close(total, lost);
  meet_lanes(local, local, 256u, 1u);
  if (local == 0u) { store_out(locate2(8u, o).y, finish(meet[0])); }
}

// Segments of 256 lanes, a workgroup each, of which the last to come adds the totals of all. `tickets` has a count for each
// output, which is zero before and behind.
fn fold_single(g: u32, local: u32) {
  let outputs = word(1u);
  fold_group(g, local);
  if (!is_last(g % outputs, local)) { return; }
  fold_merge_group(g % outputs, local);
}

// Returns true for the workgroup that is the last to say that its part of an output is in `partial`.
fn is_last(o: u32, local: u32) -> bool {
  storageBarrier();
  if (local == 0u) { arrived = atomicAdd(&tickets[o], 1u); }
  let last = workgroupUniformLoad(&arrived) == word(4u) - 1u;
  if (last && local == 0u) { atomicStore(&tickets[o], 0u); }
  storageBarrier();
  return last;
}

const NONE: u32 = 0xffffffffu;

// Of two elements with their numbers: the first is the result rather than the second. Of equals the earlier one is.
fn is_before(value: A, r: u32, old: A, old_r: u32) -> bool {
  return beats(value, old) || (r < old_r && !beats(old, value));
}

// Of 4 elements from number `r` on, or as many as there is room for, and those before them.
fn see_some(v: Q, r: u32, room: u32, old: ptr<function, A>, best: ptr<function, u32>) {
  if (*best == NONE || beats(v.x, *old)) { *old = v.x; *best = r; }
  if (room > 1u && beats(v.y, *old)) { *old = v.y; *best = r + 1u; }
  if (room > 2u && beats(v.z, *old)) { *old = v.z; *best = r + 2u; }
  if (room > 3u && beats(v.w, *old)) { *old = v.w; *best = r + 3u; }
}

fn see_turns(v0: Q, v1: Q, v2: Q, v3: Q, r: u32, turn: u32, old: ptr<function, A>, best: ptr<function, u32>) {
  see_some(v0, r, 4u, old, best);
  see_some(v1, r + turn, 4u, old, best);
  see_some(v2, r + 2u * turn, 4u, old, best);
  see_some(v3, r + 3u * turn, 4u, old, best);
}

fn arg_group(g: u32, local: u32) {
  let at = lane_of(g, local);
  let outputs = word(1u);
  let segment = at.item / outputs;
  let place = locate2(8u, at.item - segment * outputs);
  let first = segment * word(3u);
  let end = first + min(word(3u), word(2u) - first);
  let turn = 4u * at.lanes;
  let steps = steps_of();
  var r = first + min(4u * at.lane, end - first);
  var best = NONE;
  var old = A();
  loop {
    if (r >= end) { break; }
    let room = end - r;
    var taken = turn;
    if (room >= 7u * turn + 4u) {
      // All loads come before the first comparison.
      let v0 = TAKE(place.x, steps, r, 4u);
      let v1 = TAKE(place.x, steps, r + turn, 4u);
      let v2 = TAKE(place.x, steps, r + 2u * turn, 4u);
      let v3 = TAKE(place.x, steps, r + 3u * turn, 4u);
      let v4 = TAKE(place.x, steps, r + 4u * turn, 4u);
      let v5 = TAKE(place.x, steps, r + 5u * turn, 4u);
      let v6 = TAKE(place.x, steps, r + 6u * turn, 4u);
      let v7 = TAKE(place.x, steps, r + 7u * turn, 4u);
      see_turns(v0, v1, v2, v3, r, turn, &old, &best);
      see_turns(v4, v5, v6, v7, r + 4u * turn, turn, &old, &best);
      taken = 8u * turn;
    } else if (room >= 3u * turn + 4u) {
      let v0 = TAKE(place.x, steps, r, 4u);
      let v1 = TAKE(place.x, steps, r + turn, 4u);
      let v2 = TAKE(place.x, steps, r + 2u * turn, 4u);
      let v3 = TAKE(place.x, steps, r + 3u * turn, 4u);
      see_turns(v0, v1, v2, v3, r, turn, &old, &best);
      taken = 4u * turn;
    } else {
      see_some(TAKE(place.x, steps, r, room), r, room, &old, &best);
    }
    if (room <= taken) { break; }
    r += taken;
  }
  meet[local] = old;
  meet_index[local] = best;
  meet_arg(local, at.lane, at.lanes, at.apart);
  if (at.here && at.lane == 0u) {
    if (word(4u) == 1u) {
      store_out(place.y, meet_index[local]);
    } else {
      partial[at.item] = meet_index[local];
    }
  }
}

// As `fold_single`.
fn arg_single(g: u32, local: u32) {
  let outputs = word(1u);
  arg_group(g, local);
  if (!is_last(g % outputs, local)) { return; }
  arg_merge_group(g % outputs, local);
}

fn meet_arg(local: u32, lane: u32, lanes: u32, apart: u32) {
  var half = lanes / 2u;
  loop {
    workgroupBarrier();
    if (half == 0u) { break; }
    if (lane < half) {
      let other = local + half * apart;
      let there = meet_index[other] != NONE;
      let here = meet_index[local] != NONE;
      if (there && (!here || is_before(meet[other], meet_index[other], meet[local], meet_index[local]))) {
        meet[local] = meet[other];
        meet_index[local] = meet_index[other];
      }
    }
    half = half / 2u;
  }
}

fn arg_merge_group(o: u32, local: u32) {
  let outputs = word(1u);
  let segments = word(4u);
  let place = locate2(8u, o);
  let stride = step_along();
  var best = NONE;
  var old = A();
  for (var s = local; s < segments; s += 256u) {
    let next = partial[s * outputs + o];
    let value = load_a(place.x + next * stride);
    if (best == NONE || beats(value, old)) {
      old = value;
      best = next;
    }
  }
  meet[local] = old;
  meet_index[local] = best;
  meet_arg(local, local, 256u, 1u);
  if (local == 0u) { store_out(place.y, meet_index[0]); }
}
