"""Comparisons of two items as observations: effects of order and of attributes, and the choice of a law of ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plackett.compute.blas import one_blas_thread
from plackett.data.comparisons import root_mean_squares
from plackett.data.observations import Observations
from plackett.data.rankings import Rankings
from plackett.engines.pairs import PairRows
from plackett.inference.tie_choice import LAWS_OF_TIES, held_out_losses
from plackett.ranking import shown_rows
from plackett.responses import make_response
from plackett.responses.attribute_effect import AttributeEffect, coefficient
from plackett.responses.base import of_pairs, parameters_of
from plackett.responses.order_effect import OrderEffect


def losses_of_ties(R: Rankings, ordered: bool, seed: np.random.SeedSequence) -> dict[str, float] | None:
    """Return the held-out log-loss a vote of each law of ties; None unless rankings are pairs, some of them tied."""
    if not (of_pairs(R.outcomes) and R.tied and R.counts.any()):
        return None
    outcomes, K = R.outcomes, len(R.items)
    each = (Observations.of_rankings(outcomes, R.item, make_response(law), K) for law in LAWS_OF_TIES)
    seen = [with_effects(of_law, R, ordered) for of_law in each]
    with one_blas_thread():
        losses = held_out_losses(PairRows(seen[0]), [of_law.response for of_law in seen], np.random.default_rng(seed))
    return dict(zip(LAWS_OF_TIES, losses, strict=True))


def with_effects(seen: Observations, R: Rankings, ordered: bool) -> Observations:
    """Return the observations of R with an order effect, if `ordered`, and with the effects of its attributes."""
    seen = _with_order(seen, R) if ordered else seen
    if R.attributes is None:
        return seen
    units = root_mean_squares(R.attributes, R.counts)
    taken = {each.name for each in parameters_of(seen.response)}
    for name, unit in zip(R.attribute_names, units, strict=True):
        if not unit > 0.0:
            raise ValueError(f"the attribute {name!r} is 0 in all comparisons, so that nothing is learned of it.")
        if name in taken:
            raise ValueError(f"the attribute {name!r} has the name of a parameter of the model; rename its column.")
    response = AttributeEffect(seen.response, tuple(map(coefficient, R.attribute_names, units)))
    return replace(seen, response=response, differences=R.attributes)  # type: ignore[arg-type]


def _with_order(seen: Observations, R: Rankings) -> Observations:
    """Return the observations with the entries shown first."""
    if R.first is None or (R.first < 0).all():
        raise ValueError(
            "order_effect=True needs to know what was shown first. Give Rankings.from_pairs(..., first=...), or leave "
            "order_effect out."
        )
    situations = seen.all_situations._replace(row=shown_rows(R))
    return replace(seen, situations=situations, response=OrderEffect(seen.response))  # type: ignore[arg-type]
