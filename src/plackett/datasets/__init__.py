"""The paper's data sets (Table 1 and section 4.4) and further real ones, each checked after loading.

Most come with the package (README.md in this folder has source and licence), Iris and Wine with scikit-learn. The
others are read from a folder or, if OpenML has the identical table, downloaded into scikit-learn's data home.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from plackett.data.rankings import Rankings
from plackett.datasets.known import TABLES, Known, OpenML
from plackett.optional import optional

__all__ = ["load", "names"]

FOLDER = "PLACKETT_DATA"
PACKAGED = Path(__file__).parent
VOTES = ("wins_first", "wins_second", "ties", "ties_both_bad")  # columns that count the votes on a pair
Found = tuple[Any, npt.NDArray[Any] | None, str]  # covariates, labels (pairs have none), source in words


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a data set and verify its content.

    Parameters
    ----------
    name : str
        One of the paper's sets "lenses", "iris", "wine", "pima", "heart", "german", "colon" and "sushi" (first
        choices); of "glass", "segment", "satimage" and "letter" (classes), "travelmode", "heating", "electricity",
        "train", "fishing" and "swissmetro" (choices); or "arena" (comparisons).
    data_home : path, optional
        Folder to read the set from. By default the first six of the paper's sets, the first four of choices and
        "arena" come with the package or with scikit-learn, and the others from the folder that the environment
        variable ``PLACKETT_DATA`` names or, if it names none and OpenML has the set, by download into scikit-learn's
        data home.

    Returns
    -------
    Bunch
        ``X`` data frame of covariates; ``y`` array of labels; ``source`` in words; ``shape`` of X; ``counts`` of the
        classes; ``groups``, the persons' numbers if several rows belong to one person, else None.

        For "travelmode", "heating", "electricity", "train" and "fishing" also ``choices``, the rows as
        `ChoiceSets`: ``PlackettLuceChooser().fit(choices, y, groups=groups)``.

        For "arena" ``X`` is None, and ``y`` holds the votes as `Rankings` of two items each with ties:
        ``PlackettLuceRanker().fit(X, y)`` takes. ``shape`` is pairs by kinds of votes, and ``counts`` has the
        votes of each kind.

    Examples
    --------
    >>> from plackett.datasets import load
    >>> lenses = load("lenses")
    >>> lenses.shape, lenses.counts
    ((24, 4), {'hard': 4, 'none': 15, 'soft': 5})
    >>> load("travelmode").choices.attributes
    ('wait', 'vcost', 'travel', 'gcost')
    >>> offers = load("electricity")
    >>> len(offers.choices), len(set(offers.groups)), offers.choices.attributes
    (4308, 361, ('pf', 'cl', 'loc', 'wk', 'tod', 'seas'))
    >>> len(load("arena").y.items)
    129
    """
    optional("pandas", "plackett.datasets")
    if name not in TABLES:
        raise ValueError(f"name must be one of {', '.join(sorted(TABLES))}, got {name!r} instead.")
    table = TABLES[name]
    X, y, source = _find(name, table, data_home)
    bunch, numbers = _pairs(X, source) if y is None else _labelled(table, X, y, source)
    _check(name, table, bunch, numbers)
    if table.choices is not None:
        bunch.choices = table.choices.sets(X)
    return bunch


def names() -> tuple[str, ...]:
    """Return the names that `load` accepts."""
    return tuple(TABLES)


def _find(name: str, table: Known, data_home: str | os.PathLike[str] | None) -> Found:
    if data_home is not None:
        return _read(name, table, Path(data_home))
    if name in SCIKIT_LEARN:
        return SCIKIT_LEARN[name]()
    if table.packaged:
        return _read(name, table, PACKAGED)
    if folder := os.environ.get(FOLDER):
        return _read(name, table, Path(folder))
    if table.openml is not None:
        return _download(name, table, table.openml)
    raise FileNotFoundError(
        f"{name} neither comes with the package nor can be downloaded, and no folder is named that holds it. Name one "
        f"by data_home or the environment variable {FOLDER}; {_wanted(table)}"
    )


def _iris() -> Found:
    data = sklearn_datasets.load_iris(as_frame=True)
    X = data.data.rename(columns=lambda column: column.removesuffix(" (cm)").replace(" ", "_"))
    return X, data.target_names[data.target.to_numpy()], "Fisher's Iris, scikit-learn's load_iris"


def _wine() -> Found:
    data = sklearn_datasets.load_wine(as_frame=True)
    X = data.data.rename(columns=lambda column: column.replace("/", "_"))
    return X, data.target.to_numpy() + 1, "Wine (UCI), scikit-learn's load_wine; classes 1, 2, 3 as at UCI"


