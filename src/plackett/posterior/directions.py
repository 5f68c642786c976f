"""Posterior of learned directions of classes: draws of (β, λ), a stacked mode, and their predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp

from plackett.features.gate_summary import ReadableDraw, components
from plackett.features.gates import Gates, softmax
from plackett.features.mapped import MappedRows
from plackett.features.standardise import Scaling
from plackett.model.mixture import SMALLEST, probabilities, sharpened, varied
from plackett.model.race import Array
from plackett.posterior.base import (
    Explanation,
    FittedModel,
    Quantities,
    RacePosterior,
    Setting,
    Table,
    Variables,
    refuse,
)
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.reasons import reasons
from plackett.posterior.stacked import NAMELESS, LearnedPosterior, ModeAlone
from plackett.posterior.weights import CHUNK

INSTEAD = "plots.relevance draws how much each column matters, and summary() lists the components."


class ClassModel(FittedModel, Protocol):
    """What the posterior of learned directions reads of a model of classes."""

    features_: Gates
    readable_draw_: ReadableDraw

    def _relevance_interval(self) -> tuple[Array, Array, Array]:
        """Return the relevance of each covariate, and its bounds."""


@dataclass(frozen=True)
class DirectionDraws(LearnedPosterior[ClassModel], RacePosterior[ClassModel]):
    """Draws of a Markov chain: directions along standardised covariates or principal axes, and ln λ̄ of classes."""

    no_estimates = f"{NAMELESS}, so there are no weights to compare. {INSTEAD}"
    no_race = f"{NAMELESS}, so none can be said to win. plots.contributions draws what speaks for a row's class."
    unit = "direction: change of a component's log-odds per standard deviation of a covariate, the strongest first"

    def gates(self, scaling: Scaling, rows: Array) -> Gates:
        """Return the feature map of the predicting draws, for covariates before standardisation."""
        directions, log_weights, _ = self._pooled()
        offsets = logsumexp(log_weights, axis=1)
        return Gates(directions, offsets, scaling.mean, scaling.scale, scaling.rotation, scaling.knots).fit(rows)

    @property
    def votes(self) -> Array:
        """θ_jk = λ_kj/Λ_j of the predicting draws, (S, K, M)."""
        log_weights = self._pooled()[1]
        votes: Array = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        return votes

    @cached_property
    def weights(self) -> Array:  # type: ignore[override]
        """Weights (K, S·M) that sum to 1; with the gates as features, they give the predictions before κ."""
        votes = self.votes * self._pooled()[2][:, None, None]
        S, K, M = votes.shape
        return np.moveaxis(votes, 1, 0).reshape(K, S * M) / M

    def rows(self, features: Gates, X: Any) -> MappedRows:
        """Return covariates with the gates to apply."""
        return MappedRows(features, np.asarray(X, dtype=np.float64))

    def _shares(self, rows: MappedRows) -> Iterator[Array]:
        """Yield class probabilities (rows, S, K) of runs of rows under the predicting draws, then the mode."""
        votes, gates = self.votes.transpose(0, 2, 1), rows.features.chunks(rows.X)
        return (np.matmul(block.transpose(1, 0, 2), votes).transpose(1, 0, 2) for block in gates)

    def probabilities(self, rows: MappedRows) -> Iterator[Array]:
        """Yield class probabilities (rows, S, K) of runs of rows under the predicting draws, without the mode."""
        return (block[:, :-1] if self._has_mode else block for block in self._shares(rows))

    def predict(self, rows: MappedRows) -> Array:
        """Return class probabilities (n, K): the average of draws and mode, to the power κ."""
        return self._sharpened(rows.features.mixed(rows.X, self.weights))

    def interval(self, rows: MappedRows, prob: float) -> tuple[Array, Array]:
        """Return shortest intervals over the predictions of draws and mode, widened to contain the prediction.

        If rows are few, draws accumulate at 0 and 1. Equal-tailed intervals would exclude these values, where most
        draws are, and extend far to the other side.
        """
        refuse(self.no_interval)
        lower, upper = shortest((self._stacked(block) for block in self._shares(rows)), prob)
        probability = self.predict(rows)
        return np.minimum(lower, probability), np.maximum(upper, probability)

    def _sharpened(self, probability: Array) -> Array:
        return sharpened(probability, self.power, SMALLEST)

    def _stacked(self, shares: Array) -> Array:
        """Return draws (rows, S, K) of the stacked prediction: a fraction w as in the mode, all to the power κ."""
        if not self._has_mode:
            return self._sharpened(shares)
        draws, mode = shares[:, :-1], shares[:, -1]
        turns = np.diff(np.floor(self.mode_weight * np.arange(draws.shape[1] + 1))) > 0  # evenly spaced
        return self._sharpened(np.where(turns[:, None], varied(mode, draws), draws))

    def log_predictive(self, rows: MappedRows) -> Iterator[Array]:
        """Yield logarithms of p_s ∝ (w·mode_s + (1 − w)·draw_s)^κ, with mode_s as in `varied`, for each draw.

        With a constant mode, leaving a row out would not affect the mode, and leave-one-out would be close to the
        training loss.
        """
        Z, (C, D, K, M) = rows.features.standardised(rows.X), self.log_weights.shape
        step = max(1, CHUNK // (C * D * M))
        for some in (Z[i : i + step] for i in range(0, len(Z), step)):
            probability = probabilities(self, some).reshape(C * D, -1, K).transpose(1, 0, 2)
            if self.mode_directions is not None and self.mode_log_weights is not None:
                mode = DirectionDraws(self.mode_directions[None, None], self.mode_log_weights[None, None], np.empty(0))
                its = varied(probabilities(mode, some)[0, 0], probability)
                probability = self.mode_weight * its + (1 - self.mode_weight) * probability
            yield log_sharpened(probability, self.power)

    def averages(self, model: ClassModel, X: object, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Compute averages as for any posterior; only the scores of changed columns are recomputed."""
        gates, rows, has_mode = model.features_, np.asarray(X, dtype=np.float64), self._has_mode
        S, M, _ = gates.directions.shape
        K, step = len(model.classes_), max(1, CHUNK // (S * M))
        share, votes = self._pooled()[2], self.votes
        point, draws = np.zeros((len(settings), K)), np.zeros((S - has_mode, len(settings), K))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            z = gates.on_scale(rows[some])
            scores = gates.directions @ gates.standardised(rows[some]).T + gates.offsets[..., None]  # (S, M, rows)
            for c, (places, values) in enumerate(settings):
                change = gates.on_scale(values[some], places) - z[:, places]
                moved = softmax(gates.directions_along(places) @ change.T, scores)
                p = np.matmul(votes, moved).transpose(2, 0, 1) / M  # as `weights` has them
                point[c] += self._sharpened(np.tensordot(p, share, (1, 0))).sum(axis=0)
                draws[:, c] += self._sharpened(p[:, : S - has_mode]).sum(axis=0)
        return point / len(rows), draws / len(rows)

    def step(self, model: ClassModel) -> float:
        """Return half a standard deviation: normal scores bend at every observed value."""
        return 0.01 if model.features_.knots is None else 0.25

    def size(self, model: ClassModel) -> str:
        """Describe classes and components."""
        K, M = self.log_weights.shape[2:]
        return f"{K} classes, {M} learned directions of {model.n_features_in_} covariates"

    def table(self, model: ClassModel, prob: float) -> Table:
        """Return the components of one draw."""
        return components(model.readable_draw_, self.votes, model.features_, model.classes_, model._covariates())

    def largest(self, model: ClassModel, n: int) -> tuple[str, Table]:
        """Return the most relevant covariates, since components have no identity."""
        found = model._relevance_interval()
        order = np.argsort(-found[0], kind="stable")[:n]
        columns: Table = {"covariate": model._covariates()[order]}
        columns |= {name: part[order] for name, part in zip(("relevance", "lower", "upper"), found, strict=True)}
        return "most relevant covariates", columns

    def explain(self, model: ClassModel, row: object, prob: float) -> Explanation:
        """Explain by contributions of columns, relative to the centre of the data on the scale of the directions."""
        rows = model._rows(row)
        gates, k = rows.features, int(np.argmax(self.predict(rows)[0]))
        z = gates.on_scale(rows.X)[0]
        change = gates.directions @ (z if gates.rotation is None else z @ gates.rotation)
        votes, share = self.votes.transpose(0, 2, 1), self._pooled()[2]
        smallest = SMALLEST * votes.shape[1]  # `weights` are votes divided by the number of components
        line = Mixture(gates.offsets, change, votes, share, int(self._has_mode), self.power, smallest)
        found = contributions(line, k, gates.directions, lambda slopes: z * gates.along_covariates(slopes))
        return reasons(model, found, k, rows.X[0], gates.reference(), prob)

    def variables(self, model: ClassModel, raw: bool) -> Variables:
        """Return no identified draws; if raw, draws for the columns of z (covariates or principal axes)."""
        if not raw:
            return Variables({}, {}, {"class": model.classes_})
        values = {"direction": self.directions, "log_weight": self.log_weights, "scale": self.scales}
        dims = {"direction": ["component", "column"], "log_weight": ["class", "component"], "scale": ["column"]}
        M, r = self.directions.shape[2:]
        columns = model._covariates() if model.features_.rotation is None else np.arange(r)
        return Variables(values, dims, {"class": model.classes_, "component": np.arange(M), "column": columns})

    def quantities(self, model: FittedModel) -> Quantities:
        """Return the worst-mixing probability and the log-posterior; nothing else has an identity."""
        found = getattr(model, "diagnostics_", None)
        scalars = {} if found is None else found.scalars(model.classes_)
        return Quantities(scalars | {"log-likelihood": ("log-posterior", model.trace_)})


def log_sharpened(probability: Array, power: float) -> Array:
    """κ ln p − ln Σ_l p_l^κ over the last axis."""
    log = power * np.log(np.maximum(probability, SMALLEST))
    result: Array = log - logsumexp(log, axis=-1, keepdims=True)
    return result


def shortest(blocks: Iterable[Array], prob: float) -> tuple[Array, Array]:
    """Shortest intervals, two arrays (n, K), that contain this fraction of the draws of blocks (rows, S, K)."""
    ends = []
    for block in blocks:
        ordered = np.sort(block, axis=1)
        held = int(np.ceil(prob * block.shape[1]))
        lower, upper = ordered[:, : block.shape[1] - held + 1], ordered[:, held - 1 :]
        best = np.argmin(upper - lower, axis=1, keepdims=True)
        ends.append([np.take_along_axis(end, best, axis=1)[:, 0] for end in (lower, upper)])
    lower, upper = np.concatenate(ends, axis=1)
    return lower, upper


class DirectionPoint(ModeAlone, DirectionDraws):
    """Posterior that consists of the mode alone."""
