"""Room for draws that stays bounded: when it is full, every second draw goes and the thinning doubles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.model.race import Array


class Portion(NamedTuple):
    """Draws of some iterations in a row of all chains: (chain, draw, …)."""

    log_weights: Array
    shape: Array
    value: Array


class Store:
    """Draws of all chains, with `thin` iterations between two of them.

    What is kept is a function of the number of iterations alone, not of the portions in which they came.
    """

    def __init__(self, chains: int, capacity: int, size: tuple[int, int], thin: int = 1):
        self.capacity = capacity
        self.kept = Portion(
            np.empty((chains, capacity, *size)), np.empty((chains, capacity)), np.empty((chains, capacity))
        )
        self.thin, self.count, self.iterations = thin, 0, 0

    def room(self) -> int:
        """Iterations that still fit."""
        return self.capacity * self.thin - self.iterations

    def select(self, portion: Portion, held: int = 1) -> Portion:
        """The draws that will be kept of the next iterations, of which the portion has every `held`-th."""
        first = (-self.iterations % self.thin - -self.iterations % held) // held
        return Portion(*(array[:, first :: self.thin // held] for array in portion))

    def add(self, selected: Portion, n_iterations: int) -> None:
        """Take in what `select` gave of so many iterations."""
        n = selected.shape.shape[1]
        for room, array in zip(self.kept, selected, strict=True):
            room[:, self.count : self.count + n] = array
        self.count += n
        self.iterations += n_iterations

    def halve(self) -> None:
        """Drop every second draw."""
        n = -(-self.count // 2)
        for array in self.kept:
            array[:, :n] = array[:, : self.count : 2].copy()
        self.count, self.thin = n, 2 * self.thin

    def filled(self) -> Portion:
        """The draws kept so far."""
        return Portion(*(array[:, : self.count] for array in self.kept))
