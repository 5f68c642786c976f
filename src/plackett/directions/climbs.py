"""Maximisation for several chains with common passes over the rows: L-BFGS in its compact form.

With the last steps S and changes Y of the negative gradient as columns, R the upper triangle of SᵀY and D its diagonal,
the inverse of the negative Hessian is approximated by (Byrd, Nocedal & Schnabel 1994, theorem 2.2)

    H = γ + [S, γY] [[R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ], [−R⁻¹, 0]] [S, γY]ᵀ,

in coordinates that are divided by a guess of the mode's width; the products SᵀY and YᵀY grow by a row and a column per
step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array

MEMORY = 20  # stored steps for the curvature
SUFFICIENT = 1e-4  # required fraction of the increase predicted by the slope
SHORTER = 0.3  # factor of a rejected step


def climb_together(
    look: Callable[[Array], tuple[Array, Array]],
    position: Array,
    variance: Array,
    passes: int,
    least: float,
    up: Callable[[], bool] = lambda: False,
) -> tuple[Array, Array]:
    """Return positions (C, D) at or near modes and log-densities (C,), after `passes` passes or gains below `least`.

    `look` returns log-densities and gradients (C, D) at positions; `variance` (D,) is a guess of the width of the mode
    in each coordinate. A gain is that of MEMORY passes. The climb also ends when `up` is true.
    """
    width = np.sqrt(variance)
    position, history = position.copy(), History(*position.shape)
    value, gradient = look(position)
    gradient, long_ago = gradient * width, value.copy()
    direction, length = gradient.copy(), np.ones(len(position))
    direction /= np.maximum(np.sqrt(products(direction, gradient)), 1.0)[:, None]
    for i in range(1, passes):
        step = length[:, None] * direction
        new = position + width * step
        new_value, new_gradient = look(new)
        new_gradient *= width
        promised = SUFFICIENT * length * products(direction, gradient)
        kept = new_value >= value + promised  # NaN counts as rejected
        history.learn(step, gradient - new_gradient, kept)
        position[kept], value[kept], gradient[kept] = new[kept], new_value[kept], new_gradient[kept]
        direction[kept], length[kept] = history.ahead(gradient)[kept], 1.0
        length[~kept] *= SHORTER
        if i % MEMORY == 0:
            if (value - long_ago < least).all() or up():
                break
            long_ago = value.copy()
    return position, value


def products(a: Array, b: Array) -> Array:
    """Return the scalar products of rows."""
    found: Array = np.einsum("cd,cd->c", a, b)
    return found


class History:
    """The last steps of C chains and the changes of their gradients, in turn; rejected ones are zero."""

    def __init__(self, C: int, D: int):
        self.steps, self.turns = np.zeros((C, MEMORY, D)), np.zeros((C, MEMORY, D))
        self.across, self.among = np.zeros((C, MEMORY, MEMORY)), np.zeros((C, MEMORY, MEMORY))  # SᵀY, YᵀY
        self.size, self.at = np.ones(C), 0  # γ, and the place of the next step

    def learn(self, step: Array, turn: Array, kept: npt.NDArray[np.bool_]) -> None:
        """Store steps (C, D) of the chains that kept them, if their curvature is positive."""
        bend, square = products(step, turn), products(turn, turn)
        learned = kept & (bend > 1e-12 * np.sqrt(products(step, step) * square))
        self.size = np.where(learned, bend / np.where(learned, square, 1.0), self.size)
        at, self.at = self.at, (self.at + 1) % MEMORY
        self.steps[:, at] = np.where(learned[:, None], step, 0.0)
        self.turns[:, at] = np.where(learned[:, None], turn, 0.0)
        pair = np.stack([self.steps[:, at], self.turns[:, at]], axis=2)
        by_steps, by_turns = self.steps @ pair[:, :, 1:], self.turns @ pair
        self.across[:, :, at], self.across[:, at] = by_steps[..., 0], by_turns[..., 0]
        self.among[:, :, at] = self.among[:, at] = by_turns[..., 1]

    def ahead(self, gradient: Array) -> Array:
        """Return ascent directions Hg (C, D)."""
        order = (self.at + np.arange(MEMORY)) % MEMORY  # from the oldest step to the last
        later = np.argsort(order)[:, None] <= np.argsort(order)
        size, diagonal = self.size[:, None, None], np.einsum("cmm->cm", self.across)[..., None]
        R = np.where(later, self.across, 0.0) + np.eye(MEMORY) * (diagonal == 0)
        by_steps, by_turns = self.steps @ gradient[..., None], size * (self.turns @ gradient[..., None])
        p = np.linalg.solve(R, by_steps)
        q = np.linalg.solve(R.transpose(0, 2, 1), diagonal * p + size * (self.among @ p) - by_turns)
        of_steps, of_turns = q.transpose(0, 2, 1) @ self.steps, p.transpose(0, 2, 1) @ self.turns
        found: Array = self.size[:, None] * (gradient - of_turns[:, 0]) + of_steps[:, 0]
        return found
