"""The six sets of Table 1: two from scikit-learn, Lenses in code, three from the folder PLACKETT_DATA."""

import itertools
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris, load_wine

NAMES = ("lenses", "iris", "wine", "heart", "pima", "german")


def lenses():
    """All 24 patients: age, prescription, astigmatism, tear rate."""
    X = np.array(list(itertools.product((1, 2, 3), (1, 2), (1, 2), (1, 2))), dtype=float)
    age, prescription, astigmatic, tears = X.T
    soft = (tears == 2) & (astigmatic == 1) & ~((age == 3) & (prescription == 1))
    hard = (tears == 2) & (astigmatic == 2) & ((prescription == 1) | (age == 1))
    return X, np.where(hard, "hard", np.where(soft, "soft", "none"))


def load(name):
    """X, y of a set, or None (with a word) if its file is not at hand."""
    if name == "lenses":
        return lenses()
    if name in ("iris", "wine"):
        return {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    folder = os.environ.get("PLACKETT_DATA")
    if not folder:
        print(f"{name}: left out, set PLACKETT_DATA to the folder that holds {name}.csv")
        return None
    table = np.genfromtxt(Path(folder) / f"{name}.csv", delimiter=",", skip_header=1, dtype=str)
    return table[:, :-1].astype(float), table[:, -1]


def sets():
    """Name, X and y of every set at hand."""
    for name in NAMES:
        found = load(name)
        if found is not None:
            yield name, *found
