"""Choices on the command line: fitted to a long table, shown, predicted, and mistakes told in a line."""

import io

import numpy as np
import pandas as pd
import pytest

from commands import mistake, plackett
from plackett import ChoiceSets, load

KEYS = ("--situation", "chid", "--alternative", "alt", "--choice", "chosen")
FAST = ("--inference", "em", "--max-iter", "20")
KNOWN = ["cost", "time"]


def trips(n=60, seed=0):
    """A long table of choices with a column of the person, persons who choose five times, and unequal sets."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        income, there = round(rng.normal(), 2), ["bus", "car", "walk"][: 2 + (rng.random() < 0.7)]
        cost, time = rng.integers(1, 5, (2, len(there)))
        utility = -0.5 * cost - time + 0.8 * income * (np.array(there) == "car") + rng.gumbel(size=len(there))
        for k, label in enumerate(there):
            rows.append((t, f"p{t // 5}", label, int(k == utility.argmax()), cost[k], time[k], income))
    return pd.DataFrame(rows, columns=["chid", "id", "alt", "chosen", "cost", "time", "income"])


def usage(*arguments):
    """What wrong usage gives, on one line."""
    result = plackett(*arguments)
    assert result.exit_code == 2 and result.stdout == "", result.output
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices")
    trips().to_csv(folder / "trips.csv", index=False)
    made = ("--person", "income", "--persons", "id", "--test", "0.25", "--out", folder / "m.plk")
    result = plackett("fit", folder / "trips.csv", *KEYS, *made, *FAST)
    assert result.exit_code == 0, result.output
    (folder / "said.txt").write_text(result.stdout)
    return folder


def test_fit_says_what_it_did_and_saves_a_chooser(folder):
    said, model = (folder / "said.txt").read_text(), load(folder / "m.plk")
    assert said.startswith("chosen in 45 situations (") and "; 25% held out) from cost, time; person: income" in said
    assert "held out, 15 situations: log-likelihood -" in said and "(by constants alone: log-likelihood -" in said
    assert model.attributes_ == KNOWN and model.person_ == ["income"] and model.table_.persons == "id"
    shown = plackett("show", folder / "m.plk").stdout
    assert "chosen in 45 situations" in shown and "coefficient" in shown and "constant: " in shown


def test_a_person_is_held_out_with_all_choices(folder):
    model, frame = load(folder / "m.plk"), trips()
    X, y = model.table_.choices(frame)
    held = model.table_.held_out(X.with_schema(model.schema_), y)
    by_person = pd.Series(held).groupby(model.table_.who(frame)).mean()
    assert held.sum() == 15 and set(by_person) == {0.0, 1.0}


@pytest.mark.parametrize("without", [[], ["chosen"], ["chosen", "id"]])
def test_predict_gives_a_row_for_each_situation_and_alternative(folder, without):
    frame = trips().drop(columns=without)
    mixed = frame.sample(frac=1, random_state=1)
    result = plackett("predict", folder / "m.plk", "-", stdin=mixed.to_csv(index=False))
    assert result.exit_code == 0, result.output
    table = pd.read_csv(io.StringIO(result.stdout))
    assert list(table) == ["chid", "alt", "probability"]
    assert table["chid"].tolist() == mixed["chid"].tolist() and table["alt"].tolist() == mixed["alt"].tolist()
    np.testing.assert_allclose(table.groupby("chid")["probability"].sum(), 1, rtol=1e-5)
    model = load(folder / "m.plk")
    X = ChoiceSets.from_long(frame, situation="chid", alternative="alt", attributes=KNOWN, person=["income"])
    wide = pd.DataFrame(model.predict_proba(X), columns=model.alternatives_)
    expected = [wide.loc[t, a] for t, a in zip(table["chid"], table["alt"], strict=True)]
    np.testing.assert_allclose(table["probability"], expected, rtol=1e-5)
    assert ("15 situations: log-likelihood" in result.stderr) == (not without)


def test_predictions_keep_columns_and_refuse_two_of_one_name(folder):
    result = plackett("predict", folder / "m.plk", folder / "trips.csv", "--keep", "cost")
    assert list(pd.read_csv(io.StringIO(result.stdout))) == ["chid", "alt", "cost", "probability"]
    again = ("predict", folder / "m.plk", folder / "trips.csv", "--keep", "alt")
    assert "two columns of the output would be called 'alt'" in mistake(*again)
    line = mistake("predict", folder / "m.plk", folder / "trips.csv", "--interval", "0.9")
    assert "Use --inference gibbs" in line


def test_new_tables_that_do_not_fit_the_model(folder):
    frame = trips(5)
    line = mistake("predict", folder / "m.plk", "-", stdin=frame.drop(columns="cost").to_csv(index=False))
    assert "there is no column 'cost'" in line
    strange = frame.assign(alt=frame.alt.replace("car", "boat")).to_csv(index=False)
    assert "'boat'" in mistake("predict", folder / "m.plk", "-", stdin=strange)


def test_persons_with_weights_of_their_own_are_known_again(folder, tmp_path):
    own = ("--persons", "id", "--weights", "person", "--features", "exp", *FAST, "--shape", "1.5")
    result = plackett("fit", folder / "trips.csv", *KEYS, *own, "--out", tmp_path / "p.plk")
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "p.plk")
    assert model.weights == "person" and len(model.group_labels_) == 12
    with_them = plackett("predict", tmp_path / "p.plk", folder / "trips.csv")
    X = model.table_.sets(trips())
    expected = model.predict_proba(X, groups=model.table_.who(trips()))
    found = pd.read_csv(io.StringIO(with_them.stdout))["probability"]
    np.testing.assert_allclose(found, expected[expected > 0], rtol=1e-5)
    nobody = trips().drop(columns="id").to_csv(index=False)
    without = plackett("predict", tmp_path / "p.plk", "-", stdin=nobody)
    assert "there is no column 'id': everyone is taken for someone who was not in the fit" in without.stderr
    assert without.stdout != with_them.stdout


def test_what_is_not_available_has_probability_zero(tmp_path):
    frame = trips(30).assign(there=1)
    full = frame.groupby("chid")["alt"].transform("size") == 3
    frame.loc[full & (frame.alt == "walk") & (frame.chosen == 0), "there"] = 0
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", *KEYS, "--available", "there", "--attributes", "cost,time", *FAST)
    assert plackett(*fit, "--out", tmp_path / "m").exit_code == 0
    table = pd.read_csv(io.StringIO(plackett("predict", tmp_path / "m", tmp_path / "t.csv").stdout))
    np.testing.assert_array_equal(table["probability"] == 0, frame["there"] == 0)


@pytest.mark.parametrize(
    "options, words",
    [
        ([], "say what to predict: --target for classes, or --situation, --alternative, --choice."),
        (["--situation", "chid"], "--alternative, --choice missing"),
        (["--target", "chosen", *KEYS], "--situation is for choices and --target for classes"),
        (["--target", "chosen", "--weights", "person"], "--weights is for choices and --target for classes"),
        ([*KEYS, "--class-weight", "balanced"], "--class-weight is for classes"),
        ([*KEYS, "--missing", "impute"], "--missing is for classes"),
        ([*KEYS, "--categorical", "cost"], "--categorical is for classes"),
        ([*KEYS, "--weights", "person"], "--weights person needs --persons"),
        ([*KEYS, "--persons", "id", "--features", "exp"], "--persons would be ignored"),
        ([*KEYS[:4], "--choice", "alt"], "--alternative, --choice name the same column"),
        ([*KEYS, "--weights", "class"], "'class' is not one of"),
        (
            [*KEYS, "--inference", "em", "--draws", "10"],
            "--draws belongs to --inference variational, gibbs or bootstrap",
        ),
    ],
)
def test_options_that_do_not_apply_are_refused(folder, tmp_path, options, words):
    assert words in usage("fit", folder / "trips.csv", *options, "--out", tmp_path / "m")


@pytest.mark.parametrize(
    "change, options, words",
    [
        (lambda f: f, ["--attributes", "cost,tme"], "there is no column 'tme'; did you mean time?"),
        (lambda f: f, ["--person", "cost"], "column 'cost' belongs to the person, and must be the same"),
        (lambda f: f, ["--persons", "who"], "there is no column 'who'"),
        (lambda f: f, ["--persons", "cost"], "tells who chooses, and must be the same in all rows of a situation"),
        (lambda f: f, ["--drop", "alt"], "there is no column 'alt'"),
        (lambda f: f.assign(chosen=0), [], "one alternative must be chosen, and in situation 0 no alternative is"),
        (lambda f: f.assign(id=None), ["--persons", "id"], "column 'id' is missing in row 0"),
        (lambda f: f.assign(also=f.chosen), [], "as a choice does: name the attributes, or read"),
        (lambda f: f.assign(cost=f.cost.where(f.chid != 3)), [], "column 'cost' is missing or infinite"),
        (lambda f: f.iloc[:1], [], "a choice needs two or more"),
    ],
)
def test_one_line_for_a_mistake(tmp_path, change, options, words):
    change(trips(10)).to_csv(tmp_path / "t.csv", index=False)
    assert words in mistake("fit", tmp_path / "t.csv", *KEYS, *FAST, *options, "--out", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_linear_utility(folder):
    made = ("--person", "income", "--persons", "id", "--linear", "--inference", "em", "--out", folder / "linear.plk")
    result = plackett("fit", folder / "trips.csv", *KEYS, *made)
    assert result.exit_code == 0, result.output
    assert "a linear utility with" in result.stdout and "rho-square" in result.stdout
    model = load(folder / "linear.plk")
    assert model.features == "linear" and model.posterior_.person is not None
    shown = plackett("show", folder / "linear.plk").stdout
    assert "std_error" in shown and "income: car" in shown
    result = plackett("report", folder / "linear.plk", folder / "trips.csv", "--out", folder / "linear.html")
    assert result.exit_code == 0, result.output
    page = (folder / "linear.html").read_text()
    assert "Std_error by person" in page and "Fit statistics" in page
    refused = usage("fit", folder / "trips.csv", *KEYS, "--linear", "--features", "exp", "--out", folder / "x.plk")
    assert "--linear has features of its own" in refused
    refused = usage("fit", folder / "trips.csv", "--target", "alt", "--linear", "--out", folder / "x.plk")
    assert "--linear is for choices and --target for classes" in refused
