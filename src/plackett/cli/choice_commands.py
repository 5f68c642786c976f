"""Commands for choices: fit a chooser to a long table, predict, score and report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plackett.chooser import PlackettLuceChooser
from plackett.cli.console import note
from plackett.cli.models import columns_of, fitted, refuse_twice, save_and_tell, shares_in_words
from plackett.cli.options import ChoiceColumns, Settings
from plackett.data.choice_sets import ChoiceSets
from plackett.data.columns import check_column, listed
from plackett.data.labels import Labels
from plackett.data.long_table import LongTable, persons_of, random_situations, situation_marks
from plackett.output.constants import Quality, choice_constants, quality_of_choices, quality_of_constants
from plackett.report import write_report
from plackett.segments import Segments

if TYPE_CHECKING:
    import pandas as pd


def fit(
    settings: Settings,
    weights: str,
    nests: dict[str, list[str]] | None,
    segments: int | str | Segments,
    frame: pd.DataFrame,
    columns: ChoiceColumns,
    drop: list[str],
    test: float,
    out: str,
) -> None:
    """Fit a chooser to a long table and save it."""
    for name in drop:
        check_column(frame, name)
    frame = frame.drop(columns=drop)
    names = {name: getattr(columns, name) for name in ("situation", "alternative", "choice", "available")}
    attributes, person = columns_of(columns.attributes, frame), columns_of(columns.person, frame)
    persons = columns.persons
    spared = frame.drop(columns=persons) if attributes is None and persons in frame else frame
    X, y = ChoiceSets.read_choices(spared, **names, attributes=attributes, person=person or ())
    labels = {str(label): label for label in X.alternatives.tolist()}
    named = nests and {name: [labels.get(each, each) for each in members] for name, members in nests.items()}
    model = PlackettLuceChooser(**settings, weights=weights, nests=named, segments=segments)
    who = None if persons is None else persons_of(frame, names["situation"], persons)
    held = random_situations(len(X), test, settings["random_state"], None if model.weights == "person" else who)
    X_fit, y_fit, who_fit = X[~held], y[~held], None if who is None else who[~held]
    words = fitted(lambda: model.fit(X_fit, y_fit, groups=who_fit))
    model.table_ = LongTable(
        **names,
        attributes=tuple(column.name for column in X.attribute_columns),
        person=tuple(column.name for column in X.person_columns),
        persons=persons,
        constants=choice_constants(X_fit, y_fit),
        counts={label: int((y_fit == label).sum()) for label in X.alternatives.tolist()},
        test=test,
        seen=np.sort(situation_marks(X_fit.with_schema(model.schema_), y_fit)),
    )
    more = []
    if model._linear():
        found = model.fit_statistics(X_fit, y_fit, groups=who_fit if model._segmented() else None)
        more.append(
            f"log-likelihood {found.log_likelihood:,.2f}, of constants alone {found.constants:,.2f}, of equal "
            f"chances {found.null:,.2f}; rho-square {found.rho2:.3f}, adjusted {found.rho2_adjusted:.3f}"
        )
    if model._tasting():
        integrated = model.integrated_log_likelihood(X_fit, y_fit, who_fit)
        more.append(f"log-likelihood integrated over persons {integrated:,.2f}, at the average law")
    if held.any():
        more.append(f"held out, {_scores(model, X[held], y[held], _known(model, who, held))}")
    if model._segmented() and len(model.segments_) > 1:
        more += shares_in_words(model)
    save_and_tell(model, out, origin(model), words, more)


def origin(model: PlackettLuceChooser) -> str:
    """One line about the data that a chooser was fitted to."""
    table: LongTable = model.table_
    counts = listed(f"{label} {n}" for label, n in table.counts.items())
    held = f"; {table.test:.0%} held out" if table.test else ""
    person = f"; person: {listed(table.person)}" if table.person else ""
    situations = f"{table.choice} in {sum(table.counts.values())} situations ({counts}{held})"
    return f"{situations} from {listed(table.attributes) or 'constants alone'}{person}"


def predicted(
    model: PlackettLuceChooser, frame: pd.DataFrame, interval: float | None, keep: list[str]
) -> dict[str, npt.ArrayLike]:
    """Situation, alternative and probability (0 if unavailable) of each row, by name of the output column."""
    table: LongTable = model.table_
    named = [table.situation, table.alternative, *keep]
    made = ["probability", *(() if interval is None else ("lower", "upper"))]
    refuse_twice([*named, *made])
    X, groups = table.sets(frame), _persons(model, frame)
    parts = [model.predict_proba(X, groups)]
    if interval is not None:
        parts += model.predict_interval(X, prob=interval, groups=groups)
    rows = table.places(frame, model.alternatives_)
    columns: dict[str, npt.ArrayLike] = {name: frame[name] for name in named}
    return columns | {
        name: np.char.mod("%.6g", part[rows]).astype(float) for name, part in zip(made, parts, strict=True)
    }


def tell_scores(model: PlackettLuceChooser, frame: pd.DataFrame) -> None:
    """Print scores on the new situations of a table that also holds the choices."""
    table: LongTable = model.table_
    if table.choice not in frame or frame[table.choice].isna().any():
        return
    X, y = table.choices(frame)
    held = table.held_out(X.with_schema(model.schema_), y)
    if held.any():
        groups = table.who(frame) if _persons_differ(model) and table.persons in frame else None
        scores = _scores(model, X[held], y[held], None if groups is None else groups[held])
        note(f"the table has the column {table.choice!r}; {scores}")


def report(model: PlackettLuceChooser, frame: pd.DataFrame, out: str, title: str | None) -> None:
    """Write the report on a chooser; situations that the fit did not see count as held out."""
    table: LongTable = model.table_
    X, y = table.choices(frame)
    X = X.with_schema(model.schema_)
    groups, held = _persons(model, frame), table.held_out(X, y)
    if not held.any():
        note("the model was fitted to all these situations, so it errs less on them than on others; see fit --test.")

    def part(some: npt.NDArray[np.bool_]) -> tuple[ChoiceSets, Labels, Labels | None]:
        return X[some], y[some], None if groups is None else groups[some]

    test = part(held) if held.any() else None
    X, y, groups = part(~held) if test is None or not held.all() else test
    write_report(model, X, y, out, title=title, test=test, groups=groups)


def _persons(model: PlackettLuceChooser, frame: pd.DataFrame) -> Labels | None:
    """Person of each situation, or None unless persons have weights, tastes or memberships of their own."""
    table: LongTable = model.table_
    if not _persons_differ(model):
        return None
    if table.persons not in frame:
        note(f"there is no column {table.persons!r}: everyone is taken for someone who was not in the fit.")
        return None
    return table.who(frame)


def _persons_differ(model: PlackettLuceChooser) -> bool:
    """True if persons of the fit are predicted with their own weights, tastes or memberships."""
    own = model._tasting() or model._segmented() is not None
    return model.weights == "person" or (own and model.table_.persons is not None)


def _known(model: PlackettLuceChooser, who: Labels | None, some: npt.NDArray[np.bool_]) -> Labels | None:
    return None if who is None or model.weights != "person" else who[some]


def _scores(model: PlackettLuceChooser, X: ChoiceSets, y: Labels, groups: Labels | None) -> str:
    """Log-likelihood per situation and share predicted right, compared with those of constants alone."""

    def words(found: Quality) -> str:
        return f"log-likelihood {found.log_likelihood:.3f} a situation, {found.right:.1%} right"

    own = quality_of_choices(model, X, y, groups)
    alone = quality_of_constants(model.table_.constants, X.with_schema(model.schema_), y)
    return f"{len(X)} situations: {words(own)} (by constants alone: {words(alone)})"
