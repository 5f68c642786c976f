"""Model files: a zip of plain arrays and one JSON manifest. Reading one builds known classes only; no code runs.

What is written and read must fit the schema in `output.stored`. Nothing is unpacked beyond the size that it declares.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from plackett.estimator import Model
from plackett.output import stored
from plackett.output.files import whole_file
from plackett.output.schema import Declaration, Sizes, check_all, is_scalar, shown
from plackett.posterior.diagnostics import Diagnostics, early_diagnostics

FORMAT = "plackett-model"
VERSION = 2
MODELS, SETTINGS, RECORDS = (
    {each.cls.__name__: each for each in part} for part in (stored.MODELS, stored.SETTINGS, stored.RECORDS)
)
RENAMED = {  # since version 1
    "Portrait": "ReadableDraw",
    "portrait_": "readable_draw_",
    "relevance_": "mean_relevance_",
    "DirectionDiagnostics": "Diagnostics",
    "LogitDiagnostics": "Diagnostics",
}
PLAIN = "biufU"  # kinds of arrays that hold nothing but values
SMALL, DENSEST = 1 << 26, 100  # bytes that any file may unpack to; beyond them, times its own size
NODES, DEPTH = 1 << 16, 30  # values in the manifest of any file, beyond them as many as it has bytes; and their nesting
HEADER, PIECE = 1 << 14, 1 << 20  # bytes of an array's header at the most, and bytes that are unpacked at a time


class ModelFileError(ValueError):
    """A model cannot be written, or a file is not a whole model file."""


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What fitting gave an estimator."""
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("_")}


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}

    def encode(self, value: Any, where: str, sizes: Sizes | None) -> Any:
        """A value as JSON has it; `sizes` are those of the model, and None among parameters, which have their own."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return {"labels": [self.encode(v, where, sizes) for v in value.tolist()]}
            name = f"array{len(self.arrays)}"
            self.arrays[name] = value
            return {"array": name}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.encode(v, where, sizes) for v in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k, where, sizes), self.encode(v, where, sizes)] for k, v in value.items()]}
        kind = type(value).__name__
        own = Sizes() if sizes is None else sizes
        for name, known in (("settings", SETTINGS), ("record", RECORDS)):
            if kind in known and known[kind].cls is type(value):
                return self.encode_object(name, known[kind], value, where, own)
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{kind}, which a model file cannot hold: it stores plain values and "
            f"{', '.join(sorted(SETTINGS))}. Use joblib.dump for such a model, and load it only from sources you trust."
        )

    def encode_object(self, name: str, known: Declaration, value: Any, where: str, sizes: Sizes) -> dict[str, Any]:
        """Settings or a record."""
        if name == "record":
            held = {each.name: getattr(value, each.name) for each in fields(value)}
            made = {"record": known.cls.__name__, "fields": self.encode_named(held, where, sizes)}
            known.check_fields(held, where, sizes)
        else:
            held, found = value.get_params(deep=False), fitted_attributes(value)
            made = {
                "settings": known.cls.__name__,
                "params": self.encode_named(held, where, sizes),
                "fitted": self.encode_named(found, where, sizes),
            }
            known.check_fields(held, where, sizes)
            if found:
                known.check_fitted(found, where, sizes)
        known.law(value, where, sizes)
        return made

    def encode_named(self, held: Mapping[str, Any], where: str, sizes: Sizes | None) -> dict[str, Any]:
        """Values by name."""
        return {"dict": [[k, self.encode(v, f"{where}.{k}" if where else k, sizes)] for k, v in held.items()]}


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, size: int):
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > max(SMALL, DENSEST * size):
            raise ModelFileError(f"its {size} bytes would unpack to {unpacked}, more than any model does")
        self.archive, self.size, self.members = archive, size, {member.filename: member for member in members}
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        if len(self.members) < len(members):
            raise ModelFileError("it holds a part twice")

    def manifest(self) -> dict[str, Any]:
        """The JSON part, of a version that is known."""
        content = self._unpacked("manifest.json")
        nodes = sum(content.count(mark) for mark in b"[{,:")
        if nodes > max(NODES, self.size):
            raise ModelFileError(f"its manifest has some {nodes} values, more than any model does")
        with _readable("its manifest, a part in JSON,"):
            manifest = json.loads(bytes(content))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"its manifest must say the format {FORMAT!r}, and does not")
        version = manifest.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ModelFileError(
                f"its version must be a whole number from 1 to {VERSION}, got {shown(version)} instead: where it is "
                "larger, upgrade plackett"
            )
        return manifest

    def model(self, manifest: dict[str, Any]) -> Any:
        """The model that a manifest describes."""
        kind = manifest.get("model", "PlackettLuceClassifier")
        if not isinstance(kind, str) or kind not in MODELS:
            raise ModelFileError(f"it holds a model of the kind {shown(kind)}; known are {', '.join(MODELS)}")
        sizes = Sizes()
        params, found = self.named(manifest.get("params"), "", None, 0), self.named(manifest.get("fitted"), "", sizes, 0)
        model = self.build(MODELS[kind], params, found, "", sizes)
        sizes.finish()
        unused = self.members.keys() - {"manifest.json"} - {f"{name}.npy" for name in self.arrays}
        if unused:
            raise ModelFileError(f"it holds {shown(min(unused))}, which no part of the model is")
        return model

    def build(self, known: Declaration, params: dict[str, Any], found: dict[str, Any], name: str, sizes: Sizes) -> Any:
        """An estimator of a known class and what fitting gave it."""
        known.check_fields(params, name, sizes)
        made = known.cls(**params)
        if found or known in stored.MODELS:
            known.check_fitted(found, name, sizes)
            vars(made).update(found)
        known.law(made, name, sizes)
        return made

    def decode(self, value: Any, name: str, sizes: Sizes | None, depth: int) -> Any:
        """A value from JSON; `sizes` are those of the model, and None among parameters, which have their own."""
        if depth > DEPTH:
            raise ModelFileError(f"{name} is nested deeper than {DEPTH} levels")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ModelFileError(f"{name} is a whole number beyond 64 bits")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        match value:
            case {"array": str(held), **rest} if not rest:
                return self._array(held)
            case {"labels": list(items), **rest} if not rest:
                out = np.empty(len(items), dtype=object)
                for i, each in enumerate(items):
                    out[i] = self.decode(each, name, sizes, depth + 1)
                return out
            case {"list": list(items), **rest} if not rest:
                return [self.decode(each, f"{name}[{i}]", sizes, depth + 1) for i, each in enumerate(items)]
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(each, f"{name}[{i}]", sizes, depth + 1) for i, each in enumerate(items))
            case {"dict": list(pairs), **rest} if not rest:
                return self._dict(pairs, name, sizes, depth)
            case {"settings": str(kind), "params": params, "fitted": found, **rest} if kind in SETTINGS and not rest:
                own = Sizes() if sizes is None else sizes
                parts = (self.named(part, name, own, depth) for part in (params, found))
                return self.build(SETTINGS[kind], *parts, name, own)
            case {"record": str(kind), "fields": held, **rest} if RENAMED.get(kind, kind) in RECORDS and not rest:
                known, own = RECORDS[RENAMED.get(kind, kind)], Sizes() if sizes is None else sizes
                parts = self.named(held, name, own, depth)
                if known.cls is Diagnostics and "groups" not in parts:
                    check_all(stored.EARLY_DIAGNOSTICS, [], parts, name, own)
                    parts = early_diagnostics(parts)
                known.check_fields(parts, name, own)
                made = known.cls(**parts)
                known.law(made, name, own)
                return made
        told = shown(value) if not isinstance(value, dict) else f"{str(value)[:60]}…"
        raise ModelFileError(f"{name} holds {told}, which this plackett does not know")

    def named(self, value: Any, name: str, sizes: Sizes | None, depth: int) -> dict[str, Any]:
        """Values by name."""
        match value:
            case {"dict": list(pairs), **rest} if not rest:
                held = self._dict(pairs, name, sizes, depth)
                if all(isinstance(key, str) for key in held):
                    return {RENAMED.get(key, key): each for key, each in held.items()}
        raise ModelFileError(f"{name or 'the model'} must have its parts by name, got {shown(value)} instead")

    def _dict(self, pairs: list[Any], name: str, sizes: Sizes | None, depth: int) -> dict[Any, Any]:
        """Pairs of keys and values; each key comes once."""
        out: dict[Any, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ModelFileError(f"{name or 'the model'} holds {shown(pair)}, expected a key and its value")
            key = self.decode(pair[0], name, sizes, depth + 1)
            if not (is_scalar(key) or (isinstance(key, tuple) and all(map(is_scalar, key)))):
                raise ModelFileError(f"{name or 'the model'} has the key {shown(key)}, expected a text or numbers")
            if key in out:
                raise ModelFileError(f"{name or 'the model'} has {shown(key)} twice")
            where = f"{name}.{key}" if name else str(key)
            out[key] = self.decode(pair[1], where, sizes, depth + 1)
        return out

    def _array(self, name: str) -> npt.NDArray[Any]:
        """An array of plain values; it is unpacked once, however often it is referred to."""
        if name not in self.arrays:
            self.arrays[name] = self._unpacked_array(f"{name}.npy")
        return self.arrays[name]

    def _unpacked_array(self, name: str) -> npt.NDArray[Any]:
        """An array that is as large as its header says; nothing is unpacked before that is checked."""
        with self._open(name) as stream:
            first = io.BytesIO(stream.read(HEADER))
            header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            version = np.lib.format.read_magic(first)
            if version not in header:
                raise ModelFileError(f"{name} is an array of the unknown version {version}")
            shape, fortran, dtype = header[version](first)
            size, declared = math.prod(shape) * dtype.itemsize, self.members[name].file_size - first.tell()
            if dtype.kind not in PLAIN or size != declared or min(shape, default=0) < 0:
                raise ModelFileError(f"{name} is no plain array of shape {shape} and type {dtype}")
            data = self._rest(stream, bytearray(first.read()), size)
        values: npt.NDArray[Any] = np.ndarray(shape, dtype, data, order="F" if fortran else "C")
        if dtype.kind == "b" and values.size and values.view(np.uint8).max() > 1:
            raise ModelFileError(f"{name} holds truth values that are neither true nor false")
        if dtype.kind == "U" and values.size and np.frombuffer(data, dtype.byteorder + "u4").max() > 0x10FFFF:
            raise ModelFileError(f"{name} holds texts that are no texts")
        return values if dtype.isnative else values.astype(dtype.newbyteorder("="))

    @contextmanager
    def _open(self, name: str) -> Iterator[Any]:
        """A member of the archive, to be read."""
        member = self.members.get(name)
        if member is None:
            raise ModelFileError(f"it has no part {name!r}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"its part {name!r} is packed in a way that model files are not")
        with _readable(f"its part {name!r}"), self.archive.open(member) as stream:
            yield stream

    def _unpacked(self, name: str) -> bytearray:
        """The bytes of a member."""
        with self._open(name) as stream:
            return self._rest(stream, bytearray(), self.members[name].file_size)

    def _rest(self, stream: Any, data: bytearray, size: int) -> bytearray:
        """The data up to this size, piece by piece: no more is held than there is."""
        while len(data) < size:
            piece = stream.read(min(PIECE, size - len(data)))
            if not piece:
                raise ModelFileError(f"a part of it ends after {len(data)} of {size} bytes")
            data += piece
        return data


def save(model: Model, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a fitted model to a path or a binary stream; an old file is replaced once the new one is whole."""
    from plackett import __version__

    writer, sizes, known = _Writer(), Sizes(), MODELS[type(model).__name__]
    params, found = model.get_params(deep=False), fitted_attributes(model)
    if not (params["random_state"] is None or isinstance(params["random_state"], (int, np.integer))):
        params["random_state"] = None
    try:
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "plackett": __version__,
            "model": known.cls.__name__,
            "params": writer.encode_named(params, "", None),
            "fitted": writer.encode_named(found, "", sizes),
        }
        known.check_fields(params, "", sizes)
        known.check_fitted(found, "", sizes)
        known.law(model, "", sizes)
        sizes.finish()
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the model is not as fit leaves it, and no file of it could be read: {error}") from error
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
        with _readable("the zip archive"):
            archive = zipfile.ZipFile(stream)
        with archive:
            reader = _Reader(archive, size)
            return reader.model(reader.manifest())
    except ValueError as error:
        raise ModelFileError(f"{name} is not a whole plackett model file: {error}") from error


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Say of what foreign bytes no sense can be made; zip, JSON and NumPy have any number of errors for that."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{what} is damaged, or none at all") from error
