"""Sections of a report on classes, and sections that all reports share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.metrics import confusion_matrix

from plackett import plots
from plackett.data.columns import Category, Number, kind_of, listed
from plackett.data.types import Labels, LabelsLike, RowLike
from plackett.explaining import explain
from plackett.model.race import Array
from plackett.model.verdict import STANDARD
from plackett.output.html import text
from plackett.output.scores import scores, scores_of_shares
from plackett.output.sheets import names_of
from plackett.report import words
from plackett.report.figures import figure
from plackett.report.markup import Cell, Head, Section, facts, number, paragraph, table

if TYPE_CHECKING:
    import pandas as pd

    from plackett.estimator import Classifier
    from plackett.ranking import RankingModel


Columns = tuple[Number | Category, ...]
PROB = 0.9  # of intervals
WEIGHTS = 300  # rows of the weight table
CLASSES = 40  # classes of the confusion table
COLUMNS = 200  # columns described
HEADS = {"mode": "Mode", "median": "Median", "active": "Active", "ess": "ESS", "rhat": "R-hat"}
FREQUENT = 5  # values of a column of texts that are listed
UNSURE = 10  # rows listed as uncertain
FEWEST = 10  # rows of a class, or of the others, for an area under its curve


@dataclass(frozen=True)
class Judged:
    """Rows that the model is scored on, its predictions for them, and whether they were held out."""

    X: pd.DataFrame
    y: Labels
    probability: Array
    held_out: bool

    def predicted(self, classes: Labels) -> Labels:
        """The most probable class of each row."""
        labels: Labels = classes[self.probability.argmax(axis=1)]
        return labels


def data(X: pd.DataFrame, y: LabelsLike, held_out: int, all_new: bool, known: Columns | None = None) -> Section:
    """Number of rows, class frequencies and columns.

    With `all_new` these rows were held out; otherwise `held_out` counts other rows that were. If the model has `known`
    columns of its table, the section names those that it does not use.
    """
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    share = [[labels[k], int(counts[k]), 100 * counts[k] / len(y)] for k in order]
    used = set(X.columns) if known is None else {column.name for column in known}
    unused = [name for name in X.columns if name not in used]
    left = f" Not used by the model: {listed(map(repr, unused))}." if unused else ""
    left += f" The first {COLUMNS} of {X.shape[1]} columns are listed." if X.shape[1] > COLUMNS else ""
    numbers = [("Rows", f"{len(X):,}"), ("Columns", f"{X.shape[1]:,}"), ("Classes", f"{len(labels):,}")]
    if all_new:
        numbers[0] = ("Rows, all held out", f"{len(X):,}")
    elif held_out:
        numbers.insert(1, ("Rows held out", f"{held_out:,}"))
    body = [
        facts(numbers),
        table("Classes, the most frequent first", [Head("Class"), Head("Rows", True), Head("%", True)], share),
        paragraph(f"Columns as they came, in these {len(X):,} rows.{left}"),
        columns(X),
    ]
    return Section("data", "Data", "\n".join(body))


def columns(X: pd.DataFrame) -> str:
    """Table that describes the columns of a data frame."""
    heads = [
        Head("Column"),
        Head("Type"),
        *(Head(c, True) for c in ("Missing", "Values", "Lowest", "Mean", "Highest")),
        Head("Most frequent"),
    ]
    return table("Columns of the table", heads, [_describe(X, j) for j in range(min(X.shape[1], COLUMNS))])


def _describe(X: pd.DataFrame, j: int) -> list[Cell]:
    """Description of a column: range and mean of numbers, most frequent values of others."""
    column = X.iloc[:, j]
    values: list[Cell] = [X.columns[j], kind_of(column), int(column.isna().sum()), int(column.nunique())]
    if column.dtype.kind in "iuf":
        span = [float(v) if len(column.dropna()) else np.nan for v in (column.min(), column.mean(), column.max())]
        return [*values, *span, ""]
    counts = column.value_counts()
    repeated = listed((f"{level} {n}" for level, n in counts.items()), FREQUENT) if counts.max() > 1 else ""
    return [*values, np.nan, np.nan, np.nan, repeated]


def model(classifier: Classifier) -> Section:
    """The fitted model, its diagnostics and its verdict."""
    good, why = words.trust(classifier)
    kind = {True: "verdict good", False: "verdict bad", None: "verdict"}[good]
    body = [paragraph(words.model(classifier)), paragraph(why, kind)]
    if classifier.trace_.ndim == 2:
        judged = "probability" in classifier.posterior_.quantities(classifier).scalars  # not in early model files
        what = "probability" if judged else "log-likelihood"
        body.append(paragraph(STANDARD))
        body.append(paragraph(words.drawn(judged)))
        alt = f"of one {what} in {len(classifier.trace_)} chains. {why}"
        trace = figure(
            "trace", lambda ax: plots.trace(classifier, what, ax=ax), f"Trace {alt}", "Values along the chains.", 2.8
        )
        rank = figure(
            "rank", lambda ax: plots.rank(classifier, what, ax=ax), f"Ranks {alt}", "Ranks of each chain's draws.", 2.8
        )
        body.append(f'<div class="figures">{trace}{rank}</div>')
    return Section("model", "Model and diagnostics", "\n".join(body))


def weights(classifier: Classifier) -> Section:
    """The largest weights, as a figure and a sortable table."""
    posterior = classifier.posterior_
    if posterior.no_estimates is not None:
        return _relevance(classifier)
    what, (_, found) = posterior.estimates(classifier), posterior.largest(classifier, WEIGHTS)
    kind, total, of = what.kind, len(what.order), classifier._labels()[0]
    numbers = [name for name in found if name not in (of, "feature")]
    columns = [Head("Feature"), Head(of.capitalize()), *(Head(HEADS.get(name, name), True) for name in numbers)]
    rows = [list(row) for row in zip(*(found[name] for name in ("feature", of, *numbers)), strict=True)]
    best = "; ".join(f"{row[0]} for {row[1]}: {number(row[2])}" for row in rows[:5])
    used = [row for row in rows if any(row[2:5])]  # median and interval are rounded
    rest = ", the others being about 0" if len(used) < len(rows) else ""
    rows = used
    caption = f"The largest {len(rows)} of {total} {kind}{rest}" if len(rows) < total else f"All {total} {kind}"
    falling = 2 if np.all(np.diff(found[what.statistic]) <= 0) else None
    body = [
        paragraph(what.reading),
        figure(
            "weights-figure",
            lambda ax: plots.weights(classifier, n=12, prob=PROB, ax=ax),
            f"The largest {kind}. {best}.",
            f"The largest {kind}{f', with {100 * PROB:g} % intervals' if what.draws is not None else ''}.",
            1.1 + 0.25 * min(12, len(rows)),
        ),
        paragraph("Press a heading to sort by it."),
        table(caption, columns, rows, sortable=True, sorted_by=falling),
    ]
    return Section("weights", kind.capitalize(), "\n".join(body))


def _relevance(classifier: Classifier) -> Section:
    """Relevance of columns: learned directions have no named weights."""
    found = classifier.posterior_.largest(classifier, WEIGHTS)[1]
    rows = [list(row) for row in zip(*found.values(), strict=True)]
    best = "; ".join(f"{name}: {number(value)}" for name, value, *_ in rows[:5])
    heads = [Head("Column"), *(Head(name, True) for name in ("Relevance", "5%", "95%"))]
    body = [
        paragraph(
            "The model learned its components: exponentials of directions in the columns. The relevance of a column "
            "is the change of the log-odds between components, not classes, per standard deviation: it orders the "
            "columns. The section on effects has changes of class probabilities."
        ),
        figure(
            "weights-figure",
            lambda ax: plots.relevance(classifier, n=12, ax=ax),
            f"The columns that matter most. {best}.",
            "The columns that matter most.",
            1.1 + 0.25 * min(12, len(rows)),
        ),
        table("Relevance of columns", heads, rows, sortable=True, sorted_by=1),
    ]
    return Section("weights", "Columns that matter", "\n".join(body))


def predictions(classifier: Classifier, judged: Judged, fitted: LabelsLike | None) -> Section:
    """Errors, confusion matrix, ROC and calibration; `fitted` holds the labels of the fit, or None if unknown."""
    classes, y = classifier.classes_, judged.y
    predicted = judged.predicted(classes)
    known = np.isin(y, classes)
    labels = np.unique(y)
    found, counts = scores(judged.probability, y, classes), _counts(classifier, fitted)
    measured = [("Rows", f"{len(y):,}"), ("Errors", f"{found.error:.1%}")]
    if known.all():
        measured.append(("Log-loss", f"{found.log_loss:.3f}"))
    if counts is not None:
        alone = scores_of_shares(counts, y, classes)
        measured.append(("Errors of always saying the most frequent class", f"{alone.error:.1%}"))
        if known.all():
            measured.append(("Log-loss of the classes' shares in the fit", f"{alone.log_loss:.3f}"))
    body = [seen(judged.held_out), facts(measured)]
    if not known.all():
        strange = f"{(~known).sum():,} rows have a class that the model does not know. They count as errors and are "
        body.append(paragraph(f"{strange}left out of log-loss, ROC and calibration.", "verdict bad"))
    body.append(confusion(y, predicted, classes))
    if np.isin(labels, classes).sum() >= 2:
        X, y = judged.X[known], y[known]
        roc = figure(
            "roc",
            lambda ax: plots.roc(classifier, X, y, ax=ax),
            f"ROC curves. {_areas(classifier, judged, known)}",
            "How many rows of a class are found (upwards) at the price of how many false alarms (rightwards).",
            4.2,
        )
        calibration = figure(
            "calibration",
            lambda ax: plots.calibration(classifier, X, y, prob=PROB, ax=ax),
            f"Calibration curve. {_gap(classifier, judged, known)}",
            "What was said with probability q should come true in a share q: on the dotted line. If all probabilities "
            f"are right, about {100 * PROB:g} % of the points lie in their bands.",
            4.2,
        )
        body.append(f'<div class="figures">{roc}{calibration}</div>')
    else:
        body.append(paragraph("ROC and calibration need rows of at least two classes that the model knows."))
    return Section("predictions", "Predictions", "\n".join(body))


def _counts(classifier: Classifier, fitted: LabelsLike | None) -> list[float] | None:
    """Number of rows of each class in the fit, or None if unknown."""
    if hasattr(classifier, "table_"):
        return list(classifier.table_.counts.values())
    return None if fitted is None else [float(np.sum(np.asarray(fitted) == label)) for label in classifier.classes_]


def seen(held_out: bool, rows: str = "rows") -> str:
    """Sentence that says whether the scored rows were held out."""
    if held_out:
        return paragraph(f"These {rows} were held out: the model was fitted without them.", "verdict good")
    return paragraph(
        f"These are the {rows} the model was fitted to. It errs less on them than on new ones: judge it by held-out "
        f"{rows}.",
        "verdict bad",
    )


def confusion(y: Labels, predicted: Labels, classes: Labels, what: str = "class") -> str:
    """Confusion matrix of classes or alternatives."""
    labels, counts = np.unique(np.concatenate([y, predicted]), return_counts=True)
    shown = labels if len(labels) <= CLASSES else np.sort(labels[np.argsort(-counts, kind="stable")[:CLASSES]])
    matrix = confusion_matrix(y, predicted, labels=shown)
    caption = f"Confusion matrix: a row for each true {what}, a column for each predicted one"
    if len(shown) < len(labels):
        caption += f" ({len(shown)} of {len(labels)})"
    said = [label for label in shown if label in classes]
    place = {label: k for k, label in enumerate(shown)}
    rows = [[f"{label} (true)", *(int(matrix[k, place[other]]) for other in said)] for k, label in enumerate(shown)]
    own = [(place[label], 1 + j) for j, label in enumerate(said)]
    return table(caption, [Head(f"True {what}"), *(Head(str(label), True) for label in said)], rows, marked=own)


def _areas(classifier: Classifier, judged: Judged, known: npt.NDArray[np.bool_]) -> str:
    from sklearn.metrics import roc_auc_score

    y, areas, rare = judged.y[known], list[str](), list[str]()
    for k, label in enumerate(classifier.classes_):
        n = min((y == label).sum(), (y != label).sum())
        if n >= FEWEST:
            areas.append(f"{label} {roc_auc_score(y == label, judged.probability[known, k]):.2f}")
        elif n:
            rare.append(f"{label} ({n})")
    few = f" Fewer than {FEWEST} rows say too little of {listed(rare)}." if rare else ""
    return f"Areas under the curves: {', '.join(areas) or 'none'}.{few}"


def _gap(classifier: Classifier, judged: Judged, known: npt.NDArray[np.bool_]) -> str:
    """Expected calibration error over ten bins, all classes pooled."""
    q = judged.probability[known].ravel()
    came = (judged.y[known][:, None] == classifier.classes_).ravel()
    bins = np.minimum((10 * q).astype(int), 9)
    size, said, true = (np.bincount(bins, w, 10) for w in (None, q, came))
    return f"Over all classes, probabilities are off by {np.abs(said - true).sum() / size.sum():.3f} on average."


def uncertain(classifier: Classifier, judged: Judged) -> Section:
    """The rows with the largest predictive entropy, and an explanation of the first."""
    p = judged.probability
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[:UNSURE]
    two = np.argsort(-p[order], axis=1, kind="stable")[:, :2]
    rows = []
    for i, (first, second) in zip(order, two, strict=True):
        a, b = classifier.classes_[[first, second]]
        interval = _interval(classifier, judged.X.iloc[[i]], first)
        rows.append([judged.X.index[i], judged.y[i], a, p[i, first], interval, b, p[i, second]])
    columns = [Head("Row"), Head("True class"), Head("Predicted"), Head("Probability", True)]
    columns += [Head(f"{100 * PROB:g} % interval"), Head("Next"), Head("Probability", True)]
    row, title = judged.X.iloc[[order[0]]], f"Row {judged.X.index[order[0]]}"
    told = ", ".join(f"{classifier.classes_[k]} {p[order[0], k]:.2f}" for k in two[0])
    pictures = [
        figure(
            "probabilities",
            lambda ax: plots.probabilities(classifier, row, prob=PROB, ax=ax),
            f"Class probabilities of {title}: {told}.",
            f"{title}: probabilities of the classes.",
            3,
        )
    ]
    said = classifier.classes_[two[0][0]]
    told, picture = reasons(classifier, row, title)
    body = [
        paragraph("The rows with the most even probabilities (largest entropy) among those above."),
        table("The most uncertain rows", columns, rows),
        f"<h3>Why {text(said)}? {text(title)}</h3>",
        *([paragraph(told)] if told else []),
        f'<div class="figures">{"".join(pictures)}{picture}</div>',
    ]
    return Section("uncertain", "Most uncertain rows", "\n".join(body))


def reasons(model: Classifier | RankingModel, row: RowLike, title: str, mark: str = "") -> tuple[str, str]:
    """Explanation of one prediction as a sentence and a figure: its race, or the contributions of columns."""
    posterior, what = model.posterior_, model._labels()[0]
    if posterior.no_race is None:
        why = explain(model, row)
        said = why[what][np.argmax(why.groupby(what, sort=False)["probability"].transform("sum"))]
        best = "; ".join(
            f"{w[1]} wins for {w[0]} with {w[2]:.2f}" for w in why.head(4).itertuples(index=False, name=None)
        )
        picture = figure(
            f"race{mark}",
            lambda ax: plots.race(model, row, ax=ax),
            f"The race of {title}. {best}.",
            f"{title} as a race: the bar of {'an' if what == 'item' else 'a'} {what} is its probability, made of the "
            "chances of its competitors (features, by hatching) to arrive first.",
            4.4,
        )
        return words.race(why, what, said), picture
    if posterior.no_contributions is not None:
        return "", ""
    why = explain(model, row, PROB)
    lines = zip(names_of(why), why["value"], why["contribution"], strict=True)
    best = "; ".join(f"{name} = {value}: {part:+.2f}" for name, value, part in list(lines)[:4])
    said = why.attrs["class"]
    picture = figure(
        f"contributions{mark}",
        lambda ax: plots.contributions(model, row, prob=PROB, ax=ax),
        f"What each column contributes to the log-odds of {said} for {title}. {best}.",
        f"{title}: from a reference row, {why.attrs['reference_is']}, to the prediction. Each bar is what a column "
        f"adds to the log-odds of {said}, or in grey takes from them.",
        2.5 + 0.25 * min(11, len(why)),
    )
    return words.contributions(why), picture


def _interval(classifier: Classifier, row: RowLike, k: int) -> str:
    if classifier.posterior_.no_interval is not None:
        return "–"
    (lower,), (upper,) = classifier.predict_interval(row, prob=PROB)
    return f"{number(lower[k])} to {number(upper[k])}"


def colophon(classifier: Classifier) -> Section:
    """Citation, settings, seed and versions."""
    body = [
        "<h3>How to cite</h3>",
        f"<p>{text(words.CITATION)}</p>",
        f"<p>plackett, version {text(words.versions()[0][1])}: Bayesian Plackett–Luce regression in Python.</p>",
        "<h3>Settings and seed</h3>",
        paragraph(words.seed(classifier)),
        table("Settings", [Head("Parameter"), Head("Value")], words.settings(classifier)),
        "<h3>Versions</h3>",
        table("Versions", [Head("Software"), Head("Version")], words.versions()),
    ]
    return Section("colophon", "How to cite, settings, versions", "\n".join(body))
