"""`python -m plackett.cli.demo [report.html]`: classes, comparisons and choices with real data, and a report."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

from plackett import datasets
from plackett.chooser import PlackettLuceChooser
from plackett.classifier import PlackettLuceClassifier
from plackett.optional import optional
from plackett.output.scores import scores
from plackett.ranker import PlackettLuceRanker
from plackett.report import write_report

REPORT = "plackett-demo.html"
SHOWN = 6  # rows per table


def main(out: str = REPORT) -> None:
    """Fit three models, print results on held-out data, and write a report on the first."""
    for library in ("pandas", "matplotlib"):
        optional(library, "the demonstration")
    console = Console()
    classes(console, out)
    comparisons(console)
    choices(console)
    console.print(f"\nA report on the wines, to open in a browser: {Path(out).resolve()}", soft_wrap=True)


def classes(console: Console, out: str) -> None:
    """Classify wines by chemical analyses, with half of them held out, and write the report."""
    wine = datasets.load("wine")
    X, X_test, y, y_test = train_test_split(wine.X, wine.y, test_size=0.5, stratify=wine.y, random_state=0)
    console.rule("Classes: three kinds of wine by thirteen measurements")
    clf = PlackettLuceClassifier(random_state=0)
    _fit(console, clf, lambda: clf.fit(X, y))
    _score(console, clf.predict_proba(X_test), y, y_test, clf.classes_)
    matter = clf.relevance().head(SHOWN).reset_index(names="measurement")
    _show(console, "What matters most, with 90 % intervals", matter)
    write_report(clf, X, y, out, title="Wine, the demonstration of plackett", test=(X_test, y_test))


def comparisons(console: Console) -> None:
    """Estimate worths of language models from pairwise votes."""
    votes = datasets.load("arena").y
    R = votes[[i for i, order in enumerate(votes.to_orders()) if len(order) == 2]]
    console.rule(f"Comparisons: {int(R.counts.sum()):,} decided votes on pairs of {len(R.items)} language models")
    ranker = PlackettLuceRanker(random_state=0)
    _fit(console, ranker, lambda: ranker.fit(None, R))
    best = ranker.worth(prob=0.9).head(SHOWN).reset_index().drop(columns=["worth", "first"])
    _show(console, "The best, with 90 % intervals of their log-worths", best)
    first, second = best["item"][:2]
    wins = ranker.prob_better(of="ranking").loc[first, second]
    console.print(f"{first} wins {wins:.0%} of its decided votes against {second}.")


def choices(console: Console) -> None:
    """Model travel choices, with half of them held out, and the effect of removing flights."""
    modes = datasets.load("travelmode")
    numbers = np.arange(len(modes.y))
    train, test = train_test_split(numbers, test_size=0.5, stratify=modes.y, random_state=0)
    console.rule("Choices: 210 travellers between Sydney, Canberra and Melbourne")
    chooser = PlackettLuceChooser(random_state=0)
    _fit(console, chooser, lambda: chooser.fit(modes.choices[train], modes.y[train]))
    held_out = modes.choices[test]
    _score(console, chooser.predict_proba(held_out), modes.y[train], modes.y[test], chooser.alternatives_)
    _show(console, "Where those who fly would go without flights", chooser.diversion(held_out, drop="air"))


def _fit(console: Console, model: object, fit: Callable[[], Any]) -> None:
    """Fit, and print the time and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        fit()
        seconds = time.perf_counter() - started
    console.print(f"{type(model).__name__}: {seconds:.1f} s, in which a first run compiles the kernels that it needs.")
    for warning in caught:
        console.print(str(warning.message), style="yellow")


def _score(
    console: Console, probability: npt.NDArray[Any], y: npt.NDArray[Any], y_test: npt.NDArray[Any], labels: Any
) -> None:
    """Print scores of held-out predictions, and of the class shares of the training data."""
    shares = np.tile([np.mean(y == label) for label in labels], (len(y_test), 1))
    table = Table("", "error", "log-loss", title=f"{len(y_test)} rows that were held out")
    for name, predicted in (("model", probability), ("shares alone", shares)):
        found = scores(predicted, y_test, labels)
        table.add_row(name, f"{found.error:.3f}", f"{found.log_loss:.3f}")
    console.print(table)


def _show(console: Console, title: str, frame: Any) -> None:
    """Print a data frame as a table, numbers with three digits."""
    table = Table(*map(str, frame.columns), title=title)
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    console.print(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
