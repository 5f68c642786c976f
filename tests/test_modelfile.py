"""Model files: whole, small, plain."""

import contextlib
import json
import zipfile

import numpy as np
import pytest
from sklearn.preprocessing import SplineTransformer

from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, load
from plackett.features import ExpFeatures
from plackett.modelfile import ModelFileError
from plackett.priors import LogUniform


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


def test_damage_is_recognised(iris, tmp_path):
    path = tmp_path / "m.plk"
    PlackettLuceClassifier(Variational(draws=50), shape=1.0, random_state=0).fit(*iris).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match=r"m\.plk is not a whole plackett model"):
            load(path)
    for place in rng.integers(200, len(whole) - 1000, size=30):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(ModelFileError):
            load(path)


def test_code_is_never_built(tmp_path):
    path = tmp_path / "evil.plk"
    for manifest in (
        {
            "format": "plackett-model",
            "version": 1,
            "params": {"settings": "os.system", "params": {}},
            "fitted": {},
        },
        {"format": "plackett-model", "version": 99, "params": {}, "fitted": {}},
        {"format": "other", "version": 1},
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", json.dumps(manifest))
        with pytest.raises(ModelFileError):
            load(path)


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
