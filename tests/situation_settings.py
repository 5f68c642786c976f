"""Rankings and choices for `test_settings.py`: where each setting is tried, and what is to come of it."""

import numpy as np
import pandas as pd

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, Variational
from plackett.directions import LearnedDirections
from plackett.features import ExpFeatures
from plackett.priors import GIG, Gamma
from rankings import race

CHANGES, GIVES_UP = None, "where a run gives up that goes on by itself, and"
SHORT = {"draws": 20, "tune": 20, "chains": 2}
TARGET = {"target_ess": 1e9, "max_draws": 40}
TAIL = GIG(0.5, 0.1)


def _rankings(n=18):
    """Three items, the first of which the first covariate speaks for; some are tied. Too few to hold some out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    rates = np.exp(0.7 * np.column_stack([X[:, 0], 0 * X[:, 0], -X[:, 0]]))
    orders = [[set("abc"[k] for k in bucket) for bucket in race(rng, r, "race")] for r in rates]
    return X, Rankings.from_orders(orders)


def _choices(n=18):
    """Three alternatives with two attributes and a column of the person; three persons choose."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, n) / 1.0 for a in "abc" for x in ("cost", "time")})
    X = ChoiceSets.from_wide(
        frame.assign(age=rng.normal(size=n)), alternatives=list("abc"), attributes=["cost", "time"], person=["age"]
    )
    utility = (-0.5 * X.values[:, 0] - X.values[:, 1] + rng.gumbel(size=3 * n)).reshape(n, 3)
    return X, np.array(list("abc"))[utility.argmax(axis=1)], np.arange(n) % 3


X, R = _rankings()
SETS, CHOSEN, WHO = _choices()
# the model, what it is fitted to, and what it then predicts
KINDS = {
    "plain": (PlackettLuceRanker, {"X": None, "R": R}, {"X": None}),
    "persons": (PlackettLuceRanker, {"X": X, "R": R}, {"X": X}),
    "choices": (PlackettLuceChooser, {"X": SETS, "y": CHOSEN}, {"X": SETS}),
    "panel": (PlackettLuceChooser, {"X": SETS, "y": CHOSEN, "groups": WHO}, {"X": SETS}),
}
PLAIN = {"of": "plain", "random_state": 0}
PERSONS = {"of": "persons", "features": "exp", "random_state": 0}
CHOICES = {"of": "choices", "features": "exp", "random_state": 0}
RACE = {"ties": "race"}
PERSONS_LEARNED = {"of": "persons", "features": LearnedDirections(components=2), "random_state": 0}
CHOICES_LEARNED = {"of": "choices", "features": LearnedDirections(components=2), "random_state": 0}
OWNED = CHOICES_LEARNED | {"weights": "alternative"}
PANEL = CHOICES_LEARNED | {"of": "panel"}
NEST = {"first": ["a", "b"]}
ALONE = {"features": LearnedDirections(components=1)}


def fixed(where, what):
    """Cases of worths, or of weights of fixed features."""
    given, tailed, gibbs, em = where | {"shape": 1.5}, where | {"prior": TAIL}, Gibbs(**SHORT), EM(cv=2)
    every = (EM(), Variational(), gibbs)
    for inference in every:
        yield where, inference, "model", "shape", 1.5, CHANGES
        yield where, inference, "model", "prior", TAIL, CHANGES
    yield where, em, "model", "prior", "beta", "prior must be 'gamma' or a plackett.priors.GIG, got 'beta'"
    yield where, gibbs, "model", "random_state", 1, CHANGES
    for inference in every:
        yield where, inference, "model", "rate", 2.0, rf"rate=2.0\) would be ignored: the scale .* effect on {what}"
    for inference in every:
        for name in ("shape", "rate"):
            yield tailed, inference, "model", name, 2.0, rf"{name}=2.0\) would be ignored: it belongs to prior='gamma'"
    for name, value in {"tol": 1e-2, "max_iter": 1, "accelerate": False}.items():
        yield given, EM(), "inference", name, value, CHANGES
        yield where, Variational(), "inference", name, value, CHANGES
    for name, value in {"shapes": (3.0, 2.0), "cv": 3}.items():
        yield where, em, "inference", name, value, CHANGES
        yield given, EM(), "inference", name, value, "shape='learn', and shape=1.5 is given"
        yield tailed, EM(), "inference", name, value, "belongs to prior='gamma'"
    yield where, Variational(), "inference", "draws", 20, CHANGES
    for inference in (Variational(), gibbs):
        yield where, inference, "inference", "shape_prior", Gamma(2, 200), CHANGES
        yield given, inference, "inference", "shape_prior", Gamma(2, 200), "shape='learn', and shape=1.5 is given"
        yield tailed, inference, "inference", "shape_prior", Gamma(2, 200), "belongs to prior='gamma'"
    yield from run(where)
    yield where, gibbs, "model", "engine", "abacus", "engine must be"


