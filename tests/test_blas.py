"""BLAS has one thread inside fits, and what it had before and after."""

import importlib
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from plackett import EM, Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational, regularization_path
from plackett.compute.blas import one_blas_thread

SHORT = {"draws": 8, "tune": 8, "chains": 2}


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def three():
    with threadpool_limits(3, user_api="blas"):
        yield
        assert blas_threads() == {3}


@pytest.mark.brief("learned", "gibbs", "variational", "logit", "path")
@pytest.mark.parametrize(
    "fit, somewhere",
    [
        (PlackettLuceClassifier(Gibbs(**SHORT)).fit, "directions.class_task.class_start"),
        (PlackettLuceClassifier("em").fit, "directions.class_task.class_start"),
        (PlackettLuceClassifier(Gibbs(**SHORT), features="exp").fit, "inference.gibbs.tabulate"),
        (PlackettLuceClassifier(Variational(draws=8), features="exp").fit, "inference.variational.approximation"),
        (PlackettLuceClassifier(EM(shapes=(1.0,)), features="exp").fit, "inference.em.maximise_on_simplex"),
        (SparseLogitClassifier(**SHORT).fit, "logit.samplers.start"),
        (lambda X, y: regularization_path(X, y, shapes=(1.0, 0.5)), "inference.em.maximise_on_simplex"),
    ],
    ids=["learned", "learned em", "gibbs", "variational", "em", "logit", "path"],
)
def test_one_thread_inside_a_fit(three, quiet, monkeypatch, fit, somewhere):
    module, name = f"plackett.{somewhere}".rsplit(".", 1)
    module = importlib.import_module(module)
    real, seen = getattr(module, name), set()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))

    def watched(*args, **kwargs):
        seen.update(blas_threads())
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, watched)
    fit(X, (X[:, 0] + rng.normal(size=40) > 0).astype(int))
    assert seen == {1}


def test_fits_at_a_time_leave_the_threads_as_they_were():
    before, inside, leave = blas_threads(), threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        inside.wait()
        assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before
    inside.clear()
    leave.clear()
    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with one_blas_thread():
        leave.set()
        thread.join()
    assert blas_threads() == before
    with one_blas_thread():
        assert blas_threads() == {1}
