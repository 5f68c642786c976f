"""Model files: whole, small, plain."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import SplineTransformer

from model_kinds import KINDS, probabilities
from plackett import EM, Gibbs, PlackettLuceClassifier, SparseLogitClassifier, load
from plackett.features import ExpFeatures
from plackett.model.diagnostics import diagnose_weights, probed_probabilities
from plackett.model.mixture import normalised
from plackett.output.modelfile import ModelFileError
from plackett.posterior.weights import Draws, Point
from plackett.priors import LogUniform

OLD = Path(__file__).parent / "models"


@pytest.mark.parametrize(
    "inference",
    ["em", EM(cv=3), "variational", Gibbs(draws=50, tune=50, shape_prior=LogUniform(0.01, 1))],
    ids=["em", "EM", "variational", "gibbs"],
)
def test_round_trip(iris, quiet, tmp_path, inference):
    X, y = iris
    labels = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    clf = PlackettLuceClassifier(inference, features=ExpFeatures(scales=(0.5, 1)), random_state=0).fit(X, labels)
    clf.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    np.testing.assert_array_equal(clf.predict(X), same.predict(X))
    assert repr(same) == repr(clf) and same.shape_ == clf.shape_
    np.testing.assert_array_equal(clf.trace_, same.trace_)


def test_weights_of_classes_are_kept(iris, tmp_path):
    X, y = iris
    for labels, given in ((y, {0: 2.0, np.int64(1): 0.5}), (np.array(["a", "b", "c"])[y], {"a": 2.0}), (y, "balanced")):
        clf = PlackettLuceClassifier("em", shape=0.9, features="exp", class_weight=given).fit(X, labels)
        clf.save(tmp_path / "m.plk")
        same = load(tmp_path / "m.plk")
        assert same.class_weight == given
        np.testing.assert_array_equal(same.fit(X, labels).weights_, clf.weights_)


def rewritten(path, change):
    """A model file with its manifest changed, and members added."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    added = change(manifest) or {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members | {"manifest.json": json.dumps(manifest)} | added).items():
            archive.writestr(name, content)


def array_file(array, **kwargs):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **kwargs)
    return stream.getvalue()


def endless_header(manifest):
    """An array of a petabyte, by its own account."""
    head = array_file(np.zeros(0)).replace(b"(0,)", b"(99999999999999,)".ljust(4))
    return {"array0.npy": head}


def edit(manifest, name, value, where="fitted"):
    """Another value of one attribute or parameter."""
    pairs = manifest[where]["dict"]
    assert name in [pair[0] for pair in pairs]
    manifest[where]["dict"] = [[key, value if key == name else old] for key, old in pairs]


def deep(manifest):
    value = []
    for _ in range(50):
        value = {"list": [value]}
    edit(manifest, "shape", value, "params")


def nested(manifest):
    return {"manifest.json": '{"format": ' * 100_000}


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code ran",))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda m: m.update(format="other"), "format is 'plackett-model'"),
        (lambda m: m.update(version=99), "whole number from 1 to 2, got 99 instead.*upgrade"),
        (lambda m: m.update(version=0), "from 1 to 2, got 0 instead"),
        *(
            (lambda m, v=v: m.update(version=v), f"version must be .*, got {v!r} instead")
            for v in ("1", 1.5, 2.0, True, None)
        ),
        (lambda m: m.pop("version") and None, "version must be"),
        (lambda m: m.update(model="os.system"), "os.system"),
        (lambda m: m.update(model=["os"]), "model must be one of .*, got a list of 1 instead"),
        (
            lambda m: m.update(params={"settings": "os.system", "params": {}, "fitted": {}}),
            "must have its parts by name",
        ),
        (lambda m: m["params"]["dict"].append(["x", {"settings": "os.system"}]), "x holds .*does not know"),
        (lambda m: m["fitted"]["dict"].append(["x_", {"record": "Popen", "fields": {}}]), "x_ holds .*does not know"),
        (lambda m: m["fitted"]["dict"].append(["x_", {"array": "array0", "more": 1}]), "x_ holds .*does not know"),
        (lambda m: m["fitted"]["dict"].append(["predict", "x"]), "has 'predict', which is no attribute"),
        (lambda m: m["fitted"]["dict"].append(["__class__", "x"]), "has '__class__', which is no attribute"),
        (lambda m: m["fitted"]["dict"].append([{"list": []}, "x"]), "has the key a list of 0, expected a text"),
        (lambda m: m["fitted"]["dict"].append(["x_"]), "holds a list of 1, expected a key and its value"),
        (lambda m: m["fitted"]["dict"].append(["n_iter_", 10**30]), "n_iter_.* twice"),
        (lambda m: m["params"]["dict"].append(["x", 10**30]), "x is a whole number beyond 64 bits"),
        (
            lambda m: edit(m, "posterior_", {"array": "array0"}),
            "posterior_ must be of the kind Point or .*, got an array",
        ),
        (
            lambda m: edit(m, "n_features_in_", 3),
            "features_ has size 7 .*'feature', expected 9 as in|n_features_in_ has size 3",
        ),
        (
            lambda m: edit(m, "shape", -1.0, "params"),
            "shape must be a number, positive and finite, .*, got -1.0 instead",
        ),
        (lambda m: edit(m, "engine", "abacus", "params"), "engine must be one of .*, got 'abacus' instead"),
        (lambda m: edit(m, "features", "learned", "params"), "Point, which does not belong to features='learned'"),
        (lambda m: m["fitted"]["dict"].append(["more_", {"array": "../../etc/passwd"}]), "passwd"),
        (lambda m: m["params"]["dict"].append(["colour", "red"]), "colour"),
        (lambda m: m["fitted"]["dict"].clear(), "the model has no 'trace_'"),
        (
            lambda m: edit(m, "classes_", {"labels": ["a", "b"]}),
            "size 2 along the axis 'group', expected 3|size 3 .* expected 2",
        ),
        (nested, "more than any model's has"),
        (deep, "nested deeper than 30 levels"),
        (lambda m: {"array0.npy": array_file(np.array([Bomb()], dtype=object), allow_pickle=True)}, "no plain array"),
        (lambda m: {"array0.npy": array_file(np.zeros(3, dtype=[("a", "f8")]))}, "no plain array"),
        (lambda m: {"array0.npy": array_file(np.zeros(5))[:-8]}, "no plain array"),
        (endless_header, "no plain array"),
        (lambda m: {"zeros.npy": bytes(1 << 27)}, "would unpack to"),
    ],
)
def test_hostile_files_give_a_clear_error(iris, tmp_path, change, words):
    path = tmp_path / "m.plk"
    PlackettLuceClassifier("em", shape=1.0, features="exp").fit(*iris).save(path)
    rewritten(path, change)
    with pytest.raises(ModelFileError, match=rf"(?s)m\.plk is not a whole plackett model file: .*({words})"):
        load(path)


