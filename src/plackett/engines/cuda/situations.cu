// Passes over situations whose outcomes are choices or rankings, as plackett/engines/situations.py has them. A choice is
// a ranking of which one stage was seen. draws.cu and block.cu come first.

#define TINY 1e-280

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
