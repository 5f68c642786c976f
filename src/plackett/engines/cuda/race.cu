// One pass over rows of classes for several chains: values, expected statistics (10), (18), or sampled ones (11), (12).
//
// W lies in tiles of 32 rows, feature-major; a warp takes one, and the lanes of feature j are turned by
// 4 (j mod 8), so that both ways through a tile in shared memory are free of conflicts: a lane a row, and a lane a
// feature. Tiles to come are copied to the chip while others are at work. A lane finds T_r = W_r·U and R_r = W_r·Σ_l V_l
// of its row, and what it gives back for every chain; then, a lane a feature, Σ_r z_r W_rj. Sums of a tile are in the
// type of W, all beyond in doubles, in a fixed order: a block of tiles, of one class, leaves its own sums.
//
// Known when compiled: Real; P features; C chains; MODE; WEIGHTED, whether rows have weights; WARPS of a block; STAGES of
// tiles on the chip for a warp, 0 if they are read where they lie; HOLD, whether a row stays in registers; LEAST_BLOCKS
// that a multiprocessor is to have room for; PLACED, whether random numbers belong to other places than those of the
// rows here, and Place, their type.

#define VALUE 0
#define EXPECT 1
#define SAMPLE 2
#define QUADS ((P + 3) / 4)
#define CHUNKS ((P + 31) / 32)
#define TOGETHER 4  // chunks of features whose sums are taken at once
#define GIVEN (MODE == EXPECT ? 2 : 1)  // numbers that a lane gives back for a chain
// Fours of features between two marks on the way to T_r, and marks: at most 12, and none where a row is short and held.
#define STRETCH (HOLD && P <= 32 ? QUADS : 2 * ((QUADS + 25) / 26))
#define MARKS ((QUADS - 1) / STRETCH)
#define ALL 0xffffffffu

struct alignas(16) Quad { Real at[4]; };

// A row whose rates are below this is done in doubles, with weights in doubles: a float cannot hold them.
#define TINY (sizeof(Real) == 4 ? (Real)1e-30 : (Real)0)

// Whether four features in a row are all there.
struct Sure { static constexpr bool yes = true; };
struct Perhaps { static constexpr bool yes = false; };

