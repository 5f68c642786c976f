"""Whether two versions of the package give the same numbers, to the last bit, over many combinations of its parts.

`python tests/golden.py COMMIT [WORDS]` fits every combination (those whose names contain all WORDS) with the package at
a commit and with the one here, and compares SHA-256 digests of traces, posteriors, predictions and intervals. Both run
on this machine, so that the digests need not hold on any other. Checkpoints that the package at the commit wrote are
continued by the one here. What the commit gave is kept beside the repository's objects and computed once.

`python tests/golden.py --times COMMIT [WORDS]` times fits whose passes take most of the time, both versions by turns.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
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


def few(inference=None):
    """Few components; trajectories are for chains."""
    from plackett import EM
    from plackett.directions import LearnedDirections

    return (
        LearnedDirections(components=2) if isinstance(inference, EM) else LearnedDirections(components=2, leapfrogs=3)
    )


def plain(inference):
    """The same for a given shape, which EM need not choose."""
    from plackett import EM

    return EM() if isinstance(inference, EM) else inference


def engines():
    return ("numba", "numpy", "dask")


def classes():
    """Fits of a classifier by name."""
    from scipy.sparse import csr_array
    from sklearn.preprocessing import FunctionTransformer, SplineTransformer

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
        settings = {"inference": plain(inference), "features": "exp", "shape": shape}
        yield f"classes, exp, {name}, shape {shape}", fit(settings)
    for name, inference in inferences(("none",)).items():
        gig = {"inference": plain(inference), "features": "exp", "prior": GIG(0.5, 0.1, 1.0)}
        yield f"classes, exp, {name}, GIG", fit(gig)
        spline = {"inference": inference, "features": SplineTransformer()}
        yield f"classes, splines, {name}", fit(spline)
        found = np.where(COVARIATES > 0.5, np.round(np.abs(COVARIATES), 1), 0.0)
        X = csr_array(np.column_stack([np.ones(N), found]))
        yield (
            f"classes, sparse, {name}",
            fit({"inference": inference, "features": FunctionTransformer(accept_sparse=True)}, X),
        )
    for name, inference in inferences((), learned=True).items():
        balanced = {"inference": inference, "features": "exp", "class_weight": "balanced"}
        yield f"classes, exp, {name}, class weights", fit(balanced)
    for name in ("em", "variational"):
        yield f"classes, exp, {name}, fractions", fit({"inference": name, "features": "exp"}, sample_weight=FRACTIONS)
    for (name, inference), engine in product(inferences(("auto",), learned=True).items(), ("numba", "numpy", "dask")):
        settings = {"inference": inference, "features": few(inference), "engine": engine}
        yield f"classes, learned, {name}, {engine}", fit(settings)
        if engine == "numba":
            yield f"classes, learned, {name}, weights", fit(settings, sample_weight=FRACTIONS)
            if name != "em":
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
        settings = {"inference": inference, "ties": ties, "features": few(inference)}
        yield f"rankings, learned, {kind}, {name}", fit(settings, COVARIATES, R)
    ties, R = made["no ties"]
    for engine, (name, inference) in product(("numpy", "dask"), inferences(("none",)).items()):
        yield f"worths, {name}, {engine}", fit({"inference": inference, "engine": engine}, None, R)
    for name, inference in inferences(("auto",), learned=True).items():
        settings = {"inference": inference, "features": few(inference)}
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
        settings = {"inference": inference, "features": few(inference), "weights": weights}
        yield f"choices, learned, {weights}, {name}", fit(settings)
        yield f"choices, learned, {weights}, {name}, rankings", fit(settings, R)
    for engine, (name, inference) in product(("numpy", "dask"), inferences(("none",)).items()):
        yield f"choices, exp, {name}, {engine}", fit({"inference": inference, "features": "exp", "engine": engine})
    for name, inference in inferences(("auto",), learned=True).items():
        settings = {"inference": inference, "features": few(inference)}
        yield f"choices, learned, {name}, weights", fit(settings, sample_weight=WHOLE)
        yield f"choices, learned, {name}, groups", fit(settings, groups=GROUPS)


def partitions():
    """Fits by name of Dask collections."""
    import dask.array as da
    import dask.dataframe as dd

    from plackett import ChoiceSets, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings

    draw = np.random.default_rng(4)
    ranks = np.argsort(np.argsort(draw.gumbel(size=(N, 4)), axis=1), axis=1) + 1
    columns = ["x", "y", "z"]
    table = dd.from_pandas(pd.DataFrame(np.hstack([COVARIATES, ranks]), columns=[*columns, *ITEMS]), npartitions=3)
    long = pd.DataFrame({"trip": np.repeat(np.arange(N), 3), "by": ["bus", "car", "walk"] * N})
    long["cost"], long["age"] = draw.normal(5, 2, 3 * N), np.repeat(draw.normal(40, 10, N), 3)
    long["taken"] = (draw.gumbel(size=(N, 3)).argsort(axis=1) == 2).ravel()
    known = {"situation": "trip", "alternative": "by", "attributes": ["cost"], "person": ["age"], "choice": "taken"}
    pieces = [long.iloc[:60], long.iloc[60:]]

    def classes(settings):
        X, y = da.from_array(COVARIATES, chunks=(25, 3)), da.from_array(LABELS, chunks=25)
        return PlackettLuceClassifier(random_state=0, **settings).fit(X, y), (COVARIATES,)

    def rankings(settings):
        R = Rankings.from_ranks(table[ITEMS], unranked="last")
        return PlackettLuceRanker(random_state=0, **settings).fit(table[columns], R), (COVARIATES,)

    def choices(settings):
        X, y = ChoiceSets.read_choices(dd.from_map(lambda piece: piece, pieces, meta=long.iloc[:0]), **known)
        here, _ = ChoiceSets.read_choices(long, **known)
        return PlackettLuceChooser(random_state=0, **settings).fit(X, y), (here,)

    for kind in (classes, rankings, choices):
        for name, inference in inferences(("none",)).items():
            settings = {"inference": inference, "features": "exp", "engine": "dask"}
            yield f"{kind.__name__}, exp, {name}, dask partitions", partial(kind, settings)
        for name, inference in inferences(("auto",), learned=True).items():
            settings = {"inference": inference, "features": few(inference), "engine": "dask"}
            yield (
                f"{kind.__name__}, learned, {name}, dask partitions",
                lambda kind=kind, settings=settings: kind(settings),
            )


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
            try:
                found["intervals"] = [digest(bound) for bound in model.predict_interval(*data, prob=0.9)]
            except ValueError as error:  # a mode has none
                found["intervals"] = str(error)
        elif hasattr(model, "worth"):
            found["worth"] = digest(model.worth(prob=0.9).select_dtypes("number").to_numpy())
        return found


def checkpointed():
    """Fits by name that write a checkpoint to a path, or go on from it."""
    from plackett import ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings

    orders = Rankings.from_orders([np.random.default_rng(i).permutation(ITEMS).tolist() for i in range(N)])
    trips = pd.DataFrame({f"cost_{by}": np.random.default_rng(k).normal(5, 2, N) for k, by in enumerate("abc")})
    sets = ChoiceSets.from_wide(trips, alternatives=list("abc"), attributes=["cost"])

    def faces(inference):
        shared = {"inference": inference, "random_state": 0}
        exp, learned = {"features": "exp"}, {"features": few()}
        yield "classes, exp", PlackettLuceClassifier(**shared, **exp), (COVARIATES, LABELS), (COVARIATES,)
        yield "classes, learned", PlackettLuceClassifier(**shared, **learned), (COVARIATES, LABELS), (COVARIATES,)
        yield "worths", PlackettLuceRanker(**shared), (None, orders), ()
        yield "rankings, learned", PlackettLuceRanker(**shared, **learned), (COVARIATES, orders), (COVARIATES,)
        yield "choices, exp", PlackettLuceChooser(**shared, **exp), (sets, LABELS), (sets,)
        yield "choices, learned", PlackettLuceChooser(**shared, **learned), (sets, LABELS), (sets,)

    for place, (name, *_) in enumerate(faces(Gibbs())):

        def fit(path, place=place):
            inference = Gibbs(draws=12, tune=12, chains=2, checkpoint=str(path))
            _, model, data, asked = list(faces(inference))[place]
            return model.fit(*data), asked

        yield f"checkpoint, {name}", fit


def cut(path):
    """Leave the last record of a checkpoint out, as if the process had been killed before it."""
    from plackett.inference.checkpoint import HEADER, MAGIC

    data, places = path.read_bytes(), [len(MAGIC)]
    while places[-1] < len(data):
        places.append(places[-1] + HEADER.size + HEADER.unpack_from(data, places[-1])[0])
    path.write_bytes(data[: places[-2]])


def fits(words, folder):
    """All fits by name; those with checkpoints write them into the folder, or go on from what is there."""
    for make in (classes, rankings, choices, partitions):
        for name, fit in make():
            if all(word in name for word in words):
                yield name, fit
    for name, fit in checkpointed():
        if all(word in name for word in words):
            path = folder / f"{name}.checkpoint"
            before = path.exists()
            yield name, lambda fit=fit, path=path: fit(path)
            if not before:
                cut(path)


def timed():
    """Fits by name in which passes over many rows take most of the time."""
    from plackett import (
        EM,
        ChoiceSets,
        Gibbs,
        PlackettLuceChooser,
        PlackettLuceClassifier,
        PlackettLuceRanker,
        Rankings,
        SparseLogitClassifier,
        Variational,
    )
    from plackett.directions import LearnedDirections

    draw = np.random.default_rng(3)
    X = draw.normal(size=(60_000, 10))
    y = np.argmax(X[:, :4] + draw.gumbel(size=(60_000, 4)), axis=1)
    orders = Rankings.from_orders(np.argsort(draw.gumbel(size=(20_000, 6)) + np.arange(6) / 3, axis=1).tolist())
    trips = pd.DataFrame({f"{x}_{by}": draw.normal(5, 2, 20_000) for by in "abcd" for x in ("cost", "time")})
    sets = ChoiceSets.from_wide(trips, alternatives=list("abcd"), attributes=["cost", "time"])
    chosen = np.array(list("abcd"))[draw.integers(0, 4, 20_000)]
    em, climb, short = EM(max_iter=20, tol=0.0), EM(cv=2, max_iter=15), {"draws": 20, "tune": 10, "chains": 2}
    plain, moves = Gibbs(moves="none", **short), Gibbs(moves="exchange", **short)
    two = LearnedDirections(components=2, leapfrogs=4)
    fixed = {"em": em, "variational": Variational(max_iter=20, tol=0.0), "gibbs": plain, "moves": moves}
    for name, inference in fixed.items():
        exp = {"inference": inference, "features": "exp", "random_state": 0, "shape": 1.5 if name == "em" else "learn"}
        yield f"classes, exp, {name}", lambda exp=exp: PlackettLuceClassifier(**exp).fit(X, y)
        yield f"rankings, exp, {name}", lambda exp=exp: PlackettLuceRanker(**exp).fit(X[:5000], orders[:5000])
        yield f"choices, exp, {name}", lambda exp=exp: PlackettLuceChooser(**exp).fit(sets, chosen)
        if name != "moves":
            worths = {name: value for name, value in exp.items() if name != "features"}
            yield f"worths, {name}", lambda worths=worths: PlackettLuceRanker(**worths).fit(None, orders)
    learned = {"em": (climb, LearnedDirections(components=2)), "gibbs": (Gibbs(**short), two)}
    for name, (inference, features) in learned.items():
        how = {"inference": inference, "features": features, "random_state": 0}
        yield f"classes, learned, {name}", lambda how=how: PlackettLuceClassifier(**how).fit(X[:8000], y[:8000])
        yield f"rankings, learned, {name}", lambda how=how: PlackettLuceRanker(**how).fit(X[:2000], orders[:2000])
        yield f"choices, learned, {name}", lambda how=how: PlackettLuceChooser(**how).fit(sets[:3000], chosen[:3000])
    logit = {"draws": 20, "tune": 10, "chains": 2, "random_state": 0}
    yield "logit", lambda: SparseLogitClassifier(**logit).fit(X[:3000], y[:3000])
    model = PlackettLuceClassifier(Gibbs(**short), features=two, random_state=0)
    fitted = []

    def predict():
        if not fitted:
            fitted.append(model.fit(X[:2000], y[:2000]))
        fitted[0].predict_proba(X)

    yield "classes, learned, predictions", predict


def compute(words, folder):
    """Digests of all combinations with the package that is imported, one JSON line each."""
    for name, fit in fits(words, folder):
        print(json.dumps([name, found_by(fit)]), flush=True)


def answer_times(words):
    """Run the fit whose number comes on a line, once untimed at first, and answer with its seconds."""
    made = [(name, fit) for name, fit in timed() if all(word in name for word in words)]
    print(json.dumps([name for name, _ in made]), flush=True)
    warm = set()
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        _, fit = made[int(line)]
        if line not in warm:
            fit()
            warm.add(line)
        started = time.perf_counter()
        fit()
        print(time.perf_counter() - started, flush=True)


@contextlib.contextmanager
def package_at(commit):
    """The sources of a commit, in a folder for a while."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", "--quiet", folder, commit], check=True)
        try:
            yield Path(folder, "src")
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", folder], check=True)


