"""The two posteriors of a chooser: of the weights of fixed features, and of learned directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plackett.model.mixture import POOLED, log_rates, sharpened, varied
from plackett.model.race import Array
from plackett.posterior.base import Explanation, Quantities, Table, Variables
from plackett.posterior.choice_reasons import explain_choice, explain_race
from plackett.posterior.choices import (
    ChoicePosterior,
    Codes,
    Entries,
    log_rates_of_features,
    significant,
    slopes_at,
)


@dataclass(frozen=True)
class FixedChoices(ChoicePosterior):
    """Weights λ̄_gj of features that do not know the outcomes, ln r_e = ln Σ_j W_ej λ̄_gj.

    Attributes
    ----------
    of_weights : Point, Gammas, GIGs or Draws
        The posterior of the weights (K, p).
    """

    drawn = ("of_weights",)
    of_weights: Any

    @property
    def no_interval(self) -> str | None:  # type: ignore[override]
        """Why there is no interval, if there is none."""
        return self.of_weights.no_interval

    @property
    def no_chains(self) -> str | None:  # type: ignore[override]
        """Why there are no chains, if there are none."""
        return self.of_weights.no_chains

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, p)."""
        return self.of_weights.shape_of_estimate

    @property
    def n_groups(self) -> int:
        """K."""
        return self.shape_of_estimate[0]

    def pool(self, every: bool) -> tuple[Array, int, float]:
        """Draws count the same."""
        n = len(self.members(every))
        return np.full(n, 1 / n), 0, 1.0

    def members(self, every: bool) -> Array:
        """Weights (S, K, p) of what predicts, or of every draw."""
        weights: Array = self.of_weights.flat_draws()
        n = len(weights)
        return weights if every else weights[np.linspace(0, n - 1, min(n, POOLED)).round().astype(np.intp)]

    def log_rates(self, features: Array, group: Codes, every: bool, some: Codes) -> Array:
        """Of features as ln W."""
        return log_rates_of_features(features, self.members(every)[some], group)

    def size(self, model: Any) -> str:
        """Alternatives, features and prior."""
        p = self.shape_of_estimate[1]
        return f"{_alternatives(model)} × {p} features, {_whose(model)}, {model._prior_in_words()}"

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """That of the weights."""
        return self.of_weights.verdict(model)

    def table(self, model: Any, prob: float) -> Table:
        """Weights, the largest first, of all or by alternative or person."""
        table: Table = self.of_weights.estimates(model).table(model._labels(), prob)
        return table

    def largest(self, model: Any, n: int) -> tuple[str, Table]:
        """The first rows of that table."""
        return "largest weights", {name: column[:n] for name, column in self.table(model, 0.9).items()}

    def explain(self, model: Any, row: Any, prob: float) -> Explanation:
        """Who wins the race of one situation: features of alternatives."""
        table, person = model._one(row)
        return explain_race(model, table, person, prob)

    def variables(self, model: Any, raw: bool) -> Variables:
        """Normalised weights, the shape where it is learned; if raw, logarithms of weights as well."""
        found = self.of_weights.variables(model, raw)
        whose = model._labels()[0]
        renamed = {name: ["group" if dim == whose else dim for dim in dims] for name, dims in found.dims.items()}
        coords = {"group": model.group_labels_, "feature": model._feature_names(), "class": model.alternatives_}
        return Variables(found.values, renamed, coords)

    def quantities(self, model: Any) -> Quantities:
        """The shape, the log-likelihood and every weight."""
        return self.of_weights.quantities(model)


