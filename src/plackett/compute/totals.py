"""Totals of counts by a number, such as that of a kind of pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DENSE = 8  # numbers below the bound, for each that is given, up to which a table is faster than sorting


def totals(number: npt.NDArray[np.int64], counts: Array, size: int) -> Array:
    """Return the sums of counts by number (size,), which the order of the counts does not change."""
    if (counts != np.round(counts)).any():  # of whole numbers no sum is rounded
        order = np.lexsort((counts, number))
        number, counts = number[order], counts[order]
    return np.bincount(number, counts, size).astype(np.float64)


def totals_by_number(number: npt.NDArray[np.int64], counts: Array, bound: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the distinct numbers, which are less than `bound`, and their `totals`.

    Examples
    --------
    >>> totals_by_number(np.array([5, 2, 5]), np.array([1.0, 1.0, 3.0]), bound=6)
    (array([2, 5]), array([1., 4.]))
    """
    if bound <= DENSE * len(number):
        distinct = np.flatnonzero(np.bincount(number, minlength=bound))
        return distinct, totals(number, counts, bound)[distinct]
    distinct, which = np.unique(number, return_inverse=True)
    return distinct, totals(which, counts, len(distinct))
