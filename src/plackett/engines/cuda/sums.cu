// Sums of blocks, by class, in a fixed order: a column a lane, and 32 parts of the blocks that are added at the end.

extern "C" __global__ void __launch_bounds__(1024) add_blocks(
    const double* __restrict__ sums, const int* __restrict__ first_block, int columns, double* __restrict__ out) {
  __shared__ double parts[32][33];
  const int k = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x, part = threadIdx.y;
  double sum = 0.0;
  if (j < columns)
#pragma unroll 4
    for (int b = first_block[k] + part; b < first_block[k + 1]; b += 32) sum += sums[(long long)b * columns + j];
  parts[part][threadIdx.x] = sum;
  __syncthreads();
  if (part == 0 && j < columns) {
    sum = 0.0;
    for (int i = 0; i < 32; ++i) sum += parts[i][threadIdx.x];
    out[(long long)k * columns + j] = sum;
  }
}
