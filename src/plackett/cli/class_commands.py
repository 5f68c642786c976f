"""Commands for classes: fit a classifier to a table, predict, score and report."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.classifier import PlackettLuceClassifier
from plackett.cli.console import note
from plackett.cli.models import fitted, refuse_twice, save_and_tell
from plackett.cli.options import Encoding, Settings
from plackett.data.columns import TableWarning, listed
from plackett.data.model_input import taken
from plackett.data.table import Table, labelled, labels, row_marks, stratified
from plackett.output.scores import Scores, scores, scores_of_shares
from plackett.report import write_report

if TYPE_CHECKING:
    import pandas as pd


def fit(
    settings: Settings,
    frame: pd.DataFrame,
    target: str,
    columns: Encoding,
    class_weight: str | None,
    test: float,
    out: str,
) -> None:
    """Fit a classifier to a table and save it."""
    clf = PlackettLuceClassifier(**settings, class_weight=class_weight)
    frame = labelled(frame, target, columns["missing"])
    y = labels(frame, target)
    held = stratified(y, test, settings["random_state"])
    table = Table.learn(frame, target, **columns, held_out=held)
    X = table.covariates(frame)
    words = fitted(lambda: clf.fit(X[~held], y[~held]))
    clf.table_ = replace(table, test=test, seen=np.sort(row_marks(X[~held], y[~held])))
    more = [f"held out, {_scores(clf, X[held], y[held])}"] if held.any() else []
    save_and_tell(clf, out, origin(clf), words, more)


def origin(clf: PlackettLuceClassifier) -> str:
    """One line about the data that a classifier was fitted to."""
    table: Table = clf.table_
    counts = listed(f"{label} {n}" for label, n in table.counts.items())
    held = f"; {table.test:.0%} of each class held out" if table.test else ""
    names = listed(column.name for column in table.columns)
    return f"{table.target} in {sum(table.counts.values())} rows ({counts}{held}) from {names}"


def predicted(
    clf: PlackettLuceClassifier, frame: pd.DataFrame, interval: float | None, keep: list[str]
) -> dict[str, npt.ArrayLike]:
    """Predicted class and class probabilities of each row, by name of the output column."""
    ends = ("",) if interval is None else ("", "_lower", "_upper")
    made = ["predicted", *(f"p_{label}{end}" for label in clf.classes_ for end in ends)]
    refuse_twice([*keep, *made])
    X = clf.table_.covariates(frame) if hasattr(clf, "table_") else taken(clf, frame)
    probability = clf.predict_proba(X)
    parts = [probability] if interval is None else [probability, *clf.predict_interval(X, prob=interval)]
    columns: dict[str, npt.ArrayLike] = {name: frame[name] for name in keep}
    columns["predicted"] = clf.classes_[np.argmax(probability, axis=1)]
    numbers = np.char.mod("%.6g", np.stack(parts, axis=2).reshape(len(frame), -1)).astype(float)
    return columns | dict(zip(made[1:], numbers.T, strict=True))


def tell_scores(clf: PlackettLuceClassifier, frame: pd.DataFrame) -> None:
    """Print scores on the new rows of a table that also holds the classes, if the model knows their column."""
    if not hasattr(clf, "table_"):
        return
    target = clf.table_.target
    if target in frame and frame[target].notna().all():
        X, y = clf.table_.covariates(frame), labels(frame, target)
        held = clf.table_.held_out(X, y)
        if held.any():
            note(f"the table has the column {target!r}; {_scores(clf, X[held], y[held])}")


def report(clf: PlackettLuceClassifier, frame: pd.DataFrame, out: str, title: str | None) -> None:
    """Write the report on a classifier; rows that the fit did not see count as held out."""
    import pandas as pd

    table = clf.table_
    frame = labelled(frame, table.target, table.missing)
    X, y = table.covariates(frame), labels(frame, table.target)
    answers, rows = pd.Series(y, index=X.index, name=table.target), frame.drop(columns=table.target)
    held = table.held_out(X, y)
    if not held.any():
        note("the model was fitted to all these rows, so it errs less on them than on others; see fit --test.")
    test = (rows[held], answers[held]) if held.any() else None
    seen = (rows[~held], answers[~held]) if test is None or not held.all() else test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # all rows were checked above
        write_report(clf, *seen, out, title=title, test=test)


def _scores(clf: PlackettLuceClassifier, X: pd.DataFrame, y: npt.NDArray[Any]) -> str:
    """Error, log-loss and Brier score, compared with those of the class shares of the training rows."""

    def words(found: Scores) -> str:
        return f"error {found.error:.3f}, log-loss {found.log_loss:.3f}, Brier {found.brier:.3f}"

    own = scores(clf.predict_proba(X), y, clf.classes_)
    shares = scores_of_shares(list(clf.table_.counts.values()), y, clf.classes_)
    return f"{len(y)} rows: {words(own)} (by class shares alone: {words(shares)})"
