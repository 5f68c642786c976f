"""Shared data and fixtures, which tests run when, and what is printed at the end of a run."""

import ctypes
import gc
import os
import resource
import shutil
import signal
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy: without it scikit-learn skips a check

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from plackett.data.observations import Observations, Situations
from plackett.engines.factory import make_engine
from plackett.features import ExpFeatures
from plackett.output.arviz import arviz_for
from plackett.responses import Outcomes

if find_spec("arviz"):  # a machine with a GPU may be without
    with arviz_for("the test suite"):
        pass  # imported here first: its daily warning is dropped, and its stamp in the home folder has one writer

collect_ignore = ["consumer"]  # programs of a user, for tests/distributions.py
BROWSER = ("chromium", "chromedriver")
LEFT_OUT = pytest.StashKey[int]()
MEMORY = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[LEFT_OUT] = 0
    config.stash[MEMORY] = []
    if config.option.durations is None:
        config.option.durations, config.option.durations_min = 15, 1.0


def _mark_long_cases(items):
    """Leave cases of tests that are marked `brief` to `make test-all`.

    `brief("a", "b")` keeps those whose names contain one of these, `brief(3)` three that are spread over all cases.
    """
    cases = {}
    for item in items:
        brief = item.get_closest_marker("brief")
        if brief and not item.get_closest_marker("slow"):
            cases.setdefault((item.parent.nodeid, item.originalname, brief.args), []).append(item)
    for (*_, kept), found in cases.items():
        if isinstance(kept[0], int):
            short = {found[i * len(found) // kept[0]] for i in range(min(kept[0], len(found)))}
        else:
            short = {item for item in found if any(name in item.callspec.id for name in kept)}
        assert short, f"brief{kept} keeps no case of {found[0].nodeid}"
        for item in found:
            if item not in short:
                item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Mark cases as long before -m selects; then leave out the tests that need a browser where there is none."""
    _mark_long_cases(items)
    yield
    if all(shutil.which(name) for name in BROWSER):
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    items[:] = [item for item in items if not item.get_closest_marker("browser")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)


def _peak_memory():
    """Largest resident memory of this process in GB; macOS counts bytes, Linux kilobytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e9 if sys.platform == "darwin" else 1e6)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]
        session.config.workeroutput["memory"] = _peak_memory()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """A worker of pytest-xdist is done: each of them has collected all tests."""
    if hasattr(node, "workeroutput"):  # it did not crash
        node.config.stash[LEFT_OUT] = node.workeroutput["left_out"]
        node.config.stash[MEMORY].append(node.workeroutput["memory"])


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[LEFT_OUT]:
        terminalreporter.write_line(
            f"Left out: {config.stash[LEFT_OUT]} tests of the report in a browser, for want of {' and '.join(BROWSER)} "
            "(apt-get install chromium chromium-driver)."
        )
    peaks = config.stash[MEMORY] or [_peak_memory()]
    terminalreporter.write_line(f"Largest memory of each process: {', '.join(f'{peak:.2f} GB' for peak in peaks)}.")


def _memory():
    """Resident memory of this process in bytes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@pytest.fixture(scope="module", autouse=True)
def give_memory_back():
    """Collect garbage after modules that leave much of it, and return freed memory to the system.

    Compiling leaves cycles of objects, and the C library keeps freed pages for itself.
    """
    before = _memory()
    yield
    if _memory() - before > 50e6:
        gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc's
    if trim:
        trim(0)


@pytest.fixture(scope="module")
def client():
    """Of a Dask cluster of two processes."""
    from clusters import two_workers

    with two_workers() as client:
        yield client


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def folder():
    """The folder with the sets that do not come with the package, for tests marked ``data``."""
    named = os.environ.get("PLACKETT_DATA")
    if not named:
        pytest.fail("set PLACKETT_DATA to the folder that holds the data sets, as make test-data does")
    return Path(named)


@pytest.fixture
def quiet():
    """For fits that are short on purpose: the advice about mixing is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|trusted|draws a chain).*")
        yield


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, here and in processes started from here.

    A shell starts its background jobs with SIGINT ignored, and what a process ignores its children ignore too.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Seconds:
    """Stands in for the module `time`: an iteration of the chains takes `iteration` seconds, nothing else takes any.

    Reading the clock takes `reading` seconds, for tests in which time is up before there are chains.
    """

    def __init__(self):
        self.now, self.iteration, self.reading = 0.0, 0.01, 0.0

    def perf_counter(self):
        self.now += self.reading
        return self.now


@pytest.fixture
def seconds(monkeypatch):
    """Limits of time that do not depend on how fast the machine is; chains go on for at most 20 iterations beyond."""
    from plackett.inference import driver, limits

    seconds, advance = Seconds(), driver.Run._round

    def timed(run, pool, n):
        advance(run, pool, n)
        seconds.now += n * seconds.iteration

    monkeypatch.setattr(limits, "time", seconds)
    monkeypatch.setattr(driver, "time", seconds)
    monkeypatch.setattr(driver.Run, "_round", timed)
    return seconds


def small_problem(n=40, d=3, n_classes=3, seed=0):
    """Features, codes and weights of a small random problem."""
    rng = np.random.default_rng(seed)
    W = ExpFeatures().fit_transform(rng.normal(size=(n, d)))
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return W, codes, np.log(rng.gamma(0.5, size=(n_classes, W.shape[1])))


def class_situations(codes, n_classes, weight=None):
    """Classes as choices among all K: what the engines' fast path does, in the general form."""
    group = (codes[:, None] + np.arange(n_classes)) % n_classes  # the class first, then the others
    outcomes = Outcomes.choices(np.full(len(codes), n_classes), weight)
    return Situations(outcomes, group.ravel(), np.repeat(np.arange(len(codes)), n_classes))


def class_rows(engine, W, codes, n_classes, weight=None):
    """Rows of classes on the engine of that name."""
    return make_engine(engine).rows(W, Observations.of_classes(codes, n_classes, weight))


def class_gradient(engine, X, codes, weight, dtype=np.float64):
    """Covariates of classes on the engine of that name."""
    return make_engine(engine).gradient(X, Observations.of_classes(codes, codes.max() + 1, weight), dtype)


def situation_rows(engine, W, situations, response, n_groups):
    """Situations on the engine of that name."""
    return make_engine(engine).rows(W, Observations.of_situations(situations, response, n_groups))


def plain_rows(engine, outcomes, item, response, n_items):
    """Rankings without covariates on the engine of that name."""
    return make_engine(engine).rows(None, Observations.of_rankings(outcomes, item, response, n_items))
