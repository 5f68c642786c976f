"""The command line: what it promises an analyst who has a table and no wish to read Python."""

import contextlib
import csv
import fcntl
import gzip
import io
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import typer

from commands import mistake, plackett
from plackett import PlackettLuceClassifier, load
from plackett.cli.commands import app
from plackett.cli.console import OPTIONS, in_options
from plackett.data.table import stratified
from plackett.data.tablefile import read_table, write_table

FAST = ["--features", "exp", "--inference", "em", "--shape", "1"]


def people(n=120, seed=0):
    """A table with numbers, texts, codes, an identifier, missing values and a constant; three classes."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size=n).astype(float)
    home = rng.choice(["farm", "town", "city"], size=n)
    sex = rng.choice(["f", "m"], size=n)
    y = np.where(age + 10 * (home == "farm") > 60, "bus", np.where(sex == "m", "car", "train"))
    age[5:15] = np.nan
    frame = pd.DataFrame({"age": age, "home": home, "sex": sex, "code": rng.integers(1, 4, size=n), "planet": "Earth"})
    return frame.assign(home=frame.home.mask(np.arange(n) == 7), mode=y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table in several forms and a model fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    table = people()
    table.to_csv(folder / "people.csv", index=False)
    table.assign(id=[f"p{i}" for i in range(len(table))]).to_csv(folder / "named.csv", index=False)
    assert plackett("fit", folder / "people.csv", "--target", "mode", *FAST, "--out", folder / "m.plk").exit_code == 0
    return folder


def covariates(clf, frame):
    """The notes that go with them are tested by themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.table_.covariates(frame)


def probabilities(text):
    return pd.read_csv(io.StringIO(text))


# Fitting and predicting


def test_fit_says_what_it_did_and_predict_gives_the_probabilities_of_the_library(folder):
    result = plackett("predict", folder / "m.plk", folder / "people.csv")
    assert result.exit_code == 0
    table = probabilities(result.stdout)
    assert list(table) == ["predicted", "p_bus", "p_car", "p_train"] and len(table) == 120
    clf = load(folder / "m.plk")
    X = covariates(clf, pd.read_csv(folder / "people.csv"))
    np.testing.assert_allclose(table.iloc[:, 1:], clf.predict_proba(X), rtol=1e-5)
    np.testing.assert_array_equal(table["predicted"], clf.predict(X))


def test_learned_directions_are_fitted_shown_and_predict(folder, tmp_path):
    fitted = ("--target", "mode", "--draws", "20", "--out", tmp_path / "d.plk")
    done = plackett("fit", folder / "people.csv", *fitted)
    assert done.exit_code == 0 and "learned directions" in done.stdout
    shown = plackett("show", tmp_path / "d.plk").stdout
    assert "most relevant covariates" in shown and "age" in shown
    table = probabilities(plackett("predict", tmp_path / "d.plk", folder / "people.csv").stdout)
    clf = load(tmp_path / "d.plk")
    expected = clf.predict_proba(covariates(clf, pd.read_csv(folder / "people.csv")))
    np.testing.assert_allclose(table.iloc[:, -3:], expected, rtol=5.1e-6)  # six digits are written
    assert clf.features == "learned" and clf.inference.draws == 20 and clf.trace_.shape == (4, 20)
    assert clf.n_iter_ == 150 + 20
    components = probabilities(plackett("show", tmp_path / "d.plk", "--out", "-").stdout)
    assert components["component"].is_unique and components["share"].sum() == pytest.approx(1, abs=0.01)
    assert components["direction"].str.contains("age").any()


def test_classes_can_count_the_same(folder, tmp_path):
    how = ("--target", "mode", "--inference", "em", "--features", "exp", "--shape", "0.9")
    assert plackett("fit", folder / "people.csv", *how, "--out", tmp_path / "a.plk").exit_code == 0
    balanced = ("--class-weight", "balanced", "--out", tmp_path / "b.plk")
    assert plackett("fit", folder / "people.csv", *how, *balanced).exit_code == 0
    one, two = load(tmp_path / "a.plk"), load(tmp_path / "b.plk")
    assert two.class_weight == "balanced" and one.class_weight is None
    X = covariates(one, pd.read_csv(folder / "people.csv"))
    y = pd.read_csv(folder / "people.csv")["mode"]
    np.testing.assert_array_equal(two.fit(X, y).predict_proba(X), load(tmp_path / "b.plk").predict_proba(X))
    assert np.abs(one.predict_proba(X) - two.predict_proba(X)).max() > 0.01


@pytest.mark.long
def test_a_target_is_passed_on_and_reached(folder, tmp_path):
    arguments = ("--features", "exp", "--shape", "1", "--draws", "50", "--target-ess", "60", "--out", tmp_path / "t")
    assert plackett("fit", folder / "people.csv", "--target", "mode", *arguments).exit_code == 0
    clf = load(tmp_path / "t")
    assert clf.inference.target_ess == 60 and clf.diagnostics_.smallest_ess >= 60


def test_variational_says_which_features_it_needs(folder, tmp_path):
    fitted = ("fit", folder / "people.csv", "--target", "mode", "--inference", "variational", "--out", tmp_path / "v")
    assert "Use --features exp for the paper's model, or --inference gibbs or --inference em." in mistake(*fitted)
    assert not (tmp_path / "v").exists()


def test_columns_in_another_order_and_further_ones(folder):
    frame = pd.read_csv(folder / "people.csv")
    turned = frame[frame.columns[::-1]].drop(columns=["mode", "planet"]).assign(more="x").to_csv(index=False)
    first = plackett("predict", folder / "m.plk", folder / "people.csv").stdout
    assert plackett("predict", folder / "m.plk", "-", stdin=turned).stdout == first


