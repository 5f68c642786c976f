"""An independent sampler of the same posterior: NUTS (nutpie) on θ = ln λ with its own density and gradient.

`worst_difference` compares the means of two samplers.
"""

import math

import numba
import numpy as np
import nutpie
from arviz_stats.base import array_stats
from nutpie.compiled_pyfunc import from_pyfunc

AT_A_TIME = 8  # quantities, since the error of a mean takes some Fourier transforms


def worst_difference(a, b):
    """Largest difference of means in Monte-Carlo standard errors; arrays (chain, draw, …)."""
    a, b = (x.reshape(*x.shape[:2], -1) for x in (a, b))
    worst = 0.0
    for first in range(0, a.shape[2], AT_A_TIME):
        some = [x[:, :, first : first + AT_A_TIME] for x in (a, b)]
        error = np.hypot(*(array_stats.mcse(x, method="mean", chain_axis=0, draw_axis=1) for x in some))
        mean, other = (x.mean(axis=(0, 1)) for x in some)
        worst = max(worst, float((np.abs(mean - other) / error).max()))
    return worst


def nuts_log_weights(W, codes, n_classes, shape, rate=1.0, tail=0.0, draws=1500, tune=1000, chains=4, seed=1):
    """Draws of ln λ̄ under Gam(shape, rate), or GIG with a tail, (chain, draw, K, p)."""
    p = W.shape[1]
    size = n_classes * p

    @numba.njit
    def density(theta):
        lam = np.exp(theta).reshape(n_classes, p)
        total = np.zeros(p)
        for k in range(n_classes):
            total += lam[k]
        gradient = shape - rate * lam + tail / lam
        value = shape * theta.sum() - rate * lam.sum() - tail * (1.0 / lam).sum()
        for i in range(len(codes)):
            own, all_ = 0.0, 0.0
            for j in range(p):
                own += W[i, j] * lam[codes[i], j]
                all_ += W[i, j] * total[j]
            value += np.log(own) - np.log(all_)
            for j in range(p):
                gradient[codes[i], j] += W[i, j] * lam[codes[i], j] / own
                for k in range(n_classes):
                    gradient[k, j] -= W[i, j] * lam[k, j] / all_
        return value, gradient.ravel()

    theta = sampled(density, size, draws, tune, chains, seed).reshape(chains, draws, n_classes, p)
    return theta - np.logaddexp.reduce(theta.reshape(chains, draws, -1), axis=2)[:, :, None, None]


def nuts_choice_weights(W, start, chosen, shape, rate=1.0, draws=1500, tune=1000, chains=4, seed=1):
    """Draws of ln λ̄ (chain, draw, p) of choices with rates W_e·λ, under Gam(shape, rate).

    W is (entries, p); the entries of situation t are those from start[t] to start[t + 1], and `chosen` is one of them.
    """
    p, first, total = W.shape[1], W[chosen], np.add.reduceat(W, start[:-1])

    @numba.njit
    def density(theta):
        lam = np.exp(theta)
        gradient = shape - rate * lam
        value = shape * theta.sum() - rate * lam.sum()
        for t in range(len(chosen)):
            own, all_ = 0.0, 0.0
            for j in range(p):
                own += first[t, j] * lam[j]
                all_ += total[t, j] * lam[j]
            value += np.log(own) - np.log(all_)
            for j in range(p):
                gradient[j] += (first[t, j] / own - total[t, j] / all_) * lam[j]
        return value, gradient

    theta = sampled(density, p, draws, tune, chains, seed)
    return theta - np.logaddexp.reduce(theta, axis=2)[:, :, None]


def sampled(density, size, draws, tune, chains, seed):
    """Draws (chain, draw, size) by nutpie; the density gives its logarithm and the gradient."""
    model = from_pyfunc(
        ndim=size,
        make_logp_fn=lambda: lambda theta, **_: density(np.ascontiguousarray(theta)),
        make_expand_fn=lambda *_: lambda theta, **__: {"theta": np.asarray(theta, dtype=np.float64)},
        expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(size,)],
        expanded_names=["theta"],
    )
    trace = nutpie.sample(
        model,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=2,
        seed=seed,
        progress_bar=False,
        target_accept=0.9,
    )
    return np.asarray(trace.posterior["theta"].values).reshape(chains, draws, size)


