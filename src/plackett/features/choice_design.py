"""Design of choices: constants, attributes with or without a bend, persons' columns, and interactions.

Entry e of situation t, alternative a with attributes x_ta and a person's columns h_t, becomes the row

    z_e = (1{a = k} for all k but one,   B(x_ta),   h_t,   h_t·1{a = k} for all k but one),

standardised. With one component and one set of weights for all, h_t cancels and the model is conditional logit with
alternative-specific constants and interactions; a linear utility omits h_t, and of every text the indicator of its base
level. If alternatives have separate weights, these replace the constants, and z_e = (B(x_ta), h_t). The module knows
neither outcomes nor weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from plackett.data.base_levels import base_levels, base_places, level_places
from plackett.data.validation import check_range, plain
from plackett.features.normal_scores import knots_of, normal_scores
from plackett.features.standardise import mean_and_scale, standardise
from plackett.model.race import Array
from plackett.responses.base import in_order

if TYPE_CHECKING:
    from plackett.data.choice_sets import ChoiceSets

BENDS = ("none", "hinges", "scores")
ROUNDING = 1e-12  # of the size of the terms of a sum, below which it counts as 0
FEW = 5  # number of distinct values below which an attribute has no bend
Codes = npt.NDArray[np.intp]


class EntryTable(NamedTuple):
    """Attributes of entries and persons' columns of situations, as in `ChoiceSets`."""

    start: Codes  # (T + 1,) first entry of each situation
    alternative: Codes  # (entries,)
    values: Array  # (entries, attributes)
    context: Array  # (T, persons' columns)

    @classmethod
    def of(cls, X: Any) -> EntryTable:
        """Return the numbers of choice sets."""
        return cls(X.start, X.alternative, X.values, X.context)

    @property
    def situation(self) -> Codes:
        """Situation of each entry."""
        return np.repeat(np.arange(len(self.context)), np.diff(self.start))

    def take(self, some: Codes) -> EntryTable:
        """Select situations."""
        entries, start = in_order(some, self.start), np.append(0, np.cumsum(np.diff(self.start)[some]))
        return EntryTable(start, self.alternative[entries], self.values[entries], self.context[some])

    def with_attribute(self, f: int | list[int], x: Array) -> EntryTable:
        """Replace attribute f of all entries, or several attributes."""
        values = self.values.copy()
        values[:, f] = x
        return self._replace(values=values)

    def with_person(self, h: int | list[int], x: Array) -> EntryTable:
        """Replace the person's column h of all situations, or several columns."""
        context = self.context.copy()
        context[:, h] = x
        return self._replace(context=context)


class EntryTotals(NamedTuple):
    """Sums over entries by alternative, which add over situations."""

    n_entries: int
    seen: npt.NDArray[np.intp]  # (K,) number of entries
    weight: Array  # (K,) total weight of the entries
    sums: Array  # (K, attributes) weighted sums of attributes

    @classmethod
    def of(cls, X: ChoiceSets, weight: Array | None = None) -> EntryTotals:
        """Compute sums of choice sets; `weight` belongs to situations."""
        of_entries = np.repeat(np.ones(len(X)) if weight is None else weight, np.diff(X.start))
        K = len(X.alternatives)
        sums = np.zeros((K, X.values.shape[1]))
        np.add.at(sums, X.alternative, X.values * of_entries[:, None])
        seen = np.bincount(X.alternative, minlength=K)
        total = np.bincount(X.alternative, of_entries, K).astype(np.float64)
        return cls(len(X.alternative), seen, total, sums)

    def __add__(self, other: EntryTotals) -> EntryTotals:  # type: ignore[override]
        return EntryTotals(
            self.n_entries + other.n_entries, self.seen + other.seen, self.weight + other.weight, self.sums + other.sums
        )


