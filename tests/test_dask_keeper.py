"""Questions to the workers: past their tasks, directly or through the scheduler, while they stay awake."""

import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client

from clusters import two_workers, wait_until
from plackett.cluster import keeper
from plackett.cluster.dask_private import worker_here
from plackett.cluster.held import made, shared_out
from plackett.cluster.keeper import LARGE
from plackett.cluster.storage import Block


class Numbers(Block):
    def __init__(self, number):
        self.number = number


def added(block, array, more=0):
    return array + block.number + more


def failed(block):
    raise OSError(f"no such file on {block.number}")


def waited(block, folder):
    """Waits until there is a file `go` in the folder, having left one of its own there."""
    (folder / str(os.getpid())).touch()
    wait_until((folder / "go").exists)
    return threading.get_ident() == worker_here().thread_id


def on_loop(block, seconds=0.0):
    """Takes so many seconds by the clock of the fixture `clock`."""
    keeper.time.now += seconds
    return threading.get_ident() == worker_here().thread_id


def named(block):
    """What the profile of the dashboard says of this thread."""
    return worker_here().active_threads[threading.get_ident()]


def under_way():
    return max(kept.under_way for kept in keeper._keepers.values())


def forget():
    """How long answers took."""
    for kept in keeper._keepers.values():
        kept.took.pop(waited, None)


def known():
    return len(keeper._keepers), len(worker_here().active_threads)


@pytest.fixture(scope="module", params=[True, False], ids=["direct", "through the scheduler"])
def held(request):
    with two_workers() as cluster, Client(cluster.scheduler.address, direct_to_workers=request.param) as client:
        yield made(client, "numbers", Numbers, ((number,) for number in range(3)), 3)


@pytest.mark.brief(3)
@pytest.mark.parametrize("size", [3, LARGE // 8 - 100, LARGE])
def test_arrays_of_any_size_go_there_and_back(held, size):
    array = np.arange(float(size))
    for number, found in enumerate(held.each(added, array)):
        np.testing.assert_array_equal(found, array + number)
    for number, found in enumerate(held.each(added, array, own=[10, 20, 30])):
        np.testing.assert_array_equal(found, array + number + 10 * (number + 1))


def test_an_error_of_a_question_is_none_of_the_cluster(held):
    """Also one that a lost connection could have given: nobody asks again."""
    keepers = held.keepers
    with pytest.raises(OSError, match="no such file on"):
        held.each(failed)
    assert held.each(added, 1.0) == [1.0, 2.0, 3.0]
    assert held.keepers is keepers


@contextlib.contextmanager
def waiting(held, folder):
    """All workers, while they are about to answer, and not on their loops: they know nothing of an earlier answer."""
    held.client.run(forget)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(held.each, waited, folder)
        try:
            wait_until(lambda: len(list(folder.iterdir())) == len(held.client.ncores()))
            yield asked, pool
        finally:
            (folder / "go").touch()


def test_workers_stay_awake_while_they_answer(held, tmp_path):
    with waiting(held, tmp_path) as (asked, _):
        held.client.run(known)
        assert not asked.done()
    assert not any(asked.result())


@pytest.fixture
def clock(held):
    """Workers in whose time only `on_loop` takes any."""
    held.client.run(set_clock, SimpleNamespace)
    yield
    held.client.run(set_clock, None)


def set_clock(kind):
    keeper.time = time if kind is None else kind(now=0.0, perf_counter=lambda: keeper.time.now)


@pytest.mark.usefixtures("clock")
def test_what_took_little_time_is_answered_at_once(held):
    """On the loop, until it takes longer."""
    found = [held.each(on_loop, seconds) for seconds in (0.0, 0.6, 0.6, 0.0, 0.0)]
    assert [all(each) for each in found] == [any(each) for each in found] == [False, True, False, False, True]


@pytest.mark.usefixtures("clock")
def test_an_answer_under_way_is_waited_for_elsewhere(held, tmp_path):
    held.each(on_loop)
    with waiting(held, tmp_path) as (_, pool):
        brief = pool.submit(held.each, on_loop)
        wait_until(lambda: brief.done() or min(held.client.run(under_way).values()) == 2)
    assert not any(brief.result())


def test_threads_ask_side_by_side(held):
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda number: held.each(added, number), range(40))
    assert list(found) == [[number, number + 1, number + 2] for number in range(40)]


def test_the_dashboard_names_what_runs(held):
    assert all(name.startswith("plackett-keeper-tcp") for name in held.each(named))


def test_keepers_go_with_their_blocks(held):
    client = held.client
    more = made(client, "more", Numbers, ((number,) for number in range(2)), 2)
    before = client.run(known)
    assert more.each(added, 1.0) == [1.0, 2.0]
    assert client.run(known) == {worker: (kept + 1, 0) for worker, (kept, _) in before.items()}
    del more
    wait_until(lambda: client.run(known) == before)  # Dask has let them go


def test_blocks_are_shared_out_by_threads_and_in_turn():
    assert "".join(shared_out({"b": 1, "a": 1}, 8)) == "abababab"
    assert "".join(shared_out({"a": 4, "b": 4, "c": 4}, 2)) == "ab"
    for count in (1, 5, 12, 131):
        found = shared_out({"a": 1, "b": 3, "c": 8}, count)
        assert len(found) == count
        for worker, threads in {"a": 1, "b": 3, "c": 8}.items():
            for begun in range(count + 1):
                assert abs(found[:begun].count(worker) - begun * threads / 12) <= 1
