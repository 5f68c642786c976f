// Passes over situations whose outcomes are choices or rankings, as plackett/engines/situations.py has them. A choice is
// a ranking of which one stage was seen. draws.cu comes first.

#define FAINT -600.0
#define TINY 1e-280
#define WIDTH 128  // threads of a block of entries

// Of each entry W·U_g, the rate, and ln W·U_g − ln W·V_g; U and V (K, p) relative to their largest, `factor` and `gap`
// what that leaves out.
extern "C" __global__ void rates(
    const Real* __restrict__ W, const int* __restrict__ row, const int* __restrict__ group, int E, int p,
    const double* __restrict__ own, const double* __restrict__ rival, const double* __restrict__ factor,
    const double* __restrict__ gap, double* __restrict__ arrived, double* __restrict__ rate, double* __restrict__ gain) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= E) return;
  const int g = group[e];
  const Real* w = W + (long long)row[e] * p;
  const double *u = own + g * p, *v = rival + g * p;
  double first = 0.0, waited = 0.0;
  for (int j = 0; j < p; ++j) {
    first += w[j] * u[j];
    waited += w[j] * v[j];
  }
  arrived[e] = first;
  rate[e] = waited > 0.0 ? fmax(waited * factor[g], TINY) : 0.0;
  gain[e] = log(first) - log(waited) + gap[g];
}

// V, arrivals n and times at risk s of each situation, for as many copies as were counted.
extern "C" __global__ void stages(
    const int* __restrict__ start, const int* __restrict__ placed, const double* __restrict__ count,
    const long long* __restrict__ number, int T, int drawn, u64 key, const double* __restrict__ rate, const double* __restrict__ gain, double* __restrict__ arrivals,
    double* __restrict__ at_risk, double* __restrict__ values) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= T) return;
  const int low = start[t], high = start[t + 1], end = low + min(placed[t], high - low - 1);
  const double copies = count[t];
  u64 stream = begin(key, number[t]);
  double left = 0.0, time = 0.0, value = 0.0;
  bool possible = true;
  for (int e = high - 1; e >= low; --e) at_risk[e] = left += rate[e];
  for (int e = low; e < end; ++e) possible = possible && rate[e] > 0.0;
  for (int e = low; e < high; ++e) {
    const bool arrives = possible && e < end;
    if (arrives) {
      value += log(rate[e]) - log(at_risk[e]);
      time += (drawn ? gamma_draw(copies, stream) : copies) / at_risk[e];
      if (copies > 0.0) value += gain[e];
    }
    arrivals[e] = arrives ? copies : 0.0;
    at_risk[e] = time;
  }
  values[t] = possible ? value : log(0.0);
}

// The sums over the threads of a block that have the same column, in a fixed order; `columns` of them at a time.
__device__ void add_slots(double x, double* parts, int columns, int slots, double* out) {
  parts[threadIdx.x] = x;
  __syncthreads();
  if (threadIdx.x < columns) {
    x = 0.0;
    for (int i = 0; i < slots; ++i) x += parts[i * columns + threadIdx.x];
    *out = x;
  }
  __syncthreads();
}

// Σ n W U/W·U and Σ s W, of blocks of entries of one group: (block, 2p). Sampled wins are not these.
extern "C" __global__ void __launch_bounds__(WIDTH) add_entries(
    const Real* __restrict__ W, const int* __restrict__ row, const int* __restrict__ by_group,
    const long long* __restrict__ first, const int* __restrict__ size, const int* __restrict__ label, int p,
    const double* __restrict__ own, const double* __restrict__ arrived, const double* __restrict__ arrivals,
    const double* __restrict__ at_risk, int drawn, double* __restrict__ sums) {
  __shared__ double parts[WIDTH];
  const int b = blockIdx.x, columns = min(p, WIDTH), slots = WIDTH / columns, slot = threadIdx.x / columns;
  for (int j0 = 0; j0 < p; j0 += columns) {
    const int j = j0 + threadIdx.x % columns;
    double wins = 0.0, exposure = 0.0;
    if (slot < slots && j < p)
      for (int i = slot; i < size[b]; i += slots) {
        const int e = by_group[first[b] + i];
        const double w = W[(long long)row[e] * p + j];
        exposure += at_risk[e] * w;
        if (!drawn && arrivals[e] > 0.0 && arrived[e] > 0.0) wins += arrivals[e] * (w * own[label[b] * p + j] / arrived[e]);
      }
    double nothing, *out = sums + (long long)b * 2 * p + j;
    add_slots(wins, parts, columns, slots, j < p ? out : &nothing);
    add_slots(exposure, parts, columns, slots, j < p ? out + p : &nothing);
  }
}

