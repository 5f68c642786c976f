// One pass over rows of classes for several chains: values, expected statistics (10), (18), or sampled ones (11), (12).
//
// W lies in tiles of 32 rows, feature-major; a warp takes a tile, and the lanes of feature j are turned by 4 (j mod 8),
// so that both ways through a tile in shared memory are free of conflicts: a lane a row, and a lane a feature. Tiles to
// come are copied to the chip while one is at work. A lane finds T_r = W_r·U and R_r = W_r·Σ_l V_l of its row, and what
// the row gives back for every chain; then, a lane a feature, Σ_r z_r W_rj. Sums of a tile are in the type of W, all
// beyond in doubles, in a fixed order: a block of tiles, of one class, leaves its own sums.
//
// Known when compiled: Real; P features; C chains; MODE; WEIGHTED, whether rows have weights; WARPS of a block; STAGES
// of tiles on the chip for a warp, 0 if they are read where they lie; HOLD, whether a row stays in registers.

#define VALUE 0
#define EXPECT 1
#define SAMPLE 2
#define QUADS ((P + 3) / 4)
#define CHUNKS ((P + 31) / 32)
#define TOGETHER 4  // chunks of features whose sums are taken at once
#define ALL 0xffffffffu

struct alignas(16) Quad { Real at[4]; };

// A row whose rates are below this is done in doubles, with weights in doubles: a float cannot hold them.
#define TINY (sizeof(Real) == 4 ? (Real)1e-30 : (Real)0)

__device__ __forceinline__ int place(int j, int lane) { return j * 32 + (lane ^ ((j & 7) << 2)); }

__device__ __forceinline__ void copy_ahead(Real* to, const Real* from, int lane) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  for (int i = lane; i < P * 32 * (int)sizeof(Real) / 16; i += 32)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 16 * i), "l"((const char*)from + 16 * i));
}

__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;"); }

#if HOLD
#define EVERY _Pragma("unroll")
#else
#define EVERY _Pragma("unroll 4")
#endif
#if P <= 256
#define EVERY_CHUNK _Pragma("unroll")
#else
#define EVERY_CHUNK _Pragma("unroll 1")
#endif

#if WEIGHTED
typedef double Count;
#else
typedef unsigned Count;
#endif

