// Random numbers of a row, as plackett/engines/base.py and draws.py have them: the same functions of (key, row).

typedef unsigned long long u64;

#define STEP 0x9E3779B97F4A7C15ULL
#define KEY_OF_TIMES 0xD1342543DE82EF95ULL
#define MANY 4.0
#define SMALL 10.0

__device__ __forceinline__ u64 mixed(u64 bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31);
}

// The number in (0, 1) of 64 bits: the upper 52 and a half.
__device__ __forceinline__ double in_unit(u64 bits, double = 0.0) { return ((double)(bits >> 12) + 0.5) * 0x1p-52; }

// The same to the rounding of a float, however small.
__device__ __forceinline__ float in_unit(u64 bits, float) {
  const unsigned low = (unsigned)bits >> 12;
  return (float)(unsigned)(bits >> 32) * 0x1p-32f + ((float)low + 0.5f) * 0x1p-52f;
}

// base.uniforms(key, …)[row]
__device__ __forceinline__ double uniform_of(u64 key, u64 row) { return in_unit(mixed(key + row * STEP)); }

// −ln u of the number u of these bits
__device__ __forceinline__ double minus_log(u64 bits, double) { return -log(in_unit(bits)); }

// The same to the rounding of a float, also near u = 1: u = 2^e (1 + f), and where e = 0, −f = 1 − u is the number of
// the bits turned over. ln(1 + f) by the polynomial of Cephes' logf.
__device__ __forceinline__ float minus_log(u64 bits, float) {
  const int u = __float_as_int(in_unit(bits, 0.f)), e = (u - 0x3f3504f3) >> 23;
  const float f = e < 0 ? __int_as_float(u - (e << 23)) - 1.f : -in_unit(~bits, 0.f), z = f * f;
  float y = 7.0376836292e-2f;
  y = y * f - 1.1514610310e-1f;
  y = y * f + 1.1676998740e-1f;
  y = y * f - 1.2420140846e-1f;
  y = y * f + 1.4249322787e-1f;
  y = y * f - 1.6668057665e-1f;
  y = y * f + 2.0000714765e-1f;
  y = y * f - 2.4999993993e-1f;
  y = y * f + 3.3333331174e-1f;
  y = y * f * z - 2.12194440e-4f * (float)e - 0.5f * z;
  return -(f + y + 0.693359375f * (float)e);
}

__device__ __forceinline__ u64 begin(u64 key, u64 row) { return mixed(key + row * STEP); }

__device__ __forceinline__ double uniform(u64& stream) {
  stream += STEP;
  return in_unit(mixed(stream));
}

__device__ double exponential(u64& stream) { return -log(uniform(stream)); }

// Gam(count, 1) (Marsaglia & Tsang 2000, normals by Box & Muller)
__device__ double gamma_draw(double count, u64& stream) {
  if (count == 0.0) return 0.0;
  if (count == 1.0) return exponential(stream);
  double d = count - 1.0 / 3.0;
  while (true) {
    double radius = sqrt(2.0 * exponential(stream));
    double x = radius * cos(2.0 * 3.141592653589793 * uniform(stream));
    double v = 1.0 + x / sqrt(9.0 * d);
    v = v * v * v;
    if (v > 0.0 && -exponential(stream) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
  }
}

// Bin(count, chance) by inversion, chance at most ½
__device__ double few(double count, double chance, u64& stream) {
  double odds = chance / (1.0 - chance), term = exp(count * log1p(-chance)), u = uniform(stream), k = 0.0;
  while (u > term && k < count) {
    u -= term;
    k += 1.0;
    term *= odds * (count - k + 1.0) / k;
  }
  return k;
}

// ln k! − (k + ½) ln(k + 1) + (k + 1) − ½ ln 2π
__device__ double stirling(double k) {
  double z = k + 1.0;
  if (k < 10.0) return lgamma(z) - (k + 0.5) * log(z) + z - 0.9189385332046727;
  return (1.0 / 12 - (1.0 / 360 - 1.0 / (1260 * z * z)) / (z * z)) / z;
}

// ln of the binomial probability of k, less that of m
__device__ double log_ratio(double count, double odds, double k, double m) {
  double left = count - k + 1.0, kept = count - m + 1.0;
  double powers = (m + 0.5) * log((m + 1.0) / (odds * kept)) + (k + 0.5) * log(odds * left / (k + 1.0));
  powers += (count + 1.0) * log(kept / left);
  return powers + stirling(m) + stirling(count - m) - stirling(k) - stirling(count - k);
}

// Bin(count, chance) of a mean of at least 10, chance at most ½: transformed rejection (Hörmann 1993, BTRS)
__device__ double many(double count, double chance, u64& stream) {
  double odds = chance / (1.0 - chance), spread = sqrt(count * chance * (1.0 - chance));
  double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * chance;
  double height = (2.83 + 5.1 / b) * spread, mode = floor((count + 1.0) * chance);
  while (true) {
    double u = uniform(stream) - 0.5, v = uniform(stream), inside = 0.5 - fabs(u);
    double k = floor((2.0 * a / inside + b) * u + count * chance + 0.5);
    if (inside >= 0.07 && v <= 0.92 - 4.2 / b) return k;
    if (0.0 <= k && k <= count && log(v * height / (a / (inside * inside) + b)) <= log_ratio(count, odds, k, mode))
      return k;
  }
}

__device__ double binomial(double count, double chance, u64& stream) {
  double less = fmin(chance, 1.0 - chance);
  double k = count * less < SMALL ? few(count, less, stream) : many(count, less, stream);
  return chance <= 0.5 ? k : count - k;
}

// Add a multinomial of size `count` with chances ∝ share(j), j < size, to wins: draws.share_out
template <typename Share>
__device__ void share_out(double count, int size, Share share, double total, u64 stream, double* wins) {
  int last = size - 1;
  while (last > 0 && share(last) == 0.0) --last;
  if (count > MANY * size) {
    double rest = total;
    for (int j = 0; j < last; ++j) {
      double mine = share(j);
      if (mine > 0.0 && count > 0.0) {
        double won = mine < rest ? binomial(count, mine / rest, stream) : count;
        if (won > 0.0) atomicAdd(wins + j, won);
        count -= won;
        rest -= mine;
      }
    }
  } else {
    double climb = 0.0, above = 1.0, target = -1.0;
    for (int j = 0; j < last; ++j) {
      double won = 0.0;
      climb += share(j);
      while (count > 0.0) {
        if (target < 0.0) {
          above *= pow(uniform(stream), 1.0 / count);
          target = (1.0 - above) * total;
        }
        if (target > climb) break;
        won += 1.0;
        count -= 1.0;
        target = -1.0;
      }
      if (won > 0.0) atomicAdd(wins + j, won);
    }
  }
  if (count > 0.0) atomicAdd(wins + last, count);
}
