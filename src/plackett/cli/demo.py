"""`python -m plackett.cli.demo`: Iris with both kinds of features and all inferences, in a minute."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from plackett.classifier import PlackettLuceClassifier
from plackett.output.scores import scores
from plackett.output.summary import cells

FITS = (("learned", "gibbs"), ("learned", "em"), ("exp", "em"), ("exp", "variational"), ("exp", "gibbs"))

CAPTION = "A first run compiles the kernels, which counts as seconds of the fits that need them."
SHOWN = ("class", "feature", "covariate", "mean", "5%", "95%", "relevance")


def main() -> None:
    """Fit, score on held-out rows and print."""
    console = Console()
    iris = load_iris(as_frame=True)
    y = iris.target_names[iris.target]
    X_train, X_test, y_train, y_test = train_test_split(iris.data, y, test_size=0.5, stratify=y, random_state=0)
    table = Table("features", "inference", "error", "log-loss", "seconds", title="Iris, half held out", caption=CAPTION)
    for features, inference in FITS:
        clf = PlackettLuceClassifier(inference, features=features, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.perf_counter()
            clf.fit(X_train, y_train)
            seconds = time.perf_counter() - started
        found = scores(clf.predict_proba(X_test), y_test, clf.classes_)
        table.add_row(features, inference, f"{found.error:.3f}", f"{found.log_loss:.3f}", f"{seconds:.2f}")
        for warning in caught:
            console.print(f"{features}, {inference}: {warning.message}", style="yellow")
        if (features, inference) == FITS[0]:
            relevant = clf.posterior_.largest(clf, 4)[1]
    console.print(table)
    _show(console, "Most relevant covariates (learned, Gibbs)", relevant)
    _show(console, "Largest weights (exp, Gibbs)", clf.posterior_.largest(clf, 8)[1])


def _show(console: Console, title: str, rows: dict[str, npt.NDArray[Any]]) -> None:
    """Some columns of a summary."""
    shown = {name: column for name, column in rows.items() if name in SHOWN}
    table = Table(*shown, title=title)
    for row in cells(shown):
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
