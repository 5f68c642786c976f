"""Many items, each compared with few others: maximum likelihood and draws, with seconds, memory and their error.

Opponents are any items, or the next five in a ring: then far items are compared through thousands of others.
"""

import resource
import time
import warnings

import numpy as np

from plackett import Gibbs, PlackettLuceRanker, Rankings

ITEMS, COMPARISONS, NEXT = 10_000, 1_000_000, 5
LENGTH = {"draws": 500, "tune": 300}
SMALLEST = {"ITEMS": 30, "COMPARISONS": 600, "LENGTH": {"draws": 8, "tune": 8, "chains": 2}}


def comparisons(reach, rng):
    """Log-worths of the items, and comparisons of an item with one of the next `reach`."""
    worths = rng.normal(size=ITEMS)
    first = rng.integers(ITEMS, size=COMPARISONS)
    second = (first + 1 + rng.integers(reach, size=COMPARISONS)) % ITEMS
    won = rng.random(COMPARISONS) < 1 / (1 + np.exp(worths[second] - worths[first]))
    return worths, Rankings.from_pairs(np.where(won, first, second), np.where(won, second, first), items=range(ITEMS))


def main():
    print(f"{ITEMS:,} items, {COMPARISONS:,} comparisons; error: root mean square of log-worths")
    for name, reach in (("any opponent", ITEMS - 1), (f"the next {NEXT} of a ring", NEXT)):
        worths, R = comparisons(reach, np.random.default_rng(0))
        for inference, shape in (("em", 1), (Gibbs(**LENGTH), "learn")):
            started = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = PlackettLuceRanker(inference, shape=shape, random_state=0).fit(None, R)
            seconds = time.perf_counter() - started
            found = model.worth()["log_worth"].sort_index().to_numpy()
            error = np.sqrt(np.mean((found - worths + worths.mean()) ** 2))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            said = "" if inference == "em" else f", {model.diagnostics_.sentence}"
            print(
                f"  {name}, {'em' if inference == 'em' else 'gibbs'}: {seconds:.1f} s, at most {memory:.2f} GB so far, "
                f"error {error:.3f}{said}{''.join(f', warned: {each.category.__name__}' for each in caught)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
