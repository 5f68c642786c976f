"""The sweeps of the sparse logit: Geweke's joint test, which also notices wrong versions, and the chain's mechanics."""

import numpy as np
import pytest

from plackett.logit.conditionals import LogitState, offset, update_coefficients
from plackett.logit.samplers import SWEEPS, draw_latents, prepare, start
from plackett.model.measures import plain_ess

SAMPLERS = sorted(SWEEPS)


def room(model, n):
    """For draws of β, θ and the log-likelihood."""
    return np.empty((n, model.n_classes - 1, model.X.shape[1])), np.empty(n), np.empty(n)


def sweep(sampler, model, state, rng):
    SWEEPS[sampler](model, state, rng, *room(model, 1))


def small_model(**options):
    rng = np.random.default_rng(12)
    return prepare(rng.standard_normal((30, 3)), np.arange(30) % 3, 3, **options)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("extra_moves", [False, True])
def test_many_short_calls_equal_one_long_call(sampler, extra_moves):
    model = small_model(extra_moves=extra_moves)
    whole, parts = room(model, 12), room(model, 12)
    rng = np.random.default_rng(13)
    SWEEPS[sampler](model, start(model, rng), rng, *whole)
    rng = np.random.default_rng(13)
    state = start(model, rng)
    for first, last in [(0, 1), (1, 5), (5, 12)]:
        SWEEPS[sampler](model, state, rng, *(array[first:last] for array in parts))
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(state.eta[:-1], state.beta @ model.Xt, atol=1e-10)
    assert not state.eta[-1].any()


def test_a_chain_that_is_lost_stops_instead_of_looping():
    model = small_model()
    state = start(model, np.random.default_rng(0))
    state.eta[0, 0] = np.nan
    with pytest.raises(ValueError, match="singular"):
        sweep("holmes-held", model, state, np.random.default_rng(0))


def geweke_model(n_classes, n_columns=2, **options):
    Z = np.random.default_rng(20).standard_normal((6, n_columns))
    prior = {"penalty_prior": (6.0, 2.0), "intercept_scale": 1.0, "extra_moves": False}
    return prepare(Z, np.zeros(6, dtype=int), n_classes, **(prior | options))


def draw_prior(model, rng, size):
    shape = (size, model.n_classes - 1, model.X.shape[1])
    theta = np.full(size, model.penalty) if model.penalty else rng.gamma(model.shape, 1 / model.rate, size)
    tau = rng.exponential(size=shape) * 2 / theta[:, None, None]
    tau[:, :, : model.n_unpenalised] = model.intercept_variance
    return np.sqrt(tau) * rng.standard_normal(shape), tau, theta


def draw_labels(eta, rng):
    return np.argmax(eta + rng.gumbel(size=eta.shape), axis=-2)


def functions(model, beta, tau, theta, y):
    """What the test looks at, for all draws at once: β, τ, θ, and how β goes with the labels."""
    size = len(beta)
    flat, scale = beta.reshape(size, -1), np.sqrt(tau[:, :, model.n_unpenalised :]).reshape(size, -1)
    cross = [(y == k) @ model.X / len(model.y) * beta[:, k] for k in range(model.n_classes - 1)]
    columns = [flat, flat**2, np.abs(flat), scale, np.log(scale), *cross]
    return np.column_stack(columns + ([] if model.penalty else [theta, np.log(theta)]))


def geweke(model, transition, size=6_000, seed=21):
    """Largest |z| between draws from prior and model and a chain that alternates labels and transition."""
    rng = np.random.default_rng(seed)
    beta, tau, theta = draw_prior(model, rng, size)
    eta = np.concatenate([beta @ model.Xt, np.zeros((size, 1, model.y.size))], axis=1)
    labels = draw_labels(eta, rng)
    direct = functions(model, beta, tau, theta, labels)
    state = start(model, rng)
    for t in range(size):
        model.y[:] = draw_labels(state.eta, rng)
        transition(model, state, rng)
        beta[t], tau[t], theta[t], labels[t] = state.beta, state.tau, state.theta[0], model.y
    chain = functions(model, beta, tau, theta, labels)
    error = np.sqrt(chain.var(axis=0) / plain_ess(chain.T[:, None]) + direct.var(axis=0) / size)
    return np.abs((chain.mean(axis=0) - direct.mean(axis=0)) / error).max()


CASES = {
    "paper, K=2": ({"n_classes": 2}, {}),
    "paper, K=3": ({"n_classes": 3}, {}),
    "p > n": ({"n_classes": 3, "n_columns": 8}, {}),
    "penalised intercept, fixed penalty": ({"n_classes": 3, "penalize_intercept": True, "penalty": 2.0}, {}),
    "collapse": ({"n_classes": 3}, {"collapse": True}),
    "shift": ({"n_classes": 3}, {"shift": True}),
    "rescale": ({"n_classes": 3}, {"rescale": True}),
    "rescale, fixed penalty": ({"n_classes": 2, "penalty": 2.0}, {"rescale": True}),
    "all moves, p > n": ({"n_classes": 4, "n_columns": 8, "extra_moves": True}, {}),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("case", CASES)
def test_geweke_joint_distribution(sampler, case):
    options, flags = CASES[case]
    model = geweke_model(**options)._replace(**flags)
    assert geweke(model, lambda *given: sweep(sampler, *given)) < 4.5


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_geweke_notices_the_printed_shape_of_the_penalty(sampler):
    """Equation (20) as printed, Kp + c, is the corrected one with p more in c."""

    def wrong(model, state, rng):
        sweep(sampler, model._replace(shape=model.shape + model.X.shape[1] - 1), state, rng)

    assert geweke(geweke_model(3), wrong) > 8


def test_geweke_notices_the_printed_law_of_the_variances():
    """Appendix A as printed: 1/τ ~ iGauss(θ/|β|, θ²)."""

    def wrong(model, state, rng):
        sweep("holmes-held", model, state, rng)
        theta = state.theta[0]
        state.tau[:, 1:] = 1.0 / rng.wald(theta / np.abs(state.beta[:, 1:]), theta**2)

    assert geweke(geweke_model(2), wrong) > 8


@pytest.mark.parametrize("with_offset", [True, False])
def test_a_sweep_from_the_prior_notices_a_forgotten_offset(with_offset):
    """For K > 2 the offset must go back into the responses; left out, a chain explodes, so one sweep must do."""
    model, rng, size = geweke_model(3, penalty=2.0), np.random.default_rng(22), 4_000
    offsets, weight, response = np.empty((3, 6))
    beta, tau, theta = draw_prior(model, rng, size)
    before = beta.copy()
    for t in range(size):
        state = LogitState(beta[t], tau[t], theta[t : t + 1], np.vstack([beta[t] @ model.Xt, np.zeros(6)]))
        model.y[:] = draw_labels(state.eta, rng)
        for k in range(2):
            offset(state.eta, k, offsets)
            draw_latents(state.eta[k], offsets, model.y, k, rng, weight, response)
            if not with_offset:
                response[:] -= offsets
            update_coefficients(model, state, k, weight, response, rng)
    moved = beta - before
    worst = np.abs(moved.mean(axis=0) / np.sqrt(moved.var(axis=0) / size)).max()
    assert worst < 4.5 if with_offset else worst > 8