extern "C" __global__ void __launch_bounds__(WARPS * 32) race(
    const Real* __restrict__ W, const double* __restrict__ weight,  // tiles; rows in their order
    const long long* __restrict__ first_tile, const long long* __restrict__ first_row,  // of each block
    const int* __restrict__ n_rows, const int* __restrict__ label,
    const double* __restrict__ own, const double* __restrict__ total,  // U (C, K, P) and Σ_l V_l (C, P)
    const u64* __restrict__ key, int K, double* __restrict__ sums) {  // (block, C, 2P + 1): wins, exposure, value
  extern __shared__ __align__(16) char room[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, b = blockIdx.x;
  const int STAGE_BYTES = WARPS * STAGES * P * 32 * (int)sizeof(Real), LEAST = C * 2 * P * 8 + 8;
  Real* stage = reinterpret_cast<Real*>(room) + warp * STAGES * P * 32;
  Quad* su = reinterpret_cast<Quad*>(room + ((STAGE_BYTES > LEAST ? STAGE_BYTES : LEAST) + 15) / 16 * 16);
  Quad* sv = su + C * QUADS;
  Quad* times = sv + C * QUADS + warp * (2 * C * 8);  // z_r, and claims beyond them
  Quad* claims = times + C * 8;
  Count* counts = reinterpret_cast<Count*>(sv + C * QUADS + WARPS * (2 * C * 8));  // C × P, sampled wins

  const int k = label[b], tiles = (n_rows[b] + 31) / 32;
  const Real* mine = W + first_tile[b] * (long long)(P * 32);
#if STAGES > 0
#pragma unroll
  for (int s = 0; s < STAGES; ++s) {
    if (warp + s * WARPS < tiles) copy_ahead(stage + s * P * 32, mine + (long long)(warp + s * WARPS) * P * 32, lane);
    close_copies();
  }
#endif
  for (int i = threadIdx.x; i < C * QUADS * 4; i += WARPS * 32) {
    int c = i / (QUADS * 4), j = i % (QUADS * 4);
    reinterpret_cast<Real*>(su)[i] = j < P ? (Real)own[((long long)c * K + k) * P + j] : (Real)0;
    reinterpret_cast<Real*>(sv)[i] = j < P ? (Real)total[c * P + j] : (Real)0;
  }
#if MODE == SAMPLE
  for (int i = threadIdx.x; i < C * P; i += WARPS * 32) counts[i] = 0;
#endif
  __syncthreads();

  double exposure[C][CHUNKS], claimed[C][MODE == EXPECT ? CHUNKS : 1], value[C];
#pragma unroll
  for (int c = 0; c < C; ++c) {
    value[c] = 0.0;
    EVERY_CHUNK
    for (int q = 0; q < CHUNKS; ++q) {
      exposure[c][q] = 0.0;
      if (MODE == EXPECT) claimed[c][q] = 0.0;
    }
  }

  int s = 0;
  for (int t = warp; t < tiles; t += WARPS) {
#if STAGES > 0
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
    __syncwarp();
    const Real* tile = stage + s * P * 32;
#else
    const Real* tile = mine + (long long)t * P * 32;
#endif
    const long long row = first_row[b] + (long long)t * 32 + lane;
    const bool there = t * 32 + lane < n_rows[b];
#if WEIGHTED
    const double w = there ? weight[row] : 0.0;
#else
    const double w = there ? 1.0 : 0.0;
#endif
#if HOLD
    Real held[QUADS * 4];
#pragma unroll
    for (int j = 0; j < QUADS * 4; ++j) held[j] = j < P ? tile[place(j, lane)] : (Real)0;
#define ROW(j) held[j]
#else
#define ROW(j) ((j) < P ? tile[place(j, lane)] : (Real)0)
#endif
    Real T[C], R[C];
#pragma unroll
    for (int c = 0; c < C; ++c) T[c] = R[c] = (Real)0;
    EVERY
    for (int q = 0; q < QUADS; ++q) {
      Real x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = ROW(4 * q + i);
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const Quad u = su[c * QUADS + q], v = sv[c * QUADS + q];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          T[c] += x[i] * u.at[i];
          R[c] += x[i] * v.at[i];
        }
      }
    }

#pragma unroll
    for (int c = 0; c < C; ++c) {
      const bool plain = T[c] > TINY && R[c] > TINY;
      if (there && plain && w > 0.0) value[c] += w * (double)log(T[c] / R[c]);
#if MODE == EXPECT
      reinterpret_cast<Real*>(times)[c * 32 + lane] = plain ? (Real)w / R[c] : (Real)0;
      reinterpret_cast<Real*>(claims)[c * 32 + lane] = plain ? (Real)w / T[c] : (Real)0;
#elif MODE == SAMPLE
      const double spent = uniform_of(key[c] ^ KEY_OF_TIMES, row);
      const Real target = (Real)uniform_of(key[c], row) * T[c];
      Real z = minus_log(spent, (Real)0) / R[c], climb = (Real)0;
      int below = 0;
      EVERY
      for (int q = 0; q < QUADS; ++q) {
        const Quad u = su[c * QUADS + q];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          climb += ROW(4 * q + i) * u.at[i];
          if (4 * q + i < P) below += climb < target;
        }
      }
      below = below < P ? below : P - 1;
#if WEIGHTED
      if (w != 1.0 && w > 0.0 && plain) {
        const double* U = own + ((long long)c * K + k) * P;
        auto share = [&](int j) { return (double)tile[place(j, lane)] * U[j]; };
        double all = 0.0;
        for (int j = 0; j < P; ++j) all += share(j);
        u64 stream = begin(key[c], row);
        z = (Real)(gamma_draw(w, stream) / (double)R[c]);
        share_out(w, P, share, all, begin(key[c] ^ KEY_OF_TIMES, row), counts + c * P);
      }
#endif
      if (plain && w == 1.0) atomicAdd(counts + c * P + below, (Count)1);
      reinterpret_cast<Real*>(times)[c * 32 + lane] = plain && w > 0.0 ? z : (Real)0;
#endif
      unsigned odd = __ballot_sync(ALL, w > 0.0 && !plain);
      while (odd) {  // rows that need doubles, one after the other, a lane a feature
        const int r = __ffs(odd) - 1;
        odd &= odd - 1;
        const double *U = own + ((long long)c * K + k) * P, *V = total + (long long)c * P;
        double t_r = 0.0, r_r = 0.0, gone = 0.0;
        for (int j = lane; j < P; j += 32) {
          const double x = tile[place(j, r)];
          t_r += x * U[j];
          r_r += x * V[j];
        }
        for (int h = 16; h; h >>= 1) {
          t_r += __shfl_xor_sync(ALL, t_r, h);
          r_r += __shfl_xor_sync(ALL, r_r, h);
        }
        if (lane == r) {
          value[c] += w * (log(t_r) - log(r_r));
#if MODE == EXPECT
          gone = w;
#elif MODE == SAMPLE
          auto share = [&](int j) { return (double)tile[place(j, r)] * U[j]; };
          u64 stream = begin(key[c], row);
          gone = w == 1.0 ? -log(uniform_of(key[c] ^ KEY_OF_TIMES, row)) : gamma_draw(w, stream);
          if (w == 1.0) {
            double climb_r = 0.0, goal = uniform_of(key[c], row) * t_r;
            int won = 0;
            for (int j = 0; j < P; ++j) won += (climb_r += share(j)) < goal;
            atomicAdd(counts + c * P + (won < P ? won : P - 1), (Count)1);
          }
#if WEIGHTED
          else share_out(w, P, share, t_r, begin(key[c] ^ KEY_OF_TIMES, row), counts + c * P);
#endif
#endif
        }
        gone = __shfl_sync(ALL, gone, r);
#if MODE != VALUE
        EVERY_CHUNK
        for (int q = 0; q < CHUNKS; ++q)
          if (q * 32 + lane < P) {
            const double x = tile[place(q * 32 + lane, r)];
            exposure[c][q] += gone / r_r * x;
            if (MODE == EXPECT && t_r > 0.0) claimed[c][MODE == EXPECT ? q : 0] += gone / t_r * x;
          }
#endif
      }
    }