@pytest.mark.parametrize("kind", ["tsv", "semicolon", "gz", "parquet", "stdin", "bom"])
def test_formats_are_recognised(folder, tmp_path, kind):
    frame = pd.read_csv(folder / "people.csv")
    path, stdin = tmp_path / "table", None
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "stdin":
        path, stdin = "-", frame.to_csv(index=False)
    elif kind == "gz":
        frame.to_csv(path, index=False, compression="gzip")
    else:
        separator = {"tsv": "\t", "semicolon": ";", "bom": ","}[kind]
        frame.to_csv(path, index=False, sep=separator, encoding="utf-8-sig" if kind == "bom" else "utf-8")
    result = plackett("predict", folder / "m.plk", path, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == plackett("predict", folder / "m.plk", folder / "people.csv").stdout


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet"])
def test_outputs_by_name(folder, tmp_path, name):
    out = tmp_path / name
    assert plackett("predict", folder / "m.plk", folder / "people.csv", "--out", out).exit_code == 0
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    table = read(out, **({"sep": "\t"} if name.endswith("tsv") else {}))
    expected = probabilities(plackett("predict", folder / "m.plk", folder / "people.csv").stdout)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_a_model_through_pipes(folder):
    frame = (folder / "people.csv").read_text()
    fitted = plackett("fit", "-", "--target", "mode", *FAST, "--out", "-", stdin=frame)
    assert fitted.exit_code == 0 and "3 classes" in fitted.stderr
    shown = plackett("show", "-", "--weights", "100", stdin=fitted.stdout_bytes)
    assert shown.exit_code == 0 and "exp(-age)" in shown.stdout
    assert load(io.BytesIO(fitted.stdout_bytes)).classes_.tolist() == ["bus", "car", "train"]
    both = plackett("predict", "-", "-")
    assert both.exit_code == 2 and "both" in both.stderr


def test_intervals_and_kept_columns(folder, tmp_path):
    model = tmp_path / "v.plk"
    settings = ["--features", "exp", "--inference", "variational", "--shape", "0.5", "--drop", "id"]
    assert plackett("fit", folder / "named.csv", "--target", "mode", *settings, "--out", model).exit_code == 0
    result = plackett("predict", model, folder / "named.csv", "--interval", "0.8", "--keep", "id")
    table = probabilities(result.stdout)
    assert list(table)[:5] == ["id", "predicted", "p_bus", "p_bus_lower", "p_bus_upper"]
    assert table["id"].tolist() == [f"p{i}" for i in range(120)]
    assert (table["p_car_lower"] < table["p_car"]).all() and (table["p_car"] < table["p_car_upper"]).all()
    clf = load(model)
    lower, _ = clf.predict_interval(covariates(clf, pd.read_csv(folder / "named.csv")), 0.8)
    np.testing.assert_allclose(table["p_bus_lower"], lower[:, 0], rtol=1e-5)


def test_held_out_rows_are_kept_from_the_fit_and_scored(folder, tmp_path):
    model = tmp_path / "t.plk"
    result = plackett("fit", folder / "people.csv", "--target", "mode", *FAST, "--test", "0.25", "--out", model)
    assert result.exit_code == 0
    clf, frame = load(model), pd.read_csv(folder / "people.csv")
    X, y = covariates(clf, frame), frame["mode"].to_numpy()
    held = clf.table_.held_out(X, y)
    shares = pd.Series(held).groupby(y).mean()
    assert (abs(shares - 0.25) < 0.02).all() and sum(clf.table_.counts.values()) == (~held).sum()
    again = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(X[~held], y[~held])
    np.testing.assert_allclose(clf.predict_proba(X), again.predict_proba(X), rtol=1e-9)
    error = np.mean(clf.predict(X[held]) != y[held])
    own = clf.predict_proba(X[held])[np.arange(held.sum()), np.searchsorted(clf.classes_, y[held])]
    assert f"held out, {held.sum()} rows: error {error:.3f}, log-loss {-np.log(own).mean():.3f}" in result.stdout
    assert f"{held.sum()} rows: error {error:.3f}" in plackett("predict", model, folder / "people.csv").stderr


def test_rows_that_were_not_seen_are_recognised_in_any_table(folder, tmp_path):
    frame = people(seed=1)
    frame = pd.concat([frame, frame[:20], frame[:20]], ignore_index=True)
    model = tmp_path / "t.plk"
    arguments = ["fit", "-", "--target", "mode", *FAST, "--test", "0.3", "--out", model]
    assert plackett(*arguments, stdin=frame.to_csv(index=False)).exit_code == 0
    clf = load(model)
    X, y = covariates(clf, frame), frame["mode"].to_numpy()
    training, total = sum(clf.table_.counts.values()), len(frame)
    assert clf.table_.held_out(X, y).sum() == total - training
    order = np.random.default_rng(0).permutation(total)
    assert clf.table_.held_out(X.iloc[order], y[order]).sum() == total - training
    assert clf.table_.held_out(X + 0.5, y).all()
    with pytest.warns(UserWarning, match=r"of 60 rows equal rows that the model was fitted to"):
        assert clf.table_.held_out(X[:60], y[:60]).all()
    assert clf.table_.held_out(X, np.char.add(y.astype(str), "s")).all()


def test_classes_that_the_model_does_not_know_count_as_errors(folder):
    new = "age,home,sex,code,mode\n30,town,m,1,4\n40,town,m,1,4\n"
    result = plackett("predict", folder / "m.plk", "-", stdin=new)
    assert result.exit_code == 0 and "2 rows: error 1.000, log-loss 34.539" in result.stderr


def test_same_seed_same_file(folder, tmp_path):
    settings = ["--target", "mode", "--draws", "5", "--drop", "home", "--test", "0.3"]
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        plackett("fit", folder / "people.csv", *settings, "--seed", seed, "--out", tmp_path / name)
    a, b, c = (load(tmp_path / name).weights_ for name in "abc")
    assert (a == b).all() and (a != c).any()


def test_labels_keep_their_kind(folder, tmp_path):
    for values, kind in (([1, 2] * 30, int), (["01", "x"] * 30, str), ([True, False] * 30, bool)):
        table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60), "y": values}).to_csv(index=False)
        result = plackett("fit", "-", "--target", "y", *FAST, "--out", "-", stdin=table)
        assert result.exit_code == 0, result.stderr
        classes = load(io.BytesIO(result.stdout_bytes)).classes_.tolist()
        assert classes == sorted(set(values)) and all(type(c) is kind for c in classes)


