"""The exact moves, each alone and together: Geweke's joint-distribution test, and that it notices a wrong ratio."""

import numpy as np
import pytest
from numba import njit

from geweke import double, geweke_iterations, geweke_move
from plackett.inference.moves.chain import metropolis
from plackett.inference.moves.mirror import mirror
from plackett.inference.moves.schedule import COORDINATE, FLIP_ONE, MIRROR, NAMES, REDRAW, SWAP
from plackett.inference.moves.shape import redraw_inactive
from plackett.inference.moves.weights import FLIP, UNIFORM, coordinate, exchange

FIXED, LEARNED, SMALL = 0.3, (0.1, 3.0), (0.005, 0.1)
MODELS = [(2, FIXED), (2, LEARNED), (3, FIXED), (3, LEARNED)]
STRONG = {"repeats": 40, "plain_every": 20}  # settings under which an error of a move is not washed out


@pytest.mark.parametrize("move", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize(("K", "shape"), MODELS)
def test_each_move_alone_passes_gewekes_test(K, shape, move):
    z, rate = geweke_move(K, shape, move)
    assert z.max() < 4.5
    assert rate > 0.1


@pytest.mark.parametrize(("K", "shape"), [*MODELS, (2, SMALL), (3, SMALL)])
def test_the_whole_iteration_passes_gewekes_test(K, shape):
    assert geweke_iterations(K, shape, np.array([0.7, 3.3, 1.2, 1.2, 1.2, 1.2, 1.6])).max() < 4.5


def as_step(function, kind=None):
    """A double as the harness calls it."""
    if kind is not None:
        return njit(lambda columns, chain, rng, target, move: function(columns, chain, rng, kind))
    if function.py_func.__code__.co_argcount == 4:
        return njit(lambda columns, chain, rng, target, move: function(columns, chain, rng, target))
    return njit(lambda columns, chain, rng, target, move: function(columns, chain, rng))


def without_jacobian():
    return double(
        coordinate,
        ("theta + (alpha + 1.0 - a * M) * math.log(rest + old)", "theta + (alpha - a * M) * math.log(rest + old)"),
        ("theta + (alpha + 1.0 - a * M) * math.log(rest + new)", "theta + (alpha - a * M) * math.log(rest + new)"),
    )


def without_mass():
    """The exchange with a Metropolis step that forgets (Λ′/Λ)^(−aM)."""
    old = "log_ratio -= a * M * math.log(chain.weights.sum() / chain.old_weights.sum())"
    return double(exchange, metropolis=double(metropolis, (old, "pass")))


def redraw_without_mass():
    return double(
        redraw_inactive,
        (" - old * M * math.log(chain.weights.sum() / active_mass)", ""),
        ("after = -new * M * math.log(chain.weights.sum() / active_mass)", "after = 0.0"),
    )


WIDE = ("(0.3 if k1 == k2 else 0.7)", "2.0")  # steps so wide that the chances of selection differ


@pytest.mark.parametrize(
    ("move", "make", "kind", "shape"),
    [
        (COORDINATE, without_jacobian, None, FIXED),
        (SWAP, without_mass, UNIFORM, FIXED),
        (REDRAW, redraw_without_mass, None, LEARNED),
    ],
    ids=["coordinate without Jacobian", "Metropolis without mass", "redraw without mass"],
)
def test_gewekes_test_notices_a_wrong_ratio(move, make, kind, shape):
    assert geweke_move(2, shape, move, as_step(make(), kind))[0].max() > 6


@pytest.mark.parametrize("kind", [UNIFORM, FLIP], ids=["within a class", "between classes"])
def test_the_chance_of_selection_matters_in_exchanges(kind):
    """With wide steps the exchange is still right, and wrong without (f₂′/F′)/(f₁/F)."""
    right = as_step(double(exchange, WIDE), kind)
    wrong = as_step(double(exchange, WIDE, ("math.log(back / chance)", "0.0")), kind)
    assert geweke_move(2, FIXED, SWAP, right, **STRONG)[0].max() < 4.5
    assert geweke_move(2, FIXED, FLIP_ONE, wrong, **STRONG)[0].max() > 6


def test_the_chance_of_selection_matters_in_mirrors():
    """With wide steps the mirror is still right, and wrong without P(V|new)/P(V|old)."""
    right = as_step(double(mirror, SPREAD=1.5))
    wrong = as_step(double(mirror, ("log_ratio + log_chance(activity, total, chosen)", "0.0"), SPREAD=1.5))
    assert geweke_move(2, FIXED, MIRROR, right, **STRONG)[0].max() < 4.5
    assert geweke_move(2, FIXED, MIRROR, wrong, **STRONG)[0].max() > 6
