"""Quality of predictions of choices and rankings: log-likelihood per situation, compared with constants alone.

The model of constants is the Plackett–Luce model with one worth for each alternative or item and no covariates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.choice_outcomes import Chosen, chosen
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.model.race import Array, Weights
from plackett.output.scores import SMALLEST
from plackett.responses import Outcomes, Response, make_response

if TYPE_CHECKING:
    from plackett.data.choice_sets import ChoiceSets

EXTRA = 0.01  # wins added to each label, so that a maximum exists
PASSES, MOVED = 5000, 1e-9  # maximum of passes, and the movement of log-worths at which they stop
Codes = npt.NDArray[np.intp]


class Quality(NamedTuple):
    """Mean of ln Pr of the outcomes, and the share in which the most probable came first."""

    log_likelihood: float
    right: float


def worths(outcomes: Outcomes, item: Codes, n_items: int, response: Response) -> Array:
    """Return ln λ (n_items,) at the mode, λ ~ Gam(1 + ε, n_items·ε); M-step λ = (n + ε)/(s + n_items·ε).

    Examples
    --------
    >>> import numpy as np
    >>> from plackett import Rankings
    >>> from plackett.responses import make_response
    >>> R = Rankings.from_pairs(["a", "b"], ["b", "a"], counts=[3, 1])
    >>> np.exp(worths(R.outcomes, R.item, 2, make_response("ranking"))).round(2)
    array([0.75, 0.25])
    """
    rows = make_engine("auto").rows(None, Observations.of_rankings(outcomes, item, response, n_items))
    log_worths = np.full(n_items, -np.log(n_items))
    for _ in range(PASSES):
        stats = rows.expect(Weights.point(log_worths[:, None]))
        new = np.log((stats.wins[:, 0] + EXTRA) / (stats.exposure[:, 0] + n_items * EXTRA))
        moved, log_worths = np.abs(new - log_worths).max(), new
        if moved < MOVED:
            break
    return log_worths


def mean_log_likelihood(outcomes: Outcomes, item: Codes, log_worths: Array, response: Response) -> float:
    """Return the mean of ln Pr(outcome) at given worths, weighted by counts."""
    rows = make_engine("auto").rows(None, Observations.of_rankings(outcomes, item, response, len(log_worths)))
    return float(rows.value(Weights.point(log_worths[:, None])) / outcomes.counts.sum())


def choice_constants(X: ChoiceSets, y: object) -> Array:
    """Return ln worth (A,) of the alternatives of choices, or of rankings of them."""
    seen = chosen(X, y)
    return worths(seen.outcomes, X.alternative[seen.entry], len(X.alternatives), _response(seen))


def quality_of_constants(log_worths: Array, X: ChoiceSets, y: object) -> Quality:
    """Return the quality of worths of the alternatives alone."""
    seen = chosen(X, y)
    found = np.where(X.available, log_worths, -np.inf).argmax(axis=1)
    value = mean_log_likelihood(seen.outcomes, X.alternative[seen.entry], log_worths, _response(seen))
    return Quality(value, _share(found, X, seen))


def quality_of_choices(model: Any, X: ChoiceSets, y: Any, groups: Any = None) -> Quality:
    """Return the quality of a fitted chooser; probabilities are bounded below by 1e-15."""
    X = X.with_schema(model.schema_)
    seen = chosen(X, y)
    values = np.maximum(model.log_likelihood(X, y, groups), np.log(SMALLEST))
    found = model.predict_proba(X, groups).argmax(axis=1)
    return Quality(float(np.average(values, weights=seen.outcomes.counts)), _share(found, X, seen))


def _share(found: Codes, X: ChoiceSets, seen: Chosen) -> float:
    return float(np.average(found == X.alternative[seen.first], weights=seen.outcomes.counts))


def _response(seen: Chosen) -> Response:
    return make_response("ranking" if seen.response == "choice" else seen.response)


def quality_of_rankings(model: Any, X: Any, R: Any) -> Quality:
    """Return the quality of a fitted ranker; the first place counts if it has a single item."""
    values = np.maximum(model.log_likelihood(X, R), np.log(SMALLEST) * np.diff(R.outcomes.start))
    R = R.with_items(model.items_)
    return Quality(float(np.average(values, weights=R.counts)), _first_right(np.log(model.predict_proba(X)), R))


def quality_of_worths(log_worths: Array, R: Any, response: Response) -> Quality:
    """Return the quality of one worth per item."""
    value = mean_log_likelihood(R.outcomes, R.item, log_worths, response)
    return Quality(value, _first_right(log_worths, R))


def _first_right(logs: Array, R: Any) -> float:
    """Return the share of rankings with a single first item in which this is the most probable available item."""
    start, bucket_start, sizes, counts = R.outcomes
    there = np.full((len(R), len(R.items)), -np.inf)
    there[R.situation, R.item] = np.broadcast_to(logs, there.shape)[R.situation, R.item]
    first = np.append(sizes, 0)[bucket_start[:-1]]
    alone = (np.diff(bucket_start) > 0) & (first == 1)
    if not counts[alone].any():
        return float("nan")
    return float(np.average(there.argmax(axis=1)[alone] == R.item[start[:-1]][alone], weights=counts[alone]))