# The table


def test_encoding_of_the_columns(folder):
    clf = load(folder / "m.plk")
    frame = pd.read_csv(folder / "people.csv")
    X = covariates(clf, frame)
    homes = ["home=city", "home=farm", "home=town"]
    assert list(X) == ["age", "age is missing", *homes, "home is missing", "sex=m", "code"]
    np.testing.assert_array_equal(X["age"], frame["age"].fillna(frame["age"].median()))
    np.testing.assert_array_equal(X["age is missing"], frame["age"].isna())
    np.testing.assert_array_equal(X["sex=m"], frame["sex"] == "m")
    seen = frame["home"].notna()
    for home in ("city", "farm", "town"):
        np.testing.assert_array_equal(X.loc[seen, f"home={home}"], frame["home"][seen] == home)
        assert X.loc[7, f"home={home}"] == (frame["home"] == home).sum() / seen.sum()


def test_missing_values_are_filled_in_with_a_note_or_refused(folder, tmp_path):
    out = tmp_path / "m.plk"
    result = plackett("fit", folder / "people.csv", "--target", "mode", *FAST, "--out", out)
    assert "note: column 'age' is missing in 10 of 120 rows: filled in with the median" in result.stderr
    arguments = ["fit", folder / "people.csv", "--target", "mode", *FAST, "--out", out, "--force", "--missing", "error"]
    line = mistake(*arguments)
    assert "column 'age' is missing in 10 of 120 rows" in line and "--drop age" in line and "--missing impute" in line
    assert plackett(*arguments, "--drop", "age", "--drop", "home").exit_code == 0
    gap = "age,home,sex,code\n30,,m,1\n"
    assert "'home'" in mistake("predict", folder / "m.plk", "-", stdin=gap.replace("home", "hom"))
    assert plackett("predict", folder / "m.plk", "-", stdin=gap).exit_code == 0
    refused = plackett("predict", out, "-", stdin="sex,code\nm,\n")
    assert refused.exit_code == 1 and "column 'code' is missing in 1 of 1 rows" in refused.stderr


def test_rows_without_a_class_are_left_out(folder, tmp_path):
    table = people()
    table.loc[[3, 9], "mode"] = None
    result = plackett("fit", "-", "--target", "mode", *FAST, "--out", tmp_path / "m", stdin=table.to_csv(index=False))
    assert "the target 'mode' is missing in 2 of 120 rows: these rows are left out" in result.stderr
    assert sum(load(tmp_path / "m").table_.counts.values()) == 118


def test_a_level_that_was_not_seen_says_nothing(folder):
    new = "age,home,sex,code\n30,igloo,m,1\n40,town,m,1\n"
    result = plackett("predict", folder / "m.plk", "-", stdin=new)
    assert result.exit_code == 0
    assert "column 'home' has 1 value that did not occur in training, such as 'igloo'" in result.stderr
    clf = load(folder / "m.plk")
    with pytest.warns(UserWarning, match="did not occur"):
        X = clf.table_.covariates(pd.read_csv(io.StringIO(new)))
    Z = (X.to_numpy() - clf.features_.mean_) / clf.features_.scale_
    homes = [list(X).index(f"home={home}") for home in ("city", "farm", "town")]
    assert np.abs(Z[0, homes]).max() < 0.05 < np.abs(Z[1, homes]).min()


def test_what_deserves_a_look_is_noted(tmp_path):
    table = people().assign(row=range(1, 121))
    table.loc[:3, "mode"] = "rickshaw"
    result = plackett("fit", "-", "--target", "mode", *FAST, "--out", tmp_path / "m", stdin=table.to_csv(index=False))
    assert "few rows of some classes (rickshaw: 4)" in result.stderr
    assert "left out, being the same in every row: planet." in result.stderr
    assert "column 'row' counts the rows: leave it out with --drop row" in result.stderr


def written(text, folder, encoding="utf-8"):
    path = folder / "t.csv"
    path.write_bytes(text.encode(encoding))
    return str(path)


TEXT = "a,pay €,y\n1,2.5,no\n2,3.5,yes\n"


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n"])
def test_lines_end_as_they_like(tmp_path, end):
    expected = read_table(written(TEXT, tmp_path))
    pd.testing.assert_frame_equal(read_table(written(TEXT.replace("\n", end), tmp_path)), expected)


def test_a_field_may_be_as_long_as_it_likes(tmp_path):
    long, limit = "n" * 200_000, csv.field_size_limit()
    assert list(read_table(written(TEXT.replace("pay €", long), tmp_path))) == ["a", long, "y"]
    assert read_table(written(TEXT.replace("yes", f'"{long}"'), tmp_path))["y"].tolist() == ["no", long]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("content", [b"\x1f\x8bjunk", gzip.compress(TEXT.encode(), mtime=0)[:-9]])
def test_a_gzip_file_that_is_cut_off_is_one_line(tmp_path, content):
    (tmp_path / "t.csv.gz").write_bytes(content)
    assert "is not a whole gzip file" in mistake("fit", tmp_path / "t.csv.gz", "--target", "y", "--out", tmp_path / "m")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_encodings_are_recognised(tmp_path, encoding):
    expected = read_table(written(TEXT, tmp_path))
    pd.testing.assert_frame_equal(read_table(written(TEXT, tmp_path, encoding)), expected)


def test_encodings_that_are_not_are_told(tmp_path):
    """With the line, and advice that fits."""

    def line(content):
        (tmp_path / "t.csv").write_bytes(content)
        return mistake("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m")

    assert "looks like UTF-16 and is not whole at line 3" in line(TEXT.encode("utf-16")[:-3])
    assert "line 1" in line(TEXT.replace("€", "ü").encode("latin1")) and "latin1" in line(TEXT.encode("cp1252"))
    assert "line 2 of" in (told := line(TEXT.replace("no", "n\0").encode())) and "NUL" in told and "latin1" not in told


