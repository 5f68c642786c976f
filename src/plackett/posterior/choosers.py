"""Posteriors of choosers: weights of fixed features, and learned directions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from plackett.data.base_levels import base_levels_in_words
from plackett.data.choice_outcomes import Chosen
from plackett.features.choice_design import BENDS
from plackett.model.mixture import POOLED, Entries, sharpened, varied
from plackett.model.race import Array
from plackett.posterior.base import (
    Explanation,
    Quantities,
    Table,
    Variables,
    around,
    mean_and_bounds,
    objects,
    positive,
    refuse,
    significant,
)
from plackett.posterior.choice_reasons import ChoiceModel, explain_choice, explain_race
from plackett.posterior.pool import Members, Pool, SituationPosterior, log_scores, outcome_log_values, pools
from plackett.posterior.situations import SituationDraws
from plackett.posterior.stacked import DirectionMembers
from plackett.posterior.weights import WeightMembers, WeightPosterior
from plackett.responses import Outcomes, Response, make_response
from plackett.responses.nests import Nests

NO_RANKINGS = (
    "nests are of choices: a ranking has no likelihood here. Give the label of the alternative that was chosen in each "
    "situation."
)

NAMES_OF_BENDS = {
    "none": "attributes as they are",
    "hinges": "attributes with hinges",
    "scores": "attributes as scores",
}


class ChoicePosterior(SituationPosterior[ChoiceModel]):
    """A posterior of alternatives."""

    model_name = "Plackett–Luce choice model"
    nests: Nests | None = None
    table_title: ClassVar[str] = "coefficients"
    estimated_at: ClassVar[bool] = False  # True if the last member is the estimate about which the others are drawn

    @property
    def person_step(self) -> int:
        """Number of draws between two stored draws of persons."""
        return 1

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of parameters (None if a prior decides it), and True if the likelihood is at its maximum."""
        return None, False

    def coefficients_table(self, model: ChoiceModel, prob: float, errors: str) -> Table:
        """Return the columns of `coefficients`."""
        raise ValueError(
            f"coefficients() is for a linear utility, and this is features={model.features!r}, whose slopes differ "
            "between situations: summary() has them at average alternatives. Fit features='linear'."
        )

    def log_probability(self, entries: Entries, seen: Chosen) -> Array:
        """ln of the predicted probability of the outcome of each situation, (T,).

        The prediction of a choice includes κ. The probability of a ranking is averaged over the members.
        """
        return log_probability_under(self.predicting(), entries, seen)

    def largest(self, model: ChoiceModel, n: int) -> tuple[str, Table]:
        """Return a title and the first rows of the table."""
        return self.table_title, {name: column[:n] for name, column in self.table(model, 0.9).items()}

    def predicting(self) -> Members:
        """Members with a positive share in predictions."""
        return self.members()

    def reported(self) -> Members:
        """Members whose log-likelihood is reported as that of the fit."""
        return self.predicting()

    def log_values(self, entries: Entries, seen: Chosen) -> Array:
        """ln Pr(outcome) (S, T) under every draw of the chains."""
        refuse(None if self.nests is None else NO_RANKINGS)
        return outcome_log_values(self.members(every=True).meeting(entries, 1), *as_outcomes(entries, seen))

    def parameter_table(self, prob: float) -> Table:
        """Mean and interval of each dissimilarity; NaN for the interval of a single estimate."""
        found = None if self.nests is None else self.members(every=True).of_response
        return mean_and_bounds(np.empty((1, 0)) if found is None else found, prob)

    def nests_in_words(self) -> str:
        """List the nests with their average dissimilarities."""
        if self.nests is None:
            return ""
        mean = self.parameter_table(0.9)["mean"]
        named = ", ".join(f"{name} {value:.3g}" for name, value in zip(self.nests.names, mean, strict=True))
        return f", nests with dissimilarities {named}"


def log_probability_under(members: Members, entries: Entries, seen: Chosen) -> Array:
    """ln of the probability of the outcome of each situation, (T,), as predicted by these members."""
    members = members.meeting(entries)
    if seen.response != "choice":
        refuse(None if members.nests is None else NO_RANKINGS)
        return log_scores(members, *as_outcomes(entries, seen))
    first, found = seen.first, np.concatenate([pool.prediction() for pool in pools(members, entries)])
    with np.errstate(divide="ignore"):
        return np.log(found[np.arange(len(first)), entries.column[first]])