@dataclass(frozen=True)
class LearnedChoices(ChoicePosterior):
    """Directions β_j and weights λ_gj, ln r_e = ln Σ_j exp(z_e·β_j) λ_gj; κ and a mode beside the draws.

    Attributes
    ----------
    of_directions : SituationDraws or SituationPoint
        Draws of both.
    """

    no_estimates = "the components of learned directions have no identity from draw to draw."
    drawn = ("of_directions",)
    of_directions: Any

    @property
    def no_interval(self) -> str | None:  # type: ignore[override]
        """Why there is no interval, if there is none."""
        return self.of_directions.no_interval

    @property
    def no_chains(self) -> str | None:  # type: ignore[override]
        """Why there are no chains, if there are none."""
        return self.of_directions.no_chains

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, M)."""
        K, M = self.of_directions.log_weights.shape[2:]
        return K, M

    @property
    def n_groups(self) -> int:
        """K."""
        return self.shape_of_estimate[0]

    def members(self, every: bool) -> tuple[Array, Array, Array]:
        """Directions (S, M, d), ln λ̄ (S, K, M) and shares (S,) of what predicts, or of every draw."""
        if not every:
            return self.of_directions._pooled()
        directions, log_weights = self.of_directions.directions, self.of_directions.log_weights
        S = directions.shape[0] * directions.shape[1]
        flat = directions.reshape(S, *directions.shape[2:]), log_weights.reshape(S, *log_weights.shape[2:])
        return *flat, np.full(S, 1 / S)

    def pool(self, every: bool) -> tuple[Array, int, float]:
        """Draws and the mode with its weight; all draws by themselves count the same."""
        found = self.of_directions
        return self.members(every)[2], 0 if every else int(found._has_mode), found.power

    def log_rates(self, features: Array, group: Codes, every: bool, some: Codes) -> Array:
        """Of rows z of the design."""
        directions, log_weights, _ = self.members(every)
        return log_rates(directions[some], log_weights[some], features, group)

    def log_predictive(self, rows: Entries) -> Iterator[Array]:
        """Of p_s ∝ (w·mode_s + (1 − w)·draw_s)^κ, with mode_s ∝ mode·draw_s/average, as for classes."""
        found = self.of_directions
        if not found._has_mode:
            yield from super().log_predictive(rows)
            return
        done = 0
        for outlook in self.outlooks(rows, every=True):
            part = rows.part(done, done + len(outlook.available))
            done += len(outlook.available)
            group = np.maximum(part.group, 0)
            alone = log_rates(found.mode_directions[None], found.mode_log_weights[None], part.features, group)
            draws = outlook.shares().transpose(1, 0, 2)
            its = varied(outlook.moved(part.wide(alone)).shares()[0], draws)
            mixed = sharpened(found.mode_weight * its + (1 - found.mode_weight) * draws, found.power)
            with np.errstate(divide="ignore"):
                yield np.log(mixed)

    def step(self, model: Any) -> float:
        """Normal scores and hinges bend: they are judged over half a deviation."""
        return 0.01 if model.design_.bend == "none" else 0.25

    def size(self, model: Any) -> str:
        """Alternatives and components."""
        M, d = self.of_directions.directions.shape[2:]
        many = "direction" if M == 1 else "directions"
        return f"{_alternatives(model)}, {M} learned {many} of {d} columns, {_whose(model)}"

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """That of the draws: whether the chains agree on predictions."""
        return self.of_directions.verdict(model)

    def table(self, model: Any, prob: float) -> Table:
        """Coefficients ∂ln r/∂column at average alternatives, per unit of the column: of one component, β itself."""
        design, tail = model.design_, (1 - prob) / 2
        entries = model._entries(design.average(), np.array([-1]))
        some, group, share, modes, _ = self.stand_ins(entries)
        directions, log_weights, _ = self.members(every=False)
        slopes = slopes_at(entries.features, directions[some], log_weights[some], group)
        draws = np.tensordot(slopes, design.shares_, (1, 0)) / design.unit_
        centre, draws = share @ draws, draws[: len(draws) - modes]
        columns: Table = {"column": design.names_, "coefficient": significant(centre)}
        if self.no_interval is None:
            lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
            columns |= {
                f"{100 * tail:g}%": significant(np.minimum(lower, centre)),
                f"{100 * (1 - tail):g}%": significant(np.maximum(upper, centre)),
                "positive": ((draws > 0) + (draws == 0) / 2).mean(axis=0).round(3),
            }
        return columns

    def largest(self, model: Any, n: int) -> tuple[str, Table]:
        """The first rows of that table."""
        return "coefficients", {name: column[:n] for name, column in self.table(model, 0.9).items()}

    def explain(self, model: Any, row: Any, prob: float) -> Explanation:
        """What attributes and persons' columns contribute to the log-odds of the predicted alternative."""
        table, person = model._one(row)
        return explain_choice(model, table, person, prob)

    def variables(self, model: Any, raw: bool) -> Variables:
        """Nothing but predictions is identified."""
        coords: Table = {"class": model.alternatives_}
        if not raw:
            return Variables({}, {}, coords)
        found = self.of_directions
        values = {"direction": found.directions, "log_weight": found.log_weights, "scale": found.scales}
        dims = {"direction": ["component", "column"], "log_weight": ["group", "component"], "scale": ["column"]}
        coords |= {
            "group": model.group_labels_,
            "component": np.arange(self.shape_of_estimate[1]),
            "column": model.design_.names_,
        }
        return Variables(values, dims, coords)

    def quantities(self, model: Any) -> Quantities:
        """The log-posterior alone: nothing else has an identity."""
        return Quantities({"log-likelihood": ("log-posterior", model.trace_)})


def _alternatives(model: Any) -> str:
    return f"{len(model.alternatives_)} alternatives"


def _whose(model: Any) -> str:
    if model.weights == "person":
        return f"weights of {len(model.group_labels_)} persons"
    return "shared weights" if model.weights == "shared" else "weights of alternatives"