@pytest.mark.parametrize("share", ["0", "0.2", "0.7"])
def test_row_numbers_are_noted_whatever_is_left_out(tmp_path, share):
    """The table is looked at before rows are held out; rows without a class leave gaps."""
    table = people().assign(row=range(120), shuffled=np.random.default_rng(0).permutation(120), seven=range(0, 840, 7))
    table.loc[40:44, "mode"] = None
    arguments = ["--target", "mode", *FAST, "--test", share, "--out", tmp_path / "m"]
    result = plackett("fit", "-", *arguments, stdin=table.drop(columns="shuffled").to_csv(index=False))
    assert result.exit_code == 0 and "column 'row' counts the rows" in result.stderr and "'seven'" not in result.stderr
    result = plackett("fit", "-", *arguments, "--force", stdin=table.dropna(subset="mode").to_csv(index=False))
    assert "column 'row' counts the rows" in result.stderr and "'shuffled'" not in result.stderr
    whole = table.assign(mode=table["mode"].fillna("bus"))
    result = plackett("fit", "-", *arguments, "--force", stdin=whole.to_csv(index=False))
    assert "column 'shuffled' counts the rows" in result.stderr


def test_nothing_is_learned_from_rows_that_are_held_out(tmp_path):
    table = people()
    held = stratified(table["mode"].to_numpy(), 0.3, 0)
    table.loc[held, ["age", "home"]] = [1e6, "igloo"]
    arguments = ["--target", "mode", *FAST, "--test", "0.3", "--out", tmp_path / "m"]
    result = plackett("fit", "-", *arguments, stdin=table.to_csv(index=False))
    assert result.exit_code == 0, result.output
    columns = {column.name: column for column in load(tmp_path / "m").table_.columns}
    assert columns["age"].median < 90 and "igloo" not in columns["home"].levels
    assert sum(load(tmp_path / "m").table_.counts.values()) == (~held).sum()


def test_codes_as_categories(folder, tmp_path):
    settings = ["--target", "mode", *FAST, "--categorical", "code"]
    assert plackett("fit", folder / "people.csv", *settings, "--out", tmp_path / "m").exit_code == 0
    table = load(tmp_path / "m").table_
    assert table.columns[-1].levels == ("1", "2", "3")
    result = plackett("predict", tmp_path / "m", "-", stdin="age,home,sex,code\n30,town,m,1.0\n")
    assert result.exit_code == 0 and "occur" not in result.stderr


# Tables from elsewhere


def test_semicolons_and_decimal_commas_are_recognised_and_said(folder, tmp_path):
    frame = people().assign(pay=np.where(people()["sex"] == "f", 1234.25, 0.5))
    for name, text in (("us", frame.to_csv(index=False)), ("de", frame.to_csv(index=False, sep=";", decimal=","))):
        result = plackett("fit", "-", "--target", "mode", *FAST, "--out", tmp_path / name, stdin=text)
        assert result.exit_code == 0, result.stderr
    said = "standard input was read with ';' between fields and ',' as the decimal mark; if that is wrong, say --sep or"
    assert said in result.stderr
    np.testing.assert_array_equal(load(tmp_path / "us").weights_, load(tmp_path / "de").weights_)


@pytest.mark.parametrize(
    "text, options, expected",
    [
        ("a;b\n1,5;1.234\n-2,25;2.500\n", {}, {"a": [1.5, -2.25], "b": [1234, 2500]}),
        ("a\tb\n1,234.5\t3.14\n2,500.25\t2.71\n", {}, {"a": [1234.5, 2500.25], "b": [3.14, 2.71]}),
        ("a;b\n1.234;x\n2.555;y\n", {}, {"a": [1.234, 2.555], "b": ["x", "y"]}),
        ('a,b\n"1,5",x\n"2,5",y\n', {}, {"a": [1.5, 2.5], "b": ["x", "y"]}),
        ("a;b\n1,234;x\n2,500;y\n", {"decimal": "."}, {"a": [1234, 2500], "b": ["x", "y"]}),
        ("a;b\n1,234;x\n2,500;y\n", {"decimal": ","}, {"a": [1.234, 2.5], "b": ["x", "y"]}),
        ("a;b\n1,5;3.14\n2,5;2.71\n", {"decimal": ","}, {"a": [1.5, 2.5], "b": ["3.14", "2.71"]}),
        ("a;b\n1,5;x\n;y\nno;y\n1,5;x\n", {"decimal": ","}, {"a": ["1.5", pd.NA, "no", "1.5"], "b": list("xyyx")}),
        ("a;b\nno;x\nno;y\nno;y\n1,5;x\n2,5;x\n", {"decimal": ","}, {"a": ["no", "no", "no", "1,5", "2,5"]}),
        ("a;b\n1,5;3.14\n2,5;2.71\n", {"decimal": "."}, {"a": ["1,5", "2,5"], "b": [3.14, 2.71]}),
        ("a;b\n31.12.2024;1,5\n01.02.2024;2,5\n", {}, {"a": ["31.12.2024", "01.02.2024"], "b": [1.5, 2.5]}),
        ("a;b\n1,5;x\n2,5;y\nlow;z\n", {}, {"a": ["1.5", "2.5", "low"], "b": ["x", "y", "z"]}),
        ("a;b\n1,5;x\nlow;y\nhigh;z\n", {}, {"a": ["1,5", "low", "high"], "b": ["x", "y", "z"]}),
        ("a;b\n12;x\n13;y\n12a;z\n", {}, {"a": ["12", "13", "12a"], "b": ["x", "y", "z"]}),
        ("a, netto;b;c;d\n1,5;x;u;v\n2,5;y;u;v\n", {}, {"a, netto": [1.5, 2.5], "b": ["x", "y"]}),
        ("a,b\nx;1,y;2\nu;3,v;4\n", {}, {"a": ["x;1", "u;3"], "b": ["y;2", "v;4"]}),
        ("a,b;c\n1,2;3\n4,5;6\n", {"sep": ","}, {"a": [1, 4], "b;c": ["2;3", "5;6"]}),
        ("a\tb;c\n1\t2;3\n", {"sep": "tab"}, {"a": [1], "b;c": ["2;3"]}),
    ],
)
def test_separators_and_decimal_marks(tmp_path, quiet, text, options, expected):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = read_table(str(path), **options)
    assert {name: frame[name].tolist() for name in expected} == expected


