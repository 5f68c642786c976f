"""Checks shared by the estimators: an error says what was expected, what came, and what to do."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_array, column_or_1d

from plackett.data.types import Label, Labels, LabelsLike
from plackett.model.features import Features, runs
from plackett.model.race import Array

LARGEST, SMALLEST = 1e300, 1e-300  # largest size and smallest spread of a column that can be standardised
RESOLUTION = 1e-12  # relative spread up to which a column counts as constant
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # relative spread that is rounding alone
SHOWN = 8  # number of columns that an error lists
TEXTS = "make all of them texts, for example [str(label) for label in y]."
LABELS = {  # invalid labels, and the remedy
    "no label": "leave such rows out of X and y, or give them a class of their own, such as 'unknown'.",
    "numbers that are not whole": (
        "this target is continuous, and a classifier needs classes that repeat, such as pandas.cut(y, 4).astype(str)."
    ),
    "dates or times": f"{TEXTS[:-1]}, or take the year.",
    "bytes": "decode them, for example [label.decode() for label in y].",
    "complex numbers": f"{TEXTS[:-1]} (Complex data not supported).",
    "other values": TEXTS,
}

FRACTIONS = "numbers that are not whole"
KINDS: dict[str, tuple[type, ...]] = {  # kinds of labels; the first match counts
    "texts": (str,),
    "numbers": (bool, int, np.integer, np.bool_),
    FRACTIONS: (float, np.floating),
    "dates or times": (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64),
    "complex numbers": (complex,),
    "bytes": (bytes,),
}


def plain(value: object) -> str:
    """Format a value as Python does, with NumPy scalars as Python ones.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.data.validation import plain
    >>> plain(np.int64(0)), plain(np.str_("a")), plain([np.float64(0.5)])
    ('0', "'a'", '[0.5]')
    """
    if isinstance(value, (list, tuple)):
        inner = ", ".join(plain(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return repr(value.item() if isinstance(value, np.generic) else value)


def is_number(value: object) -> TypeGuard[float]:
    """True if a value is a single number of Python or NumPy."""
    return isinstance(value, (int, float, np.number))


def is_whole(value: object) -> TypeGuard[int]:
    """True if a value is a single whole number of Python or NumPy, or a bool, which Python counts among them."""
    return isinstance(value, (int, np.integer))


def is_bool(value: object) -> TypeGuard[bool]:
    """True if a value is True or False, of Python or NumPy."""
    return isinstance(value, (bool, np.bool_))


def check_bool(name: str, value: object) -> None:
    """Raise unless the value is True or False."""
    if not is_bool(value):
        raise ValueError(f"{name} must be True or False, got {plain(value)} instead.")


def check_names(name: str, value: Iterable[object] | None) -> None:
    """Raise unless the value is a list of texts, or None."""
    if value is not None and (isinstance(value, str) or not all(isinstance(each, str) for each in value)):
        raise ValueError(f"{name} must be a list of names of columns, got {plain(value)} instead.")


def positive(name: str, value: float | str, learn: bool = False) -> float:
    """Return a finite positive number; with `learn` the error also offers "learn"."""
    if is_bool(value) or not is_number(value) or not 0 < value < np.inf:
        what = "a positive number or 'learn'" if learn else "a positive number"
        raise ValueError(f"{name} must be {what}, got {plain(value)} instead.")
    return float(value)


def number_or_learn(name: str, value: float | str) -> float | None:
    """Return a positive number, or None for "learn"."""
    return None if isinstance(value, str) and value == "learn" else positive(name, value, learn=True)


def class_labels(y: LabelsLike) -> Labels:
    """Return labels (n,) as an array of texts, whole numbers or booleans; raises for anything else.

    Examples
    --------
    >>> from plackett.data.validation import class_labels
    >>> class_labels(["b", "a"]).tolist(), class_labels([1.0, 2.0]).tolist()
    (['b', 'a'], [1.0, 2.0])
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    listed = isinstance(y, (list, tuple))  # NumPy would convert mixed lists to texts
    labels: Labels = np.fromiter(y, dtype=object, count=len(y)) if listed else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, one label a row, got an array of shape {labels.shape} instead.")
    dtype = labels.dtype.kind
    if dtype in "biuU" or (dtype == "f" and np.isfinite(labels).all() and not (labels % 1).any()):
        return labels
    if dtype in "mM":
        labels = labels.astype(f"{dtype}8[us]")  # a resolution that Python supports
    held = labels.tolist()
    kinds = np.array([_kind_of_label(label) for label in held], dtype=object)
    texts = kinds == "texts"
    if texts.any():
        kinds[kinds == "numbers that are not whole"] = "numbers"
    for kind, words in LABELS.items():
        wrong = np.flatnonzero(kinds == kind)
        if len(wrong):
            example = f"{plain(held[wrong[0]])} in row {wrong[0]}"
            raise ValueError(
                f"y holds {kind} in {len(wrong)} of {len(held)} rows, such as {example}. A label is a text, a whole "
                f"number or a truth value: {words}"
            )
    if texts.any() and not texts.all():
        i, j = int(np.argmax(texts)), int(np.argmin(texts))
        raise ValueError(
            f"y holds both texts, such as {plain(held[i])} in row {i}, and numbers, such as {plain(held[j])} in row "
            f"{j}. Labels are of one kind: {TEXTS}"
        )
    return labels if texts.any() and not listed else np.array(held)


