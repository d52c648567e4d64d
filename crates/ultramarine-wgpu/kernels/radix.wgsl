// SORT and ARG_SORT of long lanes with keys of 32 bits: a stable radix sort, from the lowest 8 bits of keys to the highest.
// A workgroup of 256 takes a block of 4096 elements, 16 for each invocation. Each pass counts the digits of blocks, sums the
// counts of a digit over the blocks of a lane, and moves the elements: a block is sorted by the digit in shared memory, half
// of its bits at a time, so that elements of one digit lie together when they are written.
//
// Elements move with the number that they had in their lane, or as their words alone, from which keys are made again.
//
// Limits: a pass moves 20 bytes for each element, or 12 of words, where a merge moves 16; there are 4 passes instead of
// log2(n / 1024).
//
// Words: workgroups, length of a lane, steps of input and output, the first bit of the digit, where keys and indices are taken
// from and put (as in sort.wgsl), where counts are, where their totals are; the layout of the lanes (input, output). Counts
// lie by lane, digit and block, totals by lane and digit. A line that begins with EACH is there for each of 16 elements, with
// their number in place of #.

fn digit_of(key: u32) -> u32 { return (key >> word(4u)) & 255u; }

// A workgroup's block.
fn block_of(g: u32) -> Block {
  let length = word(1u);
  let blocks = (length + 4095u) / 4096u;
  let lane = g / blocks;
  let block = g - lane * blocks;
  return Block(lane, blocks, block, block * 4096u, min(4096u, length - block * 4096u));
}

