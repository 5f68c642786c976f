"""Posterior of the sparse logit: draws for the original covariates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plackett.model.diagnostics import agreement
from plackett.model.measures import measures
from plackett.model.race import Array
from plackett.posterior.base import Estimates, Explanation, Posterior, Quantities, Variables
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.reasons import reasons
from plackett.posterior.weights import CHUNK

ACTIVE = 0.1  # change of log-odds per standard deviation above which a covariate is active


@dataclass(frozen=True)
class LogitDraws(Posterior):
    """Draws of a Markov chain, for covariates on their original scale.

    Attributes
    ----------
    coef : (chain, draw, K, d) array
        Coefficients; 0 for the last class.
    intercept : (chain, draw, K) array
        Intercepts; 0 for the last class.
    penalty : (chain, draw) array
        θ of the Laplace prior with rate √θ, which holds for the standardised covariates.
    """

    model_name = "sparse Bayesian multinomial logit"
    no_race = (
        "only a Plackett–Luce model is a race between features; a sparse logit is not. Read its coef_, or "
        "plots.contributions for one row."
    )

    unit = "coefficients are log-odds against the last class, per standard deviation of a column if it is standardised"
    drawn = ("coef", "intercept", "penalty")
    coef: Array = field(repr=False)
    intercept: Array = field(repr=False)
    penalty: Array = field(repr=False)

    @classmethod
    def from_standardised(cls, beta: Array, penalty: Array, mean: Array, scale: Array) -> LogitDraws:
        """Convert draws (chain, draw, K−1, 1+d) of intercept and coefficients of (x − mean)/scale."""
        n_chains, n_draws, free, p = beta.shape
        coef, intercept = np.zeros((n_chains, n_draws, free + 1, p - 1)), np.zeros((n_chains, n_draws, free + 1))
        np.divide(beta[..., 1:], scale, out=coef[:, :, :-1])
        intercept[:, :, :-1] = beta[..., 0] - coef[:, :, :-1] @ mean
        return cls(coef, intercept, penalty)

    def _scores(self, rows: Array) -> Iterator[Array]:
        """Yield linear predictors (rows, K, S) of runs of rows under every draw, relative to the largest of each."""
        K, d = self.shape_of_estimate
        coef, intercept = self.coef.reshape(-1, K * d).T, self.intercept.reshape(-1, K).T
        coef = coef.reshape(K, d, -1).swapaxes(0, 1).reshape(d, -1)
        step = max(1, CHUNK // intercept.size)
        for start in range(0, len(rows), step):
            scores = (rows[start : start + step] @ coef).reshape(-1, *intercept.shape)
            scores += intercept
            scores -= scores.max(axis=1, keepdims=True)
            yield scores

    def log_probabilities(self, rows: Array) -> Iterator[Array]:
        """Yield log-probabilities (1) of runs of rows under every draw, arrays (rows, S, K)."""
        for scores in self._scores(rows):
            scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
            yield scores.transpose(0, 2, 1)

    def probabilities(self, rows: Array) -> Iterator[Array]:
        """Yield probabilities (1) of runs of rows under every draw, arrays (rows, S, K)."""
        for scores in self._scores(rows):
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
            yield scores.transpose(0, 2, 1)

    def log_predictive(self, rows: Array) -> Iterator[Array]:
        """Yield log-probabilities, since every draw predicts independently."""
        return self.log_probabilities(rows)

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, d)."""
        K, d = self.coef.shape[2:]
        return K, d

    def size(self, model: Any) -> str:
        """Describe classes, covariates and penalty."""
        K, d = self.shape_of_estimate
        learned = " (learned)" if model.penalty == "learn" else ""
        return f"{K} classes, {d} covariates, penalty θ = {model.penalty_:.3g}{learned}"

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """Return whether the chains agree on predictions."""
        return agreement(model.diagnostics_, type(model).__name__)

    def estimates(self, model: Any) -> Estimates:
        """Return intercepts and coefficients for standardised covariates, without the last class (zero)."""
        names = np.array(["intercept", *model._covariates()], dtype=object)
        coef, scale = self.coef[:, :, :-1], np.where(np.isfinite(model.scale_), model.scale_, 0.0)
        average = self.intercept[:, :, :-1] + coef @ model.mean_
        chains = np.concatenate([average[..., None], coef * scale], axis=-1)
        draws = chains.reshape(-1, *chains.shape[2:])
        measured = None
        if model.diagnostics_ is not None:
            rhat, bulk, tail = measures(chains)
            measured = np.minimum(bulk, tail), rhat
        unit = "standard deviation" if model.standardize else "unit"
        reading = (
            f"Log-odds per {unit} of the column, against the last class, {model.classes_[-1]}; the intercept is the "
            f"log-odds of an average row. Active is the probability of moving them by more than {ACTIVE}."
        )
        what = "coefficients", f"log-odds per {unit}", reading, names
        active = (np.abs(draws) > ACTIVE).mean(axis=0)
        return Estimates(*what, "median", np.median(draws, axis=0), draws.mean(axis=0), draws, active, measured, 3)

    def explain(self, model: Any, row: Any, prob: float) -> Explanation:
        """Explain by contributions of columns, relative to the row of means; every class votes for itself."""
        (x,) = rows = model._rows(row)
        K, d = self.coef.shape[2:]
        coef, intercept = self.coef.reshape(-1, K, d), self.intercept.reshape(-1, K)
        away, S = np.where(np.isfinite(model.scale_), x - model.mean_, 0.0), len(coef)
        votes, k = np.broadcast_to(np.eye(K), (S, K, K)), int(np.argmax(self.predict(rows)[0]))
        line = Mixture(intercept + coef @ model.mean_, coef @ away, votes, np.full(S, 1 / S))
        found = contributions(line, k, coef, lambda slopes: away * slopes)
        what = "the mean of every column" if model.standardize else "zero in every column: standardize=False"
        return reasons(model, found, k, x, (model.mean_, what), prob)

    def variables(self, model: Any, raw: bool) -> Variables:
        """Return coefficients, intercepts and the penalty, all of which are identified."""
        values = {"coef": self.coef, "intercept": self.intercept, "penalty": self.penalty}
        dims = {"coef": ["class", "feature"], "intercept": ["class"]}
        return Variables(values, dims, {"class": model.classes_, "feature": model._covariates()})

    def quantities(self, model: Any) -> Quantities:
        """Return the penalty, the log-likelihood, the worst-mixing probability and every coefficient."""
        scalars = {"penalty": ("ln θ", np.log(self.penalty)), "log-likelihood": ("log-likelihood", model.trace_)}
        found, table = model.diagnostics_, ("coefficient of ", self.coef, model._covariates())
        if found is None:
            return Quantities(scalars, *table)
        scalars |= found.scalars(model.classes_)
        return Quantities(
            scalars, *table, np.minimum(found.coef.ess_bulk, found.coef.ess_tail), float(found.penalty.ess_bulk)
        )
