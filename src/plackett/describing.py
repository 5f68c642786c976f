"""Rankers whose items are described by covariates: their fit, new items, and the coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from plackett.capabilities import Ignored, check
from plackett.data.item_covariates import ItemCovariates
from plackett.data.labels import label_array
from plackett.data.types import Labels
from plackett.fit import Prepared, Run, fit_described
from plackett.inference.base import Fit
from plackett.model.race import Array
from plackett.posterior.described import DescribedDraws, DescribedPoint
from plackett.posterior.pool import Pool
from plackett.posterior.worths import finite_logs
from plackett.tiering import TieringRankings

CLIMB = Ignored(
    ("tol", "max_iter", "accelerate"),
    "with items= the mode is found by Newton's method, which runs until it has converged. Leave it out.",
)
NEW_ITEMS = 7  # key of the random numbers of new items


class DescribingRankings(TieringRankings):
    """Fitted model of rankings whose items may be described by covariates."""

    item_covariates_: ItemCovariates

    @property
    def _described(self) -> bool:
        """True if the model was fitted to described items."""
        return hasattr(self, "item_covariates_")

    @property
    def _described_worths(self) -> DescribedDraws | DescribedPoint | None:
        """The posterior of a model of described items; None for other models."""
        posterior = getattr(self, "posterior_", None)
        return posterior if isinstance(posterior, (DescribedDraws, DescribedPoint)) else None

    def _counted(self, K: int, p: int) -> str:
        counted = super()._counted(K, p)
        return f"{counted} described by {self.item_covariates_.in_words}" if self._described else counted

    def _check_items(self, run: Run, X: Any, groups: Any, partitions: bool) -> None:
        """Raise for settings that a fit with covariates of the items would ignore, and for impossible combinations."""
        given = self._combination(groups is not None, partitions, without=True)
        ignored = ((given.inference, CLIMB),) if given.inference.maximises else ()
        check(replace(given, refused=self._no_items(run, X, partitions), ignored=(*given.ignored, *ignored)))

    def _no_items(self, run: Run, X: Any, partitions: bool) -> str | None:
        """Return why items cannot be described in this combination, or None."""
        inference = run.inference
        if partitions or self.engine not in ("auto", "numba", "numpy"):
            where = "rankings in partitions" if partitions else f"engine={self.engine!r}"
            return f"items= cannot be had with {where}. Use rankings in memory and engine='auto'."
        if X is not None:
            return (
                "items= describes the items of rankings without covariates X of the person who ranks. Leave X or items "
                "out; PlackettLuceChooser takes both."
            )
        if self._segmented() is not None:
            return "segments have worths of their own, which items= does not describe. Leave one of the two out."
        if self._tiered() is not None:
            return "items of one tier have one worth, which items= does not describe. Leave one of the two out."
        if run.tailed is not None:
            return f"items= belongs to prior='gamma', and this is prior={run.tailed!r}. Leave one of the two out."
        if self.ties == "race":
            return (
                "ties='race' identify the scale of the worths, and covariates of items say nothing about it. Use "
                "another setting of ties, or leave items out."
            )
        if not (inference.samples or inference.maximises):
            return "described items have no variational approximation. Use inference='gibbs' or inference='em'."
        if inference.samples and inference.moves not in ("auto", "walk"):
            return (
                f"with items= worths and coefficients are drawn by Hamiltonian trajectories, and this is "
                f"Gibbs(moves={inference.moves!r}). Use Gibbs(moves='auto')."
            )
        return None

    def _fit_described(self, run: Run, data: Prepared, table: Any, items: Labels) -> Fit:
        """Fit worths of items with the covariates of a table."""
        covariates = ItemCovariates.learn(table, items)
        fit = fit_described(run, data, covariates.z)
        return replace(fit, extra=fit.extra | {"item_covariates_": covariates})

    def _listed(self, X: Any, items: Any) -> tuple[Pool, Labels]:
        """Return log-rates of the items, of those of the fit's table that were never ranked or those of another one."""
        pool, known = super()._listed(X, None)
        posterior = self._described_worths
        if posterior is None:
            return pool, known
        held = self.item_covariates_
        labels, z = (held.others, held.other_z) if items is None else held.of(items, known)
        if not len(labels):
            return pool, known
        return self._with_new(posterior, pool, z, labels), label_array([*known.tolist(), *labels.tolist()])

    def _pools_listed(self, X: Any, items: Any) -> tuple[Callable[[], Iterator[Pool]], Labels]:
        """Return log-rates of the items that `worth` lists, and their labels."""
        if self._described_worths is None:
            return super()._pools_listed(X, items)
        pool, labels = self._listed(X, items)
        return lambda: iter([pool]), labels

    def _with_new(self, posterior: DescribedDraws | DescribedPoint, pool: Pool, z: Array, labels: Labels) -> Pool:
        """Return a pool of all items with new ones behind them, whose draws do not depend on their order."""
        order = np.argsort([str(label) for label in labels.tolist()], kind="stable")
        seed = np.random.SeedSequence(self._run_settings()[0].entropy, spawn_key=(NEW_ITEMS,))
        drawn = posterior.new_log_rates(self.item_covariates_.z, z[order], np.random.default_rng(seed))
        new = np.empty_like(drawn)
        new[:, order] = drawn
        log_rates = finite_logs(np.concatenate([pool.log_rates, new[:, None]], axis=2))
        return pool._replace(log_rates=log_rates, available=np.ones((1, log_rates.shape[2]), dtype=bool))

    def _further_parameters(self) -> tuple[list[str], Array]:
        posterior = self._described_worths
        if posterior is None:
            return super()._further_parameters()
        gamma = posterior.effects() / self.item_covariates_.scale
        names = [f"gamma[{name}]" for name in self.item_covariates_.names]
        return [*names, "shape"], np.column_stack([gamma, posterior.shapes(self.shape_)])
