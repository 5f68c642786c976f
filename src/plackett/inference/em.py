"""Maximum a posteriori by EM (section 3.2): (9) and (10), for the Gamma prior on the simplex of normalised weights.

The likelihood does not depend on the scale Λ, and a priori λ̄ ~ Dirichlet(a) independently of Λ. EM therefore maximises
ln p(Y|λ̄) + (a−1) Σ_active ln λ̄, which is bounded between two prunings for every a > 0. Its M-step is (10) with the
rate b replaced by the multiplier of Σ λ̄ = 1; for a > 1 both have the same fixed point, at Λ = Kp(a−1)/b. Under a prior
with a tail, which identifies the scale and leaves no weight at zero, EM maximises ln p(Y|λ) + ln p(λ). It does the same
if the likelihood identifies the scale, as race ties do, with (10) unchanged.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from plackett.capabilities import Ignored
from plackett.engines.base import Likelihood, Rows
from plackett.inference.ascent import Ascent
from plackett.inference.base import Fit, Problem, check_count, check_tolerance
from plackett.inference.parameters import maximise_parameters
from plackett.inference.worth_mode import CLOSE, NEWTON, Density, WorthPrior
from plackett.model.mixture import normalised
from plackett.model.race import Array, Weights
from plackett.model.weights import GIG
from plackett.posterior.weights import Point

Mask = npt.NDArray[np.bool_]
PRECISION = 1e-8  # of a parameter of the response: rounding blurs a maximum by its square root
GAIN = 1e-14  # relative gain of the objective that ends the search over parameters, which may diverge
PASSES = 10  # a step of Newton's method may take as long as so many passes
BEGIN, FLOPS = 10_000, 50  # numbers that a pass reads in the time it takes to begin; operations on a matrix, in one
SHAPES = (3.0, 2.0, 1.5, 1.2, 1.1, 1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)


def maximise_on_simplex(claims: Array, exposure: Array) -> Array:
    """M-step (10): λ̄_kj = c_kj / (s_kj + μ) with the μ for which Σ λ̄ = 1; claims c = n + a − 1, zero if pruned.

    With ν = μ + min s, Σ c/(s − min s + ν) falls and is convex in ν, and is at least 1 at ν = max (c − s + min s):
    Newton's method from there climbs to the root without overshooting.
    """
    used = claims > 0
    weights = np.zeros_like(claims)
    if not used.any():
        return weights
    c, s = claims[used], exposure[used]
    s = s - s.min()
    nu = np.max(c - s)
    for _ in range(100):
        share = c / (s + nu)
        step = nu * (share.sum() - 1) / (share * (nu / (s + nu))).sum()  # in units of ν, which may be 1e-309
        nu += step
        if step <= 1e-15 * nu:
            break
    weights[used] = c / (s + nu)
    return weights / weights.sum()


def normalise(x: Array) -> Array:
    """Shift logarithms so that their exponentials sum to 1."""
    shifted: Array = x - np.logaddexp.reduce(x)
    return shifted


def as_it_is(x: Array) -> Array:
    """Return x unchanged: any logarithms are valid."""
    return x


def moved(ascent: Ascent) -> float:
    """Return the largest change of a λ̄, or of ln Λ, in the next step."""
    mass, mass_next = np.logaddexp.reduce(ascent.point), np.logaddexp.reduce(ascent.image)
    of_weights = np.abs(np.exp(ascent.image - mass_next) - np.exp(ascent.point - mass)).max()
    return float(max(of_weights, abs(mass_next - mass)))


class Climbing(ABC):
    """EM at one shape, from given weights."""

    ascent: Ascent
    passes: int

    @abstractmethod
    def movement(self) -> float:
        """Return the largest change in the next step, which the tolerance bounds."""

    @abstractmethod
    def advance(self) -> float:
        """Do one iteration and return its gain."""

    rows: Rows
    past: tuple[float, ...] = ()  # objective at earlier parameters of the response

    @abstractmethod
    def begin_again(self) -> None:
        """Restart from the best point, after the rows have changed."""

    def move_parameters(self) -> float:
        """Maximise over the parameters of the response given the weights; return their largest change."""
        before = self.rows.values_of_parameters
        after = maximise_parameters(self.rows, Weights.point(self.log_weights))
        self.past += tuple(self.ascent.trace)
        self.rows = self.rows.at(after)
        self.begin_again()
        return float(np.abs(after - before).max())

    @property
    def trace(self) -> Array:
        """Objective of each iteration."""
        return np.array([*self.past, *self.ascent.trace])

    @property
    @abstractmethod
    def log_weights(self) -> Array:
        """ln λ̄ at the best point; ln λ if the scale is identified."""

    def parts(self) -> tuple[Array, Array | None]:
        """Return λ̄, and ln Λ if the scale is identified."""
        if not self.rows.absolute:
            return np.exp(self.log_weights), None
        log_mass = np.logaddexp.reduce(self.log_weights, axis=None)
        return np.exp(self.log_weights - log_mass), np.array(log_mass)

    def run(self, tol: float, max_iter: int) -> bool:
        """Iterate until a step changes nothing by more than tol; return True if that happened."""
        for _ in range(max_iter):
            if self.movement() <= tol:
                return True
            self.advance()
        return False


class Climb(Climbing):
    """EM at one shape a of the Gamma prior.

    `active` marks the weights that are not zero. `kept` marks those among them that a class or a row needs: they are
    unpenalised and never pruned. If the likelihood identifies the scale, λ takes the place of λ̄.
    """

    def __init__(self, rows: Rows, shape: float, log_weights: Array, accelerate: bool, rate: float = 1.0):
        self.rows, self.shape, self.rate = rows, shape, rate
        self.within = as_it_is if rows.absolute else normalise
        self.accelerate = accelerate
        self.kept: Mask = np.zeros(log_weights.shape, dtype=bool)
        self.passes = 0
        self._restart(log_weights)

    def _restart(self, log_weights: Array) -> None:
        """Restart on a new active set; the earlier trace belongs to another objective."""
        self.active: Mask = np.isfinite(log_weights)
        start = self.within(log_weights[self.active])
        self.ascent = Ascent(self._step, start, self.within, self.accelerate)

    def begin_again(self) -> None:
        """Restart from the best point."""
        self._restart(self.log_weights)

    def _expand(self, x: Array) -> Array:
        log_weights = np.full(self.kept.shape, -np.inf)
        log_weights[self.active] = x
        return log_weights

    def _step(self, x: Array) -> tuple[float, Array]:
        """Return the objective at x and the next point, with −inf for a weight that (10) sets to zero."""
        log_weights = self._expand(x)
        stats = self.rows.expect(Weights.point(log_weights))
        self.passes += 1
        free = self.active & ~self.kept
        objective = stats.value + (self.shape - 1) * log_weights[free].sum()
        claims = np.where(self.active, stats.wins, 0.0) + np.where(free, self.shape - 1, 0.0)
        claims = np.maximum(claims, 0.0)
        if self.rows.absolute:
            objective -= self.rate * np.exp(x).sum()
            image = claims / (self.rate + stats.exposure)
        else:
            image = maximise_on_simplex(claims, stats.exposure)
        with np.errstate(divide="ignore"):
            return objective, np.log(image[self.active])

    def _prune(self) -> None:
        """Remove zeros from the active set, except for a class's last weight and weights that a row needs."""
        image, point = self._expand(self.ascent.image), self._expand(self.ascent.point)
        gone = self.active & np.isneginf(image)
        start = np.where(gone, point, image)

        def take_back(classes: npt.NDArray[np.intp]) -> None:
            strongest = np.argmax(np.where(gone[classes], start[classes], -np.inf), axis=1)
            self.kept[classes, strongest], gone[classes, strongest] = True, False

        take_back(np.flatnonzero(~np.isfinite(image).any(axis=1)))
        self._restart(np.where(gone, -np.inf, start))
        while np.isneginf(self.ascent.value):
            take_back(np.flatnonzero(gone.any(axis=1)))
            self._restart(np.where(gone, -np.inf, start))

    def advance(self) -> float:
        """Do one iteration and return its gain, or inf after pruning, since gains are then not comparable."""
        if np.isneginf(self.ascent.image).any():
            self._prune()
            return np.inf
        return self.ascent.advance()

    def movement(self) -> float:
        """Return the largest change of a λ̄ by (10), or inf if it prunes."""
        if np.isneginf(self.ascent.image).any():
            return np.inf
        if self.rows.absolute:
            return moved(self.ascent)
        return float(np.abs(np.exp(self.ascent.image) - np.exp(self.ascent.point)).max())

    @property
    def log_weights(self) -> Array:
        """ln λ̄, or ln λ, at the best point, −inf where pruned."""
        return self._expand(self.ascent.point)


