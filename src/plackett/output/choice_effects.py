"""Marginal effects, elasticities, willingness to pay and diversion of choices.

All refer to the predictions of the model: attributes are changed slightly, and log-rates of each situation are
recomputed. The log-rate of an entry depends on its own row alone, so that all entries are changed at once, and the
change of one alternative at a time is applied to its situation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plackett.data.covariates import Covariate, of_columns
from plackett.features.choice_design import EntryTable
from plackett.model.mixture import Entries
from plackett.model.race import Array
from plackett.output.what_if import Average, a_little, spread_out
from plackett.posterior.base import Codes, Table, objects, significant
from plackett.posterior.pool import Mask, Pool

if TYPE_CHECKING:
    from plackett.choosing import ChoosingModel

DIGITS = 4  # decimals of probabilities
DIVIDED = 0.1  # fraction of choices with the opposite sign of slope from which a warning is given
DOUBTFUL = 0.05  # fraction of draws with the opposite sign of the cost from which a warning is given
ALL, PERSON = "all", "person"


class Move(NamedTuple):
    """Column of all entries at two values, the distance of these, and the column's standard deviation, 1 for levels."""

    low: EntryTable
    high: EntryTable
    step: float
    deviation: float = 1.0


class Survey:
    """Situations to average over, in the form of a fitted chooser, with and without changes."""

    def __init__(self, model: ChoosingModel, table: EntryTable, person: Codes):
        some = spread_out(len(table.start) - 1)
        self.model, self.whole, self.table, self.person = model, table, table.take(some), person[some]
        self.posterior = model.posterior_

    def attribute(self, f: int) -> Move:
        """Change an attribute of every entry slightly down and up; 0/1 to both values."""
        x = self.whole.values[:, f]
        low, high, *sizes = self._two(x, self.table.values[:, f])
        return Move(self.table.with_attribute(f, low), self.table.with_attribute(f, high), *sizes)

    def person_column(self, h: int) -> Move:
        """Change a person's column slightly down and up; 0/1 to both values."""
        low, high, *sizes = self._two(self.whole.context[:, h], self.table.context[:, h])
        return Move(self.table.with_person(h, low), self.table.with_person(h, high), *sizes)

    def _two(self, x: Array, some: Array) -> tuple[Array, Array, float, float]:
        if np.isin(x, (0.0, 1.0)).all():
            return np.zeros_like(some), np.ones_like(some), 1.0, 1.0
        h = a_little(x, self.posterior.step(self.model))
        return some - h, some + h, 2 * h, float(x.std())

    def entries(self, table: EntryTable) -> Entries:
        """Return the rows of these entries."""
        return self.model._entries(table, self.person)

    def pools(self, *tables: EntryTable) -> Iterator[tuple[slice, tuple[Pool, ...]]]:
        """Yield runs of situations: their indices, and their pools for each of the tables."""
        done = 0
        for found in zip(*(self.posterior.pools(self.entries(table)) for table in tables), strict=True):
            n = len(found[0].available)
            yield slice(done, done + n), found
            done += n


def _sum(both: tuple[Array, Array], weight: Array | Mask) -> Average:
    """Sum (T, A) and (S, T, A) over situations, with weights (T, A) or (T, 1)."""
    return Average((both[0] * weight).sum(axis=0), (both[1] * weight).sum(axis=1))


def effects(survey: Survey, prob: float) -> Table:
    """Return average marginal effects of every attribute of every alternative, and of persons' columns."""
    labels, found, of, names = survey.model.alternatives_, list[Average](), list[Any](), list[str]()
    deviations = list[float]()
    schema, table = survey.model.schema_, survey.table
    for column in of_columns(schema.attribute_columns):
        for name, move in _moves(column, survey.attribute, table.with_attribute):
            moved = _by_alternative(survey, move)
            found += moved.values()
            of += [labels[a] for a in moved]
            names += [name] * len(moved)
            deviations += [move.deviation] * len(moved)
    for column in of_columns(schema.person_columns):
        for name, move in _moves(column, survey.person_column, table.with_person):
            found.append(_together(survey, move))
            of.append(PERSON)
            names.append(name)
            deviations.append(move.deviation)
    A = len(labels)
    columns: Table = {
        "attribute": np.repeat(objects(names), A),
        "of": np.repeat(objects(of), A),
        "alternative": np.tile(objects(labels), len(found)),
    }
    columns |= _intervals(survey, "effect", found, prob)
    return columns | {"effect_per_sd": significant(columns["effect"] * np.repeat(deviations, A))}


def _moves(
    column: Covariate, about: Callable[[int], Move], at: Callable[[list[int], Array], EntryTable]
) -> Iterator[tuple[str, Move]]:
    """Yield a number changed slightly down and up; for a text, each level against the most frequent one."""
    if column.levels is None:
        yield column.name, about(column.places[0])
        return
    tables = {level: at(list(column.places), np.array(held)) for level, held in column.levels.items()}
    usual = str(column.usual)
    for level, table in tables.items():
        if level != usual:
            yield f"{column.name}: {level} vs {usual}", Move(tables[usual], table, 1.0)


