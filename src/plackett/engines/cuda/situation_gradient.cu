// ln p(Y|β, λ) of choices and rankings where the features are exp(x·β), and its gradient, for C chains at a time: as
// plackett/engines/situations.py has it. Scores x·β are (rows, C, M), weights ln λ (C, K, M); what entries have is
// (C, E). block.cu comes first.

#define FAINT -600.0

// ln of a rate relative to the largest, which is then not 0; NaN stays NaN.
__device__ double at_least_faint(double log_rate) { return log_rate < FAINT ? FAINT : log_rate; }

// ln of the rate Σ_j exp(x·β_j + ln λ_gj) of each entry.
extern "C" __global__ void log_rates(
    const double* __restrict__ scores, const int* __restrict__ row, const int* __restrict__ group, int E, int K, int M,
    const double* __restrict__ log_weights, double* __restrict__ log_rate) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, C = gridDim.y;
  if (e >= E) return;
  const double* score = scores + ((long long)row[e] * C + c) * M;
  const double* weight = log_weights + (c * K + group[e]) * M;
  double top = log(0.0), sum = 0.0;
  for (int j = 0; j < M; ++j) top = fmax(top, score[j] + weight[j]);
  for (int j = 0; j < M; ++j) sum += exp(score[j] + weight[j] - top);
  log_rate[(long long)c * E + e] = top + log(sum);
}

// n − r s of each entry, with rates r relative to the largest of the situation and none of them 0, and Σ count · V of
// each block of situations: (C, blocks).
extern "C" __global__ void __launch_bounds__(THREADS) slopes_of_entries(
    const int* __restrict__ start, const int* __restrict__ placed, const double* __restrict__ count, int T, int E,
    const double* __restrict__ log_rates, double* __restrict__ slopes, double* __restrict__ values) {
  __shared__ double parts[THREADS / 32];
  const int t = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y;
  const double* log_rate = log_rates + (long long)c * E;
  double *slope = slopes + (long long)c * E, value = 0.0;
  if (t < T && count[t] > 0.0) {
    const int low = start[t], high = start[t + 1], end = low + min(placed[t], high - low - 1);
    double top = log(0.0), left = 0.0, time = 0.0;
    for (int e = low; e < high; ++e) top = fmax(top, log_rate[e]);
    for (int e = high - 1; e >= low; --e) slope[e] = left += exp(at_least_faint(log_rate[e] - top));
    for (int e = low; e < high; ++e) {
      const double relative = at_least_faint(log_rate[e] - top);
      if (e < end) {
        value += relative - log(slope[e]);
        time += 1.0 / slope[e];
      }
      slope[e] = count[t] * ((e < end ? 1.0 : 0.0) - exp(relative) * time);
    }
    value *= count[t];
  } else if (t < T) {
    for (int e = start[t]; e < start[t + 1]; ++e) slope[e] = 0.0;
  }
  value = sum_of(value, parts);
  if (threadIdx.x == 0) values[c * gridDim.x + blockIdx.x] = value;
}

// Σ of (n − r s) exp(x·β_j + ln λ_gj − ln r) over blocks of entries of one group: (block, C, M)
extern "C" __global__ void __launch_bounds__(WIDTH) pull_of_groups(
    const double* __restrict__ scores, const int* __restrict__ row, const int* __restrict__ by_group,
    const long long* __restrict__ first, const int* __restrict__ size, const int* __restrict__ label, int E, int K,
    int M, const double* __restrict__ log_weights, const double* __restrict__ log_rates,
    const double* __restrict__ slopes, double* __restrict__ sums) {
  __shared__ double parts[WIDTH];
  const int b = blockIdx.x, c = blockIdx.y, C = gridDim.y;
  const int columns = min(M, WIDTH), slots = WIDTH / columns, slot = threadIdx.x / columns;
  const double *log_rate = log_rates + (long long)c * E, *slope = slopes + (long long)c * E;
  const double* weight = log_weights + (c * K + label[b]) * M;
  for (int j0 = 0; j0 < M; j0 += columns) {
    const int j = j0 + threadIdx.x % columns;
    double sum = 0.0;
    if (slot < slots && j < M)
      for (int i = slot; i < size[b]; i += slots) {
        const int e = by_group[first[b] + i];
        sum += slope[e] * exp(scores[((long long)row[e] * C + c) * M + j] + weight[j] - log_rate[e]);
      }
    double nothing, *out = sums + ((long long)b * C + c) * M + j;
    add_slots(sum, parts, columns, slots, j < M ? out : &nothing);
  }
}

// The same over the entries of each row, in the place of its scores: (rows, C, M)
extern "C" __global__ void pull_of_rows(
    double* __restrict__ scores, const int* __restrict__ by_row, const int* __restrict__ first_of_row,
    const int* __restrict__ group, int R, int E, int C, int K, int M, const double* __restrict__ log_weights,
    const double* __restrict__ log_rates, const double* __restrict__ slopes) {
  const long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= (long long)R * C * M) return;
  const int i = place / (C * M), c = place / M % C, j = place % M;
  const double *log_rate = log_rates + (long long)c * E, *slope = slopes + (long long)c * E;
  const double *weight = log_weights + c * K * M + j, score = scores[place];
  double sum = 0.0;
  for (int at = first_of_row[i]; at < first_of_row[i + 1]; ++at) {
    const int e = by_row[at];
    sum += slope[e] * exp(score + weight[group[e] * M] - log_rate[e]);
  }
  scores[place] = sum;
}