class ParametricChoices(ChoicePosterior):
    """Posterior of choices that delegates to the posterior of its parameters."""

    @property
    @abstractmethod
    def law(self) -> WeightPosterior | SituationDraws:
        """Posterior of the parameters."""

    @property
    def no_interval(self) -> str | None:  # type: ignore[override]
        """Reason why there is no interval, or None."""
        return self.law.no_interval

    @property
    def no_chains(self) -> str | None:  # type: ignore[override]
        """Reason why there are no chains, or None."""
        return self.law.no_chains

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Groups and features or components."""
        return self.law.shape_of_estimate

    def members(self, every: bool = False) -> Members:
        """Return the members of the parameters' posterior, with the nests of alternatives."""
        found = self.law.members(every)
        return found if self.nests is None else replace(found, nests=self.nests)

    def verdict(self, model: ChoiceModel) -> tuple[bool | None, str]:
        """Return the verdict of the parameters' posterior."""
        return self.law.verdict(model)

    def quantities(self, model: ChoiceModel) -> Quantities:
        """Return the quantities of the parameters' posterior."""
        return self.law.quantities(model)


def as_outcomes(entries: Entries, seen: Chosen) -> tuple[Entries, Outcomes, Response]:
    """Return entries in the order of their outcomes, the outcomes, and the response."""
    return entries.ordered(seen.entry, seen.outcomes.start), seen.outcomes, make_response(seen.response)


