// The gradient of ln p(Y|β, λ) with features exp(x·β), for rows of one class and several chains, in one kernel.
//
// With e_ij = exp(x_i·β_j + ln Λ_j), gates π_ij = e_ij / Σ_j e_ij and shares ρ_ij = e_ij θ_j / Σ_j e_ij θ_j of the label,
// θ_j = λ_yj/Λ_j, the gradient in β is Xᵀw(ρ − π). A block goes through its rows in tiles that stay on the chip:
// scores x·β (a lane has ROWS rows and all components of a chain in registers), ρ − π, and then the product with X,
// a thread TF × TM squares of four columns by four components, of every SPLIT-th row. Sums of a block are floats, all
// beyond are doubles.
//
// Known when compiled: D columns, DPAD of them laid out (4 mod 8); M components, a multiple of four; C chains; ROWS;
// WARPS, a multiple of C; TF, TM, SPLIT.

#define TILE (32 * ROWS * WARPS / C)
#define CM (C * M)
#define DPITCH (CM % 8 ? CM : CM + 4)  // 4 mod 8: lanes a row apart meet different banks
#define F4 (DPAD / 4)
#define M4 (CM / 4)
#define FB ((F4 + TF - 1) / TF)
#define MB ((M4 + TM - 1) / TM)
#define COLUMNS (CM * D + 2 * CM + C)  // of the sums: Xᵀw(ρ − π) (C, M, D); Σ wρ/θ, Σ wπ (C, M); Σ w ln p (C)
#define ALL 0xffffffffu
#define LOG2E 1.4426950408889634

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ void copy_ahead(float* to, const float* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  for (int i = threadIdx.x; i < TILE * DPAD / 4; i += WARPS * 32)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 16 * i), "l"(from + 4 * i));
}

extern "C" __global__ void __launch_bounds__(WARPS * 32) gradient(
    const float* __restrict__ X,       // (row, DPAD), rows by class, TILE rows more
    const float* __restrict__ weight,  // (row,), or of each chain (C, row)
    long long apart,                   // numbers between the weights of two chains; 0 if they share them
    const long long* __restrict__ first_row, const int* __restrict__ n_rows, const int* __restrict__ label,
    const double* __restrict__ beta, const double* __restrict__ votes, const double* __restrict__ log_total,
    int K, double* __restrict__ sums) {  // β (C, M, D), θ (C, K, M), ln Λ (C, M); (block, COLUMNS)
  extern __shared__ __align__(16) float room[];
  float* xs = room;                       // (2, TILE, DPAD)
  float* bs = xs + 2 * TILE * DPAD;       // (C, DPAD, M), in units of ln 2
  float* theta = bs + DPAD * CM;          // (C, M)
  float* above = theta + CM;              // (C, M) log2 Λ
  float* residual = above + CM;           // (TILE, DPITCH)
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, b = blockIdx.x, k = label[b];
  const int c = warp % C, group = warp / C;
  const int rows = n_rows[b], tiles = (rows + TILE - 1) / TILE;
  const float* mine = X + first_row[b] * DPAD;

  copy_ahead(xs, mine);
  asm volatile("cp.async.commit_group;");
  for (int i = threadIdx.x; i < DPAD * CM; i += WARPS * 32) {
    const int f = i % DPAD, m = (i / DPAD) % M, chain = i / (DPAD * M);
    bs[(chain * DPAD + f) * M + m] = f < D ? (float)(LOG2E * beta[((long long)chain * M + m) * D + f]) : 0.f;
  }
  for (int i = threadIdx.x; i < CM; i += WARPS * 32) {
    theta[i] = (float)votes[((long long)(i / M) * K + k) * M + i % M];
    above[i] = (float)(LOG2E * log_total[i]);
  }

  const int square = threadIdx.x % (FB * MB), part = threadIdx.x / (FB * MB);
  float slope[TF][TM][16];
#pragma unroll
  for (int a = 0; a < TF; ++a)
#pragma unroll
    for (int g = 0; g < TM; ++g)
#pragma unroll
      for (int i = 0; i < 16; ++i) slope[a][g][i] = 0.f;
  float wins[M], gates[M];
#pragma unroll
  for (int m = 0; m < M; ++m) wins[m] = gates[m] = 0.f;
  double value = 0.0;

  for (int t = 0; t < tiles; ++t) {
    const float* x = xs + (t & 1) * TILE * DPAD;
    if (t + 1 < tiles) copy_ahead(xs + ((t + 1) & 1) * TILE * DPAD, mine + (long long)(t + 1) * TILE * DPAD);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();

    float score[ROWS][M];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int m = 0; m < M; ++m) score[r][m] = above[c * M + m];
    const int place = group * 32 * ROWS + lane;
    const float* at = x + place * DPAD;
#pragma unroll 1
    for (int f = 0; f < DPAD; f += 4) {
      float4 xf[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) xf[r] = *reinterpret_cast<const float4*>(at + r * 32 * DPAD + f);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4* column = reinterpret_cast<const float4*>(bs + (c * DPAD + f + i) * M);
#pragma unroll
        for (int g = 0; g < M / 4; ++g) {
          const float4 s = column[g];
#pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            const float xi = i == 0 ? xf[r].x : i == 1 ? xf[r].y : i == 2 ? xf[r].z : xf[r].w;
            score[r][4 * g] += xi * s.x;
            score[r][4 * g + 1] += xi * s.y;
            score[r][4 * g + 2] += xi * s.z;
            score[r][4 * g + 3] += xi * s.w;
          }
        }
      }
    }

