"""Standardised covariates and normal scores of rows in blocks, from sums over the blocks.

A normal score is Φ⁻¹ of the fraction of rows below. Its knots are evenly spaced among the values of the rows on the
client, plus the overall minimum and maximum. The fraction of all rows below each knot is exact: the rows on the client
only determine where the knots are.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from scipy.special import ndtri

from plackett.cluster.held import Held
from plackett.cluster.moments import Moments
from plackett.cluster.observed import masses, moments
from plackett.features.normal_scores import SMALLEST, knots_of
from plackett.features.standardise import Scaling
from plackett.model.race import Array


def scaling_from_sums(held: Held, knots: Array | None = None) -> Scaling:
    """Return means and deviations of the covariates, or of their scores."""
    found, low, high = zip(*held.each(moments, knots), strict=True)
    both = reduce(Moments.__add__, found)
    mean, scale = both.scale(np.min(low, axis=0), np.max(high, axis=0))
    return Scaling(mean, scale, knots)


def scores_from_sums(held: Held, some: Array) -> Scaling:
    """Return normal scores of all rows, with knots from some of them."""
    _, low, high = zip(*held.each(moments, None), strict=True)
    seen = np.vstack([some, np.min(low, axis=0), np.max(high, axis=0)])
    knots = knots_of(seen, np.ones(len(seen)))
    below, at = reduce(add, held.each(masses, knots[0]))
    shares = (below + at / 2) / (below + at)[:, -1:]
    scores = ndtri(np.clip(shares, SMALLEST, 1 - SMALLEST))
    for f, known in enumerate(np.isfinite(knots[0])):
        knots[1, f] = scores[f, known][-1]
        knots[1, f, known] = scores[f, known]
    return scaling_from_sums(held, knots)