def test_other_files_are_no_models(tmp_path):
    path = tmp_path / "m.plk"
    for content in (b"", b"age,mode\n1,a\n", pickle.dumps(Bomb())):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a whole plackett model file"):
            load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ModelFileError, match=r"manifest\.json"):
        load(path)


@pytest.mark.parametrize("name", ["em", "variational", "gibbs", "logit", "learned"])
def test_files_of_version_1_stay_readable(name):
    """Files written when the format was new, with the probabilities that their models gave then."""
    clf = load(OLD / f"v1-{name}.plk")
    expected = json.loads((OLD / "v1-probabilities.json").read_text())[name]
    X = np.linspace(-1, 1, 8).reshape(4, 2)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-10)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert len(clf.summary()) and not hasattr(clf, "portrait_")
    assert len(clf.effects(X)) == 6
    if name == "learned":  # its draws of relevance were not kept
        assert clf.relevance_.shape == (2,) and np.isnan(clf.relevance_.attrs["lower"]).all()


@pytest.mark.parametrize("name", KINDS)
def test_files_of_version_2_stay_readable(name):
    """A file of every kind of model, with the probabilities that it gave; saved again it holds the same."""
    model = load(OLD / f"v2-{name}.plk")
    expected = json.loads((OLD / "v2-probabilities.json").read_text())[name]
    np.testing.assert_allclose(probabilities(model), expected, rtol=1e-10)
    stream = io.BytesIO()
    model.save(stream)
    assert np.array_equal(probabilities(load(stream)), probabilities(model)) and repr(load(stream)) == repr(model)


def test_a_model_of_100_weights_stays_under_10_megabytes(iris, tmp_path):
    rng = np.random.default_rng(0)
    log_weights = normalised(rng.normal(size=(4, 1000, 4, 25)))
    shape = rng.gamma(1.0, size=(4, 1000))
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(rng.normal(size=(40, 12)), np.arange(40) % 4)
    clf.posterior_ = Draws(log_weights, shape)
    probability = probed_probabilities(clf.posterior_, clf._rows(rng.normal(size=(40, 12))))
    clf.diagnostics_ = diagnose_weights(clf.posterior_, True, probability)
    clf.weights_, clf.trace_ = clf.posterior_.weights, rng.normal(size=(4, 1000))
    clf.inference_ = Gibbs(draws=1000, tune=0)
    clf.save(tmp_path / "m.plk")
    assert (tmp_path / "m.plk").stat().st_size < 10e6
    np.testing.assert_array_equal(load(tmp_path / "m.plk").posterior_.log_weights, log_weights)


def test_streams_permissions_and_links(iris, tmp_path):
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(*iris)
    stream = io.BytesIO()
    clf.save(stream)
    np.testing.assert_array_equal(load(stream).weights_, clf.weights_)
    path, link = tmp_path / "m.plk", tmp_path / "link.plk"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    clf.save(link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(load(path).weights_, clf.weights_)
    umask = os.umask(0o022)
    clf.save(tmp_path / "new.plk")
    os.umask(umask)
    assert (tmp_path / "new.plk").stat().st_mode & 0o777 == 0o644


def test_an_interrupted_write_leaves_the_old_file(iris, tmp_path, monkeypatch):
    path = tmp_path / "m.plk"
    path.write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(*iris)
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.save(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_the_logit_and_its_diagnostics_come_back(tmp_path, quiet):
    rng = np.random.default_rng(0)
    clf = SparseLogitClassifier(draws=20, tune=20, chains=2, random_state=0)
    clf.fit(rng.normal(size=(60, 2)), np.arange(60) % 3).save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    np.testing.assert_array_equal(same.posterior_.coef, clf.posterior_.coef)
    assert same.diagnostics_.penalty.rhat.shape == clf.diagnostics_.penalty.rhat.shape == ()


def test_what_cannot_be_stored_is_refused_and_the_old_file_stays(iris, tmp_path):
    X, y = iris
    path = tmp_path / "m.plk"
    path.write_text("old")
    clf = PlackettLuceClassifier("em", shape=1.0, features=SplineTransformer()).fit(X, y)
    with pytest.raises(ModelFileError, match="SplineTransformer.*joblib"):
        clf.save(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_model_that_no_file_could_hold_is_not_written(iris, tmp_path):
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(*iris)
    clf.posterior_ = Point(clf.weights_[:, 1:] / clf.weights_[:, 1:].sum())
    with pytest.raises(ModelFileError, match=r"size [89] along the axis 'feature', expected [89].*joblib"):
        clf.save(tmp_path / "m.plk")
    assert not list(tmp_path.iterdir())


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.plk")
