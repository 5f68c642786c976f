"""The number of segments that predicts held-out persons best, fitted by EM."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.inference.base import check_count
from plackett.output.progress import progress_bar
from plackett.segments.em import maximum, memberships
from plackett.segments.persons import Codes, Persons
from plackett.segments.segments import Segments

TOL = 1e-5  # of climbs on folds, which need not be exact


def folds_of(persons: Persons, folds: Any, rng: np.random.Generator) -> Codes:
    """The fold of each person, at random; one that stands for several is held out as a whole."""
    check_count("folds of persons", folds, 2)
    N = len(persons.counts)
    if N < 2:
        raise ValueError("held-out persons decide here, and there is one alone. Give segments a number, and a shape.")
    return np.asarray(rng.permutation(N) % min(folds, N))


def held_out_loss(
    persons: Persons, segments: int, fold: Codes, starts: int, rng: np.random.Generator, cycles: int
) -> float:
    """Mean negative log-likelihood of a held-out person."""
    loss = 0.0
    for f in range(int(fold.max()) + 1):
        fitted, test = (persons.part(np.flatnonzero(some)) for some in (fold != f, fold == f))
        place = maximum(fitted, segments, starts, rng, TOL, cycles).place
        loss -= float(test.counts @ memberships(test.values(place.parameters), place.log_shares)[1])
    return loss / float(persons.counts.sum())


def losses_of_numbers(
    persons: Persons, settings: Segments, rng: np.random.Generator, cycles: int, progress: bool
) -> dict[int, float]:
    """The loss of a held-out person by the number of segments, all on the same folds."""
    fold, found = folds_of(persons, settings.folds, rng), dict[int, float]()
    with progress_bar(progress, "number of segments", settings.most) as report:
        for segments in range(1, settings.most + 1):
            found[segments] = held_out_loss(persons, segments, fold, settings.starts, rng, cycles)
            report(segments)
    return found