class ChoiceDesign(BaseEstimator):
    """Columns of numbers for the entries of choice sets.

    Parameters
    ----------
    constants : bool
        True if alternatives have constants, and persons' columns interactions with them. The most frequent alternative
        is the base. An alternative that occurs in only one situation has no constant.
    bend : {"none", "hinges", "scores"}
        B(x): x itself; x and max(x − q, 0) for its three quartiles q; or its normal score. Attributes of fewer than
        five values have no bend.
    person : bool
        True to include persons' columns as main effects; in a linear utility they cancel.
    by_alternative : bool
        True for separate attributes of each alternative, x·1{a = k}; an attribute that is constant for an alternative
        is omitted there.
    base : label, optional
        Alternative without a constant; None: the one that is available most often.
    drop_first : bool
        True to leave out the indicator of the first level of each text, so that coefficients are identified; attributes
        then have no bend. By alternative it is the first level that the alternative has.

    Attributes
    ----------
    names_ : (d,) array
        Names of the columns.
    source_ : (d,) array
        Attribute or person's column that each column derives from; "constant" for constants.
    base_ : int
        Code of the alternative without a constant; −1 if there are no constants.
    centre_, spread_ : arrays
        Mean and scale of persons' columns before the products with constants.
    mean_, scale_ : (d,) arrays
        Mean and scale of all columns.
    unit_ : (d,) array
        Divisor that converts a slope along a standardised column to one per unit of its source.
    typical_ : (alternatives, attributes) array
        Average attributes of each alternative; of all entries if it does not occur.
    shares_ : (alternatives,) array
        Share of each alternative among all entries.
    own_ : (n, 2) array
        Attribute and alternative of the columns of attributes by alternative.
    base_levels_ : dict
        Base level of each text, with ``drop_first``.
    attribute_bases_, person_bases_ : arrays
        Attributes and persons' columns that indicate base levels, with ``drop_first``.
    """

    def __init__(
        self,
        constants: bool = True,
        bend: str = "none",
        person: bool = True,
        by_alternative: bool = False,
        base: Any = None,
        drop_first: bool = False,
    ):
        self.constants = constants
        self.bend = bend
        self.person = person
        self.by_alternative = by_alternative
        self.base = base
        self.drop_first = drop_first

    def fit(self, X: ChoiceSets, weight: Array | None = None) -> ChoiceDesign:
        """Learn names, scales and bends; `weight` belongs to situations."""
        if self.bend not in BENDS:
            raise ValueError(f"bend must be one of {list(BENDS)}, got {plain(self.bend)} instead.")
        if self.drop_first and self.bend != "none":
            raise ValueError(f"drop_first=True is for attributes without a bend, got bend={plain(self.bend)} as well.")
        for numbers, names in ((X.values, X.attributes), (X.context, X.person)):
            check_range(numbers.min(axis=0), numbers.max(axis=0), list(names))
        of_entries = np.repeat(np.ones(len(X)) if weight is None else weight, np.diff(X.start))
        bent = np.array([len(np.unique(x)) >= FEW for x in X.values.T], dtype=bool)
        self.bent_ = np.flatnonzero(bent) if self.bend != "none" else _none()
        self.quartiles_ = np.quantile(X.values[:, self.bent_], [0.25, 0.5, 0.75], axis=0)
        self.knots_ = (
            knots_of(X.values[:, self.bent_], of_entries) if self.bend == "scores" and len(self.bent_) else None
        )
        self.centre_, self.spread_ = mean_and_scale(X.context, np.ones(len(X)) if weight is None else weight)
        self.own_ = _varying(X, self.constants) if self.by_alternative else np.empty((0, 2), dtype=np.intp)
        if self.drop_first:
            self._leave_bases_out(X)
        self._know(X, EntryTotals.of(X, weight))
        self._rescale(*mean_and_scale(self.columns(EntryTable.of(X)), of_entries))
        return self

    def fit_straight(self, X: ChoiceSets, totals: EntryTotals, centre: Array, spread: Array) -> ChoiceDesign:
        """Fit a design without bends from alternatives, columns and sums of distributed situations.

        The columns can then be computed; `rescaled` must set their scales.
        """
        self.bent_, self.quartiles_, self.knots_ = _none(), np.empty((3, 0)), None
        self.centre_, self.spread_, self.own_ = centre, spread, np.empty((0, 2), dtype=np.intp)
        self._know(X, totals)
        return self

    def rescaled(self, mean: Array, scale: Array) -> ChoiceDesign:
        """Set means and standard deviations of all columns."""
        self._rescale(mean, scale)
        return self

    def _leave_bases_out(self, X: ChoiceSets) -> None:
        """Store the base levels of texts, and leave them out of the attributes by alternative."""
        self.attribute_bases_, self.person_bases_ = base_places(X.attribute_columns), base_places(X.person_columns)
        self.base_levels_ = base_levels((*X.attribute_columns, *X.person_columns))
        if self.by_alternative:
            bases, others = _bases_by_alternative(X, self.constants)
            for name, words in others.items():
                self.base_levels_[name] += f" ({', '.join(words)})"
            self.own_ = self.own_[[(f, k) not in bases for f, k in self.own_.tolist()]]

    def left_out(self) -> tuple[Codes, Codes]:
        """Return attributes and persons' columns that are left out."""
        return (self.attribute_bases_, self.person_bases_) if self.drop_first else (_none(), _none())

    def _know(self, X: ChoiceSets, totals: EntryTotals) -> None:
        """Store averages, and the alternatives with constants; `X` provides alternatives and columns."""
        _, seen, total, sums = totals
        everywhere = sums.sum(axis=0) / total.sum()
        self.typical_ = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], everywhere)
        self.shares_ = total / total.sum()
        self.base_ = self._base_of(X, seen) if self.constants and (seen > 1).any() else -1
        others = (seen > 1) & (np.arange(len(seen)) != self.base_)
        self.with_constant_ = np.flatnonzero(others) if self.base_ >= 0 else _none()
        self._name(X)

    def _base_of(self, X: ChoiceSets, seen: npt.NDArray[np.intp]) -> int:
        """Return the code of the alternative without a constant."""
        if self.base is None:
            return int(np.argmax(seen))
        labels = X.alternatives.tolist()
        if self.base not in labels:
            raise ValueError(f"base must be one of the alternatives {labels}, got {plain(self.base)} instead.")
        return labels.index(self.base)

    def _rescale(self, mean: Array, scale: Array) -> None:
        self.mean_, self.scale_ = mean, scale
        together = np.tile(_without(self.spread_, self.left_out()[1]), len(self.with_constant_))
        self.unit_ = self.scale_ * np.append(np.ones(len(self.scale_) - len(together)), together)

    def columns(self, table: EntryTable) -> Array:
        """Return the columns of all entries (entries, d), in the units of attributes and persons' columns."""
        check_is_fitted(self)
        bases = self.left_out()
        persons = _without(table.context, bases[1])[table.situation]
        apart = standardise(persons, _without(self.centre_, bases[1]), _without(self.spread_, bases[1]))
        marks = (table.alternative[:, None] == self.with_constant_).astype(np.float64)
        together = (marks[:, :, None] * apart[:, None, :]).reshape(len(marks), marks.shape[1] * apart.shape[1])
        if self.by_alternative:
            attribute, alternative = self.own_.T
            attributes = table.values[:, attribute] * (table.alternative[:, None] == alternative)
        else:
            attributes = _without(self._bent(table.values), bases[0])
        return np.column_stack([marks, attributes, *([persons] if self.person else []), together])

    def known_base_levels(self) -> dict[str, str]:
        """Return the base level of each text; none if all levels have columns."""
        return self.base_levels_ if self.drop_first else {}

    def to_units(self) -> Array:
        """Matrix (d, d) that maps coefficients of standardised columns to the units of the data.

        Persons' columns are centred in their products with constants; a constant in the units of the data belongs to a
        person whose columns are all 0.
        """
        found, centre = np.diag(1 / self.unit_), _without(self.centre_, self.left_out()[1])
        n, q = len(self.with_constant_), len(centre)
        products = np.arange(len(self.unit_) - n * q, len(self.unit_)).reshape(n, q)
        for k in range(n):
            found[k, products[k]] = -centre / self.unit_[products[k]]
        return found

    def in_units(self, table: EntryTable, to_standard: Array) -> Array:
        """Return the columns whose coefficients are in the units of the data; what is rounding alone is 0.

        `to_standard` maps these coefficients to those of standardised columns.
        """
        Z = self.transform(table)
        found: Array = Z @ to_standard
        size = np.abs(Z).max(axis=0, initial=0.0) @ np.abs(to_standard)
        found[:, np.abs(found).max(axis=0, initial=0.0) <= ROUNDING * size] = 0.0
        return found

    def transform(self, table: EntryTable) -> Array:
        """Return the standardised columns for learned directions; constant columns are zero."""
        return standardise(self.columns(table), self.mean_, self.scale_)

    def average(self) -> EntryTable:
        """Return one situation with all alternatives, their average attributes, and an average person."""
        K = len(self.typical_)
        return EntryTable(np.array([0, K]), np.arange(K), self.typical_, self.centre_[None])

    def _bent(self, values: Array) -> Array:
        """Return B(x) of all attributes."""
        if self.bend == "scores" and self.knots_ is not None:
            values = values.copy()
            values[:, self.bent_] = normal_scores(values[:, self.bent_], self.knots_)
        if self.bend == "hinges":
            past = np.maximum(values[:, self.bent_, None] - self.quartiles_.T, 0.0)
            values = np.column_stack([values, past.reshape(len(values), 3 * len(self.bent_))])
        return values

    def _name(self, X: ChoiceSets) -> None:
        bases, attributes = self.left_out(), list(map(str, X.attributes))
        persons = [str(name) for name in _without(np.array(X.person, dtype=object), bases[1])]
        marked = [str(X.alternatives[k]) for k in self.with_constant_]
        alone = persons if self.person else []
        scored = {attributes[f] for f in self.bent_} if self.bend == "scores" else set[str]()
        hinged = [attributes[f] for f in self.bent_] if self.bend == "hinges" else []
        sources = _without(np.array(attributes, dtype=object), bases[0]).tolist()
        titles = [f"score of {name}" if name in scored else name for name in sources]
        if self.by_alternative:
            sources = [attributes[f] for f, _ in self.own_]
            titles = [f"{attributes[f]}: {X.alternatives[k]}" for f, k in self.own_]
        self.names_ = np.array(
            [
                *(f"constant: {k}" for k in marked),
                *titles,
                *(f"{name} past {q:.4g}" for name, each in zip(hinged, self.quartiles_.T, strict=False) for q in each),
                *alone,
                *(f"{name}: {k}" for k in marked for name in persons),
            ],
            dtype=object,
        )
        self.source_ = np.array(
            [
                *("constant" for _ in marked),
                *sources,
                *(name for name in hinged for _ in range(3)),
                *alone,
                *(name for _ in marked for name in persons),
            ],
            dtype=object,
        )