__device__ __forceinline__ double inverse_of(double x) { return 1.0 / x; }
__device__ __forceinline__ float inverse_of(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

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

// A product of many numbers, of which the logarithm is taken at the end: 2^power · part, part in [1, 2).
struct Product {
  Real part;
  int power;
};

__device__ __forceinline__ void multiply(Product& product, float by) {
  const int bits = __float_as_int(product.part * by);
  product.power += (bits >> 23) - 127;
  product.part = __int_as_float((bits & 0x7fffff) | 0x3f800000);
}

__device__ __forceinline__ void multiply(Product& product, double by) {
  const long long bits = __double_as_longlong(product.part * by);
  product.power += (int)(bits >> 52) - 1023;
  product.part = __longlong_as_double((bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, LEAST_BLOCKS) race(
    const Real* __restrict__ W, const double* __restrict__ weight, const Place* __restrict__ places,  // tiles; of rows
    const long long* __restrict__ first_tile, const long long* __restrict__ first_row,  // of each block
    const int* __restrict__ n_rows, const int* __restrict__ label,
    const double* __restrict__ own, const double* __restrict__ total,  // U (C, K, P) and Σ_l V_l (C, P)
    const u64* __restrict__ key, int K, double* __restrict__ sums) {  // (block, C, 2P + 1): wins, exposure, value
  extern __shared__ __align__(16) char room[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, b = blockIdx.x;
  const int STAGE_BYTES = WARPS * STAGES * P * 32 * (int)sizeof(Real), LEAST = C * 2 * P * 8 + 8;
#if STAGES > 0
  Real* stage = reinterpret_cast<Real*>(room) + warp * STAGES * P * 32;
#endif
  Quad* su = reinterpret_cast<Quad*>(room + ((STAGE_BYTES > LEAST ? STAGE_BYTES : LEAST) + 15) / 16 * 16);
  Quad* sv = su + C * QUADS;
  Quad* times = sv + C * QUADS + warp * (GIVEN * C * 8);  // z_r
#if MODE == EXPECT
  Quad* claims = times + C * 8;
#elif MODE == SAMPLE
  Count* counts = reinterpret_cast<Count*>(sv + C * QUADS + WARPS * (GIVEN * C * 8));  // C × P, sampled wins
#endif

  const int k = label[b], tiles = (n_rows[b] + 31) / 32;
  const Real* mine = W + first_tile[b] * (long long)(P * 32);
#if STAGES > 0
#pragma unroll
  for (int s = 0; s < STAGES; ++s) {
    const int t = warp + s * WARPS;
    if (t < tiles) copy_ahead(stage + s * P * 32, mine + (long long)t * P * 32, lane);
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
  Product product[C];
#pragma unroll
  for (int c = 0; c < C; ++c) {
    value[c] = 0.0;
    product[c].part = (Real)1;
    product[c].power = 0;
    EVERY_CHUNK
    for (int q = 0; q < CHUNKS; ++q) {
      exposure[c][q] = 0.0;
      if (MODE == EXPECT) claimed[c][MODE == EXPECT ? q : 0] = 0.0;
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
    long long row = first_row[b] + (long long)t * 32 + lane;
    const bool there = t * 32 + lane < n_rows[b];
#if WEIGHTED
    const double w = there ? weight[row] : 0.0;
#else
    const double w = there ? 1.0 : 0.0;
#endif
#if PLACED
    if (there) row = (long long)places[row];
#endif
#if HOLD
    Real held[QUADS * 4];
#pragma unroll
    for (int j = 0; j < QUADS * 4; ++j) held[j] = j < P ? tile[place(j, lane)] : (Real)0;
#define ENTRY(j) held[j]
#else
#define ENTRY(j) (decltype(sure)::yes || (j) < P ? tile[place(j, lane)] : (Real)0)
#endif

    Real T[C], R[C];
#pragma unroll
    for (int c = 0; c < C; ++c) T[c] = R[c] = (Real)0;
    auto add_rates = [&](int q, auto sure) {
      Real x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = ENTRY(4 * q + i);
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const Quad u = su[c * QUADS + q], v = sv[c * QUADS + q];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          T[c] += x[i] * u.at[i];
          R[c] += x[i] * v.at[i];
        }
      }
    };
#if MODE == SAMPLE
    Real mark[C][MARKS + 1];  // T so far at the end of each stretch
#pragma unroll
    for (int m = 0; m <= MARKS; ++m) {
      EVERY
      for (int q = m * STRETCH; q < min(P / 4, (m + 1) * STRETCH); ++q) add_rates(q, Sure());
#pragma unroll
      for (int c = 0; c < C; ++c) mark[c][m] = T[c];
    }
#else
    EVERY
    for (int q = 0; q < P / 4; ++q) add_rates(q, Sure());
#endif
    if (P % 4) add_rates(QUADS - 1, Perhaps());

    unsigned odd = 0;  // bit c: the rates of this row need doubles
#if MODE == SAMPLE
    Real target[C];
#endif
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const bool plain = T[c] > TINY && R[c] > TINY, counted = plain && w > 0.0;
      if (w > 0.0 && !plain) odd |= 1u << c;
      const Real inverse = inverse_of(R[c]);
#if WEIGHTED
      if (counted) value[c] += w * (double)log(T[c] * inverse);
#else
      if (counted) multiply(product[c], T[c] * inverse);
#endif
#if MODE == EXPECT
      reinterpret_cast<Real*>(times)[c * 32 + lane] = counted ? (Real)w * inverse : (Real)0;
      reinterpret_cast<Real*>(claims)[c * 32 + lane] = counted ? (Real)w * inverse_of(T[c]) : (Real)0;
#elif MODE == SAMPLE
      Real z = minus_log(mixed((key[c] ^ KEY_OF_TIMES) + row * STEP), (Real)0) * inverse;
      target[c] = in_unit(mixed(key[c] + row * STEP), (Real)0) * T[c];
#if WEIGHTED
      if (counted && w != 1.0) {
        const double* U = own + ((long long)c * K + k) * P;
        auto share = [&](int j) { return (double)tile[place(j, lane)] * U[j]; };
        double all = 0.0;
        for (int j = 0; j < P; ++j) all += share(j);
        u64 stream = begin(key[c], row);
        z = (Real)(gamma_draw(w, stream) / (double)R[c]);
        share_out(w, P, share, all, begin(key[c] ^ KEY_OF_TIMES, row), counts + c * P);
      }
#endif
      reinterpret_cast<Real*>(times)[c * 32 + lane] = counted ? z : (Real)0;
#endif
    }

#if MODE == SAMPLE
    // C_i by (11): the running sum of W_rj U_j is followed from the last mark below the target on, four features at a
    // time, then within the four. Lanes come from different marks, and still read from different banks.
    auto entry = [&](int q, int i) {  // W_rj, j = 4q + i; beyond P, where U is 0, another
      return tile[min((4 * q + i) * 32 + (lane ^ ((q & 1) << 4) ^ (4 * i)), P * 32 - 1)];
    };
#if HOLD
#define FOLLOWED(q, i) (MARKS ? entry(q, i) : held[4 * (q) + (i)])
#else
#define FOLLOWED(q, i) entry(q, i)
#endif
#pragma unroll
    for (int c = 0; c < C; ++c) {
      Real start = (Real)0;
      int from = 0;
#pragma unroll
      for (int m = 0; m < MARKS; ++m)
        if (mark[c][m] < target[c]) start = mark[c][m], from = (m + 1) * STRETCH;
      int four = from;
      Real climb = start;
#pragma unroll
      for (int i = 0; i < STRETCH; ++i) {
        const int q = min(from + i, QUADS - 1);  // after the last, the last again: the sum is above the target by then
        const Quad u = su[c * QUADS + q];
#pragma unroll
        for (int j = 0; j < 4; ++j) climb += FOLLOWED(q, j) * u.at[j];
        if (climb < target[c]) start = climb, four = from + i + 1;
      }
      four = min(four, QUADS - 1);
      const Quad u = su[c * QUADS + four];
      int below = 4 * four;
#pragma unroll
      for (int i = 0; i < 3; ++i) {  // the fourth ends at the target or above
        start += entry(four, i) * u.at[i];
        below += start < target[c];
      }
      if (w == 1.0 && !(odd >> c & 1)) atomicAdd(counts + c * P + min(below, P - 1), (Count)1);
    }
#endif

    if (__any_sync(ALL, odd)) {  // rows that need doubles, one after the other, a lane a feature
#pragma unroll 1
      for (int c = 0; c < C; ++c)
        for (unsigned rows = __ballot_sync(ALL, odd >> c & 1); rows; rows &= rows - 1) {
          const int l = __ffs(rows) - 1;
          const double *U = own + ((long long)c * K + k) * P, *V = total + (long long)c * P;
          double T_l = 0.0, R_l = 0.0, gone = 0.0, term = 0.0;
          for (int j = lane; j < P; j += 32) {
            const double x = tile[place(j, l)];
            T_l += x * U[j];
            R_l += x * V[j];
          }
          for (int h = 16; h; h >>= 1) {
            T_l += __shfl_xor_sync(ALL, T_l, h);
            R_l += __shfl_xor_sync(ALL, R_l, h);
          }
          if (lane == l) {
            term = w * (log(T_l) - log(R_l));
#if MODE == EXPECT
            gone = w;
#elif MODE == SAMPLE
            auto share = [&](int j) { return (double)tile[place(j, l)] * U[j]; };
            u64 stream = begin(key[c], row);
            gone = w == 1.0 ? -log(uniform_of(key[c] ^ KEY_OF_TIMES, row)) : gamma_draw(w, stream);
            if (w == 1.0) {
              double sum = 0.0, goal = uniform_of(key[c], row) * T_l;
              int won = 0;
              for (int j = 0; j < P; ++j) won += (sum += share(j)) < goal;
              atomicAdd(counts + c * P + min(won, P - 1), (Count)1);
            }
#if WEIGHTED
            else share_out(w, P, share, T_l, begin(key[c] ^ KEY_OF_TIMES, row), counts + c * P);
#endif
#endif
          }
          gone = __shfl_sync(ALL, gone, l);
#pragma unroll
          for (int i = 0; i < C; ++i)
            if (i == c) {
              value[i] += term;
#if MODE != VALUE
              EVERY_CHUNK
              for (int q = 0; q < CHUNKS; ++q)
                if (q * 32 + lane < P) {
                  const double x = tile[place(q * 32 + lane, l)];
                  exposure[i][q] += gone / R_l * x;
                  if (MODE == EXPECT && T_l > 0.0) claimed[i][MODE == EXPECT ? q : 0] += gone / T_l * x;
                }
#endif
            }
        }
    }

#if MODE != VALUE
    __syncwarp();
    EVERY_CHUNK
    for (int q0 = 0; q0 < CHUNKS; q0 += TOGETHER) {
      Real z_sum[C][TOGETHER], claim_sum[C][TOGETHER];
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int q = 0; q < TOGETHER; ++q) z_sum[c][q] = claim_sum[c][q] = (Real)0;
      const Quad* columns = reinterpret_cast<const Quad*>(tile);
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
    double v = value[c] + log((double)product[c].part) + product[c].power * 0.6931471805599453;
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
