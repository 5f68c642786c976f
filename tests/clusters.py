"""What the tests on Dask share: a small cluster, and what counts as the same answer."""

import contextlib
import itertools
import os
import signal
import threading

import numpy as np
import pytest
from distributed import Client, LocalCluster

from plackett.cluster.held import Held


@contextlib.contextmanager
def two_workers():
    """The client of a cluster of two processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers,
        Client(workers, direct_to_workers=True) as client,
    ):
        yield client


def assert_same_answer(a, b, rtol=1e-10):
    """Of EM and the variational scheme where they end, of chains draw for draw."""
    np.testing.assert_array_equal(a.classes_, b.classes_)
    np.testing.assert_allclose(a.weights_, b.weights_, rtol=0, atol=rtol)
    assert a.shape_ == pytest.approx(b.shape_, rel=1e-8)  # settled to the tolerance of its climb
    if a.trace_.ndim == 1:
        assert a.trace_[-1] == pytest.approx(b.trace_[-1], rel=rtol)
    else:
        np.testing.assert_allclose(a.trace_, b.trace_, rtol=rtol)
        np.testing.assert_allclose(a.posterior_.log_weights, b.posterior_.log_weights, rtol=rtol)
        np.testing.assert_allclose(a.posterior_.shape, b.posterior_.shape, rtol=rtol)


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
