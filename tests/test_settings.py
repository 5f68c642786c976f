"""Nothing that is asked for is ignored: every setting changes what comes out, or is refused in words."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from plackett import (
    EM,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    SparseLogitClassifier,
    Variational,
    regularization_path,
)
from plackett.directions import LearnedDirections
from plackett.engines import numba as compiled
from plackett.features import ExpFeatures
from plackett.priors import GIG, Gamma
from situation_settings import CASES as SITUATION_CASES
from situation_settings import CHANGES, CHOSEN, GIVES_UP, KINDS, PERSONS, PLAIN, RACE, SETS, SHORT, TARGET, R

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) * [1, 2, 3] + [0, 5, 0]
y = ((X[:, 0] + (X[:, 1] - 5) ** 2 / 4 + rng.normal(size=60)) > 1).astype(int)

LEARNED, EXP = {"features": "learned", "random_state": 0}, {"features": "exp", "random_state": 0}
TAILED = EXP | {"prior": GIG(0.5, 0.1)}
TWO = {"features": LearnedDirections(components=2), "random_state": 0}

# Where it is tried, the part it belongs to, the setting, another value, and what comes of it: a change, or these words.
CASES = [
    # the classifier
    (EXP, Gibbs(**SHORT), "model", "shape", 0.5, CHANGES),
    (EXP, Gibbs(**SHORT), "model", "random_state", 1, CHANGES),
    (EXP, Variational(), "model", "random_state", 1, CHANGES),
    (EXP, Variational(), "model", "rate", 2.0, CHANGES),
    (EXP, EM(), "model", "shape", 0.5, CHANGES),
    (LEARNED, Gibbs(**SHORT), "model", "shape", 0.5, CHANGES),
    (LEARNED, Gibbs(**SHORT), "model", "random_state", 1, CHANGES),
    (LEARNED, EM(cv=2), "model", "shape", 0.5, CHANGES),
    (LEARNED, Gibbs(**SHORT), "model", "rate", 2.0, r"rate=2.0\) would be ignored: the scale .* cancels"),
    (LEARNED, EM(), "model", "rate", 2.0, r"rate=2.0\) would be ignored"),
    (LEARNED, Variational(), "model", "rate", 2.0, "rate"),
    *[(EXP, inference, "model", "prior", GIG(0.5, 0.1), CHANGES) for inference in (EM(), Variational())],
    (EXP, Gibbs(**SHORT, moves="none"), "model", "prior", GIG(0.5, 0.1), CHANGES),
    (TAILED, EM(), "model", "prior", GIG(0.5, 0.2), CHANGES),
    (TAILED, Variational(), "model", "prior", GIG(0.6, 0.1), CHANGES),
    (TAILED, Gibbs(**SHORT), "model", "prior", GIG(0.5, 0.1, 2.0), CHANGES),
    (EXP, EM(), "model", "prior", "beta", "prior must be 'gamma' or a plackett.priors.GIG, got 'beta'"),
    *[
        (LEARNED, inference, "model", "prior", GIG(0.5, 0.1), r"prior=GIG.* would be ignored: learned .*features='exp'")
        for inference in (EM(), Gibbs(**SHORT))
    ],
    *[
        (TAILED, inference, "model", name, 2.0, rf"{name}=2.0\) would be ignored: it belongs to prior='gamma'")
        for inference in (EM(), Variational(), Gibbs(**SHORT))
        for name in ("shape", "rate")
    ],
    *[
        (where, inference, "model", "class_weight", value, CHANGES)
        for where, inference in [(EXP, EM()), (EXP, Variational()), (LEARNED, EM(cv=2)), (LEARNED, Gibbs(**SHORT))]
        for value in ("balanced", {0: 0.3})
    ],
    (EXP, Gibbs(**SHORT), "model", "class_weight", {0: 3}, CHANGES),
    *[
        (
            EXP,
            Gibbs(**SHORT),
            "model",
            "class_weight",
            value,
            "Gibbs with fixed features takes whole numbers.*no meaning",
        )
        for value in ("balanced", {0: 1.5})
    ],
    *[
        (LEARNED, EM(cv=2), "model", "class_weight", value, words)
        for value, words in [
            ("equal", "class_weight must be None, 'balanced' or a dictionary .* got 'equal' instead"),
            ([1, 2], r"got \[1, 2\] instead"),
            ({0: 0.0}, r"class_weight\[0\] must be a positive number, got 0.0 instead"),
            ({"none": 2.0}, "are not in class_weight"),
        ]
    ],
    # EM
    (TAILED, EM(), "inference", "tol", 1e-2, CHANGES),
    (TAILED, EM(), "inference", "max_iter", 1, CHANGES),
    (TAILED, EM(), "inference", "accelerate", False, CHANGES),
    (TAILED, EM(), "inference", "shapes", (3.0, 2.0), "belongs to prior='gamma'"),
    (TAILED, EM(), "inference", "cv", 2, "belongs to prior='gamma'"),
    (EXP, EM(), "inference", "tol", 1e-2, CHANGES),
    (EXP | {"shape": 0.5}, EM(), "inference", "max_iter", 1, CHANGES),
    (EXP | {"shape": 0.5}, EM(), "inference", "accelerate", False, CHANGES),
    (EXP, EM(), "inference", "shapes", (3.0, 2.0), CHANGES),
    (EXP, EM(), "inference", "cv", 2, CHANGES),
    (EXP | {"shape": 0.5}, EM(), "inference", "shapes", (3.0, 2.0), r"shape='learn', and shape=0.5 is given"),
    (EXP | {"shape": 0.5}, EM(), "inference", "cv", 2, r"shape='learn', and shape=0.5 is given"),
    (LEARNED, EM(), "inference", "tol", 1e-2, r"EM\(tol=0.01\) would be ignored: .*L-BFGS.*features='exp'"),
    (LEARNED, EM(), "inference", "accelerate", False, r"EM\(accelerate=False\) would be ignored"),
    (LEARNED, EM(), "inference", "shapes", (3.0, 2.0), r"EM\(shapes=\(3.0, 2.0\)\) would be ignored"),
    (LEARNED, EM(), "inference", "max_iter", 1, CHANGES),
    (LEARNED, EM(), "inference", "cv", 2, CHANGES),
    # variational
    (EXP, Variational(), "inference", "tol", 1e-2, CHANGES),
    (EXP, Variational(), "inference", "max_iter", 1, CHANGES),
    (EXP, Variational(), "inference", "accelerate", False, CHANGES),
    (EXP, Variational(), "inference", "draws", 20, CHANGES),
    (EXP, Variational(), "inference", "shape_prior", Gamma(2, 200), CHANGES),
    (EXP | {"shape": 0.5}, Variational(), "inference", "shape_prior", Gamma(2, 20), "shape='learn'"),
    (LEARNED, Variational(), "inference", "draws", 20, "no variational approximation"),
    (TAILED, Variational(), "inference", "tol", 1e-2, CHANGES),
    (TAILED, Variational(), "inference", "accelerate", False, CHANGES),
    (TAILED, Variational(), "inference", "draws", 20, CHANGES),
    (TAILED, Variational(), "inference", "shape_prior", Gamma(2, 20), "belongs to prior='gamma'"),
    # Gibbs, fixed features
    (TAILED, Gibbs(**SHORT), "inference", "draws", 30, CHANGES),
    (TAILED, Gibbs(**SHORT), "inference", "tune", 30, CHANGES),
    (
        TAILED,
        Gibbs(**SHORT),
        "inference",
        "moves",
        "exchange",
        r"cannot .* prior=GIG.*Use Gibbs\(moves='none'",
    ),
    (TAILED, Gibbs(**SHORT), "inference", "move_budget", 1.0, "there are no moves with prior=GIG"),
    (TAILED, Gibbs(**SHORT), "inference", "shape_prior", Gamma(2, 20), "belongs to prior='gamma'"),
    (EXP, Gibbs(**SHORT), "inference", "draws", 30, CHANGES),
    (EXP, Gibbs(**SHORT), "inference", "tune", 30, CHANGES),
    (EXP, Gibbs(**SHORT), "inference", "chains", 3, CHANGES),
    (EXP, Gibbs(**SHORT), "inference", "moves", "none", CHANGES),
    (EXP, Gibbs(**SHORT), "inference", "shape_prior", Gamma(2, 200), CHANGES),
    (EXP, Gibbs(**SHORT, **TARGET), "inference", "max_draws", 50, CHANGES),
    (EXP, Gibbs(**SHORT, **TARGET), "inference", "target_ess", None, GIVES_UP),
    (EXP, Gibbs(**SHORT), "inference", "move_budget", 0.1, CHANGES),
    (EXP, Gibbs(tune=20, chains=2, max_draws=40), "inference", "max_draws", 50, CHANGES),
    (EXP, Gibbs(**SHORT), "inference", "max_draws", 50, rf"Gibbs\(max_draws=50\) .*{GIVES_UP} Gibbs\(draws=20\)"),
    (EXP | {"shape": 0.5}, Gibbs(**SHORT), "inference", "shape_prior", Gamma(2, 20), "shape='learn'"),
    (EXP, Gibbs(**SHORT, moves="none"), "inference", "move_budget", 1.0, r"no moves with Gibbs\(moves='none'\)"),
    (EXP | {"engine": "numpy"}, Gibbs(**SHORT), "inference", "move_budget", 1.0, "no moves"),
    (
        EXP | {"engine": "numpy"},
        Gibbs(**SHORT),
        "inference",
        "moves",
        "exchange",
        r"Use Gibbs\(moves='none'\) or engine",
    ),
    # Gibbs, learned directions
    (LEARNED, Gibbs(**SHORT), "inference", "draws", 30, CHANGES),
    (LEARNED, Gibbs(**SHORT), "inference", "tune", 30, CHANGES),
    (LEARNED, Gibbs(**SHORT), "inference", "chains", 3, CHANGES),
    (LEARNED, Gibbs(**SHORT, **TARGET), "inference", "max_draws", 50, CHANGES),
    (LEARNED, Gibbs(**SHORT, **TARGET), "inference", "target_ess", None, GIVES_UP),
    (LEARNED, Gibbs(**SHORT), "inference", "max_draws", 50, GIVES_UP),
    (LEARNED, Gibbs(tune=20, chains=2, max_draws=40), "inference", "max_draws", 50, CHANGES),
    (LEARNED, Gibbs(**SHORT), "inference", "moves", "none", r"Gibbs\(moves='none'\) would be ignored.*features='exp'"),
    (LEARNED, Gibbs(**SHORT), "inference", "moves", "exchange", "would be ignored"),
    (LEARNED, Gibbs(**SHORT), "inference", "shape_prior", Gamma(1, 10), "would be ignored"),
    (LEARNED, Gibbs(**SHORT), "inference", "move_budget", 1.0, "would be ignored"),
    # the features
    (TWO, Gibbs(**SHORT), "features", "components", 3, CHANGES),
    (TWO, Gibbs(**SHORT), "features", "own_shape", 0.5, CHANGES),
    (TWO, Gibbs(**SHORT), "features", "covariate_spread", 2.0, CHANGES),
    (TWO, Gibbs(**SHORT), "features", "leapfrogs", 5, CHANGES),
    (TWO, EM(cv=2), "features", "components", 3, CHANGES),
    (TWO, EM(cv=2), "features", "own_shape", 0.5, CHANGES),
    (TWO, EM(cv=2), "features", "covariate_spread", 2.0, "for the chains of inference='gibbs'"),
    (TWO, EM(cv=2), "features", "leapfrogs", 5, "for the chains of inference='gibbs'"),
    (TWO, EM(cv=2), "features", "bend", "none", "bend='none'.* would be ignored: it is for attributes of alternatives"),
    *[
        ({"features": ExpFeatures(), "shape": 0.9}, EM(), "features", name, value, CHANGES)
        for name, value in {
            "scales": (1.0, 2.0),
            "offset": False,
            "pair_sums": True,
            "pair_differences": True,
            "standardize": False,
            "dtype": "float32",
        }.items()
    ],
    # the logit
    *[
        (given, None, "logit", name, value, expected)
        for given, name, value, expected in [
            ({"sampler": "holmes-held"}, "sampler", "polya-gamma", CHANGES),
            ({}, "penalty", 1.0, CHANGES),
            ({}, "penalty_prior", (3.0, 1.0), CHANGES),
            ({}, "penalize_intercept", True, CHANGES),
            ({}, "intercept_scale", 0.1, CHANGES),
            ({}, "standardize", False, CHANGES),
            ({}, "draws", 30, CHANGES),
            ({}, "tune", 30, CHANGES),
            ({}, "chains", 3, CHANGES),
            ({}, "moves", "none", CHANGES),
            ({}, "random_state", 1, CHANGES),
            (TARGET, "max_draws", 50, CHANGES),
            (TARGET, "target_ess", None, GIVES_UP),
            ({"draws": None, "max_draws": 40}, "max_draws", 50, CHANGES),
            ({}, "max_draws", 50, rf"\(max_draws=50\) .*{GIVES_UP} SparseLogitClassifier\(draws=20\)"),
            ({"penalty": 1.0}, "penalty_prior", (3.0, 1.0), "for penalty='learn', and penalty=1 is given"),
            ({"penalize_intercept": True}, "intercept_scale", 1.0, "penalize_intercept=False"),
        ]
    ],
    *SITUATION_CASES,
]


def kind(where):
    """The model that is meant, what it is fitted to, and what it then predicts."""
    return KINDS.get(where.get("of"), (PlackettLuceClassifier, {"X": X, "y": y}, {"X": X}))


def built(where, inference, part, **change):
    """A model with one setting changed in one of its parts."""
    if part == "logit":
        return SparseLogitClassifier(**SHORT | {"random_state": 0} | where | change)
    model = kind(where)[0](inference, **{name: value for name, value in where.items() if name != "of"})
    target = {"model": model, "inference": model.inference, "features": model.features}[part]
    changed = type(target)(**target.get_params(deep=False) | change)
    return changed if part == "model" else model.set_params(**{part: changed})


def outcome(model, where=EXP):
    """All numbers of a fit."""
    _, seen, asked = kind(where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(**seen)
    posterior = model.posterior_
    posterior = getattr(posterior, "of_weights", getattr(posterior, "of_directions", posterior))
    parts = [model.predict_proba(**asked), model.trace_, [model.n_iter_], *vars(posterior).values()]
    parts.append(list(getattr(model, "cv_log_loss_", {}).values()))
    return np.concatenate([np.ravel(part).astype(float) for part in parts if part is not None])


UNCHANGED = {}


def unchanged(where, inference, part):
    """The outcome without the change, of which many cases have the same."""
    model = built(where, inference, part)
    key = repr(where), repr(model)
    if key not in UNCHANGED:
        UNCHANGED[key] = outcome(model, where)
    return UNCHANGED[key]


@pytest.mark.brief(80)
@pytest.mark.parametrize(
    "where, inference, part, name, value, words", CASES, ids=lambda case: case if isinstance(case, str) else None
)
def test_every_setting_changes_something_or_is_refused(where, inference, part, name, value, words):
    changed = built(where, inference, part, **{name: value})
    if words is not CHANGES:
        with pytest.raises(ValueError, match=words):
            changed.fit(**kind(where)[1])
        return
    before, after = unchanged(where, inference, part), outcome(changed, where)
    assert len(before) != len(after) or not np.allclose(before, after, rtol=1e-9, atol=0, equal_nan=True)


ELSEWHERE = {  # below, and in the tests of bars and of checkpoints
    "PlackettLuceClassifier": {"inference", "features", "engine", "progress"},
    "PlackettLuceRanker": {"inference", "progress", "order_effect", "segments", "tiers"},  # of pairs: test_pairs.py
    "PlackettLuceChooser": {"inference", "features", "progress", "segments"},  # test_segments.py
    "Gibbs": {"max_seconds", "checkpoint"},
    "SparseLogitClassifier": {"progress", "max_seconds", "checkpoint"},
}


@pytest.mark.parametrize("model", [PlackettLuceClassifier, PlackettLuceRanker, PlackettLuceChooser])
@pytest.mark.parametrize("owner", ["model", EM, Variational, Gibbs, LearnedDirections, ExpFeatures])
def test_no_setting_is_left_out(model, owner):
    tried, cls = set(), model if owner == "model" else owner
    for where, inference, part, name, *_ in CASES:
        parts = {"model": model, "inference": type(inference), "features": type(where.get("features"))}
        if kind(where)[0] is model and parts.get(part) is cls:
            tried.add(name)
    assert set(inspect.signature(cls).parameters) - ELSEWHERE.get(cls.__name__, set()) == tried


def test_no_setting_of_the_logit_is_left_out():
    tried = {name for _, _, part, name, *_ in CASES if part == "logit"}
    assert set(inspect.signature(SparseLogitClassifier).parameters) - ELSEWHERE["SparseLogitClassifier"] == tried


@pytest.mark.parametrize(
    ("where", "same"), [(PLAIN, "walk"), (PERSONS | RACE, "none")], ids=["tied worths", "race ties"]
)
def test_what_moves_there_are_can_be_said(where, same):
    plain, said = (outcome(built(where, Gibbs(**SHORT, moves=moves), "model"), where) for moves in ("auto", same))
    np.testing.assert_array_equal(plain, said)


@pytest.mark.parametrize(
    ("model", "good", "bad"),
    [
        (PlackettLuceClassifier("em", features="exp"), (X, y), (X[:, :2], np.zeros(len(X)))),
        (SparseLogitClassifier(**SHORT), (X, y), (X[:, :2], np.zeros(len(X)))),
        (PlackettLuceRanker("em", shape=1.5), (None, R), (np.zeros((len(R), 2)), R)),
        (PlackettLuceChooser("em", shape=1.5, features="exp"), (SETS, CHOSEN), (SETS[:2], CHOSEN[:2])),
    ],
    ids=["classifier", "logit", "ranker", "chooser"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, good, bad, monkeypatch):
    """Not fitted if it was not, and else with all of the fit before, and nothing of the other."""

    def fail(*_, **__):
        raise RuntimeError("on purpose")

    def failed():
        with monkeypatch.context() as patched, pytest.raises((RuntimeError, ValueError)):
            patched.setattr("plackett.inference.EM.fit", fail)
            patched.setattr("plackett.directions.learning.climb", fail)
            model.fit(*bad)

    failed()
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.summary()
    before = dict(vars(model.fit(*good)))
    failed()
    assert vars(model) == before


@pytest.mark.parametrize("inference", [EM(), Gibbs(**SHORT)], ids=["em", "gibbs"])
def test_the_rate_does_what_its_documentation_says(inference):
    """Nothing, in what is normalised: weights and predictions are the same to rounding."""
    one, two = (outcome(built(EXP | {"rate": rate}, inference, "model")) for rate in (1.0, 2.0))
    np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.parametrize("inference", [EM(), Variational(), Gibbs(**SHORT)], ids=["em", "variational", "gibbs"])
def test_the_reference_engine_is_used(inference, monkeypatch):
    """Not a compiled pass is made with engine="numpy", and the numbers are the same to rounding where moves are."""
    fast = outcome(built(EXP | ({} if not isinstance(inference, Gibbs) else {"engine": "numba"}), inference, "model"))

    def refuse(*_):
        raise AssertionError("compiled rows were made")

    monkeypatch.setattr(compiled.NumbaEngine, "rows", refuse)
    monkeypatch.setattr(compiled, "pack", refuse)
    slow = outcome(built(EXP | {"engine": "numpy"}, inference, "model"))
    if not isinstance(inference, Gibbs):
        np.testing.assert_allclose(slow[: 2 * len(X)], fast[: 2 * len(X)], rtol=1e-5)


@pytest.mark.brief("em")
@pytest.mark.parametrize("inference", [EM(cv=2), Gibbs(draws=4, tune=4, chains=2)], ids=["em", "gibbs"])
def test_the_reference_engine_learns_directions(inference, monkeypatch):
    fast = outcome(built(LEARNED, inference, "model"))

    def refuse(*_):
        raise AssertionError("compiled rows were made")

    monkeypatch.setattr("plackett.engines.exponential.pack", refuse)
    slow = outcome(built(LEARNED | {"engine": "numpy"}, inference, "model"))
    if isinstance(inference, EM):
        np.testing.assert_allclose(slow[: 2 * len(X)], fast[: 2 * len(X)], rtol=1e-3)


def test_a_path_knows_the_weights_of_classes():
    few = np.append(np.flatnonzero(y == 0)[:5], np.flatnonzero(y == 1))
    plain, told = (regularization_path(X[few], y[few], shapes=[1.0], class_weight=w).weights for w in (None, {0: 4}))
    rows = np.append(np.repeat(few[:5], 4), few[5:])
    repeated = regularization_path(X[rows], y[rows], shapes=[1.0]).weights
    assert np.abs(told - plain).max() > 0.01
    np.testing.assert_allclose(told, repeated, atol=1e-6)


def test_a_path_refuses_what_it_would_not_read():
    with pytest.raises(ValueError, match=r"give shapes=\[...\], got shape=0.5"):
        regularization_path(X, y, shape=0.5)
    with pytest.raises(ValueError, match=r"EM\(cv=3\) would be ignored: .*shape='learn'"):
        regularization_path(X, y, inference=EM(cv=3))
