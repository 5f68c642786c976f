"""An independent sampler of the sparse logit's posterior: NUTS (nutpie) on β, with τ integrated out, and ln θ."""

import numba
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc


@numba.njit(cache=True, error_model="numpy")
def log_density(x, X, y, free, shape, rate, intercept_scale, penalty):
    """Log-posterior of (β, ln θ), or of β at a fixed θ > 0, and its gradient; column 0 of X is 1."""
    n, p = X.shape
    gradient = np.zeros_like(x)
    beta, slope = x[: free * p].reshape(free, p), gradient[: free * p].reshape(free, p)
    root = np.sqrt(penalty) if penalty > 0 else np.exp(0.5 * x[-1])
    value, eta = 0.0, np.empty(free)
    for i in range(n):
        top = 0.0
        for k in range(free):
            eta[k] = 0.0
            for j in range(p):
                eta[k] += beta[k, j] * X[i, j]
            top = max(top, eta[k])
        norm = np.exp(-top)
        for k in range(free):
            norm += np.exp(eta[k] - top)
        value -= top + np.log(norm)
        for k in range(free):
            here = 1.0 if y[i] == k else 0.0
            value += here * eta[k]
            for j in range(p):
                slope[k, j] += (here - np.exp(eta[k] - top) / norm) * X[i, j]
    total = 0.0
    for k in range(free):
        value -= 0.5 * (beta[k, 0] / intercept_scale) ** 2
        slope[k, 0] -= beta[k, 0] / intercept_scale**2
        for j in range(1, p):
            total += abs(beta[k, j])
            slope[k, j] -= root * np.sign(beta[k, j])
    value -= root * total
    if penalty <= 0:
        count = free * (p - 1)
        value += (0.5 * count + shape) * x[-1] - rate * root**2
        gradient[-1] = 0.5 * count + shape - 0.5 * root * total - rate * root**2
    return value, gradient


def nuts_logit(
    Z,
    codes,
    n_classes,
    penalty=None,
    penalty_prior=(2.0, 0.1),
    intercept_scale=10.0,
    draws=1500,
    tune=500,
    chains=2,
    seed=1,
):
    """Draws of β (chain, draw, K−1, 1+d), the intercept first, and of θ (chain, draw)."""
    X, y = np.column_stack([np.ones(len(Z)), Z]), np.asarray(codes, dtype=np.int64)
    free, p = n_classes - 1, X.shape[1]
    fixed = 0.0 if penalty is None else float(penalty)
    size = free * p + (penalty is None)
    given = (X, y, free, *map(float, penalty_prior), float(intercept_scale), fixed)
    model = from_pyfunc(
        ndim=size,
        make_logp_fn=lambda: lambda x, **_: log_density(np.ascontiguousarray(x), *given),
        make_expand_fn=lambda *_: lambda x, **__: {"x": np.asarray(x, dtype=np.float64)},
        expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(size,)],
        expanded_names=["x"],
        make_initial_point_fn=lambda seed: 0.1 * np.random.default_rng(seed).standard_normal(size),
    )
    trace = nutpie.sample(model, draws=draws, tune=tune, chains=chains, cores=1, seed=seed, progress_bar=False)
    x = np.asarray(trace.posterior["x"].values)
    theta = np.exp(x[..., -1]) if penalty is None else np.full(x.shape[:2], fixed)
    return x[..., : free * p].reshape(*x.shape[:2], free, p), theta
