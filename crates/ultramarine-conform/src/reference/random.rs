//! RANDOM_BITS: Threefry-2x32.

/// Threefry-2x32 with 20 rounds.
fn block(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], 0x1BD1_1BDA ^ key[0] ^ key[1]];
    let rotations = [13, 15, 26, 6, 17, 29, 16, 24];
    let mut x = counter[0].wrapping_add(schedule[0]);
    let mut y = counter[1].wrapping_add(schedule[1]);
    for round in 0..20usize {
        x = x.wrapping_add(y);
        y = y.rotate_left(rotations[round % 8]) ^ x;
        if round % 4 == 3 {
            let step = round / 4 + 1;
            x = x.wrapping_add(schedule[step % 3]);
            y = y.wrapping_add(schedule[(step + 1) % 3]).wrapping_add(step as u32);
        }
    }
    [x, y]
}

/// Returns the first `n` bytes of a key. For each `i` below `half`, which is half of the words
/// rounded up, the counters (i, i + half) give the words i and half + i.
pub fn bytes(key: [u32; 2], n: usize) -> Vec<u8> {
    let words = n.div_ceil(4);
    let half = words.div_ceil(2);
    let mut all = vec![0u32; 2 * half];
    for i in 0..half {
        let second = if half + i < words { (half + i) as u32 } else { 0 };
        [all[i], all[half + i]] = block(key, [i as u32, second]);
    }
    let mut bytes: Vec<u8> = all[..words].iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.truncate(n);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_authors() {
        assert_eq!(block([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(block([!0, !0], [!0, !0]), [0x1cb9_96fc, 0xbb00_2be7]);
    }
}
