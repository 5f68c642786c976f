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

from plackett import EM, Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational, load
from plackett.features import ExpFeatures
from plackett.output.modelfile import ModelFileError
from plackett.posterior.diagnostics import diagnose_weights, probed_probabilities
from plackett.posterior.weights import Draws, normalised
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


def test_damage_is_recognised(iris, tmp_path):
    """Cut short or changed in any byte, a file gives a clear error, or the very same model if the byte said nothing."""
    path = tmp_path / "m.plk"
    clf = PlackettLuceClassifier(Variational(draws=50), shape=1.0, random_state=0, features="exp").fit(*iris)
    clf.save(path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match=r"m\.plk is not a whole plackett model"):
            load(path)
    rng = np.random.default_rng(0)
    places = {*rng.integers(len(whole), size=150), *range(100), *range(len(whole) - 300, len(whole))}
    refused = 0
    for place in sorted(places):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            same = load(path)
        except ModelFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(same.weights_, clf.weights_)
    assert refused > len(places) / 2


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


def nested(manifest):
    return {"manifest.json": '{"format": ' * 100_000}


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code ran",))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda m: m.update(format="other"), "its format is 'other'"),
        (lambda m: m.update(version=99), "version 99.*upgrade"),
        (lambda m: m.update(version=0), "version 0"),
        (lambda m: m.update(version="1"), "not supported"),
        (lambda m: m.update(model="os.system"), "os.system"),
        (lambda m: m.update(params={"settings": "os.system", "params": {}, "fitted": {}}), "does not know"),
        (lambda m: m.update(fitted={"record": "Popen", "fields": {"dict": [["args", "ls"]]}}), "does not know"),
        (lambda m: m["fitted"]["dict"].append(["predict", "x"]), "'predict' is not a fitted attribute"),
        (lambda m: m["fitted"]["dict"].append(["__class__", "x"]), "'__class__' is not a fitted attribute"),
        (lambda m: m["fitted"]["dict"].append(["more_", {"array": "../../etc/passwd"}]), "passwd"),
        (lambda m: m["params"]["dict"].append(["colour", "red"]), "colour"),
        (lambda m: m["fitted"]["dict"].clear(), "weights_"),
        (lambda m: m["fitted"]["dict"].append(["classes_", {"labels": ["a", "b"]}]), "do not fit"),
        (nested, "recursion"),
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


def test_a_model_of_100_weights_stays_under_10_megabytes(iris, tmp_path):
    rng = np.random.default_rng(0)
    log_weights = normalised(rng.normal(size=(4, 1000, 4, 25)))
    shape = rng.gamma(1.0, size=(4, 1000))
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(rng.normal(size=(40, 12)), np.arange(40) % 4)
    clf.posterior_ = Draws(log_weights, shape)
    probability = probed_probabilities(clf.posterior_, clf._rows(rng.normal(size=(40, 12))))
    clf.diagnostics_ = diagnose_weights(clf.posterior_, True, probability)
    clf.weights_, clf.trace_ = clf.posterior_.weights, rng.normal(size=(4, 1000))
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


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.plk")
