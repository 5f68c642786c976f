"""Moves of a chain of tastes: persons separately, the law given their tastes, and all persons jointly.

*Persons*: each makes a Hamiltonian step given the law (`person_steps`). *Law*: μ and Σ given the tastes, conjugate
(`population`). *Joint*: standardised residuals u_i = L⁻¹(b_i − μ) are fixed, and μ, L and the fixed coefficients φ move
by a few leapfrog steps on Σ_i V_i(μ + L u_i, φ) + ln p(μ, L, φ), in the metric of the summed curvature, which is
estimated during tuning. This shifts all persons at once and stretches the differences between them; without it the law
would make steps of the small width that N persons leave. (Ancillary and sufficient augmentation interwoven: Yu & Meng
2011.)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plackett.linear.likelihood import scratch_for
from plackett.model.race import Array
from plackett.model.taste_law import LARGEST, TasteLaw
from plackett.tastes.panel import Panel
from plackett.tastes.person_steps import Persons, Where, add_curvature, add_up, place_persons, standardise, step_persons
from plackett.tastes.population import Population, PopulationPrior

TOO_FAR = 100.0
ROOM = 7  # rows of scratch for kernels


class Coordinates:
    """Law as a vector: μ, φ, ln L_kk and, for correlated tastes, the rest of L row by row."""

    def __init__(self, law: TasteLaw):
        d, q = len(law.random), len(law.fixed)
        self.d, self.q = d, q
        self.below = np.tril_indices(d, -1) if law.correlated else (np.empty(0, dtype=int),) * 2
        self.ends = np.cumsum([d, q, d])
        self.size = int(self.ends[-1]) + len(self.below[0])
        n, diagonal = 1 + d, np.arange(d)
        # Index of each coordinate in a table (p, 1 + d) of derivatives along (1, u) of every column.
        self.places = np.concatenate(
            [
                law.random * n,
                law.fixed * n,
                law.random * n + 1 + diagonal,
                law.random[self.below[0]] * n + 1 + self.below[1],
            ]
        )

    def pack(self, at: Population) -> Array:
        """Return the vector."""
        return np.concatenate([at.mean, at.fixed, np.log(np.diag(at.factor)), at.factor[self.below]])

    def unpack(self, x: Array) -> Population:
        """Return the law."""
        mean, fixed, logs, rest = np.split(x, self.ends)
        factor = np.diag(np.exp(np.clip(logs, -LARGEST, LARGEST)))
        factor[self.below] = rest
        return Population(mean, factor, fixed)

    def along(self, table: Array, at: Population) -> Array:
        """Return derivatives along the coordinates from a table (p, 1 + d), or from a curvature with two such axes."""
        unit = np.ones(self.size)
        unit[self.ends[1] : self.ends[2]] = np.diag(at.factor)
        if table.ndim == 1:
            return table[self.places] * unit
        found: Array = table[np.ix_(self.places, self.places)] * unit * unit[:, None]
        return found


class Mover:
    """Move chains of one panel under one law."""

    def __init__(self, panel: Panel, law: TasteLaw, prior: PopulationPrior, longest: int, threads: int = 1):
        self.panel, self.law, self.prior, self.longest = panel, law, prior, longest
        self.coordinates = Coordinates(law)
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def where(self, at: Population) -> Where:
        """Return the law in the form that passes need."""
        common = np.zeros(self.law.n_columns)
        common[self.law.fixed] = at.fixed
        return Where(self.law.random, self.law.sign, at.mean, at.factor, common)

    def over_pieces(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Run a pass on each piece of the persons, which threads may share."""
        panel, p = self.panel, self.law.n_columns

        def of_piece(k: int) -> Any:
            room, scratch = np.empty((ROOM, max(p, 1))), scratch_for(panel.packed)
            first, last = panel.pieces[k], panel.pieces[k + 1]
            return work(first, last, k, *given, room, scratch)

        pieces = range(len(panel.pieces) - 1)
        if self.pool is None or len(pieces) == 1:
            return [of_piece(k) for k in pieces]
        return list(self.pool.map(of_piece, pieces))

    def move_persons(self, rng: np.random.Generator, persons: Persons, at: Population, tuning: bool, seen: int) -> None:
        """Make a Hamiltonian step of each person, in place."""
        key, where = rng.integers(2**64, dtype=np.uint64), self.where(at)
        packed, owned = self.panel.packed, self.panel.owned

        def work(first: int, last: int, k: int, room: Array, scratch: Array) -> None:
            stream = np.empty(1, dtype=np.uint64)
            chain = where, persons, key, self.longest, tuning, float(seen)
            step_persons(packed, owned, first, last, *chain, room, scratch, stream)

        self.over_pieces(work)

    def standard(self, tastes: Array, at: Population) -> Array:
        """Return u (N, d) = L⁻¹(b − μ)."""
        found = np.empty_like(tastes)
        standardise(self.where(at), tastes, found)
        return found

    def sums(self, kernel: Callable[..., float], at: Population, u: Array, persons: Persons) -> tuple[float, Array]:
        """Return Σ V_i and its gradient along the coordinates."""
        n_pieces, where = len(self.panel.pieces) - 1, self.where(at)
        gradient = np.empty((n_pieces, self.law.n_columns, 1 + len(self.law.random)))
        packed, owned = self.panel.packed, self.panel.owned

        def work(first: int, last: int, k: int, room: Array, scratch: Array) -> float:
            return kernel(packed, owned, first, last, where, u, persons, gradient[k], room, scratch)

        value = sum(self.over_pieces(work))
        return value, self.coordinates.along(gradient.sum(axis=0).ravel(), at)

    def place(self, at: Population, u: Array, persons: Persons) -> float:
        """Move persons to their residuals u; return Σ V_i."""
        return self.sums(place_persons, at, u, persons)[0]

    def load_kernels(self, persons: Persons, at: Population) -> None:
        """Compile kernels, or load them, without any move."""
        where, room, scratch = self.where(at), np.empty((ROOM, self.law.n_columns)), scratch_for(self.panel.packed)
        nobody = self.panel.packed, self.panel.owned, 0, 0, where
        stream, u = np.empty(1, dtype=np.uint64), np.zeros_like(persons.tastes)
        step_persons(*nobody, persons, np.uint64(0), self.longest, False, 0.0, room, scratch, stream)
        table = np.zeros((self.law.n_columns, 1 + len(self.law.random)))
        for kernel in (place_persons, add_up):
            kernel(*nobody, u, persons, table, room, scratch)

    def curvature(self, at: Population, persons: Persons) -> Array:
        """Return the curvature of −ln of the density along the coordinates, at fixed residuals; positive definite."""
        n = self.law.n_columns * (1 + len(self.law.random))
        u, where = self.standard(persons.tastes, at), self.where(at)
        packed, owned = self.panel.packed, self.panel.owned

        def work(first: int, last: int, k: int, room: Array, scratch: Array) -> Array:
            found = np.zeros((n, n))
            add_curvature(packed, owned, first, last, where, u, persons, found, room, scratch)
            return found

        table = sum(self.over_pieces(work), np.zeros((n, n)))
        found = self.coordinates.along(table, at)
        d, q = self.coordinates.d, self.coordinates.q
        found[np.diag_indices(len(found))] += np.concatenate(
            [
                self.prior.mean_spread**-2.0,
                np.full(q, self.prior.fixed_spread**-2.0),
                np.ones(self.coordinates.size - d - q),
            ]
        )
        return found

    def move_together(
        self, rng: np.random.Generator, persons: Persons, at: Population, root: Array, step: float, leaps: int
    ) -> tuple[Population, float]:
        """Make leapfrog steps of μ, L and φ at fixed residuals; return the new law and the acceptance probability.

        `root` is the lower root of the metric. Persons move in place.
        """
        packed, inverse = self.coordinates, np.linalg.inv(root)
        u = self.standard(persons.tastes, at)
        old = [array.copy() for array in persons[:3]]

        def density(kernel: Callable[..., float], law: Population) -> tuple[float, Array]:
            value, gradient = self.sums(kernel, law, u, persons)
            of_mean, of_factor, of_fixed = self.prior.slopes(law)
            of_prior = np.concatenate([of_mean, of_fixed, np.diag(of_factor), of_factor[packed.below]])
            return value + self.prior.log_density(law), gradient + of_prior

        value, gradient = density(add_up, at)
        x, law, began = packed.pack(at), at, value
        z = rng.standard_normal(len(x))
        momentum, energy = root @ z, value - 0.5 * float(z @ z)
        for _ in range(leaps):
            momentum = momentum + 0.5 * step * gradient
            x = x + step * (inverse.T @ (inverse @ momentum))
            law = packed.unpack(x)
            value, gradient = density(place_persons, law)
            if not value > began - TOO_FAR:
                break
            momentum = momentum + 0.5 * step * gradient
        z = inverse @ momentum
        change = value - 0.5 * float(z @ z) - energy
        accepted = float(np.exp(min(change, 0.0))) if value > began - TOO_FAR else 0.0
        if rng.random() < accepted:
            return law, accepted
        for array, before in zip(persons[:3], old, strict=True):
            array[...] = before
        return at, accepted
