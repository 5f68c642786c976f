"""Commands for rankings: fit worths of items to a file of rankings, and report on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.cli.models import columns_of, fitted, save_and_tell, shares_in_words
from plackett.cli.options import Columns, Settings
from plackett.data.ballots import Ballots
from plackett.data.columns import texts
from plackett.data.labels import Labels
from plackett.data.rankings import Rankings
from plackett.data.tablefile import read_table
from plackett.ranker import PlackettLuceRanker
from plackett.report import write_report

if TYPE_CHECKING:
    import pandas as pd


def read(
    ballots: Ballots, attributes: Columns, persons: str | None, data: str, sep: str | None, decimal: str | None
) -> tuple[Ballots, Rankings, Labels | None]:
    """Read a file of rankings; return what a model stores about it, the rankings, and the person of each."""
    if attributes is None and persons is None:
        return ballots, ballots.read(data, sep, decimal), None
    frame = ballots.frame(data, sep, decimal)
    ballots = replace(ballots, attributes=tuple(columns_of(attributes, frame) or ()))
    return ballots, *((ballots.of(frame), None) if persons is None else ballots.with_persons(frame, persons))


def fit(
    settings: Settings,
    kinds: Mapping[str, Any],
    ballots: Ballots,
    R: Rankings,
    groups: Labels | None,
    items: str | None,
    out: str | None,
) -> None:
    """Fit a ranker to rankings, print the worths of the items and save the model."""
    model = PlackettLuceRanker(**settings, **kinds)
    covariates = None if items is None else described(items, R)
    words = fitted(lambda: model.fit(None, R, groups=groups, items=covariates))
    model.table_ = replace(ballots, rankings=float(R.counts.sum()))
    found = model.worth().join(model.tiers()[["tier", "prob_same_as_next"]]) if kinds["tiers"] else model.worth()
    known = [name for name in found if not found[name].isna().all()]  # EM may have no intervals
    names = {str(name): found.index.get_level_values(name).to_numpy() for name in found.index.names}
    worths = names | {name: found[name].to_numpy() for name in known}
    more = shares_in_words(model) if model._segmented() and len(model.segments_) > 1 else _parameters(model)
    save_and_tell(model, out, origin(model), words, more, worths)


def described(path: str, R: Rankings) -> pd.DataFrame:
    """Read covariates of the items, whose labels are in the first column."""
    frame = read_table(path)
    if len(frame.columns) < 2:
        raise ValueError(
            f"{path} must have the labels of the items in its first column, and numbers or texts after it."
        )
    labels = frame[frame.columns[0]]
    return frame.drop(columns=frame.columns[0]).set_axis(texts(labels) if R.items.dtype.kind == "U" else labels)


def _parameters(model: PlackettLuceRanker) -> list[str]:
    """Return one line per parameter of the response."""
    lines = []
    for name, row in model.parameters().iterrows():
        between = "" if np.isnan(row["lower"]) else f", from {row['lower']:.4g} to {row['upper']:.4g} with 90 %"
        lines.append(f"{name} = {row['mean']:.4g}{between}")
    return lines


def origin(model: PlackettLuceRanker) -> str:
    """One line about the data that a ranker was fitted to."""
    others = {"absent": "; unranked items are absent", "last": "; unranked items come last"}
    return f"{model.table_.rankings:,.12g} rankings of {len(model.items_)} items{others.get(model.table_.unranked, '')}"


def report(model: PlackettLuceRanker, R: Rankings, out: str, title: str | None) -> None:
    """Write the report on a ranker."""
    write_report(model, None, R, out, title=title)
