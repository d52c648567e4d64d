// How tensors are walked together. `Walk<K, N>` mirrors `Axes::parameter` of walk.rs: the number of
// elements, the number of axes, their sizes, and for each of K tensors the strides in elements. N axes have
// room; N below 5 is exactly as many as there are, else the number is read.

template <int K, int N>
struct Walk {
  i64 n;
  i64 axes;
  i64 size[N];
  i64 stride[K][N];
};

// The places of element i of the row-major order in each tensor. I is int where that reaches everything.
template <int K, int N, class I>
static __device__ __forceinline__ void locate(const Walk<K, N> &w, I i, I (&at)[K]) {
#pragma unroll
  for (int k = 0; k < K; k++) at[k] = 0;
  if (N < 5) {
#pragma unroll
    for (int d = N - 1; d > 0; d--) {
      I size = (I)w.size[d], next = divide_whole(i, size), index = i - next * size;
      i = next;
#pragma unroll
      for (int k = 0; k < K; k++) at[k] += index * (I)w.stride[k][d];
    }
#pragma unroll
    for (int k = 0; k < K; k++) at[k] += i * (I)w.stride[k][0];
  } else {
    for (int d = (int)w.axes - 1; d >= 0; d--) {
      I size = (I)w.size[d], next = d > 0 ? divide_whole(i, size) : (I)0, index = i - next * size;
      i = next;
      for (int k = 0; k < K; k++) at[k] += index * (I)w.stride[k][d];
    }
  }
}

// The arguments of M commands that run as one launch: blocks of number k in y have those of the k-th.
template <class T, int M>
struct Several {
  T of[M];
  __device__ __forceinline__ const T &own() const { return of[M == 1 ? 0 : blockIdx.y]; }
};

// The thread's number in the grid, and the number of threads: loops go `for (I i = first; i < n; i += all)`.
template <class I>
static __device__ __forceinline__ I thread_number() {
  return (I)blockIdx.x * (I)blockDim.x + (I)threadIdx.x;
}
template <class I>
static __device__ __forceinline__ I thread_count() {
  return (I)gridDim.x * (I)blockDim.x;
}
