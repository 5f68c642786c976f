"""The claimed error of averaged probabilities is the actual one, by simulation; what it is called, and what is said."""

import re
import warnings

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
from plackett.directions.neighbours import like_new, situations_like_new
from plackett.model.diagnostics import LIMIT, NO_GAIN, Diagnostics, Measures, advice, agreement, diagnose
from plackett.model.mixture import Entries, contributions, sharpened
from plackett.model.verdict import (
    BAD,
    FEWEST_DRAWS,
    GOOD,
    PRECISE,
    PRECISE_95,
    PRECISE_IF_WIDE,
    SETTLED,
    UNKNOWN,
    USABLE,
    USABLE_95,
    beyond,
    dimensions,
    gains_little,
    grade,
    precision_of,
    quantile_95,
)

MEAN, DEVIATION, RUNS = 0.5, 0.05, 200
FINE = Measures(*np.array([1.0, 4000.0, 4000.0]))


def simulated(rng, chains, draws, phi, apart, rows=20, latent=5):
    """Chains of probabilities of two classes, autoregressive in a few directions, each about a mode of its own."""
    noise = rng.normal(size=(chains, draws + 200, latent))
    walk = lfilter([np.sqrt(1 - phi**2)], [1, -phi], noise, axis=1)[:, 200:]
    walk = walk @ rng.normal(size=(latent, rows)) / np.sqrt(latent)
    modes = apart * rng.normal(size=(chains, 1, latent)) @ rng.normal(size=(latent, rows)) / np.sqrt(latent)
    p = MEAN + DEVIATION * (walk + modes)
    return np.stack([p, 1 - p], axis=-1)


@pytest.mark.parametrize("chains", [2, 4, 8])
@pytest.mark.parametrize(
    "phi, apart", [(0.0, 0.0), (0.9, 0.0), (0.99, 0.0), (0.5, 1.0)], ids=["independent", "quick", "slow", "modes"]
)
def test_the_claim_is_the_actual_error(chains, phi, apart):
    """Claims about as large as errors, which are known here, and as many errors within ±error_95 as it says."""
    rng = np.random.default_rng(0)
    found, squares, inside = [], [], []
    for _ in range(RUNS):
        x = simulated(rng, chains, 150, phi, apart)
        found.append(precision_of(x))
        error = np.abs(x.mean(axis=(0, 1))[:, 0] - MEAN)
        squares.append((error**2).mean())
        inside.append((error <= found[-1].error_95).mean())
    ratio = np.sqrt(np.mean([each.error**2 for each in found]) / np.mean(squares))
    # Rows share 5 directions: a run's mean square has a relative deviation of about √(2/5).
    noise = 4 * np.sqrt(2 / 5 / RUNS) / 2
    assert (
        1 - noise <= ratio <= 1.15 + noise + 0.35 * (chains == 2)
    )  # the larger of two estimates is a little too large
    short = 4 * np.std(inside) / np.sqrt(RUNS)
    assert np.mean(inside) >= 0.95 - short - 0.03 * (chains == 2)


def test_halves_of_a_chain_do_not_stand_for_chains():
    """Chains that never leave their mode: their autocorrelation promises much more than their averages hold."""
    x = simulated(np.random.default_rng(1), 4, 600, 0.0, 3.0)
    found, actual = precision_of(x), x.mean(axis=1).std(axis=0, ddof=1) / 2
    assert found.error == pytest.approx(np.sqrt((actual**2).mean()))
    assert found.apart > 100 and found.width == pytest.approx(x.std(axis=(0, 1)).mean(), rel=0.3)
    more = precision_of(np.concatenate([x, simulated(np.random.default_rng(1), 4, 600, 0.0, 3.0)], axis=1))
    assert more.error > 0.9 * found.error  # longer chains do not help


def test_predictions_from_some_of_the_draws():
    x = simulated(np.random.default_rng(2), 4, 4000, 0.0, 0.0)
    assert precision_of(x).error == pytest.approx(DEVIATION / np.sqrt(16000), rel=0.3)
    assert precision_of(x, averaged=400).error == pytest.approx(DEVIATION / 20, rel=0.1)


