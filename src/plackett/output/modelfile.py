"""Model files: a zip of plain arrays and one JSON manifest. Reading one builds known classes only; no code runs.

Data written and read must match the schema in `output.stored` and `output.stored_models`; `output.archive` handles the
bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from plackett import __version__
from plackett.model.diagnostics import Diagnostics, early_diagnostics
from plackett.output.archive import Archive, ModelFileError, pack
from plackett.output.files import whole_file
from plackett.output.schema import (
    INTEGER,
    MAPPING,
    PLAIN,
    TEXT,
    Check,
    Declaration,
    Sizes,
    check_all,
    is_scalar,
    shown,
)
from plackett.output.stored import EARLY_DIAGNOSTICS, RECORDS, SETTINGS
from plackett.output.stored_models import MODELS

FORMAT = "plackett-model"
VERSION = 2
RENAMED = {  # names changed since version 1
    "Portrait": "ReadableDraw",
    "portrait_": "readable_draw_",
    "relevance_": "mean_relevance_",
    "DirectionDiagnostics": "Diagnostics",
    "LogitDiagnostics": "Diagnostics",
    "monte_carlo_error": "error",
}
PAIR = Check("a key and its value", lambda value: type(value) is list and len(value) == 2)  # of JSON
DEPTH = 30  # maximum nesting of values


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, npt.NDArray[Any]] = {}

    def encode(self, value: Any, where: str) -> Any:
        match value:
            case None | bool() | int() | float() | str():
                return value
            case np.generic():
                return self.encode(value.item(), where)
            case np.ndarray() if value.dtype == object:
                return {"labels": [self.encode(v, where) for v in value.tolist()]}
            case np.ndarray():
                name = f"array{len(self.arrays)}"
                self.arrays[name] = value
                return {"array": name}
            case list() | tuple():
                return {type(value).__name__: [self.encode(v, where) for v in value]}
            case dict():
                return {"dict": [[self.encode(k, where), self.encode(v, where)] for k, v in value.items()]}
        kind = type(value).__name__
        if kind in SETTINGS and SETTINGS[kind].cls is type(value):
            params, fitted = value.get_params(deep=False), _fitted(value)
            return {
                "settings": kind,
                "params": self.encode(params, f"{where}.{kind}"),
                "fitted": self.encode(fitted, f"{where}.{kind}"),
            }
        if kind in RECORDS and RECORDS[kind].cls is type(value):
            held = {each.name: getattr(value, each.name) for each in fields(value)}
            return {"record": kind, "fields": self.encode(held, f"{where}.{kind}")}
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{kind}, which a model file cannot hold: it stores plain values and "
            f"{', '.join(sorted(SETTINGS))}. Use joblib.dump for such a model, and load it only from sources you trust."
        )


def _fitted(estimator: object) -> dict[str, Any]:
    """Return the fitted attributes of an estimator."""
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("_")}


class _Reader:
    """Build the objects that a manifest describes, checked by the schema; arrays are requested by name."""

    def __init__(self, array: Callable[[str], npt.NDArray[Any]]):
        self.array = array

    def model(self, manifest: Any) -> Any:
        """Build the model of a manifest; its parameters have separate axes."""
        if not MAPPING.fits(manifest) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"its manifest must say that the format is {FORMAT!r}, and does not")
        version, kind = manifest.get("version"), manifest.get("model", "PlackettLuceClassifier")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ModelFileError(
                f"its version must be a whole number from 1 to {VERSION}, got {shown(version)} instead; where it is "
                "larger, upgrade plackett"
            )
        if not TEXT.fits(kind) or kind not in MODELS:
            raise ModelFileError(f"its model must be one of {', '.join(MODELS)}, got {shown(kind)} instead")
        sizes = Sizes()
        params = self.named(manifest.get("params"), "", None, 0)
        made = self.build(MODELS[kind], params, self.named(manifest.get("fitted"), "", sizes, 0), "", sizes)
        sizes.finish()
        return made

    def build(self, known: Declaration, params: dict[str, Any], fitted: dict[str, Any], name: str, sizes: Sizes) -> Any:
        """Build an estimator of a known class with its fitted attributes."""
        known.check_fields(params, name, sizes)
        made = known.cls(**params)
        if fitted or known in MODELS.values():
            known.check_fitted(fitted, name, sizes)
            vars(made).update(fitted)
        known.law(made, name, sizes)
        return made

    def decode(self, value: Any, name: str, sizes: Sizes | None, depth: int) -> Any:
        """Decode a value of the manifest; `sizes` are the axes of the model, or None among its parameters."""
        if depth > DEPTH:
            raise ModelFileError(f"{name} is nested deeper than {DEPTH} levels")
        if INTEGER.fits(value) and not -(2**63) <= value < 2**63:
            raise ModelFileError(f"{name} is a whole number beyond 64 bits")
        if PLAIN.fits(value):
            return value
        own = Sizes() if sizes is None else sizes
        match value:
            case {"array": str(held), **rest} if not rest:
                return self.array(held)
            case {"labels": list(items), **rest} if not rest:
                out = np.empty(len(items), dtype=object)
                for i, each in enumerate(items):
                    out[i] = self.decode(each, name, sizes, depth + 1)
                return out
            case {"list": list(items), **rest} if not rest:
                return [self.decode(each, name, sizes, depth + 1) for each in items]
            case {"tuple": list(items), **rest} if not rest:
                return tuple(self.decode(each, name, sizes, depth + 1) for each in items)
            case {"dict": list(pairs), **rest} if not rest:
                return self._dict(pairs, name, sizes, depth)
            case {"settings": str(kind), "params": params, "fitted": fitted, **rest} if kind in SETTINGS and not rest:
                held = self.named(params, name, own, depth)
                return self.build(SETTINGS[kind], held, self.named(fitted, name, own, depth), name, own)
            case {"record": str(kind), "fields": held, **rest} if RENAMED.get(kind, kind) in RECORDS and not rest:
                return self.record(RECORDS[RENAMED.get(kind, kind)], self.named(held, name, own, depth), name, own)
        raise ModelFileError(f"{name} holds {str(value)[:60]}, which this plackett does not know")

    def record(self, known: Declaration, held: dict[str, Any], name: str, sizes: Sizes) -> Any:
        """Build a dataclass of a known kind."""
        if known.cls is Diagnostics and "groups" not in held:
            check_all(EARLY_DIAGNOSTICS, [], held, name, sizes)
            held = early_diagnostics(held)
        known.check_fields(held, name, sizes)
        made = known.cls(**held)
        known.law(made, name, sizes)
        return made

    def named(self, value: Any, name: str, sizes: Sizes | None, depth: int) -> dict[str, Any]:
        """Return values by name."""
        match value:
            case {"dict": list(pairs), **rest} if not rest:
                held = self._dict(pairs, name, sizes, depth)
                if all(map(TEXT.fits, held)):
                    return {RENAMED.get(key, key): each for key, each in held.items()}
        raise ModelFileError(f"{name or 'the model'} must have its parts by name, got {shown(value)} instead")

    def _dict(self, pairs: list[Any], name: str, sizes: Sizes | None, depth: int) -> dict[Any, Any]:
        """Return pairs of keys and values; raises for duplicate keys."""
        out: dict[Any, Any] = {}
        what = name or "the model"
        for pair in pairs:
            if not PAIR.fits(pair):
                raise ModelFileError(f"{what} holds {shown(pair)}, expected a key and its value")
            key = self.decode(pair[0], name, sizes, depth + 1)
            if not (is_scalar(key) or (type(key) is tuple and all(map(is_scalar, key)))):
                raise ModelFileError(f"{what} has the key {shown(key)}, expected a text or a number")
            if key in out:
                raise ModelFileError(f"{what} has {shown(key)} twice")
            out[key] = self.decode(pair[1], f"{name}.{key}" if name else str(key), sizes, depth + 1)
        return out


def save(model: BaseEstimator, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a fitted model to a path or a binary stream; an old file is replaced only by a complete one."""
    writer = _Writer()
    params = model.get_params(deep=False)
    if not (params["random_state"] is None or INTEGER.fits(params["random_state"])):
        params["random_state"] = None
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "plackett": __version__,
        "model": type(model).__name__,
        "params": writer.encode(params, "parameters"),
        "fitted": writer.encode(_fitted(model), "model"),
    }
    try:
        _Reader(writer.arrays.__getitem__).model(manifest)
    except ValueError as error:
        raise ModelFileError(
            f"{str(error).rstrip('.')}. The model is not as fit leaves it, so that no file of it could be read. Use "
            "joblib.dump for such a model."
        ) from error
    if isinstance(path, (str, os.PathLike)):
        with whole_file(path) as stream:
            pack(stream, manifest, writer.arrays)
    else:
        pack(path, manifest, writer.arrays)


def read(stream: BinaryIO, name: str) -> Any:
    """Read a model from a stream, which errors refer to by this name."""
    try:
        with Archive(stream) as archive:
            model = _Reader(archive.array).model(archive.manifest())
            archive.check_used()
            return model
    except ValueError as error:
        words = str(error).rstrip(".")
        raise ModelFileError(f"{name} is not a whole plackett model file: {words}.") from error
