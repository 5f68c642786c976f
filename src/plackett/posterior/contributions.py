"""Contributions of covariates to the log-odds of one class: gradients of the prediction, integrated along a line.

Let F(x) be the log-odds under the prediction. Covariate f contributes (x_f − x⁰_f) ∫ ∂F/∂x_f dt along the straight line
from a reference x⁰ to x. Contributions add up to F(x) − F(x⁰), whatever the curvature between. The module knows no
covariates: predictions depend on them through linear scores, and the results are slopes by score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from plackett.model.race import Array

NODES, SHARES = (part / 2 for part in np.polynomial.legendre.leggauss(5))  # of a panel of length 1 about 0
CLOSE, CLOSE_OF_DRAWS = 1e-6, 1e-2  # tolerance of the log-odds, for the prediction and for draws
PANELS, NARROWEST = 300, 1e-9  # maximum number and minimum length of panels


class Mixture(NamedTuple):
    """A prediction between two rows: p_s(t) = Σ_j softmax_j(start_sj + t change_sj) votes_sj, 0 ≤ t ≤ 1.

    The prediction is proportional to (Σ_s share_s p_s)^κ. Under one draw it is p_s^κ, or (Σ_c within_c p_c)^κ over the
    `points` consecutive members of the draw; the modes at the end do not count as draws, as they carry no uncertainty.
    Without votes, each of the K alternatives has its own scores.
    """

    start: Array  # (S, M), or (S, K, M)
    change: Array  # likewise
    votes: Array | None  # (S, M, K)
    share: Array  # (S,)
    modes: int = 0
    power: float = 1.0  # κ
    smallest: float = 1e-300  # lower bound of probabilities
    points: int = 1
    within: Array | None = None  # (S,): weights of the members of a draw

    def probabilities(self, t: Array) -> tuple[Array, Array]:
        """Return softmax (T, S, M) or (T, S, K, M) and p (T, S, K) at these positions of the line."""
        scores = self.start + t.reshape(-1, *[1] * self.start.ndim) * self.change
        each = tuple(range(2, scores.ndim))
        scores -= scores.max(axis=each, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=each, keepdims=True)
        if self.votes is None:
            return scores, scores.sum(axis=3)
        return scores, np.matmul(scores[:, :, None], self.votes)[:, :, 0]

    def slopes(self, softmax: Array, p: Array, rising: Array, weight: Array) -> Array:
        """Return Σ_t weight_t ∂F/∂score, given ∂F/∂p (T, S, K): ∂p_k/∂score_j = softmax_j (votes_jk − p_k)."""
        n, away = softmax.shape[1], (rising * p).sum(axis=-1, keepdims=True)
        if self.votes is None:
            found: Array = np.tensordot(weight, softmax * (rising - away)[..., None], 1)
        else:
            found = np.tensordot(weight, softmax * (np.matmul(self.votes[:n], rising[..., None])[..., 0] - away), 1)
        return found

    def mixed(self, p: Array) -> tuple[Array, Array]:
        """From p (T, S, K), return the prediction (T, K) and those under each draw (T, S', K), before κ."""
        members = p[:, : len(self.share) - self.modes]
        if self.within is not None:
            members = self.by_draw(members * self.within[: members.shape[1], None], 1)
        return np.tensordot(p, self.share, (1, 0)), members

    def by_draw(self, of_members: Array, axis: int) -> Array:
        """Add the parts of the members of each draw along an axis."""
        if self.within is None:
            return of_members
        shape = of_members.shape
        found: Array = of_members.reshape(*shape[:axis], -1, self.points, *shape[axis + 1 :]).sum(axis=axis + 1)
        return found

    def to_members(self, of_draws: Array) -> Array:
        """Give every member its part of the slopes (T, S', K) of its draw."""
        if self.within is None:
            return of_draws
        n = of_draws.shape[1] * self.points
        return np.repeat(of_draws, self.points, axis=1) * self.within[:n, None]


def log_odds(q: Array, k: int, power: float = 1.0, smallest: float = 1e-300) -> Array:
    """ln p_k − ln(1 − p_k) of p ∝ q^κ over the last axis."""
    log = power * np.log(np.maximum(q, smallest))
    odds: Array = log[..., k] - logsumexp(np.delete(log, k, axis=-1), axis=-1)
    return odds


def slope(q: Array, k: int, power: float, smallest: float) -> Array:
    """Return derivatives of `log_odds` in q."""
    log = power * np.log(np.maximum(q, smallest))
    log[..., k] = -np.inf
    found: Array = -np.exp(log - logsumexp(log, axis=-1, keepdims=True))  # shares of the other classes
    found[..., k] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(q > smallest, power * found / q, 0.0)


class Contributions(NamedTuple):
    """Contributions of covariates to the log-odds of one class, which are `reference` and `prediction` at the ends."""

    reference: float
    prediction: float
    centre: Array  # (d,): they add up to prediction − reference
    draws: Array  # (S', d): contributions under every draw


def contributions(mixture: Mixture, k: int, directions: Array, onto: Callable[[Array], Array]) -> Contributions:
    """Decompose the log-odds of class k by covariate.

    `directions` (S, M, r) are the slopes of the scores. `onto` maps gradients (…, r), or (…, K, r) if alternatives have
    their own scores, to covariates, multiplied by their distance from the reference. The integration error of a sum is
    distributed proportionally.
    """
    own = mixture.votes is None
    slopes = (part if own else part[:, None] for part in _by_score(mixture, k))
    gradients = (np.matmul(part, directions[: len(part)]) for part in slopes)
    of_point, of_draws = (part if own else part[:, 0] for part in gradients)
    ends, ends_of_draws = _odds(mixture, k, mixture.probabilities(np.array([0.0, 1.0]))[1])
    centre = exact(onto(of_point.sum(axis=0))[None], ends[1:] - ends[:1])[0]
    draws = exact(mixture.by_draw(onto(of_draws), 0), ends_of_draws[1] - ends_of_draws[0])
    return Contributions(float(ends[0]), float(ends[1]), centre, draws)


class ScoreSlopes(NamedTuple):
    """∫ ∂F/∂score dt along a part of the line."""

    point: Array  # (S, M) or (S, K, M): for the prediction
    own: Array  # likewise, of the members of draws: under each draw


def _by_score(mixture: Mixture, k: int) -> ScoreSlopes:
    """Integrate along the line; panels are halved where slopes do not add up to the change of the log-odds."""
    todo, found = [(0.0, 1.0)], list[ScoreSlopes]()
    while todo:
        a, b = todo.pop()
        slopes, close = _panel(mixture, k, a, b)
        if close or len(todo) + len(found) >= PANELS or b - a < NARROWEST:
            found.append(slopes)
        else:
            todo += [((a + b) / 2, b), (a, (a + b) / 2)]
    return ScoreSlopes(*(np.sum(parts, axis=0) for parts in zip(*found, strict=True)))


def _panel(mixture: Mixture, k: int, a: float, b: float) -> tuple[ScoreSlopes, bool]:
    """Integrate from a to b with five nodes; return True if the result is close to the change of the log-odds."""
    softmax, p = mixture.probabilities(np.array([a, *((a + b) / 2 + (b - a) * NODES), b]))
    odds, odds_of_draws = _odds(mixture, k, p[[0, -1]])
    softmax, p, weight = softmax[1:-1], p[1:-1], (b - a) * SHARES
    rising, rising_of_draws = (slope(q, k, mixture.power, mixture.smallest) for q in mixture.mixed(p))
    rising_of_draws = mixture.to_members(rising_of_draws)
    n = rising_of_draws.shape[1]
    point = mixture.slopes(softmax, p, rising[:, None] * mixture.share[:, None], weight)
    own = mixture.slopes(softmax[:, :n], p[:, :n], rising_of_draws, weight)
    left = odds[1] - odds[0] - (point * mixture.change).sum()
    reached = mixture.by_draw((own * mixture.change[:n]).sum(axis=tuple(range(1, own.ndim))), 0)
    left_of_draws = np.abs(odds_of_draws[1] - odds_of_draws[0] - reached).mean()
    return ScoreSlopes(point, own), bool(abs(left) <= CLOSE and left_of_draws <= CLOSE_OF_DRAWS)


def _odds(mixture: Mixture, k: int, p: Array) -> tuple[Array, Array]:
    odds, odds_of_draws = (log_odds(q, k, mixture.power, mixture.smallest) for q in mixture.mixed(p))
    return odds, odds_of_draws


def exact(parts: Array, total: Array) -> Array:
    """Adjust parts (n, d) to add up to their totals (n,), each in proportion to its size."""
    size = np.abs(parts)
    whole = size.sum(axis=1, keepdims=True)
    left = total[:, None] - parts.sum(axis=1, keepdims=True)
    result: Array = parts + left * np.divide(size, whole, out=np.zeros_like(size), where=whole > 0)
    return result