class TailedClimb(Climbing):
    """EM under a prior that identifies the scale: ln λ moves to the mode of its law given wins and exposure.

    Every step ends at the best common scale, which has a closed form. By (10) alone the scale would converge slowly,
    since the likelihood does not depend on it, unless the response identifies the scale.
    """

    def __init__(self, rows: Rows, prior: GIG, log_weights: Array, accelerate: bool):
        self.rows, self.prior, self.size, self.accelerate = rows, prior, log_weights.shape, accelerate
        self.within = as_it_is if rows.absolute else prior.at_best_scale
        self.ascent = Ascent(self._step, self.within(log_weights.ravel()), self.within, accelerate)

    def _step(self, x: Array) -> tuple[float, Array]:
        """Return the objective at x and the next point."""
        stats = self.rows.expect(Weights.point(x.reshape(self.size)))
        objective = stats.value + float(self.prior.log_density(x).sum())
        return objective, self.within(self.prior.given(stats.wins, stats.exposure).log_mode().ravel())

    def begin_again(self) -> None:
        """Restart from the best point."""
        self.ascent = Ascent(self._step, self.ascent.point, self.within, self.accelerate)

    def movement(self) -> float:
        """Return the largest change of a λ̄, or of ln Λ."""
        return moved(self.ascent)

    def advance(self) -> float:
        """Do one iteration and return its gain."""
        return self.ascent.advance()

    @property
    def passes(self) -> int:  # type: ignore[override]
        """Number of passes over the rows so far."""
        return self.ascent.n_passes

    @property
    def log_weights(self) -> Array:
        """ln λ̄, or ln λ, at the best point."""
        log_weights = self.ascent.point.reshape(self.size)
        return log_weights if self.rows.absolute else normalised(log_weights)


