"""Bucket S that comes before the rest, in unknown order: the sum over all orders, for buckets of any size.

The clock restarts in each stage. Entries i of S arrive at T_i ~ Exp(r_i), all before the first of the rest, which
arrives at E ~ Exp(q) with q = Σ_rest r. With F_i(t) = 1 − exp(−r_i t),

    Pr(S first) = ∫ q exp(−q t) Π_S F_i(t) dt = ∫ exp(−q t) dΠ_S F_i(t).

The second integral runs over the last arrival M = max T, and every expectation is a positive integral over it: given M
= t, entry i is the last with probability h_i/Σ h, h_i = r_i exp(−r_i t)/F_i(t); otherwise T_i is Exp(r_i) on (0, t).
The complete likelihood is Π_S r_i exp(−r_i T_i) · exp(−q M): entry i of S waits T_i, the rest waits M. E is not part of
it.

Draws come in two exact blocks given rates and outcome, so that no state carries over between sweeps:
    1. E, with T integrated out: its density ∝ exp(−q t) Π_S F_i(t) is log-concave in ln t, and drawn by rejection;
    2. T_i given E, independently Exp(r_i) on (0, E).
A bucket of one is a stage of a ranking. A bucket at the very end carries no information. Expectations of small buckets
are sums over subsets (`bucket_orders`); larger buckets and the reference here use quadrature.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.draws import begin, exponential, gamma, mean_share, truncated, uniform
from plackett.model.race import Array
from plackett.responses.base import Answer, Outcomes, Sizes, impossible, left_at
from plackett.responses.bucket_orders import LARGEST, SUBSETS, expect_orders
from plackett.responses.ranking import forget, running_left

# Trapezoids in x = ln t. The integrand is analytic for |Im x| < π/2, so that steps of h err by about exp(−π²/h); at its
# narrowest it is like a normal density of variance 1/size, where they err by exp(−2π²/(size h²)). Doublings of t are
# nearly free: F(2t) = F(t)(2 − F(t)), precise for small F, and G(2t) = G(t)², G = 1 − F, precise for small G.
NEGLIGIBLE = 32.0  # −ln of the relative size at which both ends are cut off


@jit
def _nodes(size):
    """Number of nodes per doubling of t."""
    return max(3, math.ceil(1.2 * math.sqrt(size)))


@jit
def _ends(size, most):
    """Bounds beyond which the integrand is at most exp(−32) of its maximum, with time scaled so that q + min r = 1.

    It falls at least like t below 1, and like t^size below 1/(q + max r), here 1/most. Above, it falls no slower than
    t^size exp(−t).
    """
    low = max(-math.log(most) - NEGLIGIBLE / size, -NEGLIGIBLE)
    return math.exp(low), size + 8.0 * math.sqrt(size) + NEGLIGIBLE


@jit
def _expect(rates, low, high, q, room, times):
    """Return V and E[M] of the bucket low ≤ i < high; write E[T_i] into `times`. Overwrites `room` (4, entries)."""
    r, F, G, unit = room[0], room[1], room[2], room[3]
    least = most = rates[low]
    for i in range(low, high):
        least, most = min(least, rates[i]), max(most, rates[i])
    slow = q + least
    begins, ends = _ends(high - low, (q + most) / slow)
    value = 0.0
    for i in range(low, high):  # in units of F_i at the end no product over- or underflows
        r[i] = rates[i] / slow
        F_end = -math.expm1(-r[i] * ends)
        value += math.log(F_end)
        unit[i], times[i] = 1.0 / F_end, 0.0
    mass = last = 0.0
    nodes = _nodes(high - low)
    for node in range(nodes):
        t = begins * 2.0 ** (node / nodes)
        for i in range(low, high):
            F[i], G[i] = -math.expm1(-r[i] * t), math.exp(-r[i] * t)
        while t < ends:
            product, hazard = t * math.exp(-q / slow * t), 0.0
            for i in range(low, high):
                product *= F[i] * unit[i]
                hazard += r[i] * G[i] / F[i]
            mass += product * hazard
            last += product * hazard * t
            for i in range(low, high):
                own = r[i] * G[i] / F[i]
                times[i] += product * t * (own + (hazard - own) * mean_share(r[i] * t, F[i]))
                if F[i] < 0.5:
                    F[i] *= 2.0 - F[i]
                    G[i] = 1.0 - F[i]
                else:
                    G[i] *= G[i]
                    F[i] = 1.0 - G[i]
            t *= 2.0
    for i in range(low, high):
        times[i] /= mass * slow
    return value + math.log(mass * math.log(2.0) / nodes), last / mass / slow


@jit
def log_density(x, rates, low, high, q):
    """Log-density of x = ln(q E) up to a constant, L(x) = x − e^x + Σ ln F_i, and its first two derivatives."""
    tau = math.exp(x)
    value, slope, bend = x - tau, 1.0 - tau, -tau
    for i in range(low, high):
        y = rates[i] / q * tau
        F = -math.expm1(-y)
        b = y * (1.0 - F) / F  # y/(e^y − 1)
        value += math.log(F)
        slope += b
        bend += b * (1.0 - y - b)
    return value, slope, bend


@jit
def hull(rates, low, high, q):
    """Intersection, height and slopes of two tangents above L, one deviation to either side of its mode.

    Any two tangents of a concave L with slopes of both signs are valid; for a normal density these reject a quarter. As
    a function of q E the slope of L is convex, decreasing and positive at 1, so that Newton's method started there
    reaches the mode without passing it.
    """
    tau = 1.0
    _, slope, bend = log_density(0.0, rates, low, high, q)
    while slope > 0.01 * math.sqrt(-bend):
        tau -= tau * slope / bend
        _, slope, bend = log_density(math.log(tau), rates, low, high, q)
    mode, deviation = math.log(tau), 1.0 / math.sqrt(-bend)
    left, rise, _ = log_density(mode - deviation, rates, low, high, q)
    right, fall, _ = log_density(mode + deviation, rates, low, high, q)
    meet = (right - left - deviation * (rise + fall)) / (rise - fall)
    return mode + meet, left + rise * (meet + deviation), rise, fall


@jit
def draw_end(meet, top, rise, fall, rates, low, high, q, stream):
    """Draw E, the first arrival among the rest given that S precedes it, by rejection under the hull."""
    while True:
        depth = exponential(stream)
        left = uniform(stream) * (rise - fall) < -fall  # the areas under the hull are 1/rise and −1/fall
        x = meet - depth / (rise if left else fall)
        value, _, _ = log_density(x, rates, low, high, q)
        if top - depth - exponential(stream) < value:
            return math.exp(x) / q


@jit
def draw_times(rates, low, high, q, count, stream, times):
    """Return Σ of M over `count` copies; add the sums of T_i to `times`."""
    meet, top, rise, fall = hull(rates, low, high, q)
    waited = 0.0
    for _ in range(count):
        end = draw_end(meet, top, rise, fall, rates, low, high, q, stream)
        last = 0.0
        for i in range(low, high):
            time = truncated(rates[i], end, stream)
            times[i] += time
            last = max(last, time)
        waited += last
    return waited


@jit
def _stages(rates, low, high, sizes, drawn, count, stream, room, tables, arrivals, at_risk):
    """Write arrivals and times of one situation; return V. Times are drawn for all copies, or expected for one."""
    left = room[4]
    running_left(rates, low, high, left)
    value, waited, first = 0.0, 0.0, low
    for size in sizes:
        end = first + size
        if end == high or left[end] == 0.0:
            break
        for i in range(first, end):
            if rates[i] == 0.0:
                forget(low, high, arrivals, at_risk)
                return -np.inf
            arrivals[i] = count
        if size == 1:
            value += math.log(rates[first]) - math.log(left[first])
            time = (gamma(count, stream) if drawn else 1.0) / left[first]
            at_risk[first] = time
        else:
            if size <= LARGEST:
                stage, time = expect_orders(rates, first, end, left[end], tables, at_risk)
            else:
                stage, time = _expect(rates, first, end, left[end], room, at_risk)
            value += stage
            if drawn:
                for i in range(first, end):
                    at_risk[i] = 0.0
                time = draw_times(rates, first, end, left[end], int(count), stream, at_risk)
        for i in range(first, end):
            at_risk[i] += waited
        waited += time
        first = end
    for i in range(first, high):
        arrivals[i], at_risk[i] = 0.0, waited
    return value


@jit
def expect_block(outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base, stream, room = outcomes.start[first], np.empty(1, dtype=np.uint64), np.empty((5, rates.size))
    tables = np.empty((4, SUBSETS))
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        sizes = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
        values[t] = _stages(rates, low, high, sizes, False, 1.0, stream, room, tables, arrivals, at_risk)


@jit
def sample_block(outcomes, number, first, last, rates, key, arrivals, at_risk, values):
    """Draws of situations first ≤ t < last, with the random numbers of number[t]."""
    base, stream, room = outcomes.start[first], np.empty(1, dtype=np.uint64), np.empty((5, rates.size))
    tables = np.empty((4, SUBSETS))
    for t in range(first, last):
        begin(stream, key, number[t])
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        sizes = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
        values[t] = _stages(rates, low, high, sizes, True, outcomes.counts[t], stream, room, tables, arrivals, at_risk)


def expect_bucket(rates: Array, q: float) -> tuple[float, Array, float]:
    """Return V, E[T_i] and E[M] of a bucket before a rest of rate q."""
    slow = q + rates.min()
    begins, ends = _ends(len(rates), (q + rates.max()) / slow)
    step = np.log(2.0) / _nodes(len(rates))
    t = np.exp(np.arange(np.log(begins), np.log(ends), step))
    r = rates[:, None] / slow
    F, F_end = -np.expm1(-r * t), -np.expm1(-r * ends)
    h = r * np.exp(-r * t) / F
    mass = step * t * np.exp(-q / slow * t) * np.prod(F / F_end, axis=0) * h.sum(axis=0)
    is_last = h / h.sum(axis=0)
    inside = t * np.array(
        [[mean_share(*each) for each in zip(*row, strict=True)] for row in zip(r * t, F, strict=True)]
    )
    times = (is_last * t + (1.0 - is_last) * inside) @ mass / mass.sum()
    return float(np.log(F_end).sum() + np.log(mass.sum())), times / slow, float(t @ mass / mass.sum() / slow)


class UnknownOrder:
    """V = Σ_stages ln ∫ exp(−q t) dΠ_S F_i(t); S waits T_i, the rest max T."""

    absolute = False
    expect_block = staticmethod(expect_block)
    sample_block = staticmethod(sample_block)

    def check(self, outcomes: Outcomes) -> None:
        """Accept any buckets."""

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """Expectations by quadrature, or as in a ranking for a bucket of one."""
        return self._answer(np.asarray(rates, dtype=np.float64), sizes, 1, None)

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """Draw T given the outcome, copy by copy; Gam(count, ·) for a bucket of one."""
        return self._answer(np.asarray(rates, dtype=np.float64), sizes, count, stream)

    def _answer(self, rates: Array, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64] | None) -> Answer:
        left = np.append(left_at(rates), 0.0)
        value, arrivals, at_risk = 0.0, np.zeros(len(rates)), np.zeros(len(rates))
        ends = np.cumsum(sizes)
        for first, end in zip(ends - sizes, ends, strict=True):
            if left[end] == 0.0:
                break
            inside, rest = slice(first, end), slice(end, None)
            if (rates[inside] == 0.0).any():
                return impossible(rates)
            if end - first == 1:
                stage = np.log(rates[first]) - np.log(left[first])
                last = (1.0 if stream is None else gamma(count, stream)) / left[first]
                times = np.array([last])
            else:
                stage, times, last = expect_bucket(rates[inside], left[end])
                if stream is not None:
                    times = np.zeros(end - first)
                    last = draw_times(rates[inside].copy(), 0, end - first, left[end], count, stream, times)
            value += stage
            arrivals[inside] = count
            at_risk[inside] += times
            at_risk[rest] += last
        return float(value), arrivals, at_risk
