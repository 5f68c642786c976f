"""Numbers and figures of docs/mixing.md: `python -m benchmarks.mixing_figures compare defaults target draw`.

The measured numbers are kept in docs/figures/mixing.json; `draw` makes the figures from them and the trace of Pima
anew. Everything but the seconds is a function of the seeds.
"""

import argparse
import json
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.data import load, sets
from plackett import Gibbs, PlackettLuceClassifier
from plackett.inference.gibbs import USUAL

FOLDER = Path(__file__).parents[1] / "docs" / "figures"  # None: one that is removed in the end
STEPS = ("compare", "defaults", "target", "draw")
SEEDS, DEFAULT_SEEDS, DRAWS, ENOUGH = 3, 5, 4000, {"target_ess": 400, "max_draws": 1_024_000}
SMALLEST = {
    **{"FOLDER": None, "SEEDS": 1, "DEFAULT_SEEDS": 1, "DRAWS": 40, "DEFAULTS": {"draws": 20}},
    **{"ENOUGH": {"target_ess": 4, "max_draws": 40}, "sets": partial(sets, ("lenses",))},
}
DEFAULTS = {}  # settings of a fit with the defaults
COLOURS = {"none": "#D55E00", "exchange": "#0072B2"}  # vermilion and blue of Okabe and Ito
MARKERS = {"none": "o", "exchange": "D"}
LABELS = {"none": 'moves="none"', "exchange": 'moves="exchange"'}
TUNE = USUAL["tune"]
GLUCOSE = 1  # column of Pima
FLOOR, THIN = -8.0, 8  # of the traces


