// Trajectories over choices and rankings: a pass takes ln λ, and gives slopes in β and ln λ (situation_gradient.cu). A
// position that is longer has the totals of the weights apart, at its end (plackett/directions/totals.py). flight.cu
// comes first.

// out = Rx of n numbers, by the reflection R that takes the first axis to the mean of all. Both may be the same.
__device__ void reflect(const double* x, int n, double* out, double* parts) {
  const double root = sqrt((double)n), first = x[0];
  double along = 0.0;
  for (int k = threadIdx.x; k < n; k += THREADS) along += x[k] / root;
  along = sum_of(along, parts) - first;
  const double step = n > 1 ? along / (1.0 - 1.0 / root) : 0.0;
  for (int k = threadIdx.x; k < n; k += THREADS) out[k] = x[k] - step / root + (k ? 0.0 : step);
  __syncthreads();
}

struct SituationPass {
  int K, M, T, ZETA;  // T, ZETA: where t and ζ begin in q
  bool totals;
  long long columns;    // from one group to the next
  const double* shape;  // (K, M)
  const double* values;
  int n_values;
  const double *slopes, *in_weights;  // in β (M, d) and in ln λ
  double *log_weights, *log_total, *in_total;  // (K, M), and of groups: ln T and Σ_j of the slopes in ln λ_kj

  // take_back
  __device__ double value(double* gradient, double* parts) const {
    double value = 0.0;
    for (int i = threadIdx.x; i < n_values; i += THREADS) value += values[i];
    if (!totals) return value;
    for (int k = threadIdx.x; k < K; k += THREADS) {
      double slope = 0.0, a = 0.0;
      for (int j = 0; j < M; ++j) {
        slope += in_weights[k * columns + j];
        a += shape[k * M + j];
      }
      in_total[k] = slope;
      gradient[ZETA + k] = slope + a - exp(log_total[k]);
      value += a * log_total[k] - exp(log_total[k]);
    }
    __syncthreads();
    reflect(gradient + ZETA, K, gradient + ZETA, parts);
    return value;
  }

  __device__ double to_beta(int i) const { return slopes[i]; }

  __device__ double to_log_weight(int k, int j) const {
    const double slope = in_weights[k * columns + j];
    return totals ? slope - in_total[k] * exp(log_weights[k * M + j] - log_total[k]) : slope;
  }

  // share_out
  __device__ void make_ready(const double* q, double* parts) const {
    for (int i = threadIdx.x; i < K * M; i += THREADS) log_weights[i] = log_weight_of(q[T + i], shape[i]);
    if (!totals) return;
    __syncthreads();
    reflect(q + ZETA, K, log_total, parts);
    for (int k = threadIdx.x; k < K; k += THREADS) {
      double *weight = log_weights + k * M, peak = weight[0], whole = 0.0;
      for (int j = 1; j < M; ++j) peak = fmax(peak, weight[j]);
      for (int j = 0; j < M; ++j) whole += exp(weight[j] - peak);
      const double shift = log_total[k] - peak - log(whole);
      for (int j = 0; j < M; ++j) weight[j] += shift;
    }
  }
};

extern "C" __global__ void __launch_bounds__(THREADS) flight_over_situations(
    double* state, int D, int flags, int owners, int K, int M, int d, const int* __restrict__ owner,
    const double* __restrict__ shape, double covariate_spread, const double* __restrict__ scale_prior,
    double* slopes,                                       // (C, M, d)
    double* beta, double* log_weights, double* totals,    // (C, M, d), (C, K, M), (C, 2, K)
    const double* __restrict__ values, int n_values,      // (C, n_values)
    const double* __restrict__ in_beta, const double* __restrict__ in_weights) {  // (C, M, d), (K, C, M)
  const int c = blockIdx.x, C = gridDim.x, T = (owners + M) * d, ZETA = T + K * M + d + 2;
  const Prior prior = {owners, K, M, d, owner, shape, covariate_spread, scale_prior};
  totals += 2 * c * K;
  const SituationPass pass = {K, M, T, ZETA, D > ZETA, C * M, shape, values + (long long)c * n_values, n_values,
                              in_beta + c * M * d, in_weights + c * M, log_weights + c * K * M, totals, totals + K};
  go_on(state + (long long)c * (4 * D + 4), D, flags, prior, slopes + c * M * d, beta + c * M * d, pass);
}
