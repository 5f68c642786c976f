"""Data sets: equality with the folder, the checks after loading, and what the errors say."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from plackett import datasets
from plackett.datasets import TABLES, load, names

NO_COVARIATE = {"sushi": "user_id", "swissmetro": "ID"}
OPENML_LABELS = {
    "pima": {"neg": "tested_negative", "pos": "tested_positive"},
    "heart": {"absence": "absent", "presence": "present"},
}


@pytest.fixture(scope="module")
def folder():
    named = os.environ.get("PLACKETT_DATA")
    if not named:
        pytest.fail("set PLACKETT_DATA to the folder that holds the data files")
    return Path(named)


@pytest.fixture
def openml(monkeypatch, folder):
    """No folder is named, and OpenML answers with Pima and Heart as it has them: other names, other labels."""
    monkeypatch.delenv("PLACKETT_DATA", raising=False)
    asked = []

    def fetch_openml(*, data_id, as_frame, parser):
        asked.append(data_id)
        name = {37: "pima", 53: "heart"}[data_id]
        X = pd.read_csv(folder / f"{name}.csv")
        y = X.pop("y").map(OPENML_LABELS[name]).astype("category")
        return Bunch(data=X.rename(columns=str.upper), target=y)

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", fetch_openml)
    return asked


@pytest.mark.parametrize("name", names())
def test_equals_the_file(name, folder):
    file = TABLES[name].file if name in TABLES else f"{name}.csv"
    expected = pd.read_csv(folder / file)
    expected = expected[expected.y != "unknown"].reset_index(drop=True)
    y = expected.pop("y")
    got = load(name)
    if name in NO_COVARIATE:
        np.testing.assert_array_equal(got.groups, expected.pop(NO_COVARIATE[name]))
    else:
        assert got.groups is None
    pd.testing.assert_frame_equal(got.X, expected, check_exact=True)
    np.testing.assert_array_equal(got.y, y)
    assert got.shape == expected.shape
    assert got.counts == y.value_counts().sort_index().to_dict()
    assert str(folder) not in got.source and got.source


def test_covers_the_sets_of_the_paper():
    assert {"lenses", "iris", "wine", "pima", "heart", "german", "colon", "sushi"} <= set(names())


def test_data_home_comes_before_the_environment(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("PLACKETT_DATA", str(tmp_path))
    assert load("heart", data_home=folder).shape == (270, 13)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_missing_file_in_a_named_folder_is_an_error(name, openml, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{Path(TABLES[name].file).name}; the file .* is expected there"):
        load(name, data_home=tmp_path)
    assert not openml, "a named folder must not be passed over for a download"


@pytest.mark.parametrize("name, data_id", [("pima", 37), ("heart", 53)])
def test_download_is_the_same_table(name, data_id, openml, folder):
    got = load(name)
    assert openml == [data_id]
    expected = load(name, data_home=folder)
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
def test_other_table_is_refused(change, said, folder, tmp_path):
    X, y = change(load("heart", data_home=folder).X, pd.Series(load("heart", data_home=folder).y))
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


def test_no_network_says_what_to_do(openml, monkeypatch):
    def unreachable(**asked):
        raise OSError("no route to host")

    monkeypatch.setattr(datasets.sklearn_datasets, "fetch_openml", unreachable)
    with pytest.raises(OSError, match=r"no route to host.*PLACKETT_DATA; the file heart.csv"):
        load("heart")


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
