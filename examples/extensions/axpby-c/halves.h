/* float16 and bfloat16 as float32, and back, rounded to nearest, ties to even. */
#ifndef AXPBY_HALVES_H
#define AXPBY_HALVES_H

#include <stdint.h>
#include <string.h>

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float read_bf16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

static uint16_t write_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* a NaN stays one */
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static float read_f16(uint16_t half) {
  /* The exponent's bias is set right by a product, which is exact for subnormal numbers, too. */
  uint32_t size = (uint32_t)(half & 0x7fffu) << 13;
  uint32_t bits = bits_of(float_of(size) * 0x1p112f);
  if (size >= 0x0f800000u) bits |= 0x7f800000u; /* infinity or NaN */
  return float_of(bits | (uint32_t)(half & 0x8000u) << 16);
}

static uint16_t write_f16(float value) {
  uint32_t bits = bits_of(value), size = bits & 0x7fffffffu, half;
  if (size >= 0x47800000u) {
    half = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (size < 0x38800000u) {
    /* Subnormal: beside 0.5, the last bit of a float is that of such a half, and the sum rounds to it. */
    half = bits_of(float_of(size) + 0.5f) - 0x3f000000u;
  } else {
    /* To nearest, ties to even; a carry into the exponent is right, also that to infinity. */
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  }
  return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

#endif
