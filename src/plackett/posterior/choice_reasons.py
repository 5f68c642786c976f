"""Explanation of the prediction of one situation, by attributes or by the race of its features."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from plackett.data.choice_sets import ChoiceSets
from plackett.data.covariates import of_columns
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.model.mixture import Entries
from plackett.model.race import Array
from plackett.posterior.base import Codes, Explanation, Table, objects
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.pool import Pool
from plackett.posterior.reasons import by_contribution, by_winner
from plackett.posterior.segment_members import SegmentMembers
from plackett.posterior.stacked import DirectionMembers
from plackett.posterior.weights import WeightMembers, WeightModel

PERSON = "person"


class ChoiceModel(WeightModel, Protocol):
    """What posteriors of choices read of a model."""

    weights: str
    features: Any
    alternatives_: npt.NDArray[Any]
    attributes_: list[Any]
    person_: list[Any]
    group_labels_: npt.NDArray[Any]
    schema_: ChoiceSets
    design_: ChoiceDesign

    def _one(self, X: Any) -> tuple[EntryTable, Codes]:
        """Return the table of one situation, of an unknown person."""

    def _entries(self, table: EntryTable, person: Codes | None) -> Entries:
        """Return situations as input of the posterior."""

    def _number_in_words(self) -> str:
        """How the number of segments was chosen."""


class ReasonPart(NamedTuple):
    """Line of the explanation: the columns of the entries that it adds up."""

    feature: str
    of: Any
    value: Any
    columns: npt.NDArray[np.bool_]  # columns of the design
    entry: slice


def explain_choice(
    model: ChoiceModel, members: DirectionMembers | SegmentMembers, row: EntryTable, entries: Entries, prob: float
) -> Explanation:
    """Explain the predicted alternative's log-odds by attributes of all alternatives and by persons' columns.

    In the reference every available alternative has its own average attributes, and the person is average. With
    segments the log-odds are those of the mixture of their predictions.
    """
    design, members = model.design_, members.meeting(entries)
    k = int(np.argmax(Pool.of(members, entries).prediction()[0, row.alternative]))
    typical = row._replace(values=design.typical_[row.alternative], context=design.centre_[None])
    z = design.transform(typical)
    change, start = entries.Z - z, members.component_scores(entries._replace(Z=z))
    along = np.einsum("ef,smf->sem", change, members.directions)
    within = members.within(entries)
    line = Mixture(start, along, None, members.share, members.modes, members.power)
    if within is not None:
        line = line._replace(points=members.points, within=within[:, 0])
    parts = _parts(model, row)

    def onto(gradients: Array) -> Array:
        by_entry = gradients * change
        sums = [by_entry[..., part.entry, :][..., part.columns].sum(axis=(-2, -1)) for part in parts]
        return np.stack(sums, axis=-1)

    found = contributions(line, k, members.directions, onto)
    names: Table = {"feature": objects([part.feature for part in parts]), "of": objects([part.of for part in parts])}
    told = {
        "class": _label(model, row.alternative[k]),
        "reference_is": "every alternative with its average attributes, and an average person",
    }
    certain = model.posterior_.no_interval is not None
    return by_contribution(names, [part.value for part in parts], found, told, prob, certain)


def _parts(model: ChoiceModel, row: EntryTable) -> list[ReasonPart]:
    """List each attribute of each alternative and each column of the person; text indicators are one part."""
    source, schema = model.design_.source_, model.schema_
    found = []
    for column in of_columns(schema.attribute_columns):
        own = np.isin(source, [str(model.attributes_[f]) for f in column.places])
        for e, a in enumerate(row.alternative):
            found.append(ReasonPart(column.name, _label(model, a), column.value(row.values[e]), own, slice(e, e + 1)))
    for column in of_columns(schema.person_columns):
        own = np.isin(source, [str(model.person_[h]) for h in column.places])
        found.append(ReasonPart(column.name, PERSON, column.value(row.context[0]), own, slice(None)))
    return found


def explain_race(
    model: ChoiceModel, members: WeightMembers, row: EntryTable, entries: Entries, prob: float
) -> Explanation:
    """Return Pr that feature j of alternative e wins, W_ej λ_gj / Σ, the most probable first."""
    members = members.meeting(entries)
    group = members.group_of(entries)
    W = np.exp(entries.Z - entries.Z.max())
    rates = W * members.weights[np.arange(len(members.share))[:, None], group if group.ndim == 2 else group[None]]
    total = rates.sum(axis=(1, 2), keepdims=True)
    shares = np.where(total > 0, rates / np.where(total > 0, total, 1.0), 1 / rates[0].size)
    names, labels = model._feature_names(), objects([_label(model, a) for a in row.alternative])
    columns: Table = {"alternative": np.repeat(labels, len(names)), "feature": np.tile(names, len(labels))}
    found, attributes = by_winner(columns, shares, prob, model.posterior_.no_interval is not None)
    for name, bound in (("lower", np.minimum), ("upper", np.maximum)):
        if name in found:
            found[name] = bound(found[name], found["probability"])
    return Explanation(found, attributes)


def _label(model: ChoiceModel, alternative: int) -> Any:
    return model.alternatives_[alternative : alternative + 1].tolist()[0]