def at_the_mode(rows: Rows, shape: float, rate: float, log_weights: Array, settings: EM) -> tuple[Rows, Array]:
    """Return rows with maximising parameters, and ln λ up to a constant, if Newton's method finds them.

    Otherwise the arguments are returned. The method is used for parameters and scales, which EM finds slowly, and for
    other worths if a step costs little.
    """
    likelihood = rows.walk()
    if likelihood is None or not (likelihood.absolute or likelihood.parameters):
        likelihood = rows.likelihood() if settings.accelerate and rows.n_features == 1 else None
        if likelihood is None or not _is_quick(likelihood, rows):
            return rows, log_weights
    prior = WorthPrior(shape - 1.0, rate, 0.0, not likelihood.absolute)
    tol, steps = max(settings.tol, CLOSE), min(settings.max_iter, NEWTON)
    K, q = rows.n_groups, Density(likelihood, prior, informed=False).mode(tol=tol, steps=steps)
    values = [each.bound(u) for each, u in zip(rows.parameters, q[K:], strict=True)]
    if not np.isfinite(q).all() or any(v <= each.lower for each, v in zip(rows.parameters, values, strict=True)):
        return rows, log_weights
    return (rows.at(np.array(values)) if values else rows), q[:K, None]


def _is_quick(likelihood: Likelihood, rows: Rows) -> bool:
    """True if Newton's method is expected to take less time than EM."""
    step = likelihood.work_of_curvature + rows.n_groups**3 / FLOPS
    return step <= PASSES * (rows.work + BEGIN)


def walk(shape: float) -> list[float]:
    """Path of shapes down to a target below 1; starting there, equal weights would lose whole classes."""
    if shape >= 1:
        return [shape]
    return [
        *(s for s in (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01) if s > shape),
        shape,
    ]


