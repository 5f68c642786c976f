"""Figure 4: decision regions on two columns of Iris, with the paper's features and with those of section 5."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from plackett import datasets
from plackett.paper import drawing
from plackett.paper.document import Figure, PaperColumn, PaperSection, PaperTable
from plackett.paper.held_out import SEED
from plackett.paper.methods import METHODS, chosen
from plackett.paper.plan import Plan
from plackett.paper.runs import Job, Result, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


TITLE = "Figure 4: decision boundaries"
DATASETS = ("iris",)
PANELS = {
    "logit": "Sparse Logit",
    "gibbs": "PL-Gibbs",
    "pairs": "PL-Gibbs, additional features",
    "learned": "PL learned",
}
COLUMNS = ("petal_length", "petal_width")
RESOLUTION = 160


def regions(method: str, settings: dict[str, int], seed: int) -> Result:
    """Return the class at every point of a grid, as one digit each, and training and held-out error counts."""
    from sklearn.model_selection import cross_val_predict

    iris = datasets.load("iris")
    X, y = iris.X[list(COLUMNS)].to_numpy(dtype=float), np.asarray(iris.y)
    clf = METHODS[method].make(y, seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held_out = cross_val_predict(clf, X, y, cv=10)
        clf.fit(X, y)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    first, second = (np.linspace(low[i], high[i], RESOLUTION) for i in (0, 1))
    points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    classes = np.argmax(clf.predict_proba(points), axis=1).reshape(RESOLUTION, RESOLUTION)
    return {
        "rows": ["".join(map(str, row)) for row in classes],
        "extent": [*(round(float(v), 6) for v in (low[0], high[0], low[1], high[1]))],
        "classes": [str(c) for c in clf.classes_],
        "points": X.tolist(),
        "labels": np.searchsorted(clf.classes_, y).tolist(),
        "wrong": int((clf.predict(X) != y).sum()),
        "wrong_held_out": int((held_out != y).sum()),
        "n": len(y),
    }


def work(plan: Plan) -> dict[str, Job]:
    """Return one task per panel."""
    return {
        method.key: Job(
            f"figure4-{method.key}",
            regions,
            {"method": method.key, "settings": plan.settings.get(method.kind, {}), "seed": SEED},
        )
        for method in chosen(*PANELS)
    }


def tasks(plan: Plan) -> list[Job]:
    """Return the tasks of all panels."""
    return list(work(plan).values())


def section(plan: Plan, results: Results) -> PaperSection:
    """Show the panels, with their misclassification counts."""
    found = {key: results(task) for key, task in work(plan).items()}
    rows = [
        {
            "panel": PANELS[key],
            "wrong": result["wrong"],
            "wrong_held_out": result["wrong_held_out"],
            "error": result["wrong_held_out"] / result["n"],
        }
        for key, result in found.items()
    ]
    columns = [
        PaperColumn("panel", "Panel"),
        PaperColumn("wrong", f"Wrong of {found['gibbs']['n']}, fitted to all"),
        PaperColumn("wrong_held_out", "Wrong, tenfold cross-validation"),
        PaperColumn("error", "Error, tenfold cross-validation"),
    ]
    wrong = {key: result["wrong_held_out"] for key, result in found.items()}
    better = wrong["pairs"] < wrong["gibbs"]
    outcome = (
        f"On petal length and width alone PL-Gibbs misclassifies {wrong['gibbs']} of {found['gibbs']['n']} held-out "
        f"rows, Sparse Logit {wrong['logit']}; the additional features of section 5 "
        f"{'bring it down to' if better else 'do not help:'} {wrong['pairs']}."
    )
    blocks = (
        Figure(
            "figure4",
            "Decision regions on Iris, petal length and width only. The additional features are exp(x₁ + x₂) and "
            "exp(−x₁ − x₂) of the standardised covariates, as in section 5.",
            "Decision regions of the three classes of Iris in the plane of petal length and width, one panel a method",
            draw(found),
        ),
        PaperTable("figure4", "Misclassified rows.", columns, rows),
        "The paper finds the boundaries with exp(±x) alone counter-intuitive, and those with additional features more "
        "natural. It gives no number for this figure.",
    )
    return PaperSection("figure4", TITLE, outcome, blocks)


def draw(found: dict[str, Result]) -> Drawn:
    """Draw the panels in the paper's order."""
    letters = "abcd"
    with drawing.panels(1, len(found), 3.5 * len(found), 4.1, sharex=True, sharey=True) as (figure, axes):
        for index, (ax, (key, result)) in enumerate(zip(axes, found.items(), strict=True)):
            classes = np.array([list(map(int, row)) for row in result["rows"]])
            points, labels = np.array(result["points"]), np.array(result["labels"])
            x0, x1, y0, y1 = result["extent"]
            levels = np.arange(len(result["classes"]) + 1) - 0.5
            x, y = np.linspace(x0, x1, RESOLUTION), np.linspace(y0, y1, RESOLUTION)
            ax.contourf(x, y, classes, levels=levels, colors=drawing.LIGHT)
            for k, label in enumerate(result["classes"]):
                ax.plot(
                    *points[labels == k].T, drawing.MARKERS[k], color=drawing.COLOURS[k], markeredgecolor="white",
                    markeredgewidth=0.4, markersize=5, label=label,
                )  # fmt: skip
            ax.set(title=f"({letters[index]}) {PANELS[key]}", xlabel="petal length (cm)")
        axes[0].set_ylabel("petal width (cm)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
