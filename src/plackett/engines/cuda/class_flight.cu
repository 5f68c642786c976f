// Trajectories over rows of classes: a pass takes votes θ_kj = λ_kj/Λ_j and ln Λ_j, and gives sums of each class
// (plackett/engines/cupy_directions.py). flight.cu comes first.

struct ClassPass {
  int K, M, MP, T;  // MP: components with those of no row; T: where t begins in q
  long long columns;
  const double* shape;
  double rarest;
  const double *slopes, *wins, *gates, *values;  // of the first class
  double *votes, *log_total;

  __device__ double value(double*, double*) const {
    double value = 0.0;
    if (threadIdx.x == 0)
      for (int k = 0; k < K; ++k) value += values[k * columns];
    return value;
  }

  __device__ double to_beta(int i) const {
    double slope = 0.0;
    for (int k = 0; k < K; ++k) slope += slopes[k * columns + i];
    return slope;
  }

  __device__ double to_log_weight(int k, int j) const {
    double all = 0.0;
    for (int l = 0; l < K; ++l) all += gates[l * columns + j];
    return votes[k * MP + j] * (wins[k * columns + j] - all);
  }

  __device__ void make_ready(const double* q, double*) const {
    for (int j = threadIdx.x; j < M; j += THREADS) {
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
};

extern "C" __global__ void __launch_bounds__(THREADS) flight_over_classes(
    double* state, int D, int flags, int owners, int K, int M, int d, const int* __restrict__ owner,
    const double* __restrict__ shape, double covariate_spread, const double* __restrict__ scale_prior,
    double* slopes,                                            // (C, M, d)
    int MP, double rarest, const double* __restrict__ sums,    // of classes (K, columns)
    double* beta, double* votes, double* log_total) {
  const int c = blockIdx.x, C = gridDim.x;
  const double* wins = sums + C * MP * d + c * MP;
  const Prior prior = {owners, K, M, d, owner, shape, covariate_spread, scale_prior};
  const ClassPass pass = {K, M, MP, (owners + M) * d, C * MP * (d + 2) + C, shape, rarest, sums + c * MP * d, wins,
                        wins + C * MP, sums + C * MP * (d + 2) + c, votes + c * K * MP, log_total + c * MP};
  go_on(state + (long long)c * (4 * D + 4), D, flags, prior, slopes + c * M * d, beta + c * MP * d, pass);
}
