"""The draws that the sparse logit samplers are made of, against the laws they claim."""

import numba
import numpy as np
import pytest
from scipy import integrate, special, stats

from plackett.logit import draws
from plackett.logit.conditionals import log_likelihood, offset
from plackett.logit.gaussian import cholesky, draw_tall, draw_wide, weighted_gram
from plackett.logit.samplers import DEVROYE_LIMIT, draw_weights

P_VALUE = 1e-4  # of each test of a distribution; seeds are fixed


@numba.njit
def repeat(draw, argument, rng, out):
    for i in range(out.size):
        out[i] = draw(argument[i], rng)


@numba.njit
def repeat_vector(draw, X, weight, response, variance, rng, out):
    for i in range(out.shape[0]):
        out[i] = draw(X, weight, response, variance, rng)


def mixing_density(lam):
    """Density of λ = 4ψ², from SciPy's Kolmogorov–Smirnov law."""
    return stats.kstwobign.pdf(0.5 * np.sqrt(lam)) / (4.0 * np.sqrt(lam))


def test_mixing_variable_of_logistic_residuals_is_kolmogorov_smirnov():
    rng, lam = np.random.default_rng(1), np.empty(200_000)
    repeat(draws.draw_mixing, np.abs(rng.logistic(size=lam.size)), rng, lam)
    assert stats.kstest(0.5 * np.sqrt(lam), stats.kstwobign.cdf).pvalue > P_VALUE


