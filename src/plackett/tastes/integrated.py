"""Log-likelihood of persons, integrated over the population: Σ_i ln ∫ Π_t Pr(y_it | b) N(b; μ, Σ) db."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from plackett.compute.pieces import cores
from plackett.linear.likelihood import scratch_for
from plackett.model.race import Array
from plackett.model.taste_law import TasteLaw, normal_points
from plackett.tastes.panel import Panel
from plackett.tastes.person_steps import Where, integrate
from plackett.tastes.population import Population


def integrated_values(panel: Panel, law: TasteLaw, at: Population, n_points: int) -> Array:
    """Return ln of the probability of all choices of each person, (N,), by quasi-random points of the population.

    The law refers to the columns of the panel, which are divided by its scale.
    """
    d, p = len(law.random), law.n_columns
    common = np.zeros(p)
    common[law.fixed] = at.fixed
    where = Where(law.random, law.sign, np.ascontiguousarray(at.mean), np.ascontiguousarray(at.factor), common)
    points, found = normal_points(n_points, d), np.empty(panel.n_persons)

    def work(k: int) -> None:
        room, scratch = np.empty((4, p)), scratch_for(panel.packed)
        piece = panel.pieces[k], panel.pieces[k + 1]
        integrate(panel.packed, panel.owned, *piece, where, points, found, room, scratch)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(work, range(len(panel.pieces) - 1)))
    return found
