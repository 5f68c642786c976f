"""What can be said of the GPU engine without a GPU: where rows lie, what lies between products, and what is refused.

The kernels themselves are compared with the reference by ``make test-gpu``.
"""

import contextlib
import itertools
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import class_gradient, class_rows, small_problem
from plackett import (
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
)
from plackett.capabilities import check
from plackett.data.observations import Observations, Situations
from plackett.directions import Gates, LearnedDirections
from plackett.directions.centred import centred, log_spread, parts_of, uncentred
from plackett.directions.climbs import climb_together
from plackett.directions.density import density_of
from plackett.directions.flights import POOR, _walk, renew
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import size as prior_size
from plackett.directions.situation_task import make_situation_task
from plackett.directions.stacking import mixture_likelihood, mixture_on_gpu
from plackett.directions.walk import FlyingTogether, make_sampler
from plackett.engines import device, factory
from plackett.engines.cupy_directions import class_sums, mean_votes, plan_gradient, split_sums, votes_and_totals
from plackett.engines.cupy_situations import CupySituations, by_place
from plackett.engines.factory import make_engine
from plackett.engines.numba import CompiledSituations
from plackett.engines.tiles import EXPECT, LANES, SAMPLE, VALUE, blocks_of, lay_out, plan_pass
from plackett.features.gates_on_gpu import GatesOnGpu, mixed
from plackett.inference.driver import Chain, Source
from plackett.inference.hmc import DOUBTED, Flight, begin, leap, push, walk_on, windows
from plackett.inference.paper_sampler import sweeps_of_any_engine, sweeps_together
from plackett.inference.sweeps import State, Target
from plackett.model.mixture import probabilities
from plackett.posterior.directions import DirectionDraws
from plackett.priors import GIG, LogUniform, tabulate
from plackett.responses import Outcomes, make_response

CHIPS = (99 << 10, 163 << 10, 227 << 10)  # bytes of shared memory of a block, on cards of 2020 to 2024


def place(j, lane):
    """`place` of race.cu."""
    return j * LANES + (lane ^ ((j & 7) << 2))


@pytest.mark.parametrize("p", [1, 7, 8, 33])
def test_every_entry_is_where_the_kernel_looks_for_it(p):
    rows = np.arange(96.0 * p).reshape(96, p)
    tiles = lay_out(rows).reshape(3, -1)
    for row, j in np.ndindex(96, p):
        assert tiles[row // LANES, place(j, row % LANES)] == rows[row, j]


@pytest.mark.parametrize("p", [8, 40])
def test_both_ways_through_a_tile_meet_every_bank(p):
    """32 rows of a feature, and four rows of eight features at a time, lie in 32 different banks."""
    for j in range(p):
        assert len({place(j, lane) % 32 for lane in range(LANES)}) == 32
    for first in range(0, p, 8):
        for four in range(8):
            banks = {(place(j, 4 * four) + i) % 32 for j in range(first, first + 8) for i in range(4)}
            assert len(banks) == 32


def in_unit(bits):
    """`in_unit` of draws.cu, in floats."""
    high, low = (bits >> np.uint64(32)).astype(np.float32), ((bits & np.uint64(0xFFFFFFFF)) >> np.uint64(12))
    return high * np.float32(2**-32) + (low.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-52)


def minus_log(bits):
    """`minus_log` of draws.cu, in floats."""
    u = in_unit(bits).view(np.int32)
    e = (u - np.int32(0x3F3504F3)) >> np.int32(23)
    f = np.where(e < 0, (u - (e << np.int32(23))).view(np.float32) - np.float32(1), -in_unit(~bits))
    y = np.float32(7.0376836292e-2)
    for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
              2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1):  # fmt: skip
        y = y * f + np.float32(c)
    y = y * f * (f * f) - np.float32(2.12194440e-4) * e.astype(np.float32) - np.float32(0.5) * (f * f)
    return -(f + y + np.float32(0.693359375) * e.astype(np.float32))


