"""Posterior of random tastes: draws of the population law, and of the tastes of the fitted persons.

Coefficients c_ik are in the units of the data, for columns z in these units: ln r = z·c_i. A new person is drawn from
the law, and predictions are averages over the population under each draw of the law. Persons in the fit have their own
tastes, stored for every `every`-th draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.data.choice_outcomes import Chosen
from plackett.model.diagnostics import agreement
from plackett.model.mixture import POOLED, Entries
from plackett.model.race import Array
from plackett.model.taste_law import TasteLaw, central, correlations, deviations, normal_points
from plackett.posterior.base import Explanation, Quantities, Table, Variables, rounded
from plackett.posterior.choice_reasons import ChoiceModel, explain_choice
from plackett.posterior.choosers import (
    ChoicePosterior,
    alternatives_in_words,
    as_outcomes,
    bases_in_words,
    log_probability_under,
)
from plackett.posterior.pool import Pool, outcome_log_values, pools
from plackett.posterior.stacked import DirectionMembers

SPREAD_DRAWS, SPREAD_POINTS = 160, 64  # draws, and persons of the population per draw, for intervals
POINTS, EVERY_POINTS = 8, 16  # persons per draw for predictions, and per draw of the chains


@dataclass(frozen=True)
class TasteMembers(DirectionMembers):
    """Tastes of new persons, each as a direction with weight 1; and of known persons under the same draws.

    Attributes
    ----------
    draw : (S,) array
        Draw of `known` that each member belongs to.
    known : (draws, N, d) array, optional
        b of the persons of the fit.
    fixed : (draws, q) array, optional
        Fixed coefficients under these draws.
    law : TasteLaw, optional
        The law of b.
    to_standard : (p, p) array, optional
        Maps coefficients to those of standardised columns.
    """

    parameters: ClassVar[tuple[str, ...]] = ("directions", "log_weights", "draw")
    draw: npt.NDArray[np.intp] = field(kw_only=True)
    known: Array | None = field(default=None, kw_only=True)
    fixed: Array | None = field(default=None, kw_only=True)
    law: TasteLaw | None = field(default=None, kw_only=True)
    to_standard: Array | None = field(default=None, kw_only=True)

    def meeting(self, entries: Entries, times: int = 1) -> Self:
        """Return these members, which include new persons."""
        return self

    def log_rates(self, entries: Entries) -> Array:
        """Return ln r_e (S, entries)."""
        found: Array = (self.directions[:, 0] @ entries.Z.T)[:, entries.row]
        if self.known is None or self.fixed is None or self.law is None or self.to_standard is None:
            return found
        order = np.argsort(entries.group, kind="stable")
        group = entries.group[order]
        for g in np.unique(group[group >= 0]).tolist():
            own = order[np.searchsorted(group, g) : np.searchsorted(group, g, side="right")]
            coefficients = self.law.coefficients(self.known[:, g].astype(np.float64), self.fixed) @ self.to_standard.T
            found[:, own] = (coefficients @ entries.Z[entries.row[own]].T)[self.draw]
        return found

    def component_scores(self, entries: Entries) -> Array:
        """Return the log-rates as scores (S, entries, 1)."""
        return self.log_rates(entries)[:, :, None]


@dataclass(frozen=True)
class TasteChoices(ChoicePosterior):
    """Draws of a population law and of persons' tastes.

    Attributes
    ----------
    mean : (chain, draw, d) array
        μ.
    factor : (chain, draw, d, d) array
        L, the lower factor of Σ.
    fixed : (chain, draw, q) array
        Coefficients of the other columns.
    persons : (chain, draws of persons, N, d) array
        b of each person, of every `every`-th draw.
    every : int
        Number of draws per stored draw of persons.
    random, sign : (d,) arrays
        Positions of random columns, and the signs of their laws; 0: normal.
    correlated : bool
        True if Σ is a full matrix, False if it is diagonal.
    to_standard : (p, p) array
        Maps coefficients in the units of the data to those of standardised columns.
    """

    model_name = "Plackett–Luce choice model with random tastes"
    table_title = "tastes of the population"
    no_estimates = "random tastes have a law instead of weights: population() lists it."
    no_race = "a linear utility has no features that compete: explain lists what attributes contribute."
    drawn = ("mean", "factor", "fixed")
    mean: Array = field(repr=False)
    factor: Array = field(repr=False)
    fixed: Array = field(repr=False)
    persons: Array = field(repr=False)
    every: int
    random: npt.NDArray[np.int64]
    sign: npt.NDArray[np.int64]
    correlated: bool
    to_standard: Array = field(repr=False)

    @property
    def law(self) -> TasteLaw:
        """Random columns and their laws."""
        return TasteLaw.of(self.random, self.sign, len(self.to_standard), self.correlated)

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of means, deviations and correlations of the law, and False: draws are not at a maximum."""
        p, d = len(self.to_standard), len(self.random)
        return p + d + (d * (d - 1) // 2 if self.law.correlated else 0), False

    @property
    def person_step(self) -> int:
        """Number of draws per stored draw of persons."""
        return self.every

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Numbers of persons and columns."""
        return self.persons.shape[2], len(self.to_standard)

    def thinned(self, step: int) -> Self:
        """Keep the first draw of each chain and every `step`-th after it."""
        found, both = super().thinned(step), math.lcm(step, self.every)
        return replace(found, persons=self.persons[:, :: both // self.every], every=both // step)

    def flat(self, some: npt.NDArray[np.intp] | None = None) -> tuple[Array, Array, Array]:
        """Return μ (S, d), L (S, d, d) and fixed coefficients (S, q) of all draws, or of some."""
        C, D, d = self.mean.shape
        parts = (self.mean, (d,)), (self.factor, (d, d)), (self.fixed, self.fixed.shape[2:])
        found = tuple(part.reshape(C * D, *shape) for part, shape in parts)
        return found if some is None else tuple(part[some] for part in found)  # type: ignore[return-value]

    def central(self) -> tuple[Array, Array, Array]:
        """Return one law: average means, deviations, correlations and fixed coefficients."""
        return central(*self.flat())

    def _members(self, draws: tuple[Array, Array, Array], points: Array, known: Array | None = None) -> TasteMembers:
        """Return members for each draw and each of the common points (R, d), or of separate points (S, R, d)."""
        (mean, factor, fixed), law = draws, self.law
        each = "skl,rl->srk" if points.ndim == 2 else "skl,srl->srk"
        tastes = mean[:, None] + np.einsum(each, factor, points)
        coefficients = law.coefficients(tastes, fixed[:, None]) @ self.to_standard.T
        S, R, p = coefficients.shape
        kept = (
            {"known": known, "fixed": fixed, "law": law, "to_standard": self.to_standard} if known is not None else {}
        )
        directions, ones = coefficients.reshape(S * R, 1, p), np.zeros((S * R, 1, 1))
        share, draw = np.full(S * R, 1 / (S * R)), np.repeat(np.arange(S), R)
        return TasteMembers(share, directions, ones, points=R, draw=draw, **kept)  # type: ignore[arg-type]

    def members(self, every: bool = False) -> TasteMembers:
        """Return some draws, each with its own person; if `every`, all draws, each with several persons."""
        d = self.mean.shape[2]
        if every:
            return self._members(self.flat(), normal_points(EVERY_POINTS, d))
        some = spread(self.mean.shape[0] * self.mean.shape[1], POOLED)
        members = self._members(self.flat(some), _own_points(len(some), 1, d))
        return replace(members, points=1)

    def for_entries(self, entries: Entries, draws: int, points: int, own: bool) -> TasteMembers:
        """Return members for these entries, which may belong to persons of the fit.

        `own`: True if every draw has its own points of the population, False if all draws share them.
        """
        d, (C, D) = self.mean.shape[2], self.mean.shape[:2]
        if (entries.group < 0).all():
            some = spread(C * D, draws)
            return self._members(
                self.flat(some), _own_points(len(some), points, d) if own else normal_points(points, d)
            )
        R = self.persons.shape[1]
        some = spread(C * R, draws)
        chain, draw = np.divmod(some, R)
        known = self.persons[chain, draw]
        law = self.flat(chain * D + draw * self.every)
        points = 1 if (entries.group >= 0).all() else points
        return self._members(law, normal_points(points, d) if points > 1 else np.zeros((1, d)), known)

    def pools(self, entries: Entries, every: bool = False) -> Iterator[Pool]:
        """Yield pools of runs of situations, whose members show uncertainty about averages over the population."""
        if not every:
            return pools(self.for_entries(entries, SPREAD_DRAWS, SPREAD_POINTS, own=False), entries)
        if (entries.group >= 0).any():
            size = self.mean.shape[0] * self.persons.shape[1]
            return pools(self.for_entries(entries, size, EVERY_POINTS, own=False), entries)
        return pools(self.members(every=True), entries)

    def predict(self, rows: Entries) -> Array:
        """Return probabilities (T, A), averaged over the population and over draws."""
        members = self.for_entries(rows, POOLED, POINTS, own=True)
        return np.concatenate([pool.prediction() for pool in pools(members, rows)])

    def log_probability(self, entries: Entries, seen: Chosen) -> Array:
        """Return ln of the predicted probability of the outcome of each situation, (T,)."""
        return log_probability_under(self.for_entries(entries, POOLED, POINTS, own=True), entries, seen)

    def log_values(self, entries: Entries, seen: Chosen) -> Array:
        """Return ln Pr(outcome) (S, T) under every draw of the chains, each averaged over the population."""
        members = self.members(every=True)
        if (entries.group >= 0).any():
            size = self.mean.shape[0] * self.persons.shape[1]
            members = self.for_entries(entries, size, EVERY_POINTS, own=False)
        values = outcome_log_values(members, *as_outcomes(entries, seen))
        R = members.points
        found: Array = logsumexp(values.reshape(-1, R, values.shape[1]), axis=1) - math.log(R)
        return found

    def size(self, model: ChoiceModel) -> str:
        """Describe alternatives, columns and persons."""
        (N, p), d = self.shape_of_estimate, self.mean.shape[2]
        how = "correlated" if self.law.correlated else "independent"
        fixed = f" and {p - d} fixed" if p > d else ""
        of = f"{d} random ({how}){fixed} coefficient{'' if p == 1 else 's'}"
        return f"{alternatives_in_words(model)}, {of} of {N} persons{bases_in_words(model)}"

    def verdict(self, model: ChoiceModel) -> tuple[bool | None, str]:
        """Return whether the chains agree."""
        return agreement(model.diagnostics_)

    def population(self, names: npt.NDArray[np.object_], prob: float) -> tuple[Table, Array]:
        """Return the columns of `population`, and the correlation matrix of the random columns."""
        law, tail, (mean, factor, fixed) = self.law, (1 - prob) / 2, self.flat()
        sd = deviations(factor)
        S, p = len(mean), law.n_columns
        means, sds = np.zeros((S, p)), np.zeros((S, p))
        means[:, law.random], means[:, law.fixed], sds[:, law.random] = mean, fixed, sd
        median, average, positive = means.copy(), means.copy(), (means > 0).astype(np.float64)
        median[:, law.random] = law.median_taste(mean)
        average[:, law.random], positive[:, law.random] = law.mean_taste(mean, sd), law.positive(mean, sd)
        words = np.full(p, "fixed", dtype=object)
        words[law.random] = [{0: "normal", 1: "lognormal", -1: "-lognormal"}[s] for s in law.sign.tolist()]
        (mean_low, mean_high), (sd_low, sd_high) = (np.quantile(x, [tail, 1 - tail], axis=0) for x in (means, sds))
        columns: Table = {"attribute": names, "law": words, "mean": means.mean(axis=0)}
        columns |= {"mean_lower": mean_low, "mean_upper": mean_high}
        columns |= {"sd": sds.mean(axis=0), "sd_lower": sd_low, "sd_upper": sd_high}
        columns |= {"median_taste": np.median(median, axis=0), "mean_taste": np.median(average, axis=0)}
        columns |= {"positive": positive.mean(axis=0)}
        order = np.append(law.random, law.fixed)
        correlation: Array = correlations(factor).mean(axis=0)
        return {name: column[order] for name, column in columns.items()}, correlation

    def part_worths(self, some: npt.NDArray[np.intp], prob: float) -> tuple[Array, Array, Array]:
        """Return mean, lower and upper (persons, d) of the coefficients of some persons."""
        tail = (1 - prob) / 2
        found = self.law.signed(self.persons[:, :, some].astype(np.float64)).reshape(-1, len(some), len(self.random))
        lower, upper = np.quantile(found, [tail, 1 - tail], axis=0)
        return found.mean(axis=0), lower, upper

    def tastes_of_population(self, n: int = SPREAD_POINTS) -> Array:
        """Return coefficients (S, n, p) of persons of the population, under some draws."""
        some = spread(self.mean.shape[0] * self.mean.shape[1], POOLED)
        mean, factor, fixed = self.flat(some)
        b = mean[:, None] + np.einsum("skl,rl->srk", factor, normal_points(n, mean.shape[1]))
        return self.law.coefficients(b, fixed[:, None])

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """Return the law, rounded."""
        found, _ = self.population(model.design_.names_, prob)
        found["column"] = found.pop("attribute")
        return rounded({"column": found.pop("column"), **found})

    def explain(self, model: ChoiceModel, row: object, prob: float) -> Explanation:
        """Explain the log-odds of the predicted alternative by attributes and persons' columns."""
        table, person = model._one(row)
        return explain_choice(model, self.members(), table, model._entries(table, person), prob)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Return means, deviations, correlations and fixed coefficients; if raw, persons' tastes as well."""
        names, law = model.design_.names_, self.law
        coords: Table = {"attribute": names[law.random], "class": model.alternatives_}
        values, dims = (
            {"mu": self.mean, "sigma": deviations(self.factor)},
            {"mu": ["attribute"], "sigma": ["attribute"]},
        )
        if law.correlated:
            values["correlation"], dims["correlation"] = correlations(self.factor), ["attribute", "with"]
            coords["with"] = names[law.random]
        if len(law.fixed):
            values["coefficient"], dims["coefficient"] = self.fixed, ["column"]
            coords["column"] = names[law.fixed]
        if raw and self.every == 1:
            n = self.mean.shape[1]
            values["beta"] = law.signed(self.persons[:, :n].astype(np.float64))
            dims["beta"] = ["person", "attribute"]
            coords["person"] = model.group_labels_
        return Variables(values, dims, coords)

    def quantities(self, model: ChoiceModel) -> Quantities:
        """Return means of the law, the log-likelihood and the worst-mixing probability."""
        found = model.diagnostics_
        scalars = {} if found is None else found.scalars(model.alternatives_)
        scalars |= {"log-likelihood": ("log-likelihood of the persons' tastes", model.trace_)}
        return Quantities(scalars, "mean of ", self.mean[:, :, None], model.design_.names_[self.random])


def spread(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return at most `most` of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def _own_points(draws: int, points: int, d: int) -> Array:
    """Return points (draws, points, d) of one quasi-random sequence."""
    n = 1 << (draws * points - 1).bit_length()
    found: Array = normal_points(n, d)[: draws * points].reshape(draws, points, d)
    return found