def fit(X, y, seed, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceClassifier(Gibbs(**settings), random_state=seed, features="exp").fit(X, y)


def measure(X, y, seed, **settings):
    started = time.perf_counter()
    clf = fit(X, y, seed, **settings)
    found = clf.diagnostics_
    return {
        "seed": seed,
        "rhat": round(found.worst_rhat, 4),
        "ess": round(found.smallest_ess, 1),
        "iterations": clf.n_iter_,
        "seconds": round(time.perf_counter() - started, 1),
    }


def compare():
    """Both samplers at the same number of draws."""
    return {
        name: {m: [measure(X, y, seed, draws=DRAWS, moves=m) for seed in range(SEEDS)] for m in LABELS}
        for name, X, y in sets()
    }


def defaults():
    """What a fit with the defaults gives."""
    return {name: [measure(X, y, seed, **DEFAULTS) for seed in range(DEFAULT_SEEDS)] for name, X, y in sets()}


def target():
    """Iterations until R-hat is 1.01 and the smallest effective sample size 400."""
    return {name: [measure(X, y, seed, **ENOUGH) for seed in range(SEEDS)] for name, X, y in sets()}


def middle(runs, what):
    return float(np.median([run[what] for run in runs]))


def span(values, form):
    """The range of some numbers, or the one that they all are."""
    return " to ".join(format(value, form) for value in sorted({min(values), max(values)}))


def tell(numbers):
    """The tables of docs/mixing.md."""
    if "compare" in numbers:
        print("| set | none: R-hat, smallest ESS | exchange: R-hat, smallest ESS |\n|---|---|---|")
        for name, runs in numbers["compare"].items():
            cells = [f"{middle(runs[m], 'rhat'):.3f}, {middle(runs[m], 'ess'):,.0f}" for m in LABELS]
            print(f"| {name.capitalize()} | {' | '.join(cells)} |")
    if "defaults" in numbers and "target" in numbers:
        print("\n| set | defaults: R-hat | defaults: smallest ESS | iterations to the target |\n|---|---|---|---|")
        for name, runs in numbers["defaults"].items():
            rhats, sizes = ([run[what] for run in runs] for what in ("rhat", "ess"))
            needed = [run["iterations"] - TUNE for run in numbers["target"][name]]
            print(f"| {name.capitalize()} | {span(rhats, '.3f')} | {span(sizes, ',.0f')} | {span(needed, ',')} |")


def draw_traces(plt, folder):
    """Where the effect of glucose sits, in four chains of each sampler."""
    X, y = load("pima")
    figure, panels = plt.subplots(4, 2, figsize=(8.5, 6), sharex=True, sharey=True, layout="constrained")
    for column, moves in enumerate(LABELS):
        clf = fit(X, y, 0, draws=DRAWS, moves=moves)
        names, classes = list(clf.features_.get_feature_names_out()), list(clf.classes_)
        places = {
            "class pos, exp(glucose)": (classes.index("pos"), names.index(f"exp(x{GLUCOSE})"), "#0072B2"),
            "class neg, exp(−glucose)": (classes.index("neg"), names.index(f"exp(-x{GLUCOSE})"), "#E69F00"),
        }
        for chain in range(4):
            panel = panels[chain, column]
            for label, (k, j, colour) in places.items():
                trace = clf.posterior_.log_weights[chain, ::THIN, k, j]
                steps = np.arange(len(trace)) * THIN
                panel.plot(steps, np.maximum(trace, FLOOR), color=colour, lw=0.7, label=label)
            panel.set_ylim(FLOOR, 0)
            panel.set_yticks([-6, -3, 0])
            if column == 0:
                panel.set_ylabel(f"chain {chain + 1}\nln λ̄")
        panels[0, column].set_title(f"{LABELS[moves]}, R-hat {clf.diagnostics_.worst_rhat:.3f}", fontsize=11)
        panels[3, column].set_xlabel("draw")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    save(folder, figure, "mixing_pima.png")


def draw_comparison(plt, numbers, folder):
    """R-hat and effective sample size before and after."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    names = list(numbers)
    for panel, what in zip(panels, ("rhat", "ess"), strict=True):
        for place, name in enumerate(names):
            for step, moves in ((-0.13, "none"), (0.13, "exchange")):
                values = np.array([run[what] for run in numbers[name][moves]]) - (what == "rhat")
                panel.plot(
                    values, np.full(len(values), place + step), MARKERS[moves], color=COLOURS[moves], ms=6, alpha=0.8,
                    mec="white", mew=0.6, label=LABELS[moves] if place == 0 else None,
                )  # fmt: skip
        panel.set_xscale("log")
        panel.grid(axis="x", color="0.9")
        panel.set_axisbelow(True)
        panel.set_yticks(range(len(names)), [name.capitalize() for name in names])
    panels[0].invert_yaxis()
    ticks = [0.001, 0.01, 0.1, 1.0]
    panels[0].set_xticks(ticks, [f"{1 + t:g}" for t in ticks])
    panels[0].set_xlim(left=0.0007)
    panels[0].axvline(0.01, color="0.4", lw=1, ls="--")
    panels[0].set_xlabel("largest R-hat (dashed: 1.01)")
    panels[1].axvline(400, color="0.4", lw=1, ls="--")
    panels[1].set_xlabel("smallest effective sample size (dashed: 400)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    save(folder, figure, "mixing_compare.png")


def draw_target(plt, numbers, folder):
    """Iterations that a set needs."""
    figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for place, runs in enumerate(numbers.values()):
        needed = np.array([run["iterations"] - TUNE for run in runs])
        steps = np.linspace(-0.15, 0.15, len(needed))
        panel.plot(needed, place + steps, MARKERS["exchange"], color=COLOURS["exchange"], ms=6, mec="white", mew=0.6)
    panel.set_xscale("log", base=2)
    ticks = 1000 * 2 ** np.arange(0, 10)
    panel.set_xticks(ticks, [f"{t:,}" for t in ticks], rotation=30)
    panel.set_xlim(800, 1.2 * max(run["iterations"] for runs in numbers.values() for run in runs))
    panel.axvline(1000, color="0.4", lw=1, ls="--")
    panel.set_yticks(range(len(numbers)), [name.capitalize() for name in numbers])
    panel.invert_yaxis()
    panel.grid(axis="x", color="0.9")
    panel.set_axisbelow(True)
    panel.set_xlabel("iterations of each chain after tuning (dashed: the default, draws=1000)")
    save(folder, figure, "mixing_target.png")


def save(folder, figure, name):
    figure.savefig(folder / name, dpi=100)
    print(f"{name}: {(folder / name).stat().st_size // 1000} kB")


def draw(numbers, folder):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    draw_traces(plt, folder)
    draw_comparison(plt, numbers["compare"], folder)
    draw_target(plt, numbers["target"], folder)


def main(steps=None):
    with tempfile.TemporaryDirectory() as temporary:
        make(steps or STEPS, FOLDER or Path(temporary))


def make(steps, folder):
    path = folder / "mixing.json"
    numbers = json.loads(path.read_text()) if path.exists() else {}
    for step in steps:
        if step != "draw":
            numbers[step] = {"compare": compare, "defaults": defaults, "target": target}[step]()
            path.write_text(json.dumps(numbers, indent=1) + "\n")
    tell(numbers)
    if "draw" in steps:
        draw(numbers, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing_figures", description=__doc__)
    parser.add_argument("steps", nargs="+", choices=STEPS)
    main(parser.parse_args().steps)
