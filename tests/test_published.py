"""Published numbers: a fresh fit agrees with the table of the documentation, and the table with its sources."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.published.__main__ import STUDIES, TOOLS, fitted
from benchmarks.published.pages import cells, table_of, whole
from plackett.datasets import load

FOLDER = Path(__file__).parents[1] / "docs" / "coming"
TABLE = json.loads((FOLDER / "table.json").read_text(encoding="utf-8"))


def key(row):
    return row["tool"], row["data"], row["model"], row["source"], row["quantity"]


WRITTEN = {key(row): row for row in TABLE["rows"]}


def case(study):
    """Sets that do not come with the package are marked `data`, and draws of random tastes take long."""
    marks = [pytest.mark.data] if study.file else [pytest.mark.long] if "taste" in study.model else []
    return pytest.param(study, marks=marks, id=study.name)


@pytest.mark.parametrize("study", [case(study) for study in STUDIES])
def test_a_fresh_fit_agrees_with_the_table(study):
    """Maxima to the last printed digit, averages of draws within their Monte Carlo error."""
    printed = study.printed()
    for row in study.rows():
        each, written = printed[row["quantity"]], WRITTEN[key(row)]
        assert abs(row["difference"]) <= each.allowed, row
        assert row["ours"] == pytest.approx(written["ours"], abs=each.noise or 10.0**-each.decimals, rel=0), row


def test_the_table_has_all_studies_and_no_others():
    named = [
        (study.tool, study.data, study.model, study.source, what, each.text, each.allowed)
        for study in STUDIES
        for what, each in study.printed().items()
    ]
    assert [(*key(row), row["theirs"], row["allowed"]) for row in TABLE["rows"]] == named
    assert len(WRITTEN) == len(named) and TABLE["left out"] == []


def test_the_table_is_within_what_is_allowed():
    for row in TABLE["rows"]:
        assert row["difference"] == pytest.approx(row["ours"] - float(row["theirs"]), abs=1e-9)
        assert abs(row["difference"]) <= row["allowed"], row


def test_pages_show_the_table():
    assert (FOLDER / "numbers" / "all.md").read_text(encoding="utf-8") == whole(TABLE["rows"], [])
    shown = ""
    for name in TOOLS:
        text = (FOLDER / "numbers" / f"{name}.md").read_text(encoding="utf-8")
        assert text == table_of(TABLE["rows"], name)
        shown += text
    assert shown.count("\n| ") == len(TABLE["rows"]) + shown.count("| quantity |")
    pages = "".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    assert all(f"{{include}} numbers/{name}.md" in pages for name in ("all", *TOOLS))


def test_a_difference_of_left_out_digits_is_none():
    row = {"theirs": "-.29", "ours": -0.29193, "difference": -0.00193}
    assert cells(row) == ("−0.29", "−0.29", "0")
    assert cells(row | {"ours": -0.2962, "difference": -0.0062}) == ("−0.29", "−0.30", "−0.01")


def test_what_is_left_out_is_named():
    some = [study for study in STUDIES if study.tool == "biogeme"]
    rows, left_out = fitted(some, None)
    assert rows == [] and left_out == [study.name for study in some]
    assert "Left out, for want of their data: biogeme: swissmetro, logit;" in whole(rows, left_out)


def test_numbers_of_scikit_learn_are_those_of_a_run():
    """The other programs that were run are no dependencies; this one is."""
    study = next(study for study in STUDIES if study.tool == "scikit-learn" and study.data == "pima")
    found = load("pima")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000))
    model.fit(found.X, found.y)
    scaler, logit = model
    slopes = logit.coef_[0] / scaler.scale_
    theirs = dict(zip(found.X.columns, slopes, strict=True)) | {
        "intercept": logit.intercept_[0] - slopes @ scaler.mean_
    }
    theirs["log-likelihood"] = -log_loss(found.y, model.predict_proba(found.X), normalize=False)
    for what, each in study.printed().items():
        assert theirs[what] == pytest.approx(float(each.text), abs=0.6 * 10.0**-each.decimals), what
