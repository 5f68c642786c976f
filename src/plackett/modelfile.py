"""Model files: a zip of plain arrays and one JSON manifest. Reading one builds known classes only; no code runs."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.classifier import PlackettLuceClassifier
from plackett.diagnostics import Diagnostics
from plackett.directions import Gates, LearnedDirections
from plackett.directions.diagnostics import DirectionDiagnostics
from plackett.directions.posterior import DirectionDraws, DirectionPoint
from plackett.features import ExpFeatures
from plackett.inference import EM, Gibbs, Variational
from plackett.logit import SparseLogitClassifier
from plackett.logit.posterior import LogitDiagnostics, LogitDraws, Measures
from plackett.posterior import Draws, Gammas, Point
from plackett.priors import Gamma, LogUniform

FORMAT = "plackett-model"
VERSION = 1
MODELS: dict[str, Any] = {cls.__name__: cls for cls in (PlackettLuceClassifier, SparseLogitClassifier)}
SETTINGS = {cls.__name__: cls for cls in (EM, Variational, Gibbs, ExpFeatures, LearnedDirections, Gates)}
RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Point, Gammas, Draws, Diagnostics, LogUniform, Gamma),
        *(DirectionDraws, DirectionPoint, DirectionDiagnostics),
        *(LogitDraws, LogitDiagnostics, Measures),
    )
}


class ModelFileError(ValueError):
    """A model cannot be written, or a file is not a whole model file."""


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item(), where)
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return {"labels": [self.encode(v, where) for v in value.tolist()]}
            name = f"array{len(self.arrays)}"
            self.arrays[name] = value
            return {"array": name}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.encode(v, where) for v in value]}
        if isinstance(value, dict):
            pairs = [[self.encode(k, where), self.encode(v, where)] for k, v in value.items()]
            return {"dict": pairs}
        kind = type(value).__name__
        if SETTINGS.get(kind) is type(value):
            fitted = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
            return {
                "settings": kind,
                "params": self.encode(value.get_params(deep=False), f"{where}.{kind}"),
                "fitted": self.encode(fitted, f"{where}.{kind}"),
            }
        if RECORDS.get(kind) is type(value):
            return {"record": kind, "fields": self.encode(vars(value), f"{where}.{kind}")}
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{kind}, which a model file cannot hold: it stores plain values and "
            f"{', '.join(sorted(SETTINGS))}. Use joblib.dump for such a model, and load it only from sources you trust."
        )


class _Reader:
    def __init__(self, arrays: zipfile.ZipFile):
        self.arrays = arrays

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            with self.arrays.open(f"{value['array']}.npy") as stream:
                return np.lib.format.read_array(io.BytesIO(stream.read()), allow_pickle=False)
        if "labels" in value:
            out = np.empty(len(value["labels"]), dtype=object)
            out[:] = [self.decode(v) for v in value["labels"]]
            return out
        if "list" in value:
            return [self.decode(v) for v in value["list"]]
        if "tuple" in value:
            return tuple(self.decode(v) for v in value["tuple"])
        if "dict" in value:
            return {self.decode(k): self.decode(v) for k, v in value["dict"]}
        if "settings" in value:
            made = SETTINGS[value["settings"]](**self.decode(value["params"]))
            made.__dict__.update(self.decode(value["fitted"]))
            return made
        return RECORDS[value["record"]](**self.decode(value["fields"]))


def save(classifier: PlackettLuceClassifier | SparseLogitClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier; an existing file is replaced only once the new one is whole."""
    writer = _Writer()
    params = classifier.get_params(deep=False)
    if not (params["random_state"] is None or isinstance(params["random_state"], (int, np.integer))):
        params["random_state"] = None
    fitted = {k: v for k, v in vars(classifier).items() if k.endswith("_") and not k.startswith("_")}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "model": type(classifier).__name__,
        "params": writer.encode(params, "parameters"),
        "fitted": writer.encode(fitted, "model"),
    }
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("manifest.json", json.dumps(manifest))
                for name, array in writer.arrays.items():
                    buffer = io.BytesIO()
                    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
                    archive.writestr(f"{name}.npy", buffer.getvalue())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that the `save` of a classifier wrote.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em", shape=1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "iris.plk"))
    ...     same = load(os.path.join(folder, "iris.plk"))
    >>> bool((same.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise ModelFileError(f"{path} is not a plackett model (its format is {manifest['format']!r}).")
            if manifest["version"] > VERSION:
                raise ModelFileError(
                    f"{path} has format version {manifest['version']}, this plackett reads up to {VERSION}: upgrade."
                )
            reader = _Reader(archive)
            kind = MODELS[manifest.get("model", "PlackettLuceClassifier")]
            classifier = kind(**reader.decode(manifest["params"]))
            classifier.__dict__.update(reader.decode(manifest["fitted"]))
            return classifier
    except ModelFileError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        EOFError,
    ) as error:
        raise ModelFileError(f"{path} is not a whole plackett model file: {error}") from error