#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int row = t * TILE + place + r * 32;
      const float w = row < rows ? weight[c * apart + first_row[b] + row] : 0.f;
      float peak = score[r][0], all = 0.f, own = 0.f;
#pragma unroll
      for (int m = 1; m < M; ++m) peak = fmaxf(peak, score[r][m]);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const float e = power_of_two(score[r][m] - peak);
        score[r][m] = e;
        all += e;
        own += e * theta[c * M + m];
      }
      const float for_own = w / own, for_all = w / all;
      if (w > 0.f) value += (double)(w * logf(own / all));
      float4* out = reinterpret_cast<float4*>(residual + (place + r * 32) * DPITCH + c * M);
#pragma unroll
      for (int g = 0; g < M / 4; ++g) {
        float left[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int m = 4 * g + i;
          const float e = score[r][m];
          wins[m] += e * for_own;
          gates[m] += e * for_all;
          left[i] = e * (theta[c * M + m] * for_own - for_all);
        }
        out[g] = make_float4(left[0], left[1], left[2], left[3]);
      }
    }
    __syncthreads();

    if (part < SPLIT)
#pragma unroll 2
      for (int r = part; r < TILE; r += SPLIT) {
        float4 xf[TF];
#pragma unroll
        for (int a = 0; a < TF; ++a)
          xf[a] = *reinterpret_cast<const float4*>(x + r * DPAD + 4 * min(square / MB + a * FB, F4 - 1));
#pragma unroll
        for (int g = 0; g < TM; ++g) {
          const float4 e = *reinterpret_cast<const float4*>(
              residual + r * DPITCH + 4 * min(square % MB + g * MB, M4 - 1));
#pragma unroll
          for (int a = 0; a < TF; ++a) {
            float* s = slope[a][g];
            s[0] += xf[a].x * e.x; s[1] += xf[a].x * e.y; s[2] += xf[a].x * e.z; s[3] += xf[a].x * e.w;
            s[4] += xf[a].y * e.x; s[5] += xf[a].y * e.y; s[6] += xf[a].y * e.z; s[7] += xf[a].y * e.w;
            s[8] += xf[a].z * e.x; s[9] += xf[a].z * e.y; s[10] += xf[a].z * e.z; s[11] += xf[a].z * e.w;
            s[12] += xf[a].w * e.x; s[13] += xf[a].w * e.y; s[14] += xf[a].w * e.z; s[15] += xf[a].w * e.w;
          }
        }
      }
    __syncthreads();
  }

  double* out = sums + (long long)b * COLUMNS;
  float* together = room;  // (CM, DPAD): the tiles are done
  for (int turn = 0; turn < SPLIT; ++turn) {
    if (part == turn)
#pragma unroll
      for (int a = 0; a < TF; ++a)
#pragma unroll
        for (int g = 0; g < TM; ++g) {
          const int f = 4 * (square / MB + a * FB), m = 4 * (square % MB + g * MB);
          if (f < DPAD && m < CM)
#pragma unroll
            for (int i = 0; i < 16; ++i) {
              float* s = together + (m + i % 4) * DPAD + f + i / 4;
              *s = (turn ? *s : 0.f) + slope[a][g][i];
            }
        }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < CM * D; i += WARPS * 32) out[i] = (double)together[i / D * DPAD + i % D];
  __syncthreads();

  double* parts = reinterpret_cast<double*>(room);  // (WARPS, 2M + 1)
#pragma unroll
  for (int m = 0; m < M; ++m) {
    float a = wins[m], g = gates[m];
#pragma unroll
    for (int h = 16; h; h >>= 1) {
      a += __shfl_xor_sync(ALL, a, h);
      g += __shfl_xor_sync(ALL, g, h);
    }
    if (lane == 0) {
      parts[warp * (2 * M + 1) + m] = (double)a;
      parts[warp * (2 * M + 1) + M + m] = (double)g;
    }
  }
  for (int h = 16; h; h >>= 1) value += __shfl_xor_sync(ALL, value, h);
  if (lane == 0) parts[warp * (2 * M + 1) + 2 * M] = value;
  __syncthreads();
  for (int i = threadIdx.x; i < C * (2 * M + 1); i += WARPS * 32) {
    const int chain = i / (2 * M + 1), j = i % (2 * M + 1);
    double sum = 0.0;
    for (int g = 0; g < WARPS / C; ++g) sum += parts[(g * C + chain) * (2 * M + 1) + j];
    const int column = j < M ? chain * M + j : j < 2 * M ? CM + chain * M + j - M : 2 * CM + chain;
    out[CM * D + column] = sum;
  }
}