@dataclass(frozen=True)
class FixedChoices(ParametricChoices):
    """Weights λ̄_gj of features that do not depend on outcomes, ln r_e = ln Σ_j W_ej λ̄_gj.

    Attributes
    ----------
    of_weights : Point, Gammas, GIGs or Draws
        Posterior of the weights (K, p).
    """

    table_title = "largest weights"
    drawn = ("of_weights",)
    of_weights: WeightPosterior

    @property
    def law(self) -> WeightPosterior:
        """Posterior of the weights."""
        return self.of_weights

    def members(self, every: bool = False) -> WeightMembers:
        """Return the draws, at most 400 unless `every`."""
        found = self.of_weights.members()
        n = len(found.share)
        if every or n <= POOLED:
            return found
        some = found.take(np.linspace(0, n - 1, POOLED).round().astype(np.intp))
        return replace(some, share=np.full(POOLED, 1 / POOLED))

    def size(self, model: ChoiceModel) -> str:
        """Describe alternatives, features and prior."""
        p = self.shape_of_estimate[1]
        return f"{alternatives_in_words(model)} × {p} features, {_whose(model)}, {model._prior_in_words()}"

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """Return weights, largest first: shared, or by alternative or person."""
        table: Table = self.of_weights.estimates(model).table(model._labels(), prob)
        return table

    def explain(self, model: ChoiceModel, row: object, prob: float) -> Explanation:
        """Explain the race of one situation by features of alternatives."""
        table, person = model._one(row)
        return explain_race(model, self.members(), table, model._entries(table, person), prob)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Return normalised weights, and the shape if it is learned; if raw, logarithms of weights as well."""
        found = self.of_weights.variables(model, raw)
        whose = model._labels()[0]
        renamed = {name: ["group" if dim == whose else dim for dim in dims] for name, dims in found.dims.items()}
        coords = {"group": model.group_labels_, "feature": model._feature_names(), "class": model.alternatives_}
        return Variables(found.values, renamed, coords)


@dataclass(frozen=True)
class LearnedChoices(ParametricChoices):
    """Directions β_j and weights λ_gj, ln r_e = ln Σ_j exp(z_e·β_j) λ_gj, with κ and a stacked mode.

    Attributes
    ----------
    of_directions : SituationDraws or SituationPoint
        Draws of directions, weights and dissimilarities of nests.
    nests : Nests, optional
        Alternatives that share a nest.
    """

    no_estimates = "the components of learned directions have no identity from draw to draw."
    drawn = ("of_directions",)
    of_directions: SituationDraws
    nests: Nests | None = None

    @property
    def law(self) -> SituationDraws:
        """Posterior of directions and weights."""
        return self.of_directions

    def log_predictive(self, rows: Entries) -> Iterator[Array]:
        """Yield ln of p_s ∝ (w·mode_s + (1 − w)·draw_s)^κ, with mode_s ∝ mode·draw_s/average, as for classes."""
        mode, weight, power = self.of_directions.mode, self.of_directions.mode_weight, self.of_directions.power
        if mode is None:
            yield from super().log_predictive(rows)
            return
        mode = replace(mode, nests=self.nests)
        known = rows._replace(group=np.maximum(rows.group, 0))
        done = 0
        for pool in self.pools(rows, every=True):
            part = known.part(done, done + len(pool.available))
            done += len(pool.available)
            draws = pool.shares().transpose(1, 0, 2)
            its = varied(Pool.of(mode, part).shares()[0], draws)
            with np.errstate(divide="ignore"):
                yield np.log(sharpened(weight * its + (1 - weight) * draws, power))

    def step(self, model: ChoiceModel) -> float:
        """Return half a standard deviation: normal scores and hinges are not smooth."""
        return 0.01 if model.design_.bend == "none" else 0.25

    def size(self, model: ChoiceModel) -> str:
        """Describe alternatives and components."""
        M, d = self.of_directions.directions.shape[2:]
        many = "direction" if M == 1 else "directions"
        words = f"{alternatives_in_words(model)}, {M} learned {many} of {d} columns, {_whose(model)}"
        words = f"{words}, {bend_in_words(model)}" if model.attributes_ else words
        return words + self.nests_in_words()

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """Return ∂ln r/∂column at average alternatives per unit of the column; β itself for one component."""
        design, tail = model.design_, (1 - prob) / 2
        entries = model._entries(design.average(), np.array([-1]))
        members = self.of_directions.members().meeting(entries)
        draws = np.tensordot(slopes_at(members, entries), design.shares_, (1, 0)) / design.unit_
        centre, draws = members.share @ draws, draws[: len(draws) - members.modes]
        columns: Table = {"column": design.names_, "coefficient": significant(centre)}
        if self.no_interval is None:
            lower, upper = around(centre, draws, prob)
            columns |= {
                f"{100 * tail:g}%": significant(lower),
                f"{100 * (1 - tail):g}%": significant(upper),
                "positive": positive(draws),
            }
        return columns

    def explain(self, model: ChoiceModel, row: object, prob: float) -> Explanation:
        """Explain the log-odds of the predicted alternative by attributes and persons' columns."""
        table, person = model._one(row)
        return explain_choice(model, self.of_directions.members(), table, model._entries(table, person), prob)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Return dissimilarities; apart from predictions nothing else is identified. If raw, all draws."""
        coords: Table = {"class": model.alternatives_}
        found = self.of_directions
        of_nests = {} if found.parameters is None else {"dissimilarity": found.parameters}
        named = {"dissimilarity": ["nest"]} if of_nests else {}
        if self.nests is not None:
            coords["nest"] = objects(self.nests.names)
        if not raw:
            return Variables(of_nests, named, coords)
        values = of_nests | {"direction": found.directions, "log_weight": found.log_weights, "scale": found.scales}
        dims = named | {"direction": ["component", "column"], "log_weight": ["group", "component"], "scale": ["column"]}
        coords |= {
            "group": model.group_labels_,
            "component": np.arange(self.shape_of_estimate[1]),
            "column": model.design_.names_,
        }
        return Variables(values, dims, coords)


def slopes_at(members: DirectionMembers, entries: Entries) -> Array:
    """Return ∂ln r_e/∂z (S, entries, d): directions weighted by the share of each component in the rate."""
    scores = members.component_scores(entries)
    scores = np.exp(scores - scores.max(axis=2, keepdims=True))
    found: Array = np.einsum("sem,smf->sef", scores / scores.sum(axis=2, keepdims=True), members.directions)
    return found


def alternatives_in_words(model: ChoiceModel) -> str:
    """Describe the number of alternatives."""
    return f"{len(model.alternatives_)} alternatives"


def bases_in_words(model: ChoiceModel) -> str:
    """Describe the base levels of texts, after a comma."""
    levels = model.design_.known_base_levels()
    return f", {base_levels_in_words(levels)}" if levels else ""


def bend_in_words(model: ChoiceModel) -> str:
    """Describe the bend of attributes, and its improvement of held-out predictions."""
    chosen, tried = model.design_.bend, dict[str, float]()
    if hasattr(model, "design_log_loss_"):
        tried = {BENDS[int(k)]: loss for k, loss in model.design_log_loss_.items() if int(k) < len(BENDS)}
    for key, loss in getattr(model, "cv_log_loss_", {}).items():
        if isinstance(key, tuple) and len(key) == 3 and key[0] in range(len(BENDS)):
            name = BENDS[int(key[0])]
            tried[name] = min(loss, tried.get(name, np.inf))
    words = NAMES_OF_BENDS[chosen]
    if len(tried) < 2 or chosen not in tried:
        return words
    others = ", ".join(f"{NAMES_OF_BENDS[name]} {loss:.4f}" for name, loss in tried.items() if name != chosen)
    return f"{words} (held-out log-loss {tried[chosen]:.4f}; {others})"


def _whose(model: ChoiceModel) -> str:
    if model.weights == "person":
        return f"weights of {len(model.group_labels_)} persons"
    return "shared weights" if model.weights == "shared" else "weights of alternatives"