@pytest.mark.parametrize("r", [0.0, 1e-6, 0.3, 1.0, 3.0, 10.0, 60.0])
def test_mixing_variable_given_residual(r):
    rng, lam = np.random.default_rng(2), np.empty(100_000)
    repeat(draws.draw_mixing, np.full(lam.size, r), rng, lam)
    grid = np.exp(np.linspace(np.log(1e-2), np.log(60.0 + 6.0 * r), 20_001))
    if r < 30:
        density = np.exp(-0.5 * r**2 / grid) / np.sqrt(grid) * mixing_density(grid)
    else:  # π(λ) = exp(−λ/2) on all that matters
        density = np.exp(-0.5 * (r - grid) ** 2 / grid) / np.sqrt(grid)
    cdf = integrate.cumulative_simpson(density * grid, x=np.log(grid), initial=0.0)
    assert stats.kstest(lam, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > P_VALUE


@pytest.mark.parametrize("lam", [0.05, 0.3, 0.9, 1.3, 4 / 3 - 1e-9, 4 / 3 + 1e-9, 1.4, 2.0, 5.0, 12.0])
def test_series_decides_at_the_right_threshold(lam):
    threshold = np.exp(0.5 * lam) * mixing_density(lam)
    assert draws.accept_mixing(threshold * (1 - 1e-8), lam)
    assert not draws.accept_mixing(threshold * (1 + 1e-8) + 1e-300, lam)


def test_grid_encloses_the_acceptance_probability():
    lam = np.linspace(1e-3, draws.STEP * draws.CELLS - 1e-3, 20_000)
    exact, cell = np.exp(0.5 * lam) * mixing_density(lam), (lam / draws.STEP).astype(int)
    assert np.all(np.diff(draws.acceptance_grid()) >= 0)
    assert np.all(draws.SURELY_BELOW[cell] < exact) and np.all(exact < draws.SURELY_ABOVE[cell + 1])


@pytest.mark.parametrize("mu", [-800.0, -30.0, -2.0, 0.0, 2.0, 30.0, 800.0])
def test_truncated_logistic(mu):
    rng, rho = np.random.default_rng(3), np.empty(100_000)
    repeat(draws.draw_logistic_above, np.full(rho.size, mu), rng, rho)
    assert np.all(rho >= -mu)
    uniform = np.exp(-np.logaddexp(0.0, rho) + np.logaddexp(0.0, -mu))  # P(logistic > ρ | logistic > −μ)
    assert stats.kstest(uniform, "uniform").pvalue > P_VALUE


@pytest.mark.parametrize("theta", [0.04, 3.0, 500.0])
@pytest.mark.parametrize("beta", [0.0, 1e-12, 1e-3, 0.5, 30.0])
def test_reciprocal_variance_is_inverse_gaussian(beta, theta):
    rng, tau = np.random.default_rng(4), np.empty((1, 50_000))
    draws.draw_variances(np.full(tau.shape, beta), theta, rng, tau)
    assert np.all(tau > 0)
    if beta > 1e-6:
        law = stats.invgauss(mu=1.0 / (np.sqrt(theta) * beta), scale=theta)  # mean √θ/β, shape θ
        assert stats.kstest(1.0 / tau[0], law.cdf).pvalue > P_VALUE
    else:  # the limit β → 0, where SciPy's law is inaccurate
        assert stats.kstest(theta * tau[0], stats.chi2(1).cdf).pvalue > P_VALUE


def test_penalty_given_variances_counts_the_free_classes():
    rng = np.random.default_rng(6)
    tau = rng.exponential(size=(2, 7))  # K = 3, p = 7
    theta = [draws.draw_penalty(tau, 1.5, 0.7, rng) for _ in range(20_000)]
    assert stats.kstest(theta, stats.gamma(14 + 1.5, scale=1 / (0.5 * tau.sum() + 0.7)).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(
    "size, scale, rate", [((1, 3), 0.0, 2.0), ((1, 3), 1.0, 2.0), ((2, 30), 0.05, 0.1), ((2, 3), 9.0, 0.1)]
)
def test_penalty_given_coefficients(size, scale, rate):
    rng = np.random.default_rng(7)
    beta, shape = scale * rng.standard_normal(size), 1.5
    root = np.sqrt([draws.draw_penalty_collapsed(beta, shape, rate, rng) for _ in range(20_000)])
    s = np.linspace(0.0, 1.5 * root.max(), 20_001)[1:]
    log_density = (beta.size + 2 * shape - 1) * np.log(s) - s * np.abs(beta).sum() - rate * s**2
    cdf = integrate.cumulative_simpson(np.exp(log_density - log_density.max()), x=s, initial=0.0)
    assert stats.kstest(root, lambda x: np.interp(x, s, cdf / cdf[-1])).pvalue > P_VALUE


@pytest.mark.parametrize("tilt", [0.01, 0.5, 8.0, 60.0, 0.99 * DEVROYE_LIMIT, 1.01 * DEVROYE_LIMIT, 300.0, 3000.0])
def test_polya_gamma_weights_are_right_at_every_tilt(tilt):
    """The package's fastest method is wrong for large tilts; half the rows are far out, so that methods mix."""
    rng = np.random.default_rng(8)
    tilts, omega = np.full(200_000, tilt), np.empty(200_000)
    tilts[1::2], tilts[::4] = 500.0, -tilt
    draw_weights(tilts, 500.0, rng, omega)
    for value, x in ((tilt, omega[::2]), (500.0, omega[1::2])):
        mean, q = np.tanh(0.5 * value) / (2.0 * value), np.exp(-value)
        variance = (1 - q * q - 2 * value * q) / (2.0 * value**3 * (1 + q) ** 2) if value > 0.1 else 1 / 24
        assert abs(x.mean() - mean) < 4.5 * np.sqrt(variance / x.size)
        assert abs(x.var() / variance - 1) < 0.05


@pytest.mark.parametrize("m", range(1, 11))
def test_gram_and_cholesky_equal_numpy(m):
    rng = np.random.default_rng(m)
    rows, weight = rng.standard_normal((m, 23)), rng.random(23)
    found, want = weighted_gram(rows, weight), (rows * weight) @ rows.T
    np.testing.assert_allclose(np.tril(found), np.tril(want), atol=1e-12)
    cholesky(found)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(want), atol=1e-9)


def test_singular_precision_is_an_error():
    with pytest.raises(ValueError, match="singular.*standardize"):
        cholesky(np.zeros((2, 2)))


@pytest.mark.parametrize("n, p", [(9, 4), (4, 9)])
@pytest.mark.parametrize("route", ["tall", "wide"])
def test_gaussian_draw_has_the_posterior_mean_and_covariance(n, p, route):
    rng = np.random.default_rng(10)
    X, weight, response = rng.standard_normal((n, p)), rng.random(n), rng.standard_normal(n)
    variance, out = rng.exponential(size=p), np.empty((40_000, p))
    draw, given = (draw_tall, np.ascontiguousarray(X.T)) if route == "tall" else (draw_wide, X)
    repeat_vector(draw, given, weight, response, variance, rng, out)
    precision = (X.T * weight) @ X + np.diag(1 / variance)
    mean = np.linalg.solve(precision, X.T @ (weight * response))
    white = (out - mean) @ np.linalg.cholesky(precision)  # independent N(0, 1) if all is right
    assert np.abs(white.mean(axis=0)).max() < 4.5 / np.sqrt(len(out))
    assert np.abs(white.T @ white / len(out) - np.eye(p)).max() < 4.5 * np.sqrt(2 / len(out))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 2000.0])
def test_offset_and_log_likelihood(n_classes, spread):
    rng = np.random.default_rng(11)
    eta = np.vstack([spread * rng.standard_normal((n_classes - 1, 50)), np.zeros(50)])
    y, out = rng.integers(n_classes, size=50), np.empty(50)
    for k in range(n_classes):
        offset(eta, k, out)
        np.testing.assert_allclose(out, special.logsumexp(np.delete(eta, k, axis=0), axis=0), atol=1e-10)
    for scale in (1.0, 1.7):
        want = special.log_softmax(scale * eta, axis=0)[y, np.arange(50)].sum()
        np.testing.assert_allclose(log_likelihood(eta, y, scale), want, rtol=1e-12)
