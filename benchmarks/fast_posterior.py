"""The fast posterior beside chains and the mode: log-loss, coverage of intervals, and seconds; and limits of time.

Log-loss and processor seconds on splits of real sets. Coverage on simulated classes whose probabilities are known: the
share of 90 % intervals for them that hold the truth. Then models under a limit of time.
"""

import os
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.prediction.run import processor_seconds
from benchmarks.prediction.scores import log_loss
from benchmarks.prediction.sets import SETS, make_split
from plackett import Bootstrap, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker
from plackett.simulate import choices, rankings

NAMES = ("lenses", "iris", "wine", "heart", "glass", "pima", "german", "fishing", "travelmode")
SPLITS = 3
METHODS = {"chains": Gibbs(), "bootstrap": Bootstrap(), "mode": "em"}
TABLES = ((100, 4, 3), (300, 10, 3), (1000, 10, 4))  # rows, covariates, classes
REPEATS = 3
LARGE = (5000, 20, 4)
LIMITS = (10, 30, 60)  # seconds
SIZES = {"classes": ((300, 10, 3), (5000, 20, 4), (50_000, 15, 4)), "choices": 20_000, "rankings": 5000}
SMALLEST = {
    "NAMES": ("lenses",),
    "SPLITS": 1,
    "METHODS": {"bootstrap": Bootstrap(draws=4, max_iter=20), "mode": "em"},
    "TABLES": ((40, 2, 2),),
    "REPEATS": 1,
    "LARGE": (60, 2, 2),
    "LIMITS": (5,),
    "SIZES": {"classes": ((40, 2, 2),), "choices": 40, "rankings": 40},
}


def main():
    warnings.simplefilter("ignore")
    compile_all()
    print("log-loss (± its standard error over the splits) and processor seconds of fit and prediction")
    for name in NAMES:
        print(f"{name:12s}", "   ".join(on_set(name, method) for method in METHODS), flush=True)
    print("coverage of 90 % intervals for the true probabilities, their mean width, and root mean square error")
    for size in TABLES:
        print(f"{size[0]:5,} rows × {size[1]}, {size[2]} classes  ", "   ".join(covering(size, m) for m in METHODS))
    X, y, _ = classes(*LARGE, seed=0)
    took = measured(lambda: PlackettLuceClassifier("bootstrap", random_state=0).fit(X, y))
    print(f"bootstrap of {LARGE[0]:,} × {LARGE[1]}, {LARGE[2]} classes: {took}")
    for limit in LIMITS:
        for what, fit in limited(limit).items():
            print(f"max_seconds={limit}  {what}: {measured(fit)}", flush=True)


def compile_all():
    """One small fit of each kind, so that no compilation is timed."""
    X, y, _ = classes(40, 2, 2, seed=0)
    for method in METHODS.values():
        PlackettLuceClassifier(method, random_state=0).fit(X, y)


def on_set(name, method):
    """Log-loss over the splits of a set, and processor seconds of each fit."""
    losses, seconds = [], []
    for split in range(min(SPLITS, SETS[name].splits)):
        data, began = make_split(name, split), processor_seconds()
        fitted = PlackettLuceClassifier(METHODS[method], random_state=split).fit(data.X_train, data.y_train)
        losses.append(log_loss(fitted.predict_proba(data.X_test), data.y_test))
        seconds.append(processor_seconds() - began)
    error = np.std(losses) / max(len(losses) - 1, 1) ** 0.5
    return f"{method} {np.mean(losses):.3f} ± {error:.3f} {np.mean(seconds):5.1f} s"


def classes(n, d, K, seed):
    """Rows, classes and their true probabilities: gates along a few covariates that bend."""
    rng = np.random.default_rng(seed)
    X, beta = rng.normal(size=(n, d)), rng.normal(size=(K, d)) / np.sqrt(min(d, 4))
    beta[:, 4:] *= 0.1
    score = X @ beta.T + np.abs(X[:, :1]) * np.linspace(-1, 1, K)
    probability = np.exp(score - score.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    return X, (probability.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), probability


def covering(size, method):
    """How often 90 % intervals hold the true probability, in new rows; their width; and the error of predictions."""
    held, width, error = [], [], []
    for seed in range(REPEATS):
        X, y, truth = classes(2 * size[0], *size[1:], seed)
        fitted = PlackettLuceClassifier(METHODS[method], random_state=seed).fit(X[: size[0]], y[: size[0]])
        new, truth = X[size[0] :], truth[size[0] :, fitted.classes_]
        error.append(((fitted.predict_proba(new) - truth) ** 2).mean())
        if fitted.posterior_.no_interval is None:
            lower, upper = fitted.predict_interval(new)
            held.append(((lower <= truth) & (truth <= upper)).mean())
            width.append((upper - lower).mean())
    interval = f"{np.mean(held):.2f}, width {np.mean(width):.3f}, " if held else "no intervals, "
    return f"{method} {interval}error {np.sqrt(np.mean(error)):.3f}"


def limited(limit):
    """Fits by chains under a limit of time, by their names."""
    found = {}
    for n, d, K in SIZES["classes"]:
        X, y, _ = classes(n, d, K, seed=0)
        fit = PlackettLuceClassifier(Gibbs(max_seconds=limit), random_state=0).fit
        found[f"{n:,} rows × {d}, {K} classes"] = partial(fit, X, y)
    X, y = survey(SIZES["choices"])
    found[f"{len(X):,} choices"] = partial(PlackettLuceChooser(Gibbs(max_seconds=limit), random_state=0).fit, X, y)
    X, R = ballots(SIZES["rankings"])
    found[f"{len(X):,} rankings"] = partial(PlackettLuceRanker(Gibbs(max_seconds=limit), random_state=0).fit, X, R)
    return found


def survey(n, seed=0):
    """Choices of one of four modes by cost and time, which persons of two kinds weigh differently."""
    rng = np.random.default_rng(seed)
    modes = ["air", "bus", "car", "train"]
    frame = pd.DataFrame({f"{a}_{m}": rng.gamma(4.0, size=n) for a in ("cost", "ivt", "wait") for m in modes})
    X = ChoiceSets.from_wide(frame, alternatives=modes, attributes=["cost", "ivt", "wait"])
    kind = rng.random(n)[X.situation] < 0.5
    cost, ivt, wait = X.values.T
    return X, choices(X, np.where(kind, -0.6 * cost - 0.1 * ivt, -0.1 * cost - 0.6 * ivt) - 0.2 * wait, rng=seed)


def ballots(n, items=6, d=4, seed=0):
    """Persons with covariates and their rankings of some items."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rankings(X @ rng.normal(size=(d, items)) / 2 + rng.normal(size=items), rng=seed)


def measured(fit):
    """Seconds of a fit, on the clock and of the processor, and what came of it."""
    began, used = time.perf_counter(), processor_seconds()
    model = fit()
    took, used = time.perf_counter() - began, processor_seconds() - used
    name = type(model.inference_).__name__
    notes = f"; {'; '.join(model.notes_)}" if model.notes_ else ""
    return f"{took:.1f} s ({used:.1f} of the processor, load {os.getloadavg()[0]:.1f}), {name}{notes}"


if __name__ == "__main__":
    main()
