// SCAN by workgroups of 256 with shared memory, along chunks of a lane whose elements lie together: tiles of 2048 are
// brought side by side, each invocation takes 8 of their elements, and the totals of invocations are scanned in 4 steps. One
// text for three kernels (`scan.rs`): totals of chunks, what comes before each chunk, and the results. The last adds the totals
// before its own chunk itself, so that no kernel stands between the two; the second is for chunks of single invocations.
//
// Limits: bytes, each element read twice and written once where lanes are cut into chunks, else read once. Totals are made
// from the last chunk to the first, so that the results begin with what caches still hold. Rows of shared memory are 9
// elements for 8, so that invocations meet different banks.

fn NAME(g: u32, local: u32) {
  SETUP
  var carry = start_of();
  var has = false;
  BEFORE
  loop {
    let count = min(end - tile, 2048u);
    BRING
    workgroupBarrier();
    let first = local * 8u;
    let mine = min(8u, count - min(first, count));
    var sum = start_of();
    if (mine == 8u) {
      SUM
    } else {
      if (mine != 0u) { sum = line[local * 9u]; }
      for (var e = 1u; e < mine; e++) { sum = next_of(sum, line[local * 9u + e]); }
    }
    scan_sums(sum, local);
    RESULTS
    let last = sums[(count - 1u) / 8u];
    if (has) { carry = next_of(carry, last); } else { carry = last; }
    has = true;
    if (end - tile <= 2048u) { break; }
    tile += 2048u;
    workgroupBarrier();
  }
  AFTER
}

fn results(local: u32, mine: u32, carry: REGISTER, has: bool, inclusive: bool) {
  var running = carry;
  var any = has;
  if (local != 0u) {
    running = sums[local - 1u];
    if (has) { running = next_of(carry, running); }
    any = true;
  }
  for (var e = 0u; e < mine; e++) {
    // The first element is the first result, whatever is neutral.
    var next = line[local * 9u + e];
    if (any) { next = next_of(running, next); }
    line[local * 9u + e] = select(running, next, inclusive);
    running = next;
    any = true;
  }
}

// Scans a value of each invocation, to the first half of `sums`. A step takes in the 3 neighbours before, and goes from one half
// to the other, so that it needs one barrier.
fn scan_sums(own: REGISTER, local: u32) {
  var value = own;
  var side = 0u;
  sums[local] = value;
  for (var by = 1u; by < 256u; by = by * 4u) {
    workgroupBarrier();
    var before = value;
    var any = false;
    for (var k = 3u; k != 0u; k--) {
      if (local >= k * by) {
        let next = sums[side + local - k * by];
        if (any) { before = next_of(before, next); } else { before = next; }
        any = true;
      }
    }
    if (any) { value = next_of(before, value); }
    side = 256u - side;
    sums[side + local] = value;
  }
  workgroupBarrier();
}

// The totals of a lane's first chunks, one at least, in their order: an invocation has neighbours.
fn carry_of(lane: u32, chunks: u32, local: u32) -> REGISTER {
  let each = (chunks + 255u) / 256u;
  let first = min(local * each, chunks);
  let end = min(first + each, chunks);
  var sum = start_of();
  for (var c = first; c < end; c++) {
    let next = totals[c * word(1u) + lane];
    if (c == first) { sum = next; } else { sum = next_of(sum, next); }
  }
  scan_sums(sum, local);
  return sums[(chunks - 1u) / each];
}