def _kind_of_label(label: object) -> str:
    """Return the kind of a label; a key of LABELS if it is invalid."""
    if is_missing(label):
        return "no label"
    found = next((kind for kind, types in KINDS.items() if isinstance(label, types)), "other values")
    if found == FRACTIONS and float(label).is_integer():  # type: ignore[arg-type]
        return "numbers"
    return found


def is_missing(label: object) -> bool:
    """True for a missing label: None, NaN, or the missing values of data frames."""
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
    )


def coded_labels(y: Labels) -> tuple[Labels, npt.NDArray[np.intp]]:
    """Return the classes and the class number of each row; raises for fewer than two classes."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes, and y holds one class only: {plain(classes[0])} in {len(y)} "
            f"rows (n_samples={len(y)})."
        )
    return classes, codes


def sample_weights(sample_weight: npt.ArrayLike | None, n: int) -> Array:
    """Return a finite float64 weight for each of n rows; None stands for 1, a number for all of them."""
    if sample_weight is None or isinstance(sample_weight, Number):
        sample_weight = np.full(n, 1.0 if sample_weight is None else sample_weight)
    weight: Array = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight", order="C")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must be a number or have shape ({n},), one weight a row, got {weight.shape}.")
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number: all rows have weight 0.")
    return weight


def row_weights(
    sample_weight: npt.ArrayLike | None,
    codes: npt.NDArray[np.intp],
    classes: Labels,
    class_weight: str | dict[Label, float] | None = None,
) -> Array | None:
    """Return non-negative weights times those of the classes, None if all are 1; every class needs some weight."""
    weight = sample_weights(sample_weight, len(codes))
    if not (weight >= 0).all():
        raise ValueError(f"sample_weight must be non-negative, got {weight.min()} in row {int(np.argmin(weight))}.")
    total: Array = np.bincount(codes, weight, len(classes)).astype(np.float64)
    if not total.all():
        raise ValueError(
            f"class {plain(classes[np.argmin(total)])} has total weight 0 in sample_weight; leave its rows out of X "
            "and y, or give them weight."
        )
    found: Array = weight * _weights_of_classes(class_weight, classes, total)[codes]
    return None if (found == 1).all() else found


def _weights_of_classes(class_weight: str | dict[Label, float] | None, classes: Labels, total: Array) -> Array:
    """Return class weights (K,) as in scikit-learn; "balanced" equalises totals of classes and keeps their sum."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        balanced: Array = total.sum() / (len(classes) * total)
        return balanced
    if not isinstance(class_weight, dict):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dictionary with the weight of each class, got "
            f"{plain(class_weight)} instead."
        )
    for label, weight in class_weight.items():
        positive(f"class_weight[{plain(label)}]", weight)
    found: Array = compute_class_weight(class_weight, classes=classes, y=classes)
    return found


