"""Random numbers of a situation, and the scalar draws that responses are made of.

A stream belongs to (key, situation), so that draws depend neither on threads nor on other situations. The reference
calls these functions too: they exist once, and are tested by their laws.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.engines.base import MIX_1, MIX_2, STEP

_STEP, _MIX_1, _MIX_2 = (np.uint64(c) for c in (STEP, MIX_1, MIX_2))


def mixed(bits: Any) -> Any:
    """The output function of SplitMix64, of a number or an array."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


_mix = jit(mixed)


@jit
def begin(stream, key, index):
    """Put a stream (an array of one uint64) to the beginning of that of (key, index)."""
    stream[0] = _mix(key + np.uint64(index) * _STEP)


def stream_of(key: int, index: int) -> npt.NDArray[np.uint64]:
    """The stream of (key, index)."""
    stream = np.empty(1, dtype=np.uint64)
    begin(stream, np.uint64(key), index)
    return stream


@jit
def uniform(stream):
    """The next number in (0, 1)."""
    stream[0] += _STEP
    return (np.float64(np.int64(_mix(stream[0]) >> np.uint64(12))) + 0.5) * 2.0**-52


@jit
def exponential(stream):
    """Exp(1)."""
    return -math.log(uniform(stream))


@jit
def gamma(count, stream):
    """Gam(count, 1), the sum of `count` exponentials (Marsaglia & Tsang 2000, normals by Box & Muller)."""
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
    """Exp(rate) on (0, end)."""
    return -math.log1p(uniform(stream) * math.expm1(-rate * end)) / rate


@jit
def mean_share(y, F):
    """1/y − 1/(e^y − 1), the mean of Exp(1) on (0, y) in parts of y; F = 1 − e^−y. Below 0.2 its series."""
    if y < 0.2:
        z = y * y
        return 0.5 - y * (1 / 12 - z * (1 / 720 - z * (1 / 30240 - z / 1209600)))
    return 1.0 / y - (1.0 - F) / F


@jit
def share_out(count, row, own, total, stream, wins):
    """Add a multinomial of size `count` with chances W_j U_j / total to `wins`, equation (11) for equal rows at once.

    Uniforms are drawn in increasing order, the least of m being 1 − u^(1/m), and met by the running sum of W_j U_j in
    one walk; the last feature with a chance takes what is left, and where it is the only one nothing is drawn.
    """
    last = row.size - 1
    while last > 0 and row[last] * own[last] == 0.0:
        last -= 1
    climb, above, target = 0.0, 1.0, -1.0  # above: 1 − the uniform last drawn; a negative target is yet to be drawn
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
    wins[last] += count