def test_random_numbers_in_floats_are_those_of_the_reference():
    """Also where u or 1 − u is 1e-15, which a float of u would not tell from 0 or 1."""
    rng = np.random.default_rng(0)
    bits = rng.integers(2**64, size=200_000, dtype=np.uint64)
    bits = np.concatenate([bits, bits >> rng.integers(52, size=len(bits), dtype=np.uint64)])
    bits = np.concatenate([bits, ~bits])
    upper = (bits >> np.uint64(12)).astype(np.float64)
    exact, rest = (upper + 0.5) * 2.0**-52, (2.0**52 - upper - 0.5) * 2.0**-52
    np.testing.assert_allclose(in_unit(bits), exact, rtol=2e-7)
    np.testing.assert_allclose(minus_log(bits), np.where(exact < 0.5, -np.log(exact), -np.log1p(-rest)), rtol=5e-7)


def product_of(ratios):
    """`multiply` of race.cu: ln of a product that neither overflows nor vanishes."""
    part, power = np.float32(1), 0
    for ratio in ratios:
        bits = (part * ratio).view(np.int32)
        power += (int(bits) >> 23) - 127
        part = np.int32((int(bits) & 0x7FFFFF) | 0x3F800000).view(np.float32)
    return np.log(float(part)) + power * np.log(2.0)


def test_logarithms_of_many_rows_are_one_of_their_product():
    ratios = np.exp(np.random.default_rng(0).normal(size=1000) * 10 - 10).astype(np.float32)
    assert product_of(ratios) == pytest.approx(np.log(ratios.astype(float)).sum(), rel=1e-6)