@pytest.mark.parametrize(
    "text, options, words",
    [
        ("a,b;c\n1,2;3\n", [], "2 columns with ',' between them or 2 columns with ';' .*: say --sep , or --sep ';'."),
        ("a\tb;c\n1\t2;3\n", [], "say --sep ';' or --sep tab."),
        ("a;y\n1,234;u\n", [], "has 1,234 in column 'a', which may be decimals or thousands: say --decimal , or"),
        ("a;b;y\n1,5;3.14;u\n", [], "has 1,5 in column 'a' and 3.14 in column 'b': say --decimal , or --decimal"),
        ("a;y\n1;u\n", ["--sep", "tabs"], "sep must be one character or 'tab', got 'tabs'"),
        ("a;y\n1;u\n", ["--decimal", ";"], "decimal must be '.' or ',', got ';'"),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked(tmp_path, text, options, words):
    line = mistake("fit", "-", "--target", "y", *options, "--out", tmp_path / "m", stdin=text)
    assert re.search(words, line), line


def test_a_parquet_file_has_no_separator(folder, tmp_path):
    pd.read_csv(folder / "people.csv").to_parquet(tmp_path / "t")
    assert "separators and decimal marks have no meaning" in mistake(
        "predict", folder / "m.plk", tmp_path / "t", "--sep", ";"
    )


def test_columns_of_the_same_name_are_told_apart_and_said(tmp_path):
    text = "a,a,y\n" + "1,2,u\n2,1,v\n3,1,u\n1,3,v\n" * 5
    result = plackett("fit", "-", "--target", "y", *FAST, "--out", tmp_path / "m", stdin=text)
    assert "several columns of the name a; the second is called a.1" in result.stderr
    assert [column.name for column in load(tmp_path / "m").table_.columns] == ["a", "a.1"]


def test_the_advice_about_columns_names_all_and_can_be_pasted(tmp_path):
    table = people().assign(
        **{
            "pay €": [f"{i} EUR" for i in range(120)],
            "it's": [f"n{i}" for i in range(120)],
            "day": [f"2024-{i % 12 + 1:02d}-03" for i in range(120)],
            "wave": ["2024-01-03T10:00", "2024-02-03T10:00"] * 60,
            "score": [*map(str, np.arange(119) + 0.5), "low"],
        }
    )
    fit = ["fit", "-", "--target", "mode", *FAST, "--out", tmp_path / "m"]
    line = mistake(*fit, stdin=table.to_csv(index=False))
    assert "column 'day' holds dates such as 2024-01-03" in line and "column 'wave' holds dates" in line
    assert "column 'pay €' holds 120 different texts in 120 rows" in line
    assert "column 'score' holds numbers in 119 of 120 rows, and in the others texts such as 'low'" in line
    advised = shlex.split(re.search(r"leave them out with ((?:--drop (?:'.*?'|\S+) ?)+), or", line)[1])
    assert advised[1::2] == ["pay €", "it's", "day", "wave", "score"]
    assert plackett(*fit, *advised, stdin=table.to_csv(index=False)).exit_code == 0
    assert [column.name for column in load(tmp_path / "m").table_.columns] == ["age", "home", "sex", "code"]
    insisted = [*advised[:6], "--drop", "score", "--categorical", "wave", "--force"]
    assert plackett(*fit, *insisted, stdin=table.to_csv(index=False)).exit_code == 0
    assert "wave=2024-02-03T10:00" in load(tmp_path / "m").feature_names_in_


def test_all_columns_with_missing_values_are_refused_at_once(folder, tmp_path):
    line = mistake("fit", folder / "people.csv", "--target", "mode", "--missing", "error", "--out", tmp_path / "m")
    assert "'age' is missing in 10 of 120 rows, column 'home' is missing in 1 of 120" in line
    assert "--drop age --drop home" in line


def test_the_target_is_no_column_to_drop(folder, tmp_path):
    arguments = ["fit", folder / "people.csv", "--target", "mode", "--out", tmp_path / "m"]
    assert "'mode' is the target" in mistake(*arguments, "--drop", "mode")


def test_a_kept_column_does_not_vanish_under_one_of_the_output(folder, tmp_path):
    table = people().assign(predicted="mine", p_car_lower=1.0).to_csv(index=False)
    out = tmp_path / "p.csv"
    line = mistake("predict", folder / "m.plk", "-", "--keep", "predicted", "--out", out, stdin=table)
    assert "two columns of the output would be called 'predicted'" in line and not out.exists()
    kept = plackett("predict", folder / "m.plk", "-", "--keep", "p_car_lower", stdin=table)
    assert kept.exit_code == 0 and next(iter(probabilities(kept.stdout))) == "p_car_lower"
    both = mistake("predict", folder / "m.plk", "-", "--keep", "p_car_lower", "--interval", "0.9", stdin=table)
    assert "'p_car_lower'" in both


# Mistakes


@pytest.mark.parametrize(
    "table, options, words",
    [
        ("age,mood\n1,a\n2,b\n", ["--target", "moood"], "no target 'moood'; did you mean mood?"),
        ("age,mood\n1,a\n2,b\n", ["--target", "zzz"], "no target 'zzz'; the table has age, mood."),
        ("age,mood\n1,a\n2,b\n", ["--target", "mood", "--drop", "agee"], "no column 'agee'; did you mean age?"),
        ("age,mood\n1,a\n2,a\n", ["--target", "mood"], "two classes or more, got 1 in 2 rows"),
        ("age,mood\n1,a\n2,b\n3,c\n", ["--target", "mood"], "3 different values in 3 rows, such as 'a'"),
        ("mood\na\nb\na\nb\n", ["--target", "mood"], "no column to predict 'mood' from"),
        ("age,mood\n1,a,9\n2,b,9\n", ["--target", "mood"], "more fields than its first line has names"),
        ("age,mood\n1,a\n2,b,9,9\n", ["--target", "mood"], "is not a table: .*line 3"),
        ("age,mood\ninf,a\n2,b\n1,a\n0,b\n", ["--target", "mood"], "column 'age' is infinite in 1 of 4 rows"),
        ("age,mood\n", ["--target", "mood"], "a header and no rows"),
        ("", ["--target", "mood"], "standard input is empty"),
        ("age,mood\n1,a\n2,b\n1,b\n2,a\n", ["--target", "mood", "--shape", "-1"], "shape must be a positive number"),
    ],
)
def test_one_line_for_a_mistake(tmp_path, table, options, words):
    line = mistake("fit", "-", *FAST, *options, "--out", tmp_path / "m", stdin=table)
    assert re.search(words, line), line
    assert list(tmp_path.iterdir()) == []


def test_columns_that_are_no_covariates(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"y": ["a", "b"] * 30})
    for column, words in (
        (
            [f"name {i}" for i in range(60)],
            "60 different texts .* such as 'name 0'.*--drop x.*--categorical x",
        ),
        ([*rng.normal(size=58).astype(str), "low", "high"], "numbers in 58 of 60 rows.* such as 'low'.*--drop x"),
    ):
        text = table.assign(x=column).to_csv(index=False)
        line = mistake("fit", "-", "--target", "y", *FAST, "--out", tmp_path / "m", stdin=text)
        assert re.search(words, line), line
    assert (
        plackett(
            "fit", "-", "--target", "y", *FAST, "--categorical", "x", "--out", tmp_path / "m", stdin=text
        ).exit_code
        == 0
    )
    table.assign(x=pd.date_range("2020-01-01", periods=60)).to_parquet(tmp_path / "dates")
    assert "holds dates" in mistake("fit", tmp_path / "dates", "--target", "y", *FAST, "--out", tmp_path / "n")


def test_files_that_are_no_tables(tmp_path):
    for content, words in ((b"PK\x03\x04rest", "spreadsheet"), (b"a,y\n1,\xe9\n", "line 2 of .* is not UTF-8"),
                           (b"PAR1 and no more", "not a whole Parquet file")):  # fmt: skip
        (tmp_path / "t").write_bytes(content)
        line = mistake("fit", tmp_path / "t", "--target", "y", "--out", tmp_path / "m")
        assert re.search(words, line), line
    assert "No such file" in mistake("fit", tmp_path / "none", "--target", "y", "--out", tmp_path / "m")


def test_new_tables_that_do_not_fit_the_model(folder):
    assert "no column 'age'" in mistake("predict", folder / "m.plk", "-", stdin="home,sex,code\ntown,m,1\n")
    words = mistake("predict", folder / "m.plk", "-", stdin="age,home,sex,code\nold,town,m,1\n")
    assert "column 'age' held numbers in training, and 1 of 1 rows hold something else, such as 'old'" in words


def test_models_that_are_none(folder, tmp_path, iris):
    assert "is not a whole plackett model file" in mistake("show", folder / "people.csv")
    assert "No such file" in mistake("show", tmp_path / "none.plk")
    PlackettLuceClassifier("em", shape=1, features="exp").fit(*iris).save(tmp_path / "python.plk")
    line = mistake("predict", tmp_path / "python.plk", folder / "people.csv")
    assert "saved in Python" in line
    assert plackett("show", tmp_path / "python.plk").exit_code == 0


def test_advice_is_in_options(folder):
    line = mistake("predict", folder / "m.plk", folder / "people.csv", "--interval", "0.9")
    assert "Use --inference gibbs or --inference variational." in line


def test_every_setting_that_becomes_an_option_is_one():
    commands = typer.main.get_command(app).commands
    known = {name for each in ("fit", "rank") for parameter in commands[each].params for name in parameter.opts}
    assert {f"--{name.replace('_', '-')}" for name in OPTIONS} <= known


@pytest.mark.parametrize(
    "python, options",
    [
        ("Try Gibbs(chains=8), or more.", "Try --chains 8, or more."),
        ("Try Gibbs(draws=4000, max_seconds=60.5).", "Try --draws 4000 --max-seconds 60.5."),
        ("Raise Gibbs(max_draws=...) or Gibbs(tune=...).", "Raise --max-draws or --tune."),
        ("Gibbs(draws) must be a whole number", "--draws must be a whole number"),
        ("Raise EM(max_iter=...) or EM(tol=1e-3).", "Raise --max-iter or --tol 1e-3."),
        ("Use inference='gibbs' or features=\"exp\".", "Use --inference gibbs or --features exp."),
        ("fit without: drop=['a', \"it's\", 'b c']", "fit without: --drop a --drop 'it'\"'\"'s' --drop 'b c'"),
        ("Gibbs(moves='none') and n_draws=3", "Gibbs(moves='none') and n_draws=3"),
    ],
)
def test_advice_in_python_becomes_options(python, options):
    assert in_options(python) == options


def test_limits_of_em_and_of_tuning_are_passed_on(folder, tmp_path):
    fit = ["fit", folder / "people.csv", "--target", "mode", "--features", "exp", "--shape", "1", "--force"]
    result = plackett(*fit, "--inference", "em", "--max-iter", "2", "--out", tmp_path / "m")
    assert "did not converge in 2 iterations" in result.stderr and "Raise --max-iter or --tol." in result.stderr
    assert load(tmp_path / "m").inference.max_iter == 2
    short = ["--draws", "8", "--tune", "12", "--chains", "2", "--out", tmp_path / "m"]
    plackett(*fit, *short)
    clf = load(tmp_path / "m")
    assert clf.n_iter_ == 20 and clf.trace_.shape == (2, 8)
    plackett(*fit, *short, "--target-ess", "1e6", "--max-draws", "20")
    clf = load(tmp_path / "m")
    assert clf.n_iter_ == 32 and clf.inference.max_draws == 20


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--max-iter", "10"],
        ["fit", "x.csv", "--out", "m"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--inference", "magic"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--features", "cubic"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--shape", "round"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--inference", "em", "--draws", "10"],
        ["fit", "x.csv", "--target", "y", "--out", "m", "--test", "2"],
        ["predict", "m.plk", "x.csv", "--interval", "90"],
        ["unknown"],
    ],
)
def test_wrong_usage(arguments):
    result = plackett(*arguments)
    assert result.exit_code == 2 and "Usage: plackett" in result.stderr and result.stdout == ""


