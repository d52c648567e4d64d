// COPY between tensors that lie along different axes, of elements of 4 or 2 bytes whose places are multiples of 4: an invocation
// has 4 by 4 of them, which it reads as 4 vectors along axis `a`, where the input lies together, and writes as 4 along axis
// `b`, where the output does. The workgroups of 256 have tiles of 64 by 64 elements. A subgroup of 32 has 16 along `a` and 32
// along `b`: it reads 64 bytes of each line, and writes 128, where elements have 4.
//
// Limits: bytes. No invocation waits for another, and each has 4 loads under way.
//
// Words: workgroups, sizes of axes `a` and `b`, tiles along `a`, tiles of both, the input's stride along `b`, the output's
// along `a`; the layout of the other axes. Sizes, strides and offsets count vectors.

fn copy_blocks(g: u32, local: u32) {
  let outer = g / word(4u);
  let number = g - outer * word(4u);
  let tile_b = number / word(3u);
  let block_a = (number - tile_b * word(3u)) * 16u + local / 32u % 4u * 4u + local % 4u;
  let block_b = tile_b * 16u + local / 128u * 8u + local % 32u / 4u;
  if (block_a >= word(1u) || block_b >= word(2u)) { return; }
  let base = locate2(7u, outer);
  let step = word(5u);
  let begin = base.x + 4u * block_b * step + block_a;
  let v0 = a[begin];
  let v1 = a[begin + step];
  let v2 = a[begin + 2u * step];
  let v3 = a[begin + 3u * step];
  let out_step = word(6u);
  let end = base.y + 4u * block_a * out_step + block_b;
  out[end] = across0(v0, v1, v2, v3);
  out[end + out_step] = across1(v0, v1, v2, v3);
  out[end + 2u * out_step] = across2(v0, v1, v2, v3);
  out[end + 3u * out_step] = across3(v0, v1, v2, v3);
}
