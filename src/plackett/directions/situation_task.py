"""Learned directions over situations: rates r_e = Σ_j exp(z_e·β_j) λ_{g(e)j}, with any response.

Rankings: the entries of a situation share a row of the person's covariates, and λ belongs to the items, each of which
owns components. If σ_1 is small this is exploded logit with interactions. Choices: each entry has a row of attributes,
and λ has one group, or several with their own weights, with one owner of all components: conditional logit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.model_selection import check_cv

from plackett.data.observations import Observations
from plackett.data.validation import is_whole
from plackett.directions.neighbours import SEARCHED, situations_like_new
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import Prior
from plackett.directions.settings import LearnedDirections
from plackett.directions.starts import situation_starts
from plackett.directions.task import Numbers, Reader, Task
from plackett.engines.base import Gradient
from plackett.engines.exponential_choices import has_shared_weights
from plackett.engines.nested import NestedChoices
from plackett.engines.situations import canonical
from plackett.inference.driver import Source
from plackett.inference.folds import Folds, as_folds
from plackett.model.diagnostics import probed
from plackett.model.draws import mixed
from plackett.model.mixture import Entries, Stacked, log_rates, outcome_values, shares, table_of
from plackett.model.race import Array
from plackett.model.verdict import PROBED
from plackett.responses import Choice
from plackett.responses.base import Whole, between_bounds
from plackett.responses.nests import Nests, nested_utilities

LARGEST_GAIN = 600.0  # bound of |ln| of an outcome's probability over that of a guess
OWNED = 2  # default number of components per group, if groups own them
COMMON = 6  # default number of components of the only owner
FLOATS = 1000  # number of situations from which chains use float32, which truncates votes below e^−50


@dataclass(frozen=True)
class SituationReader(Reader):
    """Situations in canonical order.

    Attributes
    ----------
    designs : tuple of (rows, d') arrays
        Candidate covariates of the rows of the situations; the first is the simplest.
    owned : bool
        True if each group owns components (items); False if one owner has all (alternatives with attributes).
    nests : Nests, optional
        Nests of alternatives.
    nest : (rows,) array
        Nest of each row of the designs; −1 for an alternative that stands alone.
    """

    designs: tuple[Array, ...]
    owned: bool
    nests: Nests | None = None
    nest: Whole | None = None

    noun, fold_tolerance, mode_tolerance, mixes_on_gpu = "situations", 1e-5, 1e-13, False
    weakest, folds_if_wide = 2.0, None
    error_by_unit = True
    em_compares_designs, em_skips_constant_rows = True, False

    @property
    def totals(self) -> bool:
        """True if groups own components."""
        return self.owned

    def candidates(self, task: Task) -> list[Task]:
        """Return one task per design, numbered."""
        return [with_design(task, which) for which in range(len(self.designs))]

    def n_units(self, task: Task) -> int:
        """Number of persons, or of situations if persons are unknown."""
        return len(task.seen) if task.seen.units is None else int(task.seen.units.max()) + 1

    def is_choice(self, task: Task) -> bool:
        """True if outcomes are choices, so that the probabilities of all entries are predicted."""
        return isinstance(task.seen.response, Choice)

    def n_predicted(self, task: Task) -> int:
        """Number of entries of a choice (the chosen first), or 1 for the probability of a whole outcome."""
        return int(np.diff(task.seen.all_situations.outcomes.start).max()) if self.is_choice(task) else 1

    def identity(self, task: Task) -> tuple[Any, ...]:
        """Return all that the posterior depends on besides the prior, and the division into remote blocks."""
        outcomes, group, row = task.seen.all_situations
        cut = () if task.remote is None else task.remote.identity(task.design)
        nested = () if self.nests is None or self.nest is None else (self.nest, "nests")
        return task.Z, *outcomes, group, row, type(task.seen.response).__name__, *cut, *nested

    def prepared(self, task: Task, dtype: npt.DTypeLike) -> Gradient:
        """Return rows packed once in float64; compiled chains pack their own precision."""
        if self.nests is None or self.nest is None:
            return task.local
        return NestedChoices.of(task.Z, task.seen, self.nests, self.nest)

    def precision(self, task: Task) -> npt.DTypeLike:
        """Return float32 for choices with shared weights, and if there are many situations."""
        shared = has_shared_weights(task.seen.n_groups, task.seen.response)
        return np.float32 if shared or len(task.seen) >= FLOATS else np.float64

    def prior(
        self, task: Task, settings: LearnedDirections, shape: float, components: int | None = None, few: bool = False
    ) -> Prior:
        """Return the prior: each group owns components, or one owner has all; `few` has no effect."""
        K, d = task.seen.n_groups, task.n_columns
        if self.owned:
            return settings.prior(K, d, shape, components or settings.components or min(OWNED, settings.owned(K)))
        M = components or settings.components or COMMON
        shapes = np.full((K, M), float(settings.own_shape))
        parameters = 0 if self.nests is None else len(self.nests.names)
        return settings.prior(1, d, shape, M)._replace(shape=shapes, parameters=parameters)

    def starts(self, task: Task, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """Return directions along the slope at β = 0, by passes in this process."""
        rows = self.prepared(task, np.float64)
        return situation_starts(rows, task.seen, task.n_columns, task.engine, prior, rngs)

    def folds(self, task: Task, n_folds: int) -> Folds:
        """Return folds of persons, assigned in an arbitrary but fixed order."""
        return as_folds(fold_numbers(task.seen, min(n_folds, self.n_units(task))))

    def splits(self, task: Task, cv: object) -> Folds:
        """Return this number of folds of persons, or those of a scikit-learn splitter."""
        if is_whole(cv):
            n_units = self.n_units(task)
            if min(cv, n_units) < 2:
                raise ValueError(f"cross-validation needs two folds or more: EM(cv={cv}), {n_units} units to divide.")
            return self.folds(task, int(cv))
        numbers = np.arange(len(task.seen))
        found = check_cv(cv).split(np.zeros(len(numbers)), groups=task.seen.units)
        return [(np.sort(numbers[train]), test) for train, test in found]

    def training(self, task: Task, train: Any) -> tuple[Task, Numbers | None]:
        """Return the training part; all groups keep their weights."""
        return task.part(train), None

    def predicted(self, task: Task, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Probabilities (n, entries) of choices, the chosen first; otherwise Pr(outcome) (n, 1) over a guess's."""
        beta, log_weights, _ = directions_and_weights(positions, prior, task.n_columns)
        entries, response = entries_of(task, some), task.seen.response
        log_r = log_rates(beta, log_weights, *entries[:3])
        if self.nest is not None:
            found: Array = self._nested(
                entries, entries.row, log_r, between_bounds(positions[:, -prior.parameters :])
            ).mean(axis=0)
            return np.pad(found, ((0, 0), (0, self.n_predicted(task) - found.shape[1])))
        if self.is_choice(task):
            share = shares(log_r, entries.start).mean(axis=0, keepdims=True)
            return table_of(share, entries.start, self.n_predicted(task))[:, 0]
        outcomes = task.seen.all_situations.part(np.arange(len(task.seen))[some]).outcomes
        guess = outcome_values(np.zeros((1, len(entries.group))), outcomes, response)
        gain = np.clip(outcome_values(log_r, outcomes, response) - guess, -LARGEST_GAIN, LARGEST_GAIN)
        return np.exp(gain).mean(axis=0)[:, None]

    def _nested(self, entries: Entries, rows: Numbers, log_r: Array, dissimilarity: Array) -> Array:
        """Return probabilities (S, T, entries) of nested choices; 0 where a situation has fewer entries.

        `rows` are the rows of the entries in all covariates, which determine their nests.
        """
        assert self.nest is not None
        nest = entries.wide(self.nest[rows].astype(np.float64))
        utilities = nested_utilities(entries.wide(log_r, missing=-np.inf), nest, dissimilarity)
        return softmax(utilities, axis=2)

    def observed(self, task: Task) -> Numbers | None:
        """Return the index of the chosen entry, which is the first."""
        return np.zeros(len(task.seen), dtype=np.intp) if self.is_choice(task) else None

    def probed(self, task: Task, draws: Stacked, most: int) -> Array:
        """Return Pr(e comes first) of entries of situations that resemble new ones (chain, draw, situation, entry)."""
        n, units = len(task.seen), task.seen.units
        some = probed(n, max(most * n // len(task.seen.all_situations.row), PROBED))
        others, units = probed(n, SEARCHED), np.arange(n) if units is None else units
        same = units[some][:, None] == units[others]
        seen = entries_of(task, some)
        entries = situations_like_new(seen, entries_of(task, others), same)
        C, D, M, d = draws.directions.shape
        found = log_rates(draws.directions.reshape(-1, M, d), draws.log_weights.reshape(C * D, -1, M), *entries[:3])
        if draws.parameters is not None:
            probability = self._nested(entries, seen.row, found, draws.parameters.reshape(C * D, -1))
            return probability.reshape(C, D, *probability.shape[1:])
        table = table_of(shares(found, entries.start), entries.start, int(np.diff(entries.start).max()))
        return np.moveaxis(table, 0, 1).reshape(C, D, *table.shape[::2])


def with_design(task: Task, which: int) -> Task:
    """Return the task with one of its designs."""
    assert isinstance(task.reader, SituationReader)
    return replace(task, Z=task.reader.designs[which], design=which)


def fold_numbers(seen: Observations, n_folds: int) -> Numbers:
    """Return the fold of each situation, assigned in an arbitrary but fixed order; situations of a unit share one."""
    if seen.units is None:
        return np.arange(len(seen)) % n_folds  # situations are in the order of their digests
    n_units = int(seen.units.max()) + 1
    turn = np.empty(n_units, dtype=np.intp)
    turn[np.argsort(mixed(np.arange(n_units, dtype=np.uint64)), kind="stable")] = np.arange(n_units)
    return turn[seen.units] % n_folds


def entries_of(task: Task, some: Numbers) -> Entries:
    """Return some of the situations without their outcomes."""
    outcomes, group, row = task.seen.all_situations.part(np.arange(len(task.seen))[some])
    return Entries(task.Z, group, row, outcomes.start)


def make_situation_task(
    designs: Sequence[Array],
    seen: Observations,
    source: Source,
    owned: bool,
    engine: str = "auto",
    nests: Nests | None = None,
    nest: Whole | None = None,
) -> Task:
    """Put situations in an order that depends only on their content, and make the task.

    Parameters
    ----------
    designs : sequence of (rows, d) arrays
        Candidate covariates of the rows, each standardised; the simplest first. Held-out situations choose one.
    seen : Observations
        Situations; the situations of one unit are held out together.
    source : Source
        Seed of the chains, and the setting of progress bars.
    owned : bool
        True: each group owns components (rankings of items by persons with covariates). False: one owner has them all
        (alternatives with attributes), for any groups of the weights λ.
    engine : str
        Engine of the passes in this process.
    nests : Nests, optional
        Nests of alternatives, for choices with shared weights.
    nest : (rows,) array, optional
        Nest of each row; −1 for an alternative that stands alone.
    """
    marks = [] if nest is None else [nest[:, None].astype(np.float64)]
    found, order, used = canonical(np.hstack([*designs, *marks]), seen.all_situations)
    kept = tuple(np.ascontiguousarray(Z[used], dtype=np.float64) for Z in designs)
    units = None if seen.units is None else np.unique(seen.units[order], return_inverse=True)[1].ravel()
    ordered = Observations.of_situations(found, seen.response, seen.n_groups, units)
    reader = SituationReader(kept, owned, nests, None if nest is None else nest[used].astype(np.int64))
    return Task(ordered, kept[0], reader, source, engine, design=0)
