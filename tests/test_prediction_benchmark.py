"""The prediction benchmark: its scores, splits, resumption and verdicts."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn import metrics

from benchmarks.prediction.methods import RIVALS, Forest
from benchmarks.prediction.run import cells, path_of, run, run_cell, write
from benchmarks.prediction.scores import calibration_error, calibration_noise, score
from benchmarks.prediction.sets import SETS, make_split
from benchmarks.prediction.table import verdict, write_tables
from plackett.datasets import load


def test_scores_equal_scikit_learn():
    rng = np.random.default_rng(0)
    probability, codes = rng.dirichlet(np.ones(4), size=50), rng.integers(4, size=50)
    got = score(probability, codes)
    assert got["log_loss"] == pytest.approx(metrics.log_loss(codes, probability, labels=range(4)))
    brier = metrics.brier_score_loss(codes, probability, labels=range(4), scale_by_half=False)
    assert got["brier"] == pytest.approx(brier)
    assert got["error"] == pytest.approx(1 - metrics.accuracy_score(codes, probability.argmax(axis=1)))
    assert got["hit"].count("1") == round(50 * (1 - got["error"]))


def test_a_zero_probability_costs_a_finite_loss():
    assert score(np.array([[1.0, 0.0]]), np.array([1]))["log_loss"] == pytest.approx(-np.log(1e-12))


def test_calibration_error_by_hand():
    confidence = np.repeat([0.6, 0.9], 10)
    hit = np.array([1] * 8 + [0] * 2 + [1] * 7 + [0] * 3)
    assert calibration_error(confidence, hit, bins=2) == pytest.approx((0.2 + 0.2) / 2)
    assert calibration_error(confidence, hit, bins=1) == pytest.approx(0.0)


def test_calibrated_forecasts_show_no_more_than_the_noise():
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.5, 1.0, size=20_000)
    hit = rng.random(20_000) < confidence
    noise = calibration_noise(confidence, repeats=50)
    assert calibration_error(confidence, hit) < 2 * noise < 0.02
    assert calibration_error(np.minimum(confidence + 0.1, 1.0), hit) > 0.05


@pytest.mark.parametrize(
    "name", ["lenses", *(pytest.param(name, marks=pytest.mark.data) for name in ("letter", "swissmetro"))]
)
def test_halves_and_folds_are_apart(name):
    split, data = make_split(name, 0), load(name)
    unit = data.groups if name == "swissmetro" else np.arange(len(data.y))
    assert not set(unit[split.train]) & set(unit[split.test])
    for train, test in split.folds:
        assert not set(unit[split.train][train]) & set(unit[split.train][test])
        assert set(split.y_train[train]) == set(split.y_train)
    assert len(set(unit[split.train])) == (SETS[name].half or len(data.y) // 2)


def test_splits_differ_and_repeat():
    first, again, second = make_split("iris", 0), make_split("iris", 0), make_split("iris", 1)
    np.testing.assert_array_equal(first.train, again.train)
    assert set(first.train) != set(second.train)


@pytest.mark.brief("logistic-l2", "forest")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", [method for method in RIVALS if "catboost" not in method or find_spec("catboost")])
def test_rivals_give_probabilities(method):
    split = make_split("lenses", 0)
    fitted = RIVALS[method](split.folds[:1], 0).fit(split.X_train, split.y_train)
    probability = fitted.predict_proba(split.X_test)
    assert probability.shape == (12, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability > 0).all()


def test_forest_adds_one_even_vote():
    X = np.arange(20.0)[:, None]
    forest = Forest(10, bootstrap=False, random_state=0).fit(X, X[:, 0] > 9)
    np.testing.assert_allclose(forest.predict_proba([[0.0]]), [[10.5 / 11, 0.5 / 11]])


@pytest.mark.long
def test_finished_cells_are_not_run_again(tmp_path):
    paths = [path_of(tmp_path / "a", "lenses", split, "logistic-l2") for split in range(10)]
    for path in paths[:-1]:
        write(path, {"finished": True})
    assert run(["lenses"], ["logistic-l2"], 1, tmp_path / "a", show=False) == 1
    assert all(json.loads(path.read_text()) == {"finished": True} for path in paths[:-1])
    assert sorted((tmp_path / "a").rglob("*.json")) == sorted((tmp_path / "a" / "lenses").iterdir()) == sorted(paths)
    run_cell("lenses", 9, "logistic-l2", tmp_path / "b")
    got, again = (json.loads(path_of(tmp_path / f, "lenses", 9, "logistic-l2").read_text()) for f in "ab")
    del got["seconds"], again["seconds"]
    assert got == again and got["log_loss"] > 0


@pytest.mark.data
def test_gaussian_process_is_for_small_sets():
    assert {name for name, _, _ in cells(SETS, ["gaussian-process"])}.isdisjoint({"segment", "satimage", "letter"})


def test_every_split_has_its_cell():
    assert len(cells(SETS, ["mlp"])) == 10 * 10 + 4 * 5


def put(results, name, method, losses):
    for split, loss in enumerate(losses):
        cell = {"log_loss": loss, "error": 0.1, "brier": 0.2, "seconds": 1.0, "warnings": []}
        write(path_of(results, name, split, method), {**cell, "confidence": [0.9] * 10, "hit": "1" * 8 + "00"})


def test_verdict_counts(tmp_path):
    wave = np.tile([0.0, 0.2], 5)  # paired differences of standard error .1·√(10/9)/√10 = .0333
    put(tmp_path, "heart", "logistic-l2", 0.5 + 0 * wave)
    put(tmp_path, "heart", "forest", 0.4 + 0 * wave)
    put(tmp_path, "heart", "learned", 0.33 + wave)  # .43: below the logit, within one standard error of the forest
    put(tmp_path, "iris", "logistic-l2", 0.2 + 0 * wave)
    put(tmp_path, "iris", "learned", 0.15 + wave)  # .25: above the logit by more than one standard error
    put(tmp_path, "wine", "learned", [0.1] * 9)  # one split is missing
    text = write_tables(tmp_path, tmp_path / "out")
    said = json.loads((tmp_path / "out" / "table.json").read_text())["verdicts"]["learned"]
    assert said["sets"] == 2
    assert said["below_reference"] == ["heart"]
    assert said["best_or_within_one_standard_error"] == ["heart"]
    assert said["ratio_to_reference"] == pytest.approx({"heart": 0.43 / 0.5, "iris": 1.25})
    assert said["calibration_above_5_percent"] == ["heart"] and said["calibration_judged_on"] == 1
    assert "| heart† | 0.430 (0.033) | 0.500 (0.000) | **0.400** |" in text
    assert "at worst 1.250 times as high (iris)" in text
    assert "wine" not in text
    assert (tmp_path / "out" / "table.md").read_text() == text


def test_verdict_needs_the_reference():
    column = {"log_loss": [0.1, 0.2], "calibration": 0.0}
    assert verdict({"iris": {"learned": column}}, "learned")["sets"] == 0
