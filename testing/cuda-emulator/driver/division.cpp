// Integer division that a processor refuses and a GPU does not: by zero, and of the smallest integer by -1.
#include "division.h"

#include <cstdint>
#include <ucontext.h>

namespace emulated {

#if defined(__x86_64__)

// The processor's numbers of its registers as places in the saved context.
static const int places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Division {
  int size;         // of the operands in bytes
  bool is_signed;
  uint64_t divisor;
  const uint8_t *next; // the instruction behind it
};

// Reads the DIV or IDIV at `at`; false if there is another instruction.
static bool decode(const uint8_t *at, const greg_t *registers, Division *out) {
  int size = 4, rex = 0;
  for (; *at == 0x66 || *at == 0xF2 || *at == 0xF3 || *at == 0x2E || *at == 0x3E; at++)
    if (*at == 0x66) size = 2;
  if ((*at & 0xF0) == 0x40) rex = *at++;
  if (rex & 8) size = 8;
  if (*at == 0xF6) size = 1;
  else if (*at != 0xF7) return false;
  int form = at[1], mode = form >> 6, operation = form >> 3 & 7, base = form & 7;
  at += 2;
  if (operation != 6 && operation != 7) return false;
  out->size = size;
  out->is_signed = operation == 7;
  uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
  if (mode == 3) {
    // Without a REX prefix the byte registers 4 to 7 are the second bytes of the first four.
    bool second = size == 1 && !rex && base >= 4;
    uint64_t value = registers[places[second ? base - 4 : base | (rex & 1) << 3]];
    out->divisor = (second ? value >> 8 : value) & mask;
    out->next = at;
    return true;
  }
  uint64_t address = 0;
  bool relative = false;
  if (base == 4) {
    int sib = *at++, index = (sib >> 3 & 7) | (rex & 2) << 2, from = (sib & 7) | (rex & 1) << 3;
    if (index != 4) address += (uint64_t)registers[places[index]] << (sib >> 6);
    if ((sib & 7) == 5 && mode == 0) mode = 4; // no base, four bytes of displacement
    else address += registers[places[from]];
  } else if (base == 5 && mode == 0) {
    relative = true;
    mode = 4;
  } else {
    address += registers[places[base | (rex & 1) << 3]];
  }
  if (mode == 1) address += (int8_t)*at++;
  if (mode == 2 || mode == 4) {
    int32_t displacement;
    __builtin_memcpy(&displacement, at, 4);
    at += 4;
    address += (int64_t)displacement;
  }
  if (relative) address += (uint64_t)at;
  uint64_t value = 0;
  __builtin_memcpy(&value, (const void *)address, size);
  out->divisor = value;
  out->next = at;
  return true;
}

bool divide_as_gpu(void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  Division division;
  if (!decode((const uint8_t *)registers[REG_RIP], registers, &division)) return false;
  uint64_t low = registers[REG_RAX], quotient, rest;
  if (division.divisor == 0) {
    quotient = ~0ull;
    rest = low;
  } else { // too large: the smallest integer by -1
    quotient = low;
    rest = 0;
  }
  auto set = [](greg_t *to, uint64_t value, int size) {
    if (size == 4) *to = (greg_t)(uint32_t)value; // clears the upper half
    else if (size == 8) *to = (greg_t)value;
    else *to = (greg_t)(((uint64_t)*to & ~0xFFFFull) | (value & 0xFFFF));
  };
  if (division.size == 1) {
    set(&registers[REG_RAX], (quotient & 0xFF) | (rest & 0xFF) << 8, 2);
  } else {
    set(&registers[REG_RAX], quotient, division.size);
    set(&registers[REG_RDX], rest, division.size);
  }
  registers[REG_RIP] = (greg_t)division.next;
  return true;
}

#else

bool divide_as_gpu(void *) { return false; } // such processors do not refuse

#endif

} // namespace emulated
