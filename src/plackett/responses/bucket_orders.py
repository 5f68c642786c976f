"""Exact expectations of a small bucket S of unknown order before the rest: a sum over subsets replaces all orders.

Let A ⊆ S be the entries that have arrived. The next arrival comes after Exp(R − r(A)), R = q + Σ_S r, and is i with
probability r_i/(R − r(A)). Let f(A) be the probability that A has arrived before all others, and b(A) the probability
that S∖A then comes before the rest. They obey

    f(A) = Σ_{i∈A} f(A∖i) r_i/(R − r(A∖i)),    b(A) = Σ_{i∈S∖A} r_i/(R − r(A)) b(A∪i),

V = ln f(S), and A is visited with probability f(A) b(A)/f(S), for a mean time 1/(R − r(A)). All terms are positive. In
units of Π r_i/(q + r_i), where factor i is the probability that i alone precedes the rest, no product over- or
underflows.
"""

from __future__ import annotations

import math

from plackett.compute.compiled import jit

LARGEST = 7  # largest bucket for which subsets cost less than quadrature
SUBSETS = 1 << LARGEST
FAINT = 1e-150  # products below this are moved into the logarithm before they underflow


@jit
def expect_orders(rates, low, high, q, tables, times):
    """Return V and E[M] of the bucket low ≤ i < high; write E[T_i] into `times`. `tables` (4, SUBSETS) is scratch."""
    sums, waits, before, after = tables[0], tables[1], tables[2], tables[3]
    m = high - low
    whole = (1 << m) - 1
    value, product = 0.0, 1.0
    for i in range(low, high):
        alone = rates[i] / (q + rates[i])
        times[i] = 0.0
        if alone < FAINT:
            value += math.log(alone)
            continue
        product *= alone
        if product < FAINT:
            value += math.log(product)
            product = 1.0
    sums[0] = 0.0
    for i in range(m):
        for some in range(1 << i):
            sums[some | (1 << i)] = sums[some] + rates[low + i]
    for some in range(whole + 1):
        waits[some] = 1.0 / (q + sums[whole ^ some])
    before[0] = 1.0
    for some in range(1, whole + 1):
        total = 0.0
        for i in range(m):
            if some >> i & 1:
                earlier = some ^ (1 << i)
                total += before[earlier] * waits[earlier] * (q + rates[low + i])
        before[some] = total
    after[whole] = 1.0
    for some in range(whole - 1, -1, -1):
        total = 0.0
        for i in range(m):
            if not some >> i & 1:
                total += after[some | (1 << i)] * (q + rates[low + i])
        after[some] = total * waits[some]
    last = 0.0
    for some in range(whole):
        time = before[some] * after[some] / before[whole] * waits[some]
        last += time
        for i in range(m):
            if not some >> i & 1:
                times[low + i] += time
    return value + math.log(product * before[whole]), last