def test_blocks_cover_every_row_once():
    counts = np.array([10_000, 0, 1, 4096, 33])
    blocks = blocks_of(counts, 4096)
    ends = np.cumsum(counts)
    tiles = np.cumsum([0, *-(-counts // LANES)])
    seen = []
    for b, k in enumerate(blocks.label.tolist()):
        start = int(blocks.first_row[b])
        seen += range(start, start + int(blocks.n_rows[b]))
        assert ends[k] - counts[k] <= start and start + blocks.n_rows[b] <= ends[k]
        assert blocks.first_tile[b] - tiles[k] == (start - (ends[k] - counts[k])) // LANES
        assert blocks.first_block[k] <= b < blocks.first_block[k + 1]
    assert seen == list(range(counts.sum()))


@pytest.mark.parametrize("most", CHIPS)
def test_plans_stay_within_the_chip(most):
    for p in [*range(1, 130), 200, 400, 800, 1600]:
        for mode, chains, size in itertools.product((VALUE, EXPECT, SAMPLE), range(1, 5), (4, 8)):
            plan = plan_pass(mode, p, chains, size, most)
            if plan is not None:
                assert plan.LEAST_BLOCKS * (plan.chip + 1024) <= most + 1024 and plan.HOLD * p * size <= 512
        assert plan_pass(SAMPLE, p, 1, 4, most) is not None
    assert plan_pass(SAMPLE, 100_000, 1, 4, most) is None


@pytest.mark.parametrize("most", CHIPS)
def test_plans_of_a_gradient_cover_every_column_and_component(most):
    for d in [1, 3, 4, 5, 12, 20, 50, 90]:
        for M in [2, 6, 16, 40, 48]:
            for C in range(1, 5):
                plan = plan_gradient(d, M, C, most)
                if plan is None:
                    continue
                assert plan.chip <= most and d <= plan.DPAD and plan.DPAD % 8 == 4 and plan.M >= M and plan.M % 4 == 0
                squares = -(-plan.DPAD // (4 * plan.TF)) * -(-C * plan.M // (4 * plan.TM))
                assert plan.WARPS % C == 0 and plan.SPLIT >= 1 and squares * plan.SPLIT <= 32 * plan.WARPS
    assert plan_gradient(20, 16, 4, most) is not None
    assert plan_gradient(20, 100, 4, most) is None


@pytest.mark.parametrize("n_chains", [1, 3])
def test_sums_by_class_make_the_gradient_of_the_reference(n_chains):
    rng = np.random.default_rng(0)
    n, d, K, M = 200, 4, 3, 5
    X, codes, weight = rng.normal(size=(n, d)), rng.integers(K, size=n), rng.gamma(1.0, size=n)
    beta, log_weights = rng.normal(size=(n_chains, M, d)), 3 * rng.normal(size=(n_chains, K, M))
    votes, log_total = votes_and_totals(log_weights, -100.0)
    by_class = [class_sums(X[codes == k], weight[codes == k, None], beta, votes[:, k], log_total) for k in range(K)]
    sums = np.array([np.concatenate([each.ravel() for each in found]) for found in by_class])
    slopes, wins, gates, value = split_sums(sums, n_chains, M, d)
    reference = class_gradient("numpy", X, codes, weight)
    for c in range(n_chains):
        want = reference.gradient(beta[c], log_weights[c])
        assert value[:, c].sum() == pytest.approx(want.value)
        np.testing.assert_allclose(slopes[:, c].sum(axis=0), want.directions, atol=1e-10)
        in_log_weights = votes[c] * (wins[:, c] - gates[:, c].sum(axis=0))
        np.testing.assert_allclose(in_log_weights, want.log_weights, atol=1e-10)


def test_averages_of_probabilities_are_those_of_every_draw():
    rng = np.random.default_rng(0)
    draws = DirectionDraws(rng.normal(size=(2, 7, 6, 4)), 3 * rng.normal(size=(2, 7, 3, 6)), np.ones((2, 7, 4)))
    Z = rng.normal(size=(5000, 4))
    want = probabilities(draws, Z).mean(axis=(0, 1))
    directions, log_weights = draws.directions.reshape(14, 6, 4), draws.log_weights.reshape(14, 3, 6)
    np.testing.assert_allclose(mean_votes(Z, directions, log_weights), want, rtol=1e-12)


def test_what_a_mixture_tells_is_that_of_the_processor():
    rng = np.random.default_rng(0)
    mode, average = rng.dirichlet(np.full(3, 0.2), size=(2, 500))
    mode[0], average[0] = [1, 0, 0], [0, 1, 0]
    codes, weight = rng.integers(3, size=500), rng.gamma(1.0, size=500)
    ours, want = mixture_on_gpu(mode, average, codes, weight, np), mixture_likelihood(mode, average, codes, weight)
    for w, kappa in [(0.5, 1.0), (0.01, 2.0), (1.0, 0.3)]:
        assert ours(w, kappa) == pytest.approx(want(w, kappa), rel=1e-12)


def test_votes_of_rare_classes_stay_positive():
    votes, log_total = votes_and_totals(np.array([[[0.0, -300.0], [-200.0, 0.0]]]), -50.0)
    np.testing.assert_allclose(votes[0], [[1, np.exp(-50)], [np.exp(-50), 1]], rtol=1e-12)
    np.testing.assert_allclose(log_total, 0.0, atol=1e-12)


class FakeError(RuntimeError):
    pass


def fake_cupy(count, capability="90"):
    """As much of CuPy as is asked whether there is a GPU."""

    def getDeviceCount():
        if count is None:
            raise FakeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return count

    runtime = types.SimpleNamespace(getDeviceCount=getDeviceCount, CUDARuntimeError=FakeError)
    cuda = types.SimpleNamespace(runtime=runtime, Device=lambda: types.SimpleNamespace(compute_capability=capability))
    return types.SimpleNamespace(cuda=cuda, count=count, capability=capability)


@pytest.mark.parametrize(
    ("cupy", "error", "words"),
    [
        (None, ImportError, r"needs CuPy, which is not installed: pip install 'plackett\[cuda\]'.*engine='auto'"),
        (fake_cupy(0), RuntimeError, "needs an NVIDIA GPU, and CuPy sees none.*engine='auto'"),
        (fake_cupy(None), RuntimeError, "needs an NVIDIA GPU, and CUDA says: .*driver version is insufficient"),
        (fake_cupy(1, "75"), RuntimeError, "compute capability 8.0 or later .* this one has 7.5"),
    ],
)
def test_what_is_missing_is_said(monkeypatch, cupy, error, words):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(device, "gpu", device.gpu.__wrapped__)
    monkeypatch.setattr("plackett.engines.cupy.gpu", device.gpu)
    with pytest.raises(error, match=words):
        make_engine("cupy")
    with pytest.raises(error, match=words):
        PlackettLuceClassifier(engine="cupy").fit(np.eye(4), [0, 1, 0, 1])


def test_auto_takes_a_gpu_where_it_gains(monkeypatch):
    monkeypatch.setattr(device, "present", lambda: True)
    monkeypatch.setattr(device, "free_bytes", lambda: 1000)
    assert device.chosen_engine("auto", True, 500) == "cupy"
    assert device.chosen_engine("auto", True, 501) == "auto"
    assert device.chosen_engine("auto", False, 500) == "auto"
    assert device.chosen_engine("numba", True, 500) == "numba"
    monkeypatch.setattr(device, "present", lambda: False)
    assert device.chosen_engine("auto", True, 500) == "auto"


@pytest.mark.parametrize("there", [None, fake_cupy(0), fake_cupy(1, "75"), fake_cupy(1)])
def test_whether_there_is_a_gpu_to_take(monkeypatch, there):
    monkeypatch.setitem(sys.modules, "cupy", there)
    monkeypatch.setattr(device, "gpu", device.gpu.__wrapped__)
    monkeypatch.setattr(device, "find_spec", lambda name: there)
    assert device.present.__wrapped__() == (there is not None and there.count == 1 and there.capability == "90")


class Refused(Exception):
    pass


@pytest.mark.parametrize(
    ("engine", "settings", "taken"),
    [
        ("auto", {}, [True]),
        ("numba", {}, [False]),
        ("auto", {"features": "exp", "inference": "em"}, [True]),
        ("auto", {"features": "exp", "inference": Gibbs(moves="none", draws=2, tune=2)}, [True]),
        ("auto", {"features": "exp", "inference": Gibbs(draws=2, tune=2)}, []),
        ("auto", {"features": "exp", "inference": Gibbs(draws=2, tune=2), "prior": GIG(0.5, 0.1, 1.0)}, [True]),
    ],
)
@pytest.mark.parametrize("model", [PlackettLuceClassifier, PlackettLuceRanker, PlackettLuceChooser])
def test_auto_asks_for_the_gpu_of_a_fit(monkeypatch, model, engine, settings, taken):
    """The moves between modes are worth more than a GPU."""
    asked = []

    def chosen_engine(engine, gains, needed):
        asked.append(engine == "auto" and gains)
        raise Refused

    for name in ("MANY_ROWS", "MANY_ENTRIES"):
        monkeypatch.setattr(factory, name, 10)
    monkeypatch.setattr(factory, "chosen_engine", chosen_engine)
    X, orders = np.random.default_rng(0).normal(size=(12, 2)), [[*"abc"], [*"cab"]] * 6
    seen = X, Rankings.from_orders(orders)
    if model is PlackettLuceClassifier:
        seen = X, np.arange(12) % 2
    elif model is PlackettLuceChooser:
        frame = pd.DataFrame(np.hstack([X, X + 1]), columns=["x_a", "z_a", "x_b", "z_b"])
        seen = ChoiceSets.from_wide(frame, alternatives=["a", "b"]), ["a", "b", "b"] * 4
    with contextlib.nullcontext() if not taken else pytest.raises(Refused), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains are short
        model(engine=engine, **settings).fit(*seen)
    assert asked == taken


def test_ties_and_few_situations_stay_on_the_processor(monkeypatch):
    asked = []

    def chosen_engine(*how):
        asked.append(how)
        return "auto"

    monkeypatch.setattr(factory, "chosen_engine", chosen_engine)
    for R, p in (([[*"abc"]], 1 << 22), ([["a", {"b", "c"}]], 1 << 22), ([[*"abc"]], 1 << 20)):
        R = Rankings.from_orders(R)
        seen = Observations.of_rankings(R.outcomes, R.item, make_response("unknown-order"), 3)
        assert factory.choose_engine("auto", (1, p), seen) == "auto"
    assert [gains for _, gains, _ in asked] == [True, False, False]


def test_what_gates_mix_on_the_gpu_is_what_they_mix():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50, 4)), rng.gamma(1.0, size=(3, 42))
    gates = Gates(rng.normal(size=(7, 6, 4)), rng.normal(size=(7, 6)), rng.normal(size=4), np.ones(4)).fit(X)
    there = GatesOnGpu.of(gates)
    assert there.n_features_in_ == 4
    found = mixed(there.standardised(X), there.directions, there.offsets, weights)
    np.testing.assert_allclose(found, gates.mixed(X, weights), rtol=1e-12)


def test_data_larger_than_the_memory_of_the_gpu():
    device.check_fits(1000, 1000, "2 rows", False)
    words = r"2 rows take 12,345 bytes on the GPU, and 1,000 are free there\. Features in float32.*engine='dask'"
    with pytest.raises(MemoryError, match=words):
        device.check_fits(12_345, 1000, "2 rows", False)
    with pytest.raises(MemoryError, match="free there. Rows can be divided"):
        device.check_fits(12_345, 1000, "2 rows", True)


def test_entries_are_found_by_their_place():
    places = np.random.default_rng(0).integers(5, size=40)
    places[places == 3] = 4
    order, first = by_place(places, 6)
    np.testing.assert_array_equal(places[order], np.sort(places))
    for place in range(6):
        np.testing.assert_array_equal(order[first[place] : first[place + 1]], np.flatnonzero(places == place))


@pytest.mark.parametrize(("ties", "words"), [("unknown-order", "without ties"), ("race", "without ties")])
def test_ties_are_refused_on_a_gpu(monkeypatch, ties, words):
    monkeypatch.setattr("plackett.engines.cupy.gpu", lambda: None)
    R = Rankings.from_orders([["a", {"b", "c"}], [{"a", "b"}, "c"]])
    with pytest.raises(ValueError, match=words):
        PlackettLuceRanker(features="exp", ties=ties, engine="cupy").fit([[0.0], [1.0]], R)
    with pytest.raises(ValueError, match="reduced to sets of remaining items"):
        PlackettLuceRanker(ties=ties, engine="cupy").fit(None, R)


def test_the_moves_are_refused_on_a_gpu():
    def checked(**settings):
        check(PlackettLuceClassifier(Gibbs(**settings), engine="cupy", features="exp")._combination())

    with pytest.raises(ValueError, match=r"moves='exchange'\) is compiled and cannot be had with engine='cupy'"):
        checked(moves="exchange")
    with pytest.raises(ValueError, match=r"move_budget=2.0\) would be ignored: there are no moves .* 'cupy'"):
        checked(move_budget=2.0)
    checked(moves="none")


class SideBySide:
    """Rows of the reference with a pass for several chains."""

    def __init__(self, rows):
        self.sample = rows.sample

    def sample_together(self, weights, keys):
        return [self.sample(*each) for each in zip(weights, keys, strict=True)]


def test_chains_that_sweep_together_have_the_draws_of_chains_alone():
    W, codes, _ = small_problem(60, 3, 3)
    rows, target = (
        class_rows("numpy", W, codes, 3),
        Target(1.0, True, *tabulate(LogUniform())),
    )

    def starts():
        return [
            State(np.full((3, W.shape[1]), -np.log(3.0 * W.shape[1])), np.array([0.0, a, 0.0, 0.0])) for a in (0.5, 1)
        ]

    sizes = {"log_weights": (2, 15, 3, W.shape[1]), "shape": (2, 15), "value": (2, 15)}
    alone, together = ({name: np.empty(size) for name, size in sizes.items()} for _ in range(2))
    for c, state in enumerate(starts()):
        rng = np.random.default_rng(c)
        sweeps_of_any_engine(rows, state, rng, target, True, {name: each[c] for name, each in alone.items()})
    generators = [np.random.default_rng(c) for c in range(2)]
    sweeps_together(SideBySide(rows), starts(), generators, target, True, together)
    for name in sizes:
        np.testing.assert_array_equal(alone[name], together[name])


def reference_density(n=200, d=3, components=2):
    X, codes = np.random.default_rng(0).normal(size=(n, d)), np.arange(n) % 3
    prior = LearnedDirections(components=components).prior(3, d, 0.02)
    rows = class_gradient("numpy", X, codes, np.ones(n))
    return density_of(rows, prior, d), prior, prior_size(prior, d)


def test_coordinates_for_many_rows_are_those_of_few():
    _, prior, D = reference_density()
    q = np.random.default_rng(0).normal(size=(2, 5, D))
    there = centred(q, prior, 3)
    np.testing.assert_allclose(parts_of(there, prior, 3)[1], directions_and_weights(q, prior, 3)[0], rtol=1e-12)
    np.testing.assert_allclose(uncentred(there, prior, 3), q, atol=1e-10)
    jacobian = np.empty((D, D))
    for i in range(D):
        step = 1e-6 * (np.arange(D) == i)
        jacobian[i] = (centred(q[0, 0] + step, prior, 3) - centred(q[0, 0] - step, prior, 3)) / 2e-6
    assert log_spread(q, prior, 3)[0, 0] == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-6)


def test_climbs_together_end_at_modes():
    density, prior, D = reference_density()
    seen = []

    def look(position):
        seen.append(len(position))
        gradient = np.empty_like(position)
        value = np.array([density(*each) for each in zip(position, gradient, strict=True)])
        gradient[:, -5:] = 0.0  # held
        return value, gradient

    start = 0.3 * np.random.default_rng(0).normal(size=(3, D))
    position, value = climb_together(look, start, np.full(D, 0.1), 600, 1e-9)
    np.testing.assert_array_equal(position[:, -5:], start[:, -5:])
    there, slope = look(position)
    np.testing.assert_array_equal(there, value)
    assert len(seen) < 600
    assert (np.abs(slope) < 1e-3).all()


def test_a_climb_finds_the_top_of_a_narrow_ridge():
    widths, top = np.geomspace(1e-2, 1.0, 30), np.linspace(-1, 1, 30)
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 30)))[0]

    def look(position):
        z = (position - top) @ turned / widths
        return -0.5 * (z**2).sum(axis=1), -(z / widths) @ turned.T

    position, value = climb_together(look, np.zeros((2, 30)), np.full(30, 1e-3), 400, 1e-12)
    np.testing.assert_allclose(position, [top, top], atol=1e-3)
    assert (value > -1e-6).all()


