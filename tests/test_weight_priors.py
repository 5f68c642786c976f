"""The generalised inverse Gaussian as a prior of the weights: its numbers, its draws, the laws of each inference."""

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.optimize import minimize
from scipy.special import kve, logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import geninvgauss, kstest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from conftest import class_rows, small_problem
from nuts import nuts_log_weights, worst_difference
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, load, regularization_path
from plackett.features import ExpFeatures
from plackett.inference.checkpoint import CheckpointError
from plackett.inference.em import TailedClimb
from plackett.inference.paper_sampler import sweeps_of_any_engine
from plackett.inference.sweeps import LOG_MASS, State, Target, make_room, sweeps, update
from plackett.model.mixture import normalised
from plackett.model.race import Weights
from plackett.model.weights import GIG, Gam, log_mode
from plackett.priors import LogUniform, tabulate
from plackett.report.words import model as model_in_words
from plackett.simulate import race

KIND = {"chain_axis": 0, "draw_axis": 1}
NAMES = ("log_weights", "shape", "value")  # of what a sweep leaves
PRIORS = [GIG(2.0, 0.1, 1.0), GIG(0.5, 1e-3, 2.0), GIG(-0.5, 0.05, 1.0)]
priors = pytest.mark.parametrize("prior", PRIORS, ids=["above 1", "below 1", "negative"])


def fitted(inference, prior, X, y, **settings):
    return PlackettLuceClassifier(inference, prior=prior, **{"features": "exp", "random_state": 0} | settings).fit(X, y)


# ν, ω, then ∂ ln K_ν/∂ν, ln K_{ν+1}/K_ν, ln K_{ν−1}/K_ν and ln 2K_ν at ω, by mpmath with 60 digits. Where rate and tail
# are ω/2 these are the moments ⟨ln λ⟩, ln⟨λ⟩, ln⟨1/λ⟩ and the logarithm of the integral.
BESSEL = [
    (-50, 1e-12, -32.226157969916386, -32.21598859459912, 32.23619130191664, 1560.7741587707696),
    (-50, 0.01, -9.200307050388258, -9.190137675287914, 9.210340382180265, 409.4816117635426),
    (-50, 1, -4.595240960557282, -4.585073753763978, 4.605272210755893, 179.21800120464096),
    (-50, 50, -0.8764060504471728, -0.869312291827081, 0.8834533440144959, -27.85266242701083),
    (-50, 1e06, -4.9999974979193815e-05, -4.9499975229810246e-05, 5.049997472856071e-05, -1000005.9875668715),
    (-0.5, 1e-12, -26.360658270521792, 0.0, 27.63102111592955, 14.734449091167948),
    (-0.5, 0.01, -3.4224773759307534, 0.0, 4.61512051684126, 3.2115236261987183),
    (-0.5, 1, -0.3613286168882226, 0.0, 0.6931471805599453, -0.08106146679532726),
    (-0.5, 50, -0.009901942286733018, 0.0, 0.019802627296179712, -51.0370729695094),
    (-0.5, 1e06, -4.9999975000025e-07, 0.0, 9.999995000003334e-07, -1000005.9888167458),
    (0, 1e-12, 0.0, 24.30789509684417, 24.30789509684417, 4.016273199644324),
    (0, 0.01, 0.0, 3.0528366142410532, 3.0528366142410532, 2.245219659408161),
    (0, 1, 0.0, 0.3574124506960358, 0.3574124506960358, -0.1719172183468428),
    (0, 50, 0.0, 0.009901785107303607, 0.009901785107303607, -51.039548474730985),
    (0, 1e06, 0.0, 4.999997500002291e-07, 4.999997500002291e-07, -1000005.9888168708),
    (0.003, 1e-12, 0.7743857597694271, 24.38998150073072, 24.22349980657832, 4.017435045059191),
    (0.003, 0.01, 0.026714454629810876, 3.0669713229926727, 3.038636478482297, 2.2452597313466622),
    (0.003, 1, 0.0021932996103268708, 0.3595104989932186, 0.35531359676925584, -0.1719139283967273),
    (0.003, 50, 5.941259689486461e-05, 0.009961193914865708, 0.00984237626579407, -51.039548385612086),
    (0.003, 1e06, 2.999998500001625e-09, 5.029997485002303e-07, 4.96999751500228e-07, -1000005.9888168708),
    (2.7, 1e-12, 29.120951465479635, 29.317420069498777, -28.854796547550663, 76.91007495417404),
    (2.7, 0.01, 6.095109185658126, 6.291574586052372, -5.828966586752619, 14.74026273760671),
    (2.7, 1, 1.559309993275707, 1.7334810406927954, -1.3458303072865663, 2.1688803884812944),
    (2.7, 50, 0.053446612864398065, 0.06333129587904211, -0.043555167186375254, -50.96737886520927),
    (2.7, 1e06, 2.6999986499981822e-06, 3.1999983999961388e-06, -2.1999988999993257e-06, -1000005.9888132258),
    (400.25, 1e-12, 34.315007908944764, 34.316257648365315, -34.31375608358361, 13332.755225818648),
    (400.25, 0.01, 11.289156979161145, 11.290406718581306, -11.28790515380039, 4116.658391047363),
    (400.25, 1, 6.68398836138841, 6.685238096890491, -6.682736539965411, 2273.438397994662),
    (400.25, 50, 2.775861790096933, 2.777101847315567, -2.7746196951822806, 706.0894417023013),
    (400.25, 1e06, 0.00040024978918857043, 0.0004007497888984541, -0.0003997497894785534, -1000005.9087168806),
    (10000, 1e-12, 37.53445866763134, 37.534508668464674, -37.53440866346434, 365341.4004613273),
    (10000, 0.01, 14.508607737691136, 14.50865773852447, -14.508557733524135, 135082.89116192024),
    (10000, 1, 9.903437554203295, 9.903487555036378, -9.903387550036545, 89031.18927703933),
    (10000, 50, 5.991420797466212, 5.991470797674432, -5.9913707939244505, 49910.89674170513),
    (10000, 1e06, 0.009999828341338252, 0.010000328316088537, -0.009999328366584636, -999955.9892585237),
]


