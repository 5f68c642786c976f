"""Workers that are killed change nothing but the time; a scheduler that is lost is told of, and chains go on."""

import os
import signal
import socket
import subprocess
import sys
import threading

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from clusters import Kills, quiet
from plackett import Gibbs, PlackettLuceClassifier, Variational
from plackett.cluster import blocks
from plackett.cluster.client import ClusterError, check_workers, versions
from plackett.cluster.held import Held
from plackett.cluster.keeper import Keeper

rng = np.random.default_rng(2)
X = rng.normal(size=(1000, 3))
Y = (X[:, 0] + rng.normal(size=1000) > 0).astype(int) + (X[:, 1] > 1)
QUICK = Variational(tol=1e-4)
SHORT = {"draws": 15, "tune": 10, "chains": 2, "moves": "none"}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as workers,
        Client(workers, direct_to_workers=True) as client,
    ):
        yield client


def fitted(inference, table, y=Y):
    clf = PlackettLuceClassifier(inference, shape=0.3, features="exp", engine="dask", random_state=0)
    return quiet(clf, table, y)


def everything(clf):
    return {name: value for name, value in vars(clf.posterior_).items() if value is not None} | {"trace": clf.trace_}


def assert_equal(a, b):
    for name, value in everything(a).items():
        np.testing.assert_array_equal(value, everything(b)[name])


def kill_one(client):
    """By a signal that nothing can catch; the process that watches over it starts another."""
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


@pytest.mark.brief(1)
@pytest.mark.parametrize(
    ("inference", "moments"), [(QUICK, [12]), (Gibbs(**SHORT), [6, 20])], ids=["variational", "gibbs, twice"]
)
def test_workers_killed_among_passes(client, monkeypatch, inference, moments):
    far = da.from_array(X, chunks=(150, 3))
    calm = fitted(inference, far)
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, moments)
        assert_equal(calm, fitted(inference, far))
        assert kills.done == len(moments)


def test_a_worker_killed_in_preparation(client, monkeypatch):
    far = da.from_array(X, chunks=(150, 3))
    calm, made, names = fitted(QUICK, far), blocks.made, []

    def making(client, name, *rest):
        held = made(client, name, *rest)
        names.append(name)
        kill_one(client)
        return held

    monkeypatch.setattr(blocks, "made", making)
    assert_equal(calm, fitted(QUICK, far))
    assert names == ["block"]


@pytest.mark.long
def test_all_workers_killed_at_once(client, monkeypatch):
    """While they are about to answer for their blocks: Dask would give new workers only what was meant for them."""
    far = da.from_array(X, chunks=(150, 3))
    calm, submit, place, placings, killed = fitted(QUICK, far), client.submit, Held._place_keepers, [], set()

    def placing(held):
        placings.append(held)
        place(held)

    def submitting(make, *rest, **settings):
        if make is Keeper and len(killed) < 2 and len(placings) not in killed:  # twice, each time at a first keeper
            killed.add(len(placings))
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
        return submit(make, *rest, **settings)

    monkeypatch.setattr(Held, "_place_keepers", placing)
    monkeypatch.setattr(client, "submit", submitting)
    assert_equal(calm, fitted(QUICK, far))
    assert len(killed) == 2


def test_rows_of_an_array_survive_too(client, monkeypatch):
    monkeypatch.setattr("plackett.engines.dask.ENTRIES", 1000)
    calm = fitted(QUICK, X)
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, [5])
        assert_equal(calm, fitted(QUICK, X))
        assert kills.done == 1


class Away:
    """A scheduler and a worker in processes of their own."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        port = self.address.rsplit(":", 1)[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        scheduler = "from distributed.cli.dask_scheduler import main; main()"
        worker = "from distributed.cli.dask_worker import main; main()"
        start = [sys.executable, "-c"]
        self.scheduler = subprocess.Popen(
            [*start, scheduler, "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--dashboard-address", ":0"],
            **quiet,
        )
        self.worker = subprocess.Popen(
            [*start, worker, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"],
            **quiet,
        )
        return self

    def __exit__(self, *_):
        for process in (self.scheduler, self.worker):
            process.kill()
            process.wait()


@pytest.mark.long
def test_a_scheduler_that_is_lost_is_told_of_and_the_chains_go_on(tmp_path, monkeypatch):
    far, path = da.from_array(X, chunks=(300, 3)), tmp_path / "chains"
    with Away() as away, Client(away.address, timeout=60):
        calm = fitted(Gibbs(**SHORT), far)
    with Away() as away, Client(away.address, timeout=60):
        each, asked = Held.each, []

        def asking(held, *question, **own):
            asked.append(question)
            if len(asked) == 40:
                away.scheduler.kill()
                away.scheduler.wait()
            return each(held, *question, **own)

        with monkeypatch.context() as patch, pytest.raises(ClusterError, match="was lost, and with it the rows"):
            patch.setattr(Held, "each", asking)
            fitted(Gibbs(**SHORT, checkpoint=path), far)
    assert path.stat().st_size > 0
    with Away() as away, Client(away.address, timeout=60):
        assert_equal(calm, fitted(Gibbs(**SHORT, checkpoint=path), far))


@pytest.mark.long
def test_a_fit_waits_for_the_first_worker_but_not_for_ever(monkeypatch):
    with LocalCluster(n_workers=0, dashboard_address=None) as workers, Client(workers, set_as_default=True):
        monkeypatch.setattr("plackett.cluster.client.PATIENCE", 0.2)
        with pytest.raises(ClusterError, match="has had no worker for"):
            fitted(QUICK, X)
        monkeypatch.setattr("plackett.cluster.client.PATIENCE", 3600)
        threading.Timer(0.5, workers.scale, (1,)).start()
        assert len(fitted(QUICK, X).classes_) == 3


class Told:
    """A client whose workers say this of their versions."""

    scheduler = None

    def __init__(self, *found):
        self.found = dict(enumerate(found))

    def run(self, function, on_error):
        return {f"worker {i}": found for i, found in self.found.items()}


def test_workers_are_asked_for_their_versions_and_one_that_is_lost_meanwhile_is_let_go():
    check_workers(Told(versions(), OSError("stream is closed"), versions()))
    with pytest.raises(ClusterError, match="lack plackett .no module named"):
        check_workers(Told(versions(), ImportError("no module named plackett")))
    with pytest.raises(ClusterError, match=r"worker 1 has NumPy 1\.0, and here it is"):
        check_workers(Told(OSError(), versions() | {"NumPy": "1.0"}))
    with pytest.raises(ZeroDivisionError):
        check_workers(Told(ZeroDivisionError()))
