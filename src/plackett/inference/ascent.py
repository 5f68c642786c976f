"""Accelerated maximisation by a monotone map, safeguarded so that the objective never falls.

The module knows nothing of the model. Points are logarithms of positive numbers. Each call of the map costs one pass
over the rows and returns the objective at its input, so that the safeguard costs a pass only when an extrapolation is
rejected. Two extrapolations alternate, each until it is rejected:

- Anderson's method on square roots, where positive numbers that converge to zero reach it in finitely many steps.
  Near a saddle, where a nearly vanished number must grow again, it is attracted to the saddle and rejected;
- a stretched step on logarithms, four times longer after each success, which leaves a saddle quickly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plackett.model.race import Array

Step = Callable[[Array], tuple[float, Array]]
MEMORY = 10  # number of past differences in Anderson's method
SHRINK = 0.1  # smallest ratio of a square root to its plain successor
REACH = 30.0  # largest stretch of a logarithm
STRETCH = 4.0


class Ascent:
    """Iterates of the accelerated map.

    Parameters
    ----------
    step : callable
        Maps a point x to (objective at x, next point G(x)), with objective(G(x)) ≥ objective(x).
    start : array
        The first point.
    project : callable
        Maps a point to the normal form of the map's images (scale, bounds).
    accelerate : bool
        False gives the plain iteration.
    """

    def __init__(self, step: Step, start: Array, project: Callable[[Array], Array], accelerate: bool = True):
        self.step, self.project, self.accelerate = step, project, accelerate
        self.point = start
        self.value, self.image = step(start)
        self.n_passes = 1
        self.trace = [self.value]
        self._stretch = 0.0  # 0 while Anderson's method is in use
        self._moves: list[Array] = []
        self._turns: list[Array] = []

    def advance(self) -> float:
        """Go to the next point; return the gain, which is non-negative up to rounding."""
        candidate = self._extrapolation() if self.accelerate else None
        if candidate is not None:
            value, image = self._evaluate(candidate)
            if value >= self.value - 4 * np.finfo(float).eps * abs(self.value):  # a fall within rounding is accepted
                self._stretch = min(self._stretch * STRETCH, 4**10)
                return self._accept(candidate, value, image)
            self._stretch = 0.0 if self._stretch else STRETCH
            self._moves.clear()
            self._turns.clear()
        target = self.image
        return self._accept(target, *self._evaluate(target))

    def _evaluate(self, point: Array) -> tuple[float, Array]:
        self.n_passes += 1
        return self.step(point)

    def _accept(self, point: Array, value: float, image: Array) -> float:
        gain = value - self.value
        if self.accelerate:
            old, new = np.exp(self.point / 2), np.exp(point / 2)
            self._moves.append(new - old)
            self._turns.append((np.exp(image / 2) - new) - (np.exp(self.image / 2) - old))
            del self._moves[:-MEMORY], self._turns[:-MEMORY]
        self.point, self.value, self.image = point, value, image
        self.trace.append(value)
        return gain

    def _extrapolation(self) -> Array | None:
        if self._stretch:
            return self.project(self.point + np.clip(self._stretch * (self.image - self.point), -REACH, REACH))
        return self._anderson()

    def _anderson(self) -> Array | None:
        """Y + r − Σ γ (Δy + Δr) with r = G(y) − y and γ the least-squares fit of r by the Δr."""
        if not self._turns:
            return None
        root, goal = np.exp(self.point / 2), np.exp(self.image / 2)
        turns, moves = np.array(self._turns).T, np.array(self._moves).T
        size = np.linalg.norm(turns, axis=0)
        if not np.all(size > 0):
            return None
        unit = turns / size
        gamma = np.linalg.solve(unit.T @ unit + 1e-12 * np.eye(len(size)), unit.T @ (goal - root)) / size
        candidate: Array = 2 * np.log(np.maximum(goal - (moves + turns) @ gamma, SHRINK * goal))
        return self.project(candidate) if np.isfinite(candidate).all() else None
