"""Rankings drawn from their definition, a race of exponential times; shares nothing with what it tests."""

import numpy as np

from plackett.responses import Outcomes


def race(rng, rates, response, places=None):
    """Buckets of items, the best first: all of them, or those of the first places; the rest is left."""
    times = rng.exponential(size=len(rates)) / rates
    if response == "race":
        slots = np.floor(times)
        return [np.flatnonzero(slots == slot) for slot in np.unique(slots)]
    order = np.argsort(times)
    ends = np.arange(1, len(rates) + 1) if places is None else np.cumsum(places)
    return np.split(order, ends)[: len(ends)]


def collected(rankings, n_items, counts=None):
    """Outcomes and the item of each entry, of buckets of all items; those in none come last."""
    full = [[*map(list, buckets), np.setdiff1d(np.arange(n_items), np.concatenate(buckets))] for buckets in rankings]
    sizes = [[len(bucket) for bucket in buckets] for buckets in rankings]
    item = np.concatenate([np.concatenate(buckets) for buckets in full]).astype(np.int64)
    return Outcomes.of([n_items] * len(rankings), sizes, counts), item
