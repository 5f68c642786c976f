"""Model files: a zip of plain arrays and one JSON manifest. Reading one builds known classes only; no code runs."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from dataclasses import fields
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from plackett.chooser import PlackettLuceChooser
from plackett.classifier import PlackettLuceClassifier
from plackett.data.ballots import Ballots
from plackett.data.choices import ChoiceSets
from plackett.data.columns import Category, Number
from plackett.data.long_table import LongTable
from plackett.data.table import Table
from plackett.directions import Gates, LearnedDirections
from plackett.directions.summary import ReadableDraw
from plackett.estimator import Model
from plackett.features import ExpFeatures
from plackett.features.choices import ChoiceDesign, EntryTable
from plackett.features.columns import Columns
from plackett.inference import EM, Gibbs, Variational
from plackett.logit import SparseLogitClassifier
from plackett.logit.posterior import LogitDraws
from plackett.output.files import whole_file
from plackett.posterior.choosers import FixedChoices, LearnedChoices
from plackett.posterior.diagnostics import Diagnostics, Measures, stored_diagnostics
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.situations import SituationDraws, SituationPoint
from plackett.posterior.weights import Draws, Gammas, GIGs, Point
from plackett.priors import GIG, Gamma, LogUniform
from plackett.ranker import PlackettLuceRanker

FORMAT = "plackett-model"
VERSION = 2
ESTIMATES = {PlackettLuceClassifier: "weights_", SparseLogitClassifier: "coef_", PlackettLuceRanker: "weights_"}
MODELS: dict[str, Any] = {cls.__name__: cls for cls in (*ESTIMATES, PlackettLuceChooser)}
SETTINGS = {cls.__name__: cls for cls in (EM, Variational, Gibbs, ExpFeatures, LearnedDirections, Gates, ChoiceDesign)}
RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Point, Gammas, GIGs, Draws, Diagnostics, Measures, LogUniform, Gamma, GIG),
        *(DirectionDraws, DirectionPoint, SituationDraws, SituationPoint, ReadableDraw, LogitDraws),
        *(FixedChoices, LearnedChoices, ChoiceSets),
        *(Table, LongTable, Ballots, Number, Category, Columns),
    )
}
STORED = RECORDS | dict.fromkeys(("Diagnostics", "DirectionDiagnostics", "LogitDiagnostics"), stored_diagnostics)
RENAMED = {  # since version 1
    "Portrait": "ReadableDraw",
    "portrait_": "readable_draw_",
    "relevance_": "mean_relevance_",
}
PLAIN = "biufcUSMm"  # kinds of arrays that hold nothing but values
SMALL, DENSEST = 1 << 26, 100  # bytes that any file may unpack to; beyond them, times its own size


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
            held = {each.name: getattr(value, each.name) for each in fields(value)}
            return {"record": kind, "fields": self.encode(held, f"{where}.{kind}")}
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{kind}, which a model file cannot hold: it stores plain values and "
            f"{', '.join(sorted(SETTINGS))}. Use joblib.dump for such a model, and load it only from sources you trust."
        )


class _Reader:
    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive

    def manifest(self) -> dict[str, Any]:
        """The JSON part, of a version that is known."""
        manifest = json.loads(self.archive.read("manifest.json"))
        if manifest["format"] != FORMAT:
            raise ModelFileError(f"its format is {manifest['format']!r}")
        if not 1 <= manifest["version"] <= VERSION:
            raise ModelFileError(
                f"it has format version {manifest['version']}, this plackett reads 1 to {VERSION}: upgrade plackett"
            )
        return dict(manifest)

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        match value:
            case {"array": str(name)}:
                return self._array(name)
            case {"labels": list(items)}:
                out = np.empty(len(items), dtype=object)
                out[:] = [self.decode(v) for v in items]
                return out
            case {"list": list(items)}:
                return [self.decode(v) for v in items]
            case {"tuple": list(items)}:
                return tuple(self.decode(v) for v in items)
            case {"dict": list(pairs)}:
                return {self.decode(k): self.decode(v) for k, v in pairs}
            case {"settings": str(kind), "params": params, "fitted": fitted} if kind in SETTINGS:
                return self.build(SETTINGS[kind], params, fitted)
            case {"record": str(kind), "fields": held} if RENAMED.get(kind, kind) in STORED:
                return STORED[RENAMED.get(kind, kind)](**self.decode(held))
        raise ModelFileError(f"it holds {str(value)[:60]}, which this plackett does not know")

    def build(self, kind: Any, params: Any, fitted: Any) -> Any:
        """An estimator of a known class and what fitting gave it."""
        made = kind(**self.decode(params))
        attributes = {RENAMED.get(name, name): value for name, value in self.decode(fitted).items()}
        for name in attributes:
            if name.startswith("_") or not name.endswith("_"):
                raise ModelFileError(f"{name!r} is not a fitted attribute")
        vars(made).update(attributes)
        return made

    def _array(self, name: str) -> npt.NDArray[Any]:
        """An array of plain values, as large as its header says; nothing is allocated before that is checked."""
        stream = io.BytesIO(self.archive.read(f"{name}.npy"))
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = header[np.lib.format.read_magic(stream)](stream)
        left = len(stream.getbuffer()) - stream.tell()
        if dtype.kind not in PLAIN or math.prod(shape) * dtype.itemsize != left:
            raise ModelFileError(f"{name} is no plain array of shape {shape} and type {dtype}")
        values = np.frombuffer(stream.getbuffer()[stream.tell() :], dtype).reshape(shape, order="F" if fortran else "C")
        return values.copy()


def save(model: Model, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a fitted model to a path or a binary stream; an old file is replaced once the new one is whole."""
    from plackett import __version__

    writer = _Writer()
    params = model.get_params(deep=False)
    if not (params["random_state"] is None or isinstance(params["random_state"], (int, np.integer))):
        params["random_state"] = None
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "plackett": __version__,
        "model": type(model).__name__,
        "params": writer.encode(params, "parameters"),
        "fitted": writer.encode(fitted, "model"),
    }
    if isinstance(path, (str, os.PathLike)):
        with whole_file(path) as stream:
            _pack(stream, manifest, writer.arrays)
    else:
        _pack(path, manifest, writer.arrays)