def without_moves(where, why):
    """Cases of the sampler where there are no moves."""
    yield where, Gibbs(**SHORT), "inference", "moves", "exchange", rf"'exchange'\) cannot be had here: {why}"
    yield where, Gibbs(**SHORT), "inference", "move_budget", 1.0, f"there are no moves here: {why}"


def with_moves(where):
    """Cases of the sampler where there are."""
    gibbs, plain, tailed = Gibbs(**SHORT), Gibbs(**SHORT, moves="none"), where | {"prior": TAIL}
    yield where, gibbs, "inference", "moves", "none", CHANGES
    yield where, gibbs, "inference", "move_budget", 0.1, CHANGES
    yield where, plain, "inference", "move_budget", 0.1, r"no moves with Gibbs\(moves='none'\)"
    yield tailed, gibbs, "inference", "moves", "exchange", r"cannot .* prior=GIG.*Use Gibbs\(moves='none'"
    yield tailed, gibbs, "inference", "move_budget", 1.0, "there are no moves with prior=GIG"
    yield where | {"engine": "numpy"}, gibbs, "inference", "moves", "exchange", "is compiled and cannot be had"
    yield where | {"engine": "numpy"}, gibbs, "inference", "move_budget", 1.0, "engine='numpy'"
    for name, value in {"moves": "exchange", "move_budget": 1.0}.items():
        yield where | {"engine": "dask"}, gibbs, "inference", name, value, "engine='dask' they lie on workers"


def run(where):
    """Lengths of chains and their limits."""
    for name in ("draws", "tune"):
        yield where, Gibbs(**SHORT), "inference", name, 30, CHANGES
    yield where, Gibbs(**SHORT), "inference", "chains", 3, CHANGES
    yield where, Gibbs(**SHORT, **TARGET), "inference", "max_draws", 50, CHANGES
    yield where, Gibbs(**SHORT, **TARGET), "inference", "target_ess", None, GIVES_UP
    yield where, Gibbs(**SHORT), "inference", "max_draws", 50, rf"{GIVES_UP} Gibbs\(draws=20\)"


def learned(where):
    """Cases of learned directions."""
    gibbs, em = Gibbs(**SHORT), EM(cv=2)
    yield where, gibbs, "model", "random_state", 1, CHANGES
    for inference in (gibbs, em):
        yield where, inference, "model", "prior", TAIL, r"prior=GIG.* would be ignored: learned .*features='exp'"
        yield where, inference, "model", "rate", 2.0, r"rate=2.0\) would be ignored: the scale .* cancels"
        yield where, inference, "features", "components", 3, CHANGES
        yield where, inference, "features", "own_shape", 0.5, CHANGES
    for name, value in {"covariate_spread": 2.0, "leapfrogs": 5}.items():
        yield where, gibbs, "features", name, value, CHANGES
        yield where, em, "features", name, value, "for the chains of inference='gibbs'"
    for name, value in {"max_iter": 1, "cv": 3}.items():
        yield where, em, "inference", name, value, CHANGES
    for name, value in {"tol": 1e-2, "accelerate": False, "shapes": (3.0, 2.0)}.items():
        yield where, em, "inference", name, value, r"EM\(.*would be ignored: .*L-BFGS.*features='exp'"
    yield from run(where)
    for name, value in {"moves": "none", "shape_prior": Gamma(1, 10), "move_budget": 1.0}.items():
        yield where, gibbs, "inference", name, value, r"Gibbs\(.*would be ignored.*features='exp'"
    yield where, Variational(), "inference", "draws", 20, "no variational approximation"


def mapped(where, dtype):
    """Cases of the paper's map, and what comes of single precision."""
    where, changes = where | {"features": ExpFeatures(), "shape": 0.9}, {"scales": (1.0, 2.0), "standardize": False}
    for name, value in (changes | {"offset": False, "pair_sums": True, "pair_differences": True}).items():
        yield where, EM(), "features", name, value, CHANGES
    yield where, EM(), "features", "dtype", "float32", dtype


