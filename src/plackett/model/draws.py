"""Random numbers of a row or a situation, and the scalar draws of passes and responses.

A stream belongs to (key, row) or (key, situation), so that draws depend neither on threads nor on other rows. The
reference calls these functions too; tests check their distributions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.race import Array

MANY = 4  # wins per feature beyond which binomials replace single draws
SMALL = 10.0  # mean below which a binomial is drawn by inversion

# Uniform random numbers as a function of (key, row): the output function of SplitMix64 over a counter.
STEP, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
KEY_OF_TIMES = 0xD1342543DE82EF95  # xor-ed into the key for the second stream, the arrival times

_STEP, _MIX_1, _MIX_2 = (np.uint64(c) for c in (STEP, MIX_1, MIX_2))


def uniforms(key: int, count: int) -> Array:
    """Return uniforms in (0, 1) of rows 0 … count − 1; the compiled engine computes the same numbers."""
    bits = np.uint64(key) + np.arange(count, dtype=np.uint64) * np.uint64(STEP)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(MIX_1)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(MIX_2)
    bits ^= bits >> np.uint64(31)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def mixed(bits: Any) -> Any:
    """Return the output function of SplitMix64 of a number or an array."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


_mix = jit(mixed)


@jit
def begin(stream, key, index):
    """Set a stream (an array of one uint64) to the start of stream (key, index)."""
    stream[0] = _mix(key + np.uint64(index) * _STEP)


def stream_of(key: int, index: int) -> npt.NDArray[np.uint64]:
    """Return the stream of (key, index)."""
    stream = np.empty(1, dtype=np.uint64)
    begin(stream, np.uint64(key), index)
    return stream


@jit
def uniform(stream):
    """Draw the next number in (0, 1)."""
    stream[0] += _STEP
    return (np.float64(np.int64(_mix(stream[0]) >> np.uint64(12))) + 0.5) * 2.0**-52


@jit
def exponential(stream):
    """Draw from Exp(1)."""
    return -math.log(uniform(stream))


@jit
def gamma(count, stream):
    """Draw from Gam(count, 1), the sum of `count` exponentials (Marsaglia & Tsang 2000; normals by Box & Muller)."""
    if count == 0.0:
        return 0.0
    if count == 1.0:
        return exponential(stream)
    d = count - 1.0 / 3.0
    while True:
        x = math.sqrt(2.0 * exponential(stream)) * math.cos(2.0 * math.pi * uniform(stream))
        v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if v > 0.0 and -exponential(stream) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


@jit
def truncated(rate, end, stream):
    """Draw from Exp(rate) truncated to (0, end)."""
    return -math.log1p(uniform(stream) * math.expm1(-rate * end)) / rate


@jit
def mean_share(y, F):
    """Return 1/y − 1/(e^y − 1), the mean of Exp(1) on (0, y) divided by y; F = 1 − e^−y. Uses the series below 0.2."""
    if y < 0.2:
        z = y * y
        return 0.5 - y * (1 / 12 - z * (1 / 720 - z * (1 / 30240 - z / 1209600)))
    return 1.0 / y - (1.0 - F) / F


@jit
def _few(count, chance, stream):
    """Draw from Bin(count, chance) by inversion, chance ≤ ½; the expected number of steps is the mean."""
    odds = chance / (1.0 - chance)
    term = math.exp(count * math.log1p(-chance))
    u, k = uniform(stream), 0.0
    while u > term and k < count:
        u -= term
        k += 1.0
        term *= odds * (count - k + 1.0) / k
    return k


@jit
def _stirling(k):
    """ln k! − (k + ½) ln(k + 1) + (k + 1) − ½ ln 2π."""
    z = k + 1.0
    if k < 10.0:
        return math.lgamma(z) - (k + 0.5) * math.log(z) + z - 0.9189385332046727
    return (1 / 12 - (1 / 360 - 1 / (1260 * z * z)) / (z * z)) / z


@jit
def _log_ratio(count, odds, k, m):
    """Log of the binomial probability of k, minus that of m."""
    left, kept = count - k + 1.0, count - m + 1.0
    powers = (m + 0.5) * math.log((m + 1.0) / (odds * kept)) + (k + 0.5) * math.log(odds * left / (k + 1.0))
    powers += (count + 1.0) * math.log(kept / left)
    return powers + _stirling(m) + _stirling(count - m) - _stirling(k) - _stirling(count - k)


@jit
def _many(count, chance, stream):
    """Draw from Bin(count, chance) with mean ≥ 10, chance ≤ ½, by transformed rejection (Hörmann 1993, BTRS)."""
    odds, spread = chance / (1.0 - chance), math.sqrt(count * chance * (1.0 - chance))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    height, mode = (2.83 + 5.1 / b) * spread, math.floor((count + 1.0) * chance)
    while True:
        u, v = uniform(stream) - 0.5, uniform(stream)
        inside = 0.5 - abs(u)
        k = math.floor((2.0 * a / inside + b) * u + count * chance + 0.5)
        if inside >= 0.07 and v <= 0.92 - 4.2 / b:
            return k
        if 0.0 <= k <= count and math.log(v * height / (a / (inside * inside) + b)) <= _log_ratio(count, odds, k, mode):
            return k


@jit
def binomial(count, chance, stream):
    """Draw from Bin(count, chance), at a cost that does not grow with the count."""
    less = min(chance, 1.0 - chance)
    k = _few(count, less, stream) if count * less < SMALL else _many(count, less, stream)
    return k if chance <= 0.5 else count - k


@jit
def share_out(count, row, own, total, stream, wins):
    """Add a multinomial of size `count` with chances W_j U_j / total to `wins`: equation (11) for equal rows at once.

    The last feature with a positive chance takes the remainder; if it is the only one, no random number is used.
    """
    last = row.size - 1
    while last > 0 and row[last] * own[last] == 0.0:
        last -= 1
    if count > MANY * row.size:
        count = _share_out_many(count, row, own, total, last, stream, wins)
    else:
        count = _share_out_few(count, row, own, total, last, stream, wins)
    wins[last] += count


@jit
def _share_out_few(count, row, own, total, last, stream, wins):
    """Draw wins one by one for all features before the last; return the remaining count.

    Uniforms are drawn in increasing order (the least of m is 1 − u^(1/m)) and matched with the running sum of W_j U_j
    in one sweep.
    """
    climb, above, target = 0.0, 1.0, -1.0  # above: 1 − the last uniform; a negative target means none is drawn yet
    for j in range(last):
        climb += row[j] * own[j]
        while count > 0.0:
            if target < 0.0:
                above *= uniform(stream) ** (1.0 / count)
                target = (1.0 - above) * total
            if target > climb:
                break
            wins[j] += 1.0
            count -= 1.0
            target = -1.0
    return count


@jit
def _share_out_many(count, row, own, total, last, stream, wins):
    """Draw wins by the binomial of each feature given the earlier ones; return the remaining count."""
    rest = total
    for j in range(last):
        share = row[j] * own[j]
        if share > 0.0 and count > 0.0:
            won = binomial(count, share / rest, stream) if share < rest else count
            wins[j] += won
            count -= won
            rest -= share
    return count
