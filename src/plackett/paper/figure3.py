"""Figure 3: ROC curves on Heart and Pima, from the held-out probabilities of Table 2's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plackett.model.race import Array
from plackett.paper import drawing, held_out
from plackett.paper.document import Figure, PaperColumn, PaperSection, PaperTable, Row, written
from plackett.paper.held_out import Tasks
from plackett.paper.methods import METHODS, chosen
from plackett.paper.plan import NAMES, Plan
from plackett.paper.runs import Job, Result, Results
from plackett.paper.values import Spread
from plackett.paper.verdicts import BOUND, paired, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


TITLE = "Figure 3: ROC curves"
DATASETS = ("heart", "pima")
COLUMNS = ("logit", "gibbs", "variational", "learned", "l2")
TRAIN = 0.5
GRID = np.linspace(0, 1, 201)  # false positive rates at which curves are averaged


def work(plan: Plan) -> dict[str, Tasks]:
    """Return the runs of Table 2 with half for training, by data set."""
    return {
        name: held_out.tasks(name, TRAIN, plan.replications, chosen(*COLUMNS), plan.settings)
        for name in plan.sets(*DATASETS)
    }


def tasks(plan: Plan) -> list[Job]:
    """Return runs of the figure's methods on every split."""
    return [task for group in work(plan).values() for task in group.values()]


def curve(result: Result) -> tuple[Array, float]:
    """Return true positive rates at `GRID` and the area under the curve, for one run."""
    from sklearn.metrics import roc_auc_score, roc_curve

    truth, probability = np.array(result["second"]), np.array(result["probability"])
    false, true, _ = roc_curve(truth, probability)
    return np.interp(GRID, false, true), float(roc_auc_score(truth, probability))


def section(plan: Plan, results: Results) -> PaperSection:
    """Show one panel per data set, with the mean curve of each method and its AUC in the legend."""
    rows: list[Row] = []
    curves, gains = {}, []
    for name, group in work(plan).items():
        found = {
            method.key: [curve(results(task)) for (key, _), task in group.items() if key == method.key]
            for method in chosen(*COLUMNS)
        }
        area = {key: np.array([auc for _, auc in pairs]) for key, pairs in found.items()}
        curves[name] = {
            key: (np.mean([c for c, _ in pairs], axis=0), spread(area[key])) for key, pairs in found.items()
        }
        for key in found:
            gap, z = paired(area[key], area["logit"])
            rows.append(
                {
                    "name": NAMES[name],
                    "method": METHODS[key].label,
                    "auc": spread(area[key]),
                    "gap": gap if key != "logit" else None,
                    "z": z if key != "logit" else None,
                    "verdict": verdict(z) if key != "logit" else "the measure",
                }
            )
        gain, z = paired(area["gibbs"], area["variational"])
        gains.append(f"{written(gain, '+.3f')} ({written(z, '+.1f')} standard errors) on {NAMES[name]}")
    columns = [
        PaperColumn("name", "Data set"),
        PaperColumn("method", "Method"),
        PaperColumn("auc", "AUC"),
        PaperColumn("gap", "Against Sparse Logit", "+.3f"),
        PaperColumn("z", "Difference (SE, paired)", "+.1f"),
        PaperColumn("verdict", "Verdict"),
    ]
    outcome = "AUC of PL-Gibbs against Sparse Logit: " + ", ".join(
        f"{row['auc'].mean:.3f}, {row['verdict']}, on {row['name']}" for row in rows if row["method"] == "PL-Gibbs"
    )
    blocks = (
        Figure(
            "figure3",
            "ROC curves of held-out rows, half of the data for training; true positive rates averaged over the splits. "
            "AUC: mean over the splits.",
            "ROC curves of the methods on " + " and ".join(NAMES[name] for name in curves),
            draw(curves),
        ),
        PaperTable("figure3", "Area under the ROC curve: mean (deviation) over splits.", columns, rows),
        "The paper prints no areas, so that there is no number to compare with. It says that the curves confirm that "
        "the models are competitive, and that Gibbs sampling is in general better than the variational approximation. "
        f"AUC of PL-Gibbs less that of PL-Var: {', '.join(gains)}.",
    )
    return PaperSection("figure3", TITLE, outcome + ".", blocks)


def verdict(z: float) -> str:
    """Return a verdict; larger areas are better."""
    return "not clearly different" if abs(z) <= BOUND else "better" if z > 0 else "worse"


def draw(curves: dict[str, dict[str, tuple[Array, Spread]]]) -> Drawn:
    """Draw the panels."""
    with drawing.panels(1, len(curves), 4.7 * len(curves), 4.6) as (figure, axes):
        for ax, (name, methods) in zip(axes, curves.items(), strict=True):
            ax.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
            for index, key in enumerate(COLUMNS):
                if key in methods:
                    line, auc = methods[key]
                    label = f"{METHODS[key].label}, AUC {auc.mean:.3f}"
                    ax.plot(GRID, line, color=drawing.COLOURS[index], linestyle=drawing.DASHES[index], label=label)
            ax.set(title=NAMES[name], xlabel="false positive rate", ylabel="true positive rate")
            ax.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
            ax.legend(loc="lower right")
    return figure