fn radix_count(g: u32, local: u32) {
  let mine = block_of(g);
  let from_lane = from_of(mine.lane);
  atomicStore(&digits[local], 0u);
  EACH let key# = key_at(from_lane, mine.first + min(local + #u * 256u, mine.count - 1u));
  workgroupBarrier();
  EACH if (local + #u * 256u < mine.count) { atomicAdd(&digits[digit_of(key#)], 1u); }
  workgroupBarrier();
  indices[word(9u) + (mine.lane * 256u + local) * mine.blocks + mine.block] = atomicLoad(&digits[local]);
}

// The counts of a digit become those of the blocks before.
fn radix_sums(g: u32, local: u32) {
  let blocks = (word(1u) + 4095u) / 4096u;
  let base = word(9u) + g * blocks;
  var carry = 0u;
  for (var first = 0u; first < blocks; first += 2048u) {
    let mine = first + local * 8u;
    var sum = 0u;
    for (var k = 0u; k < 8u; k++) {
      if (mine + k < blocks) { sum += indices[base + mine + k]; }
    }
    let found = sums_before(sum, local);
    var before = carry + found.x;
    for (var k = 0u; k < 8u; k++) {
      if (mine + k < blocks) {
        let count = indices[base + mine + k];
        indices[base + mine + k] = before;
        before += count;
      }
    }
    carry += found.y;
  }
  if (local == 0u) { indices[word(10u) + g] = carry; }
}

// The sum of the invocations' numbers before this one, and of all. A step takes in the 3 neighbours before, and goes from one
// half of `sums` to the other, so that it needs one barrier. The last barrier parts it from the next call.
fn sums_before(x: u32, local: u32) -> vec2<u32> {
  var value = x;
  var side = 0u;
  sums[local] = x;
  for (var by = 1u; by < 256u; by = by * 4u) {
    workgroupBarrier();
    for (var k = 1u; k < 4u; k++) {
      if (local >= k * by) { value += sums[side + local - k * by]; }
    }
    side = 256u - side;
    sums[side + local] = value;
  }
  workgroupBarrier();
  let found = vec2<u32>(value - x, sums[255]);
  workgroupBarrier();
  return found;
}

// Places in shared memory, with gaps so that neighbours meet different banks.
fn apart16(p: u32) -> u32 { return p + p / 16u; }
fn apart32(e: u32) -> u32 { return e + e / 32u; }

// Place of the count of a part of 4 bits: a word has two counts, of parts that differ by 8.
fn column_of(part: u32, local: u32) -> u32 { return apart32((part & 7u) * 256u + local); }

// Counts an invocation's element, and returns how many of that part it had before.
fn count_part(part: u32, local: u32) -> u32 {
  let at = column_of(part, local);
  let shift = (part >> 3u) * 16u;
  let old = columns[at];
  columns[at] = old + (1u << shift);
  return (old >> shift) & 0xffffu;
}

// The block's elements with lower parts, or with this one in invocations before.
fn before_part(part: u32, local: u32) -> u32 {
  return (columns[column_of(part, local)] >> ((part >> 3u) * 16u)) & 0xffffu;
}

// Replaces the counts of invocations by those of lower parts, or of this one before the invocation.
fn sum_columns(local: u32) {
  var sum = 0u;
  for (var k = 0u; k < 8u; k++) { sum += columns[apart32(local * 8u + k)]; }
  let found = sums_before(sum, local);
  // The upper halves come behind all lower ones.
  var before = found.x + (found.y << 16u);
  for (var k = 0u; k < 8u; k++) {
    let e = apart32(local * 8u + k);
    let own = columns[e];
    columns[e] = before;
    before += own;
  }
}

fn radix_move(g: u32, local: u32) {
  let mine = block_of(g);
  let from_lane = from_of(mine.lane);
  // Elements behind the lane's end have the highest key, and stay last.
  EACH let load# = mine.first + min(local + #u * 256u, mine.count - 1u);
  EACH var key# = select(0xffffffffu, key_at(from_lane, load#), local + #u * 256u < mine.count);
  EACH var index# = index_at(from_lane, load#);
  let digit = mine.lane * 256u + local;
  let begin = sums_before(indices[word(10u) + digit], local).x + indices[word(9u) + digit * mine.blocks + mine.block];
  EACH room[apart16(local + #u * 256u)] = key#;
  workgroupBarrier();
  EACH key# = room[local * 17u + #u];
  workgroupBarrier();
  EACH room[apart16(local + #u * 256u)] = index#;
  workgroupBarrier();
  EACH index# = room[local * 17u + #u];
  for (var bit = 0u; bit < 8u; bit += 4u) {
    EACH let part# = (digit_of(key#) >> bit) & 15u;
    for (var row = 0u; row < 8u; row++) { columns[apart32(row * 256u + local)] = 0u; }
    EACH let to# = count_part(part#, local);
    workgroupBarrier();
    sum_columns(local);
    workgroupBarrier();
    // Found again, by a zero that compilers do not know: they would hold all of it in registers.
    let again = bit + im.zero;
    EACH let place# = apart16(to# + before_part((digit_of(key#) >> again) & 15u, local));
    EACH room[place#] = key#;
    workgroupBarrier();
    EACH key# = room[local * 17u + #u];
    workgroupBarrier();
    EACH room[place#] = index#;
    workgroupBarrier();
    EACH index# = room[local * 17u + #u];
  }
  workgroupBarrier();
  EACH room[local * 17u + #u] = index#;
  workgroupBarrier();
  EACH index# = room[apart16(local + #u * 256u)];
  workgroupBarrier();
  EACH room[local * 17u + #u] = key#;
  workgroupBarrier();
  EACH key# = room[apart16(local + #u * 256u)];
  // The first of a digit says where it begins.
  EACH if (starts_digit(local + #u * 256u, key#)) { starts[digit_of(key#)] = local + #u * 256u; }
  sums[local] = begin;
  workgroupBarrier();
  EACH let d# = digit_of(key#); let into# = sums[d#] + local + #u * 256u - starts[d#];
  EACH if (local + #u * 256u < mine.count) { put(mine.lane, into#, key#, index#); }
}

fn starts_digit(p: u32, key: u32) -> bool {
  if (p == 0u) { return true; }
  return digit_of(room[apart16(p - 1u)]) != digit_of(key);
}

// Likewise of elements that are words, from which keys are made: half as much passes through shared memory. Elements behind
// the lane's end stay last, so that their places say which they are.
fn radix_move_words(g: u32, local: u32) {
  let mine = block_of(g);
  let from_lane = from_of(mine.lane);
  EACH var x# = index_at(from_lane, mine.first + min(local + #u * 256u, mine.count - 1u));
  let digit = mine.lane * 256u + local;
  let begin = sums_before(indices[word(10u) + digit], local).x + indices[word(9u) + digit * mine.blocks + mine.block];
  EACH room[apart16(local + #u * 256u)] = x#;
  workgroupBarrier();
  EACH x# = room[local * 17u + #u];
  for (var bit = 0u; bit < 8u; bit += 4u) {
    for (var row = 0u; row < 8u; row++) { columns[apart32(row * 256u + local)] = 0u; }
    EACH let part# = (digit_in(x#, local * 16u + #u, mine.count) >> bit) & 15u;
    EACH let to# = count_part(part#, local) | (part# << 16u);
    workgroupBarrier();
    sum_columns(local);
    workgroupBarrier();
    EACH room[apart16((to# & 0xffffu) + before_part(to# >> 16u, local))] = x#;
    workgroupBarrier();
    if (bit == 0u) {
      EACH x# = room[local * 17u + #u];
    }
  }
  EACH x# = room[apart16(local + #u * 256u)];
  EACH let d# = digit_in(x#, local + #u * 256u, mine.count);
  // The first of a digit says where it begins.
  EACH if (starts_word(local + #u * 256u, d#, mine.count)) { starts[d#] = local + #u * 256u; }
  sums[local] = begin;
  workgroupBarrier();
  EACH if (local + #u * 256u < mine.count) { put(mine.lane, sums[d#] + local + #u * 256u - starts[d#], 0u, x#); }
}

// The digit of the word at a place of a block; the highest behind its elements.
fn digit_in(x: u32, p: u32, count: u32) -> u32 { return select(255u, digit_of(key_of_word(x)), p < count); }

fn starts_word(p: u32, digit: u32, count: u32) -> bool {
  if (p == 0u) { return true; }
  return digit_in(room[apart16(p - 1u)], p - 1u, count) != digit;
}
