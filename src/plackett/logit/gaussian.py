"""One draw of a Gaussian vector of coefficients, through one Cholesky factor of the smaller side.

Plain loops instead of BLAS, which would start its own threads under chains that already run in threads. The module
knows neither classes nor priors, beyond a variance for each coefficient.
"""

from __future__ import annotations

import numpy as np

from plackett.compute.compiled import jit
from plackett.compute.vectors import WIDTH, dot, load, multiply_add, spread, total


@jit
def weighted_gram(rows, weight):
    """Return Σ_i weight_i a_i a_iᵀ over the columns a_i of `rows`, lower triangle only; four products share a read."""
    m, n = rows.shape
    gram, scaled = np.empty((m, m)), np.empty(n)
    whole = n - n % WIDTH
    for j in range(m):
        row = rows[j]
        for i in range(n):
            scaled[i] = row[i] * weight[i]
        for l in range(0, j + 1, 4):
            if l + 4 <= m:
                a0, a1, a2, a3 = rows[l], rows[l + 1], rows[l + 2], rows[l + 3]
                s0 = s1 = s2 = s3 = spread(0.0)
                for i in range(0, whole, WIDTH):
                    x = load(scaled, i)
                    s0, s1 = multiply_add(x, load(a0, i), s0), multiply_add(x, load(a1, i), s1)
                    s2, s3 = multiply_add(x, load(a2, i), s2), multiply_add(x, load(a3, i), s3)
                t0, t1, t2, t3 = total(s0), total(s1), total(s2), total(s3)
                for i in range(whole, n):
                    t0 += scaled[i] * a0[i]
                    t1 += scaled[i] * a1[i]
                    t2 += scaled[i] * a2[i]
                    t3 += scaled[i] * a3[i]
                gram[j, l], gram[j, l + 1], gram[j, l + 2], gram[j, l + 3] = t0, t1, t2, t3
            else:
                for h in range(l, j + 1):
                    gram[j, h] = dot(scaled, rows[h])
    return gram


@jit
def times(rows, a, b):
    """Return rows @ (a∘b)."""
    product, out = np.empty(a.size), np.empty(rows.shape[0])
    for i in range(a.size):
        product[i] = a[i] * b[i]
    for j in range(out.size):
        out[j] = dot(rows[j], product)
    return out


@jit
def combine(rows, v, out):
    """Write v @ rows into `out`."""
    for i in range(out.size):
        out[i] = 0.0
    for j in range(v.size):
        row, factor = rows[j], v[j]
        for i in range(out.size):
            out[i] += factor * row[i]


@jit
def cholesky(A):
    """Replace the lower triangle by the lower Cholesky factor; the upper triangle is not accessed."""
    for j in range(A.shape[0]):
        for l in range(j + 1):
            total = A[j, l] - dot(A[j, :l], A[l, :l])
            if l < j:
                A[j, l] = total / A[l, l]
            elif total > 0.0:
                A[j, j] = np.sqrt(total)
            else:
                raise ValueError(
                    "the precision of the coefficients became singular: the chain is lost. Covariates may be too "
                    "large (use standardize=True), or the penalty too small."
                )


@jit
def solve_lower(L, b):
    """Replace b by L⁻¹b."""
    for j in range(b.size):
        b[j] = (b[j] - dot(L[j, :j], b[:j])) / L[j, j]


@jit
def solve_upper(L, b):
    """Replace b by L⁻ᵀb, by rows of L."""
    for j in range(b.size - 1, -1, -1):
        b[j] /= L[j, j]
        row, factor = L[j], b[j]
        for l in range(j):
            b[l] -= factor * row[l]


@jit
def draw_tall(Xt, weight, response, variance, rng):
    """Draw β given response ~ N(Xβ, 1/weight) and prior N(0, variance), through the p×p precision; for p ≤ n."""
    L = weighted_gram(Xt, weight)
    for j in range(variance.size):
        L[j, j] += 1.0 / variance[j]
    cholesky(L)
    beta = times(Xt, weight, response)
    solve_lower(L, beta)
    for j in range(beta.size):
        beta[j] += rng.standard_normal()
    solve_upper(L, beta)
    return beta


@jit
def draw_wide(X, weight, response, variance, rng):
    """Make the draw of `draw_tall` through an n×n matrix, for p > n (Bhattacharya et al. 2016, Biometrika 103)."""
    n, p = X.shape
    beta, gap, pull = np.empty(p), np.empty(n), np.empty(p)
    for j in range(p):
        beta[j] = np.sqrt(variance[j]) * rng.standard_normal()
    L = weighted_gram(X, variance)
    for i in range(n):
        gap[i] = np.sqrt(weight[i]) * (response[i] - dot(X[i], beta)) - rng.standard_normal()
        for l in range(i + 1):
            L[i, l] *= np.sqrt(weight[i] * weight[l])
        L[i, i] += 1.0
    cholesky(L)
    solve_lower(L, gap)
    solve_upper(L, gap)
    for i in range(n):
        gap[i] *= np.sqrt(weight[i])
    combine(X, gap, pull)
    for j in range(p):
        beta[j] += variance[j] * pull[j]
    return beta
