"""Partition of any kind of data, and questions to all partitions where they are stored.

A part is a frozen dataclass of the pieces of one partition. On the client its fields are delayed values; Dask passes a
part to a function on a worker with all of them computed. Questions do not raise for invalid data: the client reports
the first problem by its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from plackett.cluster.held import later, made
from plackett.data.observations import Observations
from plackett.model.features import Features

if TYPE_CHECKING:
    from distributed import Client

Codes = npt.NDArray[np.intp]
Found = TypeVar("Found")


class Look(Protocol):
    """Summary of one partition."""

    @property
    def problem(self) -> str | None:
        """Problem of the partition, or None."""
        ...


class Part(Protocol):
    """One partition of classes, rankings or choice situations."""

    def look(self) -> Look:
        """Return a summary of the partition, or its problem."""
        ...

    def observe(self, recipe: Any) -> tuple[Features, Observations]:
        """Return features and observations of the rows with positive weight."""
        ...


def ask(
    client: Client, name: str, question: Callable[..., Found], parts: Sequence[Any], *arguments: object
) -> list[Found]:
    """Return results of question(part, *arguments), which are small, in the order of the parts."""
    return made(client, name, question, [(part, *arguments) for part in parts], len(parts)).fetch()


def raise_first(looks: Iterable[Look], error: type[ValueError] = ValueError, first: int = 0) -> None:
    """Raise the problem of the first partition that has one; partitions are numbered from `first` on."""
    for number, look in enumerate(looks, first):
        if look.problem is not None:
            raise error(f"partition {number} of the data: {look.problem}")


def numbers_within(numbers: Codes, sizes: Sequence[int]) -> list[Codes]:
    """Convert numbers among all rows to numbers within the parts of these sizes."""
    ends = np.cumsum(sizes)
    numbers = np.arange(ends[-1])[numbers]  # a splitter may also return a mask
    owner = np.searchsorted(ends, numbers, side="right")
    by_part = np.argsort(owner, kind="stable")
    places = (numbers - (ends - sizes)[owner])[by_part]
    return np.split(places, np.cumsum(np.bincount(owner, minlength=len(ends)))[:-1])


def take_from(parts: Sequence[Any], within: Sequence[Codes]) -> list[Any]:
    """Return delayed parts with these rows of each, without empty parts."""
    return [later(selected, part, some) for part, some in zip(parts, within, strict=True) if len(some)]


def selected(part: Any, numbers: Codes) -> Any:
    """Return rows of a part by their number among those with positive weight, in this order."""
    return part.take(numbers)


def rows_of(X: Any, places: Codes | slice) -> Any:
    """Return rows of an array or data frame, by position."""
    return X.iloc[places] if hasattr(X, "iloc") else X[places]


def optional_rows(what: object, places: Codes) -> Any:
    """Return entries of labels or weights at these positions; None stays None."""
    return None if what is None else np.asarray(what)[places]
