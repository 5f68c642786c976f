"""Check whether the likelihood of rankings has a maximum, which EM with a shape of at most 1 needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import lsmr

from plackett.data.rankings import Rankings
from plackett.data.validation import plain
from plackett.engines.base import Rows
from plackett.engines.pairs import LOWEST, PairRows
from plackett.inference.em import EM
from plackett.model.race import Array, Weights
from plackett.posterior.base import RacePosterior
from plackett.posterior.weights import Point
from plackett.responses.base import Outcomes, of_pairs

DRAW = "Use inference='gibbs', whose posterior exists in any case."
EXACT = 1e-8  # share of a column that is left where it is a linear function of others
GONE = 1e-7  # share of the information on coefficients that is left where they diverge
NAMED = 8  # number of items of a component that an error names


def no_maximum(network: Rankings, rows: Rows) -> str | None:
    """Explain why the likelihood has no maximum, or return None; `network` holds who was placed above whom."""
    if rows.absolute:
        arrived = rows.expect(Weights.point(np.zeros((rows.n_groups, rows.n_features)))).wins.sum(axis=1)
        never = network.items[arrived == 0]
        return f"nobody placed {_named(never)} above another item" if len(never) else None
    parts = network.components()
    if len(parts) == 1:
        return None
    listed = "; ".join(_named(np.array(part, dtype=object)) for part in parts[:NAMED])
    more = "; …" if len(parts) > NAMED else ""
    return (
        f"the items fall into {len(parts)} components, of which no later one was ever placed above an earlier: "
        f"{listed}{more}"
    )


def network_of_pairs(R: Rankings, ties_count: bool, order_effect: bool) -> Rankings:
    """Return the comparisons; a tie that counts is a win of both. Raises if a parameter has no maximum."""
    (_, _, sizes, counts), n = R.outcomes, len(R)
    if not of_pairs(R.outcomes) or not (ties_count or order_effect):
        return R
    (upper, lower), tied = R.item.reshape(n, 2).T, sizes == 2
    if ties_count and tied.all():
        raise ValueError(f"every pair is a tie, so that the parameter of ties has no maximum. {DRAW}")
    if order_effect and R.first is not None:
        won, lost = (counts[~tied & (R.first == each)].sum() for each in (upper, lower))
        if (won == 0 or lost == 0) and not tied.any():
            often = "lost" if won == 0 else "won"
            raise ValueError(f"who was shown first {often} every time, so that the order effect has no maximum. {DRAW}")
    if not (ties_count and tied.any()):
        return R
    pairs = R.item.reshape(n, 2)
    won = np.concatenate([pairs, pairs[tied, ::-1]])
    outcomes = Outcomes.pairs(np.zeros(len(won), dtype=bool), np.append(counts, counts[tied]))
    return Rankings(R.items, won.ravel(), outcomes, R.unranked)


def check_identified(rows: Rows) -> None:
    """Raise if an effect of order or of an attribute cannot be told from worths or from the others."""
    pairs = rows.walk()
    assert isinstance(pairs, PairRows)
    weight = np.sqrt(pairs.counts.sum(axis=0))
    columns = pairs.effects * weight[:, None]
    n, K = len(weight), pairs.n_groups
    place, number = np.append(pairs.first, pairs.second), np.tile(np.arange(n), 2)
    worths = sparse.csr_array((np.append(weight, -weight), (number, place)), shape=(n, K))
    left = np.empty_like(columns)
    for j, column in enumerate(columns.T):
        left[:, j] = column - worths @ lsmr(worths, column, atol=EXACT / 100, btol=EXACT / 100, maxiter=20 * K)[0]
    _, sizes, directions = np.linalg.svd(left / np.linalg.norm(columns, axis=0), full_matrices=False)
    if sizes[-1] < EXACT * np.sqrt(len(sizes)):
        name = pairs.parameters[len(pairs.law.parameters) + int(np.argmax(np.abs(directions[-1])))].name
        raise ValueError(
            f"the effect of {name!r} cannot be told from the worths of the items or from the other effects: it is a "
            f"linear function of them. Leave it out. {DRAW}"
        )


def check_attained(rows: Rows, posterior: RacePosterior) -> None:
    """Raise if the coefficients of attributes diverged, as the information on one of them is gone."""
    pairs = rows.walk()
    assert isinstance(pairs, PairRows) and isinstance(posterior, Point) and posterior.parameters is not None
    with np.errstate(divide="ignore"):
        x = np.log(posterior.weights[:, 0]) + (0.0 if posterior.log_mass is None else posterior.log_mass)
    free = np.array([p.free(value) for p, value in zip(pairs.parameters, posterior.parameters, strict=True)])
    n = len(pairs.parameters) - pairs.differences.shape[1]
    there = pairs.curvature_of_parameters(np.maximum(x, x.max() + LOWEST), free)[n:, n:]
    start = np.array([p.free(p.start) for p in pairs.parameters])
    before = pairs.curvature_of_parameters(np.zeros_like(x), start)[n:, n:]
    least = eigh(there, before, eigvals_only=True)[0]
    if not least > GONE:
        raise ValueError(
            "a linear function of the attributes and worths tells who wins without exception, so that the coefficients "
            f"have no maximum. {DRAW}"
        )


def _named(items: npt.NDArray[np.generic]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(map(plain, items[:NAMED].tolist())) + more


def check_maximum(network: Rankings, rows: Rows, shape: float) -> None:
    """Raise if worths would diverge at this shape."""
    why = no_maximum(network, rows) if shape <= 1 else None
    if why is not None:
        raise ValueError(
            f"with shape={shape:g} there is no maximum: {why}. Use inference='gibbs', whose posterior exists in any "
            "case, or a shape above 1, or leave such items out."
        )


def shapes_with_maximum(em: EM, shapes: Array, network: Rankings, rows: Rows) -> Array:
    """Return the shapes to try: only those above 1 if others may have no maximum; raises if the user chose others."""
    if shapes.min() > 1 or no_maximum(network, rows) is None:
        return shapes
    if not np.array_equal(em.shapes, EM().shapes):
        check_maximum(network, rows, float(shapes.min()))
    return shapes[shapes > 1]
