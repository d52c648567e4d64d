// The groups of threads of a block and of a warp, as far as kernels use them. The grid's has ranks,
// but no sync: blocks run one after another.
#pragma once

namespace cooperative_groups {

struct thread_block {
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

struct grid_group {
  static unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
  static unsigned long long size() { return num_blocks() * thread_block::size(); }
  static unsigned long long num_threads() { return size(); }
  static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 dim_blocks() { return gridDim; }
  static bool is_valid() { return false; }
};
inline grid_group this_grid() { return {}; }

template <unsigned width, typename Parent = void> struct thread_block_tile {
  static_assert(width && width <= 32 && (width & (width - 1)) == 0, "a tile is a part of a warp");
  static unsigned mask() {
    return (unsigned)((1ull << width) - 1) << (um_emulated.lane & ~(width - 1));
  }
  static void sync() { __syncwarp(mask()); }
  static unsigned thread_rank() { return um_emulated.lane & (width - 1); }
  static constexpr unsigned size() { return width; }
  static constexpr unsigned num_threads() { return width; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / width; }
  static unsigned meta_group_size() { return (thread_block::size() + width - 1) / width; }
  template <typename T> static T shfl(T value, int lane) { return __shfl_sync(mask(), value, lane, width); }
  template <typename T> static T shfl_up(T value, unsigned by) { return __shfl_up_sync(mask(), value, by, width); }
  template <typename T> static T shfl_down(T value, unsigned by) { return __shfl_down_sync(mask(), value, by, width); }
  template <typename T> static T shfl_xor(T value, unsigned by) { return __shfl_xor_sync(mask(), value, by, width); }
  static int any(int predicate) { return __any_sync(mask(), predicate); }
  static int all(int predicate) { return __all_sync(mask(), predicate); }
  static unsigned ballot(int predicate) {
    return __ballot_sync(mask(), predicate) >> (um_emulated.lane & ~(width - 1));
  }
};
template <unsigned width, typename Parent> inline thread_block_tile<width, Parent> tiled_partition(const Parent &) {
  return {};
}

template <typename Group> inline void sync(const Group &group) { group.sync(); }

} // namespace cooperative_groups
