"""`python -m plackett.demo`: Iris with all three inferences, in a minute."""

from __future__ import annotations

import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from plackett.classifier import PlackettLuceClassifier


def main() -> None:
    """Fit, score on held-out rows and print."""
    console = Console()
    iris = load_iris(as_frame=True)
    y = iris.target_names[iris.target]
    X_train, X_test, y_train, y_test = train_test_split(iris.data, y, test_size=0.5, stratify=y, random_state=0)
    table = Table("inference", "error", "log-loss", "active weights", "shape a", "seconds", title="Iris, half held out")
    for inference in ("em", "variational", "gibbs"):
        clf = PlackettLuceClassifier(inference, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.perf_counter()
            clf.fit(X_train, y_train)
            seconds = time.perf_counter() - started
        error = np.mean(clf.predict(X_test) != y_test)
        loss = log_loss(y_test, clf.predict_proba(X_test), labels=clf.classes_)
        active = (clf.weights_ > 1e-3).sum()
        table.add_row(
            inference,
            f"{error:.3f}",
            f"{loss:.3f}",
            f"{active} of {clf.weights_.size}",
            f"{clf.shape_:.3g}",
            f"{seconds:.2f}",
        )
        for warning in caught:
            console.print(f"{inference}: {warning.message}", style="yellow")
    console.print(table)
    names = clf.features_.get_feature_names_out()
    best = Table("class", "feature", "weight", title="Largest weights (posterior mean, Gibbs)")
    for place in np.argsort(clf.weights_, axis=None)[::-1][:8]:
        k, j = np.unravel_index(place, clf.weights_.shape)
        best.add_row(str(clf.classes_[k]), str(names[j]), f"{clf.weights_[k, j]:.3f}")
    console.print(best)


if __name__ == "__main__":
    main()