# Output files


def test_an_existing_file_is_kept_unless_forced(folder, tmp_path):
    for command in (
        ["fit", folder / "people.csv", "--target", "mode", *FAST],
        ["predict", folder / "m.plk", folder / "people.csv"],
        ["report", folder / "m.plk", folder / "people.csv"],
        ["show", folder / "m.plk"],
    ):
        out = tmp_path / "old.csv"
        out.write_text("old")
        assert "exists; replace it with --force" in mistake(*command, "--out", out)
        assert out.read_text() == "old"
        if command[0] != "report":
            assert plackett(*command, "--out", out, "--force").exit_code == 0
            assert out.read_bytes() != b"old"


def test_a_failed_write_leaves_the_old_file_whole(folder, tmp_path, monkeypatch):
    out = tmp_path / "old.csv"
    out.write_text("old")

    def fail(handle):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(os, "fsync", fail)
    line = mistake("predict", folder / "m.plk", folder / "people.csv", "--out", out, "--force")
    assert "No space left on device" in line
    arguments = ["fit", folder / "people.csv", "--target", "mode", *FAST, "--out", out, "--force"]
    assert plackett(*arguments).exit_code == 1
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["old.csv"]


def test_where_nothing_can_be_written(folder, tmp_path):
    command = ["predict", folder / "m.plk", folder / "people.csv", "--out"]
    assert "is a folder" in mistake(*command, tmp_path)
    assert "there is no folder" in mistake(*command, tmp_path / "no" / "p.csv")
    assert "must end in .csv, .tsv, .parquet" in mistake(*command, tmp_path / "p.xlsx")


