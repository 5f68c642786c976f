"""Our R-hat and effective sample sizes are ArviZ's."""

import pickle
import re

import numpy as np
import pytest
from arviz_stats.base import array_stats

from plackett import Gibbs
from plackett.model.diagnostics import Diagnostics, Measures, advice, agreement, diagnose, early_diagnostics
from plackett.model.measures import measures

KIND = {"chain_axis": 0, "draw_axis": 1}


def autoregressive(phi, chains, draws, seed):
    rng = np.random.default_rng(seed)
    x = np.zeros((chains, draws))
    noise = rng.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("chains, draws", [(4, 1000), (2, 101), (1, 500), (4, 20)])
def test_measures_equal_arviz(chains, draws):
    columns = [autoregressive(phi, chains, draws, seed) for seed, phi in enumerate((0.0, 0.5, 0.95, -0.6, 0.999))]
    columns.append(np.exp(3 * columns[1]))  # heavy tail
    columns.append(np.round(columns[0]))  # ties
    columns.append(columns[2] + 3 * np.arange(chains)[:, None])  # chains that disagree
    x = np.stack(columns, axis=2).reshape(chains, draws, 2, -1)
    rhat, bulk, tail = measures(x)
    if chains > 1:  # ArviZ gives none for one chain; halves of it can be compared all the same
        np.testing.assert_allclose(rhat, array_stats.rhat(x, **KIND), rtol=1e-8)
    np.testing.assert_allclose(bulk, array_stats.ess(x, method="bulk", **KIND), rtol=1e-6)
    np.testing.assert_allclose(tail, array_stats.ess(x, method="tail", prob=(0.05, 0.95), **KIND), rtol=1e-6)


def test_a_constant_has_no_rhat_and_counts_as_independent():
    rhat, bulk, tail = measures(np.ones((2, 50, 1)))
    assert np.isnan(rhat[0]) and bulk[0] == 100 and tail[0] == 100


BAD = Diagnostics(
    dict.fromkeys(("weights", "shape", "probability"), Measures(*np.array([1.5, 20.0, 20.0]))), 0.1, 0.1, 0.2, apart=1.5
)
APART = Diagnostics({"probability": Measures(*np.array([[2.0], [5.0], [5.0]]))}, 0.1, 0.1, 0.2, apart=9.0)


@pytest.mark.parametrize("chains, draws", [(4, 250), (8, 250), (16, 1000)])
@pytest.mark.parametrize("found", [BAD, APART], ids=["weights", "directions"])
@pytest.mark.parametrize(
    "limits, end", [({}, None), ({"target_ess": 400.0}, None), ({"max_seconds": 2.5}, "max_seconds")]
)
def test_advice_is_new(found, chains, draws, limits, end):
    """Whatever it names is more than the run had."""
    settings = Gibbs(draws=draws, tune=100, chains=chains, max_draws=1000, **limits)
    words = [advice(found, settings, end), advice(None, settings, end)]
    assert (words[1] is None) == (end is None)  # what is unknown warns only where a limit came too early
    for word in filter(None, words):
        advised = re.findall(r"Gibbs\((\w+)=([^)]*)\)", word)
        assert advised
        for name, value in advised:
            before = getattr(settings, name)
            assert before is None or float(value) >= 2 * before
    if end is not None:
        assert f"Gibbs({end}=10)" in advice(found, settings, end)


def test_weights_that_mix_slowly_are_no_fault_of_a_fit():
    """Predictions decide, with all features; that single weights ask for more is told, with the remedy."""
    slow = Measures(*np.array([1.2, 30.0, 30.0]))
    found = Diagnostics({"weights": slow, "probability": Measures(*np.array([1.02, 300.0, 300.0]))}, 0.001, 0.002, 0.05)
    assert advice(found, Gibbs(draws=250), None) is None
    good, words = agreement(found)
    assert good and words.startswith("predictions are settled: averaged probabilities are within ±0.001 of")
    lacking = (
        "the largest R-hat is 1.20 (should be at most 1.01) and the smallest effective sample size is 30 (should be"
    )
    assert f"to read single weights, go on with Gibbs(target_ess=400): {lacking} at least 400)" in words
    asked = advice(found, Gibbs(draws=250, max_draws=1000, target_ess=50), "max_draws")
    assert "largest R-hat is 1.20 (should be at most 1.01) and the smallest effective sample size is 30" in asked
    logit = Diagnostics({"coef": slow}, 0.03, 0.1, 0.02)
    assert "SparseLogitClassifier(target_ess=400)" in agreement(logit, "SparseLogitClassifier")[1]
    assert agreement(logit)[0] is False and "single coefficients" in agreement(logit)[1]
    assert agreement(Diagnostics({"coef": slow, "intercept": slow, "penalty": slow}))[0] is None
    assert agreement(None)[0] is None