CASES = [
    # rankings
    *fixed(PLAIN, "rankings, but with ties='race'"),
    *without_moves(PLAIN, "without covariates there is one weight an item"),
    *without_moves(PLAIN | RACE, "without covariates there is one weight an item"),
    *fixed(PERSONS, "rankings, but with ties='race'"),
    *with_moves(PERSONS),
    *without_moves(PERSONS | RACE, "race ties know the scale"),
    *mapped(PERSONS, CHANGES),
    *learned(PERSONS_LEARNED),
    *[
        (where | RACE, inference, "model", "rate", 2.0, CHANGES)
        for where in (PLAIN, PERSONS)
        for inference in (EM(cv=2), Variational(), Gibbs(**SHORT))
    ],
    (PERSONS_LEARNED | RACE, EM(cv=2), "model", "rate", 2.0, "learned directions have .* a rate of 1"),
    *[(PERSONS_LEARNED, inference, "model", "shape", 0.5, CHANGES) for inference in (EM(cv=2), Gibbs(**SHORT))],
    *[
        (where, inference, "model", "ties", "race", CHANGES)
        for where in (PLAIN, PERSONS, PERSONS_LEARNED)
        for inference in (EM(cv=2), Gibbs(**SHORT))
    ],
    (PLAIN, Gibbs(**SHORT), "model", "ties", "error", "items share a place in row"),
    (PERSONS_LEARNED, EM(cv=2), "model", "ties", "last", "ties must be one of"),
    (PERSONS_LEARNED, Gibbs(**SHORT), "features", "bend", "none", "bend='none'.* would be ignored: it is for attrib"),
    (PLAIN, EM(cv=2), "model", "features", "exp", "features='exp'.* would be ignored: it is a map of covariates"),
    # choices
    *fixed(CHOICES, "choices"),
    *with_moves(CHOICES),
    *mapped(CHOICES, r"ExpFeatures\(dtype='float32'\) would be ignored: .*in float64"),
    *learned(CHOICES_LEARNED),
    *[(OWNED, inference, "model", "shape", 0.5, CHANGES) for inference in (EM(cv=2), Gibbs(**SHORT))],
    *[
        (where, inference, "model", "shape", 0.5, "shape=0.5.* would be ignored: it is for components that others own")
        for where in (CHOICES_LEARNED, PANEL | {"weights": "person"})
        for inference in (EM(cv=2), Gibbs(**SHORT))
    ],
    *[
        (where, inference, "model", "weights", weights, CHANGES)
        for inference in (EM(cv=2), Gibbs(**SHORT))
        for where, weights in (
            (CHOICES, "alternative"),
            (CHOICES_LEARNED, "alternative"),
            (PANEL, "person"),
        )
    ],
    (CHOICES_LEARNED, EM(cv=2), "features", "bend", "scores", "would be ignored: no attribute has 5 diff"),
    (CHOICES_LEARNED, EM(cv=2), "features", "bend", "splines", r"LearnedDirections\(bend\) must be one of"),
    (CHOICES, EM(cv=2), "model", "weights", "person", "weights='person' needs"),
    (CHOICES | {"of": "panel"}, EM(cv=2), "model", "weights", "alternative", "groups would be ignored"),
    (PANEL | ALONE, EM(cv=2), "model", "weights", "person", "weights='person'.*ignored: .* only component, which canc"),
    (CHOICES_LEARNED | ALONE, EM(cv=2), "features", "own_shape", 0.5, "own_shape=0.5.* would be ignored: .* cancels"),
    (CHOICES_LEARNED | {"weights": "alternative"} | ALONE, EM(cv=2), "features", "own_shape", 0.5, CHANGES),
    (CHOICES, EM(cv=2), "model", "weights", "mine", "weights must be one of"),
    *[(CHOICES_LEARNED, inference, "model", "nests", NEST, CHANGES) for inference in (EM(cv=2), Gibbs(**SHORT))],
    (CHOICES, EM(cv=2), "model", "nests", NEST, "nests would need draws of weights that are not conjugate"),
    (OWNED, EM(cv=2), "model", "nests", NEST, "nests are for weights='shared'"),
    (CHOICES_LEARNED, EM(cv=2), "model", "nests", {"one": ["a"]}, "'one' needs two alternatives or more"),
]