# Showing and reporting


def test_fit_and_report_score_alike(folder, tmp_path):
    model, page = tmp_path / "m.plk", tmp_path / "r.html"
    fitted = plackett("fit", folder / "people.csv", "--target", "mode", *FAST, "--test", "0.3", "--out", model)
    own, alone = re.findall(r"error ([\d.]+), log-loss ([\d.]+)", fitted.stdout)
    assert plackett("report", model, folder / "people.csv", "--out", page).exit_code == 0
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page.read_text(encoding="utf-8")))
    assert (facts["Log-loss"], facts["Log-loss of the classes&#x27; shares in the fit"]) == (own[1], alone[1])
    errors = facts["Errors"], facts["Errors of always saying the most frequent class"]
    assert [float(text.rstrip("%")) / 100 for text in errors] == pytest.approx(
        [float(own[0]), float(alone[0])], abs=6e-4
    )


def test_show(folder, tmp_path):
    result = plackett("show", folder / "m.plk", "--weights", "4")
    clf = load(folder / "m.plk")
    assert repr(clf) in result.stdout and "mode in 120 rows (bus " in result.stdout
    top = clf.summary().head(4)
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == 4
    for row, feature, estimate in zip(rows, top["feature"], top.iloc[:, 2], strict=True):
        assert feature in row and f"{estimate:.3g}" in row
    everything = probabilities(plackett("show", folder / "m.plk", "--out", "-").stdout)
    pd.testing.assert_frame_equal(everything, pd.DataFrame(clf.summary()), check_dtype=False)


def test_names_are_not_taken_for_markup(tmp_path):
    table = people().rename(columns={"age": "[red]age[/red]"}).to_csv(index=False)
    assert plackett("fit", "-", "--target", "mode", *FAST, "--out", tmp_path / "m", stdin=table).exit_code == 0
    assert "exp(-[red]age[/red])" in plackett("show", tmp_path / "m", "--weights", "100").stdout


def test_report_is_given_what_was_seen_and_what_was_not(folder, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "plackett.cli.class_commands.write_report", lambda *arguments, **options: calls.append((arguments, options))
    )
    model = tmp_path / "t.plk"
    plackett("fit", folder / "people.csv", "--target", "mode", *FAST, "--test", "0.2", "--out", model)
    frame = pd.read_csv(folder / "people.csv")
    held = int(load(model).table_.held_out(covariates(load(model), frame), frame["mode"].to_numpy()).sum())

    def reported(which, table, stdin=None):
        result = plackett("report", which, table, "--out", tmp_path / "r.html", "--title", "T", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        (clf, X, y, out), options = calls.pop()
        assert out == str(tmp_path / "r.html") and options["title"] == "T" and y.name == "mode"
        assert list(X) == ["age", "home", "sex", "code", "planet"] and len(X) == len(y)
        test = options["test"]
        return len(X), None if test is None else (len(test[0]), len(test[1])), result.stderr

    assert reported(model, folder / "people.csv")[:2] == (120 - held, (held, held))
    new = people(seed=1)[:50].to_csv(index=False)
    assert reported(model, "-", new)[:2] == (50, (50, 50))
    size, test, words = reported(folder / "m.plk", folder / "people.csv")
    assert (size, test) == (120, None) and "fitted to all these rows" in words


def test_a_report_describes_the_table_that_came(folder, tmp_path):
    model, out = tmp_path / "m.plk", tmp_path / "r.html"
    dated = people().assign(day="2024-01-03").to_csv(index=False)
    fit = ["fit", "-", "--target", "mode", *FAST, "--drop", "day", "--out", model]
    assert plackett(*fit, stdin=dated).exit_code == 0
    result = plackett("report", model, "-", "--out", out, stdin=dated)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("column 'age' is missing in 10 of 120 rows") == 1
    page = out.read_text(encoding="utf-8")
    rows = re.search(r"<caption>Columns of the table</caption>.*?</table>", page, re.S)[0].split("<tr>")[2:]
    told = {cells[0]: cells[1:] for cells in (re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row) for row in rows)}
    assert list(told) == ["age", "home", "sex", "code", "planet", "day"]
    assert told["age"][:2] == ["numbers", "10"] and told["home"][:3] == ["text", "1", "3"]
    assert told["day"][0] == "dates" and told["code"][0] == "whole numbers"
    levels = people()["home"].value_counts()
    assert told["home"][-1] == ", ".join(f"{level} {n}" for level, n in levels.items())
    assert "Not used by the model: &#x27;planet&#x27;, &#x27;day&#x27;." in page and "age is missing" not in told