def with_package(source, *arguments, **how):
    """A process that runs this file with the package of that folder."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen([sys.executable, __file__, *arguments], text=True, env=environment, **how)


def digests(source, words, folder):
    with with_package(source, "--compute", str(folder), *words, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        sys.exit(f"golden: the package at {source} ended with {process.returncode}.")


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def digests_at(commit):
    """Digests of all combinations at a commit, and the folder with its checkpoints; computed once."""
    kept = Path(ROOT, git("rev-parse", "--git-common-dir"), "golden", git("rev-parse", commit))
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}.json"
    if not file.exists():
        with package_at(commit) as source:
            found = dict(digests(source, (), kept))
        file.write_text(json.dumps(found))
    return json.loads(file.read_text()), kept


def main(commit, *words):
    """Compare; ends with 1 where anything differs."""
    before, kept = digests_at(commit)
    before = {name: found for name, found in before.items() if all(word in name for word in words)}
    different = refused = same = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in kept.glob("*.checkpoint"):
            Path(folder, path.name).write_bytes(path.read_bytes())
        for name, found in digests(ROOT / "src", words, folder):
            refused += "refused" in found
            then = before.pop(name, {})
            changed = [part for part in {**then, **found} if then.get(part) != found.get(part)]
            same += not changed
            if changed:
                different += 1
                print(f"DIFFERENT {name}: {', '.join(changed)}", flush=True)
    for name in before:
        different += 1
        print(f"MISSING {name}")
    print(f"{same} combinations are the same as at {commit} ({refused} refused in words), {different} are not.")
    return 1 if different else 0


def compare_times(commit, *words, rounds=5):
    """Seconds of each fit with the package at a commit and here, by turns, and the ratio of the medians."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        package_at(commit) as source,
        with_package(source, "--answer", *words, **pipes) as before,
        with_package(ROOT / "src", "--answer", *words, **pipes) as after,
    ):
        names, _ = (json.loads(each.stdout.readline()) for each in (before, after))
        for number, name in enumerate(names):
            seconds = {before: [], after: []}
            for _, each in product(range(rounds), (before, after)):
                print(number, file=each.stdin, flush=True)
                seconds[each].append(float(each.stdout.readline()))
            then, now = (float(np.median(taken)) for taken in seconds.values())
            spread = max(np.ptp(taken) / np.median(taken) for taken in seconds.values())
            print(f"{name:32s} {then:7.3f} s {now:7.3f} s  ratio {now / then:5.2f}  (spread {spread:.2f})", flush=True)
        for each in (before, after):
            each.stdin.close()
    return 0


if __name__ == "__main__":
    option, *rest = sys.argv[1:] or [""]
    if option == "--compute":
        compute(rest[1:], Path(rest[0]))
    elif option == "--answer":
        answer_times(rest)
    elif option == "--times" and rest:
        sys.exit(compare_times(*rest))
    elif option:
        sys.exit(main(option, *rest))
    else:
        sys.exit("usage: python tests/golden.py [--times] COMMIT [WORDS]")
