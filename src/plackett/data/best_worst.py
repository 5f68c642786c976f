"""Best–worst tasks as orders: the best item, the others in unknown order, the worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plackett.data.labels import is_missing
from plackett.data.validation import plain


def best_worst_orders(sets: Sequence[Any], best: Sequence[Any], worst: Sequence[Any]) -> list[list[Any]]:
    """Return orders in which a set holds the items between best and worst.

    Examples
    --------
    >>> best_worst_orders([["a", "b", "c"]], ["c"], ["b"])
    [['c', 'a', 'b']]
    """
    if not len(sets) == len(best) == len(worst):
        raise ValueError(f"sets, best and worst must be equally long, got {len(sets)}, {len(best)} and {len(worst)}.")
    orders = []
    for t, (offered, top, bottom) in enumerate(zip(sets, best, worst, strict=True)):
        if isinstance(offered, (str, bytes)) or not hasattr(offered, "__iter__"):
            raise ValueError(f"a set is a list of items, got {plain(offered)} in row {t} instead.")
        there = [item for item in offered if not is_missing(item)]
        for name, item in (("best", top), ("worst", bottom)):
            if item not in there:
                raise ValueError(f"the {name} of row {t}, {plain(item)}, is not among its items.")
        if top == bottom:
            raise ValueError(f"the best and the worst of row {t} are the same item, {plain(top)}.")
        if len(set(there)) < len(there):
            raise ValueError(f"row {t} offers an item twice.")
        between = [item for item in there if item not in (top, bottom)]
        orders.append([top, *([set(between)] if len(between) > 1 else between), bottom])
    return orders