# As a process


def start(folder, *arguments, **options):
    command = [sys.executable, "-m", "plackett", *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, **options)


SLOW = ["--features", "exp", "--shape", "1", "--draws", "1000000", "--chains", "1"]


def test_silent_in_a_pipe(folder, tmp_path):
    arguments = ["fit", "people.csv", "--target", "mode", "--shape", "1", "--draws", "500", "--chains", "1", "--drop"]
    run = start(folder, *arguments, "age", "--out", tmp_path / "m", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = run.communicate()
    assert run.returncode == 0 and b"3 classes" in out
    assert all(line.startswith(b"plackett: ") for line in err.splitlines()) and b"left" not in err.replace(
        b"left out", b""
    )


@pytest.mark.usefixtures("interruptible")
def test_progress_on_a_terminal_and_ctrl_c_keeps_the_draws(folder, tmp_path):
    ours, theirs = pty.openpty()
    out = tmp_path / "m.plk"
    arguments = ["fit", "people.csv", "--target", "mode", *SLOW, "--out", out]
    terminal = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    run = start(folder, *arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=terminal)
    os.close(theirs)
    seen, interrupted = b"", False
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while chunk := os.read(ours, 4096):
            seen = re.sub(rb"\x1b\[[?0-9;]*[A-Za-z]", b"", seen + chunk)
            done = re.findall(rb"Gibbs, 1 chains \S+ (\d+)/1002000 \d+:\d\d elapsed, [\d:]+:\d\d left", seen)
            if not interrupted and done and int(done[-1]) > 4000:  # more than tuning
                run.send_signal(signal.SIGINT)
                interrupted = True
    os.close(ours)
    assert run.wait() == 130 and b"note: interrupted: the " in seen
    assert 0 < load(out).posterior_.shape.shape[1] < 1_000_000


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_before_there_is_a_result_leaves_the_old_file(folder, tmp_path):
    out = tmp_path / "m.plk"
    out.write_text("old")
    arguments = ["fit", "-", "--target", "mode", *FAST, "--out", out, "--force"]
    run = subprocess.Popen(
        [sys.executable, "-m", "plackett", *map(str, arguments)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    run.stdin.write(b"age,mode\n" + b"1,a\n" * 50_000)  # more than a pipe holds: it is being read
    while unread(run.stdin):  # and now waited for
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    err = run.stderr.read()
    run.wait()
    run.stdin.close()
    run.stderr.close()
    assert run.returncode == 130 and b"Traceback" not in err
    assert out.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def unread(pipe):
    """Bytes that are still in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_reader_that_stops_early(folder):
    run = start(folder, "show", "m.plk", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    err = run.stderr.read()
    run.stderr.close()
    assert run.wait() == 1 and b"Traceback" not in err


# Names that steer a terminal, and texts that are formulas

STEERING = "\x1b[2J\x07\x9b\u202e\u2066"


def test_names_do_not_steer_a_terminal(tmp_path):
    table = people().rename(columns={"code": f"code{STEERING}", "home": "ho\nme"})
    table["mode"] = table["mode"] + STEERING
    fit = ("fit", "-", "--target", "mode", *FAST, "--out", tmp_path / "m")
    results = [plackett(*fit, stdin=table.to_csv(index=False)), plackett("show", tmp_path / "m")]
    results += [plackett("predict", tmp_path / "m", "-", stdin=f"a{STEERING},b\n1,2\n")]
    assert [result.exit_code for result in results] == [0, 0, 1]
    for result in results:
        assert not set(result.output) & set(STEERING.replace("[2J", "")), result.output
    assert r"code\x1b[2J\x07\x9b\u202e\u2066" in results[0].stdout and r"ho\nme" in results[0].stdout
    assert r"\x1b[2J" in results[1].stdout and r"\x1b[2J" in results[2].stderr


def test_a_table_on_a_terminal_is_escaped_and_in_a_pipe_as_it_is(monkeypatch, capsys):
    frame = pd.DataFrame({"a": [f"x{STEERING}"]})
    for terminal in (False, True):
        monkeypatch.setattr("sys.stdout.isatty", lambda terminal=terminal: terminal, raising=False)
        write_table(frame, "-")
        assert (STEERING in capsys.readouterr().out) == (not terminal)


def test_texts_that_a_spreadsheet_would_run_are_noted_or_protected(tmp_path):
    table = people().assign(note="=1+1", number="-5", more="@SUM", plain="a=b")
    table["mode"] = table["mode"].map({"bus": "=bus", "car": "+car", "train": "train"})
    table.to_csv(tmp_path / "t.csv", index=False)
    drop = [word for name in ("note", "number", "more", "plain") for word in ("--drop", name)]
    assert plackett("fit", tmp_path / "t.csv", "--target", "mode", *FAST, *drop, "--out", tmp_path / "m").exit_code == 0
    keep = [word for name in ("note", "number", "more", "plain") for word in ("--keep", name)]
    raw = plackett("predict", tmp_path / "m", tmp_path / "t.csv", *keep)
    assert "texts begin with one of = + - @, which a spreadsheet takes for formulas; --spreadsheet" in raw.stderr
    made = plackett("predict", tmp_path / "m", tmp_path / "t.csv", *keep, "--spreadsheet")
    assert "spreadsheet" not in made.stderr
    before, after = probabilities(raw.stdout), probabilities(made.stdout)
    assert set(after["note"]) == {"'=1+1"} and set(after["more"]) == {"'@SUM"} and set(after["plain"]) == {"a=b"}
    pd.testing.assert_series_equal(after["number"], before["number"])
    assert set(after["predicted"]) <= {"'=bus", "'+car", "train"} and list(after) == list(before)