def test_chains_share_variances_and_leave_modes_without_mass():
    rng, n_seen, widths = np.random.default_rng(0), 200, np.geomspace(1e-4, 1.0, 6)
    walks = [begin(np.full(6, float(c)), 1e-6) for c in range(4)]
    for walk in walks:
        draws = widths * rng.normal(size=(n_seen, 6))
        squares = ((draws - draws.mean(axis=0)) ** 2).sum(axis=0)
        walk.variance[0] = (squares + DOUBTED * 1e-6) / (n_seen - 1 + DOUBTED)
    renew(walks, np.array([0.5 * -POOR, -POOR - 60.0, 0.0, 10.0]), n_seen, 10**6)
    for walk, place in zip(walks, (0, 3, 2, 3), strict=True):
        np.testing.assert_array_equal(walk.position, float(place))
        np.testing.assert_allclose(walk.variance[0], widths**2, rtol=4 * np.sqrt(2 / 600), atol=1e-8)
        np.testing.assert_array_equal(walk.variance[0], walks[0].variance[0])


class OnTheProcessor:
    """`Trajectories` by the functions of `plackett.inference.hmc` and a density of the reference."""

    def __init__(self, density, D):
        self.density, self.D = density, D

    def look(self, position):
        gradient = np.empty_like(position)
        return np.array([self.density(*each) for each in zip(position, gradient, strict=True)]), gradient

    def fly(self, position, momentum, gradient, inverse_mass, step, floor, n):
        value = np.empty(len(position))
        for c in range(len(position)):
            walk = begin(position[c])
            walk.variance[0] = inverse_mass[c]
            flight = Flight(momentum[c], gradient[c], np.empty(self.D), np.empty(self.D))
            for _ in range(n):
                leap(walk, flight, step[c])
                value[c] = self.density(walk.position, flight.gradient)
                if not value[c] > floor[c]:
                    break
                push(flight, step[c])
        return position, momentum, gradient, value


