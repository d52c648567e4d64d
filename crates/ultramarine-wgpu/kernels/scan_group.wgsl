// SCAN by workgroups of 256 with shared memory, along chunks of a lane whose elements lie together: tiles of 2048 are
// brought side by side, each invocation takes 8 of their elements, and the totals of invocations are scanned in 8 steps. One
// text for three kernels (`scan.rs`): totals of chunks, what comes before each chunk, and the results.
//
// Limits: bytes, each element read twice and written once where lanes are cut into chunks, else read once. Rows of shared
// memory are 9 elements for 8, so that invocations meet different banks.

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
    sums[local] = sum;
    for (var by = 1u; by < 256u; by = by * 2u) {
      workgroupBarrier();
      var value = sums[local];
      if (local >= by) { value = next_of(sums[local - by], value); }
      workgroupBarrier();
      sums[local] = value;
    }
    workgroupBarrier();
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
