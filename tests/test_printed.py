"""Tables as they are printed: headings, totals, and what is left out."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from plackett import PlackettLuceClassifier, explain
from plackett.directions import LearnedDirections
from plackett.model.diagnostics import diagnose
from plackett.output.printed import Sheet, printed

WINE = load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def learned():
    return PlackettLuceClassifier("em", features=LearnedDirections(components=1)).fit(*WINE)


@pytest.fixture(scope="module")
def fixed():
    return PlackettLuceClassifier("variational", features="exp", random_state=0).fit(*WINE)


def test_a_printed_explanation_adds_up(learned):
    why = explain(learned, WINE[0].iloc[0])
    head, *lines = str(why).splitlines()
    assert head == "Contributions to the log-odds of class 0, predicted with probability above 0.999"
    assert lines[0].startswith("reference: the mean of every column, with probability 0.")
    assert lines[1].split() == ["feature", "value", "contribution"]  # no intervals after EM
    numbers = [float(line.split()[-1]) for line in lines[2:]]
    assert lines[2].split()[0] == "reference" and lines[-1].split()[0] == "prediction"
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.005 * len(numbers))
    assert numbers[-1] == pytest.approx(why.attrs["prediction"], abs=0.005)


def test_small_contributions_are_one_line(learned, monkeypatch):
    monkeypatch.setattr("plackett.output.sheets.COLUMNS", 3)
    lines = str(explain(learned, WINE[0].iloc[0])).splitlines()
    names = ["reference", "alcohol", "proline", "alcalinity_of_ash", "10", "prediction"]
    assert [line.split()[0] for line in lines[3:]] == names
    numbers = [float(line.split()[-1]) for line in lines[3:]]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.03)


def test_a_printed_race_says_how_classes_fare(fixed):
    row = WINE[0].iloc[[0]]
    lines = str(explain(fixed, row)).splitlines()
    said = dict(re.findall(r"(\d) ([\d.]+)", lines[1]))
    for label, p in zip(fixed.classes_, fixed.predict_proba(row)[0], strict=True):
        assert float(said[str(label)]) == pytest.approx(p, abs=6e-4)
    assert lines[-1].endswith("others: 0.003") and len(lines) < 12  # of 81 features and classes


def test_a_summary_has_one_line_a_component_or_weight_in_use(learned, fixed):
    table = learned.summary()
    assert list(table) == ["component", "share", "votes for", "vote", "direction"]
    assert table["component"].is_unique and (table["share"] > 0).all()
    text = repr(learned.summary())
    assert text.startswith("3 classes, 3 learned directions") and "per standard deviation" in text
    text = str(fixed.summary())
    assert text.endswith("of 81 are about 0, with their intervals, and not shown") and len(text.splitlines()) < 20
    assert len(fixed.summary()) == 81  # the data frame has them all


def test_what_comes_from_a_printed_frame_is_plain(fixed):
    why = explain(fixed, WINE[0].iloc[0])
    for other in (why.head(), why[why["probability"] > 0.1], copy.deepcopy(why), pickle.loads(pickle.dumps(why))):
        assert type(other) is pd.DataFrame
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(why)), pd.DataFrame(why))
    assert pickle.loads(pickle.dumps(why)).attrs == why.attrs
    why["other"] = 1.0
    assert repr(why) == repr(pd.DataFrame(why))


def test_diagnostics_count_in_words():
    draws = np.random.default_rng(0).uniform(size=(2, 30, 4, 3))
    assert repr(diagnose(probability=draws)).startswith("Diagnostics of 12 probabilities:")
    assert repr(diagnose(probability=draws, shape=draws[..., 0, 0])).startswith(
        "Diagnostics of 12 probabilities, 1 shape:"
    )


def test_html_is_escaped():
    table = printed({"x": np.array([1.0])}, lambda t: Sheet(["<b>"], {"<i>": ["<u>"]}, ["<s>"]), "x")
    assert table._repr_html_() == (
        '<div><p>&lt;b&gt;</p><table><thead><tr><th scope="col">&lt;i&gt;</th></tr></thead>'
        "<tbody><tr><td>&lt;u&gt;</td></tr></tbody></table><p>&lt;s&gt;</p></div>"
    )