@pytest.mark.parametrize("spread", [0.05, 8.0])  # where a trajectory goes well, and where it is given up
def test_a_chain_that_flies_has_the_draws_of_one_that_walks(spread):
    X, codes = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3
    prior = LearnedDirections(components=1).prior(3, 2, 0.02)
    D = prior_size(prior, 2)
    density = density_of(
        class_gradient("numpy", X, codes, np.ones(40)),
        prior,
        2,
    )
    found = []
    for together in (False, True):
        rng, walk = np.random.default_rng(1), begin(spread * np.random.default_rng(2).normal(size=D))
        draws, values = np.empty((1, 30, D)), np.empty((1, 30))
        if together:
            _walk(OnTheProcessor(density, D), [walk], [rng], windows(30), 6, True, draws, values)
        else:
            walk_on(density, walk, rng, windows(30), 6, True, draws[0], values[0])
        found.append((draws, values, *walk))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(np.unique(found[0][1])) > 1


@pytest.fixture
def flying(monkeypatch):
    """Situations of ``engine="cupy"`` by the passes of the reference, and their trajectories by the processor."""

    def trajectories(rows, prior, n_chains, many):
        assert not many and n_chains <= 4
        found = OnTheProcessor(density_of(rows, prior, rows.n_features), prior_size(prior, rows.n_features))
        flown.append(n_chains)
        return found

    flown = []
    monkeypatch.setattr("plackett.engines.cupy.gpu", lambda: None)
    monkeypatch.setattr("plackett.engines.cupy.CupySituations", CompiledSituations)
    monkeypatch.setattr("plackett.directions.flights.Trajectories", trajectories)
    monkeypatch.setattr("plackett.directions.flights.MANY", 5)  # of no account for situations
    return flown


