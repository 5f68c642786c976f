"""Posterior of worths of items in segments of rankers, without covariates: draws, or the estimate of EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from plackett.model.diagnostics import agreement
from plackett.model.mixture import POOLED, standard_normals
from plackett.model.race import Array
from plackett.posterior.base import NO_CHAINS, Codes, Explanation, Posterior, Quantities, Table, Variables
from plackett.posterior.pool import Pool
from plackett.posterior.segment_members import Drawn, SegmentDraws, SegmentMembers
from plackett.posterior.segmented_choices import share_scalars
from plackett.posterior.worths import better, item_pools, worth_table

ONE_ESTIMATE = "EM gives one estimate and no uncertainty, so there is no interval. Use inference='gibbs'."


@dataclass(frozen=True)
class SegmentedWorths(Posterior[Any]):
    """Worths λ_c of the items for persons of segment c.

    Attributes
    ----------
    of_segments : SegmentDraws
        Draws of log-worths and shares; one of one chain is an estimate.
    shape : (chain, draw) array
        a of the prior of the worths.
    estimate : bool
        Whether this is the estimate of EM.
    converged : bool
        Whether EM ended at a maximum.
    covariance : (C K + C − 1, C K + C − 1) array, optional
        Of an estimate: of the log-worths of each segment in turn and ln π_c − ln π_1, the inverse information; None
        where the likelihood is flat, or items are many.
    """

    model_name = "Plackett–Luce model in segments"
    no_estimates = "worths of segments are listed by worth()."
    no_race = "without covariates there are no features that compete."
    drawn: ClassVar[tuple[str, ...]] = ("of_segments", "shape")
    of_segments: SegmentDraws
    shape: Array = field(repr=False)
    estimate: bool = False
    converged: bool = True
    covariance: Array | None = field(default=None, repr=False)

    @property
    def no_interval(self) -> str | None:  # type: ignore[override]
        """Why there is no interval, if there is none."""
        return ONE_ESTIMATE if self.estimate and self.covariance is None else None

    @property
    def no_chains(self) -> str | None:  # type: ignore[override]
        """Why there are no chains, if there are none."""
        return NO_CHAINS if self.estimate else None

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Items, one number each."""
        return self.of_segments.parameters.shape[3], 1

    @property
    def counted(self) -> int:
        """Worths, whose sum in each segment is 1, and shares."""
        _, _, C, K = self.of_segments.parameters.shape
        return C * (K - 1) + C - 1

    def _normal_draws(self, covariance: Array) -> Drawn:
        """Draws about the estimate, always the same."""
        best, (C, K) = self.of_segments.all_draws(), self.of_segments.parameters.shape[2:]
        values, vectors = np.linalg.eigh(covariance)
        steps = standard_normals(POOLED, len(values)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        logits = np.log(best.shares[0]) + np.append(np.zeros((len(steps), 1)), steps[:, C * K :], axis=1)
        return Drawn(best.parameters + steps[:, : C * K].reshape(-1, C, K), softmax(logits, axis=1))

    def _spread(self) -> tuple[Drawn, Array, int]:
        """Draws that show what is known with their weights, and how many modes they end with."""
        draws = self.of_segments.all_draws()
        if self.covariance is None:
            S = len(draws.shares)
            return draws, np.full(S, 1 / S), 0
        about = self._normal_draws(self.covariance)
        parts = zip((about.parameters, about.shares), (draws.parameters, draws.shares), strict=True)
        return Drawn(*(np.concatenate(both) for both in parts)), np.append(np.zeros(len(about.shares)), 1.0), 1

    def spread_members(self) -> SegmentMembers:
        """Members that show what is known: draws, or draws about the estimate and last the estimate, which predicts."""
        if self.covariance is None:
            return self.members()
        draws, weight, modes = self._spread()
        return draws.members(False, weight, modes)

    def members(self, every: bool = False) -> SegmentMembers:
        """Draws, at most 400 of them unless all are asked for."""
        draws = self.of_segments.all_draws() if every else self.of_segments.some_draws(False)
        return draws.members(False)

    def pool_of(self, c: int) -> Pool:
        """Log-rates of all items in segment c, under all draws, or about the estimate and at it."""
        draws, weight, modes = self._spread()
        alone = Drawn(draws.parameters[:, [c]], np.ones((len(draws.shares), 1)))
        (pool,) = item_pools(alone.members(False, weight, modes), np.ones((1, 1)))
        return pool

    def share_draws(self) -> Array:
        """Shares (S, C) under draws."""
        draws, _, modes = self._spread()
        return draws.shares[: len(draws.shares) - modes]

    def predicted(self, known: Codes) -> Array:
        """Probabilities (N, K) of being first for known persons, by their places among those of the fit."""
        draws = self.of_segments.some_draws(True)
        first = np.exp(draws.parameters - np.logaddexp.reduce(draws.parameters, axis=2, keepdims=True))
        assert draws.known is not None
        return np.asarray(np.einsum("snc,sck->nk", draws.known[:, known], first) / len(first))

    def order(self, pool: Pool) -> Codes:
        """Items by their expected place in a new ranking, the best first."""
        ahead = np.nansum(better(pool, "ranking", slots=False)[0], axis=1)
        return np.argsort(-ahead, kind="stable")

    def worths(
        self, prob: float, unit: float = 1.0, anchor: tuple[int, float] | None = None
    ) -> list[tuple[Codes, Table]]:
        """For each segment its items, the best first, and the columns of `worth`."""
        some = range(self.of_segments.segments)
        return [worth_table(self.pool_of(c), prob, self.no_interval is not None, unit, anchor) for c in some]

    def table(self, model: Any, prob: float) -> Table:
        """The columns of `worth`, rounded, segment by segment."""
        found = self.worths(prob)
        items = [model.items_[order] for order, _ in found]
        columns: Table = {"segment": np.repeat(np.arange(1, len(found) + 1), len(items[0]))}
        columns["item"] = np.concatenate(items)
        names = found[0][1]
        return columns | {name: np.concatenate([each[name] for _, each in found]).round(4) for name in names}

    def probabilities(self, rows: Any) -> Iterator[Array]:
        """Probabilities (rows, S, K) of being first."""
        for pool in item_pools(self.members(), rows):
            yield pool.both()[1].transpose(1, 0, 2)

    def size(self, model: Any) -> str:
        """Items, segments and prior."""
        found = f"{len(model.items_)} items, {self.of_segments.in_words()}, {model._prior_in_words()}"
        return found + str(model._number_in_words())

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """Whether EM ended at a maximum, or the chains agree on predictions."""
        if not self.estimate:
            return agreement(model.diagnostics_)
        if not self.converged:
            return False, "EM did not reach a maximum"
        if self.covariance is None:
            return None, "the best of several starts; one estimate without uncertainty"
        what = "the maximum of the likelihood" if float(self.shape[0, 0]) == 1.0 else "the mode of the posterior"
        return True, f"{what}, the best of several starts, with intervals from the curvature there"

    def explain(self, model: Any, row: object, prob: float) -> Explanation:
        """There are no covariates."""
        raise ValueError(model._no_explanation())

    def variables(self, model: Any, raw: bool) -> Variables:
        """Shares, and log-worths with mean 0, by segment; the shape where it is learned."""
        draws, labels = self.of_segments, np.arange(1, self.of_segments.segments + 1)
        centred = draws.parameters - draws.parameters.mean(axis=3, keepdims=True)
        values = {"share": draws.shares, "log_worth": centred}
        if model.shape == "learn":
            values["shape"] = self.shape
        dims = {"share": ["segment"], "log_worth": ["segment", "item"]}
        return Variables(values, dims, {"segment": labels, "item": model.items_})

    def quantities(self, model: Any) -> Quantities:
        """Shares and the log-posterior."""
        return Quantities(share_scalars(self.of_segments, model.trace_))
