"""Small language of checks of stored values: numbers, texts, labels, arrays with named axes, objects of these.

A `Check` determines whether a value is valid and raises a ValueError that names the value, what was expected and what
came. An axis has one size in the whole model, which `Sizes` records. The module knows no class of the package: see
`output.stored`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MOST = sys.float_info.max
KINDS = {"f": "f4 f8", "i": "i1 i2 i4 i8 u1 u2 u4 u8"}  # floating point and whole numbers, any byte order
EMPTY = {
    "attribute",
    "trait",
    "bent",
    "constant",
    "own",
    "row",
    "worth",
    "common",
    "other",
    "attribute_base",
    "person_base",
}  # axes that may have size 0


class Range(NamedTuple):
    """Numbers from `low` to `high`, in words; NaN is allowed only on request."""

    low: float
    high: float
    words: str
    nan: bool = False

    def holds(self, values: Any) -> bool:
        """True if all values are in the range."""
        if self.nan or not np.size(values):
            return True
        return self.low <= float(np.min(values)) and float(np.max(values)) <= self.high


FINITE = Range(-MOST, MOST, "finite")
BOUNDED = Range(-1e50, 1e50, "no larger than 1e50")  # times a covariate of 1e100 deviations, it does not overflow
POSITIVE = Range(math.ulp(0.0), MOST, "positive and finite")
NOT_NEGATIVE = Range(0.0, MOST, "finite and not negative")
SHARE = Range(0.0, 1.0, "between 0 and 1")
LOG_SHARE = Range(-MOST, 1e-6, "finite and not above 0")
SCALE = Range(math.ulp(0.0), np.inf, "positive")
MEASURED = Range(-np.inf, np.inf, "of any size, or NaN", nan=True)


class Sizes:
    """Size of every named axis, and codes that must be below one."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, str]] = {}
        self.codes: list[tuple[str, int, str]] = []

    def agree(self, axis: str, size: int, name: str) -> None:
        """Raise if an axis has another known size."""
        known, where = self.known.setdefault(axis, (size, name))
        if known != size:
            raise ValueError(f"{name} has size {size} along the axis {axis!r}, expected {known} as in {where}.")
        if size == 0 and axis not in EMPTY:
            raise ValueError(f"{name} is empty along the axis {axis!r}, expected 1 or more.")

    def below(self, axis: str, code: int, name: str) -> None:
        """Record a code that must be below the size of an axis."""
        self.codes.append((axis, code, name))

    def finish(self) -> None:
        """Raise for codes that are too large."""
        for axis, code, name in self.codes:
            size, where = self.known.get(axis, (0, "this model"))
            if code >= size:
                raise ValueError(f"{name} must be below {size}, the size of {axis!r} in {where}, got {code} instead.")


