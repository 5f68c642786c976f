"""Printed forms of explanations, effects and summaries: what is counted, in which unit, and what it adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plackett.output.printed import LINES, Sheet, cell, cells, percents, signed

COLUMNS = 20  # contributions of their own line
SMALL = 5e-4  # probabilities and weights below it print as 0.000
REFERENCE, PREDICTION = "reference", "prediction"


def names_of(why: Any) -> list[str]:
    """Return the names of columns in an explanation, of attributes with their alternative, such as ``cost of bus``.

    Examples
    --------
    >>> import pandas as pd
    >>> from plackett.output.sheets import names_of
    >>> names_of(pd.DataFrame({"feature": ["cost", "home"], "of": ["bus", "person"]}))
    ['cost of bus', 'home']
    """
    if "of" not in why:
        return [str(name) for name in why["feature"]]
    pairs = zip(why["feature"], why["of"], strict=True)
    return [str(name) if of == "person" else f"{name} of {of}" for name, of in pairs]


def contributions(why: Any, what: str) -> Sheet:
    """Lay out contributions to the log-odds, from the reference to the prediction; small ones are one line.

    `what` names whose log-odds they are: class, item or alternative.
    """
    told, certain = why.attrs, bool(why["lower"].isna().all())
    shown = why.iloc[: COLUMNS if len(why) > COLUMNS + 1 else len(why)]
    rest, ends = why.iloc[len(shown) :], (told["reference"], told["prediction"])
    left = ["feature", "of"] if "of" in why else ["feature"]
    columns = {name: ["", *map(str, shown[name])] for name in left}
    columns["feature"][0] = REFERENCE
    columns["value"] = ["", *(cell(value, 4) for value in shown["value"])]
    columns["contribution"] = signed([ends[0], *shown["contribution"]])
    if not certain:
        columns |= {
            name: ["", *signed(shown[bound])]
            for name, bound in zip(percents(told["prob"]), ("lower", "upper"), strict=True)
        }
    if len(rest):
        _add(columns, f"{len(rest)} others", rest["contribution"].sum())
    _add(columns, PREDICTION, ends[1])
    before, after = (probability(1 / (1 + np.exp(-end))) for end in ends)
    head = [
        f"Contributions to the log-odds of {what} {told['class']}, predicted with probability {after}",
        f"{REFERENCE}: {told['reference_is']}, with probability {before}",
    ]
    return Sheet(head, columns, [], tuple(left))


def _add(columns: dict[str, list[str]], name: str, number: float) -> None:
    """Append a line with a name and a contribution."""
    for column, values in columns.items():
        values.append({"feature": name, "contribution": signed([number])[0]}.get(column, ""))


def probability(p: float) -> str:
    """Return a probability with three decimals, or its bound where these would be 0 or 1."""
    return "below 0.001" if p < 1e-3 else "above 0.999" if p > 0.999 else f"{p:.3f}"


def race(why: Any, prob: float) -> Sheet:
    """Lay out winners of a race by probability; those that nearly never win are counted below."""
    what = str(why.columns[0])
    by = why.groupby(what, sort=False)["probability"].sum().sort_values(ascending=False, kind="stable")
    often = int((why["probability"] >= SMALL).sum())
    shown = why.iloc[: min(max(often, 1), LINES)]
    columns = {name: [str(value) for value in shown[name]] for name in (what, "feature")}
    columns["probability"] = [f"{value:.3f}" for value in shown["probability"]]
    if "lower" in why:
        for name, bound in zip(percents(prob), ("lower", "upper"), strict=True):
            columns[name] = [f"{value:.3f}" for value in shown[bound]]
    rest = why["probability"].iloc[len(shown) :]
    head = [f"Probability that a feature arrives first for its {what}; they add up to 1, and by {what} to:"]
    head.append(", ".join(f"{label} {value:.3f}" for label, value in by.head(8).items()) + _more(len(by) - 8))
    foot = [f"{len(rest)} others: {rest.sum():.3f}"] if len(rest) else []
    return Sheet(head, columns, foot, (what, "feature"))


def effects(table: Any, names: Sequence[str], rows: str) -> Sheet:
    """Lay out average marginal effects; `names` are the columns of names, and `rows` says what they are averages of."""
    shown = table.iloc[:LINES] if len(table) > LINES + 1 else table
    numbers = cells(shown[[name for name in table.columns if name not in names and name != "effect_per_sd"]])
    columns = {name: [str(value) for value in shown[name]] for name in names}
    columns |= {"effect_per_sd": signed(shown["effect_per_sd"], 3)} | numbers
    head = [
        f"Average marginal effects on the probability of each {names[-1] if 'alternative' in names else 'class'}, "
        f"over {rows}",
        "effect_per_sd: per standard deviation of a number, or between levels; effect: per unit, with its interval",
    ]
    return Sheet(head, columns, _rest(table, shown), tuple(names))


def summary(table: Any, head: Sequence[str], statistic: str | None, left: Sequence[str]) -> Sheet:
    """Lay out a summary; lines whose `statistic` and interval are rounded to 0 are counted below."""
    used = table
    if statistic is not None:
        numbers = [name for name in table.columns if name == statistic or str(name).endswith("%")]
        used = table[(table[numbers] != 0).any(axis=1)]
    shown = used.iloc[:LINES] if len(used) > LINES + 1 else used
    columns = {
        name: [f"{v:,.0f}" for v in shown[name]] if name == "ess" else column for name, column in cells(shown).items()
    }
    zero = len(table) - len(used)
    foot = _rest(used, shown)
    if zero:
        foot.append(f"{zero} of {len(table)} are about 0, with their intervals, and not shown")
    return Sheet([*head], columns, foot, tuple(name for name in left if name in columns))


def _rest(table: Any, shown: Any) -> list[str]:
    """Count the lines that are not shown."""
    return [f"… {len(shown)} of {len(table)} lines: to_string() shows all"] if len(shown) < len(table) else []


def _more(n: int) -> str:
    return f" and {n} more" if n > 0 else ""
