// Between two passes of a trajectory on the posterior of learned directions, a block a chain: the log-density and its
// gradient from the sums of a pass, as plackett/directions/density.py has them (add_prior), half a push; and half a
// push, a step and the position in the terms of the model (unpack), for the next pass.
//
// CENTRED has β where q otherwise has v (plackett/directions/centred.py).
//
// A chain's state is q, p, gradient and inverse mass (D each), then the step, the log-density below which the trajectory
// is given up, the log-density, and whether the chain is still under way.

#define THREADS 256
#define ARRIVED 1  // a pass has been made at q
#define LEAP 2     // go on
#define LOOK 4     // make ready for a pass at q

// The sum over the block, the same for all of its threads, in a fixed order.
__device__ double sum_of(double x, double* parts) {
  for (int h = 16; h; h >>= 1) x += __shfl_xor_sync(0xffffffffu, x, h);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = x;
  __syncthreads();
  x = 0.0;
  for (int i = 0; i < THREADS / 32; ++i) x += parts[i];
  return x;
}

// ln λ = h(t) = t − (1/a − 1) ln(1 + e^−t)
__device__ double log_weight_of(double t, double a) { return t - (1.0 / a - 1.0) * (fmax(-t, 0.0) + log1p(exp(-fabs(t)))); }

extern "C" __global__ void __launch_bounds__(THREADS) flight(
    double* __restrict__ state, int D, int flags, int K, int M, int MP, int d,  // MP: components with those of no row
    const int* __restrict__ owner, const double* __restrict__ shape,           // (M,), (K, M)
    double covariate_spread, const double* __restrict__ scale_prior,           // centres and spreads of ln σ
    double rarest, const double* __restrict__ sums, double* __restrict__ slopes,  // of classes (K, columns); (C, M, d)
    double* __restrict__ beta, double* __restrict__ votes, double* __restrict__ log_total) {
  __shared__ double parts[THREADS / 32];
  const int c = blockIdx.x, C = gridDim.x, tid = threadIdx.x;
  double* q = state + (long long)c * (4 * D + 4);
  double *p = q + D, *gradient = p + D, *inverse_mass = gradient + D, *numbers = inverse_mass + D;
  const int V = K * d, T = (K + M) * d, S = T + K * M, SIGMA = S + d;
  const double step = numbers[0];
  bool under_way = numbers[3] > 0.0;
  beta += (long long)c * MP * d;
  votes += (long long)c * K * MP;
  log_total += (long long)c * MP;
  slopes += (long long)c * M * d;

  if (flags & ARRIVED && under_way) {
    const int columns = C * MP * (d + 2) + C;
    const double *wins = sums + C * MP * d + c * MP, *gates = wins + C * MP, *values = sums + C * MP * (d + 2) + c;
    const double sigma[2] = {exp(q[SIGMA]), exp(q[SIGMA + 1])};
    double value = 0.0, to_shared = 0.0, to_single = 0.0;
    if (tid == 0)
      for (int k = 0; k < K; ++k) value += values[(long long)k * columns];
    for (int i = tid; i < M * d; i += THREADS) {
      double slope = 0.0;
      for (int k = 0; k < K; ++k) slope += sums[(long long)k * columns + c * MP * d + i];
#if CENTRED  // ln p(β) = −v²/2 − ln τ with τ = s_f σ_1 and v = (β − s_f σ_0 u)/τ; below, v/τ is the slope of u's mean
      const double spread = exp(q[S + i % d]) * sigma[1];
      const double v = (q[V + i] - exp(q[S + i % d]) * sigma[0] * q[owner[i / d] * d + i % d]) / spread;
      gradient[V + i] = slope - v / spread;
      slopes[i] = slope = v / spread;
      to_single += (v * v - 1.0) / sigma[1];
      value -= 0.5 * v * v + log(spread);
#else
      slopes[i] = slope;
      slope *= exp(q[S + i % d]);
      gradient[V + i] = slope * sigma[1] - q[V + i];
      to_single += slope * q[V + i];
      value -= 0.5 * q[V + i] * q[V + i];
#endif
    }
    __syncthreads();
    for (int i = tid; i < K * d; i += THREADS) {
      double slope = 0.0;
      for (int j = 0; j < M; ++j)
        if (owner[j] == i / d) slope += slopes[j * d + i % d];
      slope *= exp(q[S + i % d]);
      gradient[i] = slope * sigma[0] - q[i];
      to_shared += slope * q[i];
      value -= 0.5 * q[i] * q[i];
    }
    for (int f = tid; f < d; f += THREADS) {
      double slope = 0.0, z = q[S + f] / covariate_spread;
      for (int j = 0; j < M; ++j) slope += slopes[j * d + f] * beta[j * d + f] - CENTRED;
      gradient[S + f] = slope - z / covariate_spread;
      value -= 0.5 * z * z;
    }
    for (int i = tid; i < K * M; i += THREADS) {
      const int k = i / M, j = i % M;
      double all = 0.0;
      for (int l = 0; l < K; ++l) all += gates[(long long)l * columns + j];
      const double a = shape[i], log_weight = log_weight_of(q[T + i], a), weight = exp(log_weight);
      const double steep = 1.0 / a - 1.0, rest = 1.0 / (1.0 + exp(q[T + i])), slope = 1.0 + steep * rest;
      const double uphill = votes[k * MP + j] * (wins[(long long)k * columns + j] - all) + a - weight;
      gradient[T + i] = uphill * slope - steep * rest * (1.0 - rest) / slope;
      value += a * log_weight - weight + log(slope);
    }
    to_shared = sum_of(to_shared, parts);
    to_single = sum_of(to_single, parts);
    value = sum_of(value, parts);
    for (int i = 0; i < 2; ++i) {
      const double z = (q[SIGMA + i] - scale_prior[i]) / scale_prior[2 + i];
      value -= 0.5 * z * z;
      if (tid == 0) gradient[SIGMA + i] = (i ? to_single : to_shared) * sigma[i] - z / scale_prior[2 + i];
    }
    under_way = value > numbers[1];
    __syncthreads();
    if (tid == 0) {
      numbers[2] = value;
      numbers[3] = under_way ? 1.0 : 0.0;
    }
    if (under_way)
      for (int i = tid; i < D; i += THREADS) p[i] += 0.5 * step * gradient[i];
  }

  if (flags & LEAP && under_way)
    for (int i = tid; i < D; i += THREADS) {
      p[i] += 0.5 * step * gradient[i];
      q[i] += step * inverse_mass[i] * p[i];
    }
  if (!(flags & (LEAP | LOOK)) || !under_way) return;
  __syncthreads();
  const double shared = exp(q[SIGMA]), single = exp(q[SIGMA + 1]);
  for (int i = tid; i < M * d; i += THREADS)
    beta[i] = CENTRED ? q[V + i] : exp(q[S + i % d]) * (shared * q[owner[i / d] * d + i % d] + single * q[V + i]);
  for (int j = tid; j < M; j += THREADS) {
    double peak = -1e300, whole = 0.0;
    for (int k = 0; k < K; ++k) peak = fmax(peak, log_weight_of(q[T + k * M + j], shape[k * M + j]));
    for (int k = 0; k < K; ++k) {
      const double weight = exp(fmax(log_weight_of(q[T + k * M + j], shape[k * M + j]) - peak, rarest));
      votes[k * MP + j] = weight;
      whole += weight;
    }
    for (int k = 0; k < K; ++k) votes[k * MP + j] /= whole;
    log_total[j] = peak + log(whole);
  }
}