#if MODE != VALUE
    __syncwarp();
    const Quad* columns = reinterpret_cast<const Quad*>(tile);
    EVERY_CHUNK
    for (int q0 = 0; q0 < CHUNKS; q0 += TOGETHER) {
      Real z_sum[C][TOGETHER], claim_sum[C][TOGETHER];
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q) z_sum[c][q] = claim_sum[c][q] = (Real)0;
#pragma unroll
      for (int g = 0; g < 8; ++g) {
        Quad x[TOGETHER];
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q)
          if (q0 + q < CHUNKS) {
            const int j = min((q0 + q) * 32 + lane, P - 1);
            x[q] = columns[j * 8 + (g ^ (j & 7))];
          }
#pragma unroll
        for (int c = 0; c < C; ++c) {
          const Quad z = times[c * 8 + g];
#if MODE == EXPECT
          const Quad claim = claims[c * 8 + g];
#endif
#pragma unroll
          for (int q = 0; q < TOGETHER; ++q)
            if (q0 + q < CHUNKS)
#pragma unroll
              for (int i = 0; i < 4; ++i) {
                z_sum[c][q] += z.at[i] * x[q].at[i];
#if MODE == EXPECT
                claim_sum[c][q] += claim.at[i] * x[q].at[i];
#endif
              }
        }
      }
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q)
          if (q0 + q < CHUNKS) {
            exposure[c][q0 + q] += (double)z_sum[c][q];
            if (MODE == EXPECT) claimed[c][MODE == EXPECT ? q0 + q : 0] += (double)claim_sum[c][q];
          }
    }
#endif
    __syncwarp();
#if STAGES > 0
    const int next = t + STAGES * WARPS;
    if (next < tiles) copy_ahead(stage + s * P * 32, mine + (long long)next * P * 32, lane);
    close_copies();
    s = s + 1 == STAGES ? 0 : s + 1;
#endif
  }
#if STAGES > 0
  asm volatile("cp.async.wait_group 0;");
#endif
  __syncthreads();

  double* together = reinterpret_cast<double*>(room);  // (C, 2, P), then the values
  double* out = sums + (long long)b * C * (2 * P + 1);
#if MODE != VALUE
  for (int turn = 0; turn < WARPS; ++turn) {
    if (warp == turn)
#pragma unroll
      for (int c = 0; c < C; ++c)
        EVERY_CHUNK
        for (int q = 0; q < CHUNKS; ++q)
          if (q * 32 + lane < P) {
            double* at = together + c * 2 * P + q * 32 + lane;
            at[P] = (turn ? at[P] : 0.0) + exposure[c][q];
            if (MODE == EXPECT) at[0] = (turn ? at[0] : 0.0) + claimed[c][MODE == EXPECT ? q : 0];
          }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < C * P; i += WARPS * 32) {
    const int c = i / P, j = i % P;
#if MODE == EXPECT
    out[c * (2 * P + 1) + j] = together[c * 2 * P + j] * own[((long long)c * K + k) * P + j];
#else
    out[c * (2 * P + 1) + j] = (double)counts[i];
#endif
    out[c * (2 * P + 1) + P + j] = together[c * 2 * P + P + j];
  }
  __syncthreads();
#endif
#pragma unroll
  for (int c = 0; c < C; ++c) {
    double v = value[c];
    for (int h = 16; h; h >>= 1) v += __shfl_xor_sync(ALL, v, h);
    if (lane == 0) together[warp] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
      v = 0.0;
      for (int turn = 0; turn < WARPS; ++turn) v += together[turn];
      out[c * (2 * P + 1) + 2 * P] = v;
    }
    __syncthreads();
  }
}
