"""Comparison of candidates on held-out observations: clear losers are dropped after the first folds.

A candidate is dropped if its loss exceeds that of the best by `HOPELESS` standard errors of the paired difference. With
one component per owner the mode is unique: the path then begins at the strong penalties, where optimisation is short,
and in later folds at the modes of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plackett.compute.pieces import cores
from plackett.directions.map import is_concave, path, scales_for
from plackett.directions.prior import Prior
from plackett.directions.settings import LearnedDirections
from plackett.directions.task import Numbers, Task
from plackett.directions.walk import AT_ONCE
from plackett.inference.folds import Folds
from plackett.inference.limits import HELD_OUT, Clock
from plackett.model.race import Array
from plackett.output.progress import progress_bar
from plackett.output.scores import log_losses

HOPELESS = 2.5  # standard errors
ENOUGH = 60  # held-out observations before candidates are dropped
ITERATIONS = 300  # iterations of L-BFGS for a mode that predicts a fold
SMALLEST_LOG = -600.0  # lower bound of ln of an outcome's probability over that of a guess

Choice = tuple[int, int, float]  # design, components of each owner, σ


def losses(predicted: Array, observed: Numbers | None) -> Array:
    """Return −ln Pr of each outcome; relative to a guess for whole outcomes, NaN without a prediction."""
    if observed is not None:
        return log_losses(predicted, observed)
    found: Array = -np.log(np.maximum(predicted[:, 0], np.exp(SMALLEST_LOG)))
    return found


def mean_and_error(gain: Array, weight: Array, units: Numbers | None) -> tuple[float, float]:
    """Return the weighted mean and its standard error, from the sums over units if there are any."""
    total = weight.sum()
    mean = float(weight @ gain / total)
    away = weight * (gain - mean)
    squares = weight * (gain - mean) ** 2 if units is None else np.bincount(units, away) ** 2
    return mean, float(np.sqrt(squares.sum()) / total)


class Contest:
    """Held-out losses of candidates by observation; NaN where a candidate has made no prediction."""

    def __init__(self, task: Task, candidates: Sequence[Choice]):
        self.observed, self.weights = task.reader.observed(task), task.seen.weights
        self.units = task.seen.units if task.reader.error_by_unit else None
        self.left = list(candidates)
        self.lost = {choice: np.full(len(task.seen), np.nan) for choice in candidates}

    def take(self, choice: Choice, some: Numbers, predicted: Array) -> None:
        """Store predictions of a candidate for some observations, none of which it was trained on."""
        self.lost[choice][some] = losses(predicted, None if self.observed is None else self.observed[some])

    def gain(self, one: Choice, other: Choice) -> tuple[float, float]:
        """Return the mean excess of the loss of `one` over `other` where both are known, and its standard error."""
        excess = self.lost[one] - self.lost[other]
        known = np.isfinite(excess)
        units = None if self.units is None else self.units[known]
        return mean_and_error(excess[known], self.weights[known], units)

    @property
    def known(self) -> list[Choice]:
        """Remaining candidates with at least one prediction."""
        return [choice for choice in self.left if np.isfinite(self.lost[choice]).any()]

    def mean(self, choice: Choice) -> float:
        """Return the mean loss of a candidate where it is known."""
        some = np.isfinite(self.lost[choice])
        return float(np.average(self.lost[choice][some], weights=self.weights[some]))

    def best(self) -> Choice:
        """Return the remaining candidate with the lowest loss."""
        if not self.known:
            raise ValueError("no fold has two classes to train on; give more rows of each class, or fewer folds.")
        return min(self.known, key=self.mean)

    def drop(self) -> None:
        """Drop clear losers, and scales that are not adjacent to the best one of the same design and components."""
        best = self.best()
        excess = {choice: self.gain(choice, best) for choice in self.left}
        left = []
        for which, m in dict.fromkeys((which, m) for which, m, _ in self.left):
            scales = sorted(scale for *kind, scale in self.left if kind == [which, m])
            at = min(range(len(scales)), key=lambda i: excess[which, m, scales[i]][0])
            left += [(which, m, scale) for scale in scales[max(at - 1, 0) : at + 2]]
        self.left = [
            choice for choice in self.left if choice in left and excess[choice][0] <= HOPELESS * excess[choice][1]
        ]

    def mean_losses(self) -> tuple[Choice, dict[Choice, float]]:
        """Return the best candidate and all losses; that of a dropped one follows from its difference to the best."""
        best = self.best()
        lowest = self.mean(best)
        return best, {choice: lowest + self.gain(choice, best)[0] for choice in self.lost}


def first_folds(folds: Folds) -> int:
    """Return how many folds hold out enough for candidates to be dropped."""
    held = np.cumsum([len(test) for _, test in folds])
    return min(int(np.searchsorted(held, ENOUGH)) + 1, len(folds))


def held_out_modes(
    tasks: Sequence[Task],
    settings: LearnedDirections,
    shape: float,
    components: Sequence[int],
    folds: Folds,
    max_iter: int,
    clock: Clock,
) -> tuple[Contest, dict[Choice, Array], dict[Choice, Array]]:
    """Return held-out losses of modes, their predictions, and the modes without the first fold.

    Predictions are NaN for observations that no mode could predict. A mode is left out if its groups are not all.
    """
    reader, n, width = tasks[0].reader, len(tasks[0].seen), tasks[0].n_predicted
    most = min(max_iter, ITERATIONS)
    every = [(which, m, scale) for which, task in enumerate(tasks) for m in components for scale in scales_for(task, m)]
    contest = Contest(tasks[0], every)
    found = {choice: np.full((n, width), np.nan) for choice in every}
    begun: dict[Choice, Array] = {}

    def way(choices: list[Choice], prior: Prior) -> list[Choice]:
        """Order choices along the path of penalties."""
        return sorted(choices, key=lambda choice: choice[2], reverse=not is_concave(prior))

    def predict(train: Any, test: Numbers, left: list[Choice], keep: bool) -> list[tuple[Choice, Array]]:
        predictions = []
        for which, task in enumerate(tasks):
            if not any(choice[0] == which for choice in left):
                continue
            part, groups = reader.training(task, train)
            if groups is not None and len(groups) < 2:
                continue
            columns = slice(None) if groups is None else groups
            for m in components:
                prior = reader.prior(part, settings, shape, m)
                choices = way([choice for choice in left if choice[:2] == (which, m)], prior)
                alike = groups is None or len(groups) == task.seen.n_groups
                start = begun.get(choices[0]) if choices and alike and is_concave(prior) else None
                scales, dtype = [scale for *_, scale in choices], task.precision if task.on_gpu else np.float64
                climbs = path(part, prior, scales, most, reader.fold_tolerance, start, dtype=dtype)
                for choice, (position, *_) in zip(choices, climbs, strict=True):
                    predicted = np.zeros((len(test), width))
                    predicted[:, columns] = task.predicted(position[None], prior, test)
                    predictions.append((choice, predicted))
                    if keep and alike:
                        begun[choice] = position
        return predictions

    def take(test: Numbers, predictions: list[tuple[Choice, Array]]) -> None:
        for choice, predicted in predictions:
            found[choice][test] = predicted
            contest.take(choice, test, predicted)

    first = first_folds(folds)
    pool = ThreadPoolExecutor(AT_ONCE if tasks[0].is_remote else 1 if tasks[0].on_gpu else cores())
    try:
        with progress_bar(tasks[0].progress, f"held-out {reader.noun}, modes", len(folds)) as report:
            for f, (train, test) in enumerate(folds[:first]):
                take(test, predict(train, test, contest.left, keep=f == 0))
                clock.insist(HELD_OUT)
                report(f + 1)
            if first < len(folds):
                contest.drop()
            jobs = [pool.submit(predict, *fold, contest.left, False) for fold in folds[first:]]
            for f, ((_, test), job) in enumerate(zip(folds[first:], jobs, strict=True), start=first):
                take(test, job.result())
                clock.insist(HELD_OUT)
                report(f + 1)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return contest, found, begun
