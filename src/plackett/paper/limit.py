"""Section 5: the prior shape a = α/p as the number of features p grows, compared with a fixed and a learned a.

Shuffled copies, which carry no information about the class, are added to Heart's covariates. Under a = α/p the
normalised weights of a class converge to a Poisson–Dirichlet draw, whose number of weights above ε is finite; under a
fixed a it grows with p.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta

from plackett.output.scores import scores
from plackett.paper import drawing
from plackett.paper.document import Figure, PaperColumn, PaperSection, PaperTable, written
from plackett.paper.held_out import SEED, split, table
from plackett.paper.methods import gibbs
from plackett.paper.plan import Plan
from plackett.paper.runs import Job, Result, Results
from plackett.paper.verdicts import BOUND, paired, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


TITLE = "The limit a = α/p"
DATASETS = ("heart",)
ALPHA = 1.0
ACTIVE = 1e-3  # share of its class above which a weight is active
COPIES = (0, 1, 3, 7, 15)  # numbers of shuffled copies to add
SHAPES = {"limit": "a = α/p", "fixed": "a = α/p at the smallest p", "learn": "a sampled"}
TRAIN = 0.5


def fit(copies: int, shape: float | str, replication: int, draws: int, tune: int, chains: int, seed: int) -> Result:
    """Return scores on held-out rows, and the number of active weights per class, averaged over draws and classes."""
    X, y = table("heart")
    rng = np.random.default_rng([seed, copies])
    noise = [rng.permuted(X, axis=0) for _ in range(copies)]
    X = np.hstack([X, *noise])
    inside, outside = split(y, TRAIN, replication)
    clf = gibbs(y, seed, draws=draws, tune=tune, chains=chains, shape=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        clf.fit(X[inside], y[inside])
        seconds = time.process_time() - started
    weights = clf.posterior_.estimates(clf).draws
    assert weights is not None
    of_class = weights / weights.sum(axis=2, keepdims=True)
    found: Result = scores(clf.predict_proba(X[outside]), y[outside], clf.classes_)._asdict()
    active = float((of_class > ACTIVE).sum(axis=2).mean())
    return found | {"p": weights.shape[2], "active": active, "shape": clf.shape_, "cpu_seconds": seconds}


def features(copies: int) -> int:
    """Return the number p of features: exp(x), exp(−x) of every column, and a constant."""
    return 2 * table("heart")[0].shape[1] * (1 + copies) + 1


def expected_active(shape: float, p: int) -> float:
    """Return the prior mean of the number of weights of a class above ε: p·Pr(Beta(a, (p−1)a) > ε)."""
    return float(p * beta.sf(ACTIVE, shape, (p - 1) * shape))


def limiting_active() -> float:
    """Return its limit for a = α/p: ∫_ε^1 α x⁻¹ (1−x)^(α−1) dx."""
    return float(quad(lambda x: ALPHA / x * (1 - x) ** (ALPHA - 1), ACTIVE, 1)[0])


def work(plan: Plan) -> dict[tuple[str, int], list[Job]]:
    """Return tasks by choice of a and number of copies, one per replication."""
    size = plan.pick({"draws": 500, "tune": 500, "chains": 2}, {"draws": 60, "tune": 60, "chains": 1})
    smallest = ALPHA / features(0)
    found = {}
    for copies in COPIES[: plan.pick(len(COPIES), 3)]:
        shapes = {"limit": ALPHA / features(copies), "fixed": smallest, "learn": "learn"}
        for name, shape in shapes.items():
            found[name, copies] = [
                Job(
                    f"limit-{name}-{copies:02d}-{replication:02d}",
                    fit,
                    {"copies": copies, "shape": shape, "replication": replication, "seed": SEED + replication, **size},
                    turn=replication,
                )
                for replication in range(plan.pick(5, 2))
            ]
    return found


def tasks(plan: Plan) -> list[Job]:
    """Return tasks for every choice of a at every p."""
    return [task for group in work(plan).values() for task in group]


def section(plan: Plan, results: Results) -> PaperSection:
    """Show prediction and active weights as p grows."""
    found = {key: [results(task) for task in group] for key, group in work(plan).items()}
    rows = []
    for (name, copies), runs in found.items():
        p = features(copies)
        shape = {"limit": ALPHA / p, "fixed": ALPHA / features(0)}.get(name)
        rows.append(
            {
                "p": p,
                "choice": SHAPES[name],
                "a": float(np.exp(np.mean(np.log([run["shape"] for run in runs])))),
                "prior": expected_active(shape, p) if shape else None,
                "active": spread([run["active"] for run in runs]),
                "error": spread([run["error"] for run in runs]),
                "log_loss": spread([run["log_loss"] for run in runs]),
            }
        )
    columns = [
        PaperColumn("p", "Features p"),
        PaperColumn("choice", "Choice of a"),
        PaperColumn("a", "a", ".4f"),
        PaperColumn("prior", "Active weights a class, prior", ".1f"),
        PaperColumn("active", "Active weights a class, posterior", ".1f"),
        PaperColumn("error", "Error"),
        PaperColumn("log_loss", "Log-loss"),
    ]
    largest = max(copies for _, copies in found)
    losses = {name: [run["log_loss"] for run in found[name, largest]] for name in SHAPES}
    gap, z = paired(losses["limit"], losses["fixed"])
    word = "not clearly different from" if abs(z) <= BOUND else "better than" if z < 0 else "worse than"
    active = {name: np.mean([run["active"] for run in found[name, largest]]) for name in SHAPES}
    outcome = (
        f"At p = {features(largest):,} a class has {active['limit']:.1f} active weights under a = α/p "
        f"and {active['fixed']:.1f} under a fixed a; log-loss under a = α/p is {word} it "
        f"({written(gap, '+.3f')}, {written(z, '+.1f')} standard errors, paired)."
    )
    blocks = (
        f"Heart, half for training, {plan.pick(5, 2)} splits, PL-Gibbs. To the 13 covariates come shuffled copies of "
        f"them, which say nothing of the class. α = {ALPHA:g}. A weight is active if it is more than {ACTIVE:g} of its "
        "class. Section 5 notes that with a = α/p the normalised weights of a class tend to a Poisson–Dirichlet draw; "
        f"the prior number of active weights then tends to {limiting_active():.2f}; under a fixed a it grows with p.",
        Figure(
            "limit",
            "Active weights of a class and log-loss as useless features are added. Bars: two standard errors; dashed "
            "lines: prior means; dotted line: their limit under a = α/p.",
            "Active weights of a class and held-out log-loss against the number of features for three choices of a",
            draw(found),
        ),
        PaperTable("limit", "Prediction and active weights as p grows: mean (deviation) over splits.", columns, rows),
    )
    return PaperSection("limit", TITLE, outcome, blocks)


def draw(found: dict[tuple[str, int], list[Result]]) -> Drawn:
    """Draw active weights at the left, log-loss at the right."""
    with drawing.panels(1, 2, 9.5, 4.2) as (figure, axes):
        for index, (name, label) in enumerate(SHAPES.items()):
            runs = [group for (key, _), group in found.items() if key == name]
            p = np.array([group[0]["p"] for group in runs])
            for ax, measure in zip(axes, ("active", "log_loss"), strict=True):
                values = [spread([run[measure] for run in group]) for group in runs]
                ax.errorbar(
                    p * (1 + 0.04 * (index - 1)),
                    [v.mean for v in values],
                    [2 * v.sd / np.sqrt(len(runs[0])) for v in values],
                    color=drawing.COLOURS[index],
                    marker=drawing.MARKERS[index],
                    capsize=2,
                    label=label,
                )
            if name != "learn":
                prior = [expected_active(ALPHA / (p[0] if name == "fixed" else n), n) for n in p]
                axes[0].plot(p, prior, "--", color=drawing.COLOURS[index], linewidth=1)
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick < 2 * axes[0].get_ylim()[1]]
        axes[0].axhline(limiting_active(), color="0.4", linestyle=":", linewidth=1)
        axes[0].set(title="Active weights of a class", yscale="log")
        axes[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes[0].set_yticks([], minor=True)
        axes[1].set(title="Held-out log-loss")
        for ax in axes:
            ax.set(xscale="log", xlabel="features p")
            ax.set_xticks(p, [f"{n:,}" for n in p])
            ax.set_xticks([], minor=True)
        axes[0].legend(loc="upper left")
    return figure
