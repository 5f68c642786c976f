"""Bounded storage of draws: when it is full, every second draw is dropped and the thinning doubles.

This bounds the cost of everything done with draws later: diagnostics, summaries, export, model files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from plackett.model.race import Array

Shapes = Mapping[str, tuple[int, ...]]  # shapes of the arrays of one draw, by name
Portion = dict[str, Array]  # consecutive draws of all chains, by name: (chain, draw, …)


def empty(shapes: Shapes, chains: int, n: int) -> Portion:
    """Allocate arrays for n draws."""
    return {name: np.empty((chains, n, *shape)) for name, shape in shapes.items()}


def part(portion: Portion, where: slice) -> Portion:
    """Select some of the draws."""
    return {name: array[:, where] for name, array in portion.items()}


SURE = 10_000  # draws per chain that are always kept on request, however large one is
MOST = 1 << 18  # draws over all chains beyond which they are thinned
NUMBERS = 1 << 24  # numbers in all draws beyond which they are thinned: 128 MiB


def room_for(draws: int, chains: int, numbers: int) -> int:
    """Return the capacity per chain for the requested draws, from the count of numbers per draw."""
    return min(draws, max(SURE, min(MOST, NUMBERS // numbers) // chains))


class Store:
    """Draws of all chains, one per `thin` iterations.

    The stored draws depend on the number of iterations alone, not on the portions in which they were added.
    """

    def __init__(self, chains: int, capacity: int, shapes: Shapes, thin: int = 1):
        self.capacity = capacity
        self.kept = empty(shapes, chains, capacity)
        self.thin, self.count, self.iterations = thin, 0, 0

    def room(self) -> int:
        """Return the number of iterations that still fit."""
        return self.capacity * self.thin - self.iterations

    def select(self, portion: Portion, held: int = 1) -> Portion:
        """Select the draws to store from the next iterations, of which the portion holds every `held`-th."""
        first = (-self.iterations % self.thin - -self.iterations % held) // held
        return part(portion, slice(first, None, self.thin // held))

    def add(self, selected: Portion, n_iterations: int) -> None:
        """Add the result of `select` for n iterations."""
        before = self.count
        for name, array in selected.items():
            self.count = before + array.shape[1]
            self.kept[name][:, before : self.count] = array
        self.iterations += n_iterations

    def halve(self) -> None:
        """Drop every second draw."""
        n = -(-self.count // 2)
        for array in self.kept.values():
            array[:, :n] = array[:, : self.count : 2].copy()
        self.count, self.thin = n, 2 * self.thin

    def filled(self) -> Portion:
        """Return the draws stored so far."""
        return part(self.kept, slice(self.count))
