"""Choices on the command line: what `fit --situation --alternative --choice`, and other commands, do with a chooser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.cli.console import note
from plackett.cli.options import Columns, columns_of, fitted, refuse_twice, save_and_tell

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.long_table import LongTable


def fit(
    settings: dict[str, Any], frame: pd.DataFrame, named: dict[str, Any], drop: Columns, test: float, out: str
) -> None:
    """Fit a chooser to a long table, `named` telling its columns, and write it to a file."""
    from plackett.chooser import PlackettLuceChooser
    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.columns import check_column
    from plackett.data.long_table import LongTable, persons_of, random_situations, situation_marks
    from plackett.output.constants import choice_constants

    for name in drop or ():
        check_column(frame, name)
    model, frame = PlackettLuceChooser(**settings), frame.drop(columns=drop or [])
    names = {name: value for name, value in named.items() if name not in ("attributes", "person", "persons")}
    attributes, person = (columns_of(named[name], frame) for name in ("attributes", "person"))
    persons = named["persons"]
    spared = frame.drop(columns=persons) if attributes is None and persons in frame else frame
    X, y = ChoiceSets.read_choices(spared, **names, attributes=attributes, person=person or ())
    who = None if persons is None else persons_of(frame, named["situation"], persons)
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
        seen=np.sort(situation_marks(X_fit, y_fit)),
    )
    more = []
    if held.any():
        more.append(f"held out, {_scores(model, X[held], y[held], _known(model, who, held))}")
    save_and_tell(model, out, origin(model), words, more)


def origin(model: Any) -> str:
    """What a chooser was fitted to, in a line."""
    from plackett.data.columns import listed

    table: LongTable = model.table_
    counts = listed(f"{label} {n}" for label, n in table.counts.items())
    held = f"; {table.test:.0%} held out" if table.test else ""
    person = f"; person: {listed(table.person)}" if table.person else ""
    situations = f"{table.choice} in {sum(table.counts.values())} situations ({counts}{held})"
    return f"{situations} from {listed(table.attributes) or 'constants alone'}{person}"


def predicted(model: Any, frame: pd.DataFrame, interval: float | None, keep: list[str]) -> dict[str, Any]:
    """Situation, alternative and its probability, a row for each row of the table; 0 where it is not available."""
    table: LongTable = model.table_
    named = [table.situation, table.alternative, *keep]
    made = ["probability", *(() if interval is None else ("lower", "upper"))]
    refuse_twice([*named, *made])
    X, groups = table.sets(frame), _persons(model, frame)
    parts = [model.predict_proba(X, groups)]
    if interval is not None:
        parts += model.predict_interval(X, prob=interval, groups=groups)
    rows = table.places(frame, model.alternatives_)
    columns: dict[str, Any] = {name: frame[name] for name in named}
    return columns | {
        name: np.char.mod("%.6g", part[rows]).astype(float) for name, part in zip(made, parts, strict=True)
    }


def tell_scores(model: Any, frame: pd.DataFrame) -> None:
    """Where a table of predictions has the choices too, how right the predictions were of situations that are new."""
    table: LongTable = model.table_
    if table.choice not in frame or frame[table.choice].isna().any():
        return
    X, y = table.choices(frame)
    held = table.held_out(X.with_schema(model.schema_), y)
    if held.any():
        groups = None if model.weights != "person" or table.persons not in frame else table.who(frame)
        scores = _scores(model, X[held], y[held], None if groups is None else groups[held])
        note(f"the table has the column {table.choice!r}; {scores}")


def report(model: Any, frame: pd.DataFrame, out: str, title: str | None) -> None:
    """The report on a chooser; situations of the table that the fit had not seen are held out."""
    from plackett.report import write_report

    table: LongTable = model.table_
    X, y = table.choices(frame)
    X = X.with_schema(model.schema_)
    groups, held = _persons(model, frame), table.held_out(X, y)
    if not held.any():
        note("the model was fitted to all these situations, so it errs less on them than on others; see fit --test.")

    def part(some: Any) -> tuple[Any, ...]:
        return X[some], y[some], None if groups is None else groups[some]

    test = part(held) if held.any() else None
    X, y, groups = part(~held) if test is None or not held.all() else test
    write_report(model, X, y, out, title=title, test=test, groups=groups)


def _persons(model: Any, frame: pd.DataFrame) -> Any:
    """Who chooses, where persons have weights of their own."""
    table: LongTable = model.table_
    if model.weights != "person":
        return None
    if table.persons not in frame:
        note(f"there is no column {table.persons!r}: everyone is taken for someone who was not in the fit.")
        return None
    return table.who(frame)


def _known(model: Any, who: Any, some: Any) -> Any:
    return None if who is None or model.weights != "person" else who[some]


def _scores(model: Any, X: ChoiceSets, y: Any, groups: Any) -> str:
    """Log-likelihood a situation and the share predicted right, beside those of constants alone."""
    from plackett.output.constants import Quality, quality_of_choices, quality_of_constants

    def words(found: Quality) -> str:
        return f"log-likelihood {found.log_likelihood:.3f} a situation, {found.right:.1%} right"

    own = quality_of_choices(model, X, y, groups)
    alone = quality_of_constants(model.table_.constants, X.with_schema(model.schema_), y)
    return f"{len(X)} situations: {words(own)} (by constants alone: {words(alone)})"


def mistake(given: dict[str, Any], others: dict[str, Any]) -> str | None:
    """What is wrong with options for choices, if anything is; others are for classes."""
    needed = ("situation", "alternative", "choice")
    missing = [name for name in needed if given[name] is None]
    if missing:
        return f"choices need --situation, --alternative and --choice: {_options(missing)} missing."
    wrong = [name for name, value in others.items() if value]
    if wrong:
        return f"{_options(wrong)} is for classes (--target), and these are choices."
    if given["weights"] == "person" and given["persons"] is None:
        return "--weights person needs --persons: the column that tells who chooses."
    if given["persons"] is not None and given["weights"] != "person" and given["features"] != "learned":
        return (
            "--persons would be ignored: it is for --weights person, or keeps the situations of a person together "
            "where --features learned holds some out."
        )
    twice = [
        name
        for name in ("situation", "alternative", "choice", "persons", "available")
        if given[name] is not None
        and [given[other] for other in (*needed, "persons", "available")].count(given[name]) > 1
    ]
    if twice:
        return f"{_options(twice)} name the same column."
    return None


def _options(names: list[str]) -> str:
    from plackett.data.columns import listed

    return listed("--" + name.replace("_", "-") for name in names)
