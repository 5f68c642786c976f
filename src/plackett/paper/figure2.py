"""Figure 2: regularisation paths on Iris, and the claims of section 4.1 about their sparsity."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from plackett import datasets
from plackett.classifier import PlackettLuceClassifier
from plackett.inference import Gibbs
from plackett.model.race import Array
from plackett.paper import drawing
from plackett.paper.document import Figure, PaperColumn, PaperSection, PaperTable, Row
from plackett.paper.held_out import SEED
from plackett.paper.plan import Plan
from plackett.paper.runs import Job, Result, Results
from plackett.regularization import regularization_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


TITLE = "Figure 2: regularisation paths"
DATASETS = ("iris",)
PANELS = {
    "gibbs-mean": "(a) Posterior mean, PL-Gibbs",
    "gibbs-median": "(b) Posterior median, PL-Gibbs",
    "variational": "(c) Posterior mean, PL-Var",
    "em": "(d) MAP, PL-EM",
}
SMALL = 1e-3  # share of all weights below which a weight counts as near zero
GRID = (5, 3.5, 2.5, 1.7, 1.3, 1.15, 1, 0.7, 0.5, 0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.03, 0.02, 0.014, 0.01)
SHOWN = (1, 0.5, 0.2, 0.1, 0.05, 0.02)  # shapes of the table


def sampled(shape: float, draws: int, tune: int, chains: int, seed: int) -> Result:
    """Return posterior mean and median of every normalised weight at one shape."""
    iris = datasets.load("iris")
    clf = PlackettLuceClassifier(
        Gibbs(draws=draws, tune=tune, chains=chains), shape=shape, features="exp", random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        clf.fit(iris.X, iris.y)
        seconds = time.process_time() - started
    median = clf.posterior_.estimates(clf).centre
    return {"gibbs-mean": clf.weights_.tolist(), "gibbs-median": median.tolist(), "cpu_seconds": seconds}


def ascended(inference: str, shapes: list[float]) -> Result:
    """Return the whole path by EM or the variational approximation."""
    iris = datasets.load("iris")
    regularization_path(iris.X, iris.y, shapes=shapes[:1], inference=inference)  # loads the kernels
    started = time.process_time()
    path = regularization_path(iris.X, iris.y, shapes=shapes, inference=inference)
    return {
        "weights": path.weights.tolist(),
        "classes": path.classes.tolist(),
        "features": [str(name) for name in path.feature_names],
        "cpu_seconds": time.process_time() - started,
    }


def shapes(plan: Plan) -> list[float]:
    """Return decreasing values of a, including those of the table."""
    return list(GRID[::2] if plan.quick else GRID)


def point_tasks(plan: Plan) -> list[Job]:
    """Return runs of the sampler at every shape."""
    size = plan.pick({"draws": 2000, "tune": 1000, "chains": 4}, {"draws": 300, "tune": 200, "chains": 2})
    return [
        Job(f"figure2-gibbs-{shape:g}", sampled, {"shape": shape, "seed": SEED, **size}, turn=index % 20)
        for index, shape in enumerate(shapes(plan))
    ]


def path_tasks(plan: Plan) -> list[Job]:
    """Return the variational and the EM path."""
    return [
        Job(f"figure2-{inference}", ascended, {"inference": inference, "shapes": shapes(plan)})
        for inference in ("variational", "em")
    ]


def tasks(plan: Plan) -> list[Job]:
    """Return the runs of all four panels."""
    return point_tasks(plan) + path_tasks(plan)


def section(plan: Plan, results: Results) -> PaperSection:
    """Show the four panels, and the claims of section 4.1 in numbers."""
    points = [results(task) for task in point_tasks(plan)]
    variational, em = (results(task) for task in path_tasks(plan))
    paths = {name: np.array([point[name] for point in points]) for name in ("gibbs-mean", "gibbs-median")}
    paths |= {"variational": np.array(variational["weights"]), "em": np.array(em["weights"])}
    grid = np.array(shapes(plan))
    total = paths["em"][0].size

    def near_zero(name: str, shape: float) -> int:
        weights = paths[name][grid.tolist().index(shape)]
        return int((weights == 0).sum() if name == "em" else (weights < SMALL).sum())

    rows = [{"shape": shape, **{name: near_zero(name, shape) for name in PANELS}} for shape in SHOWN]
    columns = [
        PaperColumn("shape", "Shape a", "g"),
        PaperColumn("gibbs-mean", "Mean, PL-Gibbs"),
        PaperColumn("gibbs-median", "Median, PL-Gibbs"),
        PaperColumn("variational", "Mean, PL-Var"),
        PaperColumn("em", "MAP, PL-EM (exactly zero)"),
    ]
    seconds = {"PL-Gibbs": sum(point["cpu_seconds"] for point in points), "PL-Var": variational["cpu_seconds"]}
    claims = judged(rows, paths, seconds)
    caption = (
        "Regularisation paths on Iris: normalised weights λ̄_kj against the shape a, which falls from left to right. "
        "Colour and dash: class. The largest weights at the right are named."
    )
    alt = (
        "Four panels of weight paths on Iris over the shape a: posterior mean, posterior median, variational mean, MAP."
    )
    blocks = (
        Figure("figure2", caption, alt, draw(grid, paths, em["classes"], em["features"])),
        PaperTable("figure2", f"Weights near zero (below {SMALL:g}), of {total}.", columns, rows),
        PaperTable("figure2_claims", "What section 4.1 says, and what we see.", CLAIMS, claims),
    )
    held = sum(claim["verdict"] == "holds" for claim in claims)
    return PaperSection("figure2", TITLE, f"{held} of {len(claims)} statements of section 4.1 hold.", blocks)


CLAIMS = (PaperColumn("claim", "The paper"), PaperColumn("seen", "Seen here"), PaperColumn("verdict", "Verdict"))


def judged(rows: list[Row], paths: dict[str, Array], seconds: dict[str, float]) -> list[dict[str, str]]:
    """Compare the statements of section 4.1 with our numbers."""
    last = rows[-1]
    a = f"at a = {last['shape']:g}"
    mean_zero = int((paths["gibbs-mean"] == 0).sum())
    concentrated = last["gibbs-mean"] > rows[0]["gibbs-mean"]
    near = abs(last["variational"] - last["gibbs-median"]) <= abs(last["variational"] - last["gibbs-mean"])

    def claim(text: str, seen: str, holds: bool) -> dict[str, str]:
        return {"claim": text, "seen": seen, "verdict": "holds" if holds else "does not hold"}

    return [
        claim("MAP is exactly sparse for small a", f"{last['em']} exact zeros {a}", last["em"] > 0),
        claim(
            "Posterior means are not sparse, but concentrate around zero as a decreases",
            f"{mean_zero} exact zeros; near zero {rows[0]['gibbs-mean']} at a = {rows[0]['shape']:g}, "
            f"{last['gibbs-mean']} {a}",
            mean_zero == 0 and concentrated,
        ),
        claim(
            "The posterior median is sparser than the mean",
            f"near zero {last['gibbs-median']} against {last['gibbs-mean']} {a}",
            last["gibbs-median"] > last["gibbs-mean"],
        ),
        claim(
            "The variational mean is about as sparse as the posterior median",
            f"near zero {last['variational']} against {last['gibbs-median']} {a}",
            near,
        ),
        claim(
            "The variational approximation converges faster",
            f"whole path {seconds['PL-Var']:.1f} s against {seconds['PL-Gibbs']:.1f} s",
            seconds["PL-Var"] < seconds["PL-Gibbs"],
        ),
    ]


def draw(grid: Array, paths: dict[str, Array], classes: list[str], features: list[str]) -> Drawn:
    """Draw four panels with common axes; the largest weights are named at the right."""
    with drawing.panels(2, 2, 9.5, 6.8, sharex=True, sharey=True) as (figure, axes):
        top = max(float(path.max()) for path in paths.values())
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            path = paths[name]
            for k, label in enumerate(classes):
                for j in range(path.shape[2]):
                    ax.plot(
                        grid, path[:, k, j], color=drawing.COLOURS[k], linestyle=drawing.DASHES[k],
                        linewidth=1.1, label=label if j == 0 else None,
                    )  # fmt: skip
            end = path[-1]
            largest = [index for index in np.argsort(end, axis=None) if end.flat[index] > 0.02][-7:]
            heights = drawing.spaced([float(end.flat[index]) for index in largest], 0.045 * top)
            for index, height in zip(largest, heights, strict=True):
                k, j = np.unravel_index(index, end.shape)
                ax.annotate(
                    features[j].replace("_", " "), (grid[-1], height), xytext=(4, 0), textcoords="offset points",
                    va="center", fontsize=7, color=drawing.COLOURS[k], annotation_clip=False,
                )  # fmt: skip
            ax.set(title=title, xscale="log", ylim=(-0.02 * top, 1.05 * top))
        axes[0].invert_xaxis()
        ticks = (5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
        axes[0].set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axes[0].set_xticks([], minor=True)
        axes[0].legend(loc="upper left", title="class")
        for ax in axes[2:]:
            ax.set_xlabel("shape a (falling)")
        for ax in axes[::2]:
            ax.set_ylabel("normalised weight")
    return figure