def elasticities(survey: Survey, f: int, prob: float) -> Table:
    """Return elasticities of all probabilities in the attribute of one alternative, by sample enumeration.

    Σ_t x_ta ∂P_tb/∂x_ta / Σ_t P_tb over the situations in which both are available: elasticities of situations,
    weighted by the probabilities of b.
    """
    labels, move = survey.model.alternatives_, survey.attribute(f)
    x = survey.entries(survey.table).wide(survey.table.values[:, f])
    changed, chosen = dict[int, Average](), dict[int, Average]()
    for some, (base, low, high) in survey.pools(survey.table, move.low, move.high):
        before = base.both()
        for a in np.flatnonzero(base.available.any(axis=0)).tolist():
            there, weight = base.available[:, [a]], x[some][:, [a]] / move.step
            up, down = (base.moved(end.log_rates, a).both() for end in (high, low))
            changed[a] = _sum(up, weight * there).minus(_sum(down, weight * there)).plus(changed.get(a))
            chosen[a] = _sum(before, there).plus(chosen.get(a))
    seen = sorted(changed)
    found = [changed[a].over(*chosen[a]) for a in seen]
    columns: Table = {
        "of": np.repeat(objects(labels)[seen], len(labels)),
        "alternative": np.tile(objects(labels), len(seen)),
    }
    return columns | _intervals(survey, "elasticity", found, prob)


def diversion(survey: Survey, drop: int, prob: float) -> Table:
    """Return how the choices of a removed alternative divide among the others, as shares."""
    labels, before, after = survey.model.alternatives_, None, None
    for _, (base,) in survey.pools(survey.table):
        there = base.available[:, [drop]]
        if not there.any():
            continue
        lone = there[:, 0] & (base.available.sum(axis=1) == 1)
        if lone.any():
            raise ValueError(f"in {lone.sum()} situations only {labels[drop]!r} is available; leave them out.")
        before = _sum(base.both(), there).plus(before)
        after = _sum(base.without(drop).both(), there).plus(after)
    if before is None or after is None:
        raise ValueError(f"{labels[drop]!r} is not available in any of these situations.")
    lost = Average(before.point[[drop]], before.draws[:, [drop]])
    rest = [a for a in range(len(labels)) if a != drop]
    gained = after.minus(before).over(*lost)
    shares = Average(gained.point[rest], gained.draws[:, rest])
    n = before.point.sum()
    columns = {"alternative": objects(labels)[rest]} | _intervals(survey, "share", [shares], prob)
    del columns["positive"]
    return columns | {"before": (before.point[rest] / n).round(DIGITS), "after": (after.point[rest] / n).round(DIGITS)}


def willingness_to_pay(survey: Survey, f: int, cost: int, weight: Array | None, prob: float) -> Table:
    """Return ∂ln r/∂attribute over ∂ln r/∂cost, averaged over entries, overall and by alternative.

    Both are averages over entries, weighted by (T, A), or by choice probabilities. Their ratio is computed under every
    draw and summarised by median and quantiles, or at the point estimate.
    """
    moves = survey.attribute(f), survey.attribute(cost)
    totals, signs = np.zeros(()), np.zeros((2, 3))
    tables = (survey.table, *(end for move in moves for end in (move.low, move.high)))
    for some, (base, *ends) in survey.pools(*tables):
        share = base.prediction() if weight is None else weight[some]
        found = []
        for k, (move, low, high) in enumerate(zip(moves, ends[::2], ends[1::2], strict=True)):
            slope = np.where(base.available, high.log_rates - low.log_rates, 0.0) / move.step
            found.append((slope * share).sum(axis=1))
            usual = np.tensordot(base.share, slope, 1)  # (T, A)
            signs[k] += [(share * (np.sign(usual) == sign)).sum() for sign in (-1, 0, 1)]
        totals, n_draws = totals + np.array(found), base.n_draws
    parts = np.concatenate([totals.sum(axis=2, keepdims=True), totals], axis=2)  # (2, members, 1 + A)
    seen = np.append(True, parts[1, :, 1:].any(axis=0))
    parts = parts[:, :, seen]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = parts[0] / parts[1]
    tail = (1 - prob) / 2
    centre, lower, upper = np.quantile(ratio[:n_draws], [0.5, tail, 1 - tail], axis=0)
    if survey.posterior.estimated_at:
        centre = ratio[-1]
        lower, upper = np.fmin(lower, centre), np.fmax(upper, centre)
    if survey.posterior.no_interval is not None:
        lower = upper = np.full_like(centre, np.nan)
    _warn_of_draws(survey, cost, parts[1, :n_draws, 0])
    _warn_of_bends(survey, (f, cost), signs)
    _warn_of_linear(survey, (f, cost), float(centre[0]))
    labels = np.append(objects([ALL]), objects(survey.model.alternatives_))[seen]
    return {"alternative": labels} | {
        name: significant(part) for name, part in (("value", centre), ("lower", lower), ("upper", upper))
    }


