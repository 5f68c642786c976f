"""Climbs of several chains with one pass over the rows for all: L-BFGS (Nocedal & Wright 2006, algorithm 7.4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plackett.model.race import Array

MEMORY = 20  # steps that say how the slope turns
SUFFICIENT = 1e-4  # of the slope's promise that a step must keep
SHORTER = 0.3  # of a step that did not


def climb_together(
    look: Callable[[Array], tuple[Array, Array]], position: Array, variance: Array, passes: int, least: float
) -> tuple[Array, Array]:
    """Positions (C, D) at or near modes, and log-densities (C,), after so many passes or gains of less than `least`.

    `look` gives log-densities and gradients (C, D) at positions; `variance` (D,) is a guess how wide the mode is in
    each coordinate. Gains are those of MEMORY passes.
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
        kept = new_value >= value + promised  # NaN keeps nothing
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
    """The two loops of L-BFGS, uphill: gradients (C, D), the last steps and turns of the slope (m, C, D), step·turn."""
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
