"""Room for draws that stays bounded: when it is full, every second draw goes and the thinning doubles.

Whatever is done with draws later (diagnosing, summaries, export, model files) is bounded with it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from plackett.model.race import Array

Shapes = Mapping[str, tuple[int, ...]]  # what one draw is: arrays by name, each of this shape
Portion = dict[str, Array]  # draws of some iterations in a row of all chains, by name: (chain, draw, …)


def empty(shapes: Shapes, chains: int, n: int) -> Portion:
    """Room for so many draws."""
    return {name: np.empty((chains, n, *shape)) for name, shape in shapes.items()}


def part(portion: Portion, where: slice) -> Portion:
    """Some of the draws."""
    return {name: array[:, where] for name, array in portion.items()}


SURE = 10_000  # draws of each chain that are kept if they are asked for, however large one is
MOST = 1 << 18  # draws of all chains beyond which they are thinned
NUMBERS = 1 << 24  # numbers of all draws beyond which they are thinned: 128 MiB


def room_for(draws: int, chains: int, numbers: int) -> int:
    """Draws of each chain that are kept at a time of those that are asked for, by the numbers that belong to one."""
    return min(draws, max(SURE, min(MOST, NUMBERS // numbers) // chains))


class Store:
    """Draws of all chains, with `thin` iterations between two of them.

    What is kept is a function of the number of iterations alone, not of the portions in which they came.
    """

    def __init__(self, chains: int, capacity: int, shapes: Shapes, thin: int = 1):
        self.capacity = capacity
        self.kept = empty(shapes, chains, capacity)
        self.thin, self.count, self.iterations = thin, 0, 0

    def room(self) -> int:
        """Iterations that still fit."""
        return self.capacity * self.thin - self.iterations

    def select(self, portion: Portion, held: int = 1) -> Portion:
        """The draws that will be kept of the next iterations, of which the portion has every `held`-th."""
        first = (-self.iterations % self.thin - -self.iterations % held) // held
        return part(portion, slice(first, None, self.thin // held))

    def add(self, selected: Portion, n_iterations: int) -> None:
        """Take in what `select` gave of so many iterations."""
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
        """The draws kept so far."""
        return part(self.kept, slice(self.count))
