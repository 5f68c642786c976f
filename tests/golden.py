"""Whether two versions of the package give the same numbers, to the last bit, over many combinations of its parts.

`python tests/golden.py COMMIT [WORDS]` fits every combination (those whose names contain all WORDS) with the package at
a commit and with the one here, and compares SHA-256 digests of traces, posteriors, predictions and intervals. Both run
on this machine, so that the digests need not hold on any other.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
N, ITEMS = 60, ["ash", "elm", "fir", "oak"]
rng = np.random.default_rng(0)
COVARIATES = rng.normal(size=(N, 3))
LABELS = np.array(["a", "b", "c"])[np.argmax(COVARIATES + rng.gumbel(size=(N, 3)), axis=1)]
WHOLE, FRACTIONS = rng.integers(1, 4, size=N), rng.uniform(0.5, 2.0, size=N)
GROUPS = np.repeat(np.arange(20), 3)


def inferences(moves=("none", "auto"), learned=False):
    """Settings by name; learned directions have no variational scheme."""
    from plackett import EM, Gibbs, Variational

    found = {"em": EM(cv=2)}
    if not learned:
        found["variational"] = Variational(draws=20)
    for move in moves:
        found[f"gibbs, moves {move}"] = Gibbs(draws=12, tune=12, chains=2, moves=move)
    return found


def few():
    from plackett.directions import LearnedDirections

    return LearnedDirections(components=2, leapfrogs=3)


def engines():
    return ("numba", "numpy", "dask")


def classes():
    """Fits of a classifier by name."""
    from scipy.sparse import csr_array
    from sklearn.preprocessing import SplineTransformer

    from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
    from plackett.priors import GIG

    def fit(settings, X=COVARIATES, **data):
        return lambda: (PlackettLuceClassifier(random_state=0, **settings).fit(X, LABELS, **data), (X,))

    weights = {"": {}, ", whole weights": {"sample_weight": WHOLE}}
    for (name, inference), engine, (told, data) in product(inferences().items(), engines(), weights.items()):
        if engine == "dask" and "auto" in name:
            continue
        settings = {"inference": inference, "features": "exp", "engine": engine}
        yield f"classes, exp, {name}, {engine}{told}", fit(settings, **data)
    for (name, inference), shape in product(inferences().items(), (0.5, 1.5)):
        yield f"classes, exp, {name}, shape {shape}", fit({"inference": inference, "features": "exp", "shape": shape})
    for name, inference in inferences(("none",)).items():
        gig = {"inference": inference, "features": "exp", "prior": GIG(0.5, 0.1, 1.0)}
        yield f"classes, exp, {name}, GIG", fit(gig)
        spline = {"inference": inference, "features": SplineTransformer()}
        yield f"classes, splines, {name}", fit(spline)
        X = csr_array(np.where(COVARIATES > 0.5, np.round(np.abs(COVARIATES), 1), 0.0))
        yield f"classes, sparse, {name}", fit({"inference": inference, "features": "passthrough"}, X)
    for name, inference in inferences(("auto",)).items():
        balanced = {"inference": inference, "features": "exp", "class_weight": "balanced"}
        yield f"classes, exp, {name}, class weights", fit(balanced)
    for name in ("em", "variational"):
        yield f"classes, exp, {name}, fractions", fit({"inference": name, "features": "exp"}, sample_weight=FRACTIONS)
    for (name, inference), engine in product(inferences(("auto",), learned=True).items(), ("numba", "numpy", "dask")):
        settings = {"inference": inference, "features": few(), "engine": engine}
        yield f"classes, learned, {name}, {engine}", fit(settings)
        if engine == "numba":
            yield f"classes, learned, {name}, weights", fit(settings, sample_weight=FRACTIONS)
            yield f"classes, learned, {name}, groups", fit(settings, groups=GROUPS)
    defaults = {"inference": Gibbs(draws=12, tune=12, chains=2)}
    yield "classes, default features", fit(defaults)
    for sampler, weighted in product(("holmes-held", "polya-gamma"), (None, WHOLE)):
        settings = {"sampler": sampler, "draws": 12, "tune": 12, "chains": 2, "random_state": 0}

        def logit(settings=settings, weighted=weighted):
            return SparseLogitClassifier(**settings).fit(COVARIATES, LABELS, sample_weight=weighted), (COVARIATES,)

        yield f"logit, {sampler}, {'whole weights' if weighted is not None else 'no weights'}", logit


def rankings():
    """Fits of a ranker by name."""
    from plackett import PlackettLuceRanker, Rankings

    draw = np.random.default_rng(1)
    orders = [draw.permutation(ITEMS).tolist()[: 2 + i % 3] for i in range(N)]
    tied = [[set(order[:2]), *order[2:]] if i % 3 else order for i, order in enumerate(orders)]
    made = {
        "no ties": ("unknown-order", Rankings.from_orders(orders, unranked="absent")),
        "unranked last": ("unknown-order", Rankings.from_orders(orders, unranked="last", items=ITEMS)),
        "unknown order": ("unknown-order", Rankings.from_orders(tied, unranked="absent")),
        "race": ("race", Rankings.from_orders(tied, unranked="absent")),
        "counts": ("error", Rankings.from_orders(orders, unranked="absent", counts=WHOLE)),
    }

    def fit(settings, X, R, **data):
        def run():
            model = PlackettLuceRanker(random_state=0, **settings).fit(X, R, **data)
            return model, () if X is None else (X,)

        return run

    for (kind, (ties, R)), (name, inference) in product(made.items(), inferences(("none",)).items()):
        yield f"worths, {kind}, {name}", fit({"inference": inference, "ties": ties}, None, R)
        settings = {"inference": inference, "ties": ties, "features": "exp"}
        yield f"rankings, exp, {kind}, {name}", fit(settings, COVARIATES, R)
    for (kind, (ties, R)), (name, inference) in product(made.items(), inferences(("auto",), learned=True).items()):
        settings = {"inference": inference, "ties": ties, "features": few()}
        yield f"rankings, learned, {kind}, {name}", fit(settings, COVARIATES, R)
    ties, R = made["no ties"]
    for engine, (name, inference) in product(("numpy", "dask"), inferences(("none",)).items()):
        yield f"worths, {name}, {engine}", fit({"inference": inference, "engine": engine}, None, R)
    for name, inference in inferences(("auto",), learned=True).items():
        settings = {"inference": inference, "features": few()}
        yield f"rankings, learned, {name}, groups", fit(settings, COVARIATES, R, groups=GROUPS)
        yield f"rankings, learned, {name}, weights", fit(settings, COVARIATES, R, sample_weight=WHOLE)
    settings = {"inference": inferences(("auto",))["gibbs, moves auto"], "features": "exp"}
    yield "rankings, exp, moves", fit(settings, COVARIATES, R)


def choices():
    """Fits of a chooser by name."""
    from plackett import ChoiceSets, PlackettLuceChooser, Rankings

    draw = np.random.default_rng(2)
    alternatives = ["bus", "car", "walk"]
    trips = {f"{x}_{by}": draw.normal(5, 2, N) for by in alternatives for x in ("cost", "time")}
    trips["age"] = draw.normal(40, 10, N)
    X = ChoiceSets.from_wide(
        pd.DataFrame(trips), alternatives=alternatives, attributes=["cost", "time"], person=["age"]
    )
    utility = np.column_stack([-trips[f"cost_{by}"] - 0.5 * trips[f"time_{by}"] for by in alternatives])
    utility += draw.gumbel(size=utility.shape)
    y = np.array(alternatives)[np.argmax(utility, axis=1)]
    R = Rankings.from_orders([[alternatives[k] for k in order] for order in np.argsort(-utility, axis=1)])

    def fit(settings, seen=y, **data):
        def run():
            known = {"groups": GROUPS} if settings.get("weights") == "person" else {}
            return PlackettLuceChooser(random_state=0, **settings).fit(X, seen, **known, **data), (X,)

        return run

    whose = ("shared", "alternative", "person")
    for weights, (name, inference) in product(whose, inferences().items()):
        settings = {"inference": inference, "features": "exp", "weights": weights}
        yield f"choices, exp, {weights}, {name}", fit(settings)
    for weights, (name, inference) in product(whose, inferences(("auto",), learned=True).items()):
        settings = {"inference": inference, "features": few(), "weights": weights}
        yield f"choices, learned, {weights}, {name}", fit(settings)
        yield f"choices, learned, {weights}, {name}, rankings", fit(settings, R)
    for engine, (name, inference) in product(("numpy", "dask"), inferences(("none",)).items()):
        yield f"choices, exp, {name}, {engine}", fit({"inference": inference, "features": "exp", "engine": engine})
    for name, inference in inferences(("auto",), learned=True).items():
        settings = {"inference": inference, "features": few()}
        yield f"choices, learned, {name}, weights", fit(settings, sample_weight=WHOLE)
        yield f"choices, learned, {name}, groups", fit(settings, groups=GROUPS)


def digest(array):
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def arrays_of(value):
    """Arrays that a posterior holds, under whatever names."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiub":
            yield value
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from arrays_of(getattr(value, each.name))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from arrays_of(each)


