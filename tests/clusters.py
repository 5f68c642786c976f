"""What the tests on Dask share: a small cluster, and what counts as the same answer."""

import contextlib
import itertools
import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from plackett import Variational
from plackett.cluster.held import Held


@contextlib.contextmanager
def two_workers():
    """The client of a cluster of two processes."""
    workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    try:
        with Client(workers, direct_to_workers=True) as client:
            yield client
    finally:
        with contextlib.suppress(KeyError):  # under load Dask may hear that a worker is gone before it knows of it
            workers.close()


def quiet(model, *data, **more):
    """The model, fitted without the warnings that short chains give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **more)


# A climb that learns the shape ends within a small multiple of its tolerance of the fixed point, wherever rounding
# leads it on the way.
SETTLED, NEAR = Variational(tol=1e-11), 1e-8


def assert_same_answer(a, b, rtol=1e-10):
    """Of EM and the variational scheme where they end, of chains draw for draw."""
    for name in ("classes_", "items_"):
        np.testing.assert_array_equal(getattr(a, name, None), getattr(b, name, None))
    np.testing.assert_allclose(a.weights_, b.weights_, rtol=0, atol=rtol)
    assert a.shape_ == pytest.approx(b.shape_, rel=1e-8)  # settled to the tolerance of its climb
    if a.trace_.ndim == 1:
        assert a.trace_[-1] == pytest.approx(b.trace_[-1], rel=rtol)
    else:
        np.testing.assert_allclose(a.trace_, b.trace_, rtol=rtol)
        drawn, again = (getattr(each.posterior_, "of_weights", each.posterior_) for each in (a, b))
        np.testing.assert_allclose(drawn.log_weights, again.log_weights, rtol=rtol)
        np.testing.assert_allclose(drawn.shape, again.shape, rtol=rtol)


def assert_same_summary(a, b):
    """Numbers that agree but for rounding, which may carry the last decimal that is shown, and with it the order.

    Without R-hat and ESS, which compare ranks: the two draws in the middle are equally far from their median, and
    which of them is ranked as farther turns on the last bit.
    """
    labels = [name for name in a.columns if a[name].dtype == object or a[name].dtype.name in ("str", "string")]
    a, b = (frame.drop(columns=["ess", "rhat"], errors="ignore").set_index(labels).sort_index() for frame in (a, b))
    pd.testing.assert_index_equal(a.index, b.index)
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=1.01 * (0.01 if name == "active" else 0.001))


def wait_until(condition, patience=600):
    """Wait for what is sure to come on any machine, however slow; the limit is for a test that fails."""
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, f"nothing came in {patience} seconds"
        time.sleep(0.01)


class Kills:
    """Kills a worker a moment after the first question, the tenth and so on."""

    def __init__(self, monkeypatch, client, moments):
        self.done, each, numbers, workers = 0, Held.each, itertools.count(), len(client.ncores())

        def asking(held, *question, **own):
            if next(numbers) in moments:  # chains ask side by side
                self.done += 1
                client.wait_for_workers(workers)  # who come back where all are lost are not given what others had
                pids = client.run(os.getpid)
                threading.Timer(0.002, os.kill, (next(iter(pids.values())), signal.SIGKILL)).start()
            return each(held, *question, **own)

        monkeypatch.setattr(Held, "each", asking)
