"""Runs of the sparse logit: to a target, within a time, interrupted, and continued from a file."""

import _thread
import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from plackett import SparseLogitClassifier
from plackett.inference import driver
from plackett.inference.checkpoint import HEADER, MAGIC, CheckpointError, Journal, read
from plackett.logit.samplers import LogitSampler

SAMPLERS = ["holmes-held", "polya-gamma"]
SMALL = {"draws": 12, "tune": 8, "chains": 2, "random_state": 3}
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.array(["a", "b", "c"])[np.argmax(X[:, :1] * [1, 0, -1] + rng.gumbel(size=(40, 3)), axis=1)]


@pytest.fixture
def short_rounds(monkeypatch):
    """One iteration in a round, and so one in a record."""
    monkeypatch.setattr(driver, "ROUND_SECONDS", 0.0)


def fit(path=None, data=(X, y), **settings):
    """A fit that says nothing about mixing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return SparseLogitClassifier(**SMALL | settings, checkpoint=path).fit(*data)


def assert_same(a, b):
    """Bit for bit."""
    for one, other in zip(vars(a.posterior_).values(), vars(b.posterior_).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(a.trace_, b.trace_)
    assert a.n_iter_ == b.n_iter_


def ends(path):
    """Where the magic and every record of a whole file end."""
    data, places = path.read_bytes(), [len(MAGIC)]
    while places[-1] < len(data):
        places.append(places[-1] + HEADER.size + HEADER.unpack_from(data, places[-1])[0])
    return places


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("settings", [{}, {"draws": 3, "target_ess": 1e9, "max_draws": 17}], ids=["draws", "target"])
def test_a_cut_file_is_continued(tmp_path, short_rounds, sampler, settings):
    """After any of its rounds, in tuning and after it, and in the middle of one."""
    path = tmp_path / "fit"
    settings = settings | {"sampler": sampler}
    whole = fit(path, **settings)
    assert_same(whole, fit(**settings))
    data, places = path.read_bytes(), ends(path)
    assert len(places) == 2 + SMALL["tune"] + settings.get("max_draws", SMALL["draws"])
    for cut in [*places[1::3], places[5] + 40, len(data) - 1]:
        path.write_bytes(data[:cut])
        assert_same(whole, fit(path, **settings))


@pytest.mark.parametrize("settings", [{}, {"draws": 3, "target_ess": 1e9, "max_draws": 17}], ids=["draws", "target"])
def test_a_large_state_is_not_written_every_round(tmp_path, short_rounds, monkeypatch, settings):
    """Only where tuning learns, where the store is full, and at the end; what was not written is drawn again."""
    path, whole = tmp_path / "fit", fit(**settings)
    monkeypatch.setattr(driver, "STATES", 1)
    assert_same(whole, fit(path, **settings))
    data, places = path.read_bytes(), ends(path)
    assert len(places) - 2 == (8 if settings else 6)
    for cut in places[1:]:
        path.write_bytes(data[:cut])
        assert_same(whole, fit(path, **settings))
        assert len(ends(path)) <= len(places) + 1  # a run begins with a record


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_more_draws_or_a_target_extend_a_checkpoint(tmp_path, sampler):
    path = tmp_path / "fit"
    for settings in ({"draws": 20}, {"draws": 40}, {"draws": 7}, {"draws": 40, "target_ess": 1e9, "max_draws": 200}):
        settings["sampler"] = sampler
        assert_same(fit(path, **settings), fit(**settings))
    with pytest.raises(CheckpointError, match=r"one draw in 2 only.*SparseLogitClassifier\(draws=300\) needs more"):
        fit(path, draws=300, sampler=sampler)


def test_a_finished_checkpoint_loads_without_sampling(tmp_path, monkeypatch):
    path = tmp_path / "fit"
    whole = fit(path)

    def refuse(*args, **draws):
        raise AssertionError("the chains were advanced")

    monkeypatch.setattr(LogitSampler, "advance", refuse)
    assert_same(whole, fit(path))


OTHERS = [
    *({"sampler": "holmes-held"}, {"moves": "none"}, {"tune": 9}, {"chains": 3}, {"random_state": 4}),
    *({"random_state": None}, {"penalty": 1.0}, {"penalty_prior": (3.0, 0.1)}, {"intercept_scale": 1.0}),
    *({"penalize_intercept": True}, {"standardize": False}, {"data": (X[:-1], y[:-1])}, {"data": (X, y[::-1])}),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, other):
    path = tmp_path / "fit"
    whole = fit(path)
    data = path.read_bytes()
    with pytest.raises(CheckpointError, match="belongs to another fit: data, prior or settings differ"):
        fit(path, **other)
    assert path.read_bytes() == data
    assert_same(whole, fit(path))


def test_units_may_change(tmp_path):
    """The chains see standardised covariates; the coefficients are for those of the fit at hand."""
    path = tmp_path / "fit"
    whole = fit(path)
    np.testing.assert_allclose(fit(path, (2 * X, y)).coef_, whole.coef_ / 2)


def test_one_fit_at_a_time(tmp_path):
    path = tmp_path / "fit"
    whole = fit(path)
    journal = Journal(path)
    with pytest.raises(CheckpointError, match="is in use"):
        fit(path)
    journal.close()
    assert_same(whole, fit(path))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_interruption_and_a_new_fit(tmp_path, short_rounds, monkeypatch, sampler):
    """Ctrl-C in tuning is raised, later it keeps the draws; either way the file is continued."""
    path, whole = tmp_path / "fit", fit(sampler=sampler)
    advance, calls = LogitSampler.advance, itertools.count(1)

    def interrupted(self, *args, **draws):
        if next(calls) in (5, 5 + 2 * SMALL["tune"] + 6):  # chains run side by side
            _thread.interrupt_main()
        advance(self, *args, **draws)

    with monkeypatch.context() as patch:
        patch.setattr(LogitSampler, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit(path, sampler=sampler)
        with pytest.warns(ConvergenceWarning, match=r"interrupted: the \d+ draws of each chain made so far were kept"):
            part = SparseLogitClassifier(sampler, **SMALL, checkpoint=path).fit(X, y)
    kept = part.trace_.shape[1]
    assert 0 < kept < SMALL["draws"] and part.n_iter_ == SMALL["tune"] + kept
    assert part.predict_proba(X).shape == (40, 3)
    np.testing.assert_array_equal(part.posterior_.coef, whole.posterior_.coef[:, :kept])
    assert_same(whole, fit(path, sampler=sampler))


def test_target_ess_stops_when_it_is_reached():
    """Without a word, with memory for twice the draws at most."""
    model = SparseLogitClassifier("polya-gamma", draws=200, tune=100, target_ess=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    found = model.diagnostics_
    measured = [found.coef, found.intercept, found.penalty]
    assert min(np.min(size) for part in measured for size in (part.ess_bulk, part.ess_tail)) >= 300
    assert max(np.nanmax(part.rhat) for part in measured) <= 1.01
    iterations, kept = model.n_iter_ - 100, model.posterior_.penalty.shape[1]
    assert 200 <= kept <= 400 and kept <= iterations < 20_000


def test_a_missed_target_warns_and_the_draws_are_thinned():
    """Room for 20: at 20, 40, 80 and 160 sweeps every second draw goes."""
    plain = fit(draws=250)
    with pytest.warns(ConvergenceWarning, match=r"at least 5000\).*Try SparseLogitClassifier\(max_draws=1000\), or "):
        model = SparseLogitClassifier(**SMALL | {"draws": 10}, target_ess=5000, max_draws=250).fit(X, y)
    assert model.n_iter_ == 258
    np.testing.assert_array_equal(model.posterior_.coef, plain.posterior_.coef[:, ::16])
    np.testing.assert_array_equal(model.posterior_.penalty, plain.posterior_.penalty[:, ::16])
    np.testing.assert_array_equal(model.trace_, plain.trace_[:, ::16])


def test_the_default_goes_on_until_predictions_are_settled():
    """At least 1,000 draws, as ever; the limit is kept and told."""
    model = SparseLogitClassifier("polya-gamma", penalty=1.0, tune=100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.diagnostics_.grade == "settled" and model.n_iter_ == 1100
    assert model._settings()["draws"] == 1000 and model._settings()["max_draws"] == 10_000 and model.draws is None
    said = (
        r"^SparseLogitClassifier\(max_draws=5\) stopped .* unknown: 5 draws a chain are too few, .*\(max_draws=250\)\.$"
    )
    with pytest.warns(ConvergenceWarning, match=said):
        assert SparseLogitClassifier(tune=2, chains=2, max_draws=5, random_state=0).fit(X, y).n_iter_ == 7


def test_a_fit_out_of_time_keeps_what_it_has(seconds):
    settings = SMALL | {"draws": 2_000_000, "sampler": "holmes-held"}
    with pytest.warns(ConvergenceWarning, match=r"effective .*Try SparseLogitClassifier\(max_seconds=2\), or sampler="):
        model = SparseLogitClassifier(**settings, penalty=1.0, target_ess=1e9, max_draws=10**8, max_seconds=0.5)
        model.fit(X, y)
    assert 50 <= model.n_iter_ < 70


def test_max_seconds_counts_tuning(tmp_path, seconds):
    settings = SMALL | {"tune": 10_000_000, "max_seconds": 0.3}
    words = r"^SparseLogitClassifier\(max_seconds=0.3\): there was time for [23]\d of 10,000,000 iterations of tuning"
    with pytest.warns(ConvergenceWarning, match=words):
        model = SparseLogitClassifier(**settings, checkpoint=tmp_path / "fit").fit(X, y)
    assert 20 < model.n_iter_ < 60 and ", 10,000,000" not in repr(model).split("\n", 1)[1]
    assert len(read(tmp_path / "fit")[0]) > 1
