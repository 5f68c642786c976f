"""The experiments of the reproduction, small: scores, splits, effective sample sizes, the limit, whole parts."""

import json

import numpy as np
import pytest
from sklearn.metrics import log_loss

from plackett.output.scores import scores
from plackett.paper import reproduce
from plackett.paper.figure3 import GRID, curve
from plackett.paper.held_out import evaluate, split, table, tasks
from plackett.paper.limit import ACTIVE, expected_active, limiting_active
from plackett.paper.methods import METHODS, chosen
from plackett.paper.plan import Plan
from plackett.paper.table3 import smallest_ess
from plackett.simulate import prior_weights

SMALL = {"sampler": {"draws": 20, "tune": 20, "chains": 1}, "forest": {"trees": 20}}


def test_ess_of_an_autoregression():
    """Var of a mean of an AR(1) gives ESS = N(1 − ρ)/(1 + ρ); the estimate has a relative error of about √(8τ/N)."""
    rho, n = 0.6, 40_000
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(n, 3))
    series = np.empty_like(noise)
    series[0] = noise[0] / np.sqrt(1 - rho**2)
    for t in range(1, n):
        series[t] = rho * series[t - 1] + noise[t]
    exact = n * (1 - rho) / (1 + rho)
    assert smallest_ess(series) == pytest.approx(exact, rel=0.1)
    slow = np.column_stack([noise[:, 0], series[:, 0]])
    assert smallest_ess(slow) == pytest.approx(exact, rel=0.1)  # the smallest of all columns


def test_scores_agree_with_their_definitions():
    rng = np.random.default_rng(1)
    classes = np.array(["a", "b", "c"])
    probability, truth = rng.dirichlet(np.ones(3), 50), rng.choice(classes, 50)
    found = scores(probability, truth, classes)
    assert found.log_loss == pytest.approx(log_loss(truth, probability, labels=classes))
    assert found.error == np.mean(classes[probability.argmax(axis=1)] != truth)
    hit = truth[:, None] == classes
    assert found.brier == pytest.approx(np.mean(np.sum((probability - hit) ** 2, axis=1)))


def test_splits_are_random_stratified_and_reproducible():
    _, y = table("iris")
    first, second, again = split(y, 0.8, 0), split(y, 0.8, 1), split(y, 0.8, 0)
    assert len(first[0]) == 120 and not np.intersect1d(*first).size
    assert np.array_equal(first[0], again[0]) and not np.array_equal(first[0], second[0])
    assert np.unique(y[first[1]], return_counts=True)[1].tolist() == [10, 10, 10]


@pytest.mark.brief(6)
@pytest.mark.parametrize("method", [key for key, method in METHODS.items() if method.available()])
def test_every_method_beats_guessing_on_lenses(method):
    """24 rows, 12 held out: any of them finds that a reduced tear rate means no lenses."""
    found = evaluate("lenses", 0.5, 0, method, SMALL.get(METHODS[method].kind, {}), seed=0)
    assert found["n_test"] == 12 and 0 <= found["error"] <= 0.5 and found["log_loss"] < 2 * np.log(3)


def test_settings_of_others_do_not_rename_a_run():
    """Longer chains leave the finished runs of the forest as they are, and the other way round."""
    short, long = ({"sampler": {"draws": n, "tune": n, "chains": 1}, "forest": {"trees": 10}} for n in (10, 20))
    methods = chosen("gibbs", "forest", "l2")
    before, after = (tasks("lenses", 0.5, 1, methods, settings) for settings in (short, long))
    assert before["gibbs", 0].file != after["gibbs", 0].file
    assert before["forest", 0].file == after["forest", 0].file and before["l2", 0].file == after["l2", 0].file


def test_roc_curve_of_a_known_ranking():
    heights, area = curve({"second": [0, 0, 1, 1], "probability": [0.1, 0.4, 0.35, 0.8]})
    assert area == 0.75 and heights[-1] == 1 and np.all(np.diff(heights) >= 0)
    assert heights[np.searchsorted(GRID, 0.25)] == pytest.approx(0.5)


def test_prior_number_of_active_weights_and_its_limit():
    p, shape = 40, 1 / 40
    draws = np.exp([prior_weights(1, p, shape, rng=seed)[0] for seed in range(4000)])
    active = (draws / draws.sum(axis=1, keepdims=True) > ACTIVE).sum(axis=1)
    error = active.std() / np.sqrt(len(active))
    assert expected_active(shape, p) == pytest.approx(active.mean(), abs=4 * error)
    assert expected_active(1e-5, 100_000) == pytest.approx(limiting_active(), rel=1e-3)
    assert limiting_active() == pytest.approx(-np.log(ACTIVE))  # α = 1


def test_plan_drops_what_was_not_asked_for_or_is_missing():
    plan = Plan(datasets=("iris", "heart"), missing={"heart": "no file"})
    assert plan.sets("lenses", "iris", "heart") == ["iris"]


@pytest.mark.long
def test_a_quick_part_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(Plan, "settings", SMALL)
    where = {"quick": True, "datasets": ["lenses"], "out": tmp_path, "jobs": 1, "progress": False}
    path = reproduce(["table1", "table2"], **where)
    html = path.read_text()
    assert "cannot be an error rate" in html and "PL-Gibbs" in html and "0.825 (0.071)" in html
    rows = json.loads((tmp_path / "tables" / "table2.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["Sparse Logit", "PL-Gibbs", "PL-Var"]
    assert rows[1]["paper"] == {"mean": 0.825, "sd": 0.071} and rows[1]["ours50"]["mean"] < 0.6
    assert "2012, 2013" in html and "numpy" in html  # seeds and versions
    monkeypatch.setattr("plackett.paper.runs.perform", lambda *task: pytest.fail("ran again"))
    assert reproduce(["table1", "table2"], **where).read_text() == html


@pytest.mark.long
def test_figures_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(Plan, "settings", SMALL)
    path = reproduce(["figure4"], quick=True, out=tmp_path, jobs=1, progress=False)
    for name in ("figure4.svg", "figure4.png"):
        assert (tmp_path / "figures" / name).stat().st_size > 5000
    assert path.read_text().count("data:image/svg+xml;base64,") == 1


def test_missing_data_are_said_on_the_page_and_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.delenv("PLACKETT_DATA", raising=False)
    table.cache_clear()
    where = {"out": tmp_path, "jobs": 1, "progress": False}
    with pytest.warns(UserWarning, match="left out for want of data: colon neither comes with the package"):
        html = reproduce(["table1", "colon"], **where).read_text()
    assert "Left out for want of data: colon neither comes with the package" in html
    for name in ("Lenses", "Wine", "Iris", "Heart", "German", "Pima"):
        assert f">{name}<" in html
    with pytest.raises(ValueError, match="None of the parts asked for can be run without data"):
        reproduce(["colon"], **where)
    table.cache_clear()
