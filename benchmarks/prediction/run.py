"""Run what is missing: each (set, split, method) leaves one small file and is not run again."""

import json
import multiprocessing
import os
import signal
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from plackett.output.files import write_whole
from plackett.output.progress import progress_bar

RESULTS = Path(__file__).parents[1] / "results" / "prediction"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


def run(sets, methods, jobs, results=RESULTS, show=True):
    """Run all missing cells, `jobs` at a time with one thread each; an interrupt lets the fits under way finish."""
    missing = [cell for cell in cells(sets, methods) if not path_of(results, *cell).exists()]
    os.environ.update(ONE_THREAD)
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, spawn, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        with progress_bar(show, "prediction", len(missing)) as report:
            report(0)
            futures = [pool.submit(run_cell, *cell, results) for cell in missing]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                report(done)
    finally:
        pool.shutdown(cancel_futures=True)
    return len(missing)


def cells(sets, methods):
    """Every set, split and method: the first split of all sets, then the second, so that each round costs alike."""
    from benchmarks.prediction.sets import SETS

    return [
        (name, split, method)
        for split in range(max((SETS[name].splits for name in sets), default=0))
        for name in sets
        if split < SETS[name].splits
        for method in methods
        if not too_large(name, method)
    ]


def too_large(name, method):
    """Whether a method is not meant for a set of that size."""
    from benchmarks.prediction.methods import LARGEST, WIDEST
    from benchmarks.prediction.sets import training_shape

    if method not in LARGEST and method not in WIDEST:
        return False
    rows, columns = training_shape(name)
    return rows > LARGEST.get(method, rows) or columns > WIDEST.get(method, columns)


def path_of(results, name, split, method):
    """The file of one cell."""
    return Path(results) / name / f"{method}-{split}.json"


def run_cell(name, split, method, results):
    """Fit and score one method on one split; seconds are processor time, tuning included, compiling not."""
    from benchmarks.prediction.methods import METHODS
    from benchmarks.prediction.scores import score
    from benchmarks.prediction.sets import make_split

    data = make_split(name, split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warm_up(method)
        caught.clear()
        started = processor_seconds()
        kept = {"groups": data.groups} if method == "learned" and data.groups is not None else {}
        fitted = METHODS[method](data.folds, split).fit(data.X_train, data.y_train, **kept)
        probability = fitted.predict_proba(data.X_test)
        seconds = processor_seconds() - started
    result = {"set": name, "split": split, "method": method, "seconds": round(seconds, 3)}
    result["warnings"] = sorted({warning.category.__name__ for warning in caught})
    write(path_of(results, name, split, method), {**result, **score(probability, data.y_test)})


warmed: set[str] = set()


def warm_up(method):
    """One fit on Lenses in each process, so that no import or compilation is timed."""
    from benchmarks.prediction.methods import METHODS
    from benchmarks.prediction.sets import make_split

    if method not in warmed:
        data = make_split("lenses", 0)
        METHODS[method](data.folds, 0).fit(data.X_train, data.y_train).predict_proba(data.X_test)
        warmed.add(method)


def processor_seconds():
    """Processor time of this process, its threads and its finished children."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def write(path, content):
    """Write text, or a record as JSON."""
    write_whole(path, json.dumps(content) if path.suffix == ".json" else content)