def _warn_of_draws(survey: Survey, cost: int, slopes: Array) -> None:
    """Warn if the sign of the cost is in doubt."""
    doubt = (np.sign(slopes) != np.sign(np.median(slopes))).mean()
    if doubt > DOUBTFUL:
        warnings.warn(
            f"in {100 * doubt:.0f} % of the draws {survey.model.attributes_[cost]!r} has the opposite effect than "
            "in most: its value is poorly known, and so is a ratio to it. The median and the interval are valid; a "
            "mean would not exist.",
            UserWarning,
            stacklevel=4,
        )


def _warn_of_bends(survey: Survey, both: tuple[int, int], signs: Array) -> None:
    """Warn if the slope of an attribute changes sign between situations; signs (2, 3) by weight."""
    for f, weight in zip(both, signs, strict=True):
        against = min(weight[0], weight[2]) / weight.sum()
        if against > DIVIDED:
            rises = weight[2] / weight.sum()
            warnings.warn(
                f"the slope of {survey.model.attributes_[f]!r} is positive for {100 * rises:.0f} % of the choices "
                "and negative for the rest: a single ratio hides that. Look at effects(X), or compare with "
                "features='linear' or LearnedDirections(bend='none').",
                UserWarning,
                stacklevel=4,
            )


def _warn_of_linear(survey: Survey, both: tuple[int, int], value: float) -> None:
    """Warn if conditional logit of the same data has a ratio of the opposite sign."""
    slopes = getattr(survey.model, "linear_slopes_", None)
    if slopes is None or not slopes[list(both)].all():
        return
    straight = slopes[both[0]] / slopes[both[1]]
    if np.sign(straight) != np.sign(value):
        name = survey.model.attributes_[both[0]]
        warnings.warn(
            f"the value of {name!r} is {value:.3g} here, and {straight:.3g} by conditional logit of the same data: "
            "their signs disagree. Look at effects(X), and at features='linear', before either is used.",
            UserWarning,
            stacklevel=4,
        )


def market_shares(model: ChoosingModel, rows: Entries, weight: Array | None, prob: float) -> Table:
    """Return weighted averages of the probabilities over situations, with intervals over draws."""
    posterior, total, done = model.posterior_, None, 0
    for pool in posterior.pools(rows):
        n = len(pool.available)
        some = np.ones((n, 1)) if weight is None else weight[done : done + n, None]
        total, done = _sum(pool.both(), some).plus(total), done + n
    assert total is not None
    shares = total.over(float(done if weight is None else weight.sum()))
    lower, upper, _ = shares.judged(prob, posterior.no_interval is not None)
    numbers = {"share": shares.point, "lower": lower, "upper": upper}
    return {"alternative": objects(model.alternatives_)} | {name: significant(x) for name, x in numbers.items()}


def _by_alternative(survey: Survey, move: Move) -> dict[int, Average]:
    """Average changes of all probabilities per unit of an alternative's attribute, if it is available."""
    A = len(survey.model.alternatives_)
    sums, seen = dict[int, Average](), np.zeros(A)
    for _, (base, low, high) in survey.pools(survey.table, move.low, move.high):
        seen += base.available.sum(axis=0)
        for a in np.flatnonzero(base.available.any(axis=0)).tolist():
            there = base.available[:, [a]]
            up, down = (base.moved(end.log_rates, a).both() for end in (high, low))
            sums[a] = _sum(up, there).minus(_sum(down, there)).plus(sums.get(a))
    return {a: sums[a].over(seen[a] * move.step) for a in sorted(sums)}


def _together(survey: Survey, move: Move) -> Average:
    """Average changes of all probabilities per unit of a person's column."""
    total = None
    for _, (low, high) in survey.pools(move.low, move.high):
        ones = np.ones((len(low.available), 1))
        total = _sum(high.both(), ones).minus(_sum(low.both(), ones)).plus(total)
    assert total is not None
    return total.over((len(survey.table.start) - 1) * move.step)


def _intervals(survey: Survey, name: str, found: list[Average], prob: float) -> Table:
    """Return a table of numbers with equal-tailed intervals and the probability of being above 0, concatenated."""
    both = Average(
        np.concatenate([each.point for each in found]), np.concatenate([each.draws for each in found], axis=1)
    )
    lower, upper, positive = both.judged(prob, survey.posterior.no_interval is not None)
    numbers = {name: both.point, "lower": lower, "upper": upper}
    return {label: significant(part) for label, part in numbers.items()} | {"positive": positive}