def test_a_mode_has_no_error_and_a_power_multiplies_it():
    rng = np.random.default_rng(3)
    x = simulated(rng, 4, 300, 0.5, 0.5)
    mode = np.full((20, 2), 0.5)
    halved = precision_of(x, contributions(x, mode, 0.5, 1.0))
    assert halved.error == pytest.approx(precision_of(x).error / 2) and halved.width == precision_of(x).width
    for weight, power in ((0.0, 1.0), (0.3, 1.0), (0.3, 1.4), (0.6, 0.5)):
        found = contributions(x, mode, weight, power)
        predicted = sharpened(weight * mode + (1 - weight) * x.mean(axis=(0, 1)), power)
        np.testing.assert_allclose(found.mean(axis=(0, 1)), predicted, rtol=1e-12)
        np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-12)
        step = 1e-6 * (x[0, 0] - x.mean(axis=(0, 1)))  # the slope in the direction of a draw
        moved = sharpened(weight * mode + (1 - weight) * (x.mean(axis=(0, 1)) + step), power)
        np.testing.assert_allclose((moved - predicted) / 1e-6, found[0, 0] - predicted, atol=1e-6)


def test_parts_of_the_estimate():
    rng = np.random.default_rng(4)
    assert quantile_95(np.full(7, 0.02)) == pytest.approx(0.02 * norm.ppf(0.975))
    assert quantile_95(np.zeros(3)) == 0.0
    errors = np.array([0.01, 0.1, 0.0])
    assert (2 * norm.cdf(quantile_95(errors) / errors[:2]) - 1).sum() + 1 == pytest.approx(0.95 * 3)
    for latent in (1, 20):
        away = rng.normal(size=(30, latent)) @ rng.normal(size=(latent, 400)) / np.sqrt(latent)
        assert dimensions(away - away.mean(axis=0)) == pytest.approx(latent, rel=0.35)
    assert dimensions(np.array([[1.0, 2.0], [-1.0, -2.0]])) == 1.0


def test_what_never_varies_has_no_error():
    """An alternative that is not available does not count; what all draws agree on is settled."""
    x = simulated(np.random.default_rng(5), 4, 100, 0.0, 0.0)
    padded = np.concatenate([x, np.zeros((4, 100, 20, 3))], axis=3)
    for mine, other in zip(precision_of(x), precision_of(padded), strict=True):
        assert mine == pytest.approx(other)
    assert precision_of(np.full((4, 100, 3, 2), 0.5)) == (0.0, 0.0, 0.0, 0.0, 0.0)
    stuck = np.broadcast_to(np.array([0.4, 0.5, 0.6])[:, None, None, None], (3, 100, 1, 2))
    assert precision_of(stuck).apart > 1e9 and precision_of(stuck).error == pytest.approx(0.1 / np.sqrt(3))


def test_rows_like_new_ones_lie_between_neighbours():
    rng = np.random.default_rng(7)
    units = np.repeat(np.arange(30), 2)
    Z = np.repeat(rng.normal(size=(30, 3)), 2, axis=0) + 0.01 * rng.normal(size=(60, 3))
    for those, alike in ((None, True), (units, False)):  # the nearest row is one of the same person
        found = like_new(Z, 40, those)
        np.testing.assert_array_equal(found, like_new(Z, 40, those))
        assert found.shape == (40, 3) and all(np.isin(found[:, f], Z[:, f]).all() for f in range(3))
        assert (np.abs(found[:, None] - Z).max(axis=2).min(axis=1) > 0.1).any()  # others than those that were seen
        if not alike:
            own = Z[np.linspace(0, 59, 40).astype(int)]
            moved = found != own
            assert moved.any(axis=1).mean() > 0.8 and np.abs(found - own)[moved].min() > 1e-4
    np.testing.assert_array_equal(like_new(Z[:1], 40), Z[:1])
    np.testing.assert_array_equal(like_new(Z[:4], 40, np.zeros(4, dtype=int)), Z[:4])