def found_by(fit):
    """Digests of what a fit gives, or the words with which it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, data = fit()
        except (ValueError, TypeError, NotImplementedError) as error:
            return {"refused": " ".join(str(error).split())[:300]}
        found = {"posterior": sorted(digest(array) for array in arrays_of(model.posterior_))}
        if getattr(model, "trace_", None) is not None:
            found["trace"] = digest(model.trace_)
        if data:
            found["probabilities"] = digest(model.predict_proba(*data))
            found["intervals"] = [digest(bound) for bound in model.predict_interval(*data, prob=0.9)]
        elif hasattr(model, "worth"):
            found["worth"] = digest(model.worth(prob=0.9).select_dtypes("number").to_numpy())
        return found


def fits(words):
    for make in (classes, rankings, choices):
        for name, fit in make():
            if all(word in name for word in words):
                yield name, fit


def compute(words):
    """Digests of all combinations with the package that is imported, one JSON line each."""
    for name, fit in fits(words):
        started = time.process_time()
        print(json.dumps([name, found_by(fit), round(time.process_time() - started, 3)]), flush=True)


def at(source, words):
    """The same in a process of its own, with the package of another folder."""
    command = [sys.executable, __file__, "--compute", *words]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        sys.exit(f"golden: the package at {source} ended with {process.returncode}.")


def main(commit, *words):
    """Compare; ends with 1 where anything differs."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", "--quiet", folder, commit], check=True)
        try:
            before = {name: found for name, found, _ in at(Path(folder, "src"), words)}
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", folder], check=True)
    different = refused = 0
    for name, found, _ in at(ROOT / "src", words):
        refused += "refused" in found
        if found != before.get(name):
            different += 1
            print(f"DIFFERENT {name}: {before.get(name)} became {found}")
    print(f"{len(before)} combinations, {refused} of them refused in words, {different} different from {commit}.")
    return 1 if different else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compute"]:
        compute(sys.argv[2:])
    elif len(sys.argv) < 2:
        sys.exit("usage: python tests/golden.py COMMIT [WORDS]")
    else:
        sys.exit(main(*sys.argv[1:]))
