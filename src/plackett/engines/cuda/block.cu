// Sums over the threads of a block, in a fixed order.

#define THREADS 256  // of a block
#define WIDTH 128    // of one that adds entries

// The sum over a block of THREADS, the same for all of them.
__device__ double sum_of(double x, double* parts) {
  for (int h = 16; h; h >>= 1) x += __shfl_xor_sync(0xffffffffu, x, h);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = x;
  __syncthreads();
  x = 0.0;
  for (int i = 0; i < THREADS / 32; ++i) x += parts[i];
  return x;
}

// The sums over the threads of a block that have the same column; `columns` of them at a time.
__device__ void add_slots(double x, double* parts, int columns, int slots, double* out) {
  parts[threadIdx.x] = x;
  __syncthreads();
  if (threadIdx.x < columns) {
    x = 0.0;
    for (int i = 0; i < slots; ++i) x += parts[i * columns + threadIdx.x];
    *out = x;
  }
  __syncthreads();
}