def nuts_tastes(X, start, owner, n_persons, mean_spread, sd_scale, draws=1000, tune=1000, chains=4, seed=1):
    """Draws of (μ, ln σ), (chain, draw, 2d), of independent normal tastes; entries start[t] of situations are chosen.

    Persons have β_i = μ + σ z_i with standard normal z_i; μ ~ N(0, mean_spread²), and σ is half-t with 2 degrees of
    freedom and this scale.
    """
    d = X.shape[1]

    @numba.njit
    def density(theta):
        mean, sd, z = theta[:d], np.exp(theta[d : 2 * d]), theta[2 * d :].reshape(n_persons, d)
        gradient = np.zeros_like(theta)
        value = 0.0
        for k in range(d):
            value += -0.5 * (mean[k] / mean_spread) ** 2 + theta[d + k]
            value -= 1.5 * np.log(1 + sd[k] ** 2 / (2 * sd_scale**2))
            gradient[k] -= mean[k] / mean_spread**2
            gradient[d + k] += 1 - 3 * sd[k] ** 2 / (2 * sd_scale**2 + sd[k] ** 2)
        for i in range(n_persons * d):
            value -= 0.5 * theta[2 * d + i] ** 2
            gradient[2 * d + i] -= theta[2 * d + i]
        for t in range(len(owner)):
            i = owner[t]
            beta = mean + sd * z[i]
            n = start[t + 1] - start[t]
            u = np.empty(n)
            for e in range(n):
                u[e] = 0.0
                for k in range(d):
                    u[e] += X[start[t] + e, k] * beta[k]
            p = np.exp(u - u.max())
            value += u[0] - u.max() - np.log(p.sum())
            p /= p.sum()
            for k in range(d):
                slope = X[start[t], k]
                for e in range(n):
                    slope -= p[e] * X[start[t] + e, k]
                gradient[k] += slope
                gradient[d + k] += slope * z[i, k] * sd[k]
                gradient[2 * d + i * d + k] += slope * sd[k]
        return value, gradient

    return sampled(density, 2 * d + n_persons * d, draws, tune, chains, seed)[:, :, : 2 * d]


def nuts_described(held, z, spread, low, high, draws=1500, tune=1000, chains=4, seed=1):
    """Draws of (ln λ with mean 0, γ, ln a), (chain, draw, K + d + 1), of full rankings `held` (n, m) of some items.

    λ_k ~ Gam(a, a e^(−z_k·γ)) with γ ~ N(0, spread²) and ln a uniform on [low, high], here as low + (high − low) of a
    logistic coordinate.
    """
    (K, d), n = z.shape, len(held)

    @numba.njit
    def psi(v):
        found = 0.0
        while v < 6.0:
            found -= 1.0 / v
            v += 1.0
        f = 1.0 / (v * v)
        return (
            found + np.log(v) - 0.5 / v - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f * (1.0 / 240 - f / 132))))
        )

    @numba.njit
    def density(theta):
        share = 1.0 / (1.0 + np.exp(-theta[K + d]))
        a = np.exp(low + (high - low) * share)
        x, gamma = theta[:K], theta[K : K + d]
        y = x - z @ gamma
        gradient, value, of_a = np.zeros_like(theta), 0.0, 0.0
        for k in range(K):
            value += a * np.log(a) + a * y[k] - a * np.exp(y[k]) - math.lgamma(a)
            of_a += np.log(a) + 1.0 + y[k] - np.exp(y[k]) - psi(a)
            slope = a - a * np.exp(y[k])
            gradient[k] += slope
            for j in range(d):
                gradient[K + j] -= slope * z[k, j]
        for j in range(d):
            value -= 0.5 * (gamma[j] / spread) ** 2
            gradient[K + j] -= gamma[j] / spread**2
        value += np.log(share) + np.log(1.0 - share)
        gradient[K + d] = of_a * a * (high - low) * share * (1.0 - share) + 1.0 - 2.0 * share
        for t in range(n):
            left = 0.0
            for s in range(held.shape[1] - 1, -1, -1):
                left += np.exp(x[held[t, s]])
                if s < held.shape[1] - 1:
                    value += x[held[t, s]] - np.log(left)
                    gradient[held[t, s]] += 1.0
                    for e in range(s, held.shape[1]):
                        gradient[held[t, e]] -= np.exp(x[held[t, e]]) / left
        return value, gradient

    found = sampled(density, K + d + 1, draws, tune, chains, seed)
    found[..., :K] -= found[..., :K].mean(axis=2, keepdims=True)
    found[..., -1] = low + (high - low) / (1.0 + np.exp(-found[..., -1]))
    return found