def _varying(X: ChoiceSets, constants: bool) -> Codes:
    """Return attributes and alternatives (n, 2) with more than one value; without constants, with a non-zero value."""
    found = []
    for f in range(X.values.shape[1]):
        for k in range(len(X.alternatives)):
            x = X.values[X.alternative == k, f]
            if len(x) and (np.ptp(x) > 0 if constants else x.any()):
                found.append((f, k))
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _bases_by_alternative(X: ChoiceSets, constants: bool) -> tuple[set[tuple[int, int]], dict[str, list[str]]]:
    """Return the indicators (attribute, alternative) of base levels, and those that differ from the usual, in words.

    With constants the base level of an alternative is the first that it has: the others would add up to its constant.
    """
    found, others = set[tuple[int, int]](), dict[str, list[str]]()
    usual = base_levels(X.attribute_columns)
    for name, places in level_places(X.attribute_columns):
        if usual[name] not in places:  # one of two levels
            continue
        for k, label in enumerate(X.alternatives.tolist()):
            there = [level for level, f in places.items() if X.values[X.alternative == k, f].any()]
            base = there[0] if there and constants else usual[name]
            found.add((places[base], k))
            if base != usual[name]:
                others.setdefault(name, []).append(f"{label}: {base}")
    return found, others


def _without(x: npt.NDArray[Any], places: Codes) -> npt.NDArray[Any]:
    """Return x (…, n) without some of its last axis; x itself if there are none."""
    return np.delete(x, places, axis=-1) if len(places) else x


def _none() -> Codes:
    return np.empty(0, dtype=np.intp)
