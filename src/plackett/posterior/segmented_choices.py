"""Posterior of linear choices in segments: draws, or the maximum of the likelihood with covariances.

Coefficients are those of standardised columns. After maximum likelihood, draws from the normal law of the free
coefficients and of ln π_c − ln π_1 stand for the uncertainty of all that is asked, and the maximum predicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr, ndtri, softmax

from plackett.data.choice_outcomes import Chosen
from plackett.model.diagnostics import agreement
from plackett.model.mixture import POOLED, Entries
from plackett.model.race import Array
from plackett.posterior.base import (
    NO_CHAINS,
    Explanation,
    Quantities,
    Table,
    Variables,
    objects,
    positive,
    rounded,
)
from plackett.posterior.choice_reasons import ChoiceModel, explain_choice
from plackett.posterior.choosers import (
    ChoicePosterior,
    alternatives_in_words,
    as_outcomes,
    bases_in_words,
    log_probability_under,
)
from plackett.posterior.linear_choices import standard_normals
from plackett.posterior.pool import Pool, outcome_log_values, pools
from plackett.posterior.segment_members import Drawn, SegmentDraws, SegmentMembers

ERRORS = ("classical", "robust")
ALL = "all"  # what stands for the segment of a coefficient that all have


@dataclass(frozen=True)
class SegmentedChoices(ChoicePosterior):
    """ln r = z·β_c for persons of segment c.

    Attributes
    ----------
    of_segments : SegmentDraws
        Draws of coefficients and shares; one of one chain is the maximum.
    places : (C, d) array
        Where each coefficient stands among the free parameters; −1 for one that is 0.
    classical, robust : (P + C − 1, P + C − 1) arrays, optional
        Covariances of the maximum in the free parameters and ln π_c − ln π_1: the inverse information, and the sandwich
        of persons; None for draws.
    spread : float, optional
        Standard deviation of the prior; None for maximum likelihood.
    converged : bool
        Whether EM ended at a maximum.
    """

    model_name = "conditional logit in segments"
    no_estimates = "a linear utility has coefficients instead of weights: coefficients() lists them."
    no_race = "a linear utility has no features that compete: explain lists what attributes contribute."
    drawn: ClassVar[tuple[str, ...]] = ("of_segments",)
    estimated_at = True
    of_segments: SegmentDraws
    places: npt.NDArray[np.int64] = field(repr=False)
    classical: Array | None = field(default=None, repr=False)
    robust: Array | None = field(default=None, repr=False)
    spread: float | None = None
    converged: bool = True

    @property
    def no_chains(self) -> str | None:  # type: ignore[override]
        """Why there are no chains, if there are none."""
        return None if self.classical is None else NO_CHAINS

    @property
    def person_step(self) -> int:
        """How many draws lie between two draws of memberships."""
        return self.of_segments.every

    @property
    def n_free(self) -> int:
        """P."""
        return len(np.unique(self.places[self.places >= 0]))

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Free coefficients and shares; whether the likelihood is at its maximum."""
        likeliest = self.classical is not None and self.spread is None
        return self.n_free + self.of_segments.segments - 1, likeliest

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Segments and columns."""
        return self.places.shape[0], self.places.shape[1]

    def _best(self) -> Drawn:
        """The maximum, with the memberships there."""
        draws = self.of_segments
        known = None if draws.membership is None else draws.membership[0]
        return Drawn(draws.parameters[0], draws.shares[0], known)

    def _normal_draws(self) -> Drawn:
        """Draws about the maximum, always the same."""
        assert self.classical is not None
        best, (C, d), P = self._best(), self.places.shape, self.n_free
        values, vectors = np.linalg.eigh(self.classical)
        steps = standard_normals(POOLED, len(values)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        moves = np.append(steps[:, :P], np.zeros((len(steps), 1)), axis=1)[:, self.places]
        logits = np.log(best.shares[0]) + np.append(np.zeros((len(steps), 1)), steps[:, P:], axis=1)
        return Drawn(best.parameters + moves.reshape(-1, C, d), softmax(logits, axis=1), best.known)

    def spread_draws(self) -> Drawn:
        """Draws that show what is known."""
        return self.of_segments.all_draws() if self.classical is None else self._normal_draws()

    def members(self, every: bool = False) -> SegmentMembers:
        """Draws, and the maximum after them if there is one, of persons who are not known."""
        return self._members(False, every)

    def _members(self, known: bool, every: bool = False) -> SegmentMembers:
        if self.classical is None:
            found = self.of_segments.all_draws() if every and not known else self.of_segments.some_draws(known)
            return found.members(True)
        draws, best = self._normal_draws(), self._best()
        weight = np.append(np.zeros(len(draws.shares)), 1.0)
        both = Drawn(
            np.concatenate([draws.parameters, best.parameters]), np.concatenate([draws.shares, best.shares]), best.known
        )
        return both.members(True, weight, 1)

    def predicting(self) -> SegmentMembers:
        """The maximum alone, or the draws."""
        return self.members() if self.classical is None else self._best().members(True)

    def _predicting(self, entries: Entries) -> SegmentMembers:
        if self.classical is None:
            return self._members(bool((entries.group >= 0).any()))
        return self._best().members(True)

    def reported(self) -> SegmentMembers:
        """The maximum, or averages of coefficients and shares."""
        if self.classical is not None:
            return self.predicting()
        found = self.of_segments.all_draws()
        return Drawn(found.parameters.mean(axis=0)[None], found.shares.mean(axis=0)[None]).members(True)

    def pools(self, entries: Entries, every: bool = False) -> Iterator[Pool]:
        """Pools of runs of situations, those of known persons by their memberships."""
        return pools(self._members(bool((entries.group >= 0).any()), every), entries)

    def predict(self, rows: Entries) -> Array:
        """Probabilities (T, A)."""
        return np.concatenate([pool.prediction() for pool in pools(self._predicting(rows), rows)])

    def log_probability(self, entries: Entries, seen: Chosen) -> Array:
        """ln of the predicted probability of what was seen in each situation, (T,)."""
        return log_probability_under(self._predicting(entries), entries, seen)

    def log_values(self, entries: Entries, seen: Chosen) -> Array:
        """ln Pr(outcome) (draws, T) under every draw of the chains."""
        members = self._members(bool((entries.group >= 0).any()), every=True)
        ordered = as_outcomes(entries, seen)
        with np.errstate(divide="ignore"):
            values = outcome_log_values(members, *ordered) + np.log(members.within(ordered[0]))
        return np.asarray(logsumexp(values.reshape(-1, members.points, values.shape[1]), axis=1))

    def size(self, model: ChoiceModel) -> str:
        """Alternatives, coefficients and segments."""
        return (
            f"{alternatives_in_words(model)}, {self.of_segments.in_words()}, linear utilities with {self.n_free} "
            f"coefficient{'' if self.n_free == 1 else 's'}{bases_in_words(model)}{model._number_in_words()}"
        )

    def verdict(self, model: ChoiceModel) -> tuple[bool | None, str]:
        """Whether EM ended at a maximum, or the chains agree on predictions."""
        if self.classical is None:
            return agreement(model.diagnostics_)
        if not self.converged:
            return False, "EM did not reach a maximum"
        what = "the maximum of the likelihood" if self.spread is None else "the mode of the posterior"
        return True, f"{what}, the best of several starts, with standard errors from the curvature there"

    def share_draws(self) -> Array:
        """Shares (S, C) under draws."""
        return self.spread_draws().shares

    def _rows(self, A: Array) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Segment, its place and the column of each line of a table; A is from standardised columns to units."""
        C, d = self.places.shape
        alike = (self.places == self.places[0]).all(axis=0)
        used = A != 0
        shared = np.array([alike[used[f]].all() for f in range(d)]) & (C > 1)
        there = np.array([[(self.places[c, used[f]] >= 0).any() for f in range(d)] for c in range(C)])
        lines: list[tuple[object, int, int]] = [(ALL, 0, f) for f in np.flatnonzero(shared).tolist()]
        lines += [(c + 1, c, f) for c in range(C) for f in np.flatnonzero(~shared & there[c]).tolist()]
        segment, place, column = zip(*lines, strict=True)
        return objects(segment), np.array(place), np.array(column)

    def in_units(self, model: ChoiceModel) -> Array:
        """Draws (S, C, d) of coefficients in the units of the data."""
        return np.asarray(self.spread_draws().parameters @ model.design_.to_units().T)

    def coefficients_table(self, model: ChoiceModel, prob: float, errors: str) -> Table:
        """Coefficients of all segments, then of each: with errors and z after EM, else as draws have them."""
        A = model.design_.to_units()
        segment, place, column = self._rows(A)
        columns: Table = {"segment": segment, "column": model.design_.names_[column]}
        if self.classical is None:
            if errors != "classical":
                raise ValueError(
                    f"errors={errors!r} would be ignored: intervals of draws are those of the posterior. Leave it out, "
                    "or fit with inference='em'."
                )
            draws, tail = self.in_units(model)[:, place, column], (1 - prob) / 2
            lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
            numbers = {"mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=1), "lower": lower, "upper": upper}
            return columns | numbers | {"positive": positive(draws)}
        centre = (self._best().parameters[0] @ A.T)[place, column]
        error, width = self._errors(A, place, column, errors), ndtri((1 + prob) / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = centre / error
        return columns | {
            "coefficient": centre,
            "std_error": error,
            "z": z,
            "p": 2 * ndtr(-np.abs(z)),
            "lower": centre - width * error,
            "upper": centre + width * error,
        }

    def _errors(self, A: Array, place: npt.NDArray[np.intp], column: npt.NDArray[np.intp], errors: str) -> Array:
        if errors not in ERRORS:
            raise ValueError(
                f"errors must be one of {list(ERRORS)} with segments, whose sandwich is that of persons, got "
                f"{errors!r} instead."
            )
        covariance, P = getattr(self, errors)[: self.n_free, : self.n_free], self.n_free
        found = np.empty(len(place))
        for i, (c, f) in enumerate(zip(place.tolist(), column.tolist(), strict=True)):
            slopes = np.zeros(P + 1)
            np.add.at(slopes, self.places[c], A[f])  # those that are 0 go to the last place
            found[i] = np.sqrt(max(slopes[:P] @ covariance @ slopes[:P], 0.0))
        return found

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """The coefficients, rounded."""
        return rounded(self.coefficients_table(model, prob, "classical"))

    def explain(self, model: ChoiceModel, row: object, prob: float) -> Explanation:
        """Explain the log-odds of the predicted alternative for a person of unknown segment, by the shares."""
        table, person = model._one(row)
        return explain_choice(model, self.members(), table, model._entries(table, person), prob)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Shares, and coefficients in the units of the data, by segment."""
        draws, labels = self.of_segments, np.arange(1, self.of_segments.segments + 1)
        values = {"share": draws.shares, "coefficient": draws.parameters @ model.design_.to_units().T}
        dims = {"share": ["segment"], "coefficient": ["segment", "column"]}
        coords: Table = {"segment": labels, "column": model.design_.names_, "class": model.alternatives_}
        return Variables(values, dims, coords)

    def quantities(self, model: ChoiceModel) -> Quantities:
        """Shares, the log-posterior and the probability that mixes worst."""
        found = model.diagnostics_
        scalars = {} if found is None else found.scalars(model.alternatives_)
        return Quantities(scalars | share_scalars(self.of_segments, model.trace_))


def share_scalars(draws: SegmentDraws, trace: Array) -> dict[str, tuple[str, Array]]:
    """The log-posterior, and the share of each segment."""
    found = {"log-likelihood": ("log-posterior", trace)}
    for c in range(draws.segments):
        found[f"share of segment {c + 1}"] = (f"share of segment {c + 1}", draws.shares[..., c])
    return found