def test_moments_are_ratios_of_bessel_functions():
    order, omega, *expected = np.array(BESSEL).T
    found = GIG(order, omega / 2, omega / 2).moments
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-8, atol=1e-13)


def test_moments_follow_the_scale():
    """The law of 7λ."""
    order, omega, *_ = np.array(BESSEL).T
    one, seven = GIG(order, omega / 2, omega / 2).moments, GIG(order, 3.5 * omega, omega / 14).moments
    shifts = np.log(7.0) * np.array([np.ones_like(order), np.ones_like(order), -np.ones_like(order), order])
    np.testing.assert_allclose(np.array(seven), np.array(one) + shifts, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("shape", [0.02, 0.7, 3.0, 200.0])
def test_without_a_tail_it_is_the_gamma(shape):
    tailed, plain = GIG(np.array([shape]), 1e-280, 3.0), Gam(np.array([shape]), np.array([3.0]))
    np.testing.assert_allclose(tailed.weights().log_own, plain.weights().log_own, rtol=3e-4)
    np.testing.assert_allclose(tailed.weights().log_rival, plain.weights().log_rival, rtol=1e-4, atol=1e-12)
    assert tailed.moments.log_integral[0] == pytest.approx(
        gamma_distribution(shape, scale=1 / 3).logpdf(0.5) * -1 + (shape - 1) * np.log(0.5) - 1.5, rel=1e-4
    )
    if shape >= 0.7:  # below, a tail of 1e-280 still shows
        np.testing.assert_allclose(tailed.weights().log_own, plain.weights().log_own, rtol=1e-10)
        draws = tailed.draw(np.random.default_rng(0), (20000,))
        assert kstest(np.exp(draws), gamma_distribution(shape, scale=1 / 3).cdf).pvalue > 1e-3


def distribution(order, omega):
    """The distribution function of t = ln λ at rate = tail = ω/2, by the trapezoidal rule on 200,000 points."""
    mode = np.arcsinh(order / omega)
    width = 40 * min(np.hypot(order, omega) ** -0.5, 1.0) + 2 * max(-np.log(omega), 0.0)
    t = np.linspace(mode - width, mode + width, 200_001)
    with np.errstate(over="ignore"):
        density = order * t - omega * np.cosh(t)
    density = np.exp(density - density.max())
    rise = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda x: np.interp(x, t, rise / rise[-1])


@pytest.mark.parametrize("omega", [1e-12, 1e-3, 0.3, 2.0, 40.0, 1e4])
@pytest.mark.parametrize("order", [-30.0, -1.0, -0.1, 0.0, 0.01, 0.6, 1.5, 8.0, 500.0])
def test_draws_follow_the_law(order, omega):
    rng = np.random.default_rng([int(abs(order) * 100), int(-np.log10(omega) * 10 + 100)])
    draws = GIG(order, omega / 2, omega / 2).draw(rng, (20000,))
    assert kstest(draws, distribution(order, omega)).pvalue > 1e-4


def test_draws_follow_scipys_law():
    draws = GIG(-0.8, 2.0, 0.5).draw(np.random.default_rng(3), (20000,))
    assert kstest(np.exp(draws), geninvgauss(-0.8, 2.0, scale=2.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("order", [-3.0, -1e-3, 0.0, 1e-3, 3.0, 1e6])
def test_draws_and_moments_at_the_edge_of_doubles(order):
    for log10 in (-300, -150, 150):
        law = GIG(np.full(3, order), 10.0**log10, 1.0)
        draws = law.draw(np.random.default_rng(0), (4000, 3))
        assert np.isfinite(draws).all() and np.isfinite(np.array(law.moments)).all()
        mean = law.moments.mean_log[0]
        assert abs(draws.mean() - mean) < 5 * draws.std() / np.sqrt(draws.size) + 1e-14 * abs(mean)


def test_divergence_by_monte_carlo():
    prior, q = GIG(-0.5, 0.2, 1.0), GIG(np.array([[0.3, 2.0]]), 0.4, np.array([[1.5, 4.0]]))
    draws = q.draw(np.random.default_rng(0), (200_000, 1, 2))
    ratio = (q.log_density(draws) - prior.log_density(draws)).sum(axis=(1, 2))
    assert abs(q.divergence(prior) - ratio.mean()) < 5 * ratio.std() / np.sqrt(len(ratio))


def test_density_is_scipys():
    x = np.array([0.01, 0.5, 3.0])
    theirs = geninvgauss(-0.8, 2.0, scale=2.0).logpdf(x)
    np.testing.assert_allclose(GIG(-0.8, 2.0, 0.5).log_density(np.log(x)), theirs, rtol=1e-10)


def test_a_common_factor_is_the_best():
    rng = np.random.default_rng(0)
    q, prior = GIG(rng.normal(size=(2, 3)), 0.3, rng.gamma(1, size=(2, 3)) + 0.1), GIG(0.4, 0.05, 3.0)
    best = q.rescaled(prior)
    x = prior.at_best_scale(rng.normal(size=6))
    for factor in (0.9, 1.1):
        moved = GIG(best.shape, best.tail * factor, best.rate / factor)
        assert best.divergence(prior) < moved.divergence(prior)
        assert prior.log_density(x).sum() > prior.log_density(x + np.log(factor)).sum()


@pytest.mark.parametrize("power", [-1e6, -2.5, -1e-9, 0.0, 1e-9, 2.5, 1e6])
@pytest.mark.parametrize("tail", [1e-12, 1.0, 1e6])
def test_mode_is_the_root_of_the_derivative(power, tail):
    x = np.exp(log_mode(power, tail, 3.0))
    assert x > 0
    assert abs(power + tail / x - 3.0 * x) < 1e-12 * (abs(power) + tail / x)


# EM


@pytest.mark.parametrize("accelerate", [True, False])
@priors
def test_em_never_falls(wine, prior, accelerate):
    X, y = wine
    rows = class_rows("numba", ExpFeatures().fit_transform(X), y, 3)
    climb = TailedClimb(rows, prior, np.zeros((3, 27)), accelerate)
    gains = [climb.advance() for _ in range(200)]
    assert np.min(gains) > -1e-9 and np.sum(gains) > 1


@priors
def test_em_ends_at_a_mode(iris, prior):
    """A fixed point of the M-step without its scale step, where the gradient vanishes; and the trace is the density."""
    X, y = iris
    clf = fitted(EM(tol=1e-12), prior, X, y)
    x = prior.at_best_scale(np.log(clf.weights_))
    rows = class_rows("numpy", clf.features_.transform(X), y, 3)
    stats = rows.expect(Weights.point(x))
    np.testing.assert_allclose(prior.given(stats.wins, stats.exposure).log_mode(), x, atol=1e-6)
    gradient = stats.wins - stats.exposure * np.exp(x) + prior.shape - 1 - prior.rate * np.exp(x)
    assert np.abs(gradient + prior.tail * np.exp(-x)).max() < 1e-6
    likelihood = np.log(clf.predict_proba(X)[np.arange(len(y)), y]).sum()
    assert clf.trace_[-1] == pytest.approx(likelihood + prior.log_density(x).sum(), abs=1e-7)


def test_em_finds_what_a_general_optimiser_finds(iris):
    X, y = iris
    prior = GIG(1.5, 0.2, 1.0)
    clf = fitted(EM(tol=1e-12), prior, X, y)
    rows = class_rows("numpy", clf.features_.transform(X), y, 3)

    def loss(x):
        stats = rows.expect(Weights.point(x.reshape(3, 9)))
        up = prior.shape - 1 - prior.rate * np.exp(x) + prior.tail * np.exp(-x)
        gradient = (stats.wins - stats.exposure * np.exp(x.reshape(3, 9))).ravel() + up
        return -stats.value - prior.log_density(x).sum(), -gradient

    best = minimize(loss, np.zeros(27), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    assert clf.trace_[-1] == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(np.log(clf.weights_), normalised(best.x.reshape(3, 9)), atol=1e-3)


def test_em_without_a_tail_is_that_of_the_gamma(iris):
    gamma = PlackettLuceClassifier("em", shape=2.0, rate=3.0, features="exp").fit(*iris)
    np.testing.assert_allclose(fitted("em", GIG(2.0, 1e-13, 3.0), *iris).weights_, gamma.weights_, atol=1e-6)


# variational


@pytest.mark.parametrize("accelerate", [True, False])
@priors
def test_bound_never_falls(wine, prior, accelerate):
    trace = fitted(Variational(accelerate=accelerate), prior, *wine).trace_
    assert len(trace) > 3 and np.diff(trace).min() > -1e-9


def independent_bound(W, codes, q, prior):
    """⟨ln p(Y,C,Z,λ)⟩ + entropy of q, term by term, with q(C) and q(Z) written out and SciPy's Bessel functions."""

    def bessel(order, omega):
        return np.log(kve(order, omega)) - omega

    def log_integral(shape, tail, rate):
        return np.log(2) + shape / 2 * np.log(tail / rate) + bessel(shape, 2 * np.sqrt(tail * rate))

    omega, scale, h = 2 * np.sqrt(q.tail * q.rate), np.log(q.tail / q.rate) / 2, 1e-5
    mean_log = scale + (bessel(q.shape + h, omega) - bessel(q.shape - h, omega)) / (2 * h)
    mean = np.exp(scale + bessel(q.shape + 1, omega) - bessel(q.shape, omega))
    inverse = np.exp(-scale + bessel(q.shape - 1, omega) - bessel(q.shape, omega))
    bound = 0.0
    for w, k in zip(W, codes, strict=True):
        score = np.log(w) + mean_log[k]
        rho = np.exp(score - score.max())
        rho /= rho.sum()
        rate = (w * mean).sum()
        bound += (rho * score).sum() - 1 - (rho * np.log(rho)).sum() + (1 - np.log(rate))
    p = (prior.shape - 1) * mean_log - prior.rate * mean - prior.tail * inverse
    p = p - log_integral(prior.shape, prior.tail, prior.rate)
    entropy = log_integral(q.shape, q.tail, q.rate)
    entropy = entropy - (q.shape - 1) * mean_log + q.rate * mean + q.tail * inverse
    return bound + (p + entropy).sum()


@priors
def test_bound_equals_an_independent_evaluation(iris, prior):
    X, y = iris
    clf = fitted(Variational(tol=1e-9), prior, X, y)
    bound = independent_bound(clf.features_.transform(X), y, clf.posterior_, prior)
    assert clf.trace_[-1] == pytest.approx(bound, abs=1e-6)


@priors
def test_fixed_point_of_the_bound(iris, prior):
    """q is the law given expected wins and exposure, with the prior's own tail."""
    X, y = iris
    clf = fitted(Variational(tol=1e-11), prior, X, y)
    q = clf.posterior_
    rows = class_rows("numpy", clf.features_.transform(X), y, 3)
    stats = rows.expect(GIG(q.shape, q.tail, q.rate).weights())
    np.testing.assert_allclose(q.shape, prior.shape + stats.wins, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(q.rate, prior.rate + stats.exposure, rtol=1e-5)
    assert q.tail == pytest.approx(prior.tail, rel=1e-6)


def test_bound_is_below_the_evidence():
    W, codes, _ = small_problem(12, 1, 2, seed=3)
    prior = GIG(0.5, 0.2, 1.0)
    weights = np.exp(prior.draw(np.random.default_rng(0), (200_000, 2, 3)))
    scores = np.einsum("ij,skj->sik", W, weights)
    evidence = np.log(np.mean(np.prod(scores[:, np.arange(12), codes] / scores.sum(axis=2), axis=1)))
    clf = fitted("variational", prior, W, codes, features=FunctionTransformer())
    assert evidence - 5 < clf.trace_[-1] < evidence


@pytest.mark.parametrize("shape", [0.3, 2.0])
def test_variational_without_a_tail_is_that_of_the_gamma(iris, shape):
    X, y = iris
    gamma = PlackettLuceClassifier("variational", shape=shape, rate=2.0, features="exp", random_state=0).fit(X, y)
    tailed = fitted("variational", GIG(shape, 1e-30, 2.0), X, y)
    assert tailed.trace_[-1] == pytest.approx(gamma.trace_[-1], abs=1e-5)
    np.testing.assert_allclose(tailed.posterior_.shape, gamma.posterior_.shape, atol=1e-3)
    np.testing.assert_allclose(tailed.predict_proba(X), gamma.predict_proba(X), atol=0.02)


def test_interval_and_draws_follow_q(iris):
    X, y = iris
    clf = fitted(Variational(draws=4000), GIG(0.2, 0.05, 1.0), X, y)
    q, rng = clf.posterior_, np.random.default_rng(9)
    scale, omega = np.sqrt(q.tail / q.rate), 2 * np.sqrt(q.tail * q.rate)
    size = (4000, 3, 9)
    fresh = geninvgauss.rvs(q.shape.ravel(), omega.ravel(), scale=scale.ravel(), size=(4000, 27), random_state=rng)
    scores = np.einsum("ij,skj->sik", clf.features_.transform(X[:5]), fresh.reshape(size))
    p = scores / scores.sum(axis=2, keepdims=True)
    error = p.std(axis=0) / np.sqrt(4000)
    assert (np.abs(clf.predict_proba(X[:5]) - p.mean(axis=0)) / error).max() < 6


@pytest.mark.parametrize("inference", ["em", "variational"])
@priors
def test_engines_agree(iris, inference, prior):
    X, y = iris
    one, other = (fitted(inference, prior, X, y, engine=engine) for engine in ("numpy", "numba"))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-5)


# Gibbs

N, K, PRIOR = 8, 3, GIG(-0.4, 0.1, 2.0)
FEATURES = ExpFeatures().fit_transform(np.random.default_rng(5).normal(size=(N, 1)))
P = FEATURES.shape[1]


def target(prior):
    return Target(prior.rate, False, *tabulate(LogUniform()), prior.tail)


def functions(log_weights, codes):
    """What Geweke's test looks at, for all draws at once: ln Λ, λ̄, ln λ̄ and how they go with the data."""
    log_mass = logsumexp(log_weights, axis=(1, 2))
    x = log_weights - log_mass[:, None, None]
    scores = np.einsum("ij,skj->sik", FEATURES, np.exp(x))
    own = np.take_along_axis(scores, codes[:, :, None], axis=2)[:, :, 0] / scores.sum(axis=2)
    counts = (codes[:, :, None] == np.arange(K)).sum(axis=1)
    columns = [log_mass, log_mass**2, log_mass * own.mean(axis=1), own.mean(axis=1), *np.exp(x).reshape(len(x), -1).T]
    return np.column_stack([*columns, *x.reshape(len(x), -1).T, *(x**2).reshape(len(x), -1).T, *(counts**2.0).T])


def geweke(transition, seed, n=15000):
    """Largest |z| between draws from prior and model and a chain that alternates data and transition."""
    rng = np.random.default_rng(seed)
    weights = PRIOR.draw(rng, (n, K, P))
    codes = np.array([race(FEATURES, each, rng=rng).winner for each in weights])
    direct = functions(weights, codes)
    state = State(normalised(weights[0]), np.array([logsumexp(weights[0]), PRIOR.shape, 0.0, 0.0]))
    for t in range(n):
        codes[t] = race(FEATURES, state.log_weights, rng=rng).winner
        transition(codes[t], state, rng)
        weights[t] = state.log_weights + state.numbers[LOG_MASS]
    chain = functions(weights, codes)
    error = np.hypot(direct.std(axis=0) / np.sqrt(n), array_stats.mcse(chain[None], method="mean", **KIND))
    return np.abs((direct.mean(axis=0) - chain.mean(axis=0)) / error).max()


def one_sweep(codes, state, rng):
    rows = class_rows("numba", FEATURES, codes, K)
    room = np.empty((1, K, P)), np.empty(1), np.empty(1)
    sweeps(rows.panels, state, rng, target(PRIOR), make_room(rows.panels, K), False, *room)


def wrong_scale(codes, state, rng):
    """A test double: exposure in units of another Λ."""
    rows = class_rows("numpy", FEATURES, codes, K)
    stats = rows.sample(Weights.point(state.log_weights), int(rng.integers(1 << 62)))
    update(rng, state, stats.wins, 1.5 * stats.exposure, target(PRIOR), False)


def test_geweke_joint_distribution():
    assert geweke(one_sweep, seed=0) < 4.5


def test_geweke_notices_a_wrong_sampler():
    assert geweke(wrong_scale, seed=0, n=5000) > 6


def test_compiled_sweeps_equal_the_readable_ones(iris):
    X, y = iris
    W = ExpFeatures().fit_transform(X)
    fast_rows, rows = (
        class_rows("numba", W, y, 3),
        class_rows("numpy", W, y, 3),
    )
    outcomes = []
    for fast in (True, False):
        state = State(np.full((3, 9), -np.log(27.0)), np.array([0.0, PRIOR.shape, 0.0, 0.0]))
        out, rng = (np.empty((100, 3, 9)), np.empty(100), np.empty(100)), np.random.default_rng(7)
        if fast:
            sweeps(fast_rows.panels, state, rng, target(PRIOR), make_room(fast_rows.panels, 3), True, *out)
        else:
            sweeps_of_any_engine(rows, state, rng, target(PRIOR), True, dict(zip(NAMES, out, strict=True)))
        outcomes.append(out)
    for quick, readable in zip(*outcomes, strict=True):
        np.testing.assert_allclose(quick, readable, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [GIG(1.0, 0.3, 1.0), GIG(-0.5, 0.1, 1.0)], ids=["one", "negative"])
def test_means_agree_with_nuts(quiet, iris, prior):
    X, y = iris
    nuts = nuts_log_weights(ExpFeatures().fit_transform(X), y, 3, prior.shape, prior.rate, prior.tail)
    draws = fitted(Gibbs(draws=8000), prior, X, y).posterior_.log_weights
    assert worst_difference(draws, nuts) < 4
    assert worst_difference(np.exp(draws), np.exp(nuts)) < 4
    assert worst_difference(draws**2, nuts**2) < 4


@pytest.mark.slow
def test_gibbs_without_a_tail_is_that_of_the_gamma(quiet, iris):
    X, y = iris
    gamma = PlackettLuceClassifier(Gibbs(draws=8000, moves="none"), shape=1.0, features="exp", random_state=1).fit(X, y)
    tailed = fitted(Gibbs(draws=8000), GIG(1.0, 1e-30, 1.0), X, y)
    assert worst_difference(tailed.posterior_.log_weights, gamma.posterior_.log_weights) < 4


# the face


@pytest.mark.parametrize(
    "inference", ["em", "variational", Gibbs(draws=30, tune=30)], ids=["em", "variational", "gibbs"]
)
def test_model_file(iris, quiet, tmp_path, inference):
    X, y = iris
    clf = clone(fitted(inference, GIG(np.float64(-0.5), 0.1), X, y)).fit(X, y)
    clf.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    assert same.prior == GIG(-0.5, 0.1, 1.0) and same.shape_ == -0.5
    assert type(same.posterior_) is type(clf.posterior_)
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    assert repr(same) == repr(clf) and "prior GIG(shape=" in repr(clf) and "learned" not in repr(clf)
    assert "prior GIG(shape=" in model_in_words(clf)


def test_checkpoint_is_of_one_prior(iris, quiet, tmp_path):
    sampler = Gibbs(draws=20, tune=10, checkpoint=tmp_path / "run.chk")
    half = fitted(Gibbs(draws=10, tune=10, checkpoint=tmp_path / "run.chk"), PRIOR, *iris)
    whole = fitted(sampler, PRIOR, *iris)
    np.testing.assert_array_equal(whole.posterior_.log_weights[:, :10], half.posterior_.log_weights)
    with pytest.raises(CheckpointError, match="another fit"):
        fitted(sampler, GIG(PRIOR.shape, PRIOR.tail, 3.0), *iris)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ((1.0, 0.0), "tail.*positive number, got 0.0.*prior='gamma'"),
        ((1.0, 0.1, -1.0), "rate.*positive"),
        ((np.nan, 0.1), "shape.*finite number, got nan"),
        (("learn", 0.1), "shape.*finite number, got 'learn'"),
        ((True, 0.1), "shape.*finite number"),
    ],
)
def test_parameters_are_checked(parameters, words):
    with pytest.raises(ValueError, match=words):
        GIG(*parameters)


def test_a_prior_is_one_for_all_weights(iris):
    with pytest.raises(ValueError, match=r"GIG\(shape\) must be a number, got an array"):
        fitted("em", GIG(np.ones((3, 9)), 0.1), *iris)


def test_a_path_of_shapes_is_for_the_gamma(iris):
    with pytest.raises(ValueError, match="shape=2.0.* would be ignored: it belongs to prior='gamma'"):
        regularization_path(*iris, shapes=[1.0, 2.0], prior=PRIOR)


def test_no_word_of_a_fit_that_went_well(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for inference in ("em", "variational"):
            for prior in PRIORS:
                fitted(inference, prior, *iris)
