"""Choice between laws of ties of pairs by the log-loss of held-out votes.

Votes are divided into folds within each distinct pair and outcome, so that neither the order of the rows nor their
division into counts has an effect. Each fold is predicted by the posterior mode of the others, at shape 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plackett.engines.pairs import PairRows
from plackett.inference.worth_mode import Density, WorthPrior
from plackett.model.race import Array
from plackett.responses.base import Response

LAWS_OF_TIES = ("photo-finish", "davidson")
FOLDS = 5
SHAPE = 1.0  # of worths; parameters have their usual prior, so that a mode exists for any votes
ROUNDING = 1e-9  # a sum of weights that is less than this below a whole number counts as one


def divided(counts: Array, rng: np.random.Generator) -> Array:
    """Divide counts among folds at random, (fold, …); what is left of a fractional count goes to one fold."""
    whole = np.floor(counts + ROUNDING)
    parts = np.moveaxis(rng.multinomial(whole.astype(np.int64), np.full(FOLDS, 1.0 / FOLDS)), -1, 0)
    rest = rng.integers(FOLDS, size=counts.shape) == np.arange(FOLDS).reshape(-1, *[1] * counts.ndim)
    found: Array = parts + rest * np.maximum(counts - whole, 0.0)
    return found


def held_out_losses(rows: PairRows, laws: Sequence[Response], rng: np.random.Generator) -> list[float]:
    """Return the held-out log-loss a vote of each law."""
    parts, found = divided(rows.counts, rng), []
    prior = WorthPrior(SHAPE, 1.0, 0.0, scale_free=True)
    for law in laws:
        under, start, loss = rows.under(law), None, 0.0
        for part in parts:
            start = Density(under.counted(rows.counts - part), prior).mode(start)
            loss -= under.counted(part).slopes(start[: rows.n_groups], start[rows.n_groups :])[0]
        found.append(loss / rows.n_seen)
    return found
