"""The six sets of Table 1 as arrays."""

from plackett import datasets

NAMES = ("lenses", "iris", "wine", "heart", "pima", "german")


def load(name):
    """X and y of a set."""
    found = datasets.load(name)
    return found.X.to_numpy(dtype=float), found.y


def sets(names=NAMES):
    """Name, X and y of every set at hand; a word about each that is not."""
    for name in names:
        try:
            X, y = load(name)
        except OSError as error:
            print(f"left out: {error}")
        else:
            yield name, X, y