SCIKIT_LEARN: dict[str, Callable[[], Found]] = {"iris": _iris, "wine": _wine}


def _read(name: str, table: Known, folder: Path) -> Found:
    import pandas as pd

    path = folder / table.file
    if not path.is_file():
        raise FileNotFoundError(f"{name}: there is no file {path}; {_wanted(table)}")
    X = pd.read_csv(path)
    if table.pairs:
        return X, None, f"{table.origin}, read from {table.file}"
    if "y" not in X:
        raise ValueError(f"{name}: {path} must have a column y, the class, got columns {list(X.columns)} instead.")
    y = np.array(X.pop("y").tolist())
    return X, y, f"{table.origin}, read from {table.file}"


def _download(name: str, table: Known, openml: OpenML) -> Found:
    try:
        data = sklearn_datasets.fetch_openml(data_id=openml.data_id, as_frame=True, parser="auto")
    except OSError as error:
        raise OSError(
            f"{name}: data set {openml.data_id} could not be downloaded from OpenML ({error}). Try again with a "
            f"network, or name a folder by data_home or the environment variable {FOLDER}; {_wanted(table)}"
        ) from error
    labels = [str(label) for label in data.target]
    if openml.labels is not None:
        labels = [openml.labels.get(label, label) for label in labels]
    X, columns = data.data, openml.columns.split()
    if X.shape[1] == len(columns):
        X = X.set_axis(columns, axis=1)
    return X, np.array(labels), f"{table.origin}, OpenML data set {openml.data_id}, {openml.order} in {table.file}"


def _wanted(table: Known) -> str:
    rows, columns = table.shape
    held = f"the columns first, second, {', '.join(VOTES)}" if table.pairs else f"{columns} covariates and a column y"
    text = f"the file {table.file} is expected there, CSV with {rows} rows, {held}."
    return f"{text} The data are offered by {table.offered}." if table.offered else text


def _labelled(table: Known, X: Any, y: npt.NDArray[Any], source: str) -> tuple[Bunch, Any]:
    """Return rows with labels and persons' numbers, if any, and the numbers to check."""
    groups = None
    if table.unknown is not None:
        known_rows = y != table.unknown
        X, y = X[known_rows].reset_index(drop=True), y[known_rows]
    if table.person is not None and table.person in X:
        groups = X.pop(table.person).to_numpy()
    labels, numbers = np.unique(y, return_counts=True)
    counts = dict(zip(labels.tolist(), numbers.tolist(), strict=True))
    return Bunch(X=X, y=y, source=source, shape=X.shape, counts=counts, groups=groups), X


def _pairs(votes: Any, source: str) -> tuple[Bunch, Any]:
    """Return votes on pairs of items as rankings of two, without uncast ones, and the numbers to check."""
    missing = [column for column in ("first", "second", *VOTES) if column not in votes]
    if missing:
        raise ValueError(f"{source}: there is no column {missing[0]}; columns are {', '.join(votes.columns)}.")
    first, second, numbers = votes["first"].tolist(), votes["second"].tolist(), votes[list(VOTES)]
    seen = np.concatenate([votes.wins_first, votes.wins_second, votes.ties + votes.ties_both_bad])
    tied = np.repeat([False, False, True], len(votes))
    cast = np.flatnonzero(seen)
    winners, losers = (
        np.array(labels, dtype=object)[cast] for labels in (first + second + first, second + first + second)
    )
    R = Rankings.from_pairs(winners, losers, tied[cast], seen[cast])
    counts = numbers.sum().to_dict()
    return Bunch(X=None, y=R, source=source, shape=numbers.shape, counts=counts, groups=None), numbers


def _check(name: str, table: Known, bunch: Bunch, numbers: Any) -> None:
    """Raise unless shape, class counts and sum of entries are those of the expected set."""
    facts: list[tuple[str, Any, Any]] = [
        ("shape", table.shape, bunch.shape),
        ("votes" if table.pairs else "class counts", dict(table.counts), bunch.counts),
    ]
    if bunch.shape == table.shape:
        total = round(math.fsum(numbers.select_dtypes("number").to_numpy(dtype=float).ravel()), 6)
        facts.append(("sum of all entries", table.total, total))
    for what, expected, got in facts:
        if got != expected:
            raise ValueError(
                f"{name} ({bunch.source}) is not the table that is meant: expected {what} {expected}, got {got}. "
                "Remove or replace it."
            )