def _pack(stream: BinaryIO, manifest: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def load(path: str | os.PathLike[str] | BinaryIO) -> Any:
    """Read a model that the `save` of a classifier or ``plackett fit`` wrote; nothing in the file is run.

    Parameters
    ----------
    path : path or binary stream
        The model file.

    Returns
    -------
    PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceRanker or PlackettLuceChooser
        One that ``plackett fit`` made knows its table: it predicts and explains rows of such a data frame.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "iris.plk"))
    ...     same = load(os.path.join(folder, "iris.plk"))
    >>> bool((same.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as stream:
            return _unpack(stream, os.fspath(path))
    return _unpack(path, "this")


def _unpack(stream: BinaryIO, name: str) -> Any:
    size = stream.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(stream) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > max(SMALL, DENSEST * size):
                raise ModelFileError(f"its {size} bytes would unpack to {unpacked}, more than any model does")
            reader = _Reader(archive)
            manifest = reader.manifest()
            kind = MODELS[manifest.get("model", "PlackettLuceClassifier")]
            model = reader.build(kind, manifest["params"], manifest["fitted"])
            if isinstance(model, PlackettLuceChooser):
                _check_chooser(model)
            else:
                nameless = kind is PlackettLuceRanker and model.posterior_.no_estimates is not None
                _check(model, None if nameless else getattr(model, ESTIMATES[kind]))
            return model
    except Exception as error:  # whatever goes wrong in making sense of foreign bytes
        raise ModelFileError(f"{name} is not a whole plackett model file: {error or type(error).__name__}") from error


def _check(model: Model, estimate: npt.NDArray[Any] | None) -> None:
    """Refuse parts that do not fit together; directions over situations have no estimate to be read."""
    of, labels = model._labels()
    if estimate is None:
        estimate = np.zeros(model.posterior_.shape_of_estimate)
    right = (
        labels.ndim == 1
        and estimate.ndim == 2
        and len(estimate) == len(labels) >= 2
        and estimate.shape == model.posterior_.shape_of_estimate
        and np.isfinite(estimate).all()
    )
    if not right:
        raise ModelFileError(f"weights of shape {estimate.shape} do not fit labels of shape {labels.shape} ({of})")


def _check_chooser(model: PlackettLuceChooser) -> None:
    """Refuse parts that do not fit together."""
    schema, design, groups = model.schema_, model.design_, model.group_labels_
    columns = len(design.names_), (len(schema.alternatives), len(schema.attributes))
    if (
        model.posterior_.shape_of_estimate[0] != len(groups)
        or (len(design.mean_), design.typical_.shape) != columns
        or design.columns(EntryTable.of(schema)).shape != (0, columns[0])
    ):
        raise ModelFileError(f"weights of {len(groups)} and a design of {columns[0]} columns do not fit together")
