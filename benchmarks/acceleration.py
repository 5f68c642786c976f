"""Passes that accelerated EM needs to reach the objective at which the plain EM stops."""

from functools import partial

import numpy as np

from benchmarks.data import sets
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.features import ExpFeatures
from plackett.inference.em import Climb

SHAPES = (1.0, 2.0)
TOLERANCE = 1e-9  # of the plain EM: it stops when an iteration gains less than this per observation

SMALLEST = {"SHAPES": (2.0,), "sets": partial(sets, ("lenses",))}


def main():
    print("\nEM: passes of the plain iteration, and of the accelerated one to the same objective (target ≤ 0.20)")
    for shape in SHAPES:
        for name, X, y in sets():
            W, codes = ExpFeatures().fit_transform(X), np.unique(y, return_inverse=True)[1]
            n_classes = codes.max() + 1
            rows = make_engine("auto").rows(W, Observations.of_classes(codes, n_classes))
            start = np.zeros((n_classes, W.shape[1]))
            plain = Climb(rows, shape, start, accelerate=False)
            while plain.advance() > TOLERANCE * len(codes):
                pass
            fast = Climb(rows, shape, start, accelerate=True)
            while fast.ascent.value < plain.ascent.value:
                fast.advance()
            ratio = fast.passes / plain.passes
            print(f"  a = {shape:g}  {name:8} plain {plain.passes:5}  accelerated {fast.passes:4}  ratio {ratio:.2f}")