@dataclass(frozen=True)
class Check:
    """Requirement of a value in words, its test, and the sizes of axes that it determines."""

    words: str
    fits: Callable[[Any], bool]
    measure: Callable[[str, Any, Sizes], None] = lambda name, value, sizes: None

    def __call__(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise a ValueError unless the value is valid."""
        if not self.fits(value):
            raise ValueError(f"{name} must be {self.words}, got {shown(value)} instead.")
        self.measure(name, value, sizes)

    def __or__(self, other: Check) -> Check:
        def measure(name: str, value: object, sizes: Sizes) -> None:
            (self if self.fits(value) else other).measure(name, value, sizes)

        return Check(f"{self.words}, or {other.words}", lambda value: self.fits(value) or other.fits(value), measure)


def shown(value: Any) -> str:
    """Describe a value in a few words."""
    if ARRAY.fits(value):
        span = ""
        if value.dtype.kind in "fiu" and value.size:
            span = f" with values from {value.min():g} to {value.max():g}"
        return f"an array of type {value.dtype} and shape {value.shape}{span}"
    if SEQUENCE.fits(value) or MAPPING.fits(value):
        return f"a {type(value).__name__} of {len(value)}"
    if PLAIN.fits(value):
        told = repr(value)
        return told if len(told) <= 60 else f"{told[:60]}…"
    return f"a {type(value).__name__}"


def python_type(words: str, *types: type) -> Check:
    """Require an instance of these Python or NumPy types."""
    return Check(words, lambda value: isinstance(value, types))


NONE = Check("None", lambda value: value is None)
TEXT = python_type("a text", str)
ARRAY, SEQUENCE = python_type("an array", np.ndarray), python_type("a list or tuple", list, tuple)
MAPPING = python_type("a dictionary", dict)
PLAIN = python_type("a text, a number, True, False or None", bool, int, float, str, type(None))
TRUE_OR_FALSE = python_type("True or False", bool, int, np.bool_)
INTEGER = python_type("a whole number", int, np.integer)
FLOAT = python_type("a number", float)
REAL = python_type("a number", int, float, np.integer, np.floating)


def is_number(value: object) -> bool:
    """True for a number that is not a boolean."""
    return REAL.fits(value) and type(value) is not bool


def is_scalar(value: object) -> bool:
    """True for a text, a number or a boolean that can be a label, which excludes NaN."""
    return value is not None and PLAIN.fits(value) and value == value


NAN = Check("NaN", lambda value: FLOAT.fits(value) and math.isnan(value))
TRUTH = Check("True or False", lambda value: TRUE_OR_FALSE.fits(value) and value in (0, 1))
SCALAR = Check("a text or a number", is_scalar)


def one_of(*choices: str) -> Check:
    """Require one of some texts."""
    return Check(f"one of {list(choices)}", lambda value: TEXT.fits(value) and value in choices)


def number(values: Range = FINITE) -> Check:
    """Require a number in a range."""
    return Check(f"a number, {values.words}", lambda value: is_number(value) and values.holds(value))


def whole(low: int = 0, high: int = 2**63 - 1, below: str | None = None) -> Check:
    """Require a whole number in a range, and below the size of an axis."""

    def measure(name: str, value: Any, sizes: Sizes) -> None:
        if below is not None:
            sizes.below(below, int(value), name)

    words = f"a whole number of at least {low}" + ("" if high == 2**63 - 1 else f" and at most {high}")
    return Check(words, lambda v: INTEGER.fits(v) and type(v) is not bool and low <= int(v) <= high, measure)


def size_of(axis: str, low: int = 1) -> Check:
    """Require the size of an axis; 0 means that the axis does not exist."""

    def measure(name: str, value: Any, sizes: Sizes) -> None:
        if value:
            sizes.agree(axis, int(value), name)

    return Check(whole(low).words, whole(low).fits, measure)


def is_a(*classes: type) -> Check:
    """Require an object of one of these classes, which is checked separately."""
    names = " or ".join(cls.__name__ for cls in classes)
    return Check(f"of the kind {names}", lambda value: type(value) in classes)


def fitted(*classes: type) -> Check:
    """Require a fitted object of one of these classes."""
    known = is_a(*classes)
    return Check(f"{known.words}, and fitted", lambda v: known.fits(v) and any(n.endswith("_") for n in vars(v)))


def each(check: Check, size: int | None = None) -> Check:
    """Require a list or tuple of such values, of this size if given."""
    count = "" if size is None else f"{size} "
    return Check(
        f"a list or tuple of {count}values, each {check.words}",
        lambda value: SEQUENCE.fits(value) and size in (None, len(value)) and all(map(check.fits, value)),
    )


def mapping(key: Check, value: Check) -> Check:
    """Require a dictionary."""
    return Check(
        f"a dictionary, each key {key.words}, each value {value.words}",
        lambda d: MAPPING.fits(d) and all(map(key.fits, d)) and all(map(value.fits, d.values())),
    )


def array(axes: str, values: Range = FINITE, kind: str = "f", below: str | None = None) -> Check:
    """Require an array of numbers with these axes, by name or by size, * for any."""
    names = axes.split()
    sized = {place: int(name) for place, name in enumerate(names) if name.isdigit()}

    def fits(value: Any) -> bool:
        right = ARRAY.fits(value) and value.dtype.str[1:] in KINDS[kind].split()
        right = right and value.ndim == len(names) and values.holds(value)
        return (
            right
            and all(value.shape[place] == n for place, n in sized.items())
            and (value.size > 0 or "*" not in names)
        )

    def measure(name: str, value: Any, sizes: Sizes) -> None:
        for axis, n in zip(names, np.shape(value), strict=True):
            if axis != "*" and not axis.isdigit():
                sizes.agree(axis, n, name)
        if below is not None and value.size:
            sizes.below(below, int(value.max()), name)

    numbers = "numbers" if kind == "f" else "whole numbers"
    return Check(f"an array ({', '.join(names)}) of {numbers}, {values.words}", fits, measure)


def labels(*axes: str, only: type = object, repeat: bool = False) -> Check:
    """Require a one-dimensional array of texts, numbers or booleans, unique unless `repeat`."""

    def fits(value: Any) -> bool:
        if not (ARRAY.fits(value) and value.ndim == 1 and value.dtype.kind in "biufUO"):
            return False
        if value.dtype != object:
            kind = value.dtype.kind == "U" or only is object
            finite = value.dtype.kind != "f" or FINITE.holds(value)
            return kind and finite and (repeat or len(np.unique(value)) == len(value))
        held = value.tolist()
        right = all(is_scalar(label) and isinstance(label, only) for label in held)
        return right and (repeat or len(set(held)) == len(held))

    def measure(name: str, value: Any, sizes: Sizes) -> None:
        for axis in axes:
            sizes.agree(axis, len(value), name)

    kind = "texts" if only is str else "labels"
    return Check(f"an array ({axes[0]}) of {'' if repeat else 'different '}{kind}", fits, measure)


@dataclass(frozen=True)
class Declaration:
    """Content of a stored class.

    Attributes
    ----------
    cls : class
        A dataclass or an estimator.
    fields : dict of Check
        Fields of the dataclass or parameters of the estimator. Those with a default may be missing.
    fitted, more : dict of Check
        Attributes of a fitted estimator, always or sometimes present.
    law : function
        Further checks of the whole object, given the object, its name and the sizes.
    """

    cls: Any
    fields: Mapping[str, Check]
    fitted: Mapping[str, Check] = field(default_factory=dict)
    more: Mapping[str, Check] = field(default_factory=dict)
    law: Callable[[Any, str, Sizes], None] = lambda made, name, sizes: None

    @cached_property
    def _needed(self) -> list[str]:
        given = signature(self.cls).parameters.values()
        return [each.name for each in given if each.default is each.empty]

    def check_fields(self, held: Mapping[str, Any], name: str, sizes: Sizes) -> None:
        """Raise for unknown, missing or invalid fields or parameters."""
        check_all(self.fields, self._needed, held, name, sizes)

    def check_fitted(self, held: Mapping[str, Any], name: str, sizes: Sizes) -> None:
        """Raise for unknown, missing or invalid fitted attributes."""
        check_all({**self.fitted, **self.more}, list(self.fitted), held, name, sizes)


def by_name(*declarations: Declaration) -> dict[str, Declaration]:
    """Return declarations by class name."""
    return {each.cls.__name__: each for each in declarations}


def check_all(checks: Mapping[str, Check], needed: list[str], held: Mapping[str, Any], name: str, sizes: Sizes) -> None:
    """Check every value by name."""
    what = name or "the model"
    for key in held:
        if key not in checks:
            raise ValueError(f"{what} has {shown(key)}, which is no attribute that this plackett knows.")
    for key in needed:
        if key not in held:
            raise ValueError(f"{what} has no {key!r}.")
    for key, value in held.items():
        checks[key](f"{name}.{key}" if name else key, value, sizes)


def insist(right: bool, words: str) -> None:
    """Raise a ValueError with these words unless `right`."""
    if not right:
        raise ValueError(words)


def sums_to_one(values: npt.NDArray[Any], name: str) -> None:
    """Raise unless weights sum to 1 over groups and features, the last two axes, up to rounding."""
    sums = values.sum(axis=(-2, -1))
    right = bool(np.all(np.abs(sums - 1) < 1e-6))
    insist(right, f"{name} must sum to 1, got sums from {sums.min():g} to {sums.max():g} instead.")