class EM(BaseEstimator):
    """Maximum a posteriori estimate; with the Gamma prior and a < 1 it has exact zeros.

    Parameters
    ----------
    tol : float
        Fixed features: stop when (10) changes no normalised weight by more than this, nor the logarithm of their
        sum if the prior identifies the scale. Worths of few items begin where the next step of Newton's method would
        change their logarithms by about this.
    max_iter : int
        Maximum number of iterations at the final shape; earlier shapes on the path down from 1 use a coarser tolerance.
        Also the maximum number of steps of Newton's method. With learned directions, iterations at each penalty.
    accelerate : bool
        Fixed features: extrapolate (Anderson), safeguarded so that the objective never falls, and begin the worths of
        few items at the mode by Newton's method. False gives the plain EM of the paper, except that laws of ties, order
        effects and attributes begin at the mode in any case.
    shapes : sequence of float
        Fixed features: shapes that ``shape="learn"`` tries, in decreasing order with warm starts.
    cv : int, splitter or iterable
        Folds of ``shape="learn"``, and of the penalties of learned directions; anything that scikit-learn takes as
        ``cv``.

    Examples
    --------
    >>> from plackett import EM, PlackettLuceClassifier
    >>> PlackettLuceClassifier(inference=EM(tol=1e-6), shape=0.5)
    PlackettLuceClassifier(inference=EM(tol=1e-06), shape=0.5)
    """

    samples: Literal[False] = False
    maximises: Literal[True] = True
    shape_settings = ("shapes", "cv")
    fixed_only = Ignored(
        ("tol", "accelerate", "shapes"),
        "it is a setting of the climb for fixed features, and directions are climbed by L-BFGS.",
    )
    no_directions = no_fixed = None
    groups_rows = False

    def __init__(
        self,
        tol: float = 1e-10,
        max_iter: int = 5000,
        accelerate: bool = True,
        shapes: tuple[float, ...] = SHAPES,
        cv: Any = 5,
    ):
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.shapes = shapes
        self.cv = cv

    def _check(self) -> None:
        check_tolerance("EM(tol)", self.tol)
        check_count("EM(max_iter)", self.max_iter)

    def path(
        self, rows: Rows, shapes: list[float], coarse: float = 1e-6, tailed: GIG | None = None, rate: float = 1.0
    ) -> list[Climbing]:
        """Fit decreasing shapes of the Gamma, or of a prior with a tail, each started from the previous fit."""
        log_weights = np.full((rows.n_groups, rows.n_features), -np.log(rows.n_groups * rows.n_features))
        climbs: list[Climbing] = []
        for shape in shapes:
            climb: Climbing
            if tailed is None and shape >= 1.0:
                rows, log_weights = at_the_mode(rows, shape, rate, log_weights, self)
            if tailed is None:
                climb = Climb(rows, shape, log_weights, self.accelerate, rate)
            else:
                climb = TailedClimb(rows, replace(tailed, shape=shape), log_weights, self.accelerate)
            climb.run(max(self.tol, coarse), self.max_iter)
            rows = self._with_parameters(climb, max(self.tol, coarse))
            log_weights = climb.log_weights
            climbs.append(climb)
        return climbs

    def _with_parameters(self, climb: Climbing, tol: float) -> Rows:
        """Alternate between weights and parameters of the response; return the rows at the fitted parameters."""
        for _ in range(self.max_iter if climb.rows.parameters else 0):
            before = climb.ascent.value
            moved = climb.move_parameters()
            climb.run(tol, self.max_iter)
            if moved <= max(tol, PRECISION) or climb.ascent.value - before <= GAIN * abs(before):
                break
        return climb.rows

    def fit(self, problem: Problem, shape: float) -> Fit:
        """Fit at a given shape."""
        self._check()
        climb = self.path(problem.rows, walk(shape), tailed=problem.tailed, rate=problem.rate)[-1]
        if not climb.run(self.tol, self.max_iter):
            warnings.warn(
                f"EM did not converge in {self.max_iter} iterations: the last would still move a weight by more than "
                f"tol={self.tol:g}. Raise EM(max_iter=...) or EM(tol=...).",
                ConvergenceWarning,
                stacklevel=4,
            )
        rows = self._with_parameters(climb, self.tol)
        return Fit(
            posterior=Point(*climb.parts(), rows.values_of_parameters if rows.parameters else None),
            shape=shape,
            trace=climb.trace,
            n_iter=climb.passes,
        )
