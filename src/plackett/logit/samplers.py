"""Both samplers of the sparse logit, and how they advance a chain (Appendix A, corrected).

"holmes-held": logistic latents with Kolmogorov–Smirnov mixing. "polya-gamma": Pólya-gamma weights from the package
polyagamma. Both have the same posterior; each turns one class against the rest into a normal regression. HH06 is Holmes
& Held (2006) with the corrections of van der Lans (2011) and Holmes & Held (2011); PSW is Polson, Scott & Windle
(2013), JASA 108, 1339–1349.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.compute.pieces import cores
from plackett.inference.driver import Chain
from plackett.inference.store import Portion
from plackett.logit.conditionals import (
    LogitModel,
    LogitState,
    log_likelihood,
    offset,
    rescale,
    update_coefficients,
    update_scales,
)
from plackett.logit.draws import draw_logistic_above, draw_mixing
from plackett.model.race import Array

# In polyagamma 2.0.2 the method "devroye" is right up to a tilt of 175 and wrong from 180 on (60 times too large at
# 200), without any sign; "alternate" is right there, and slower.
DEVROYE_LIMIT = 100.0


@jit
def n_turns(model):
    """Number of class updates per sweep; with two classes the baseline's would repeat the other's."""
    return model.n_classes if model.shift and model.n_classes > 2 else model.n_classes - 1


@jit
def end_sweep(model, state, rng, t, beta, theta, value):
    """Draw the scales, and store draw t.

    Appendix A draws the τ of a class right after its β; here they are drawn after all classes, which do not depend on
    them.
    """
    if model.rescale:
        rescale(model, state, rng)
    update_scales(model, state, rng)
    for k in range(state.beta.shape[0]):
        for j in range(state.beta.shape[1]):
            beta[t, k, j] = state.beta[k, j]
    theta[t], value[t] = state.theta[0], log_likelihood(state.eta, model.y, 1.0)


@jit
def draw_latents(eta, offsets, y, k, rng, weight, response):
    """Draw {z, λ} given β for class k against the rest (HH06, section 4, corrected).

    z_i is logistic around x_i·β_k − C_ik and positive exactly if y_i = k; then λ_i given z_i. The result is a normal
    regression with responses z_i + C_ik (adding the offset again) and weights 1/λ_i.
    """
    for i in range(y.size):
        sign = 1.0 if y[i] == k else -1.0
        residual = draw_logistic_above(sign * (eta[i] - offsets[i]), rng)
        weight[i] = 1.0 / draw_mixing(abs(residual), rng)
        response[i] = eta[i] + sign * residual


@jit
def sweeps_holmes_held(model, state, rng, beta, theta, value):
    """Run sweeps of Appendix A to fill the draws: {z, λ} | β, then β | z, λ, class by class; then τ and θ."""
    n = model.y.size
    offsets, weight, response = np.empty(n), np.empty(n), np.empty(n)
    for t in range(theta.size):
        for k in range(n_turns(model)):
            offset(state.eta, k, offsets)
            draw_latents(state.eta[k], offsets, model.y, k, rng, weight, response)
            update_coefficients(model, state, k, weight, response, rng)
        end_sweep(model, state, rng, t, beta, theta, value)


@jit
def tilts(eta, k, offsets, tilt):
    """Compute x_i·β_k − C_ik, the tilts of the Pólya-gamma weights of class k; return the largest size."""
    offset(eta, k, offsets)
    largest = 0.0
    for i in range(tilt.size):
        tilt[i] = eta[k, i] - offsets[i]
        largest = max(largest, abs(tilt[i]))
    return largest


@jit
def between_weights(model, state, k, offsets, omega, tilt, rng, t, beta, theta, value):
    """Do all updates between two draws of weights; return the largest new tilt.

    β_k given ω: a normal regression with responses C_ik + (1{y_i = k} − 1/2)/ω_i and weights ω_i (PSW, section 4.3).
    """
    response = np.empty(omega.size)
    for i in range(omega.size):
        response[i] = offsets[i] + (0.5 if model.y[i] == k else -0.5) / omega[i]
    update_coefficients(model, state, k, omega, response, rng)
    following = k + 1
    if following == n_turns(model):
        end_sweep(model, state, rng, t, beta, theta, value)
        following = 0
    return tilts(state.eta, following, offsets, tilt)


def polya_gamma_generator() -> Any:
    """Return the generator of the package polyagamma, or raise an error that says how to install it."""
    try:
        from polyagamma import random_polyagamma
    except ImportError as error:
        raise ImportError(
            "sampler='polya-gamma' needs the package polyagamma: pip install 'plackett[logit]'. "
            "sampler='holmes-held' needs nothing more."
        ) from error
    return random_polyagamma


def draw_weights(tilt: Array, largest: float, rng: np.random.Generator, omega: Array) -> None:
    """Draw ω_i ~ PG(1, tilt_i) into `omega`; tilts beyond DEVROYE_LIMIT use another method."""
    generate = polya_gamma_generator()
    generate(1.0, tilt, out=omega, method="devroye", disable_checks=True, random_state=rng)
    if largest > DEVROYE_LIMIT:
        far = np.abs(tilt) > DEVROYE_LIMIT
        omega[far] = generate(1.0, tilt[far], method="alternate", disable_checks=True, random_state=rng)


def sweeps_polya_gamma(
    model: LogitModel, state: LogitState, rng: np.random.Generator, beta: Array, theta: Array, value: Array
) -> None:
    """Run sweeps with Pólya-gamma weights to fill the draws: ω | β, then β | ω, by class; then τ, θ (PSW)."""
    offsets, tilt, omega = np.empty((3, model.y.size))
    largest, turns = tilts(state.eta, 0, offsets, tilt), n_turns(model)
    for t in range(theta.size):
        for k in range(turns):
            draw_weights(tilt, largest, rng, omega)
            largest = between_weights(model, state, k, offsets, omega, tilt, rng, t, beta, theta, value)


SWEEPS = {"holmes-held": sweeps_holmes_held, "polya-gamma": sweeps_polya_gamma}


def prepare(
    Z: Array,
    codes: npt.NDArray[np.integer],
    n_classes: int,
    penalty: float | None = None,
    penalty_prior: tuple[float, float] = (2.0, 0.1),
    intercept_scale: float = 10.0,
    penalize_intercept: bool = False,
    extra_moves: bool = True,
) -> LogitModel:
    """Return rows and prior as input of the kernels; penalty None samples θ."""
    X = np.column_stack([np.ones(len(Z)), Z])
    return LogitModel(
        X=np.ascontiguousarray(X),
        Xt=np.ascontiguousarray(X.T),
        y=np.array(codes, dtype=np.int64),
        n_classes=n_classes,
        n_unpenalised=0 if penalize_intercept else 1,
        intercept_variance=float(intercept_scale) ** 2,
        shape=float(penalty_prior[0]),
        rate=float(penalty_prior[1]),
        penalty=0.0 if penalty is None else float(penalty),
        collapse=extra_moves,
        shift=extra_moves,
        rescale=extra_moves,
    )


def start(model: LogitModel, rng: np.random.Generator) -> LogitState:
    """Draw a dispersed start: linear predictors of size about 2, θ around its prior mean, τ at its mean given θ."""
    free, p = model.n_classes - 1, model.X.shape[1]
    theta = model.penalty or model.shape / model.rate * np.exp(rng.standard_normal())
    tau = np.full((free, p), 2.0 / theta)
    tau[:, : model.n_unpenalised] = model.intercept_variance
    beta = 2.0 / np.sqrt(p) * rng.standard_normal((free, p))
    return LogitState(beta, tau, np.array([theta]), np.vstack([beta @ model.Xt, np.zeros(model.y.size)]))


class LogitSampler:
    """Advance chains, whose states are a `LogitState`; many short calls give the same chain as a long one."""

    def __init__(self, sampler: str, model: LogitModel):
        self.sweeps, self.model, self.workers = SWEEPS[sampler], model, cores()

    def advance(self, chain: Chain, tuning: bool, beta: Array, theta: Array, value: Array) -> None:
        """Fill `beta` (n, K−1, p), `theta` (n,), and `value` with log-likelihoods."""
        self.sweeps(self.model, chain.state, chain.rng, beta, theta, value)

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Do nothing: the sweeps have nothing to tune."""
