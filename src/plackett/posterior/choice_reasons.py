"""Why this alternative? The prediction of one situation taken apart, by attributes or by the race of its features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plackett.data.covariates import of_columns
from plackett.features.choice_design import EntryTable
from plackett.model.race import Array
from plackett.posterior.base import Explanation, Table
from plackett.posterior.choices import Codes, objects
from plackett.posterior.contributions import exact, log_odds, slope

PANELS = 40  # of the line from the reference to the situation
NODES, SHARES = (part / 2 for part in np.polynomial.legendre.leggauss(5))  # of a panel of length 1 about 0
PLACES = ((np.arange(PANELS)[:, None] + 0.5 + NODES) / PANELS).ravel()
WEIGHTS = np.tile(SHARES / PANELS, PANELS)
SMALLEST = 1e-300
PERSON = "person"


class Line:
    """Log-rates of one situation on the way from a reference: scores start_sej + t change_sej, 0 ≤ t ≤ 1.

    With F the log-odds of alternative k under p ∝ (Σ_s share_s p_s)^κ and ρ_sej the share of component j in r_e,
    column f of entry e contributes Δz_ef ∫ Σ_sj ∂F/∂ln r_se ρ_sej β_sjf dt; these add up to F at 1 less F at 0.
    """

    def __init__(self, start: Array, change: Array, share: Array, modes: int, power: float):
        self.start, self.change, self.share, self.power = start, change, share, power
        self.n_draws = len(share) - modes

    def at(self, t: float) -> tuple[Array, Array]:
        """ρ (S, E, M) and p_s (S, E)."""
        scores = self.start + t * self.change
        top = scores.max(axis=(1, 2), keepdims=True)
        parts = np.exp(scores - top)
        rates = np.maximum(parts.sum(axis=2), SMALLEST)
        return parts / rates[:, :, None], rates / rates.sum(axis=1, keepdims=True)

    def odds(self, t: float, k: int) -> tuple[float, Array]:
        """F of the prediction, and under each draw (S',)."""
        p = self.at(t)[1]
        point = log_odds(self.share @ p, k, self.power, SMALLEST)
        return float(point), log_odds(p[: self.n_draws], k, self.power, SMALLEST)

    def slopes(self, k: int) -> tuple[Array, Array]:
        """∫ ∂F/∂score dt: of the prediction (S, E, M), and under each draw (S', E, M)."""
        point, own = np.zeros_like(self.start), np.zeros_like(self.start[: self.n_draws])
        for t, weight in zip(PLACES, WEIGHTS, strict=True):
            rho, p = self.at(t)
            rising = slope(self.share @ p, k, self.power, SMALLEST)
            pull = self.share[:, None] * p * (rising - (p @ rising)[:, None])
            point += weight * pull[:, :, None] * rho
            some = p[: self.n_draws]
            rising = slope(some, k, self.power, SMALLEST)
            pull = some * (rising - (some * rising).sum(axis=1, keepdims=True))
            own += weight * pull[:, :, None] * rho[: self.n_draws]
        return point, own


def explain_choice(model: Any, row: EntryTable, person: Codes, prob: float) -> Explanation:
    """Contributions of each alternative's attributes and of persons' columns to the log-odds of what is predicted.

    The reference has every available alternative with its own average attributes, and an average person.
    """
    posterior, design, entries = model.posterior_, model.design_, model._entries(row, person)
    k = int(np.argmax(posterior.predict(entries)[0, row.alternative]))
    typical = row._replace(values=design.typical_[row.alternative], context=design.centre_[None])
    z0 = design.transform(typical)
    change = entries.features - z0
    some, group, share, modes, power = posterior.stand_ins(entries)
    directions, log_weights, _ = posterior.members(every=False)
    directions, log_weights = directions[some], log_weights[some]
    of_groups = log_weights[np.arange(len(some))[:, None], group if group.ndim == 2 else group[None]]
    line = Line(_scores(z0, directions) + of_groups, _scores(change, directions), share, modes, power)
    of_point, of_draws = line.slopes(k)
    of_entries = np.einsum("sem,smf->ef", of_point, directions) * change
    of_entries_drawn = np.einsum("sem,smf->sef", of_draws, directions[: len(of_draws)]) * change
    parts = _parts(model, row)
    (reference, at_first), (prediction, at_last) = line.odds(0.0, k), line.odds(1.0, k)
    centre = exact(np.array([[(of_entries * part.mask).sum() for part in parts]]), np.array([prediction - reference]))[
        0
    ]
    drawn = np.stack([(of_entries_drawn * part.mask).sum(axis=(1, 2)) for part in parts], axis=1)
    kind = object if any(isinstance(part.value, str) for part in parts) else np.float64
    columns: Table = {
        "feature": np.array([part.feature for part in parts], dtype=object),
        "of": objects([part.of for part in parts]),
        "value": np.array([part.value for part in parts], dtype=kind),
        "contribution": centre,
    }
    columns |= _interval(posterior.no_interval is None, centre, exact(drawn, at_last - at_first), prob)
    order = np.argsort(-np.abs(centre), kind="stable")
    attributes = {
        "class": _label(model, row.alternative[k]),
        "reference": reference,
        "prediction": prediction,
        "reference_is": "every alternative with its average attributes, and an average person",
        "prob": prob,
    }
    return Explanation({name: column[order] for name, column in columns.items()}, attributes)


class Part(NamedTuple):
    """A line of the explanation: which columns of which entries it adds up."""

    feature: str
    of: Any
    value: Any
    mask: Array  # (entries, columns)


def _parts(model: Any, row: EntryTable) -> list[Part]:
    """Each attribute of each alternative, and each of the person's columns; the indicators of a text are one."""
    source, E, schema = model.design_.source_, len(row.alternative), model.schema_
    found = []
    for column in of_columns(schema.attribute_columns):
        own = np.isin(source, [str(model.attributes_[f]) for f in column.places])
        for e, a in enumerate(row.alternative):
            mask = (np.arange(E) == e)[:, None] * own
            found.append(Part(column.name, _label(model, a), column.value(row.values[e]), mask))
    for column in of_columns(schema.person_columns):
        own = np.isin(source, [str(model.person_[h]) for h in column.places])
        found.append(Part(column.name, PERSON, column.value(row.context[0]), np.ones((E, 1)) * own))
    return found


def explain_race(model: Any, row: EntryTable, person: Codes, prob: float) -> Explanation:
    """Pr that feature j of alternative e wins, W_ej λ_gj / Σ of all, the most probable first."""
    posterior, entries = model.posterior_, model._entries(row, person)
    some, group, *_ = posterior.stand_ins(entries)
    weights = posterior.members(every=False)[some]
    W = np.exp(entries.features - entries.features.max())
    rates = W * weights[np.arange(len(some))[:, None], group if group.ndim == 2 else group[None]]
    total = rates.sum(axis=(1, 2), keepdims=True)
    shares = np.where(total > 0, rates / np.where(total > 0, total, 1.0), 1 / rates[0].size)
    names = model._feature_names()
    labels = objects([_label(model, a) for a in row.alternative])
    centre = shares.mean(axis=0).ravel()
    columns: Table = {
        "alternative": np.repeat(labels, len(names)),
        "feature": np.tile(names, len(labels)),
        "probability": centre,
    }
    if posterior.no_interval is None:
        columns |= _interval(True, centre, shares.reshape(len(shares), -1), prob)
    order = np.argsort(-centre, kind="stable")
    return Explanation({name: column[order] for name, column in columns.items()}, {})


def _scores(z: Array, directions: Array) -> Array:
    """z_e·β_sj, (S, E, M)."""
    scores: Array = np.einsum("ef,smf->sem", z, directions)
    return scores


def _interval(drawn: bool, centre: Array, draws: Array, prob: float) -> Table:
    if not drawn:
        return {"lower": np.full(len(centre), np.nan), "upper": np.full(len(centre), np.nan)}
    tail = (1 - prob) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    return {"lower": np.minimum(lower, centre), "upper": np.maximum(upper, centre)}


def _label(model: Any, alternative: int) -> Any:
    return model.alternatives_[alternative : alternative + 1].tolist()[0]