def check_range(low: Array, high: Array, names: Sequence[Label]) -> None:
    """Refuse columns that double precision cannot standardise, given their minima and maxima."""
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        spread = high - low
    lost = (spread > ROUNDING * size) & (spread <= RESOLUTION * size)
    for wrong, what, todo in (
        (size > LARGEST, f"beyond {LARGEST:g} in size, too large to be scaled", "divide by a constant"),
        (lost, "so close together that they have no resolution", "subtract a constant before numbers are stored"),
        ((spread > 0) & (spread < SMALLEST), "too close together to be scaled", "multiply by a constant"),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            told = "; ".join(f"column {plain(names[j])} from {low[j]!s} to {high[j]!s}" for j in found[:SHOWN])
            more = f"; and {len(found) - SHOWN} columns more" if len(found) > SHOWN else ""
            raise ValueError(f"these numbers are {what}: {told}{more}. Leave such columns out, or {todo}.")


def check_whole(weight: Array | None, who: str, instead: str, of: str = "row") -> None:
    """Refuse fractional weights for a sampler that takes a weight of 2 as two rows."""
    if weight is not None and not np.array_equal(weight, np.round(weight)):
        i = int(np.argmax(weight != np.round(weight)))
        name = "sample_weight times class_weight" if of == "row" else "sample_weight"
        raise ValueError(
            f"{who} takes whole numbers as {name} (2 is two {of}s), got {weight[i]:g} in {of} {i}: it makes "
            f"one draw for each time that the {of} counts, so that fractions have no meaning. {instead}"
        )


def all_alike(X: Features, stacklevel: int = 4) -> bool:
    """True if no column varies beyond rounding; then warns."""
    used = _same_columns(X) if sparse.issparse(X) else X
    if used is None:
        return False
    low = high = used[:1][0]
    for _, some in runs(used):
        low, high = np.minimum(low, some.min(axis=0)), np.maximum(high, some.max(axis=0))
        if np.any(high - low > RESOLUTION * np.maximum(np.abs(low), np.abs(high))):
            return False
    warnings.warn(
        f"all rows are alike: none of the {X.shape[1]} columns varies, and nothing tells the classes apart. Every "
        "prediction is the shares of the classes, as far as the prior lets them differ.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return True


def _same_columns(X: sparse.csr_array) -> npt.NDArray[np.floating] | None:
    """Return the non-zero columns of CSR rows if these are the same in all rows."""
    used = X.indptr[1]
    if (np.diff(X.indptr) != used).any() or (X.indices.reshape(-1, used) != X.indices[:used]).any():
        return None
    columns: npt.NDArray[np.floating] = X.data.reshape(-1, used)
    return columns


def check_prob(prob: float) -> float:
    """Return a number between 0 and 1; raises for others."""
    if not is_number(prob) or not 0 < prob < 1:
        raise ValueError(f"prob must be a number between 0 and 1, got {plain(prob)} instead.")
    return float(prob)


def coded_groups(groups: LabelsLike, n: int, what: str = "rows") -> tuple[Labels, npt.NDArray[np.intp]]:
    """Return the labels of two or more groups, and the group 0 … G−1 of each of n rows, rankings or situations."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups must have one label for each of the {n} {what}, got shape {labels.shape}.")
    found, place = np.unique(labels, return_inverse=True)
    if len(found) < 2:
        raise ValueError(
            "groups must hold at least two labels: each is held out in turn, and predicted from the others."
        )
    return found, place.ravel().astype(np.intp)