def some_situations(name, T=15):
    rng = np.random.default_rng(0)
    outcomes = Outcomes.of([3] * T, [[1] if name == "choice" else [1, 1]] * T, np.full(T, 2.0))
    group = np.concatenate([rng.permutation(3) for _ in range(T)])
    return rng.normal(size=(3 * T, 2)), Situations(outcomes, group, np.arange(3 * T))


def test_room_for_chains_over_situations(monkeypatch):
    """What is taken is what is asked for, nearly, and refused in words where it is not free."""
    X, situations = some_situations("ranking", 400)
    for name, fake in {"gpu": lambda: np, "free_bytes": lambda: 10**9}.items():
        monkeypatch.setattr(f"plackett.engines.cupy_situations.{name}", fake)
    rows = CupySituations(X, Observations.of_situations(situations, make_response("ranking"), 3))
    room = rows.room(4, 3, 20)
    taken = sum(each.nbytes for each in room)
    monkeypatch.setattr("plackett.engines.cupy_situations.free_bytes", lambda: int(0.9 * taken))
    with pytest.raises(MemoryError, match=r"rows and 1,200 entries for 4 chains of 20 components take 8\d\d,\d{3}"):
        rows.room(4, 3, 20)
    monkeypatch.setattr("plackett.engines.cupy_situations.free_bytes", lambda: taken)
    assert [each.shape for each in rows.room(4, 3, 20)] == [each.shape for each in room]
    assert len(rows.handed(room)) == 7