def test_situations_like_new_ones_keep_alternatives_and_persons_together():
    """A column of constants stays, and one of the person is that of one person in the whole situation."""
    rng = np.random.default_rng(8)
    T, A = 30, 3
    Z = np.column_stack([np.tile(10.0 * np.arange(A), T), np.repeat(rng.normal(size=T), A), rng.normal(size=T * A)])
    entries = Entries(Z, np.zeros(T * A, dtype=int), np.arange(T * A), A * np.arange(T + 1))
    found = situations_like_new(entries, entries, np.eye(T, dtype=bool))
    new, old = found.Z.reshape(T, A, 3), Z.reshape(T, A, 3)
    np.testing.assert_array_equal(new[..., 0], old[..., 0])
    assert (np.ptp(new[..., 1], axis=1) == 0).all() and np.isin(new[..., 1:], Z[:, 1:]).all()
    assert 0.6 < (new != old).any(axis=(1, 2)).mean() < 1
    np.testing.assert_array_equal(situations_like_new(entries, entries, np.ones((T, T), dtype=bool)).Z, Z)


@pytest.mark.parametrize("chains, draws", [(1, 1000), (4, FEWEST_DRAWS - 1), (1, 10), (4, 1000)])
def test_what_cannot_be_judged_is_unknown(chains, draws):
    x = simulated(np.random.default_rng(6), chains, draws, 0.0, 0.0)
    if draws == 1000 and chains == 4:
        x[2, 500, 3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = diagnose(probability=x)
    assert found.grade == UNKNOWN and np.isnan([found.error, found.error_95, found.width]).all()
    why = {1: "a single chain has none to be compared with"}.get(chains, f"{draws} draws a chain are too few")
    why = "some probabilities of the draws are no numbers" if np.isnan(x).any() else why
    good, words = agreement(found)
    assert good is None and words.startswith(f"whether predictions are settled is unknown: {why}")
    settings = Gibbs(draws=draws, tune=10, chains=chains, max_draws=1000)
    assert advice(found, settings, None) is None  # only what is not to be trusted warns
    ended = advice(found, settings, "max_draws")  # but a limit that left too little says so
    assert why in ended and ("Gibbs(chains=4)" if chains == 1 else "Gibbs(max_draws=4000)") in ended


def test_thresholds():
    tiny = 1e-6
    assert grade(PRECISE) == SETTLED and grade(PRECISE + tiny) == GOOD
    assert grade(PRECISE_IF_WIDE, PRECISE_95, 4 * PRECISE_IF_WIDE) == SETTLED
    assert grade(PRECISE, PRECISE_95 + tiny, 0.1) == GOOD
    assert grade(PRECISE_IF_WIDE + tiny, 0.05, 1.0) == GOOD == grade(PRECISE_IF_WIDE, 0.05, 3.9 * PRECISE_IF_WIDE)
    assert grade(USABLE, USABLE_95, 0.05) == GOOD
    assert grade(USABLE + tiny, USABLE_95, 0.05) == BAD == grade(USABLE, USABLE_95 + tiny, 0.05)
    assert grade(USABLE + tiny, 2 * USABLE, 4.01 * USABLE) == GOOD  # a quarter of the posterior deviation
    assert (
        grade(0.02, USABLE_95 + tiny, 1.9 * USABLE_95) == BAD and grade(0.02, USABLE_95 + tiny, 2.1 * USABLE_95) == GOOD
    )
    assert grade(np.nan, 0.001, 0.1) == UNKNOWN and grade(0.02) == GOOD
    assert gains_little(0.01) and not gains_little(0.0105)
    assert gains_little(0.0135, 0.05, 0.2) and not gains_little(0.014, 0.05, 0.2)
    assert not gains_little(0.001, 0.052, 0.2)


def of(error, error_95, width, **more):
    return Diagnostics({"probability": FINE}, error, error_95, width, **{"chains": 4, "draws": 150} | more)


def test_the_words_of_each_grade():
    numbers = "averaged probabilities are within ±0.004 of what endless draws would give (95 % of rows: ±0.012; "
    assert of(0.004, 0.0123, 0.06).sentence == f"predictions are settled: {numbers}posterior deviation: 0.060)"
    assert of(0.0002, 0.0004, 0.06).sentence.startswith(
        "predictions are settled: averaged probabilities are within ±0.001"
    )
    usable = of(0.0101, 0.03, 0.04)
    assert usable.sentence.startswith("predictions are good enough to use: averaged probabilities are within ±0.010 of")
    assert of(0.0101, 0.03, 0.04, ended=NO_GAIN).sentence.endswith("; twice as many draws would improve that little")
    assert of(0.0101, 0.03, 0.04, ended=LIMIT).sentence == f"{usable.sentence}; the run ended at its limit"
    for bad, words in (
        (of(0.03, 0.2, 0.05, apart=9.0), "may differ by ±0.030 (should be at most ±0.025) from"),
        (of(0.02504, 0.2, 0.05, apart=9.0), "may differ by ±0.02504 (should be at most ±0.025) from"),
        (
            of(0.02, 0.1002, 0.05, apart=2.0),
            "may differ by up to ±0.1002 in 95 % of rows (should be at most ±0.1) from",
        ),
    ):
        assert bad.sentence.startswith("predictions are not to be trusted: averaged probabilities ")
        assert words in bad.sentence and bad.sentence.count("should be") == 1
        assert bad.sentence.endswith("; the chains disagree" if bad.apart > 4 else "; the chains move slowly")
        assert agreement(bad)[0] is False and agreement(usable)[0] is True
        settings = Gibbs(draws=150, tune=150, max_draws=1000)
        assert advice(usable, settings, "max_draws") is None
        assert advice(bad, settings, "max_draws").startswith(bad.sentence)
        assert ("Gibbs(chains=16), or" in advice(bad, settings, "max_draws")) == (bad.apart > 4)
    assert "unknown" in agreement(None)[1] and agreement(None)[0] is None


def test_digits_show_the_reason():
    assert (
        beyond(1.0500001, 1.05, 2) == "1.0500001"
        and beyond(1.2, 1.05, 2) == "1.20"
        and beyond(399.7, 400, 0) == "399.7"
    )
    barely = Diagnostics(
        {"weights": Measures(*np.array([1.0132, 418.0, 500.0])), "probability": FINE}, 0.001, 0.002, 0.05
    )
    said = agreement(barely)[1].split("; to read ")[1]
    assert (
        said == "single weights, go on with Gibbs(target_ess=400): the largest R-hat is 1.013 (should be at most 1.01)"
    )


@pytest.mark.parametrize("model", [PlackettLuceClassifier, SparseLogitClassifier])
def test_ten_draws_of_one_chain_tell_nothing(iris, model):
    """Neither a warning, as nothing is known to be wrong, nor a pass."""
    short = {"draws": 10, "tune": 10, "chains": 1}
    own = {"sampler": "holmes-held", **short} if model is SparseLogitClassifier else {"inference": Gibbs(**short)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        clf = model(**own, random_state=0).fit(*iris)
    assert clf.posterior_.verdict(clf)[0] is None and clf.diagnostics_.grade == UNKNOWN
    assert "whether predictions are settled is unknown: a single chain" in repr(clf)


def test_one_sentence_everywhere(iris, tmp_path):
    """In the warning, the summary, the HTML and the diagnostics."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(19, 15)), rng.integers(4, size=19)  # too few rows to hold some out
    with pytest.warns(ConvergenceWarning) as caught:
        clf = PlackettLuceClassifier(Gibbs(chains=2, tune=10, draws=30), random_state=0).fit(X, y)
    sentence = clf.diagnostics_.sentence
    assert clf.diagnostics_.grade == BAD and str(caught[0].message).startswith(f"{sentence}. Try Gibbs(")
    assert sentence in repr(clf) and sentence in re.sub("&[a-z]+;", "", clf._repr_html_())


def test_an_open_ended_run_ends_when_the_number_is_reached(iris):
    clf = PlackettLuceClassifier(random_state=0).fit(*iris)
    assert clf.diagnostics_.grade == SETTLED and clf.diagnostics_.ended == ""
    assert clf.n_iter_ < 150 + clf.inference_.max_draws
    single = PlackettLuceClassifier(Gibbs(tune=20, chains=1), random_state=0).fit(*iris)
    assert single.n_iter_ == 20 + 150 and single.diagnostics_.grade == UNKNOWN  # there is nothing to wait for
