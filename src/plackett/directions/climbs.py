"""Maximisation for several chains with common passes over the rows: L-BFGS (Nocedal & Wright 2006, algorithm 7.4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plackett.model.race import Array

MEMORY = 20  # stored steps for the curvature
SUFFICIENT = 1e-4  # required fraction of the increase predicted by the slope
SHORTER = 0.3  # factor of a rejected step


def climb_together(
    look: Callable[[Array], tuple[Array, Array]], position: Array, variance: Array, passes: int, least: float
) -> tuple[Array, Array]:
    """Return positions (C, D) at or near modes and log-densities (C,), after `passes` passes or gains below `least`.

    `look` returns log-densities and gradients (C, D) at positions; `variance` (D,) is a guess of the width of the mode
    in each coordinate. A gain is that of MEMORY passes.
    """
    position = position.copy()
    value, gradient = look(position)
    C, D = position.shape
    steps, turns, bends = np.zeros((MEMORY, C, D)), np.zeros((MEMORY, C, D)), np.zeros((MEMORY, C))
    direction, length, long_ago = variance * gradient, np.ones(C), value.copy()
    direction /= np.maximum(np.sqrt((direction * gradient).sum(axis=1)), 1.0)[:, None]
    for i in range(1, passes):
        new = position + length[:, None] * direction
        new_value, new_gradient = look(new)
        promised = SUFFICIENT * length * (direction * gradient).sum(axis=1)
        kept = new_value >= value + promised  # NaN counts as rejected
        for c in np.flatnonzero(kept):
            step, turn = new[c] - position[c], gradient[c] - new_gradient[c]
            bend = step @ turn
            if bend > 1e-12 * np.sqrt((step @ step) * (turn @ turn)):
                for held, found in ((steps, step), (turns, turn), (bends, bend)):
                    held[:-1, c], held[-1, c] = held[1:, c].copy(), found
        position[kept], value[kept], gradient[kept] = new[kept], new_value[kept], new_gradient[kept]
        ahead = towards(gradient, steps, turns, bends, variance)
        direction[kept], length[kept] = ahead[kept], 1.0
        length[~kept] *= SHORTER
        if i % MEMORY == 0:
            if (value - long_ago < least).all():
                break
            long_ago = value.copy()
    return position, value


def towards(gradient: Array, steps: Array, turns: Array, bends: Array, variance: Array) -> Array:
    """Two loops of L-BFGS: ascent directions from gradients (C, D), steps and gradient changes (m, C, D), step·turn."""
    ahead, share = gradient.copy(), np.zeros_like(bends)
    usable = bends > 0
    inverse = np.where(usable, 1 / np.where(usable, bends, 1.0), 0.0)
    for i in range(len(steps))[::-1]:
        share[i] = inverse[i] * np.einsum("cd,cd->c", steps[i], ahead)
        ahead -= share[i][:, None] * turns[i]
    last = np.einsum("cd,d,cd->c", turns[-1], variance, turns[-1])
    ahead *= variance * np.where(usable[-1], bends[-1] / np.where(last > 0, last, 1.0), 1.0)[:, None]
    for i in range(len(steps)):
        ahead += (share[i] - inverse[i] * np.einsum("cd,cd->c", turns[i], ahead))[:, None] * steps[i]
    return ahead