def test_the_probability_that_mixes_worst_is_kept():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.3, 0.7, size=(4, 50, 5, 3))
    x[..., 2, 1] += 0.05 * np.arange(4)[:, None]
    found = diagnose(probability=x)
    (title, values) = found.scalars(np.array(["a", "b", "c"]))["probability"]
    np.testing.assert_array_equal(values, x[..., 2, 1])
    assert title == "probability of b" and found.prediction_rhat == found.probability_rhat[2, 1]


def test_groups_are_found_by_the_names_of_their_measures():
    rng = np.random.default_rng(0)
    draws = {"weights": rng.normal(size=(4, 50, 2, 3)), "probability": rng.uniform(size=(4, 50, 5, 2))}
    found = diagnose(**draws, shape=None)
    for group, prefix in (("weights", ""), ("probability", "probability_")):
        for name, measured in zip(("rhat", "ess_bulk", "ess_tail"), measures(draws[group]), strict=True):
            np.testing.assert_array_equal(getattr(found, prefix + name), measured)
            np.testing.assert_array_equal(getattr(getattr(found, group), name), measured)
    assert np.isnan(found.shape_rhat) and not found.predictive
    assert found.worst_rhat == max(found.rhat.max(), found.probability_rhat.max())
    sizes = [*measures(draws["weights"])[1:], *measures(draws["probability"])[1:]]
    assert found.smallest_ess == min(size.min() for size in sizes)
    errors = array_stats.mcse(draws["probability"], method="mean", **KIND)
    assert found.error == pytest.approx(np.sqrt((errors**2).mean()), rel=0.3) and found.grade == "good enough to use"
    assert found.prediction_rhat == found.probability_rhat.max() and (found.chains, found.draws) == (4, 50)
    same = pickle.loads(pickle.dumps(found))
    assert same.smallest_ess == found.smallest_ess and repr(same) == repr(found)
    with pytest.raises(AttributeError, match="no 'penalty' among weights, probability, shape"):
        found.penalty  # noqa: B018
    assert not hasattr(diagnose(probability=draws["probability"]), "rhat")
    assert diagnose(probability=draws["probability"][:, :3]) is None


def test_records_of_the_first_files_are_understood():
    one = Measures(*np.array([1.1, 20.0, 30.0]))
    by_name = {"rhat": one.rhat, "ess_bulk": one.ess_bulk, "ess_tail": one.ess_tail}
    of = {group: {f"{group}_{name}": value for name, value in by_name.items()} for group in ("shape", "probability")}
    found = Diagnostics(**early_diagnostics(by_name | of["shape"] | of["probability"]))
    assert found.groups == dict.fromkeys(("weights", "shape", "probability"), one)
    directions = Diagnostics(**early_diagnostics(of["probability"] | {"error": 0.2}))
    fields = {"error": 0.2, "largest_error": 0.2, "prediction_rhat": 1.1}
    assert directions.groups == {"probability": one} and directions.predictive
    assert {name: getattr(directions, name) for name in fields} == fields and directions.grade == "not to be trusted"
    named = Diagnostics(**early_diagnostics({"coef": one, "intercept": one, "penalty": one}))
    assert named.penalty == one and list(named.groups) == ["coef", "intercept", "penalty"]
    assert np.isnan([named.largest_error, named.prediction_rhat]).all()  # two NaN are not equal
    with pytest.raises(ValueError, match="effective sample sizes of weights, got 1"):
        early_diagnostics({"rhat": one.rhat})


def test_what_the_draws_hardly_move_is_right_in_any_case():
    """Chains far apart, relative to how little they move, at probabilities next to 0."""
    rng = np.random.default_rng(0)
    steady = np.broadcast_to(rng.uniform(0.3, 0.7, size=(4, 400, 1, 1)) * 0.02 + 0.5, (4, 400, 3, 1))
    apart = 1e-6 * np.arange(1, 5)[:, None, None, None] * rng.uniform(0.9, 1, size=(4, 400, 3, 1))
    found = diagnose(probability=np.concatenate([steady, apart], axis=3))
    assert found.worst_rhat > 2 and found.grade == "settled"
    assert diagnose(probability=np.concatenate([steady, 1e5 * apart], axis=3)).grade == "not to be trusted"
