"""Write a report: choose its sections by the kind of model and assemble the page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.data.columns import as_frame
from plackett.data.model_input import known_columns, of_pipeline, taken
from plackett.data.types import LabelsLike, MatrixLike
from plackett.optional import optional
from plackett.output.files import check_folder, whole_file
from plackett.report import choice_sections, ranking_sections, sections, words
from plackett.report.effect_section import effects
from plackett.report.markup import Section, page, paragraph

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.rankings import Rankings
    from plackett.estimator import Classifier, Model


def write_report(
    classifier: Model,
    X: MatrixLike | ChoiceSets | None,
    y: LabelsLike | Rankings,
    out_path: str | os.PathLike[str],
    *,
    title: str | None = None,
    test: tuple[Any, ...] | None = None,
    groups: LabelsLike | None = None,
) -> None:
    """Write a report on a fitted model: one self-contained HTML file.

    It contains the data in numbers, the model with its diagnostics in words, sortable tables of weights and of average
    marginal effects, the confusion matrix, ROC and calibration, the most uncertain rows with an explanation of the
    first, citation, settings, versions and seed. For choices it contains elasticities, log-likelihoods compared with
    constants alone, and explanations of a few situations; for rankings the worths of the items with their places. An
    existing file is replaced once the new one is complete.

    Parameters
    ----------
    classifier : PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceChooser or PlackettLuceRanker
        A fitted model, or a pipeline that ends with one.
    X : DataFrame, ChoiceSets or None
        The rows the model was fitted to; or others, which are then passed as `test` too. For a classifier from
        ``plackett fit``, the original table. None: rankings without covariates.
    y : Series, array or Rankings
        Labels, choices or rankings of the rows.
    out_path : path
        The file to write.
    title : str, optional
        Heading of the report; by default the target with the numbers of columns and rows.
    test : (X, y), optional
        Rows and labels that were held out of the fit, used for scores; without them scores use the rows of the fit, and
        the report says so. With `groups`, (X, y, groups).
    groups : (n,) array, optional
        Person of each situation, for a chooser with ``weights="person"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.report import write_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.html")
    ...     write_report(clf, X[::2], y[::2], path, title="Iris", test=(X[1::2], y[1::2]))
    ...     path.read_text(encoding="utf-8").count("<figure")
    9
    """
    for library in ("pandas", "matplotlib"):
        optional(library, "write_report")
    check_is_fitted(classifier)
    check_folder(out_path)
    all_new = test is not None and (test[1] is y if X is None else test[0] is X)
    classifier, X, *held = of_pipeline(classifier, X, *(test or ())[:1])
    test = None if test is None else (X if all_new else held[0], *test[1:])
    if groups is not None and not hasattr(classifier, "alternatives_"):
        raise ValueError("groups would be ignored: they are who chooses, and this is no model of choices.")
    if hasattr(classifier, "items_"):
        name, lead, parts = ranking_sections.pages(classifier, X, y, test, all_new)
    elif hasattr(classifier, "alternatives_"):
        fit = choice_sections.ReportedChoices.of(classifier, X, y, groups)
        tested = fit if all_new else None if test is None else choice_sections.ReportedChoices.of(classifier, *test)
        name, lead, parts = choice_sections.pages(classifier, fit, tested)
    else:
        name, lead, parts = _classes(classifier, X, y, test, all_new)
    with whole_file(out_path) as stream:
        stream.write(page(title or name, paragraph(lead, "quiet"), parts).encode())


def _classes(
    classifier: Classifier, X: MatrixLike, y: LabelsLike, test: tuple[Any, ...] | None, all_new: bool
) -> tuple[str, str, list[Section]]:
    """Title, lead and sections of a report on classes."""
    X, y = _table(X, y)
    rows, labels = (X, y) if test is None else _table(*test)
    if not np.isin(np.asarray(labels), classifier.classes_).any():
        known = ", ".join(str(label) for label in classifier.classes_[:10])
        raise ValueError(f"no label is a class of the model, which knows {known}; is this the right column?")
    rows = taken(classifier, rows)
    judged = sections.Judged(rows, np.asarray(labels), classifier.predict_proba(rows), test is not None)
    parts = [
        sections.data(X, y, 0 if test is None else len(rows), all_new, known_columns(classifier)),
        sections.model(classifier),
        sections.weights(classifier),
        effects(classifier, X),
        sections.predictions(classifier, judged, None if all_new else y),
        sections.uncertain(classifier, judged),
        sections.colophon(classifier),
    ]
    errors = np.mean(judged.predicted(classifier.classes_) != judged.y)
    which = "held-out rows" if judged.held_out else "rows of the fit itself"
    lead = f"{errors:.1%} errors on {len(rows):,} {which}, {len(classifier.classes_)} classes."
    return words.title(classifier, X, y), lead, parts


def _table(X: MatrixLike, y: LabelsLike) -> tuple[pd.DataFrame, LabelsLike]:
    """X as a pandas data frame, and y; raises unless both have the same positive length."""
    if not hasattr(X, "iloc"):
        import pandas as pd

        X = as_frame(X) if hasattr(X, "columns") else pd.DataFrame(np.asarray(X))
    if len(X) != len(y) or not len(X):
        raise ValueError(f"a report needs rows and as many labels, got {len(X)} rows and {len(y)} labels instead.")
    return X, y