// Sampled wins of each entry, added to those of its group: whole numbers, so that their order does not matter.
extern "C" __global__ void share_wins(
    const Real* __restrict__ W, const int* __restrict__ row, const int* __restrict__ group,
    const long long* __restrict__ place, int E, int p, u64 key,
    const double* __restrict__ own, const double* __restrict__ arrived, const double* __restrict__ arrivals,
    double* __restrict__ wins) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= E || !(arrivals[e] > 0.0 && arrived[e] > 0.0)) return;
  const Real* w = W + (long long)row[e] * p;
  const double* u = own + group[e] * p;
  auto share = [=](int j) { return w[j] * u[j]; };
  share_out(arrivals[e], p, share, arrived[e], begin(key ^ KEY_OF_TIMES, place[e]), wins + group[e] * p);
}

// ln of the rate Σ_j exp(x·β_j + ln λ_gj) of each entry, from scores x·β (rows, M).
extern "C" __global__ void log_rates(
    const double* __restrict__ scores, const int* __restrict__ row, const int* __restrict__ group, int E, int M,
    const double* __restrict__ log_weights, double* __restrict__ log_rate) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= E) return;
  const double *score = scores + (long long)row[e] * M, *weight = log_weights + group[e] * M;
  double top = log(0.0), sum = 0.0;
  for (int j = 0; j < M; ++j) top = fmax(top, score[j] + weight[j]);
  for (int j = 0; j < M; ++j) sum += exp(score[j] + weight[j] - top);
  log_rate[e] = top + log(sum);
}

// Rates of each situation relative to its largest, none of them 0.
extern "C" __global__ void relative(
    const int* __restrict__ start, int T, const double* __restrict__ log_rate, double* __restrict__ rate) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= T) return;
  double top = log(0.0);
  for (int e = start[t]; e < start[t + 1]; ++e) top = fmax(top, log_rate[e]);
  for (int e = start[t]; e < start[t + 1]; ++e) rate[e] = exp(fmax(log_rate[e] - top, FAINT));
}

// Σ over the entries of each row of (n − r s) exp(x·β_j + ln λ_gj − ln r): (rows, M)
extern "C" __global__ void pull_of_rows(
    const double* __restrict__ scores, const int* __restrict__ by_row, const int* __restrict__ first_of_row,
    const int* __restrict__ group, int R, int M, const double* __restrict__ log_weights,
    const double* __restrict__ log_rate, const double* __restrict__ slope, double* __restrict__ pull) {
  const long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= (long long)R * M) return;
  const int i = place / M, j = place % M;
  double sum = 0.0;
  for (int at = first_of_row[i]; at < first_of_row[i + 1]; ++at) {
    const int e = by_row[at];
    sum += slope[e] * exp(scores[place] + log_weights[group[e] * M + j] - log_rate[e]);
  }
  pull[place] = sum;
}

// The same over blocks of entries of one group: (block, M)
extern "C" __global__ void __launch_bounds__(WIDTH) pull_of_groups(
    const double* __restrict__ scores, const int* __restrict__ row, const int* __restrict__ by_group,
    const long long* __restrict__ first, const int* __restrict__ size, const int* __restrict__ label, int M,
    const double* __restrict__ log_weights, const double* __restrict__ log_rate, const double* __restrict__ slope,
    double* __restrict__ sums) {
  __shared__ double parts[WIDTH];
  const int b = blockIdx.x, columns = min(M, WIDTH), slots = WIDTH / columns, slot = threadIdx.x / columns;
  for (int j0 = 0; j0 < M; j0 += columns) {
    const int j = j0 + threadIdx.x % columns;
    double sum = 0.0;
    if (slot < slots && j < M)
      for (int i = slot; i < size[b]; i += slots) {
        const int e = by_group[first[b] + i];
        sum += slope[e] * exp(scores[(long long)row[e] * M + j] + log_weights[label[b] * M + j] - log_rate[e]);
      }
    double nothing, *out = sums + (long long)b * M + j;
    add_slots(sum, parts, columns, slots, j < M ? out : &nothing);
  }
}
