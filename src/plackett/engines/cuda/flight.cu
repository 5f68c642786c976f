// Between two passes of a trajectory on the posterior of learned directions, a block a chain: the log-density and its
// gradient from the sums of a pass, as plackett/directions/density.py has them (add_prior), half a push; and half a
// push, a step and the position in the terms of the model (unpack), for the next pass. block.cu comes first; what is
// particular to the passes of classes and of situations is in class_flight.cu and situation_flight.cu.
//
// CENTRED has β where q otherwise has v (plackett/directions/centred.py).
//
// A chain's state is q, p, gradient and inverse mass (D each), then the step, the log-density below which the trajectory
// is given up, the log-density, and whether the chain is still under way.

#define ARRIVED 1  // a pass has been made at q
#define LEAP 2     // go on
#define LOOK 4     // make ready for a pass at q

struct Prior {
  int owners, K, M, d;
  const int* owner;           // (M,)
  const double* shape;        // (K, M)
  double covariate_spread;
  const double* scale_prior;  // centres and spreads of ln σ
};

// ln λ = h(t) = t − (1/a − 1) ln(1 + e^−t)
__device__ double log_weight_of(double t, double a) { return t - (1.0 / a - 1.0) * (fmax(-t, 0.0) + log1p(exp(-fabs(t)))); }

// All of the following are those of the chain: `slopes` and `beta` are (M, d). A pass has
//   value(gradient, parts)   the thread's share of ln p(Y|β, λ), and of what the pass adds to the prior
//   to_beta(i), to_log_weight(k, j)   slopes of ln p(Y|β, λ)
//   make_ready(q, parts)     weights for the next pass
template <class Pass>
__device__ void go_on(double* q, int D, int flags, const Prior& prior, double* slopes, double* beta, const Pass& pass) {
  __shared__ double parts[THREADS / 32];
  const int tid = threadIdx.x, K = prior.K, M = prior.M, d = prior.d;
  double *p = q + D, *gradient = p + D, *inverse_mass = gradient + D, *numbers = inverse_mass + D;
  const int V = prior.owners * d, T = V + M * d, S = T + K * M, SIGMA = S + d;
  const int* owner = prior.owner;
  const double step = numbers[0];
  bool under_way = numbers[3] > 0.0;

  if (flags & ARRIVED && under_way) {
    const double sigma[2] = {exp(q[SIGMA]), exp(q[SIGMA + 1])};
    double value = pass.value(gradient, parts), to_shared = 0.0, to_single = 0.0;
    for (int i = tid; i < M * d; i += THREADS) {
      double slope = pass.to_beta(i);
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
    for (int i = tid; i < prior.owners * d; i += THREADS) {
      double slope = 0.0;
      for (int j = 0; j < M; ++j)
        if (owner[j] == i / d) slope += slopes[j * d + i % d];
      slope *= exp(q[S + i % d]);
      gradient[i] = slope * sigma[0] - q[i];
      to_shared += slope * q[i];
      value -= 0.5 * q[i] * q[i];
    }
    for (int f = tid; f < d; f += THREADS) {
      double slope = 0.0, z = q[S + f] / prior.covariate_spread;
      for (int j = 0; j < M; ++j) slope += slopes[j * d + f] * beta[j * d + f] - CENTRED;
      gradient[S + f] = slope - z / prior.covariate_spread;
      value -= 0.5 * z * z;
    }
    for (int i = tid; i < K * M; i += THREADS) {
      const double a = prior.shape[i], log_weight = log_weight_of(q[T + i], a), weight = exp(log_weight);
      const double steep = 1.0 / a - 1.0, rest = 1.0 / (1.0 + exp(q[T + i])), slope = 1.0 + steep * rest;
      const double uphill = pass.to_log_weight(i / M, i % M) + a - weight;
      gradient[T + i] = uphill * slope - steep * rest * (1.0 - rest) / slope;
      value += a * log_weight - weight + log(slope);
    }
    to_shared = sum_of(to_shared, parts);
    to_single = sum_of(to_single, parts);
    value = sum_of(value, parts);
    for (int i = 0; i < 2; ++i) {
      const double z = (q[SIGMA + i] - prior.scale_prior[i]) / prior.scale_prior[2 + i];
      value -= 0.5 * z * z;
      if (tid == 0) gradient[SIGMA + i] = (i ? to_single : to_shared) * sigma[i] - z / prior.scale_prior[2 + i];
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
  pass.make_ready(q, parts);
}