@pytest.mark.parametrize(("name", "owned"), [("ranking", True), ("choice", False)])
def test_a_chain_over_situations_that_flies_has_the_draws_of_one_that_walks(flying, name, owned):
    """Where totals are apart, with new scales before each trajectory."""
    X, situations = some_situations(name)
    found = []
    for engine in ("numba", "cupy"):
        response, seed = make_response(name), np.random.SeedSequence(0)
        task = make_situation_task(
            [X], Observations.of_situations(situations, response, 3), Source(seed), owned, engine
        )
        rng, prior = np.random.default_rng(1), task.reader.prior(task, LearnedDirections(components=2), 0.02)
        prior = prior._replace(totals=owned)
        sampler = make_sampler(task, prior, 20, 6)
        assert sampler.narrow == owned
        assert task.on_gpu == isinstance(sampler, FlyingTogether) == (engine == "cupy")
        chain = Chain(sampler.begin(task.starts(prior, [rng]))[0], rng)
        draws, values = np.empty((20, prior_size(prior, 2))), np.empty(20)
        sampler.advance(chain, True, draws, values)
        found.append((draws, values, *chain.state))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert len(np.unique(found[0][1])) > 3
    assert flying == [1]


def test_six_chains_over_rankings_fly_four_and_two_at_a_time(flying, monkeypatch):
    monkeypatch.setattr("plackett.engines.cupy.gpu", lambda: None)
    X = np.random.default_rng(0).normal(size=(15, 2))
    R = Rankings.from_orders([list("abc"), list("bca"), list("acb")] * 5)
    settings = {"features": LearnedDirections(components=1), "inference": Gibbs(draws=3, tune=4, chains=6)}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = PlackettLuceRanker(engine="cupy", random_state=0, **settings).fit(X, R)
    assert set(flying) == {4, 2, 1}  # one: kernels are loaded
    assert model.posterior_.directions.shape[:2] == (6, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
