// The entries that the emulated NVRTC appends to a program: how the driver calls a kernel, or finds a variable.
#pragma once

template <auto value, typename T = decltype(value)> struct um_emulated_of {
  static um_emulated_entry entry() {
    return {nullptr, 0, nullptr, nullptr, &um_emulated, (void *)value, (unsigned)sizeof(*value)};
  }
};

template <int... I> struct um_emulated_indices {};

template <auto kernel, typename... A> struct um_emulated_of<kernel, void (*)(A...)> {
  static constexpr unsigned count = sizeof...(A);
  static constexpr unsigned sizes[count + 1] = {(unsigned)sizeof(A)..., 0};
  static constexpr unsigned alignments[count + 1] = {(unsigned)alignof(A)..., 0};
  template <int... I> static void call_with(void **p, um_emulated_indices<I...>) { kernel(*(A *)p[I]...); }
  static void call(void **p) { call_with(p, um_emulated_indices<__integer_pack(count)...>()); }
  static constexpr um_emulated_entry entry() { return {&call, count, sizes, alignments, &um_emulated, nullptr, 0}; }
};

// The kernel comes last, for its name may have commas.
#define UM_EMULATED_ENTRY(name, ...)                                                                                   \
  extern "C" um_emulated_entry um_emulated_entry_##name;                                                               \
  um_emulated_entry um_emulated_entry_##name = um_emulated_of<__VA_ARGS__>::entry();
